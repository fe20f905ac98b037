"""Brings the rows of a write that clusters to the tasks that write them: each task gets one stretch of the order.

The rows are looked at once before, as Spark does for its own ranges: tasks tell codes of some of their rows, from which
the driver learns the order (`write/row_order`). Few rows go to one task, so that they do not make many small files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf

from lakebed.definition.context import TableContext
from lakebed.options import ZORDER_VAR_LENGTH_CONTRIBUTION
from lakebed.spark.filters import quoted
from lakebed.spark.late_workers import until_workers_come
from lakebed.spark.session import prepare_worker
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import DataField
from lakebed.write.clustering import Clustering
from lakebed.write.row_order import RowOrder, value_codes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_SAMPLES = 20_000
"""Rows that a task tells of."""
_LEAST_TASK_ROWS = 100_000
_STRETCH = "_lakebed_stretch"
_EVERY = "every"


def in_stretches(context: TableContext, frame: DataFrame, clustering: Clustering, most_tasks: int) -> DataFrame:
    """The frame with each stretch of the order in one partition."""
    fields = tuple(context.schema.fields_of(clustering.columns))
    text_bytes = context.options[ZORDER_VAR_LENGTH_CONTRIBUTION]
    samples = _samples(frame, fields, text_bytes)
    told = [(sample, every) for sample in samples if len(every := sample.column(_EVERY).to_numpy())]
    row_count = int(sum(every.sum() for _, every in told))
    tasks = min(most_tasks, -(-row_count // _LEAST_TASK_ROWS))
    if tasks <= 1:
        return frame.coalesce(1) if row_count else frame
    # Rows that stand for fewer than others do are thinned out.
    most = max(int(every[0]) for _, every in told)
    codes = [
        np.concatenate([sample.column(at).to_numpy()[:: most // int(every[0])] for sample, every in told])
        for at in range(len(fields))
    ]
    order = RowOrder.of_codes(codes, context.options, clustering.strategy, clustering.columns, tasks)

    @sf.arrow_udf("int")  # type: ignore[untyped-decorator]
    def stretch(*columns: pa.Array) -> pa.Array:
        prepare_worker()
        typed = _typed(columns, fields)
        if typed is None:
            return pa.array(np.zeros(len(columns[0]), dtype=np.int32))
        rows = pa.RecordBatch.from_arrays(typed, [field.name for field in fields])
        return pa.array(order.stretch_of(rows).astype(np.int32))

    columns = [quoted(name) for name in frame.columns]
    numbered = frame.withColumn(_STRETCH, stretch(*(quoted(field.name) for field in fields)))
    return numbered.repartitionById(tasks, sf.col(_STRETCH)).select(*columns)


def _samples(frame: DataFrame, fields: tuple[DataField, ...], text_bytes: int) -> list[pa.RecordBatch]:
    """Codes of some rows of each partition, and how many rows each stands for."""

    def sampled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        step, kept = 1, np.empty((len(fields), 0), np.int64)
        position = 0
        for batch in batches:
            typed = _typed(batch.columns, fields)
            if typed is not None:
                first = -position % step
                codes = np.stack([value_codes(column, text_bytes)[first::step] for column in typed])
                kept = np.concatenate([kept, codes], axis=1)
            position += batch.num_rows
            while kept.shape[1] > 2 * _MOST_SAMPLES:
                step, kept = step * 2, kept[:, ::2]
        told = pa.RecordBatch.from_arrays(
            [*(pa.array(column) for column in kept), pa.array(np.full(kept.shape[1], step, np.int64))],
            [*(str(at) for at in range(len(fields))), _EVERY],
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, told.schema) as writer:
            writer.write_batch(told)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["told"])

    told = frame.select(*(quoted(field.name) for field in fields)).mapInArrow(sampled, "told binary")
    answers = until_workers_come(told.collect)
    return [batch for row in answers for batch in pa.ipc.open_stream(bytes(row[0]))]


def _typed(columns: list[pa.Array] | tuple[pa.Array, ...], fields: tuple[DataField, ...]) -> list[pa.Array] | None:
    """Columns of the table's types; None for values that do not fit, of which the task that writes them will tell."""
    try:
        return [pc.cast(column, to_arrow_type(field.type)) for column, field in zip(columns, fields, strict=True)]
    except (pa.ArrowException, ValueError):
        return None


__all__ = ["in_stretches"]
