"""Runs compactions as Spark jobs: which files to merge is decided on the driver, merging them is the tasks' work."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebed.commit.message import CommitMessage
from lakebed.commit.written_files import WrittenFiles
from lakebed.spark.process import prepare_worker
from lakebed.table.compact import PickedBucket, RunPlans, compacted_bucket
from lakebed.table.compaction_files import CompactionFiles
from lakebed.table.context import TableContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HERE_BYTES = 16 << 20
"""So little is merged faster here than a job starts."""


def spark_plans(session: Callable[[], SparkSession]) -> RunPlans:
    """Runs plans of compactions on a session, which is asked for only then; None for plans that are better run here."""

    def run(context: TableContext, picked: Sequence[PickedBucket], base: int) -> list[CommitMessage] | None:
        if sum(file.size_bytes for item in picked for file in item.plan.files) <= _HERE_BYTES:
            return None
        spark = session()
        plans = list(picked)

        def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            prepare_worker()
            fileio, written = WrittenFiles.watch(context.fileio)
            maker = CompactionFiles(context, fileio)
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    try:
                        message = compacted_bucket(maker, plans[number], base, threads=1)
                    except BaseException:
                        written.take_back()
                        raise
                    text = None if message is None else json.dumps(message.to_json())
                    yield pa.record_batch({"message": pa.array([text], pa.string())})

        rows = spark.range(0, len(plans), 1, len(plans)).mapInArrow(merge, "message string").collect()
        return [CommitMessage.from_json(json.loads(row[0])) for row in rows if row[0] is not None]

    return run
