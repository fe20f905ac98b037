"""Materialized tables over values that look alike to the engine that computes them, and are two in a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.views.judging import difference, folded

import lakebed
from lakebed.lake import Lake


def _lake(path: Path, columns: dict[str, str], key: str) -> Lake:
    lake = lakebed.connect(str(path))
    lake.create_table("t", columns, primary_key=[key], options={"bucket": "1", "changelog-producer": "lookup"})
    return lake


def _right(lake: Lake, name: str, query: str) -> None:
    done = lake.refresh(name)
    assert done.way == "incremental", done
    assert difference(lake, name, query) is None
    assert folded(lake, name) is None


def test_a_group_of_zeros_of_either_sign(tmp_path: Path) -> None:
    """A group is found again by its key, whichever zero the row has that came or went."""
    lake = _lake(tmp_path, {"id": "INT NOT NULL", "g": "DOUBLE", "v": "INT"}, "id")
    lake["t"].write([{"id": 1, "g": -0.0, "v": 5}, {"id": 2, "g": 1.0, "v": 5}])
    query = "SELECT g, max(v) AS m FROM t GROUP BY g"
    lake.materialize("v", query, policy="incremental")
    lake["t"].write([{"id": 1, "g": -0.0, "v": 7}])
    _right(lake, "v", query)
    lake["t"].write([{"id": 1, "g": -0.0, "v": 7, "kind": "-D"}], row_kind="kind")
    _right(lake, "v", query)


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT", "TIMESTAMP(9)"])
def test_keys_that_are_one_value_to_a_query(tmp_path: Path, kind: str) -> None:
    """Zeros of two signs, and moments less than a microsecond apart, are rows of their own that look alike."""
    lake = _lake(tmp_path, {"k": f"{kind} NOT NULL", "g": "INT", "v": "INT"}, "k")
    arrow = {"DOUBLE": pa.float64(), "FLOAT": pa.float32()}.get(kind, pa.timestamp("ns"))
    low, high = (1_000_000_001, 1_000_000_002) if kind == "TIMESTAMP(9)" else (0.0, -0.0)
    queries = {
        "rows": "SELECT k, v FROM t",
        "pairs": "SELECT a.v, b.v AS w FROM t a JOIN t b ON a.k = b.k",
        "places": "SELECT v, rank() OVER (PARTITION BY g ORDER BY v) AS r FROM t",
        "nested": "SELECT m, count(*) AS n FROM (SELECT g, max(v) AS m FROM t GROUP BY g) GROUP BY m",
    }

    def write(*rows: tuple[Any, int]) -> None:
        keys, values = pa.array([key for key, _ in rows], arrow), pa.array([v for _, v in rows], pa.int32())
        ones = pa.array([1] * len(rows), pa.int32())
        lake["t"].write(pa.table({"k": keys, "g": ones, "v": values}))

    write((low, 50), (high, 5))
    for name, query in queries.items():
        lake.materialize(name, query, policy="incremental")
    for value in (60, 40):
        write((high, value))
        for name, query in queries.items():
            _right(lake, name, query)
