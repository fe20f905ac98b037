"""`record-level.expire-time`: compaction drops rows that are too old."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import InvalidOption

DAY_S = 86_400
TYPES = {
    "INT": lambda seconds: pa.array(seconds, pa.int32()),
    "BIGINT": lambda seconds: pa.array(seconds, pa.int64()),
    "BIGINT (milliseconds)": lambda seconds: pa.array([s and s * 1000 for s in seconds], pa.int64()),
    "TIMESTAMP(3)": lambda seconds: pa.array([s and s * 1000 for s in seconds], pa.timestamp("ms")),
    "TIMESTAMP(9)": lambda seconds: pa.array([s and s * 10**9 for s in seconds], pa.timestamp("ns")),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": lambda seconds: pa.array(
        [s and s * 10**6 for s in seconds], pa.timestamp("us", "UTC")
    ),
}


def _table(at: str, **options: object) -> lakebed.Table:
    lake = lakebed.connect(f"memory://expiry-{np.random.default_rng().integers(1 << 60)}")
    expiry = {"record-level.expire-time": "1 d", "record-level.time-field": "at"}
    columns = {"k": "INT NOT NULL", "at": at.partition(" (")[0]}
    return lake.create_table("t", columns, primary_key=["k"], options={"bucket": 1, **expiry, **options})


def _keys(table: lakebed.Table) -> list[int]:
    return sorted(table.to_arrow()["k"].to_pylist())


@pytest.mark.parametrize("at", TYPES)
def test_old_rows_go_with_compaction(at: str) -> None:
    """Reads show old rows until a compaction; rows without a time and young ones stay, for every type of time."""
    now = int(time.time())
    table = _table(at)
    times: list[Any] = [now - 2 * DAY_S, None, now - DAY_S + 600, now + DAY_S]
    table.write(pa.table({"k": pa.array([1, 2, 3, 4], pa.int32()), "at": TYPES[at](times)}))
    assert _keys(table) == [1, 2, 3, 4]
    table.compact(full=True)
    assert _keys(table) == [2, 3, 4]
    assert table.compact(full=True) is None


def test_files_at_the_top_are_rewritten_once_rows_are_too_old() -> None:
    """A full compaction with nothing else to do still rewrites the files that hold old rows, and only these."""
    now = int(time.time())
    table = _table("INT", **{"target-file-size": "1 b"})
    for key, age in ((1, 2 * DAY_S), (2, 0)):
        table.write(pa.table({"k": pa.array([key], pa.int32()), "at": pa.array([now - age], pa.int32())}))
    forgetful = table.with_options({"record-level.expire-time": "30 d"})
    forgetful.compact(full=True)
    before = {file.file_name for file in table.scan().files}
    assert _keys(table) == [1, 2]
    assert len(before) == 2
    assert table.compact(full=True) is not None
    assert _keys(table) == [2]
    assert {file.file_name for file in table.scan().files} < before


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"record-level.expire-time": "1 d"}, "`record-level.time-field` is not"),
        ({"record-level.time-field": "at"}, "`record-level.expire-time` is not"),
        ({"record-level.expire-time": "1 d", "record-level.time-field": "att"}, "`at`"),
        ({"record-level.expire-time": "1 d", "record-level.time-field": "s"}, "no time"),
    ],
)
def test_refusals(warehouse: Warehouse, options: dict[str, str], text: str) -> None:
    """One option without the other, an unknown column and a column of text are refused when the table is made."""
    columns = {"k": "INT NOT NULL", "at": "INT", "s": "STRING"}
    with warehouse.refuses(InvalidOption, text):
        warehouse.table("t", columns, primary_key=["k"], options={"bucket": 1, **options})


def test_needs_a_key(warehouse: Warehouse) -> None:
    """Tables without a key are refused: nothing would ever drop their rows."""
    options = {"record-level.expire-time": "1 d", "record-level.time-field": "at"}
    with warehouse.refuses(InvalidOption, "primary key"):
        warehouse.table("t", {"at": "INT"}, options=options)
