"""Blocks of rows that are put together before they are written."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakebed.cdc.batch import job as spark_batch


def _batches(*texts: str, name: str = "v") -> list[pa.RecordBatch]:
    return [pa.record_batch({name: pa.array([text] * 10)}) for text in texts]


@pytest.mark.parametrize(("rows", "size_bytes", "expected"), [(30, 1 << 20, [30, 20]), (1000, 300, [20, 20, 10])])
def test_blocks_are_put_together_up_to_a_size(
    monkeypatch: pytest.MonkeyPatch, rows: int, size_bytes: int, expected: list[int]
) -> None:
    """By rows or by bytes, whichever comes first; rows keep their order."""
    monkeypatch.setattr(spark_batch, "_GATHERED_ROWS", rows)
    monkeypatch.setattr(spark_batch, "_GATHERED_BYTES", size_bytes)
    given = _batches(*(character * 8 for character in "abcde"))
    found = list(spark_batch._gathered(iter(given)))
    assert [batch.num_rows for batch in found] == expected
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches(given))


def test_blocks_of_different_columns_stay_apart() -> None:
    """What has other columns begins a new batch."""
    found = list(spark_batch._gathered(iter([*_batches("a", "b"), *_batches("c", name="w")])))
    assert [(batch.schema.names, batch.num_rows) for batch in found] == [(["v"], 20), (["w"], 10)]
