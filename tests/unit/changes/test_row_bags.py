"""Differences of tables without a key: equal rows cancel out, however files were replaced or rows marked."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakebed
from lakebed.changes import row_bags

_names = itertools.count()
COLUMNS = {"v": "INT", "s": "STRING", "d": "DOUBLE", "a": "ARRAY<INT>", "m": "MAP<STRING, INT>", "r": "ROW<x INT>"}
TABLES: dict[str, dict[str, Any]] = {
    "no buckets": {},
    "marks rows": {"deletion-vectors.enabled": "true"},
    "buckets": {"bucket": "2", "bucket-key": "v"},
    "ids": {"row-tracking.enabled": "true"},
}
_STEP = st.lists(st.integers(0, 3), min_size=1, max_size=6) | st.sampled_from(
    ["compact", "delete 1", "delete 2", "overwrite"]
)


def _rows(values: list[int]) -> pa.Table:
    schema = lakebed.connect("memory://bags").create_table(f"s{next(_names)}", COLUMNS).arrow_schema
    cells = [
        {"v": v, "s": "x" * 9 * v, "d": v / 2, "a": [v, None], "m": [("k", v)], "r": {"x": v}} if v else {"v": 0}
        for v in values
    ]
    return pa.Table.from_pylist(cells, schema=schema)


def _bag(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr({name: cell for name, cell in row.items() if name != "rowkind"}) for row in rows)


@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=12, deadline=None)
@given(steps=st.lists(_STEP, min_size=1, max_size=7), at_once=st.sampled_from([1 << 20, 5]), data=st.data())
def test_what_is_told_is_what_differs(kind: str, steps: list[Any], at_once: int, data: st.DataObject) -> None:
    """Rows told as gone or new are those that one state has more often than the other, and no others."""
    table = lakebed.connect(f"memory://bags-{next(_names)}").create_table("t", COLUMNS, options=TABLES[kind])
    table.write(_rows([0, 1, 1, 2, 3]))
    for step in steps:
        if step == "compact":
            table.compact(full=True)
        elif step == "overwrite":
            table.write(_rows([1, 2]), overwrite=True)
        elif isinstance(step, str):
            table.delete_where([("v", "==", int(step[-1]))])
        else:
            table.write(_rows(step))
    states = [snapshot.id for snapshot in table.snapshots()]
    before, after = (data.draw(st.sampled_from([0, *states])) for _ in range(2))
    old, new = (_bag(table.at(snapshot=each).to_arrow().to_pylist()) if each else Counter() for each in (before, after))
    with mock.patch.object(row_bags, "_ROWS_AT_ONCE", at_once):
        told = table.diff(before, after).to_pylist()
    assert {row["rowkind"] for row in told} <= {"+I", "-D"}
    assert _bag([row for row in told if row["rowkind"] == "+I"]) == new - old
    assert _bag([row for row in told if row["rowkind"] == "-D"]) == old - new
