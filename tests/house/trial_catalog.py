"""A catalog that is none of ours: it remembers in memory which tables there are, and numbers their directories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakebed.catalog.base import Catalog
from lakebed.catalog.names import DEFAULT_DATABASE, TableName
from lakebed.clock import Clock, IdSource, RandomIds, SystemClock
from lakebed.definition.context import TableContext
from lakebed.definition.elsewhere import SparkJobs
from lakebed.errors import AlreadyExists, NotFound
from lakebed.fileio import open_fileio
from lakebed.fileio.base import FileIO
from lakebed.metadata.paths import TablePaths
from lakebed.options import Options, check_options
from lakebed.schema.store import SchemaStore
from lakebed.schema.table_schema import TableSchema
from lakebed.table.opened import OpenedTable
from lakebed.table.table import Table
from lakebed.types.logical import DataField


@dataclass
class NumberedCatalog:
    """See the module."""

    fileio: FileIO
    root: str
    jobs: SparkJobs | None
    clock: Clock = field(default_factory=SystemClock)
    ids: IdSource = field(default_factory=RandomIds)
    places: dict[str, dict[str, str]] = field(default_factory=lambda: {DEFAULT_DATABASE: {}})
    made: int = 0

    def databases(self) -> list[str]:
        return sorted(self.places)

    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        if name in self.places and not if_not_exists:
            raise AlreadyExists(name, hint="choose another name")
        self.places.setdefault(name, {})

    def drop_database(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        for table in self.tables(name):
            self.drop_table(TableName(name, table))
        del self.places[name]

    def check_database(self, name: str) -> None:
        if name not in self.places:
            raise NotFound(f"database `{name}` does not exist", hint="create it")

    def tables(self, database: str) -> list[str]:
        self.check_database(database)
        return sorted(self.places[database])

    def create_table(
        self,
        name: TableName,
        fields: Sequence[DataField],
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        if self.has_table(name):
            if if_not_exists:
                return self.table(name)
            raise AlreadyExists(str(name), hint="choose another name")
        checked = check_options(options or {}, for_create=True, columns=[each.name for each in fields])
        now_ms = self.clock.now_ms()
        schema = TableSchema.create(tuple(fields), tuple(partition_by), tuple(primary_key), checked, comment, now_ms)
        self.made += 1
        self.places[name.database][name.table] = f"{self.root}/{self.made}"
        assert self._schemas(self._paths(name)).publish(schema)
        return self.table(name)

    def replace_table(self, name: TableName, fields: Sequence[DataField], **definition: Any) -> bool:
        return False

    def table(self, name: TableName) -> Table:
        return Table(OpenedTable(self.context(name)))

    def context(self, name: TableName) -> TableContext:
        if not self.has_table(name):
            raise NotFound(f"table `{name}` does not exist", hint="create it")
        paths = self._paths(name)
        schemas = self._schemas(paths)
        schema = schemas.latest()
        assert schema is not None
        options = Options(schema.options)
        return TableContext(
            str(name),
            self.fileio,
            paths,
            schema,
            schemas,
            options,
            self.clock,
            self.ids,
            view=name.view,
            jobs=self.jobs,
        )

    def has_table(self, name: TableName) -> bool:
        return name.table in self.places.get(name.database, {})

    def drop_table(self, name: TableName, *, if_exists: bool = False) -> None:
        if if_exists and not self.has_table(name):
            return
        self.fileio.delete_directory(self._paths(name).root)
        del self.places[name.database][name.table]

    def rename_table(self, old: TableName, new: TableName) -> None:
        self.places[new.database][new.table] = self.places[old.database].pop(old.table)

    def _paths(self, name: TableName) -> TablePaths:
        return TablePaths(self.places[name.database][name.table], name.branch)

    def _schemas(self, paths: TablePaths) -> SchemaStore:
        return SchemaStore(self.fileio, paths.schema_directory)


def open_numbered(place: str, options: Mapping[str, str], jobs: SparkJobs | None) -> Catalog:
    """What the registry holds."""
    fileio, root = open_fileio(place, options)
    return NumberedCatalog(fileio, root, jobs)
