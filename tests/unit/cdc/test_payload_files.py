"""Payloads in files beside the checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakebed.cdc.envelope import (
    ROWS,
    STREAM,
    TRUNCATE,
    Chunk,
    SourceName,
    chunks_from_arrow,
    chunks_to_arrow,
    encode_rows,
    payload_rows,
    size_at,
)
from lakebed.cdc.payloads import INLINE_BYTES, PayloadFile

NAME = SourceName("shop", "public", "orders")


def chunk(ordinal: int, rows: int, *, lacks_values: bool = False) -> Chunk:
    """A chunk of so many rows, the last of which was made a second later than the others."""
    times = np.full(rows, 1_000, np.int64)
    times[-1] = 2_000
    marks = {"id": pa.array(np.zeros(rows, bool))} if lacks_values else {}
    payload = payload_rows(
        np.zeros(rows, np.int8),
        pa.array(times).cast(pa.timestamp("ms", tz="UTC")),
        {"id": pa.array(range(rows))},
        marks,
    )
    return Chunk(ordinal, NAME, ROWS, "{}", STREAM, encode_rows(payload))


def placed(path: Path, *chunks: Chunk) -> list[Chunk]:
    """What becomes of chunks on their way through a file."""
    batches = PayloadFile(str(path)).through(chunks_to_arrow([one]) for one in chunks)
    return [one for batch in batches for one in chunks_from_arrow(batch)]


def test_large_payloads_go_to_the_file_and_small_ones_stay(tmp_path: Path) -> None:
    """Every chunk leads to its own rows again, wherever they lie."""
    given = [chunk(1, 10), chunk(2, 20_000), chunk(3, 30_000, lacks_values=True)]
    small, *large = placed(tmp_path / "spool" / "file", *given)
    assert small.payload == given[0].payload
    assert small.place is None
    for one, before in zip(large, given[1:], strict=True):
        assert one.payload is None
        assert one.place is not None
        assert size_at(one.place) == len(before.payload or b"") > INLINE_BYTES
        assert one.rows() == before.rows()


def test_counts_are_told_without_a_second_look(tmp_path: Path) -> None:
    """How many rows there are, how recent they are and whether values are missing comes with each chunk."""
    found = placed(tmp_path / "file", chunk(1, 10), chunk(2, 20_000, lacks_values=True))
    assert [(one.count, one.latest_ms, one.lacks_values) for one in found] == [
        (10, 2_000, False),
        (20_000, 2_000, True),
    ]


def test_without_large_payloads_there_is_no_file(tmp_path: Path) -> None:
    """A TRUNCATE and a few rows leave nothing behind."""
    emptied = Chunk(1, NAME, TRUNCATE, "{}", STREAM)
    assert placed(tmp_path / "file", emptied, chunk(2, 1))[0] == emptied
    assert not list(tmp_path.iterdir())


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    """What was written before a reader failed is removed."""

    def failing():  # type: ignore[no-untyped-def]
        yield chunks_to_arrow([chunk(1, 20_000)])
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        list(PayloadFile(str(tmp_path / "file")).through(failing()))
    assert not list(tmp_path.iterdir())
