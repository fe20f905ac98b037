"""From the options of `spark.read.format("lakebed")` to the table they name: a path, or a warehouse and a name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from lakebed.catalog.filesystem import FilesystemCatalog
from lakebed.catalog.names import DEFAULT_DATABASE, parse_table_name
from lakebed.clock import RandomIds, SystemClock
from lakebed.errors import InvalidArgument
from lakebed.fileio import open_fileio
from lakebed.options.table import OPTIONS, find_option
from lakebed.table.table import Table

_PLACE = frozenset({"path", "warehouse", "table"})
_STORES = ("s3.", "fs.", "gs.", "az.", "azure.", "oss.", "google.")


def find_table(options: Mapping[str, str]) -> tuple[Table, dict[str, str]]:
    """The table as it is, and those of the options that are options of tables."""
    given = {key.lower(): value for key, value in options.items()}
    storage = {key: value for key, value in given.items() if key.startswith(_STORES)}
    table = _table(given, storage)
    dynamic = {
        _spelling().get(key, key): value for key, value in given.items() if key not in _PLACE and key not in storage
    }
    known = {key: value for key, value in dynamic.items() if "." in key or "-" in key or find_option(key) is not None}
    return table, known


@cache
def _spelling() -> dict[str, str]:
    """Keys with capitals by what Spark makes of them: it does not tell capitals from small letters."""
    keys = (key for option in OPTIONS for key in (option.key, *option.aliases))
    return {key.lower(): key for key in keys if key != key.lower()}


def _table(given: Mapping[str, str], storage: Mapping[str, str]) -> Table:
    path = given.get("path")
    warehouse, name = given.get("warehouse"), given.get("table")
    if warehouse is not None and name is not None:
        return _catalog(warehouse, storage).table(parse_table_name(name, DEFAULT_DATABASE))
    if path is None:
        raise InvalidArgument(
            'format("lakebed") was given no table',
            hint='name its directory in load(path), or set the options "warehouse" and "table"',
        )
    parent, _, table = path.rstrip("/").rpartition("/")
    root, _, database = parent.rpartition("/")
    if not database.endswith(".db"):
        raise InvalidArgument(
            f"{path} is not the directory of a table", hint="tables lie at <warehouse>/<database>.db/<table>"
        )
    branch, separator, view = table.partition("$")
    parsed = parse_table_name(f"{branch}{separator}{view}", database.removesuffix(".db"))
    return _catalog(root or "/", storage).table(parsed)


def _catalog(root: str, storage: Mapping[str, str]) -> FilesystemCatalog:
    fileio, place = open_fileio(root, storage)
    return FilesystemCatalog(fileio, place, SystemClock(), RandomIds())


__all__ = ["find_table"]
