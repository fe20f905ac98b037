"""A SELECT that goes on: the changes of a query's result, for whoever looks. Nothing is kept of them.

It is a streaming INSERT without a table: how far it is lives in memory, its rows have all their kinds, and of a row
that changes the old values come, too. A query of which changes do not tell the result (one group of all rows, sums of
fractions, the first rows of an order) is computed anew when something has changed, and compared with what was shown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.embedded.program import running
from lakebed.errors import InvalidSchema, Unsupported
from lakebed.expressions import kinds
from lakebed.expressions.nodes import NotProven
from lakebed.records import dataclass
from lakebed.sql.bind.scope import Bound
from lakebed.sql.change.embedded_rows import as_stored
from lakebed.sql.session import SqlLake
from lakebed.table.table import Table
from lakebed.types.arrow import from_arrow_schema
from lakebed.types.logical import DataField
from lakebed.types.transfer import to_precision
from lakebed.views.changes import Steps
from lakebed.views.cut import ChosenCut
from lakebed.views.insert import FULL, StreamingInsert, _Seen, _Work
from lakebed.views.inserts.flows import Flow
from lakebed.views.inserts.sent import changed_rows, in_order, new_rows
from lakebed.views.inserts.sink import Sink
from lakebed.views.inserts.state import InsertState
from lakebed.views.inserts.targets import Standing
from lakebed.views.result import Refreshed
from lakebed.views.rules.program import Statement
from lakebed.views.rules.weighted import WEIGHT, Stored
from lakebed.views.sources import (
    plan_sources,
    tables_of,
)
from lakebed.views.store import Cut

_MOST_SHOWN = 1_000_000
"""Rows that are remembered of a query whose result is computed anew."""
ROW_KIND = "rowkind"
"""The first column of what comes: `+I`, `-U`, `+U` or `-D`."""


def _is_anew(flow: Flow) -> bool:
    """Whether changes of the tables do not tell how the result changes, so that all of it is computed at each step."""
    return flow.plan.judged.full is not None


@dataclass(frozen=True, slots=True)
class _Screen:
    """Takes all kinds of rows of a flow, and keeps none; what a table is to an INSERT."""

    key: tuple[str, ...] = ()
    """Columns that tell rows of the flow apart, as far as they are shown: the old row of a key comes before its new."""
    takes_old = True
    keeps_one = False

    def only_grows(self, flows: Sequence[Flow]) -> bool:
        """Whatever is taken back is shown."""
        return False

    def check(self, flows: Sequence[Flow]) -> None:
        """It takes whatever comes."""

    def replaces(self, flows: Sequence[Flow]) -> bool:
        """What can not be followed is computed anew."""
        return False

    def of(self, flow: Flow) -> _Screen:
        """The same for one flow. Rows that may be equal are told apart by all of their values: they come and go."""
        key = flow.plan.key
        return _Screen(flow.names if key is None else tuple(name for name in key if name in flow.names))


class _Shown:
    """What was shown, as an INSERT knows its target: it lasts as long as the SELECT."""

    anew = "type it again to begin anew"
    says = ""
    fields: tuple[DataField, ...] = ()
    sink: Sink = _Screen()

    def __init__(self) -> None:
        self.state: InsertState | None = None

    @property
    def number(self) -> int:
        """Of the step that begins here."""
        return 1 if self.state is None else self.state.step + 1

    def look(self, reads: Collection[str], *, begins: bool) -> Standing:
        """There is nothing to look at."""
        return self

    def stored(self) -> None:
        """Nothing is."""

    def send(self, rows: pa.Table, state: InsertState) -> tuple[bool, int | None]:
        """Rows are shown by whoever asked for them."""
        self.state = state
        return True, None

    def close(self) -> None:
        """Nothing is held."""


class LiveQuery(StreamingInsert):
    """The changelog of a query over tables of the lake. Each `step` keeps what has changed in `rows`."""

    _verb = "select"

    def __init__(self, lake: SqlLake, query: str, *, database: str) -> None:
        super().__init__(lake, "the result", query, name="select", database=database, into=_Shown())
        self.rows: pa.Table | None = None
        """What the last step found, with the kinds in front; None if nothing."""
        self._shape: Bound | None = None
        self._fields: tuple[DataField, ...] = ()
        self._only_grows = False
        self._shown: dict[int, pa.Table] = {}
        """What was shown of flows that are computed anew at each step, by their numbers."""

    def __repr__(self) -> str:
        return "<streaming SELECT>"

    @property
    def title(self) -> str:
        """What errors call it."""
        return "the streaming SELECT"

    @property
    def only_grows(self) -> bool:
        """Whether rows are only added. REQUIRES: it was checked."""
        return self._only_grows

    @property
    def schema(self) -> pa.Schema:
        """The columns of what comes. REQUIRES: it was checked."""
        assert self._shape is not None
        given = zip(self._shape.names, self._shape.relation.columns, strict=True)
        return live_schema([pa.field(name, each.type) for name, each in given])

    def _tables(self) -> dict[str, Table]:
        return tables_of(self._inside, self._sql, "a streaming SELECT")

    def _taken(self, seen: _Seen, bound: Bound) -> tuple[Bound, Sequence[DataField]]:
        self._shape, self._fields = bound, result_fields(bound)
        return as_stored(bound, self._fields, range(len(self._fields)), by_name=False), self._fields

    def _work(self, seen: _Seen, chosen: ChosenCut) -> _Work:
        work = super()._work(seen, chosen)
        self._only_grows = all(flow.grows_only for flow in work.flows)
        return work

    def _first(self, seen: _Seen, chosen: ChosenCut) -> Refreshed:
        work = self._work(seen, chosen)
        if all(chosen.snapshots[name] is None for name in seen.followed):
            return Refreshed.nothing(self.target, "there are no rows yet")
        self._shown = {}
        parts = [self._all_rows(work, number) for number in range(len(work.flows))]
        return self._commit(seen, InsertState(chosen.cut, 1, FULL, work.zone), in_order(parts), "all rows")

    def _changed(self, seen: _Seen, work: _Work, before: Cut, chosen: ChosenCut) -> tuple[list[pa.Table], int]:
        if all(_is_anew(flow) for flow in work.flows):  # nobody needs to know what changed in the tables
            return [self._all_rows(work, number) for number in range(len(work.flows))], 0
        return super()._changed(seen, work, before, chosen)

    def _all_rows(self, work: _Work, number: int) -> pa.Table:
        """All rows of a flow, or, if it is computed anew at each step, those that are other than they were shown."""
        flow = work.flows[number]
        plan_sources(flow.root)
        with running([flow.root], work.zone) as run:
            run.make(Statement("result", flow.root))
            if not _is_anew(flow):
                return new_rows(run, flow, "result")
            if run.count("result") > _MOST_SHOWN:
                raise Unsupported(
                    f"{self.title} can not go on: its {run.count('result'):,} rows are compared with those before, "
                    f"and it remembers {_MOST_SHOWN:,}",
                    hint="keep the query as a materialized table, and select from that",
                )
            now = run.table("SELECT * FROM result")
            run.give("shown", self._shown.get(number, now.slice(0, 0)))
            run.execute(
                "CREATE TEMP TABLE both_states AS SELECT *, CAST(1 AS BIGINT) AS w FROM result "
                "UNION ALL SELECT *, CAST(-1 AS BIGINT) FROM shown"
            )
            delta = Stored(columns=(*flow.root.columns, WEIGHT), name="both_states")
            rows = changed_rows(run, flow, _Screen().of(flow), delta)
            self._shown[number] = now
            return rows

    def _flow(
        self, seen: _Seen, work: _Work, flow: Flow, steps: Mapping[str, Steps], changes: Mapping[str, pa.Table]
    ) -> pa.Table:
        if _is_anew(flow):
            return self._all_rows(work, work.flows.index(flow))
        own = replace(work, sink=_Screen().of(flow))
        return super()._flow(seen, own, flow, steps, changes)

    def _commit(self, seen: _Seen, state: InsertState, rows: pa.Table, reason: str) -> Refreshed:
        seen.target.send(rows, state)
        goes = pc.equal(rows.column(0), "-D")  # what goes makes room for what comes
        rows = pa.concat_tables([rows.filter(goes), rows.filter(pc.invert(goes))])
        found = to_precision(rows.drop_columns([rows.column_names[0]]), self._fields)
        self.rows = with_kinds(rows.column(0), found, self.schema) if rows.num_rows else None
        return Refreshed(self.target, state.way, reason, inserted=rows.num_rows)

    def step(self) -> Refreshed:
        """Finds what has changed since the last step."""
        self.rows = None
        return super().step()


def live_schema(columns: Sequence[pa.Field]) -> pa.Schema:
    """What comes has the kind of each row first."""
    return pa.schema([pa.field(ROW_KIND, pa.string(), False), *columns])


def with_kinds(kinds_of_rows: pa.ChunkedArray, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with their kinds, under the names that the query gives them: two may be the same."""
    columns = [kinds_of_rows, *rows.columns]
    arrays = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def result_fields(bound: Bound) -> tuple[DataField, ...]:
    """The columns of a query as columns of a table, with names of their own: those of a query may be the same."""
    numbers = count()
    found = []
    for name, column in zip(bound.names, bound.relation.columns, strict=True):
        if column.type == kinds.NULL:
            raise InvalidSchema(f"column `{name}` of the query has no type", hint="write CAST(NULL AS type)")
        if column.type == kinds.YEAR_MONTH:
            raise NotProven("a result of months", "Arrow has no type for it that Spark hands out")
        number = next(numbers)
        (field,) = from_arrow_schema(pa.schema([pa.field(f"c{number + 1}", column.type)]))
        found.append(replace(field, id=number))
    return tuple(found)
