"""A SELECT in streaming mode: which way its changes come.

Rows of one table that tells all of its changes, taken one by one, come as the table tells them (`t.follow`), and hints
say where to begin. Rows of one source that is read by position come from there. All else is the delta of the query's
result between two states of its tables (`views/live`); what has to land for it lands, as for an INSERT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from lakebed.algebra.relations import scans
from lakebed.changes.follow import ChangeStream
from lakebed.connectors import RowInsert
from lakebed.connectors.row_insert import GivenRows, not_one_by_one
from lakebed.connectors.row_targets import InsertState
from lakebed.errors import Unsupported
from lakebed.expressions.nodes import NotProven
from lakebed.options import CONTINUOUS_DISCOVERY_INTERVAL
from lakebed.pipelines.graph import Graph
from lakebed.pipelines.jobs import OF_STATEMENTS, Job, running_nodes, start_landing
from lakebed.pipelines.live import Feed, LiveResult
from lakebed.pipelines.nodes import SOURCE, Node, Seen
from lakebed.pipelines.parts import Parts, Running
from lakebed.pipelines.rehearsal import rehearsed
from lakebed.pipelines.runner import Runner
from lakebed.sql import statements as st
from lakebed.sql.bind.queries import TableColumns
from lakebed.sql.bind.scope import Bound
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.define.streaming import BATCH, READING
from lakebed.sql.parse.query import read_query
from lakebed.sql.query.embedded import bound_text, planned
from lakebed.sql.query.other_tables import other_table
from lakebed.sql.query.pins import Pins
from lakebed.sql.query.references import Reference, is_common_expression, references
from lakebed.sql.settings import check_interval_ms, session_changes_meaning
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.names import quoted
from lakebed.table.opened import opened_of
from lakebed.table.table import Table
from lakebed.types.arrow import from_arrow_schema
from lakebed.types.logical import DataField
from lakebed.types.transfer import to_transfer, transfer_schema
from lakebed.units import parse_duration
from lakebed.views.changes import ChangesGone, steps_between, why_untold
from lakebed.views.live import LiveQuery, live_schema, result_fields, with_kinds
from lakebed.views.plan.build import carried_by
from lakebed.views.plan.normalise import Normaliser, carrying
from lakebed.views.sources import refuse_passing_values
from lakebed.views.store import Place

if TYPE_CHECKING:
    from lakebed.lake import Lake

_EVENTS: Final = "events of a table"
"""What the events of a table are called in a query over them."""
_TURN: Final = "turn of the event"
"""The column of events that says their order and kinds: four times the number, and the place of the kind."""
_MANY: Final = 10_000
"""So many rows at a time come from a source that has more of them."""
_KINDS: Final = pa.array(["+I", "-U", "+U", "-D"])


def selected(lake: Lake, sql: st.Sql) -> LiveResult:
    """The changes of a query, from all of its rows on. What is wrong with it is said at once."""
    query, limit = _without_limit(sql)
    interval_ms = check_interval_ms(lake)
    feed = _feed(lake, query, interval_ms)
    if isinstance(feed, _TableFeed) and feed.pause_ms is not None:
        interval_ms = feed.pause_ms
    if limit is not None and not feed.only_grows:
        raise Unsupported(
            "LIMIT without ORDER BY of rows that change or go would keep any of them",
            hint=f"write ORDER BY ... LIMIT {limit} for the first of them, or {BATCH}",
        )
    return LiveResult(feed, interval_ms, limit)


def _without_limit(sql: st.Sql) -> tuple[st.Sql, int | None]:
    """The query without LIMIT at its end, and how many rows that lets through. Refuses an order that has no end."""
    has_limit, has_order = (sql.tree.args.get(word) is not None for word in ("limit", "order"))
    if has_order and not has_limit:
        raise Unsupported(
            "ORDER BY has no meaning for rows that keep coming",
            hint=f"leave it out, or add LIMIT for the first rows of that order; or {BATCH}",
        )
    if not has_limit or has_order:
        return sql, None
    *_, word, number = Cursor(sql.text).tokens
    if word.text.upper() != "LIMIT" or not number.text.isdigit():
        raise Unsupported("only LIMIT and a number may end a streaming SELECT", hint=f"leave OFFSET out, or {BATCH}")
    return read_query(Cursor(sql.text[: word.start].rstrip())), int(number.text)


def _feed(lake: Lake, sql: st.Sql, interval_ms: int) -> Feed:
    found = references(lake, sql)
    if any(other_table(lake, node) is not None for node in sql.tables() if not is_common_expression(node)):
        _refuse_reading_options(found)
        return _feed_of_sources(lake, sql, interval_ms)
    if len(found) == 1 and (feed := _told_by_table(lake, sql, found[0])) is not None:
        return feed
    _refuse_reading_options(found)
    query = LiveQuery(lake, sql.text, database=lake.current_database)
    query.check()
    return _QueryFeed(lake, query, lambda: query)


def _refuse_reading_options(found: list[Reference]) -> None:
    """Raises for options that say where a read begins: the delta of a query begins with all rows."""
    for reference in found:
        if "version" in reference.node.meta or isinstance(reference.node.this, exp.Func):
            continue  # refused by its own name
        given = reference.node.meta.get("options", {})
        known = opened_of(reference.table).overrides
        option = next((key for key in known if key in given or key.startswith(READING)), None)
        if option is not None:
            raise Unsupported(
                f"option `{option}` of `{reference.name}` is for a SELECT of rows of this one table, one by one",
                hint="leave it out; or keep the rest of the query as a materialized table, and select from that",
            )


# --- tables, as they tell their changes ------------------------------------------------------------------------------


def _told_by_table(lake: Lake, sql: st.Sql, reference: Reference) -> Feed | None:
    """Changes of one table as it tells them; None if the query or the table need the delta of two states."""
    if isinstance(reference.node.this, exp.Func) or "$" in reference.name or "version" in reference.node.meta:
        return None
    table = reference.table
    options = dict(opened_of(table).overrides)
    untold = why_untold(opened_of(table).current())
    if untold is not None and not options:
        return None
    if session_changes_meaning(lake) is not None:
        return None
    query = _EventQuery(lake, sql, reference)
    if not query.is_row_by_row:
        return None
    if untold is not None:
        raise Unsupported(
            f"option `{next(iter(options))}` of `{reference.name}` needs all of its changes, and {untold}",
            hint="set `changelog-producer` = `lookup`, or leave the option out: states are compared then",
        )
    only_grows = not table.primary_key or opened_of(table).current().is_first_row
    if not only_grows:
        refuse_passing_values(sql)  # what is taken back must be what was told
    pause = options.get(CONTINUOUS_DISCOVERY_INTERVAL.key)
    appended = None if table.primary_key or options else _Appended(table)
    pause_ms = None if pause is None else parse_duration(str(pause))
    return _TableFeed(query, table.follow(), only_grows, pause_ms, appended)


class _EventQuery:
    """A query over events of a table, whose rows it takes one by one."""

    def __init__(self, lake: Lake, sql: st.Sql, reference: Reference) -> None:
        self._lake = lake
        self._text = sql.spliced({reference.span: quoted(_EVENTS)})
        self._path = tuple(reference.name.split("."))
        self._fields = from_arrow_schema(reference.table.arrow_schema)
        try:
            self._bound: Bound | None = self._over(None)
        except NotProven:
            self._bound = None

    @property
    def is_row_by_row(self) -> bool:
        """Whether nothing but filters, values and unnested lists is asked."""
        return self._bound is not None and not_one_by_one(self._bound) is None

    @property
    def schema(self) -> pa.Schema:
        """What comes."""
        assert self._bound is not None
        result_fields(self._bound)  # raises for types that can not be shown
        given = zip(self._bound.names, self._bound.relation.columns, strict=True)
        return live_schema([pa.field(name, each.type) for name, each in given])

    def of(self, events: pa.Table) -> pa.Table:
        """What the query makes of events, in their order, with their kinds."""
        bound = self._over(events)
        relation = Normaliser().plain(bound.relation)
        (scan,) = scans(relation)
        turn = dict(zip(scan.names, scan.columns, strict=True))[_TURN]
        relation = carrying(relation, {turn.id})
        carried = carried_by(relation, turn)
        assert carried is not None
        columns = [*relation.columns[: len(bound.names)]]
        place = relation.columns.index(carried)
        names = tuple(f"c{number}" for number in range(len(relation.columns)))
        rows = planned(self._lake, Bound(relation, names)).table()
        rows = rows.take(pc.sort_indices(rows.column(place)))
        kinds = pc.take(_KINDS, pc.bit_wise_and(rows.column(place), 3))
        return with_kinds(kinds, rows.select(range(len(columns))), self.schema)

    def _over(self, events: pa.Table | None) -> Bound:
        schema = transfer_schema(self._fields)
        turns = pa.field(_TURN, pa.int64(), False)
        batches = []
        for batch in () if events is None else events.combine_chunks().to_batches():
            kinds = pc.index_in(batch.column(0), value_set=_KINDS).cast(pa.int64())
            numbers = pc.multiply(pa.array(range(batch.num_rows), pa.int64()), 4)
            rows = to_transfer(batch.select(range(1, batch.num_columns)), schema)
            batches.append(rows.append_column(turns, pc.add(numbers, kinds)))
        given = GivenRows(pa.Table.from_batches(batches, schema=schema.append(turns)))
        columns = TableColumns(given, self._path, tuple(schema), (turns,))
        return bound_text(self._lake, self._text, Pins(), {_EVENTS: columns})


class _Appended:
    """Looks that rows of a table without a key only come: a stream tells of nothing else."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._seen: Place | None = None

    def check(self, position: Mapping[str, Any]) -> None:
        """Raises if rows were deleted or replaced since the last look."""
        reached = opened_of(self._table).current().stores.snapshots.find(position["snapshot"] - 1)
        if position["full"] or reached is None:
            return
        if self._seen is not None and reached.id > self._seen.id:
            try:
                steps = steps_between(self._table, self._seen, reached)
            except ChangesGone as gone:
                raise self._ended(gone.reason) from gone
            if steps.way == "comparison":
                raise self._ended(f"{steps.reason} in `{self._table.name}`")
        self._seen = Place.of(reached)

    def _ended(self, reason: str) -> Unsupported:
        return Unsupported(
            f"the streaming SELECT can not go on: {reason}, and a stream of its rows only tells new ones",
            hint="type it again to begin anew; or give the table a primary key, whose rows may change and go",
        )


