"""Writes a stream into a table, each micro-batch exactly once.

The commit user is the query's id and the commit identifier the number of the micro-batch, counted from 1, so a batch
that Spark delivers a second time, after a crash between our commit and its own log entry, is recognised and skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakebed.errors import InvalidArgument, did_you_mean
from lakebed.spark.write import write_frame
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

_MODES = ("append", "update", "complete")
_TRIGGERS = ("processingTime", "availableNow", "once")
_ROW_KIND = "rowkind"
"""A column of this name that the table has not holds row kinds, as streams of changes have it."""


def start_sink(
    table: Table,
    frame: DataFrame,
    checkpoint: str,
    trigger: str | Mapping[str, Any] | None,
    output_mode: str,
    row_kind: str | None,
    query_name: str | None,
) -> StreamingQuery:
    """Starts the query."""
    if output_mode not in _MODES:
        raise InvalidArgument(f"output mode `{output_mode}` is unknown", hint=did_you_mean(output_mode, _MODES))
    if not getattr(frame, "isStreaming", False):
        raise InvalidArgument("the DataFrame is not a stream", hint="write it once with t.write_spark(df)")
    kind = row_kind or (_ROW_KIND if _ROW_KIND in frame.columns and _ROW_KIND not in table.schema.field_names else None)
    table.plan_write()  # what is wrong with the table is said now, not in the first batch
    writer = frame.writeStream.outputMode(output_mode).option("checkpointLocation", checkpoint)
    if query_name is not None:
        writer = writer.queryName(query_name)
    if trigger is not None:
        writer = writer.trigger(**_trigger(trigger))
    query: StreamingQuery = writer.foreachBatch(_batch_writer(table, checkpoint, kind, output_mode)).start()
    return query


def _batch_writer(
    table: Table, checkpoint: str, row_kind: str | None, output_mode: str
) -> Callable[[DataFrame, int], None]:
    query_id: str | None = None

    def write_batch(frame: DataFrame, batch_id: int) -> None:
        nonlocal query_id
        spark = frame.sparkSession
        if query_id is None:
            query_id = query_id_of(spark, checkpoint)
        overwrite: Mapping[str, Any] | None = {} if output_mode == "complete" else None
        write_frame(spark, table, frame, row_kind, overwrite, query_id, batch_id + 1)

    return write_batch


def query_id_of(spark: SparkSession, checkpoint: str) -> str:
    """The id of the query that a checkpoint belongs to: the same after every restart."""
    local = Path(checkpoint.removeprefix("file://").removeprefix("file:")) / "metadata"
    if local.exists():
        text = local.read_text()
    else:
        row = spark.read.text(f"{checkpoint.rstrip('/')}/metadata").first()
        text = row[0] if row is not None else "{}"
    return str(json.loads(text)["id"])


def _trigger(given: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(given, str):
        return {"availableNow": True} if given.lower() == "availablenow" else {"processingTime": given}
    unknown = [name for name in given if name not in _TRIGGERS]
    if unknown or len(given) != 1:
        raise InvalidArgument(
            f"trigger {dict(given)} is not understood",
            hint='pass an interval such as "10 seconds", or {"availableNow": True}',
        )
    return dict(given)
