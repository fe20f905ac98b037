"""The tables of a query: found by name, seen with the columns that they had then, read at a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from sqlglot import exp

from lakebed.algebra.relations import Relation, Scan, scans, used_ids
from lakebed.changes.read import ChangeRead
from lakebed.embedded.tables import parts_of, threads_here
from lakebed.errors import InvalidArgument, InvalidSchema, Unsupported
from lakebed.expressions.nodes import NotProven
from lakebed.metadata.snapshot import Snapshot
from lakebed.records import dataclass
from lakebed.sql.bind.queries import LookedUp, TableColumns, refuse_lookup
from lakebed.sql.bind.scope import Bound
from lakebed.sql.bind.select import bind_query
from lakebed.sql.bind.syntax import verbatim
from lakebed.sql.query.other_tables import other_table
from lakebed.sql.query.pushdown import cheapest_column
from lakebed.sql.query.references import is_common_expression, reference_of, references
from lakebed.sql.session import SqlLake
from lakebed.sql.settings import session_changes_meaning
from lakebed.sql.statements import Sql
from lakebed.table.opened import OpenedTable, opened_of
from lakebed.table.plans import plan_read
from lakebed.table.system.handle import DefinedTable
from lakebed.table.table import Table
from lakebed.types.logical import TIMESTAMPS, AtomicType, DataField, DataType, TypeRoot, is_root
from lakebed.types.transfer import transfer_schema
from lakebed.views.store import SourceColumns

_NO_FIXED_VALUE = {
    *("rand", "random", "randn", "uuid", "shuffle", "now", "current_date", "current_timestamp", "localtimestamp"),
    *("current_timezone", "current_user", "user", "session_user", "curdate", "current_database", "current_schema"),
    *("current_catalog", "monotonically_increasing_id", "spark_partition_id", "input_file_name", "version"),
    *("input_file_block_start", "input_file_block_length", "randstr", "uniform", "current_time", "proctime"),
}
"""Functions that give another value each time, or to each user."""


MOST_PRECISE = 6
"""Queries see moments to so many digits of a second."""


def pinned_at(table: Table, snapshot: Snapshot | None) -> Table:
    """The table at a snapshot, under its current schema; without rows if there was none."""
    opened = opened_of(table)
    context = opened.current()
    return Table(OpenedTable(context, opened.overrides, snapshot or Snapshot.before_first(context.schema.id)))


@dataclass
class Source:
    """A table in a query, at a snapshot (None: before its first one). `names` are the columns that are read."""

    table: Table
    path: tuple[str, ...]
    snapshot: Snapshot | None
    names: tuple[str, ...] = ()
    is_lookup: bool = False
    """Whether rows are only looked up in it, so that its changes do not count."""

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of its primary key; none if two keys may be one value to a query."""
        by_name = {each.name: each.type for each in self.table.schema.fields}
        names = self.table.primary_key
        return names if all(_stays_apart(by_name[name]) for name in names) else ()

    def fields(self) -> list[DataField]:
        """The columns that are read."""
        by_name = {each.name: each for each in self.table.schema.fields}
        return [by_name[name] for name in self.names]

    def define(self, connection: Any, view: str) -> None:
        """Shows the rows to DuckDB under a name."""
        chosen = list(self.names) or [cheapest_column(self.table.arrow_schema)]
        if self.snapshot is None:
            by_name = {each.name: each for each in self.table.schema.fields}
            connection.register(view, transfer_schema([by_name[name] for name in chosen]).empty_table())
            return
        planned = plan_read(pinned_at(self.table, self.snapshot), chosen, None)
        assert not isinstance(planned, ChangeRead)
        reader, plan = planned
        parts_of(reader, plan, threads_here()).define(connection, view)


@dataclass
class _SourceTables:
    """Finds the tables of a query. `snapshots` are those to read, by name; `visible` the columns there are."""

    lake: SqlLake
    snapshots: Mapping[str, Snapshot | None]
    visible: Mapping[str, SourceColumns] | None = None
    found: list[Source] = field(default_factory=list)

    def columns(self, node: exp.Table) -> TableColumns:
        """What a table shows."""
        reference = reference_of(self.lake, node)
        if reference is None:
            raise NotProven(f"`{node.sql('spark')}`", "it is no table of the lake")
        table = reference.table
        for each in table.schema.fields:
            if is_root(each.type, TypeRoot.CHAR):
                raise NotProven(f"column `{each.name}` of {table.name}", "CHAR is compared regardless of its padding")
        path = tuple(reference.name.split("."))
        source = Source(table, path, self.snapshots.get(table.name))
        fields = tuple(transfer_schema(table.schema.fields))
        if self.visible is not None:
            names = self.visible[table.name].visible
            fields = tuple(each for each in fields if each.name in names)
        kept = {each.name for each in opened_of(table).current().kept_fields}
        self.found.append(source)
        shown = tuple(each for each in fields if each.name not in kept)
        return TableColumns(source, path, shown, tuple(each for each in fields if each.name in kept))


def bound_query(
    lake: SqlLake,
    sql: Sql,
    snapshots: Mapping[str, Snapshot | None],
    visible: Mapping[str, SourceColumns] | None = None,
    looked_up: LookedUp = refuse_lookup,
) -> Bound:
    """The query over snapshots of its tables; NotProven if only Spark is sure to answer it rightly."""
    return bind_query(verbatim(sql.text), _SourceTables(lake, snapshots, visible).columns, looked_up=looked_up)


