"""A streaming INSERT of a query that takes the rows of a source one by one: no landing, one commit for each step.

The position of the source that the rows of a step led to lies in the properties of the very snapshot that holds them.
So a step counts whole or not at all, wherever it is stopped, and a target that is rolled back has its source go back
with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.algebra.relations import Filter, Project, Scan, SetKind, SetOperation, Unnest
from lakebed.connectors.landing import create_landing, landed_columns, landed_name, metadata_name
from lakebed.connectors.registry import RowReader, is_row_source, reader
from lakebed.connectors.row_targets import InsertState, RowTarget, SinkTarget, TableTarget
from lakebed.errors import InvalidArgument, Unsupported
from lakebed.expressions.nodes import NotProven
from lakebed.records import dataclass
from lakebed.sql.bind.queries import TableColumns
from lakebed.sql.bind.scope import Bound
from lakebed.sql.change.embedded_rows import collected_here
from lakebed.sql.change.insert import columns_of
from lakebed.sql.change.store import projected, stored, values_of
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.query.embedded import bound_text
from lakebed.sql.query.other_tables import raw_name
from lakebed.sql.query.pins import Pins
from lakebed.sql.session import SqlLake, connector_tables
from lakebed.sql.settings import session_changes_meaning
from lakebed.sql.statements import Insert, Target
from lakebed.sql.words.names import quoted
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import DataField
from lakebed.types.transfer import to_transfer, transfer_schema
from lakebed.views.lake_in import LakeIn, read_sql
from lakebed.views.plan.normalise import Normaliser
from lakebed.views.result import Refreshed

if TYPE_CHECKING:
    from lakebed.lake import Lake

_STEP_ROWS = 200_000
"""Rows that a step reads at most."""


class _SourceLake(LakeIn):
    """The lake as the query sees it: one source beside the tables of the lake."""

    def __init__(self, lake: SqlLake, database: str, table: ConnectorTable) -> None:
        super().__init__(lake, database)
        self.other_tables = {(table.database, table.name): table}


@dataclass(frozen=True)
class GivenRows:
    """Rows of one step in the place of the source."""

    rows: pa.Table

    def plan(self, names: Any) -> None:
        """Nothing to plan: the rows are here."""

    def define(self, connection: Any, view: str) -> None:
        """Shows the rows to DuckDB under a name."""
        connection.register(view, self.rows)


def is_row_by_row(lake: SqlLake, table: ConnectorTable, query: str, database: str) -> bool:
    """Whether a query takes the rows of a source one by one (filters, values, unnested lists) and reads nothing else;
    what it does not takes a landed table."""
    if not is_row_source(table) or read_sql(query).partners():
        return False
    try:
        return not_one_by_one(_bound(_SourceLake(lake, database, table), table, query, None)) is None
    except NotProven:
        return False


class RowInsert:
    """Sends the rows of a source through a query into a table of the lake or a topic, exactly once; or into a sink that
    keeps nothing, from the beginning each time that a process begins.

    `name` is who it is: its commits and its state in the target go by it. `columns` are those of
    `INSERT INTO t (a, b)`. `into` takes the rows in the place of a table or sink of that name.
    """

    def __init__(
        self,
        lake: SqlLake,
        table: ConnectorTable,
        target: str,
        query: str,
        *,
        name: str,
        database: str,
        columns: tuple[str, ...] = (),
        into: RowTarget | None = None,
    ) -> None:
        self.name = name
        self.source = table
        self.target = target if "." in target else f"{database}.{target}"
        self.reads: tuple[str, ...] = ()
        """Tables of the lake that it reads: none."""
        self.has_ended = False
        """Whether the source has given its last row; known after a step."""
        self._lake = lake
        self._inside = _SourceLake(lake, database, table)
        self._query = query
        self._columns = columns or None
        self._reader: RowReader | None = None
        place, _, other = self.target.rpartition(".")
        found = connector_tables(lake).get((place, other))
        self._sink = into or (None if found is None else SinkTarget(found, name, table))
        self._ahead: tuple[InsertState, str] | None = None
        """A position behind the stored one: what was read in between gave no rows, so nothing was committed."""

    # --- before it runs ------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises what is wrong with it before anything is read or written."""
        if not self.name.strip():
            raise InvalidArgument("the INSERT has no name", hint="give it one that no other INSERT has")
        target = self._opened_target()
        target.state()
        reason = session_changes_meaning(self._lake)
        if reason is not None:
            raise Unsupported(f"the INSERT into `{self.target}` may mean something else: {reason}", hint="unset it")
        try:
            bound = _bound(self._inside, self.source, self._query, None)
            self._stored(bound, target)
        except NotProven as unproven:
            raise Unsupported(
                f"the INSERT into `{self.target}` needs Spark: {unproven.what}: {unproven.why}",
                hint="write that part otherwise",
            ) from unproven
        why = not_one_by_one(bound)
        if why is not None:
            raise Unsupported(
                f"the INSERT into `{self.target}` does not take rows of `{self.source.full_name}` one by one: {why}",
                hint=f"land `{self.source.name}` first, and read the landed table",
            )

    def shape(self) -> Bound:
        """The query over no rows: its columns."""
        return _bound(self._inside, self.source, self._query, None)

    def explain(self) -> str:
        """How it works, in a few lines."""
        target = self._opened_target()
        state = target.state()
        at = "the beginning" if state.position is None else state.position[:200]
        return "\n".join(
            [
                f"INSERT INTO {self.target}: rows of `{self.source.full_name}` ({self.source.connector}), one by one",
                f"name: {self.name}",
                target.says or f"steps: {state.step}; position: {at}",
            ]
        )

    def close(self) -> None:
        """Lets go of the target, if that is of another system."""
        if self._sink is not None:
            self._sink.close()

    def has_begun(self) -> bool:
        """Whether the table has rows of it."""
        return self._opened_target().state().step > 0

    def lag(self) -> dict[str, tuple[int, int]]:
        """How much of the source is in the table, and how much there is: rows, files or messages."""
        state = self._opened_target().state()
        return {self.source.full_name: self._opened_reader().progress(state.position)}

    # --- running -------------------------------------------------------------------------------------------------

    def step(self, limit_rows: int = _STEP_ROWS) -> Refreshed:
        """Reads what is next and commits what the query makes of it; `none` if nothing came."""
        target = self._opened_target()
        state = target.state(begins=True)
        position = state.position
        if self._ahead is not None and self._ahead[0] == state:
            position = self._ahead[1]
        rows, after, self.has_ended = self._opened_reader().read(position, limit_rows)
        if not rows.num_rows:
            self._ahead = (state, after)  # where "from now on" was, if that is where it began
            return Refreshed.nothing(self.target, "the source has ended" if self.has_ended else "nothing came")
        made = self._made(rows, target)
        if not made.num_rows:
            self._ahead = (state, after)
            return Refreshed.nothing(self.target, "no row that came is wanted")
        counts, snapshot = target.send(made, InsertState(state.step + 1, after))
        if not counts:
            return Refreshed.nothing(self.target, "another runner was first")
        return Refreshed(self.target, "incremental", "rows came", inserted=made.num_rows, snapshot=snapshot)

    def _made(self, rows: pa.Table, target: RowTarget) -> pa.Table:
        """The rows of the target that the query makes of rows of the source."""
        bound = _bound(self._inside, self.source, self._query, rows)
        given, values = self._stored(bound, target)
        found = collected_here(self._lake, values, [field for field, _ in given])
        columns = dict(zip([field.name for field, _ in given], found.columns, strict=True))
        arrays = [
            columns[field.name] if field.name in columns else pa.nulls(found.num_rows, to_arrow_type(field.type))
            for field in target.fields
        ]
        return pa.Table.from_arrays(arrays, names=[field.name for field in target.fields])

    def _stored(self, bound: Bound, target: RowTarget) -> tuple[list[tuple[DataField, int]], Bound]:
        """The columns that the query gives, with their places in it; and the query with their types."""
        fields = target.fields
        statement = Insert(Target(self.target), read_sql(self._query), columns=self._columns)
        places = columns_of(statement, fields, self.target, list(bound.names)).sources
        relation, values = values_of(bound)
        given = [(field, place) for field, place in zip(fields, places, strict=True) if place is not None]
        taken = [stored(values[place], field, by_place=True) for field, place in given]
        return given, projected(relation, taken, [field.name for field, _ in given])

    def _opened_target(self) -> RowTarget:
        return self._sink or TableTarget(self._inside, self.target, self.name, self.source)

    def _opened_reader(self) -> RowReader:
        if self._reader is None:
            self._reader = reader(self.source)
        return self._reader


