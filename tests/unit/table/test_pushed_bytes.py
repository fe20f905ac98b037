"""What queries of DuckDB and polars push into a read saves bytes, not only rows."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.fileio.local import LocalFileIO

ROWS = 2_000_000


class Counter:
    """Counts bytes that are read from data files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read_bytes = 0
        counter = self

        class Counted(io.FileIO):
            def readinto(self, buffer: Any) -> int:
                got = super().readinto(buffer)
                counter.read_bytes += got
                return got

            def read(self, size: int | None = -1) -> bytes:
                got = super().read(-1 if size is None else size)
                counter.read_bytes += len(got)
                return got

        monkeypatch.setattr(LocalFileIO, "open_input", lambda _, path: pa.PythonFile(Counted(path, "rb"), mode="r"))

    def taken(self) -> int:
        """Bytes since the last call."""
        found, self.read_bytes = self.read_bytes, 0
        return found


@pytest.fixture(params=["keyed", "appended"])
def table(request: pytest.FixtureRequest, disk: Warehouse) -> lakebed.Table:
    """A table of two million rows in four commits, each with keys of its own."""
    keyed: dict[str, Any] = {"primary_key": ["k"], "options": {"bucket": "1", "write-only": "true"}}
    columns = {"k": "BIGINT NOT NULL", "v": "BIGINT", "f": "DOUBLE", "s": "STRING"}
    made = disk.table("t", columns, **(keyed if request.param == "keyed" else {}))
    chance = np.random.default_rng(7)
    for start in range(0, ROWS, ROWS // 4):
        keys = np.arange(start, start + ROWS // 4)
        texts = pa.array(chance.integers(0, 1 << 40, len(keys))).cast(pa.string())
        made.write(pa.table({"k": keys, "v": keys % 1000, "f": chance.random(len(keys)), "s": texts}))
    return made


def test_fewer_bytes_are_read(table: lakebed.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter and two columns of a table of two million rows read a fraction of its bytes, and find the same rows."""
    counter = Counter(monkeypatch)
    everything = table.to_arrow()
    whole = counter.taken()
    assert whole > 10_000_000
    kept = everything.filter((pa.compute.field("k") >= 600_000) & (pa.compute.field("k") < 600_500))
    wanted = sorted(zip(kept["k"].to_pylist(), kept["v"].to_pylist(), strict=True))

    relation = table.to_duckdb().filter("k >= 600000 AND k < 600500").select("k, v").order("k")
    assert relation.fetchall() == wanted
    assert 0 < counter.taken() < whole / 8

    frame = table.scan_polars().filter(pl.col("k") >= 600_000, pl.col("k") < 600_500).select("k", "v")
    assert sorted(frame.collect().iter_rows()) == wanted
    assert 0 < counter.taken() < whole / 8

    assert table.to_duckdb().aggregate("sum(v)").fetchall() == [(sum(range(1000)) * (ROWS // 1000),)]
    assert 0 < counter.taken() < whole / 2
