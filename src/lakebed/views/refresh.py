"""A refresh: pins the tables, finds what changed, computes the new rows and commits the difference, exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from time import perf_counter
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakebed.algebra.relations import Group, scans
from lakebed.commit.replay import CommitIdentity, last_identifiers
from lakebed.definition.context import TableContext
from lakebed.embedded.program import Run, running
from lakebed.errors import CommitConflict, InvalidData, InvalidSchema, Unsupported
from lakebed.expressions import kinds
from lakebed.metadata.snapshot import Snapshot
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
from lakebed.types.transfer import to_transfer, transfer_schema
from lakebed.views.apply import (
    COUNT,
    HASH,
    KIND,
    NUMBER,
    TARGET,
    Layout,
    counted_difference,
    given_rows,
    keyed_difference,
    less_stored,
)
from lakebed.views.batches import NothingYet
from lakebed.views.by_spark import SparkRefresh, most_rows, why_here
from lakebed.views.changes import ChangesGone, read_changes, steps_between
from lakebed.views.cost import Estimate, Measure, Past, Stopwatch
from lakebed.views.cut import ChosenCut, chosen_cut
from lakebed.views.deltas import give_changes, names_of, source_rules
from lakebed.views.found_rows import looked_up
from lakebed.views.lake_in import LakeIn, read_sql, remembering
from lakebed.views.plan.build import ViewPlan, carried_by, planned, with_rows
from lakebed.views.result import Refreshed
from lakebed.views.row_hashes import BITS
from lakebed.views.rules.compile import Compiled, compiled
from lakebed.views.rules.program import Statement
from lakebed.views.rules.weighted import WEIGHT, Stored
from lakebed.views.sources import (
    Source,
    bound_query,
    check_columns,
    pinned_at,
    plan_sources,
    refuse_other_meaning,
    source_of,
    tables_of,
)
from lakebed.views.store import CUT, REASON, REFRESH, WAY, Cut, Definition, cut_of, definition_of, refresh_number
from lakebed.views.swap import finish_swap
from lakebed.write.placement.postponed import for_stream

FULL, INCREMENTAL, NONE = "full", "incremental", "none"


def refresh_view(lake: SqlLake, name: str, *, full: bool = False, most: Mapping[str, int] | None = None) -> Refreshed:
    """Brings a materialized table up to date; says which way, why, and how many rows changed.

    Of syncs in `most` no batch above those is read.
    """
    if not lake.has_table(name):
        finish_swap(lake, name)
    table = remembering(lake, lake.table(name))
    try:
        return Refresh(lake, table, definition_of(table), most or {}).run(full)
    except NothingYet as waits:
        return Refreshed.nothing(table.name, f"nothing yet: {waits.reason}")


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
                if isinstance(found, str):
                    why = found
                else:
                    way, reason, rows = found
                    return self._commit(way, reason, rows)
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

    def _follow(self, plan: ViewPlan, before: Cut) -> tuple[str, str, pa.Table] | str:
        """The way, why, and the difference; or why not."""
        steps = {
            name: steps_between(table, before.tables[name], self.chosen.snapshots[name])
            for name, table in self.tables.items()
        }
        plan_sources(plan.root)
        if all(each.way == "none" for each in steps.values()):
            return NONE, "nothing changed", self._nothing()
        is_free = self.definition.policy == "auto"
        estimate = self._estimate(sum(each.rows for each in steps.values()))
        if is_free and not estimate.follows_changes:  # before anything is read: that would cost, too
            return estimate.reason
        changes = {
            name: read_changes(self.tables[name], steps[name], names_of(plan.scans, name)) for name in self.tables
        }
        estimate = replace(estimate, changed=sum(each.num_rows for each in changes.values()))
        rules = {scan.view: source_rules(scan, steps) for scan in plan.scans}
        changed = {scan.view for scan in plan.scans if changes[source_of(scan).table.name].num_rows}
        if not changed:
            return NONE, "nothing changed", self._nothing()
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
            rows = self._difference(run, program, plan)
        if rows is None:
            return "what is stored does not fit the changes"
        reason = estimate.reason if is_free else f"{estimate.changed:,} changed rows"
        measured = Measure(max(estimate.changed, estimate.touched or 0), self.watch.seconds())
        self.past = self.past.with_changes(estimate.changed, measured)
        return INCREMENTAL, reason, rows

    def _estimate(self, changed: int) -> Estimate:
        return Estimate(changed, self._all_rows(), past=self.past)

    def _all_rows(self) -> int:
        """Of the tables and of what is stored."""
        rows = [self.base, *self.chosen.snapshots.values()]
        return sum(each.total_record_count for each in rows if each is not None)

    def _difference(self, run: Run, program: Compiled, plan: ViewPlan) -> pa.Table | None:
        result = program.result
        if result is None:
            return self._nothing()
        ids = [each.id for each in plan.root.columns]
        if program.added is not None:
            return self._added(run, result, program.added, plan)
        if self.layout.is_numbered:
            weight = WEIGHT.id
            source = result.name
            if program.replaced is not None:
                return self._numbered_replacement(run, program, plan, ids)
            given_rows(run, self.layout, source, ids, weight=weight)
            hashes = run.table(f"SELECT DISTINCT {HASH} FROM {TARGET}")
            return counted_difference(run, self.layout, self._stored_hashes(run, hashes))
        if program.replaced is not None:
            given_rows(run, self.layout, result.name, ids)
            return keyed_difference(run, self.layout, self._stored_of(run, program, plan))
        given_rows(run, self.layout, result.name, ids, weight=WEIGHT.id)
        names = ", ".join(kinds.quoted(name) for name in self.layout.primary_key)
        keys = run.table(f"SELECT DISTINCT {names} FROM {TARGET}")
        run.execute(f"CREATE TEMP TABLE new_rows AS SELECT * EXCLUDE ({COUNT}) FROM {TARGET} WHERE {COUNT} > 0")
        return keyed_difference(run, self.layout, self._looked_up(keys), "new_rows")

    def _added(self, run: Run, changes: Stored, states: Group, plan: ViewPlan) -> pa.Table | None:
        """The stored groups with the change of their parts added; None if one would have less than no rows."""
        names = {each.id: name for each, name in zip(plan.root.columns, plan.names, strict=True)}
        stored = {each.id: names[above.id] for each in states.columns if (above := carried_by(plan.root, each))}
        keys, parts = states.columns[: len(states.keys)], states.columns[len(states.keys) :]
        typed = [f"CAST({k.id} AS {kinds.duckdb_name(k.type)}) AS {kinds.quoted(stored[k.id])}" for k in keys]
        listed = ", ".join(typed) or "1 AS one"
        run.execute(f"CREATE TEMP TABLE replaced_keys AS SELECT DISTINCT {listed} FROM {changes.name}")
        self._find_stored(run, [stored[each.id] for each in keys])
        same = [f"s.{kinds.quoted(stored[each.id])} IS NOT DISTINCT FROM d.{each.id}" for each in keys]
        added = [
            f"CAST(d.{each.id} + coalesce(s.{kinds.quoted(stored[each.id])}, 0) AS {kinds.duckdb_name(each.type)}) "
            f"AS {each.id}"
            for each in parts
        ]
        chosen = ", ".join([*(f"d.{each.id}" for each in keys), *added])
        run.execute(
            f"CREATE TEMP TABLE new_states AS SELECT {chosen} FROM {changes.name} AS d "
            f"LEFT JOIN found_rows AS s ON {' AND '.join(same) or 'TRUE'}"
        )
        rows = parts[0].id
        if run.table(f"SELECT count(*) AS c FROM new_states WHERE {rows} < 0").column("c")[0].as_py():
            return None
        left = f" WHERE {rows} > 0" if keys else ""  # a group of all rows is there without any
        run.execute(f"CREATE TEMP TABLE kept_states AS SELECT * FROM new_states{left}")
        root = with_rows(plan.root, Stored(columns=states.columns, name="kept_states"))
        run.make(Statement("new_result", root))
        given_rows(run, self.layout, "new_result", [each.id for each in plan.root.columns])
        return keyed_difference(run, self.layout, "found_rows")

    def _numbered_replacement(self, run: Run, program: Compiled, plan: ViewPlan, ids: list[str]) -> pa.Table | None:
        """Groups of rows that may be equal: those stored of the groups go, the new ones come."""
        assert program.result is not None
        given_rows(run, self.layout, program.result.name, ids)
        stored = self._stored_of(run, program, plan)
        less_stored(run, self.layout, stored)
        hashes = run.table(f"SELECT DISTINCT {HASH} FROM {TARGET}")
        return counted_difference(run, self.layout, self._stored_hashes(run, hashes))

    # --- what is stored ------------------------------------------------------------------------------------------

    def _stored_of(self, run: Run, program: Compiled, plan: ViewPlan) -> str:
        """The stored rows of the groups that are replaced, under a name."""
        keys = program.replaced
        assert keys is not None
        names = {each.id: name for each, name in zip(plan.root.columns, plan.names, strict=True)}
        by = [names[each.id] for each in program.by]
        schema = self.layout.columns
        typed = ", ".join(
            f"CAST({key.id} AS {kinds.duckdb_name(schema.field(name).type)}) AS {kinds.quoted(name)}"
            for key, name in zip(keys.columns, by, strict=True)
        )
        run.execute(f"CREATE TEMP TABLE replaced_keys AS SELECT DISTINCT {typed} FROM {keys.name}")
        self._find_stored(run, by)
        return "found_rows"

    def _find_stored(self, run: Run, by: list[str]) -> None:
        """Stored rows whose columns have the values of `replaced_keys`, as `found_rows`: by their key if that tells."""
        if self.definition.key is not None and set(by) == set(self.definition.key) and self._finds_by(by):
            listed = HASH if self.layout.has_hash else ", ".join(kinds.quoted(n) for n in self.layout.primary_key)
            chosen = f"{self.layout.hash_of()} AS {HASH}" if self.layout.has_hash else listed
            run.give("found_rows", self._looked_up(run.table(f"SELECT {chosen} FROM replaced_keys")))
            return
        self._define_stored(run)
        same = " AND ".join(f"s.{kinds.quoted(name)} IS NOT DISTINCT FROM k.{kinds.quoted(name)}" for name in by)
        run.execute(
            f"CREATE TEMP TABLE found_rows AS SELECT s.* FROM stored_all AS s SEMI JOIN replaced_keys AS k ON {same}"
        )

    def _finds_by(self, by: list[str]) -> bool:
        """Whether the primary key follows from these columns."""
        return all(name == HASH or name in by for name in self.layout.primary_key)

    def _define_stored(self, run: Run) -> None:
        names = tuple(self.layout.stored_schema().names)
        run.define("stored_all", Source(self.table, (), self.base, names))

    def _looked_up(self, keys: pa.Table) -> pa.Table:
        """The stored rows of these primary keys."""
        schema = self.layout.stored_schema()
        if self.base is None or not keys.num_rows:
            return schema.empty_table()
        found = pinned_at(self.table, self.base).lookup(keys, list(schema.names))
        batches = [to_transfer(batch, schema) for batch in found.combine_chunks().to_batches()]
        return pa.Table.from_batches(batches, schema=schema)

    def _stored_hashes(self, run: Run, hashes: pa.Table) -> pa.Table:
        """The hash of each stored row that has one of these."""
        run.define("stored_hashes", Source(self.table, (), self.base, (HASH,)))
        run.give("asked_hashes", hashes)
        return run.table(f"SELECT s.{HASH} FROM stored_hashes AS s SEMI JOIN asked_hashes AS k ON s.{HASH} = k.{HASH}")

    def _nothing(self) -> pa.Table:
        return pa.schema([pa.field(KIND, pa.string()), *self.layout.stored_schema()]).empty_table()

    # --- from all rows -------------------------------------------------------------------------------------------

    def _everything(self, plan: ViewPlan) -> pa.Table:
        plan_sources(plan.root)
        with running([plan.root], self.definition.zone, (BITS,)) as run:
            run.make(Statement("result", plan.root))
            return self._all_differences(run, "result", [each.id for each in plan.root.columns])

    def _all_differences(self, run: Run, source: str, ids: list[str]) -> pa.Table:
        given_rows(run, self.layout, source, ids)
        self._define_stored(run)
        if not self.layout.is_numbered:
            return keyed_difference(run, self.layout, "stored_all")
        less_stored(run, self.layout, "stored_all")
        found = counted_difference(run, self.layout, run.table(f"SELECT {HASH} FROM stored_all"))
        assert found is not None
        return found

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
