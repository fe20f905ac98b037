"""Which databases and tables there are, by directories alone: needs nothing of what tables are made of.

Apart from the catalog so that a program that only lists names does not have to load all the rest.
"""

from __future__ import annotations

import re

from lakebed.fileio.base import FileIO
from lakebed.metadata.paths import TablePaths

DEFAULT_DATABASE = "default"
_SUFFIX = ".db"
_SCHEMA_FILE = re.compile(r"schema-[0-9]+")


def database_path(root: str, name: str) -> str:
    """Directory of a database."""
    return f"{root}/{name}{_SUFFIX}"


def database_names(fileio: FileIO, root: str) -> list[str]:
    """Names of all databases; the default one is always there."""
    found = {
        entry.name.removesuffix(_SUFFIX)
        for entry in fileio.list_directory(root)
        if entry.is_directory and entry.name.endswith(_SUFFIX)
    }
    return sorted(found | {DEFAULT_DATABASE})


def table_names(fileio: FileIO, root: str, database: str) -> list[str]:
    """Names of a database's tables: directories that hold a schema."""
    return sorted(
        entry.name
        for entry in fileio.list_directory(database_path(root, database))
        if entry.is_directory and _holds_schema(fileio, TablePaths(entry.path))
    )


def _holds_schema(fileio: FileIO, paths: TablePaths) -> bool:
    return any(_SCHEMA_FILE.fullmatch(entry.name) for entry in fileio.list_directory(paths.schema_directory))


__all__ = ["DEFAULT_DATABASE", "database_names", "database_path", "table_names"]
