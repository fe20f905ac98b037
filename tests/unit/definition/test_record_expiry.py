"""`record-level.expire-time`: compaction drops rows that are too old."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.catalog.filesystem import FilesystemCatalog
from lakebed.clock import FixedClock, RandomIds
from lakebed.errors import InvalidOption
from lakebed.fileio import open_fileio
from lakebed.lake import Lake

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


@pytest.mark.parametrize("at", TYPES)
def test_a_time_that_never_comes(at: str) -> None:
    """Rows stay where they may grow older than the type of their time can tell."""
    table = _table(at, **{"record-level.expire-time": "1000000 d"})
    table.write(pa.table({"k": pa.array([1, 2], pa.int32()), "at": TYPES[at]([1, None])}))
    table.compact(full=True)
    assert _keys(table) == [1, 2]


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


# --- Compactions of one handle as time goes by: what has expired is asked anew by each ----------------------------

NOW_S = 1_700_000_000
LOOKUP = {"changelog-producer": "lookup"}
SUMS = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum", "fields.w.aggregate-function": "sum"}
ENGINES: dict[str, tuple[dict[str, str], tuple[int, int | None]]] = {
    "first-row": ({"merge-engine": "first-row"}, (2, None)),
    "first-row, told": ({"merge-engine": "first-row", **LOOKUP}, (2, None)),
    "aggregation": ({**SUMS, **LOOKUP}, (13, 7)),
    "aggregation, not told": ({**SUMS, "force-lookup": "true"}, (13, 7)),
    "aggregation, masked": ({**SUMS, **LOOKUP, "deletion-vectors.enabled": "true"}, (13, 7)),
    "deduplicate": (LOOKUP, (2, None)),
    "partial-update": ({"merge-engine": "partial-update", **LOOKUP}, (2, 7)),
}
"""Options, and what key 1 has come to at the end: its old row was replaced by a young one before it expired."""


def _aging(**options: str) -> tuple[lakebed.Table, FixedClock]:
    """A table whose time moves when it is told to, with rows that will expire in a minute.

    They are too many to be merged with a few new ones: compactions look them up.
    """
    clock = FixedClock(NOW_S * 1000)
    fileio, root = open_fileio(f"memory://aging-{np.random.default_rng().integers(1 << 60)}")
    expiry = {"record-level.expire-time": "1 d", "record-level.time-field": "at"}
    lasting = {"lookup.cache-file-retention": "1 d"}
    table = Lake(FilesystemCatalog(fileio, root, clock, RandomIds())).create_table(
        "t",
        {"k": "INT NOT NULL", "at": "INT", "v": "INT", "w": "INT"},
        primary_key=["k"],
        options={"bucket": "1", **expiry, **lasting, **options},
    )
    _write(table, list(range(1, 20_001)), NOW_S - DAY_S + 60, 10, 7)
    table.compact(full=True)
    return table, clock


def _write(table: lakebed.Table, keys: list[int], at: int, v: int, w: int | None = None) -> None:
    columns = {"k": keys, "at": [at] * len(keys), "v": [v] * len(keys), "w": [w] * len(keys)}
    table.write(pa.table({name: pa.array(values, pa.int32()) for name, values in columns.items()}))


def _values(table: lakebed.Table) -> dict[int, tuple[int, int | None]]:
    rows = table.to_arrow(filter=[("k", "<=", 4)])
    assert rows.num_rows == len(set(rows["k"].to_pylist()))
    return {row["k"]: (row["v"], row["w"]) for row in rows.to_pylist()}


def _names(table: lakebed.Table) -> set[str]:
    return {file.file_name for file in table.scan().files}


def _latest(table: lakebed.Table) -> int:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return snapshot.id


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_expire_after_a_lookup_are_not_found_by_the_next(engine: str) -> None:
    """What a handle has looked up before does not keep a row alive: it neither hides new rows nor merges with them."""
    options, first = ENGINES[engine]
    table, clock = _aging(**options)
    old = _names(table)
    _write(table, [1], NOW_S, 1)  # looks key 1 up among rows that are still young
    clock.sleep_ms(120_000)
    before = _latest(table)
    _write(table, [1, 2], NOW_S + 120, 2)
    assert old <= _names(table), "old rows were merged, not looked up"
    if "changelog-producer" in options:
        told = [(row["rowkind"], row["v"]) for row in table.changes(before).to_pylist() if row["k"] == 2]
        assert told == [("+I", 2)]
    table.compact(full=True)
    assert _values(table) == {1: first, 2: (2, None)}


@pytest.mark.parametrize("options", [LOOKUP, {"deletion-vectors.enabled": "true"}], ids=["lookup", "masked"])
def test_rows_that_had_expired_count_again_when_they_may_grow_older(options: dict[str, str]) -> None:
    """What had expired when a handle looked is found again once the table lets rows grow older."""
    table, clock = _aging(**SUMS, **options)
    old = _names(table)
    clock.sleep_ms(120_000)
    _write(table, [1], NOW_S + 120, 1)  # finds nothing: the old row has expired
    table.alter(lakebed.SetOption("record-level.expire-time", "2 d"))
    _write(table, [2], NOW_S + 120, 2)
    assert old <= _names(table), "old rows were merged, not looked up"
    table.compact(full=True)
    assert _values(table) == {1: (1, None), 2: (12, 7), 3: (10, 7), 4: (10, 7)}


@pytest.mark.parametrize("engine", ENGINES)
def test_lookups_show_what_reads_show(engine: str) -> None:
    """`lookup` finds old rows until a compaction drops them, whatever compactions of the same handle have looked up."""
    options, _ = ENGINES[engine]
    table, clock = _aging(**options)
    clock.sleep_ms(120_000)
    everything = list(range(1, 20_001))
    for _ in range(2):  # all rows of a file were asked for: the next time a local copy is made
        assert table.lookup(everything)["k"].to_pylist() == everything
    _write(table, [1, 2], NOW_S + 120, 2)
    assert table.lookup(everything)["k"].to_pylist() == everything
    assert sorted(_keys(table)) == everything, "a key is there twice"
    some = table.to_arrow(filter=[("k", "<", 4)]).sort_by("k")
    assert some["v"].to_pylist() == table.lookup([1, 2, 3])["v"].to_pylist()
    assert some["at"].to_pylist()[:2] == [NOW_S + 120] * 2
    assert not table.check(deep=True)
    table.compact(full=True)
    assert _values(table) == {1: (2, None), 2: (2, None)}
    assert table.lookup([1, 2, 3, 4])["v"].to_pylist() == [2, 2]
