"""The catalog that needs no service: directories are databases and tables.

    <warehouse>/<database>.db/<table>/schema/schema-0

A directory is a table as soon as it holds a schema file, and that file is created exclusively: of several processes
that create the same table, one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakebed.catalog.global_tables import GLOBAL_TABLES, global_table
from lakebed.catalog.listing import database_names, database_path, table_names
from lakebed.catalog.names import DEFAULT_DATABASE, SYSTEM_DATABASE, TableName, check_name
from lakebed.clock import Clock, IdSource
from lakebed.commit.replay import ended_inserts
from lakebed.definition.aggregate_names import stored_options
from lakebed.definition.context import TableContext
from lakebed.definition.elsewhere import SparkJobs
from lakebed.definition.guards import warn_of_unguarded
from lakebed.definition.new_settings import check_new_settings
from lakebed.definition.validate import validate_table
from lakebed.errors import AlreadyExists, InvalidArgument, NotFound, did_you_mean
from lakebed.fileio.base import FileIO
from lakebed.metadata.branches import branch_names
from lakebed.metadata.paths import TablePaths
from lakebed.options import DATA_FILE_PATH_DIRECTORY, Options, check_options
from lakebed.read.other_branch import check_other_branch
from lakebed.records import dataclass
from lakebed.schema.store import SchemaStore
from lakebed.schema.table_schema import TableSchema
from lakebed.table.opened import OpenedTable
from lakebed.table.system import SYSTEM_TABLES
from lakebed.table.system.handle import SystemTableHandle
from lakebed.table.system.why import WHY, WhyTable
from lakebed.table.table import Table
from lakebed.types.logical import DataField


@dataclass(frozen=True)
class FilesystemCatalog:
    """Databases and tables below one directory or bucket."""

    fileio: FileIO
    root: str
    clock: Clock
    ids: IdSource
    jobs: SparkJobs | None = None
    """How tables run work on Spark."""

    # --- databases -----------------------------------------------------------------------------------------------

    def databases(self) -> list[str]:
        """Names of all databases; the default one is always there."""
        return database_names(self.fileio, self.root)

    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        """Makes a database."""
        path = self._database_path(check_name(name, "database"))
        _refuse_system_database(name)
        if self._has_database(name):
            if if_not_exists:
                return
            raise AlreadyExists(
                f"database `{name}` exists already", hint="choose another name, or pass if_not_exists=True"
            )
        self.fileio.make_directory(path)
        if not self.fileio.exists(path):
            # Object stores have no directories: an empty file keeps the place.
            self.fileio.write_bytes(f"{path}/.database", b"")

    def drop_database(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        """Removes a database; one that holds tables only with `cascade`."""
        check_name(name, "database")
        _refuse_system_database(name)
        if if_exists and not self._has_database(name):
            return
        tables = self.tables(name)
        if tables and not cascade:
            raise InvalidArgument(
                f"database `{name}` holds {len(tables)} tables, `{tables[0]}` among them",
                hint="drop the tables first, or pass cascade=True; in SQL write CASCADE",
            )
        for table in tables:
            self.drop_table(TableName(name, table))
        self.fileio.delete_directory(self._database_path(name))

    def tables(self, database: str) -> list[str]:
        """Names of a database's tables."""
        self.check_database(database)
        if database == SYSTEM_DATABASE:
            return sorted(GLOBAL_TABLES)
        return table_names(self.fileio, self.root, database)

    # --- tables --------------------------------------------------------------------------------------------------

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
        """Makes a table and returns it."""
        schema = self._defined(name, fields, primary_key, partition_by, options, comment)
        schemas = self._schemas(self._table_paths(name))
        if schemas.latest() is not None or not schemas.publish(schema):
            if if_not_exists:
                return self.table(name)
            raise AlreadyExists(
                f"table `{name}` exists already", hint="choose another name, or pass if_not_exists=True"
            )
        warn_of_unguarded(str(name), Options(schema.options))
        return self.table(name)

    def _defined(
        self,
        name: TableName,
        fields: Sequence[DataField],
        primary_key: Sequence[str],
        partition_by: Sequence[str],
        options: Mapping[str, object] | None,
        comment: str | None,
    ) -> TableSchema:
        """The first schema of a table, checked as a whole."""
        if not name.is_table_itself:
            raise InvalidArgument(f"`{name}` names a branch or view", hint="create the table itself")
        _refuse_system_database(name.database)
        self.check_database(name.database)
        checked = check_options(options or {}, for_create=True, columns=[field.name for field in fields])
        checked = stored_options(checked, fields)
        schema = TableSchema.create(
            tuple(fields), tuple(partition_by), tuple(primary_key), checked, comment, self.clock.now_ms()
        )
        validate_table(schema, Options(schema.options), str(name))
        branches = branch_names(self.fileio, self._table_paths(name)) if self.has_table(name) else ()
        check_other_branch(Options(schema.options), branches, str(name))
        check_new_settings(Options(schema.options), str(name))
        return schema

    def replace_table(
        self,
        name: TableName,
        fields: Sequence[DataField],
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
    ) -> bool:
        """Takes the rows of a table away and gives it another definition; old snapshots stay.

        False, and nothing is changed, if its partitions would not be what they were.
        """
        from lakebed.rewrite.replace_table import can_replace_in_place, publish_replacement
        from lakebed.table.writer import remove_all_rows

        schema = self._defined(name, fields, primary_key, partition_by, options, comment)
        old = self.context(name)
        if not can_replace_in_place(old.schema, schema):
            return False
        snapshots = old.stores.snapshots
        if snapshots.latest_id() is not None:
            remove_all_rows(Table(OpenedTable(old)), ended_inserts(snapshots, snapshots.latest()))
        publish_replacement(old.schemas, schema, str(name))
        warn_of_unguarded(str(name), Options(schema.options), old.options)
        return True

    def table(self, name: TableName) -> Table:
        """The table of that name."""
        if name.database == SYSTEM_DATABASE:
            return global_table(self, name)
        context = self.context(name)
        if name.view in SYSTEM_TABLES:
            opened = OpenedTable(context)
            return WhyTable(opened) if name.view == WHY.name else SystemTableHandle(SYSTEM_TABLES[name.view], opened)
        return Table(OpenedTable(context))

    def context(self, name: TableName) -> TableContext:
        """What the parts of a table need to know of it."""
        paths = self._table_paths(name)
        schemas = self._schemas(paths)
        schema = schemas.latest()
        if schema is None:
            raise self._missing(name)
        return TableContext(
            str(name),
            self.fileio,
            replace(paths, data_directory=Options(schema.options)[DATA_FILE_PATH_DIRECTORY]),
            schema,
            schemas,
            Options(schema.options),
            self.clock,
            self.ids,
            view=name.view,
            jobs=self.jobs,
        )

    def has_table(self, name: TableName) -> bool:
        """Whether there is such a table."""
        if name.database == SYSTEM_DATABASE:
            return name.is_table_itself and name.table.lower() in GLOBAL_TABLES
        return self._schemas(self._table_paths(name)).latest() is not None

    def drop_table(self, name: TableName, *, if_exists: bool = False) -> None:
        """Removes a table with all its files."""
        if not name.is_table_itself:
            raise InvalidArgument(f"`{name}` names a branch or view", hint="name the table itself to drop it")
        _refuse_system_database(name.database)
        if not self.has_table(name):
            if if_exists:
                return
            raise self._missing(name)
        paths = self._table_paths(name)
        # Without schemas it is no table any more: a crash half-way leaves files behind, never half a table.
        self.fileio.delete_directory(paths.schema_directory)
        self.fileio.delete_directory(paths.root)

    def rename_table(self, old: TableName, new: TableName) -> None:
        """Gives a table another name, also in another database."""
        if not (old.is_table_itself and new.is_table_itself):
            raise InvalidArgument("a branch or view can not be renamed this way", hint="name the table itself")
        _refuse_system_database(old.database)
        _refuse_system_database(new.database)
        if not self.has_table(old):
            raise self._missing(old)
        self.check_database(new.database)
        if self.has_table(new):
            raise AlreadyExists(f"table `{new}` exists already", hint="choose another name, or drop it first")
        self.fileio.rename_directory(self._table_paths(old).root, self._table_paths(new).root)

    # --- inside --------------------------------------------------------------------------------------------------

    def _database_path(self, name: str) -> str:
        return database_path(self.root, name)

    def _table_paths(self, name: TableName) -> TablePaths:
        return TablePaths(f"{self._database_path(name.database)}/{name.table}", name.branch)

    def _schemas(self, paths: TablePaths) -> SchemaStore:
        return SchemaStore(self.fileio, paths.schema_directory)

    def _has_database(self, name: str) -> bool:
        return name in (DEFAULT_DATABASE, SYSTEM_DATABASE) or self.fileio.exists(self._database_path(name))

    def check_database(self, name: str) -> None:
        """Raises unless there is such a database."""
        check_name(name, "database")
        if not self._has_database(name):
            raise NotFound(
                f"database `{name}` does not exist",
                hint=f"create it with create_database({name!r}); {did_you_mean(name, self.databases())}",
            )

    def _missing(self, name: TableName) -> NotFound:
        self.check_database(name.database)
        known = self.tables(name.database)
        if name.branch != "main" and name.table in known:
            return NotFound(
                f"table `{name.database}.{name.table}` has no branch `{name.branch}`", hint="check the name"
            )
        return NotFound(
            f"table `{name}` does not exist",
            hint=f"create it with create_table; {did_you_mean(name.table, known)}"
            if known
            else f"database `{name.database}` is empty: create the table with create_table",
        )


def _refuse_system_database(name: str) -> None:
    if name == SYSTEM_DATABASE:
        raise InvalidArgument(
            f"database `{SYSTEM_DATABASE}` is kept for tables about all tables, which are read only",
            hint="use another database",
        )
