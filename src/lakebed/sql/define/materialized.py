"""Statements about materialized tables. The lake carries them out: what a query means for that is known above SQL."""

from __future__ import annotations

import pyarrow as pa

from lakebed.errors import InvalidArgument
from lakebed.sql.define.show import like
from lakebed.sql.result import SmallResult
from lakebed.sql.session import SqlLake, result
from lakebed.sql.statements import (
    AlterMaterialized,
    CreateMaterialized,
    DropMaterialized,
    ExplainMaterialized,
    RefreshMaterialized,
    ShowCreateMaterialized,
    ShowMaterialized,
)

_TEXT = pa.string()
_REFRESHED = {
    "way": _TEXT,
    "reason": _TEXT,
    "inserted": pa.int64(),
    "updated": pa.int64(),
    "deleted": pa.int64(),
}


def create(lake: SqlLake, statement: CreateMaterialized) -> SmallResult | None:
    """CREATE MATERIALIZED TABLE | VIEW."""
    if statement.replace and lake.has_table(statement.name):
        return _replaced(lake, statement)
    found = lake.materialize(
        statement.name,
        statement.query,
        freshness=statement.freshness,
        policy=statement.policy or "auto",
        primary_key=statement.primary_key,
        partition_by=statement.partition_by,
        options=statement.options,
        comment=statement.comment,
        if_not_exists=statement.if_not_exists,
    )
    return _told(lake, found)


def _replaced(lake: SqlLake, statement: CreateMaterialized) -> SmallResult:
    """CREATE OR REPLACE of one that is there: another query, in the table as it is."""
    if statement.primary_key or statement.partition_by or statement.options or statement.comment is not None:
        raise InvalidArgument(
            f"materialized table `{statement.name}` is there: keys, partitions, options and comment stay as they are",
            hint=f"leave them out, or DROP MATERIALIZED TABLE {statement.name} first",
        )
    found = lake.alter_materialized(
        statement.name, query=statement.query, policy=statement.policy, freshness=statement.freshness
    )
    return _told(lake, found)


def alter(lake: SqlLake, statement: AlterMaterialized) -> SmallResult | None:
    """ALTER MATERIALIZED TABLE: stops or resumes refreshes, or gives another query."""
    if statement.query is not None:
        return _told(lake, lake.alter_materialized(statement.name, query=statement.query))
    lake.alter_materialized(statement.name, suspended=statement.deed == "suspend")
    return None


def drop(lake: SqlLake, statement: DropMaterialized) -> None:
    """DROP MATERIALIZED TABLE | VIEW: of no other table."""
    if statement.if_exists and not lake.has_table(statement.name):
        return
    lake.materialized(statement.name)
    lake.drop_table(statement.name)


def refresh(lake: SqlLake, statement: RefreshMaterialized) -> SmallResult:
    """REFRESH MATERIALIZED VIEW."""
    return _told(lake, lake.refresh(statement.name, full=statement.full))


def _told(lake: SqlLake, found: object) -> SmallResult:
    rows = [] if found is None else [tuple(getattr(found, name) for name in _REFRESHED)]
    return result(lake, _REFRESHED, rows)


def show(lake: SqlLake, statement: ShowMaterialized) -> SmallResult:
    """SHOW MATERIALIZED TABLES | VIEWS."""
    database = statement.database or lake.current_database
    columns = {"namespace": _TEXT, "tableName": _TEXT, "policy": _TEXT, "freshness": _TEXT, "status": _TEXT}
    columns |= {"way": _TEXT, "reason": _TEXT, "query": _TEXT}
    rows = []
    found = {each.name.partition(".")[2]: each for each in lake.materialized_tables(database)}
    for name in like(list(found), statement.like):
        each = found[name]
        status = "suspended" if each.is_suspended else "active"
        rows.append((database, name, each.policy, each.freshness, status, each.way, each.reason, each.query))
    return result(lake, columns, rows)


def show_create(lake: SqlLake, statement: ShowCreateMaterialized) -> SmallResult:
    """SHOW CREATE MATERIALIZED TABLE | VIEW: a statement that `sql` takes back."""
    return result(lake, {"createtab_stmt": _TEXT}, [(lake.materialized(statement.name).statement,)])


def explain(lake: SqlLake, statement: ExplainMaterialized) -> SmallResult:
    """EXPLAIN CREATE MATERIALIZED TABLE | VIEW."""
    return result(lake, {"plan": _TEXT}, [(str(lake.explain(statement.create.query)),)])
