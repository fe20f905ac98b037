"""Large changes as Spark jobs: each task follows a part of them, by the same rules as one process follows all.

Rows that changed are read by tasks and brought to the part that they belong to (`plan/split` says how a query falls
into parts). There the program of the refresh runs in DuckDB, as it would in this process: what belongs to the changes
is looked up by key at the snapshots of the cut. Where rows of one key of the result may come from several parts, or
groups from several sums, they are brought together once more. What differs from what is stored is written by tasks, and
committed here, under the same identity and with the same properties as any refresh. Only counts come to the driver.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lakebed.algebra.relations import Scan, scans
from lakebed.commit.replay import CommitIdentity
from lakebed.definition.context import TableContext
from lakebed.embedded.engine import version_here, zone_here
from lakebed.errors import NotFound, Unsupported
from lakebed.expressions.nodes import Column
from lakebed.fileio.memory import MemoryFileIO
from lakebed.records import dataclass
from lakebed.sql.session import SqlLake
from lakebed.table.opened import opened_of
from lakebed.table.table import Table
from lakebed.views.apply import KIND
from lakebed.views.by_spark import Written
from lakebed.views.changes import CHANGE, ChangesGone, Steps
from lakebed.views.delta_task import ERROR, NOTE, NUMBER, SOURCE, TOLD, DeltaTask, SharedScan
from lakebed.views.deltas import source_rules
from lakebed.views.difference import Difference
from lakebed.views.plan.build import ViewPlan, states_of
from lakebed.views.plan.split import Parted, split_plan
from lakebed.views.rules.compile import Compiled, compiled
from lakebed.views.sources import pinned_at, source_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_WHOLE = 1_000_000
"""Changed rows that each part may have to know, beside its own."""
PART_ROWS = 500_000
"""Changed rows of one part, about."""
MOST_PARTS = 512


@dataclass(frozen=True)
class SharedDelta:
    """A change of a query's result that tasks can compute."""

    task: DeltaTask
    steps: Mapping[str, Steps]
    by: str
    """What rows are shared by, in words."""

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return self.task.parts

    @property
    def program(self) -> Compiled:
        """What each part runs."""
        return self.task.program

    def write(
        self,
        lake: SqlLake,
        context: TableContext,
        identity: CommitIdentity,
        properties: Callable[[int], Mapping[str, str]],
    ) -> Written:
        """Computes, compares, writes and commits. `properties` are asked for once everything is computed, given how
        many rows the changes have touched."""
        from pyspark.sql import functions as sf

        from lakebed.spark import view_rows

        spark: Any = lake.spark
        events = view_rows.kept(self._events(spark))
        try:
            counts = view_rows.kinds_of(events, KIND)
            told = view_rows.texts_in(events.where(sf.col(KIND).isin(ERROR, NOTE)), TOLD)
            touched = _touched([json.loads(text) for text in told])
            rows = events.where(sf.col(TOLD).isNull()).drop(TOLD)
            snapshot = view_rows.write_events(spark, context, rows, KIND, identity, properties(touched))
            return Written(snapshot, counts)
        finally:
            events.unpersist()

    def _events(self, spark: Any) -> DataFrame:
        from lakebed.spark import view_rows

        task = self.task
        given, events = self._changes(spark), task.event_schema()
        if task.program.replaced is not None:
            return view_rows.in_tasks(given, task.parts, NUMBER, task.first, events)
        found = view_rows.in_tasks(given, task.parts, NUMBER, task.first, task.first_schema())
        return view_rows.in_tasks(found, task.parts, NUMBER, task.second, events)

    def _changes(self, spark: Any) -> DataFrame:
        """All changes that are shared, with the parts that they belong to; and a row for each part, so that it runs."""
        from pyspark.sql import functions as sf

        from lakebed.spark import view_rows

        marks = spark.range(0, self.parts, 1, 1)
        given = marks.select(
            sf.col("id").cast("int").alias(NUMBER), sf.lit(-1).alias(SOURCE), sf.lit(0).cast("long").alias(CHANGE)
        )
        for place, shared in enumerate(self.task.shared):
            rows = self._changes_of(shared.scan)
            work = shared.numbered(place, self.parts, self.task.zone)
            numbered = rows.mapInArrow(work, view_rows.shared_schema(rows.schema, shared.names(place)))
            given = given.unionByName(numbered, allowMissingColumns=True)
        return given

    def _changes_of(self, scan: Scan) -> DataFrame:
        table, names = source_of(scan).table, list(scan.names)
        steps = self.steps[table.name]
        since = 0 if steps.before is None else steps.before.id
        assert steps.after is not None, "a table without rows has not changed"
        try:
            if steps.way == "comparison":
                return table.diff_to_spark(since, steps.after.id, names)
            return table.changes_to_spark(since, steps.after.id, columns=names)
        except (Unsupported, NotFound) as error:
            raise ChangesGone(error.message) from error


