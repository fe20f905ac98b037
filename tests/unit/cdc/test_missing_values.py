"""Values that were not sent come from the row before, however long the way there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.cdc.rows.assemble import neutral_retracts, with_old_values, with_values
from lakebed.cdc.rows.shape import ShapedRows, state_rows
from lakebed.errors import InvalidData
from lakebed.types.logical import DataField, parse_type
from lakebed.types.row_kind import TEXTS, RowKind


def shaped(rows: list[tuple[str, int, str | None, bool]]) -> ShapedRows:
    """Rows of kind, key, value, and whether the value was not sent."""
    kinds = np.array([TEXTS.index(row[0]) for row in rows], np.int8)
    keys = pa.array([row[1] for row in rows], pa.int32())
    batch = pa.record_batch({"k": keys, "v": pa.array([row[2] for row in rows], pa.string())})
    marks = np.array([row[3] for row in rows], np.bool_)
    return ShapedRows(batch, kinds, {"v": marks} if marks.any() else {}, state_rows(batch, kinds, ("k",)))


def finder(state: dict[int, str | None]) -> Any:
    def find(keys: pa.RecordBatch) -> tuple[pa.Array, pa.Table]:
        asked = keys.column("k").to_pylist()
        hits = [key in state for key in asked]
        values = [state[key] for key in asked if key in state]
        return pa.array(hits, pa.bool_()), pa.table({"v": pa.array(values, pa.string())})

    return find


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "update", "unchanged", "delete", "move"]), st.integers(0, 4), st.integers(0, 4)
    ),
    max_size=25,
)


@given(_STEPS, st.dictionaries(st.integers(0, 4), st.sampled_from(["x", "y", None]), max_size=5))
@settings(deadline=None, max_examples=150)
def test_every_value_is_the_one_that_the_row_had(steps: list[Any], stored: dict[int, str | None]) -> None:
    """Random updates, deletes and changed keys: each row has what a row-by-row replay gives it."""
    state = dict(stored)
    rows: list[tuple[str, int, str | None, bool]] = []
    expected: list[str | None] = []
    for number, (kind, key, other) in enumerate(steps):
        value = f"n{number}"
        if kind == "insert" and key not in state:
            rows.append(("+I", key, value, False))
            state[key] = value
            expected.append(value)
        elif kind == "update" and key in state:
            rows.append(("+U", key, value, False))
            state[key] = value
            expected.append(value)
        elif kind == "unchanged" and key in state:
            rows.append(("+U", key, None, True))
            expected.append(state[key])
        elif kind == "delete" and key in state:
            rows.append(("-D", key, None, False))
            del state[key]
            expected.append(None)
        elif kind == "move" and key in state and other not in state:
            rows += [("-D", key, None, False), ("+I", other, None, True)]
            state[other] = state.pop(key)
            expected += [None, state[other]]
    if rows:
        found = with_values(shaped(rows), ("k",), finder(stored), "t")
        assert found.rows.column("v").to_pylist() == expected
        assert not found.unchanged


def test_old_rows_are_completed_from_the_batch_and_from_the_table() -> None:
    """A delete that comes with its key alone gets the values of the row it takes away."""
    rows = shaped([("+I", 1, "a", False), ("-D", 1, None, False), ("-D", 2, None, False), ("-D", 9, None, False)])
    found = with_old_values(rows, ("k",), finder({2: "b"}), ("v",))
    assert found.rows.column("v").to_pylist() == ["a", "a", "b", None]


def test_a_value_that_is_nowhere_is_an_error() -> None:
    """The key is named."""
    with pytest.raises(InvalidData, match=r"\{'k': 3\}"):
        with_values(shaped([("+U", 3, None, True)]), ("k",), finder({}), "t")


@pytest.mark.parametrize(
    "type_text",
    ["INT", "STRING", "BYTES", "BOOLEAN", "DECIMAL(10, 2)", "DATE", "TIME(3)", "TIMESTAMP(6)", "DOUBLE",
     "ARRAY<INT>", "MAP<STRING, INT>", "ROW<a INT, b STRING>"],
)  # fmt: skip
def test_retracts_have_some_value_where_null_is_forbidden(type_text: str) -> None:
    """Only the key of a retract counts; columns without NULL get a value that says nothing."""
    from lakebed.types.arrow import to_arrow_type

    fields = (DataField(0, "k", parse_type("INT NOT NULL")), DataField(1, "v", parse_type(f"{type_text} NOT NULL")))
    values = pa.nulls(2, to_arrow_type(parse_type(type_text)))
    batch = pa.record_batch({"k": pa.array([1, 2], pa.int32()), "v": values})
    kinds = np.array([RowKind.DELETE, RowKind.INSERT], np.int8)
    found = neutral_retracts(ShapedRows(batch, kinds, {}, np.arange(2)), fields, ("k",))
    assert found.rows.column("v").is_valid().to_pylist() == [True, False]
