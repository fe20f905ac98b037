"""Long VALUES of plain literals: read without a syntax tree, with the same outcome."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.sql.parse import parse
from lakebed.sql.parse import rows as plain_rows
from lakebed.sql.statements import Insert, PlainRows, Sql

LITERALS = [
    "1, 'a', 1.5, DATE '2024-02-29', TRUE, TIMESTAMP '2024-01-01 10:00:00.5'",
    "-2, 'it''s \\n', -2.25, DATE '2024-1-2', false, TIMESTAMP '2024-01-01'",
    "NULL, null, NULL, NULL, NULL, NULL",
    "DEFAULT, '', 3, '2024-03-01', DEFAULT, '2024-01-01 00:00:00'",
    '2147483648, "two", 1e3, DATE "2024-01-01", TRUE, NULL',
]
COLUMNS = {"i": "BIGINT", "s": "STRING", "d": "DECIMAL(10, 2)", "day": "DATE", "b": "BOOLEAN", "t": "TIMESTAMP(3)"}


def _rows(tmp_path: Path, name: str, text: str) -> list[dict[str, Any]]:
    lake = lakebed.connect(tmp_path)
    lake.create_table(name, COLUMNS)
    lake.sql(f"INSERT INTO {name} VALUES {text}")
    found: list[dict[str, Any]] = lake.table(name).to_arrow().to_pylist()
    return found


def test_both_ways_give_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers, texts with quotes, dates, times, booleans, NULL and DEFAULT are what a tree makes of them."""
    text = ", ".join(f"({literals})" for literals in LITERALS)
    monkeypatch.setattr(plain_rows, "_MANY_WORDS", 0)
    assert isinstance(_source(f"INSERT INTO t VALUES {text}"), PlainRows)
    plain = _rows(tmp_path, "plain", text)
    monkeypatch.setattr(plain_rows, "_MANY_WORDS", 1 << 30)
    assert isinstance(_source(f"INSERT INTO t VALUES {text}"), Sql)
    assert plain == _rows(tmp_path, "tree", text)
    assert plain[1]["s"] == "it's \n"


def test_nested_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays, maps and rows within rows, and rows that say that they are."""
    text = "ROW(1, ARRAY[1, NULL], MAP['a', -1], ROW(2, 'x')), ROW(2, ARRAY[3], MAP['b', 2, 'c', 3], ROW(NULL, 'y'))"
    found = []
    for number, words in enumerate((0, 1 << 30)):
        monkeypatch.setattr(plain_rows, "_MANY_WORDS", words)
        lake = lakebed.connect(tmp_path / str(number))
        lake.sql("CREATE TABLE t (k INT, a ARRAY<INT>, m MAP<STRING, INT>, r ROW<x INT, y STRING>)")
        assert isinstance(_source(f"INSERT INTO t VALUES {text}"), Sql if number else PlainRows)
        lake.sql(f"INSERT INTO t VALUES {text}")
        found.append(lake.table("t").to_arrow().to_pylist())
    assert found[0] == found[1]
    assert found[0][1] == {"k": 2, "a": [3], "m": [("b", 2), ("c", 3)], "r": {"x": None, "y": "y"}}


def _source(text: str) -> Sql | PlainRows:
    statement = parse(text)[0]
    assert isinstance(statement, Insert)
    return statement.source


@pytest.mark.parametrize(
    "rows",
    [
        "(1 + 1)",
        "(f(1))",
        "(ARRAY[])",
        "(ARRAY[1 + 1])",
        "(MAP['a', 1, 'a', 2])",
        "(3L)",
        "('a' 'b')",
        "(X'00')",
        "(- 'a')",
        "(x)",
        "(1) AS v(a)",
        "(1) LIMIT 1",
    ],
)
def test_anything_else_is_read_as_a_query(rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Expressions, functions, aliases and whatever follows the rows are left to the parser."""
    monkeypatch.setattr(plain_rows, "_MANY_WORDS", 0)
    assert isinstance(_source(f"INSERT INTO t VALUES (1), {rows}"), Sql)


def test_many_rows_are_quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long INSERT takes time for its words, not for a tree of them: many times as quick as with one."""
    lake = lakebed.connect(tmp_path)
    lake.sql("CREATE TABLE t (id BIGINT, name STRING, v DOUBLE, d DATE)")

    def seconds(count: int) -> float:
        rows = ", ".join(f"({i}, 'name {i}', {i}.5, DATE '2024-01-{1 + i % 28:02d}')" for i in range(count))
        started = time.thread_time()
        lake.sql(f"INSERT INTO t VALUES {rows}")
        return time.thread_time() - started

    quick = min(seconds(2500), seconds(2500))
    monkeypatch.setattr(plain_rows, "_MANY_WORDS", sys.maxsize)
    assert quick < seconds(2500) / 2
    assert lake.table("t").to_arrow().num_rows == 7500
