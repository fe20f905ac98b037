"""The tables of database `sys`: what the catalog knows of all its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakebed.catalog.base import Catalog
from lakebed.catalog.names import SYSTEM_DATABASE, TableName
from lakebed.definition.context import TableContext
from lakebed.errors import InvalidArgument, NotFound, Unsupported, did_you_mean
from lakebed.metadata.data_file import creation_time_to_epoch
from lakebed.metadata.paths import TablePaths, parse_partition_path
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import PATH, TYPE, Options
from lakebed.records import dataclass
from lakebed.schema.store import SchemaStore
from lakebed.table.opened import OpenedTable
from lakebed.table.system.base import SystemTable, TableState, each
from lakebed.table.system.file_groups import FileGroup, by_partition
from lakebed.table.system.handle import DefinedTable, OpenedDefinition
from lakebed.table.table import Table

if TYPE_CHECKING:
    from lakebed.explain.health import Finding


@dataclass(frozen=True)
class _KnownTable:
    """One table of the catalog, and the little that is asked of it."""

    name: TableName
    context: TableContext

    @cached_property
    def state(self) -> TableState:
        return TableState(self.context, self.context.stores.snapshots.latest())

    @property
    def snapshot(self) -> Snapshot | None:
        return self.state.snapshot

    def option(self, key: str) -> str | None:
        return self.context.schema.options.get(key)

    def number(self, key: str) -> int | None:
        text = self.option(key)
        return int(text) if text is not None and text.isdigit() else None

    @cached_property
    def files(self) -> FileGroup | None:
        """All files together; None without any."""
        return FileGroup(tuple(self.state.files)) if self.state.files else None


def _tables(catalog: Catalog) -> Iterator[_KnownTable]:
    for database in catalog.databases():
        for table in catalog.tables(database):
            name = TableName(database, table)
            try:
                yield _KnownTable(name, catalog.context(name))
            except NotFound:
                continue  # it was dropped since we looked


def _partitions(catalog: Catalog) -> Iterator[tuple[_KnownTable, FileGroup]]:
    partitioned = (table for table in _tables(catalog) if table.context.schema.partition_keys)
    return ((table, group) for table in partitioned for group in by_partition(table.state.files))


def _options(catalog: Catalog) -> Iterator[tuple[TableName, str, str]]:
    for table in _tables(catalog):
        for key, value in {**table.context.schema.options, PATH.key: table.context.paths.root}.items():
            yield table.name, key, value


def _findings(catalog: Catalog) -> Iterator[tuple[TableName, Finding]]:
    from lakebed.explain.health import health  # all that looks after tables: only when asked

    for table in _tables(catalog):
        yield from ((table.name, finding) for finding in health(table.context))


def _created_ms(group: FileGroup | None) -> int | None:
    if group is None or group.last_update_ms is None:
        return None
    return creation_time_to_epoch(group.last_update_ms)


def _partition_name(pair: tuple[_KnownTable, FileGroup]) -> str:
    path = pair[0].context.partition_directory(pair[1].partition)
    return "/".join(f"{name}={value}" for name, value in parse_partition_path(path))


GLOBAL_TABLES: dict[str, SystemTable[Any, Any]] = {
    definition.name: definition
    for definition in (
        SystemTable(
            "tables",
            _tables,
            (
                each("database_name", "STRING", lambda table: table.name.database),
                each("table_name", "STRING", lambda table: table.name.table),
                each("table_type", "STRING", lambda table: str(table.context.options[TYPE])),
                each("partitioned", "BOOLEAN", lambda table: bool(table.context.schema.partition_keys)),
                each("primary_key", "BOOLEAN", lambda table: table.context.has_key),
                each("owner", "STRING", lambda table: table.option("owner")),
                each("created_at", "BIGINT", lambda table: table.number("createdAt")),
                each("created_by", "STRING", lambda table: table.option("createdBy")),
                each("updated_at", "BIGINT", lambda table: table.number("updatedAt")),
                each("updated_by", "STRING", lambda table: table.option("updatedBy")),
                each("record_count", "BIGINT", lambda table: table.snapshot and table.snapshot.total_record_count),
                each("file_size_in_bytes", "BIGINT", lambda table: table.snapshot and _sum(table.files)),
                each("file_count", "BIGINT", lambda table: table.snapshot and len(table.state.files)),
                each("last_file_creation_time", "BIGINT", lambda table: _created_ms(table.files)),
            ),
        ),
        SystemTable(
            "partitions",
            _partitions,
            (
                each("database_name", "STRING", lambda pair: pair[0].name.database),
                each("table_name", "STRING", lambda pair: pair[0].name.table),
                each("partition_name", "STRING", _partition_name),
                each("record_count", "BIGINT", lambda pair: pair[1].record_count),
                each("file_size_in_bytes", "BIGINT", lambda pair: pair[1].size_bytes),
                each("file_count", "BIGINT", lambda pair: len(pair[1].entries)),
                each("last_file_creation_time", "BIGINT", lambda pair: _created_ms(pair[1])),
                each("done", "BOOLEAN", lambda pair: False),
            ),
        ),
        SystemTable(
            "all_table_options",
            _options,
            (
                each("database_name", "STRING", lambda option: option[0].database),
                each("table_name", "STRING", lambda option: option[0].table),
                each("key", "STRING", lambda option: option[1]),
                each("value", "STRING", lambda option: option[2]),
            ),
        ),
        SystemTable(
            "health",
            _findings,
            (
                each("database_name", "STRING", lambda found: found[0].database),
                each("table_name", "STRING", lambda found: found[0].table),
                each("severity", "STRING", lambda found: str(found[1].severity)),
                each("check", "STRING", lambda found: found[1].check),
                each("figure", "DOUBLE", lambda found: float(found[1].figure)),
                each("message", "STRING", lambda found: found[1].message),
                each("cure", "STRING", lambda found: found[1].cure),
            ),
        ),
        SystemTable(
            "catalog_options",
            # Nothing but the warehouse: the options of a file system hold credentials.
            lambda catalog: [("warehouse", catalog.root)],
            (
                each("key", "STRING NOT NULL", lambda option: option[0]),
                each("value", "STRING NOT NULL", lambda option: option[1]),
            ),
        ),
    )
}
"""Definitions by table name; rows are made from the catalog."""


def _sum(group: FileGroup | None) -> int:
    return 0 if group is None else group.size_bytes


def global_table(catalog: Catalog, name: TableName) -> Table:
    """The table of that name in database `sys`."""
    definition = GLOBAL_TABLES.get(name.table.lower())
    if definition is None or not name.is_table_itself:
        raise NotFound(f"there is no system table `{name}`", hint=did_you_mean(name.table, GLOBAL_TABLES))
    paths = TablePaths(f"{catalog.root}/{SYSTEM_DATABASE}.db/{definition.name}")
    schemas = SchemaStore(catalog.fileio, paths.schema_directory)
    context = TableContext(
        str(name), catalog.fileio, paths, definition.schema, schemas, Options({}), catalog.clock, catalog.ids
    )
    return _GlobalTable(catalog, definition, context)


class _OpenedGlobal(OpenedDefinition):
    """A table of database `sys`: its columns are always the same, and nobody changes it."""

    def current(self) -> TableContext:
        return self.context

    def refuse_if_read_only(self) -> None:
        raise InvalidArgument(
            f"`{self.name}` is a system table of database `{SYSTEM_DATABASE}`, which is read only",
            hint="change the tables that it tells of",
        )


class _GlobalTable(DefinedTable):
    """An opened table of database `sys`."""

    def __init__(self, catalog: Catalog, definition: SystemTable[Any, Any], context: TableContext) -> None:
        super().__init__(definition, _OpenedGlobal(context))
        self._catalog = catalog

    def _source(self) -> Catalog:
        return self._catalog

    def _as(self, opened: OpenedTable) -> Table:
        raise Unsupported(f"`{self.name}` has no earlier states and no branches", hint="read it as it is now")

    def at(self, point: Any = None, /, **_: Any) -> Table:
        """Refused: the catalog keeps no history."""
        raise Unsupported(f"`{self.name}` has no earlier states", hint="read it as it is now")

    def with_options(self, options: Mapping[str, object]) -> Table:
        """Refused: there is nothing to set."""
        raise Unsupported(f"`{self.name}` has no options", hint="read it as it is now")


__all__ = ["GLOBAL_TABLES", "global_table"]
