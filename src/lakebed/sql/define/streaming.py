"""Streaming mode: which statements go on, which are refused there, and the jobs that INSERTs have started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakebed.errors import NotFound, Unsupported, did_you_mean
from lakebed.sql import statements as st
from lakebed.sql.query.other_tables import other_table
from lakebed.sql.query.references import is_common_expression, references
from lakebed.sql.query.views import view_text
from lakebed.sql.result import SmallResult
from lakebed.sql.session import SqlLake, connector_table, nothing, result
from lakebed.sql.settings import MODE
from lakebed.table.system.handle import DefinedTable

BATCH = f"SET '{MODE}' = 'batch' first"
"""How to do in batch mode what does not go on."""

READING = ("scan.", "incremental-", "consumer")
"""How options begin that say where a read begins."""

_TEXT = pa.string()
_JOBS = {
    "job id": _TEXT,
    "job name": _TEXT,
    "status": _TEXT,
    "start time": pa.timestamp("s", "UTC"),
    "rows": pa.int64(),
    "error": _TEXT,
}


def goes_on(lake: SqlLake, statements: Sequence[Any]) -> bool:
    """Whether statements are carried out as ones that go on: queries of tables, and INSERTs of them. Raises for what
    Flink refuses in streaming mode."""
    for statement in statements:
        _refuse_batch_only(statement)
    return any(
        (isinstance(each, st.Query) and _follows(lake, each.sql))
        or (isinstance(each, st.Insert) and _is_continuous(lake, each))
        for each in statements
    )


def _refuse_batch_only(statement: Any) -> None:
    match statement:
        case st.Update() | st.Delete() | st.Merge():
            what = type(statement).__name__.upper()
        case st.Insert(overwrite=True):
            what = "INSERT OVERWRITE"
        case st.Insert() if statement.replace_where is not None:
            what = "INSERT ... REPLACE WHERE"
        case st.CreateTable() if statement.query is not None:
            raise Unsupported(
                "CREATE TABLE ... AS SELECT would be filled once, which is not what streaming mode means",
                hint=f"write CREATE TABLE, then INSERT INTO ... SELECT, or CREATE MATERIALIZED TABLE; or {BATCH}",
            )
        case _:
            return
    raise Unsupported(f"{what} is not for streaming mode", hint=BATCH)


def _is_continuous(lake: SqlLake, statement: st.Insert) -> bool:
    """Whether rows may come later: those of VALUES are all there."""
    reads = isinstance(statement.source, st.Sql) and _follows(lake, statement.source)
    return reads or connector_table(lake, statement.target.name) is not None


def _follows(lake: SqlLake, sql: st.Sql) -> bool:
    """Whether a query reads tables of rows; what tables are made of is looked at once."""
    for node in sql.tables():
        if is_common_expression(node):
            continue
        is_view = len(node.parts) == 1 and view_text(lake, node.name) is not None
        if is_view or other_table(lake, node) is not None:
            return True
    return any(not isinstance(each.table, DefinedTable) for each in references(lake, sql))


# --- jobs ------------------------------------------------------------------------------------------------------------


def show_jobs(lake: SqlLake, statement: st.ShowJobs) -> SmallResult:
    """SHOW JOBS: what this session has started, and how it is doing."""
    return result(
        lake,
        _JOBS,
        [(job.id, job.name, job.status, job.started, job.rows, job.why) for job in lake.jobs()],
    )


def stop_job(lake: SqlLake, statement: st.StopJob) -> SmallResult:
    """STOP JOB: ends it behind the steps that are under way."""
    jobs = {job.id: job for job in lake.jobs()}
    if statement.id not in jobs:
        known = [job.id for job in jobs.values() if job.is_active]
        hint = did_you_mean(statement.id, known) if known else "none runs: SHOW JOBS lists those of this session"
        raise NotFound(f"there is no job `{statement.id}`", hint=hint)
    jobs[statement.id].stop()
    return nothing(lake)
