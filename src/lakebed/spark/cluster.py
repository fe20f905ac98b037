"""What tasks on other machines must see: what the driver writes down for them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebed.clock import RandomIds
from lakebed.errors import InvalidArgument
from lakebed.fileio.base import FileIO
from lakebed.spark.late_workers import until_workers_come
from lakebed.spark.session import is_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOKS = 8
"""How many tasks look for a file: enough that they come to more than one machine where there are more."""


def check_seen_by_tasks(spark: SparkSession, fileio: FileIO, directory: str, what: str) -> None:
    """Raises if a file that is written here, in a directory, is not there for tasks."""
    if not is_cluster(spark):
        return
    marker = f"{directory}/seen-{RandomIds().new_id()}"
    fileio.make_directory(directory)
    fileio.write_bytes(marker, b"")

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            blind = [] if fileio.exists(marker) else [socket.gethostname()]
            yield pa.record_batch({"host": pa.array(blind, pa.string())})

    try:
        frame = spark.range(0, _LOOKS, 1, _LOOKS).mapInArrow(look, "host string")
        blind = sorted({row[0] for row in until_workers_come(frame.collect)})
    finally:
        fileio.delete(marker)
    if blind:
        raise InvalidArgument(
            f"{what} {directory} is not seen by Spark's tasks on {', '.join(blind)}",
            hint="choose a place that all machines of the cluster see: a shared directory, or a URL such as "
            "s3://bucket/path",
        )


__all__ = ["check_seen_by_tasks"]