def shared_delta(
    plan: ViewPlan, tables: Mapping[str, Table], steps: Mapping[str, Steps], difference: Difference, zone: str | None
) -> SharedDelta | str:
    """The change of a query's result in parts; or why it has none."""
    wrong = why_not_shared(plan, tables)
    if wrong is not None:
        return wrong
    rows = {scan.view: steps[source_of(scan).table.name].rows for scan in plan.scans}
    parts = min(MOST_PARTS, max(2, -(-max(sum(rows.values()), 1) // PART_ROWS)))
    parted = split_plan(plan, parts, rows)
    assert parted is not None, "what has no parts was named"
    changed = {scan.view for scan in plan.scans if steps[source_of(scan).table.name].way != "none"}
    known = [scan for scan in plan.scans if scan.view in changed and parted.views[scan.view] is None]
    if sum(rows[scan.view] for scan in known) > MOST_WHOLE:
        names = ", ".join(sorted({f"`{source_of(scan).table.name}`" for scan in known}))
        return f"all parts of the query would have to know the changes of {names}"
    for scan in scans(parted.relation):  # so that tasks see the tables as they are now, whatever becomes of them
        source = source_of(scan)
        source.table = pinned_at(source.table, source.snapshot)
    split = replace(plan, root=parted.relation)
    rules = {scan.view: source_rules(scan, steps) for scan in split.scans}
    added = None if plan.linear is None else (states_of(split.root), plan.linear.changes)
    program = compiled(split.root, rules, changed, added)
    task = DeltaTask(
        program,
        split,
        replace(difference, table=pinned_at(difference.table, difference.base)),
        zone or zone_here(),  # workers may be elsewhere
        parts,
        tuple(SharedScan(scan, by) for scan in split.scans if (by := parted.views[scan.view]) and scan.view in changed),
        tuple((scan, steps[source_of(scan).table.name]) for scan in known),
        version_here(),
    )
    return SharedDelta(task, steps, _in_words(parted, plan.scans))


def why_not_shared(plan: ViewPlan, tables: Mapping[str, Table]) -> str | None:
    """Why changes can not be followed by tasks, however they are; None if they can."""
    if find_spec("pyspark") is None:
        return "there is no pyspark"
    if any(isinstance(opened_of(table).current().fileio, MemoryFileIO) for table in tables.values()):
        return "its tables are in the memory of this process"
    if split_plan(plan, 2, {}) is None:
        return "the query does not fall into parts"
    return None


def shared_by(plan: ViewPlan, tables: Mapping[str, Table]) -> str:
    """What rows of the query would be shared by if all of its tables changed, in words. REQUIRES: that they can be."""
    found = {name: table.latest_snapshot() for name, table in tables.items()}
    rows = {name: 0 if each is None else each.total_record_count for name, each in found.items()}
    parted = split_plan(plan, 2, {scan.view: rows[source_of(scan).table.name] for scan in plan.scans})
    assert parted is not None
    return _in_words(parted, plan.scans)


def _in_words(parted: Parted, given: Sequence[Scan]) -> str:
    names = {each.id: name for scan in given for each, name in zip(scan.columns, scan.names, strict=True)}
    values = [value for scan in given for value in parted.views.get(scan.view) or ()]
    return ", ".join(dict.fromkeys(names[each.id] if isinstance(each, Column) else "..." for each in values))


def _touched(told: Sequence[Mapping[str, Any]]) -> int:
    """Rows that all parts have touched; raises what one of them says is wrong."""
    from lakebed.spark.tasks import revived

    for each in told:
        if "gone" in each:
            raise ChangesGone(each["gone"])
        if "error" in each:
            raise revived(each["error"])
    return sum(int(each["touched"]) for each in told)


__all__ = ["MOST_PARTS", "MOST_WHOLE", "PART_ROWS", "SharedDelta", "shared_by", "shared_delta", "why_not_shared"]
