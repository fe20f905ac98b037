"""A streaming INSERT: sends the changes of a query's result to a table that has a meaning of its own, exactly once.

The first step sends all rows of the query, each later one what has changed since. Unlike a materialized table, the
table has its own key and its own other writers, or is of another system (`inserts/targets`). So nothing is known of
its rows but what was sent: what changed is computed with its old values, and what can not be told any more stops the
INSERT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lakebed.embedded.program import running
from lakebed.errors import InvalidArgument, Unsupported
from lakebed.expressions.functions.clocks import proven_zone
from lakebed.expressions.nodes import NotProven
from lakebed.metrics.families import STREAM_WRITE_DURATION, STREAM_WRITTEN_ROWS
from lakebed.metrics.instruments import NOTHING
from lakebed.records import dataclass
from lakebed.sql.bind.scope import Bound
from lakebed.sql.change.embedded_rows import as_stored, check_engine
from lakebed.sql.change.insert import columns_of
from lakebed.sql.query.embedded import has_moments
from lakebed.sql.session import SqlLake
from lakebed.sql.settings import session_zone
from lakebed.sql.statements import Insert, Target
from lakebed.table.table import Table
from lakebed.types.logical import DataField
from lakebed.views.apply import KIND
from lakebed.views.batches import NothingYet
from lakebed.views.changes import ChangesGone, Steps, read_changes, steps_between
from lakebed.views.cut import ChosenCut, chosen_cut
from lakebed.views.deltas import give_changes, names_of, source_rules
from lakebed.views.explain import Explanation, plan_lines
from lakebed.views.found_rows import looked_up
from lakebed.views.inserts.flows import Flow, flows_of
from lakebed.views.inserts.lookups import check_lookups, has_lookups, note_lookup, only_looked_up
from lakebed.views.inserts.sent import (
    changed_rows,
    in_order,
    new_rows,
    no_rows,
    replaced_rows,
    takes_back,
)
from lakebed.views.inserts.sink import Sink
from lakebed.views.inserts.state import InsertState
from lakebed.views.inserts.targets import InsertTarget, Standing, TableTarget
from lakebed.views.lake_in import LakeIn, read_sql
from lakebed.views.plan.build import key_columns
from lakebed.views.result import Refreshed
from lakebed.views.rules.compile import compiled
from lakebed.views.rules.program import SourceRules, Statement
from lakebed.views.sources import (
    bound_query,
    check_columns,
    plan_sources,
    refuse_other_meaning,
    source_of,
    tables_of,
    used_columns,
)
from lakebed.views.store import Cut, SourceColumns

FULL, INCREMENTAL, NONE = "full", "incremental", "none"
_FARTHEST = 5
"""So many snapshots of a table may be seen without a row to send before that is written down: without it, a step after
a restart would begin where it was written down last, and that may have expired."""


@dataclass(frozen=True, slots=True)
class _Work:
    """The query as the table takes it: its flows, and whether their groups are sent as they are, whatever they were."""

    sink: Sink
    flows: list[Flow]
    replaces: bool
    zone: str | None


@dataclass(frozen=True, slots=True)
class _Seen:
    """Where a step begins: the tables, and the target, which knows how far the INSERT is."""

    target: Standing
    tables: Mapping[str, Table]
    followed: Mapping[str, Table]
    """Those of the tables whose changes count; in the others rows are only looked up."""
    state: InsertState | None


class StreamingInsert:
    """`INSERT INTO target SELECT ...` that never ends. Each `step` sends what has changed since the one before.

    `name` says which INSERT it is: how far it got stands in the target's snapshots under this name. Plain names in the
    query belong to `database`; `columns` are those of `INSERT INTO t (a, b)`, all if none are given. `into` is who
    takes the rows if the target is no table of the lake.
    """

    _verb = "insert"
    """What is done with the rows of a query, in hints."""

    def __init__(
        self,
        lake: SqlLake,
        target: str,
        query: str,
        *,
        name: str,
        database: str,
        columns: tuple[str, ...] = (),
        into: InsertTarget | None = None,
    ) -> None:
        if not name:
            raise InvalidArgument("an INSERT that goes on needs a name", hint="pass name=, and keep it")
        self.name = name
        self.target = target if "." in target else f"{database}.{target}"
        self._into: InsertTarget = into or TableTarget(lake, self.target, name)
        self._lake = lake
        self._inside = LakeIn(lake, database)
        self._sql = read_sql(query)
        self._columns = columns
        self._known: Mapping[str, SourceColumns] | None = None
        self._ahead: tuple[InsertState, Cut] | None = None
        """The cut up to which there was nothing to send since a step."""

    def __repr__(self) -> str:
        return f"<streaming insert {self.name} into {self.target}>"

    @property
    def title(self) -> str:
        """What errors call it."""
        return f"INSERT INTO {self.target}"

    @property
    def reads(self) -> tuple[str, ...]:
        """The full names of the tables that the query reads."""
        return tuple(self._tables())

    def check(self) -> None:
        """Raises if the query can not be followed, or the table does not take its changes. Changes nothing."""
        seen = self._look()
        self._work(seen, self._cut_or_none(seen))

    def explain(self) -> Explanation:
        """How the query follows changes, as text."""
        seen = self._look()
        work = self._work(seen, self._cut_or_none(seen))
        kinds = "-U, +U" if work.sink.takes_old else "+U"
        if all(flow.grows_only for flow in work.flows):
            kinds = "new rows only"
        lines = [f"insert {self.name} into {self.target}: incremental, in this process", f"sends: {kinds}"]
        lines += [self._into.says] if self._into.says else []
        for flow in work.flows:
            words = flow.judged_replacing if work.replaces else flow.plan.judged
            lines += plan_lines(flow.plan, words, seen.tables)
        return Explanation("\n".join(lines))

    def lag(self) -> dict[str, tuple[int, int]]:
        """For each table the snapshot that was seen (0: none), and the newest one that can be."""
        seen = self._look()
        newest = self._cut_or_none(seen).snapshots
        places = {} if seen.state is None else self._reached(seen.state).tables
        return {
            name: (places[name].id if name in places else 0, 0 if found is None else found.id)
            for name, found in newest.items()
            if name in seen.followed
        }

    def step(self) -> Refreshed:
        """Sends what has changed since the last step; says how many rows. Commits nothing if nothing has."""
        with STREAM_WRITE_DURATION.timed(self.target, "insert") as timing:
            done = self._step()
            if done.way == NONE:
                timing.ended(NOTHING)
        STREAM_WRITTEN_ROWS.tell(done.inserted + done.updated + done.deleted, self.target, "insert")
        return done

    def _step(self) -> Refreshed:
        seen = self._look(begins=True)
        try:
            chosen = self._cut(seen)
        except NothingYet as waits:
            return Refreshed.nothing(self.target, f"nothing yet: {waits.reason}")
        if seen.state is None:
            return self._first(seen, chosen)
        before = self._reached(seen.state)
        if before.all == chosen.cut.all:
            return Refreshed.nothing(self.target, "nothing changed")
        return self._next(seen, seen.state, before, chosen)

    def close(self) -> None:
        """Lets go of the target, if that is of another system."""
        self._into.close()

    # --- where it stands -----------------------------------------------------------------------------------------

    def _tables(self) -> dict[str, Table]:
        return tables_of(self._inside, self._sql, "a streaming INSERT")

    def _followed(self, tables: Mapping[str, Table]) -> Mapping[str, Table]:
        """The tables that are not only looked up."""
        others = only_looked_up(self._inside, self._sql)
        return {name: table for name, table in tables.items() if name not in others}

    def _look(self, *, begins: bool = False) -> _Seen:
        tables = self._tables()
        target = self._into.look(tables, begins=begins)
        if self._known is not None:
            check_columns(
                f"{self.title} can not go on",
                tables,
                self._known,
                "stop it, and start it with a query that fits the tables",
            )
        return _Seen(target, tables, self._followed(tables), target.state)

    def _cut(self, seen: _Seen) -> ChosenCut:
        before = None if seen.state is None else self._reached(seen.state)
        chosen = chosen_cut(self._lake, self.title, seen.followed, before)
        others = {name: table for name, table in seen.tables.items() if name not in seen.followed}
        if not others:
            return chosen
        return ChosenCut({**chosen_cut(self._lake, self.title, others, None).snapshots, **chosen.snapshots}, chosen.cut)

    def _cut_or_none(self, seen: _Seen) -> ChosenCut:
        """The same for who only looks: as if the tables had no rows, where a cut has to be waited for."""
        try:
            return self._cut(seen)
        except NothingYet:
            return ChosenCut(dict.fromkeys(seen.tables), Cut())

    def _reached(self, state: InsertState) -> Cut:
        """Up to where everything is sent: what is written down, or what was seen since and had nothing to send."""
        if self._ahead is not None and self._ahead[0] == state:
            return self._ahead[1]
        return state.cut

    # --- the query -----------------------------------------------------------------------------------------------

    def _work(self, seen: _Seen, chosen: ChosenCut) -> _Work:
        """The query over a state of its tables. Raises if it can not be followed into the target."""
        refuse_other_meaning(self._lake, self.title)
        zone = session_zone(self._lake) if seen.state is None else seen.state.zone or session_zone(self._lake)
        try:
            check_engine()
            bound = bound_query(self._inside, self._sql, chosen.snapshots, self._known, note_lookup)
            taken, fields = self._taken(seen, bound)
            flows = flows_of(taken, fields)
            is_zoned = has_moments(taken.relation)
            if is_zoned and zone is not None:
                proven_zone(zone)
        except NotProven as unproven:
            raise Unsupported(
                f"{self.title} can not follow a query that only Spark answers; {unproven}",
                hint="write that part otherwise; or keep the query as a materialized table, and "
                f"{self._verb} from that",
            ) from unproven
        if self._known is None:
            self._known = used_columns(bound.relation, seen.tables)
        sink = seen.target.sink
        for flow in flows:
            check_lookups(self.title, flow)
        replaces = sink.replaces(flows)
        sink.check(flows)
        return _Work(sink, flows, replaces, zone if is_zoned else None)

    def _taken(self, seen: _Seen, bound: Bound) -> tuple[Bound, Sequence[DataField]]:
        """The query as the target takes it, and the columns of the target."""
        fields = seen.target.fields
        statement = Insert(Target(self.target), self._sql, columns=self._columns or None)
        places = columns_of(statement, fields, self.target, list(bound.names)).sources
        return as_stored(bound, fields, places, by_name=False), fields

    # --- the first step ------------------------------------------------------------------------------------------

    def _first(self, seen: _Seen, chosen: ChosenCut) -> Refreshed:
        """All rows of the query."""
        work = self._work(seen, chosen)
        if all(chosen.snapshots[name] is None for name in seen.followed):
            return Refreshed.nothing(self.target, "there are no rows yet")
        parts = []
        for flow in work.flows:
            plan_sources(flow.root)
            with running([flow.root], work.zone) as run:
                run.make(Statement("result", flow.root))
                parts.append(new_rows(run, flow, "result"))
        state = InsertState(chosen.cut, seen.target.number, FULL, work.zone)
        return self._commit(seen, state, in_order(parts), "it is the first step")

    # --- a later step --------------------------------------------------------------------------------------------

    def _next(self, seen: _Seen, state: InsertState, before: Cut, chosen: ChosenCut) -> Refreshed:
        """What has changed since."""
        work = self._work(seen, chosen)
        parts, changed = self._changed(seen, work, before, chosen)
        rows = in_order(parts)
        later = InsertState(chosen.cut, seen.target.number, INCREMENTAL, work.zone)
        if not rows.num_rows and not _is_far(state.cut, chosen.cut):
            self._ahead = (state, chosen.cut)
            return Refreshed.nothing(self.target, f"{changed:,} changed rows of its tables change nothing here")
        return self._commit(seen, later, rows, f"{changed:,} changed rows")

    def _changed(self, seen: _Seen, work: _Work, before: Cut, chosen: ChosenCut) -> tuple[list[pa.Table], int]:
        """The rows of each flow, and how many rows of the tables changed."""
        steps = self._steps(seen.followed, before, chosen)
        for flow in work.flows:
            plan_sources(flow.root)
        scans = [scan for flow in work.flows for scan in flow.plan.scans]
        changes: dict[str, pa.Table] = {}
        for name, table in seen.followed.items():
            try:
                changes[name] = read_changes(table, steps[name], names_of(scans, name))
            except ChangesGone as gone:
                raise self._stopped(name, gone) from gone
        parts = [self._flow(seen, work, flow, steps, changes) for flow in work.flows]
        only_grows = any(map(has_lookups, work.flows)) or work.sink.only_grows(work.flows)
        if only_grows and any(takes_back(part) for part in parts):
            lost = ", ".join(name for name, each in steps.items() if each.way == "comparison")
            raise Unsupported(
                f"{self.title} can not go on: rows of `{lost or ', '.join(seen.followed)}` were "
                "deleted or replaced, and the table can not take back what was sent of them",
                hint=f"insert into a table that has the key of the query; or {self._into.anew}",
            )
        return parts, sum(each.num_rows for each in changes.values())

    def _steps(self, tables: Mapping[str, Table], before: Cut, chosen: ChosenCut) -> dict[str, Steps]:
        found: dict[str, Steps] = {}
        for name, table in tables.items():
            if name not in before.tables:
                raise InvalidArgument(
                    f"INSERT `{self.name}` has not read `{name}` before, so it is another query than it was",
                    hint="run it under another name: it begins anew then",
                )
            try:
                found[name] = steps_between(table, before.tables[name], chosen.snapshots[name])
            except ChangesGone as gone:
                raise self._stopped(name, gone) from gone
        return found

    def _stopped(self, table: str, gone: ChangesGone) -> Unsupported:
        """The error of an INSERT that can not know any more what to take back."""
        cure = self._into.anew
        return Unsupported(
            f"{self.title} can not go on: what changed in `{table}` can not be told: {gone.reason}",
            hint=f"{gone.remedy}; to go on, {cure}" if gone.remedy else cure,
        )

    def _flow(
        self, seen: _Seen, work: _Work, flow: Flow, steps: Mapping[str, Steps], changes: Mapping[str, pa.Table]
    ) -> pa.Table:
        scans = flow.plan.scans
        told = [scan for scan in scans if not source_of(scan).is_lookup]
        changed = {scan.view for scan in told if changes[source_of(scan).table.name].num_rows}
        rules = {scan.view: SourceRules(key_columns(scan)) for scan in scans if source_of(scan).is_lookup}
        for scan in told:
            try:
                rules[scan.view] = source_rules(scan, steps)
            except ChangesGone as gone:
                raise self._stopped(source_of(scan).table.name, gone) from gone
        program = compiled(flow.root, rules, changed, replaces=work.replaces)
        if not changed or program.result is None:
            return no_rows(flow)
        relations = [*(each.relation for each in program.statements), flow.root]
        with running(relations, work.zone) as run:
            for scan in told:
                give_changes(run, scan, changes[source_of(scan).table.name])
            for statement in program.statements:
                if not looked_up(run, statement):
                    run.make(statement)
            if program.replaced is not None:
                stored = seen.target.stored()
                return replaced_rows(run, flow, work.sink, program.result.name, program.replaced, stored)
            return changed_rows(run, flow, work.sink, program.result)

    # --- the end -------------------------------------------------------------------------------------------------

    def _commit(self, seen: _Seen, state: InsertState, rows: pa.Table, reason: str) -> Refreshed:
        counts, snapshot = seen.target.send(rows, state)
        if not counts:
            return Refreshed.nothing(self.target, "another runner was first")
        return Refreshed.sent(self.target, state.way, reason, rows.column(KIND), snapshot)


def _is_far(before: Cut, after: Cut) -> bool:
    """Whether what was written down is so far behind that it may expire soon."""
    return any(after.tables[name].id - place.id >= _FARTHEST for name, place in before.tables.items())
