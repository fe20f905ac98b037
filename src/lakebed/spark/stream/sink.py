"""Starts queries that write a stream into a table, each micro-batch exactly once.

The commit user is the query's id and the commit identifier the number of the micro-batch, counted from 1, so a batch
that Spark delivers a second time, after a crash between our commit and its own log entry, is recognised and skipped.
How a batch is written is told in `micro_batch`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lakebed.errors import InvalidArgument, InvalidOption, did_you_mean
from lakebed.lineage import Job, Run, begun, table_dataset
from lakebed.options import SINK_ROLLING_POLICY_ROLLOVER_INTERVAL, WRITE_MERGE_SCHEMA, WRITE_MODE, Options
from lakebed.spark.errors import cause_of
from lakebed.spark.late_workers import started
from lakebed.spark.stream.micro_batch import BatchWriter
from lakebed.spark.stream.query import EventTime, batch_errors, query_id_of, trigger_of
from lakebed.spark.types import empty_rows
from lakebed.spark.write import check_columns
from lakebed.table.plans import plan_write
from lakebed.table.table import Table
from lakebed.units import parse_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

_MODES = ("append", "update", "complete")
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
    schema = frame.schema
    kind = row_kind or _row_kind_column(table, schema.names)
    incoming = empty_rows(schema)
    context, _ = plan_write(table)  # what is wrong with the table is said now, not in the first batch
    if not context.options[WRITE_MERGE_SCHEMA]:
        check_columns(context, kind, incoming)
    writer = frame.writeStream.outputMode(output_mode).option("checkpointLocation", checkpoint)
    if query_name is not None:
        writer = writer.queryName(query_name)
    chosen = chosen_trigger(trigger_of(trigger), context.options)
    if chosen:
        writer = writer.trigger(**chosen)
    overwrite: dict[str, Any] | None = {} if output_mode == "complete" else None
    batches = BatchWriter(table, incoming, kind, overwrite, EventTime.of(schema))
    query = started(writer.foreachBatch(_batch_function(batches, checkpoint)))
    _trace(query, table, query_name)
    return query


def _trace(query: StreamingQuery, table: Table, name: str | None) -> None:
    """Tells lineage of the query from its start to its end. What a DataFrame reads nobody can ask it."""

    def job() -> Job:
        title = f"stream.{table.name}" + (f".{name}" if name else "")
        return Job(title, "STREAM", lambda: [], lambda: [table_dataset(table)], is_stream=True)

    run = begun(job)
    if run is not None:
        threading.Thread(target=_tell_end, args=(query, run), name="lakebed-lineage-of-query", daemon=True).start()


def _tell_end(query: StreamingQuery, run: Run) -> None:
    try:
        query.awaitTermination()
    except Exception as error:  # noqa: BLE001 - whatever ended the query: it is told, and raised where it is waited for
        run.fail(cause_of(error) or error)
    else:
        run.complete()


def _row_kind_column(table: Table, names: list[str]) -> str | None:
    """The column of a stream that holds row kinds, unless another one is named."""
    return _ROW_KIND if _ROW_KIND in names and _ROW_KIND not in table.schema.field_names else None


def _batch_function(batches: BatchWriter, checkpoint: str) -> Callable[[DataFrame, int], None]:
    query_id: str | None = None

    def write_batch(frame: DataFrame, batch_id: int) -> None:
        nonlocal query_id
        if query_id is None:
            query_id = query_id_of(frame.sparkSession, checkpoint)
        with batch_errors(batch_id):
            batches.write(frame, query_id, batch_id)

    return write_batch


def chosen_trigger(given: dict[str, Any], options: Options) -> dict[str, Any]:
    """When micro-batches begin, by what the caller asks for and what the options of the sink allow.

    Rows wait for their commit until the next trigger, so the longest time they may wait is the longest interval. In
    write mode `batch` there is one commit at the end: one trigger, for all there is.
    """
    if options[WRITE_MODE] == "batch":
        if given.get("processingTime") is not None:
            raise InvalidOption(
                f"`{WRITE_MODE.key}` = `batch` commits once, at the end, and a query with an interval has none",
                hint='leave the trigger out or pass {"availableNow": True}, or set `write-mode` to `stream`',
            )
        return {"once": True}
    longest_ms = options[SINK_ROLLING_POLICY_ROLLOVER_INTERVAL]
    if longest_ms is None or (given and "processingTime" not in given):
        return given
    if given and parse_duration(str(given["processingTime"])) <= longest_ms:
        return given
    return {"processingTime": f"{longest_ms} milliseconds"}