def landing_insert(lake: Lake, table: ConnectorTable) -> RowInsert:
    """The INSERT that lands a source of rows; makes the landed table if it is not there.

    Its name follows from the table's: a pipeline that is started again goes on with it.
    """
    create_landing(lake, table)
    facts = {metadata_name(column.key): name for name, column in table.metadata.items()}
    shown = [
        f"{quoted(facts[name])} AS {quoted(name)}" if name in facts else quoted(name) for name in landed_columns(table)
    ]
    source = f"{quoted(table.database)}.{quoted(table.name)}"
    return RowInsert(
        lake,
        table,
        landed_name(table),
        f"SELECT {', '.join(shown)} FROM {source}",
        name=f"landing-{table.full_name}",
        database=table.database,
        columns=tuple(landed_columns(table)),
    )


def _bound(inside: _SourceLake, table: ConnectorTable, query: str, rows: pa.Table | None) -> Bound:
    """The query over rows of the source, or, to look at it only, over none."""
    fields = [*table.columns, *(DataField(0, name, column.type) for name, column in table.metadata.items())]
    schema = transfer_schema(fields)
    batches = [] if rows is None else [to_transfer(batch, schema) for batch in rows.to_batches()]
    source = GivenRows(pa.Table.from_batches(batches, schema=schema))
    given = {raw_name(table): TableColumns(source, (), tuple(schema))}
    return bound_text(inside, read_sql(query).text, Pins(), given)


def not_one_by_one(bound: Bound) -> str | None:
    """Why a query does not take rows one by one; None if it does."""
    for node in Normaliser().plain(bound.relation).walk():
        match node:
            case Project() | Filter() | Unnest():
                continue
            case Scan(source=GivenRows()):
                continue
            case SetOperation(kind=SetKind.UNION_ALL):
                continue
            case Scan():
                return "it reads other tables as well"
            case _:
                return f"it has a {type(node).__name__.lower()}"
    return None


__all__ = ["GivenRows", "RowInsert", "is_row_by_row", "landing_insert", "not_one_by_one"]
