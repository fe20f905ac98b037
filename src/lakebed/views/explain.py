"""How a query follows changes, as text: a line for each part, with one word, one reason and one thing to do."""

from __future__ import annotations

from collections.abc import Mapping

from lakebed.definition.changelog_rules import tells_everything
from lakebed.definition.views import is_view
from lakebed.sql.session import SqlLake
from lakebed.table.opened import opened_of
from lakebed.table.table import Table
from lakebed.views.by_spark import most_changes, most_rows, why_here
from lakebed.views.define import Looked, looked_at
from lakebed.views.lake_in import LakeIn, read_sql
from lakebed.views.plan.build import ViewPlan
from lakebed.views.plan.judge import Judged
from lakebed.views.shared_delta import shared_by, why_not_shared
from lakebed.views.sources import tables_of
from lakebed.views.store import Definition


class Explanation(str):
    """Text that is shown as it is, in a prompt, too."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explained(lake: SqlLake, name_or_sql: str) -> Explanation:
    """How a materialized table, or a query that could be one, follows changes."""
    if " " not in name_or_sql.strip() and lake.has_table(name_or_sql):
        table = lake.table(name_or_sql)
        definition = Definition.of(table)
        if definition is not None:
            looked = looked_at(lake, definition.query, definition.database)
            inside = LakeIn(lake, definition.database)
            title = f"materialized table {table.name}, policy {definition.policy}"
            return _text(lake, title, looked, tables_of(inside, read_sql(definition.query)))
    inside = LakeIn(lake, lake.current_database)
    looked = looked_at(lake, name_or_sql, lake.current_database)
    return _text(lake, "query", looked, tables_of(inside, read_sql(name_or_sql)))


def _text(lake: SqlLake, title: str, looked: Looked, tables: dict[str, Table]) -> Explanation:
    if looked.plan is None:
        lines = [f"{title}: full, by Spark", f"  {looked.needs_spark}"]
        return Explanation("\n".join(lines))
    plan = looked.plan
    way = "incremental" if not plan.is_full else "full"
    key = "none: equal rows are numbered" if plan.key is None else ", ".join(plan.key) or "none: one row"
    lines = [f"{title}: {way}, in this process", *_of_changes(lake, plan, tables), *_of_everything(lake, plan, tables)]
    lines += [f"key: {key}"]
    lines += plan_lines(plan, plan.judged, tables)
    return Explanation("\n".join(lines))


def _of_changes(lake: SqlLake, plan: ViewPlan, tables: Mapping[str, Table]) -> list[str]:
    """Who follows changes that are many, if there can be so many that it matters."""
    most = most_changes(lake)
    if plan.is_full or _rows_in(tables) <= most:
        return []
    here = why_not_shared(plan, tables)
    where = f"by Spark, in parts by {shared_by(plan, tables)}" if here is None else f"in this process: {here}"
    return [f"changes: {where} (if they touch more than {most:,} rows)"]


def _rows_in(tables: Mapping[str, Table]) -> int:
    found = [table.latest_snapshot() for table in tables.values()]
    return sum(each.total_record_count for each in found if each is not None)


def _of_everything(lake: SqlLake, plan: ViewPlan, tables: Mapping[str, Table]) -> list[str]:
    """Which engine computes everything, if there is so much that it matters."""
    rows, most = _rows_in(tables), most_rows()
    if rows <= most:
        return []
    here = why_here(lake, plan, next(iter(tables.values())))
    engine = "by Spark" if here is None else f"in this process: {here}"
    return [f"everything: {engine} ({rows:,} rows are more than {most:,})"]


def plan_lines(plan: ViewPlan, judged: Judged, tables: Mapping[str, Table]) -> list[str]:
    """A line for each part of a query, given the words for them."""
    by_name = {scan.view: scan.source.table.name for scan in plan.scans}
    rows = _rows(judged, tables, by_name, 0)
    widths = [max(len(row[place]) for row in rows) for place in range(2)]
    return [f"{what:<{widths[0]}}  {word:<{widths[1]}}  {why}".rstrip() for what, word, why in rows]


def _rows(judged: Judged, tables: Mapping[str, Table], names: dict[str, str], depth: int) -> list[tuple[str, str, str]]:
    indent = "  " * depth
    why = f"{judged.reason}; {judged.remedy}" if judged.remedy else judged.reason
    word = str(judged.word)
    if judged.view is not None:
        word, why = _of_table(tables[names[judged.view]])
    found = [(f"{indent}{judged.what}", word, why)]
    for below in judged.below:
        found += _rows(below, tables, names, depth + 1)
    return found


def _of_table(table: Table) -> tuple[str, str]:
    context = opened_of(table).current()
    if not context.has_key:
        return "changes", "rows that are appended"
    if is_view(context):
        return "changes", "a materialized table tells all its changes"
    made_by = context.options.raw.get("changelog-producer", "none")
    if tells_everything(context.options):
        return "changes", f"changelog of `{made_by}`"
    return "comparison", f"`changelog-producer` = `{made_by}` does not tell all: set `lookup`"
