"""Streaming mode of `lake.sql`: an INSERT becomes a job in the background, a SELECT gives its changes as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.errors import Unsupported
from lakebed.pipelines.jobs import Job, start_job
from lakebed.pipelines.select import selected
from lakebed.sql import statements as st
from lakebed.sql.define.streaming import READING
from lakebed.sql.parse.query import read_query
from lakebed.sql.query.references import is_common_expression
from lakebed.sql.query.views import view_text
from lakebed.sql.result import SmallResult
from lakebed.sql.settings import dynamic_options
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.names import quoted

if TYPE_CHECKING:
    from lakebed.lake import Lake

_SHOWN = pa.schema([("job id", pa.string()), ("job name", pa.string()), ("status", pa.string())])


class _StartedJob(SmallResult):
    """What an INSERT in streaming mode returns: the row that names its job, and the job."""

    def __init__(self, lake: Lake, job: Job) -> None:
        super().__init__(_SHOWN, [(job.id, job.name, job.status)], lambda: lake.spark)
        self.job = job


def carried_out(lake: Lake, statements: Sequence[Any]) -> Any:
    """A SELECT that goes on, or INSERTs that are one job."""
    (first, *others) = [_with_views(lake, each) for each in statements]
    if isinstance(first, st.Query):
        return selected(lake, first.sql)
    for each in (first, *others):
        _refuse_settings(lake, each)
    return _StartedJob(lake, start_job(lake, [first, *others]))


def _refuse_settings(lake: Lake, statement: st.Insert) -> None:
    """Raises if SET says where reads begin: an INSERT begins with all rows, or where it was."""
    nodes = [] if not isinstance(statement.source, st.Sql) else statement.source.tables()
    for node in nodes:
        if is_common_expression(node):
            continue
        name = ".".join(part.name for part in node.parts)
        option = next((key for key in dynamic_options(lake, name) if key.startswith(READING)), None)
        if option is not None:
            raise Unsupported(
                f"setting `{option}` is for reads, and a streaming INSERT reads `{name}` from its first row on",
                hint=f"type RESET spark.paimon.{option}; a streaming SELECT of one table takes it",
            )


# --- temporary views -------------------------------------------------------------------------------------------------


def _with_views(lake: Lake, statement: Any) -> Any:
    """The statement with the queries of temporary views in their places: a job outlives the session's names."""
    if isinstance(statement, st.Query):
        return replace(statement, sql=_unfolded(lake, statement.sql))
    if isinstance(statement, st.Insert) and isinstance(statement.source, st.Sql):
        return replace(statement, source=_unfolded(lake, statement.source))
    return statement


def _unfolded(lake: Lake, sql: st.Sql) -> st.Sql:
    while True:
        edits = {}
        for node in sql.tables():
            is_name = len(node.parts) == 1 and not is_common_expression(node)
            text = view_text(lake, node.name) if is_name else None
            if text is None or lake.other_tables.get((lake.current_database, node.name)) is not None:
                continue
            if node.meta.keys() & {"options", "version"}:
                raise Unsupported(
                    f"`{node.name}` is a view, which takes no hints and no times",
                    hint="write them into the view, at the table",
                )
            edits[node.meta["span"]] = f"({text.text})" + ("" if node.alias else f" AS {quoted(node.name)}")
        if not edits:
            return sql
        sql = read_query(Cursor(sql.spliced(edits)))
