"""Flink's windows over a table: each row is in the windows that a plain model puts it in."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.errors import InvalidArgument, LakebedError, Unsupported

_EPOCH = dt.datetime(1970, 1, 1)
Row = tuple[int, str, dt.datetime | None]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Times around 1970 and today, some on the edge of a window, some missing."""
    pick = random.Random(7)
    found: list[Row] = []
    for number in range(300):
        base = pick.choice([_EPOCH, dt.datetime(2024, 3, 31), dt.datetime(2024, 2, 29, 12)])
        at = base + dt.timedelta(microseconds=pick.choice([0, 1, -1, pick.randrange(-(10**11), 10**11)]))
        at = at.replace(second=0, microsecond=0) if pick.random() < 0.3 else at
        found.append((number, pick.choice("ab"), None if pick.random() < 0.05 else at))
    return found


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> lakebed.Lake:
    """With these rows in table `t`."""
    made = lakebed.connect(tmp_path_factory.mktemp("windows"))
    made.create_table("t", {"id": "INT NOT NULL", "k": "STRING", "ts": "TIMESTAMP(6)", "window": "INT"})
    made.table("t").write([{"id": number, "k": key, "ts": at, "window": None} for number, key, at in rows])
    return made


def _found(lake: lakebed.Lake, window: str) -> list[tuple[Any, ...]]:
    text = f"SELECT id, window_start, window_end, window_time FROM TABLE({window}) AS w"
    return sorted(tuple(row) for row in lake.query(text, engine="duckdb").fetchall())


def _told(windows: list[tuple[int, dt.datetime, dt.datetime]]) -> list[tuple[Any, ...]]:
    return sorted((number, start, end, end - dt.timedelta(milliseconds=1)) for number, start, end in windows)


def _start(at: dt.datetime, size: dt.timedelta, offset: dt.timedelta = dt.timedelta()) -> dt.datetime:
    return at - (at - _EPOCH - offset) % size


@pytest.mark.parametrize("minutes", [1, 7, 60, 24 * 60, 7 * 24 * 60])
@pytest.mark.parametrize("offset", [0, 3, -3])
def test_tumble(lake: lakebed.Lake, rows: list[Row], minutes: int, offset: int) -> None:
    """Windows side by side, counted from 1970, moved by an offset."""
    size, moved = dt.timedelta(minutes=minutes), dt.timedelta(minutes=offset)
    text = f"TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '{minutes}' MINUTE, INTERVAL '{offset}' MINUTES)"
    expected = [(n, _start(at, size, moved), _start(at, size, moved) + size) for n, _, at in rows if at is not None]
    assert _found(lake, text) == _told(expected)


@pytest.mark.parametrize(("slide", "size"), [(5, 5), (5, 20), (60, 24 * 60)])
def test_hop(lake: lakebed.Lake, rows: list[Row], slide: int, size: int) -> None:
    """Windows that overlap: a row is in size / slide of them."""
    step, length = dt.timedelta(minutes=slide), dt.timedelta(minutes=size)
    text = f"HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '{slide}' MINUTE, INTERVAL '{size}' MINUTE)"
    expected = [
        (n, _start(at, step) - i * step, _start(at, step) - i * step + length)
        for n, _, at in rows
        if at is not None
        for i in range(size // slide)
    ]
    assert _found(lake, text) == _told(expected)


def test_cumulate(lake: lakebed.Lake, rows: list[Row]) -> None:
    """Windows that grow step by step up to their size."""
    step, size = dt.timedelta(hours=6), dt.timedelta(days=1)
    text = "CUMULATE(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), STEP => INTERVAL '6' HOUR, SIZE => INTERVAL '1' DAY)"
    expected = [
        (n, _start(at, size), _start(at, size) + i * step)
        for n, _, at in rows
        if at is not None
        for i in range(1, 5)
        if at < _start(at, size) + i * step
    ]
    assert _found(lake, text) == _told(expected)


@pytest.mark.parametrize("partition", ["", " PARTITION BY k", " PARTITION BY k, window"])
def test_session(lake: lakebed.Lake, rows: list[Row], partition: str) -> None:
    """Rows of a partition with less than the gap between them are together."""
    gap = dt.timedelta(minutes=45)
    expected: list[tuple[int, dt.datetime, dt.datetime]] = []
    for key in ("a", "b") if partition else ("ab",):
        ordered = sorted((at, n) for n, k, at in rows if at is not None and k in key)
        sessions: list[list[tuple[dt.datetime, int]]] = []
        for at, number in ordered:
            if sessions and at < sessions[-1][-1][0] + gap:
                sessions[-1].append((at, number))
            else:
                sessions.append([(at, number)])
        expected += [(n, each[0][0], each[-1][0] + gap) for each in sessions for _, n in each]
    assert _found(lake, f"SESSION(TABLE t{partition}, DESCRIPTOR(ts), INTERVAL '45' MINUTE)") == _told(expected)


def test_all_columns_are_there_once(lake: lakebed.Lake) -> None:
    """Those of the table, then those of the window, and none that was needed on the way."""
    for window in (
        "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY)",
        "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '2' DAY)",
        "CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '2' DAY)",
        "SESSION(TABLE `default`.`t`, DESCRIPTOR(`ts`), INTERVAL '1' DAY)",
    ):
        found = lake.query(f"SELECT * FROM TABLE({window})", engine="duckdb").arrow().column_names
        assert found == ["id", "k", "ts", "window", "window_start", "window_end", "window_time"]


@pytest.mark.parametrize(
    ("window", "kind", "message"),
    [
        ("TUMBLE(TABLE t, DESCRIPTOR(ts))", InvalidArgument, "its SIZE is missing"),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '0' DAY)", InvalidArgument, "not above zero"),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '0.5' SECOND)", Unsupported, "parts of a second"),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MONTH)", InvalidArgument, "not written like INTERVAL"),
        ("TUMBLE(TABLE t, ts, INTERVAL '1' DAY)", InvalidArgument, r"DESCRIPTOR\(column\)"),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY, WIDTH => 1)", InvalidArgument, "it has no WIDTH"),
        ("HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '2' DAY, INTERVAL '3' DAY)", InvalidArgument, "not a multiple"),
        ("HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '1' DAY)", InvalidArgument, "86,400 windows"),
        ("TUMBLE(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1' DAY)", InvalidArgument, "is for SESSION"),
        ("TUMBLE(TABLE nowhere, DESCRIPTOR(ts), INTERVAL '1' DAY)", LakebedError, "nowhere"),
        ("TUMBLE(TABLE t, DESCRIPTOR(nothing), INTERVAL '1' DAY)", LakebedError, "nothing"),
    ],
)
def test_mistakes_are_named(lake: lakebed.Lake, window: str, kind: type[LakebedError], message: str) -> None:
    """With the way it is written."""
    with pytest.raises(kind, match=message):
        lake.query(f"SELECT * FROM TABLE({window})", engine="duckdb").arrow()


def test_a_table_may_be_called_so(tmp_path: Path) -> None:
    """The words are no keywords."""
    lake = lakebed.connect(tmp_path)
    lake.sql("CREATE TABLE tumble (hop INT); INSERT INTO tumble VALUES (1)")
    assert lake.query("SELECT hop FROM tumble").fetchall() == [(1,)]
