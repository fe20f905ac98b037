"""A refresh: pins the tables, finds what changed, computes the new rows and commits the difference, exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from time import perf_counter
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakebed.algebra.relations import scans
from lakebed.commit.replay import CommitIdentity, last_identifiers
from lakebed.definition.context import TableContext
from lakebed.embedded.program import running
from lakebed.errors import CommitConflict, InvalidData, InvalidSchema, Unsupported
from lakebed.lineage import Job, table_dataset, told
from lakebed.metadata.snapshot import Snapshot
from lakebed.metrics.families import VIEW_CHANGED_ROWS, VIEW_REFRESH_DURATION
from lakebed.options import COMMIT_FORCE_CREATE_SNAPSHOT
from lakebed.records import dataclass
from lakebed.sql.query.pins import Pins
from lakebed.sql.query.plan import Planner
from lakebed.sql.query.pushdown import has_star
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Sql
from lakebed.table.opened import opened_of
from lakebed.table.table import Table
from lakebed.table.writer import TableWriter
from lakebed.types.transfer import transfer_schema
from lakebed.views.apply import HASH, KIND, NUMBER, Layout
from lakebed.views.batches import NothingYet
from lakebed.views.by_spark import SparkRefresh, most_changes, most_rows, why_here
from lakebed.views.changes import ChangesGone, Steps, read_changes, steps_between
from lakebed.views.cost import Estimate, Measure, Past, Stopwatch
from lakebed.views.cut import ChosenCut, chosen_cut
from lakebed.views.deltas import give_changes, names_of, source_rules
from lakebed.views.difference import Difference
from lakebed.views.found_rows import looked_up
from lakebed.views.lake_in import LakeIn, read_sql, remembering
from lakebed.views.plan.build import ViewPlan, planned
from lakebed.views.result import Refreshed
from lakebed.views.row_hashes import BITS
from lakebed.views.rules.compile import Compiled, compiled
from lakebed.views.rules.program import Statement
from lakebed.views.shared_delta import shared_delta
from lakebed.views.sources import (
    bound_query,
    check_columns,
    pinned_at,
    plan_sources,
    refuse_other_meaning,
    source_of,
    tables_of,
)
from lakebed.views.store import CUT, REASON, REFRESH, WAY, Cut, Definition, cut_of, definition_of, refresh_number
from lakebed.views.swap import finish_swap, lasting_name
from lakebed.write.placement.postponed import for_stream

FULL, INCREMENTAL, NONE = "full", "incremental", "none"


def refresh_view(lake: SqlLake, name: str, *, full: bool = False, most: Mapping[str, int] | None = None) -> Refreshed:
    """Brings a materialized table up to date; says which way, why, and how many rows changed.

    Of syncs in `most` no batch above those is read.
    """
    if not lake.has_table(name):
        finish_swap(lake, name)
    table = remembering(lake, lake.table(name))
    with told(lambda: _job(lake, table)), VIEW_REFRESH_DURATION.timed(lasting_name(table.name)) as timing:
        try:
            done = Refresh(lake, table, definition_of(table), most or {}).run(full)
        except NothingYet as waits:
            done = Refreshed.nothing(table.name, f"nothing yet: {waits.reason}")
        timing.ended(done.way)
    for kind, rows in (("inserted", done.inserted), ("updated", done.updated), ("deleted", done.deleted)):
        VIEW_CHANGED_ROWS.tell(rows, lasting_name(table.name), kind)
    return done


def _job(lake: SqlLake, table: Table) -> Job:
    """What lineage tells of a refresh."""
    definition = definition_of(table)
    sql, made = read_sql(definition.query), table_dataset(table)
    tables = tables_of(LakeIn(lake, definition.database), sql)
    return Job(
        f"refresh.{lasting_name(table.name)}",
        "REFRESH",
        lambda: map(table_dataset, tables.values()),
        lambda: [replace(made, root=lasting_name(made.root), table=lasting_name(made.table))],
        sql.tree,
    )


@dataclass
class Refresh:
    lake: SqlLake
    table: Table
    definition: Definition
    most: Mapping[str, int] = field(default_factory=dict)
    """Of syncs by their users: the newest batch that may be read."""
    sql: Sql = field(init=False)
    tables: dict[str, Table] = field(init=False)

    def __post_init__(self) -> None:
        self.inside = LakeIn(self.lake, self.definition.database)
        self.sql = read_sql(self.definition.query)
        self.tables = tables_of(self.inside, self.sql)
        check_columns(
            f"materialized table `{self.table.name}` can not be refreshed",
            self.tables,
            self.definition.sources,
            f"give it another query: ALTER MATERIALIZED TABLE {self.table.name} AS SELECT ...",
        )
        self.base: Snapshot | None = self.table.latest_snapshot()
        self.before = cut_of(self.base)
        self.chosen: ChosenCut = chosen_cut(self.lake, self.table.name, self.tables, self.before, self.most)
        self.layout = _layout_of(self.table, self.definition)
        self.difference = Difference(self.table, self.base, self.layout, self.definition.key)
        self.watch, self.past = Stopwatch(), Past.of(self.base)

    def run(self, full: bool) -> Refreshed:
        """Chooses a way and goes it."""
        plan = None if self.definition.needs_spark else self._plan()
        why = self._why_full(plan, full)
        if why is None and plan is not None and self.before is not None:
            try:
                found = self._follow(plan, self.before)
            except (ChangesGone, InvalidData) as gone:
                why = gone.reason if isinstance(gone, ChangesGone) else f"following changes failed: {gone.message}"
            else:
                if not isinstance(found, str):
                    return self._commit(*found) if isinstance(found, tuple) else found
                why = found
        assert why is not None
        if self.definition.policy == "incremental strict" and self.before is not None and not full:
            raise Unsupported(
                f"materialized table `{self.table.name}` can not follow changes: {why}",
                hint=f"refresh all of it once, with REFRESH MATERIALIZED VIEW {self.table.name} FULL",
            )
        return self._of_everything(plan, why)

    def _of_everything(self, plan: ViewPlan | None, why: str) -> Refreshed:
        """Here, or as Spark jobs if only Spark answers the query, or the rows are too many for this process."""
        rows, most = self._all_rows(), most_rows()
        if plan is None:
            return self._by_spark(why, is_checked=bool(self.definition.named_key))
        if rows > most:
            here = why_here(self.lake, plan, self.table) or self._why_not_as_written()
            if here is None:
                why = f"{why}; by Spark: {rows:,} rows are more than {most:,}"
                return self._by_spark(why, is_checked=plan.is_full and bool(self.definition.named_key))
            why = f"{why}; not by Spark: {here}"
        self.watch = Stopwatch()
        found = self._everything(plan)
        self.past = self.past.with_full(Measure(self._all_rows(), self.watch.seconds()))
        return self._commit(FULL, why, found)

    # --- which way -----------------------------------------------------------------------------------------------

    def _plan(self) -> ViewPlan:
        bound = bound_query(self.inside, self.sql, self.chosen.snapshots, self.definition.sources)
        plan = planned(bound)
        self._check_kept(plan)
        return plan

    def _check_kept(self, plan: ViewPlan) -> None:
        """Raises if rows of the query are told apart by other columns than they are stored by: tables that it reads
        were made anew, or replaced, and have another key."""
        names = tuple(self.layout.columns.names)
        own, named = self.definition, set(self.definition.named_key)
        is_key = plan.key == own.key and (own.has_hash or not plan.is_nullable)
        if named:
            is_key = plan.is_full or (plan.key is not None and set(plan.key) <= named)
        if is_key and plan.names == names:
            return
        raise InvalidSchema(
            f"materialized table `{self.table.name}` can not be refreshed: the keys of "
            f"{', '.join(f'`{name}`' for name in sorted(self.tables))} are not those that its rows are stored by",
            hint=f"give it its query again: ALTER MATERIALIZED TABLE {self.table.name} AS {_shortened(own.query)}",
        )

    def _why_full(self, plan: ViewPlan | None, full: bool) -> str | None:
        if full:
            return "it was asked for"
        if self.before is None:
            return "it is the first refresh"
        if plan is None:
            return f"only Spark answers the query; {self.definition.needs_spark}"
        if self.definition.policy == FULL:
            return "its policy is full"
        judged = plan.judged.full
        return None if judged is None else f"{judged.what}: {judged.reason}"

    # --- from changes --------------------------------------------------------------------------------------------

    def _follow(self, plan: ViewPlan, before: Cut) -> tuple[str, str, pa.Table] | Refreshed | str:
        """The way, why, and the difference; what tasks of Spark's have done; or why not."""
        steps = {
            name: steps_between(table, before.tables[name], self.chosen.snapshots[name])
            for name, table in self.tables.items()
        }
        plan_sources(plan.root)
        if all(each.way == "none" for each in steps.values()):
            return NONE, "nothing changed", self.difference.nothing()
        is_free = self.definition.policy == "auto"
        estimate = self._estimate(sum(each.rows for each in steps.values()))
        if is_free and not estimate.follows_changes:  # before anything is read: that would cost, too
            return estimate.reason
        if estimate.is_too_large_here:
            done = self._by_tasks(plan, steps, estimate)
            if not isinstance(done, Estimate):
                return done
            estimate = done
        changes = {
            name: read_changes(self.tables[name], steps[name], names_of(plan.scans, name)) for name in self.tables
        }
        estimate = replace(estimate, changed=sum(each.num_rows for each in changes.values()))
        rules = {scan.view: source_rules(scan, steps) for scan in plan.scans}
        changed = {scan.view for scan in plan.scans if changes[source_of(scan).table.name].num_rows}
        if not changed:
            return NONE, "nothing changed", self.difference.nothing()
        adding = plan.linear
        added = None if adding is None else (adding.states, adding.changes)
        program = compiled(plan.root, rules, changed, added)
        relations = [*(each.relation for each in program.statements), plan.root]
        estimate = replace(estimate, scanned=_scanned(program))
        if is_free and not estimate.follows_changes:
            return estimate.reason
        with running(relations, self.definition.zone, (BITS,)) as run:
            for scan in [each for each in plan.scans if each.view in changed]:
                give_changes(run, scan, changes[source_of(scan).table.name])
            for statement in program.statements:
                found = looked_up(run, statement)
                touched = max(estimate.touched or 0, run.make(statement) if found is None else found)
                estimate = replace(estimate, touched=touched)
                if is_free and touched > estimate.changed and not estimate.follows_changes:
                    return estimate.reason
                if touched > estimate.changed and estimate.is_too_large_here:
                    done = self._by_tasks(plan, steps, estimate)
                    if not isinstance(done, Estimate):
                        return done
                    estimate = done
            rows = self.difference.of(run, program, plan)
        if rows is None:
            return "what is stored does not fit the changes"
        reason = estimate.reason if is_free else estimate.way_told
        measured = Measure(max(estimate.changed, estimate.touched or 0), self.watch.seconds())
        self.past = self.past.with_changes(estimate.changed, measured)
        return INCREMENTAL, reason, rows

    def _by_tasks(self, plan: ViewPlan, steps: Mapping[str, Steps], estimate: Estimate) -> Refreshed | str | Estimate:
        """Has tasks of Spark's follow the changes. If everything is cheaper, that; if they can not, what is expected of
        this process."""
        shared = shared_delta(plan, self.tables, steps, self.difference, self.definition.zone)
        if isinstance(shared, str):
            return replace(estimate, why_here=shared)
        estimate = replace(estimate, scanned=_scanned(shared.program), parts=shared.parts, shared_by=shared.by)
        is_free = self.definition.policy == "auto"
        if is_free and not estimate.follows_changes:
            return estimate.reason
        began, reason = perf_counter(), estimate.reason if is_free else estimate.way_told

        def computed(touched: int) -> Mapping[str, str]:
            measured = Measure(max(estimate.changed, touched), perf_counter() - began)
            self.past = self.past.with_tasks(estimate.changed, measured)
            return self._properties(INCREMENTAL, reason)

        done = shared.write(self.lake, self._written_to(), self._identity(), computed)
        return Refreshed.counted(self.table.name, INCREMENTAL, reason, done.kinds, done.snapshot)

    def _estimate(self, changed: int) -> Estimate:
        return Estimate(changed, self._all_rows(), past=self.past, most_here=most_changes(self.lake))

    def _all_rows(self) -> int:
        """Of the tables and of what is stored."""
        rows = [self.base, *self.chosen.snapshots.values()]
        return sum(each.total_record_count for each in rows if each is not None)

    # --- from all rows -------------------------------------------------------------------------------------------

    def _everything(self, plan: ViewPlan) -> pa.Table:
        plan_sources(plan.root)
        with running([plan.root], self.definition.zone, (BITS,)) as run:
            run.make(Statement("result", plan.root))
            return self.difference.of_everything(run, "result", [each.id for each in plan.root.columns])

    def _why_not_as_written(self) -> str | None:
        """Why the text of the query gives something else to Spark than it meant when it was written; None if not."""
        for name, table in self.tables.items():
            is_wider = set(table.schema.field_names) - set(self.definition.sources[name].visible)
            if is_wider and any(has_star(select) for select in self.sql.tree.find_all(exp.Select)):
                return f"`{name}` has new columns, and the query says `*`"
        return None

    def _by_spark(self, why: str, *, is_checked: bool) -> Refreshed:
        """Everything as Spark jobs."""
        wrong = self._why_not_as_written()
        if wrong is not None:
            raise InvalidSchema(
                f"materialized table `{self.table.name}`: {wrong}",
                hint=f"list the columns: ALTER MATERIALIZED TABLE {self.table.name} AS SELECT ...",
            )
        refuse_other_meaning(self.lake, f"materialized table `{self.table.name}`")
        pins = Pins({name: pinned_at(table, self.chosen.snapshots[name]) for name, table in self.tables.items()})
        began = perf_counter()

        def computed() -> Mapping[str, str]:
            for name, table in self.tables.items():
                if self.chosen.snapshots[name] is None and table.latest_snapshot() is not None:
                    raise CommitConflict(f"`{name}` got its first rows while it was read", hint="refresh again")
            self.past = self.past.with_full(Measure(self._all_rows(), perf_counter() - began))
            return self._properties(FULL, why)

        with _in_zone(self.lake, self.definition.zone):
            query = Planner.start(self.inside, pins).frame(self.sql)
            job = SparkRefresh(self.lake.spark, self.table, self.base, self.layout, is_checked)
            done = job.write(query, self._written_to(), self._identity(), computed)
        return Refreshed.counted(self.table.name, FULL, why, done.kinds, done.snapshot)

    # --- the end -------------------------------------------------------------------------------------------------

    def _number(self) -> int:
        """Of this refresh: the next one, also if a commit of another engine on top has forgotten how far we are."""
        known = last_identifiers(opened_of(self.table).current().stores.snapshots, self.base)
        return max(refresh_number(self.base), known.get(self.definition.id, 0)) + 1

    def _properties(self, way: str, reason: str) -> dict[str, str]:
        said = {CUT: self.chosen.cut.to_text(), REFRESH: str(self._number()), WAY: way, REASON: reason}
        return said | dict(self.past.to_properties())

    def _identity(self) -> CommitIdentity:
        # INVARIANT: the number says which state the rows were computed from. Of two refreshes that began with the same
        # state one is dropped as a replay, or its changes would be in twice.
        return CommitIdentity(self.definition.id, self._number())

    def _written_to(self) -> TableContext:
        opened = opened_of(self.table).with_options({COMMIT_FORCE_CREATE_SNAPSHOT.key: "true"})
        return for_stream(opened.folded())

    def _commit(self, way: str, reason: str, rows: pa.Table) -> Refreshed:
        if way == NONE and self.before is not None and self.before.all == self.chosen.cut.all:
            return Refreshed.nothing(self.table.name, reason)
        properties = self._properties(way, reason)
        writer = TableWriter(self._written_to(), row_kind=KIND, identity=self._identity(), properties=properties)
        with writer:
            if rows.num_rows:
                writer.write(rows)
            snapshot = writer.commit()
        return Refreshed.of(self.table.name, way, reason, rows, KIND, snapshot)


def _shortened(query: str) -> str:
    text = " ".join(query.split())
    return text if len(text) <= 80 else "SELECT ..."


def _scanned(program: Compiled) -> int:
    """Rows of tables that are read to find some of them by other columns than the first of their keys."""
    found = [scan for each in program.statements if each.lookup is None for scan in scans(each.relation)]
    snapshots = [source_of(scan).snapshot for scan in found]
    return sum(each.total_record_count for each in snapshots if each is not None)


def _layout_of(table: Table, definition: Definition) -> Layout:
    """How the rows of a materialized table are stored."""
    fields = [each for each in table.schema.fields if each.name not in (HASH, NUMBER)]
    return Layout(table.name, transfer_schema(fields), definition.key, definition.has_hash, table.primary_key)


@contextmanager
def _in_zone(lake: SqlLake, zone: str | None) -> Iterator[None]:
    key = "spark.sql.session.timeZone"
    conf: Any = lake.spark.conf
    before = conf.get(key)
    if zone is not None:
        conf.set(key, zone)
    try:
        yield
    finally:
        conf.set(key, before)
