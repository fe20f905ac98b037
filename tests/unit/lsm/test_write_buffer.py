"""The buffer in front of level 0."""

from __future__ import annotations

import pyarrow as pa

from lakebed.lsm.write_buffer import WriteBuffer
from lakebed.merge.base import MergeOrder
from lakebed.merge.deduplicate import Deduplicate


def rows(*keys: int) -> tuple[pa.RecordBatch, pa.Array]:
    """Added rows with these keys."""
    return pa.RecordBatch.from_pydict({"k": pa.array(keys, pa.int64())}), pa.array([0] * len(keys), pa.int8())


def buffer(max_size_bytes: int = 1 << 20, start: int = 0) -> WriteBuffer:
    """An empty buffer."""
    return WriteBuffer(MergeOrder(("k",)), Deduplicate(), max_size_bytes, start)


def numbers(batch: pa.RecordBatch | None) -> list[tuple[int, int]]:
    """Key and number of each row."""
    assert batch is not None
    return [(row["k"], row["_SEQUENCE_NUMBER"]) for row in batch.to_pylist()]


def test_rows_come_out_sorted_and_folded_with_numbers_in_arrival_order() -> None:
    """Numbers go on across batches from the start that was given."""
    filled = buffer(start=40)
    filled.add(*rows(3, 1))
    filled.add(*rows(1, 2))
    assert numbers(filled.drain()) == [(1, 42), (2, 43), (3, 40)]


def test_numbers_go_on_after_a_drain() -> None:
    """A second flush of the same writer is newer than the first."""
    filled = buffer()
    filled.add(*rows(1))
    filled.drain()
    filled.add(*rows(1))
    assert numbers(filled.drain()) == [(1, 1)]


def test_it_is_full_from_its_size_on_and_empty_after_a_drain() -> None:
    """Size counts the rows with their system columns; draining starts anew."""
    small = buffer(max_size_bytes=17 * 2)
    small.add(*rows(1))
    assert not small.is_full
    small.add(*rows(2))
    assert small.is_full
    assert small.size_bytes == 34
    small.drain()
    assert small.size_bytes == 0
    assert not small.is_full
    assert small.drain() is None