class _TableFeed:
    """What a query makes of what a table tells."""

    has_more = True

    def __init__(
        self,
        query: _EventQuery,
        stream: ChangeStream,
        only_grows: bool,
        pause_ms: int | None,
        appended: _Appended | None,
    ) -> None:
        self.schema = query.schema
        self.only_grows = only_grows
        self.pause_ms = pause_ms
        """How often to look, if a hint says so."""
        self._query = query
        self._stream = stream
        self._appended = appended

    @property
    def is_over(self) -> bool:
        """Whether a bound is reached."""
        return self._stream.is_over

    def step(self) -> pa.Table | None:
        """What the table has told since."""
        found: pa.Table | None = None
        for events in self._stream:
            found = self._query.of(events)
            if found.num_rows:
                break
        if self._appended is not None:
            self._appended.check(self._stream.position)
        return found

    def close(self) -> None:
        """Nothing runs."""


# --- tables, by the delta of two states ------------------------------------------------------------------------------


class _QueryFeed:
    """What has changed in the result of a query since the last step."""

    has_more = True

    def __init__(
        self,
        lake: Lake,
        tried: LiveQuery,
        make: Callable[[], LiveQuery],
        landing: Callable[[], Job | None] | None = None,
    ) -> None:
        self.schema = tried.schema
        self.only_grows = tried.only_grows
        self.is_over = False
        self._lake = lake
        self._reads = tried.reads
        self._seen = Seen(lake, self._reads)
        self._make = make
        self._query: LiveQuery | None = None
        self._start_landing = landing
        self._landing: Job | None = None

    def step(self) -> pa.Table | None:
        """What has changed, if a table has."""
        if self._start_landing is not None:
            self._landing, self._start_landing = self._start_landing(), None
        if self._landing is not None and self._landing.error is not None:
            raise self._landing.error
        ends = self._landing is not None and not self._landing.is_active
        if not all(self._lake.has_table(name) for name in self._reads) or not self._seen.has_news():
            self.is_over = ends
            return None
        if self._query is None:
            self._query = self._make()
        states = self._seen.now()
        self._query.step()
        self._seen.note(states)
        return self._query.rows

    def close(self) -> None:
        """Ends the landing."""
        if self._landing is not None:
            self._landing.stop()
            self._lake.started_jobs.pop(self._landing.id, None)


