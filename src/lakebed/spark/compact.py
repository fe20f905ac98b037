"""Runs compactions as Spark jobs: which files to merge is decided on the driver, merging them is the tasks' work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lakebed.commit.message import CommitMessage
from lakebed.fileio.base import FileIO
from lakebed.spark.tasks import run_pieces
from lakebed.table.compact import PickedBucket, RunPlans, compacted_bucket
from lakebed.table.compaction_files import CompactionFiles
from lakebed.table.context import TableContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_plans(session: Callable[[], SparkSession]) -> RunPlans:
    """Runs plans of compactions on a session, which is asked for only then; None for plans that are better run here."""
    run_elsewhere = run_pieces(session)

    def run(context: TableContext, picked: Sequence[PickedBucket], base: int) -> list[CommitMessage] | None:
        def merge(context: TableContext, item: PickedBucket, fileio: FileIO) -> list[CommitMessage]:
            message = compacted_bucket(CompactionFiles(context, fileio), item, base, threads=1)
            return [] if message is None else [message]

        size_bytes = sum(file.size_bytes for item in picked for file in item.plan.files)
        return run_elsewhere(context, picked, size_bytes, merge)

    return run
