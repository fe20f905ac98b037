"""A streaming INSERT: sends the changes of a query's result to a table that has a meaning of its own, exactly once.

The first step sends all rows of the query, each later one what has changed since. Unlike a materialized table, the
table has its own key and its own other writers. So nothing is known of its rows but what was sent: what changed is
computed with its old values, and what can not be told any more stops the INSERT.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lakebed.commit.replay import CommitIdentity
from lakebed.definition.views import refuse_view
from lakebed.embedded.program import running
from lakebed.errors import InvalidArgument, Unsupported
from lakebed.expressions.functions.clocks import proven_zone
from lakebed.expressions.nodes import NotProven
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import COMMIT_FORCE_CREATE_SNAPSHOT
from lakebed.records import dataclass
from lakebed.sql.change.embedded_rows import as_stored, check_engine
from lakebed.sql.change.insert import columns_of
from lakebed.sql.query.embedded import has_moments
from lakebed.sql.query.references import references
from lakebed.sql.session import SqlLake
from lakebed.sql.settings import session_zone
from lakebed.sql.statements import Insert, Target
from lakebed.table.opened import opened_of
from lakebed.table.table import Table
from lakebed.table.writer import TableWriter
from lakebed.views.apply import KIND
from lakebed.views.batches import NothingYet
from lakebed.views.changes import ChangesGone, Steps, read_changes, steps_between
from lakebed.views.cut import ChosenCut, chosen_cut
from lakebed.views.deltas import give_changes, names_of, source_rules
from lakebed.views.explain import Explanation, plan_lines
from lakebed.views.found_rows import looked_up
from lakebed.views.inserts.flows import Flow, flows_of
from lakebed.views.inserts.lookups import check_lookups, read_lookups
from lakebed.views.inserts.sent import (
    as_rows_of,
    changed_rows,
    in_order,
    new_rows,
    no_rows,
    replaced_rows,
    takes_back,
)
from lakebed.views.inserts.sink import Sink
from lakebed.views.inserts.state import InsertState, next_step, user_of
from lakebed.views.lake_in import LakeIn
from lakebed.views.plan.build import key_columns
from lakebed.views.result import Refreshed
from lakebed.views.rules.compile import compiled
from lakebed.views.rules.program import SourceRules, Statement
from lakebed.views.sources import (
    bound_query,
    check_columns,
    pinned_at,
    plan_sources,
    refuse_other_meaning,
    source_of,
    tables_of,
    used_columns,
)
from lakebed.views.store import Cut, SourceColumns
from lakebed.write.placement.postponed import for_stream

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
    """Where a step begins: the tables, the newest snapshot of the target, and how far the INSERT is in it."""

    target: Table
    tables: Mapping[str, Table]
    followed: Mapping[str, Table]
    """Those of the tables whose changes count; in the others rows are only looked up."""
    base: Snapshot | None
    state: InsertState | None
    number: int
    """Of the step that begins here."""


class StreamingInsert:
    """`INSERT INTO target SELECT ...` that never ends. Each `step` sends what has changed since the one before.

    `name` says which INSERT it is: how far it got stands in the target's snapshots under this name. Plain names in the
    query belong to `database`; `columns` are those of `INSERT INTO t (a, b)`, all if none are given.
    """

    def __init__(
        self, lake: SqlLake, target: str, query: str, *, name: str, database: str, columns: tuple[str, ...] = ()
    ) -> None:
        if not name:
            raise InvalidArgument("an INSERT that goes on needs a name", hint="pass name=, and keep it")
        self.name = name
        self.target = target if "." in target else f"{database}.{target}"
        self._lake = lake
        self._inside = LakeIn(lake, database)
        self._sql, self._lookups = read_lookups(query)
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
        seen = self._look()
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

    # --- where it stands -----------------------------------------------------------------------------------------

    def _tables(self) -> dict[str, Table]:
        return tables_of(self._inside, self._sql, "a streaming INSERT")

    def _followed(self, tables: Mapping[str, Table]) -> Mapping[str, Table]:
        """The tables that are not only looked up."""
        if not self._lookups:
            return tables
        given = references(self._inside, self._sql)
        names = {each.table.name for each in given if each.node.meta["span"][0] not in self._lookups}
        return {name: table for name, table in tables.items() if name in names}

    def _look(self) -> _Seen:
        target, tables = self._lake.table(self.target), self._tables()
        context = opened_of(target).current()
        refuse_view(context)
        if target.name in tables:
            raise Unsupported(
                f"INSERT INTO {self.target} reads the table that it writes, and would never end",
                hint="write to another table",
            )
        if self._known is not None:
            check_columns(
                f"INSERT INTO {self.target} can not go on",
                tables,
                self._known,
                "stop it, and start it with a query that fits the tables",
            )
        base = context.stores.snapshots.latest()
        state, number = InsertState.of(context, base, self.name), next_step(context, base, self.name)
        return _Seen(target, tables, self._followed(tables), base, state, number)

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
        refuse_other_meaning(self._lake, f"INSERT INTO {self.target}")
        fields = seen.target.schema.fields
        zone = session_zone(self._lake) if seen.state is None else seen.state.zone or session_zone(self._lake)
        try:
            check_engine()
            bound = bound_query(self._inside, self._sql, chosen.snapshots, self._known, self._lookups)
            statement = Insert(Target(self.target), self._sql, columns=self._columns or None)
            places = columns_of(statement, fields, self.target, list(bound.names)).sources
            taken = as_stored(bound, fields, places, by_name=False)
            flows = flows_of(taken, fields)
            is_zoned = has_moments(taken.relation)
            if is_zoned and zone is not None:
                proven_zone(zone)
        except NotProven as unproven:
            raise Unsupported(
                f"INSERT INTO {self.target} can not follow a query that only Spark answers; {unproven}",
                hint="write that part otherwise; or keep the query as a materialized table, and insert from that",
            ) from unproven
        if self._known is None:
            self._known = used_columns(bound.relation, seen.tables)
        sink = Sink(opened_of(seen.target).current())
        for flow in flows:
            check_lookups(self.target, flow)
        replaces = sink.replaces(flows)
        sink.check(flows)
        return _Work(sink, flows, replaces, zone if is_zoned else None)

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
        state = InsertState(chosen.cut, seen.number, FULL, work.zone)
        return self._commit(seen, work, state, in_order(parts), "it is the first step")

    # --- a later step --------------------------------------------------------------------------------------------

    def _next(self, seen: _Seen, state: InsertState, before: Cut, chosen: ChosenCut) -> Refreshed:
        """What has changed since."""
        work = self._work(seen, chosen)
        parts, changed = self._changed(seen, work, before, chosen)
        rows = in_order(parts)
        later = InsertState(chosen.cut, seen.number, INCREMENTAL, work.zone)
        if not rows.num_rows and not _is_far(state.cut, chosen.cut):
            self._ahead = (state, chosen.cut)
            return Refreshed.nothing(self.target, f"{changed:,} changed rows of its tables change nothing here")
        return self._commit(seen, work, later, rows, f"{changed:,} changed rows")

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
        only_grows = bool(self._lookups) or work.sink.only_grows(work.flows)
        if only_grows and any(takes_back(part) for part in parts):
            lost = ", ".join(name for name, each in steps.items() if each.way == "comparison")
            raise Unsupported(
                f"{self.title} can not go on: rows of `{lost or ', '.join(seen.followed)}` were "
                "deleted or replaced, and the table can not take back what was sent of them",
                hint=f"change the rows of `{self.target}` by hand and run the INSERT under another name, or give the "
                "table the key of the query",
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
        cure = (
            f"empty `{self.target}` of its rows and run it under another name, which in SQL is a query that is written "
            "otherwise: it sends all rows again then"
        )
        return Unsupported(
            f"INSERT INTO {self.target} can not go on: what changed in `{table}` can not be told: {gone.reason}",
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
                stored = None if seen.base is None else pinned_at(seen.target, seen.base)
                return replaced_rows(run, flow, work.sink, program.result.name, program.replaced, stored)
            return changed_rows(run, flow, work.sink, program.result)

    # --- the end -------------------------------------------------------------------------------------------------

    def _commit(self, seen: _Seen, work: _Work, state: InsertState, rows: pa.Table, reason: str) -> Refreshed:
        opened = opened_of(seen.target).with_options({COMMIT_FORCE_CREATE_SNAPSHOT.key: "true"})
        has_key = bool(work.sink.key)
        # INVARIANT: the number says which state the rows were computed from. Of two runners that began with the same
        # state one is dropped as a replay, or its rows would be sent twice.
        writer = TableWriter(
            for_stream(opened.folded()),
            row_kind=KIND if has_key else None,
            identity=CommitIdentity(user_of(self.name), state.step),
            properties=state.to_properties(self.name),
        )
        with writer:
            if rows.num_rows:
                writer.write(as_rows_of(rows, seen.target.schema.fields, has_key=has_key))
            snapshot = writer.commit()
        if snapshot is None:
            return Refreshed.nothing(self.target, "another runner was first")
        return Refreshed.of(self.target, state.way, reason, rows, KIND, snapshot)


def _is_far(before: Cut, after: Cut) -> bool:
    """Whether what was written down is so far behind that it may expire soon."""
    return any(after.tables[name].id - place.id >= _FARTHEST for name, place in before.tables.items())