# --- tables of other systems -----------------------------------------------------------------------------------------


def _feed_of_sources(lake: Lake, sql: st.Sql, interval_ms: int) -> Feed:
    running = Running(OF_STATEMENTS, lake.location, False, f"{interval_ms} milliseconds")
    with rehearsed(lake) as scratch:
        parts = Parts(lake, scratch, running)
        source = parts.row_source(sql)
        if source is not None:
            return _SourceFeed(lake, sql, source)
        tried, make = parts.select(sql)
        parts.finish()
        Graph(parts.nodes)

        def landing() -> Job | None:
            known = running_nodes(lake, SOURCE)
            made = [node for deed in parts.deeds if (node := deed()) is not None]
            nodes: list[Node] = [node for node in made if node.name not in known]
            named = ", ".join(table.full_name for table in parts.landed)
            return start_landing(lake, named, Runner(Graph(nodes), lake.has_table, interval_ms)) if nodes else None

        return _QueryFeed(lake, tried, make, landing)


class _Taken:
    """Takes rows of a source for whoever looks."""

    def __init__(self, fields: tuple[DataField, ...]) -> None:
        self.fields = fields
        self._rows: pa.Table | None = None
        self._state = InsertState()

    def given(self) -> pa.Table | None:
        """What was taken since somebody asked."""
        rows, self._rows = self._rows, None
        return rows

    @property
    def says(self) -> str:
        """Nothing more."""
        return ""

    def state(self, *, begins: bool = False) -> InsertState:
        """How far this SELECT is."""
        return self._state

    def send(self, rows: pa.Table, state: InsertState) -> tuple[bool, int | None]:
        """Takes the rows."""
        self._rows, self._state = rows, state
        return True, None

    def close(self) -> None:
        """Nothing is held."""


class _SourceFeed:
    """Rows of a source that is read by position: they only come."""

    only_grows = True
    has_more = False

    def __init__(self, lake: Lake, sql: st.Sql, source: ConnectorTable) -> None:
        shape = RowInsert(lake, source, "the result", sql.text, name="select", database=lake.current_database).shape()
        self._taken = _Taken(result_fields(shape))
        given = zip(shape.names, shape.relation.columns, strict=True)
        self.schema = live_schema([pa.field(name, each.type) for name, each in given])
        self._insert = RowInsert(
            lake, source, "the result", sql.text, name="select", database=lake.current_database, into=self._taken
        )
        self._insert.check()

    @property
    def is_over(self) -> bool:
        """Whether the source has given its last row."""
        return self._insert.has_ended

    def step(self) -> pa.Table | None:
        """What has come."""
        self._insert.step()
        rows = self._taken.given()
        self.has_more = rows is not None and rows.num_rows >= _MANY
        if rows is None:
            return None
        kinds = pa.chunked_array([pa.repeat(pa.scalar("+I"), rows.num_rows)])
        return with_kinds(kinds, rows, self.schema)

    def close(self) -> None:
        """Nothing runs."""
