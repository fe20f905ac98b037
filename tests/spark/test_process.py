"""What our tasks set in Spark's Python workers, and leave alone elsewhere."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lakebed.spark.session import prepare_worker


def test_a_worker_is_prepared_once(spark: Any) -> None:
    """A task finds Arrow's memory kept warm, and what was loaded before out of the garbage collector's way."""

    def tell(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        first = gc.get_freeze_count()
        prepare_worker()
        yield pa.record_batch(
            {"pool": [pa.default_memory_pool().backend_name], "count": [first], "again": [gc.get_freeze_count()]}
        )

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(tell, "pool string, count long, again long").collect()
    assert row["count"] > 1000
    assert row["again"] <= row["count"]
    wanted = "jemalloc" if "jemalloc" in pa.supported_memory_backends() else pa.default_memory_pool().backend_name
    assert row["pool"] == wanted


def test_other_processes_are_left_alone() -> None:
    """Nothing is frozen in a process that is not a worker, such as the driver."""
    before = gc.get_freeze_count()
    prepare_worker()
    assert gc.get_freeze_count() == before
