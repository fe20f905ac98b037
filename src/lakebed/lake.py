"""A lake: one warehouse of databases and tables, opened by `connect`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakebed.catalog.filesystem import FilesystemCatalog
from lakebed.catalog.names import DEFAULT_DATABASE, TableName, parse_table_name
from lakebed.clock import RandomIds, SystemClock
from lakebed.errors import InvalidArgument, Unsupported
from lakebed.fileio import open_fileio
from lakebed.table.arguments import names_argument, options_argument
from lakebed.table.table import Table
from lakebed.types.arrow import as_data_type, from_arrow_schema
from lakebed.types.logical import DataField, renumbered

SchemaLike = Any
"""A pyarrow schema, a mapping from column names to types, or a list of fields."""


def connect(path: str | os.PathLike[str], spark: object = None, options: Mapping[str, str] | None = None) -> Lake:
    """Opens the warehouse at a local path or a URL (s3://, gs://, az://, memory://).

    `options` are those of the file system, such as `s3.endpoint`. Nothing is created until something is written.
    """
    if spark is not None:
        raise Unsupported(
            "a Spark session was given, but this version does not run on Spark",
            hint="leave `spark` out: tables are read and written without it",
        )
    if not isinstance(path, str | os.PathLike):
        raise InvalidArgument(f"path is {path!r}", hint="pass a directory, or a URL such as s3://bucket/path")
    _keep_memory_warm()
    fileio, root = open_fileio(os.fspath(path), options)
    return Lake(FilesystemCatalog(fileio, root, SystemClock(), RandomIds()))


def _keep_memory_warm() -> None:
    """Lets Arrow reuse freed memory, unless the user chose an allocator.

    Arrow's default hands large blocks back to the system at once, which then clears new ones for the next batch: up to
    two thirds of the CPU time of a full read, and the reason why two runs of it differ so much.
    """
    is_chosen = "ARROW_DEFAULT_MEMORY_POOL" in os.environ or pa.default_memory_pool().backend_name != "mimalloc"
    if not is_chosen and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())


class Lake:
    """Databases and tables of one warehouse. Names are `table` (in the current database) or `database.table`."""

    def __init__(self, catalog: FilesystemCatalog) -> None:
        self._catalog = catalog
        self._database = DEFAULT_DATABASE

    def __repr__(self) -> str:
        return f"<lakebed lake at {self._catalog.root}>"

    @property
    def current_database(self) -> str:
        """The database that plain table names refer to."""
        return self._database

    def use(self, database: str) -> None:
        """Makes a database the current one."""
        self._catalog.check_database(database)
        self._database = database

    def databases(self) -> list[str]:
        """Names of all databases."""
        return self._catalog.databases()

    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        """Makes a database."""
        self._catalog.create_database(name, if_not_exists=if_not_exists)

    def drop_database(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        """Removes a database; one that holds tables only with `cascade`."""
        self._catalog.drop_database(name, cascade=cascade, if_exists=if_exists)
        if name == self._database:
            self._database = DEFAULT_DATABASE

    def tables(self, database: str | None = None) -> list[str]:
        """Names of the tables of a database (the current one)."""
        return self._catalog.tables(database or self._database)

    def table(self, name: str) -> Table:
        """The table of that name."""
        return self._catalog.table(self._parse(name))

    def has_table(self, name: str) -> bool:
        """Whether there is such a table."""
        return self._catalog.has_table(self._parse(name))

    def create_table(
        self,
        name: str,
        schema: SchemaLike,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """Makes a table and returns it.

        `schema` is a pyarrow schema, or a mapping from column names to types: `{"id": "BIGINT NOT NULL", ...}`.
        Options are Paimon's, by their own names; an option that is not honoured is refused by name.
        """
        if comment is not None and not isinstance(comment, str):
            raise InvalidArgument(f"comment is {comment!r}", hint="pass text")
        return self._catalog.create_table(
            self._parse(name),
            _to_fields(schema),
            primary_key=names_argument(primary_key, "primary_key"),
            partition_by=names_argument(partition_by, "partition_by"),
            options=options_argument(options),
            comment=comment,
            if_not_exists=if_not_exists,
        )

    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Removes a table with all its files."""
        self._catalog.drop_table(self._parse(name), if_exists=if_exists)

    def rename_table(self, old: str, new: str) -> None:
        """Gives a table another name, also in another database."""
        self._catalog.rename_table(self._parse(old), self._parse(new))

    def _parse(self, name: str) -> TableName:
        return parse_table_name(name, self._database)


def _to_fields(schema: SchemaLike) -> tuple[DataField, ...]:
    if isinstance(schema, pa.Schema):
        return from_arrow_schema(schema)
    if isinstance(schema, Mapping):
        counter = iter(range(1 << 30))
        fields = []
        for name, given in schema.items():
            if not isinstance(name, str):
                raise InvalidArgument(f"column name {name!r} is no text", hint="name columns by text")
            column_id = next(counter)
            fields.append(DataField(column_id, name, renumbered(as_data_type(given, name), lambda: next(counter))))
        return tuple(fields)
    if isinstance(schema, Sequence) and schema and all(isinstance(field, DataField) for field in schema):
        return tuple(schema)
    raise InvalidArgument(
        f"schema of type {type(schema).__name__} is not understood",
        hint='pass a pyarrow schema or a mapping like {"id": "BIGINT NOT NULL", "name": "STRING"}',
    )