def tables_of(lake: SqlLake, sql: Sql, reader: str = "a materialized table") -> dict[str, Table]:
    """The tables that a query reads, by their full names; an error for what can not be followed."""
    found: dict[str, Table] = {}
    refuse_passing_values(sql)
    _refuse_other_systems(lake, sql)
    for reference in references(lake, sql):
        table = reference.table
        if isinstance(table, DefinedTable) or isinstance(reference.node.this, exp.Func) or "$" in table.name:
            raise Unsupported(
                f"`{reference.name}` shows what a table is made of, which {reader} can not follow",
                hint="read the table itself",
            )
        if reference.node.meta.keys() & {"options", "version"}:
            raise Unsupported(
                f"`{reference.name}` is read at a fixed state or under options, which {reader} does not do",
                hint="leave VERSION AS OF, TIMESTAMP AS OF and OPTIONS out: the query follows its tables",
            )
        found[table.name] = table
    if not found:
        raise InvalidArgument("the query reads no table of the lake", hint="name one in FROM")
    return found


def refuse_other_meaning(lake: SqlLake, reader: str) -> None:
    """Raises if settings of the session in use change what a query gives: rows would depend on who computes them."""
    reason = session_changes_meaning(lake)
    if reason is not None:
        raise Unsupported(
            f"{reader} can not be computed here: {reason}, which changes what queries mean",
            hint="set it back, or use a session without it",
        )


def _stays_apart(kind: DataType) -> bool:
    """Whether two values of a type are two in a query: zeros of two signs are one there, and moments are cut."""
    if is_root(kind, TIMESTAMPS):
        assert isinstance(kind, AtomicType)
        return kind.precision <= MOST_PRECISE
    return not is_root(kind, {TypeRoot.FLOAT, TypeRoot.DOUBLE})


def _refuse_other_systems(lake: SqlLake, sql: Sql) -> None:
    """A definition of another system's table ends with the session, and its rows can not be read twice."""
    for node in sql.tables():
        other = None if is_common_expression(node) else other_table(lake, node)
        if other is not None:
            raise Unsupported(
                f"`{other.full_name}` is a table of connector `{other.connector}`, which lands in the lake first",
                hint="write the statements into a file, and type: lakebed run FILE; or INSERT it into a table first",
            )


def refuse_passing_values(sql: Sql) -> None:
    """Raises if a query would give something else each time it is asked."""
    for node in verbatim(sql.text).walk():
        name = None
        if isinstance(node, exp.Anonymous):
            name = str(node.this).lower()
            if name == "unix_timestamp" and node.expressions:
                name = None
            elif name == "unix_timestamp":
                name = "unix_timestamp()"
        elif isinstance(node, exp.CurrentDate | exp.CurrentTimestamp | exp.CurrentUser | exp.CurrentTime):
            name = {"currentdate": "current_date", "currentuser": "current_user"}.get(node.key, "current_timestamp")
        elif isinstance(node, exp.TableSample):
            name = "TABLESAMPLE"
        elif isinstance(node, exp.Column) and len(node.parts) == 1 and node.name.lower() in ("localtimestamp",):
            name = node.name.lower()
        if name is not None and (name in _NO_FIXED_VALUE or name in ("unix_timestamp()", "TABLESAMPLE")):
            raise Unsupported(
                f"`{name}` gives another value each time, so the rows that are stored would depend on when they were "
                "computed",
                hint="store the value in a column, or filter by it when you read the table",
            )


def used_columns(relation: Relation, tables: Mapping[str, Table]) -> dict[str, SourceColumns]:
    """The columns of each table that a bound query looks at."""
    used = used_ids(relation)
    names: dict[str, set[str]] = {name: set(table.primary_key) for name, table in tables.items()}
    for scan in scans(relation):
        names[scan.source.table.name] |= set(scan.narrowed(used).names)
    return {name: columns_of(tables[name], found) for name, found in names.items()}


def columns_of(table: Table, used: set[str] | None = None) -> SourceColumns:
    """The columns of a table, and those in use (all)."""
    fields = table.schema.fields
    chosen = {each.name: (each.id, str(each.type)) for each in fields if used is None or each.name in used}
    return SourceColumns(tuple(each.name for each in fields), chosen)


def check_columns(reader: str, tables: Mapping[str, Table], known: Mapping[str, SourceColumns], hint: str) -> None:
    """Raises if a column that a query uses is not what it was."""
    for name, table in tables.items():
        now = {each.name: each for each in table.schema.fields}
        by_id = {each.id: each.name for each in table.schema.fields}
        for column, (number, kind) in known[name].used.items():
            if column not in now or now[column].id != number:
                what = f"is called `{by_id[number]}` now" if number in by_id else "was dropped"
            elif str(now[column].type) != kind:
                what = f"is of type {now[column].type} now, it was {kind}"
            else:
                continue
            raise InvalidSchema(
                f"{reader}: column `{column}` of `{name}` {what}",
                hint=hint,
            )


def plan_sources(relation: Relation) -> None:
    """Tells the sources of a query which of their columns are read."""
    for scan in scans(relation):
        scan.source.names = tuple(dict.fromkeys((*scan.source.names, *scan.names)))


def source_of(scan: Scan) -> Source:
    """The table of a scan."""
    source = scan.source
    assert isinstance(source, Source)
    return source
