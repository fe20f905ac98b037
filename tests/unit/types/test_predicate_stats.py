"""Statistics never drop a file that holds a selected row, and drop the files they can."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.types import predicate_model as model

from lakebed.types.predicate import Always, Comparison, In, IsNotNull, IsNull, Match, Op, Opaque, Or, TextMatch, negate
from lakebed.types.predicate_parse import to_predicate
from lakebed.types.predicate_stats import ColumnStats, may_match


def _sort_key(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _cut_max(text: str, length: int) -> str | None:
    """As writers cut an upper bound: the last character kept is replaced by its successor."""
    if len(text) <= length:
        return text
    kept = text[:length]
    code = ord(kept[-1]) + 1
    return None if code > 0x10FFFF else kept[:-1] + chr(0xE000 if code == 0xD800 else code)


def _stats(files: list[list[dict[str, Any]]], draw: Any) -> dict[str, ColumnStats]:
    found = {}
    for column in model.SCHEMA:
        if not draw(st.integers(0, 5)):
            continue  # unknown everywhere
        lows, highs, null_counts = [], [], []
        for rows in files:
            values = [row[column.name] for row in rows]
            present = sorted((v for v in values if v is not None and v == v), key=_sort_key)
            low, high = (present[0], present[-1]) if present else (None, None)
            if isinstance(low, str) and draw(st.booleans()):
                low, high = low[:1], _cut_max(high, 1)
            lows.append(low if draw(st.integers(0, 5)) else None)
            highs.append(high if draw(st.integers(0, 5)) else None)
            null_counts.append(values.count(None) if draw(st.integers(0, 3)) else None)
        found[column.name] = ColumnStats(
            pa.array(lows, column.type), pa.array(highs, column.type), pa.array(null_counts, pa.int64())
        )
    return found


@settings(max_examples=300, deadline=None)
@given(st.data(), model.filters(), st.lists(model.rows(max_size=3), min_size=1, max_size=4))
def test_no_file_with_a_selected_row_is_dropped(data: Any, what: model.Filter, files: list[Any]) -> None:
    """Whatever is cut or unknown in the statistics, a file with a matching row stays."""
    predicate = to_predicate(model.as_predicate(what), model.SCHEMA)
    kept = may_match(predicate, _stats(files, data.draw), np.array([len(rows) for rows in files], np.int64))
    for stays, rows in zip(kept, files, strict=True):
        assert stays or not any(model.holds(what, row) for row in rows)


INTS = {
    "a": ColumnStats(pa.array([0, 5, None, 7, None]), pa.array([4, 9, None, 7, None]), pa.array([0, 1, None, 0, 3]))
}
COUNTS = np.array([3, 3, 3, 3, 3], np.int64)


def _a(op: str, value: int) -> Comparison:
    return Comparison("a", Op(op), pa.scalar(value))


@pytest.mark.parametrize(
    ("predicate", "kept"),
    [
        (_a("=", 4), [1, 0, 1, 0, 0]),
        (_a("=", 7), [0, 1, 1, 1, 0]),
        (_a("!=", 7), [1, 1, 1, 0, 0]),
        (_a("<", 5), [1, 0, 1, 0, 0]),
        (_a("<=", 5), [1, 1, 1, 0, 0]),
        (_a(">", 7), [0, 1, 1, 0, 0]),
        (_a(">=", 7), [0, 1, 1, 1, 0]),
        (In("a", pa.array([10, 4, -1])), [1, 0, 1, 0, 0]),
        (In("a", pa.array([], pa.int64())), [0, 0, 0, 0, 0]),
        (negate(In("a", pa.array([7, 8]))), [1, 1, 1, 0, 0]),
        (negate(_a(">", 4)), [1, 0, 1, 0, 0]),
        (negate(_a("<=", 7)), [0, 1, 1, 0, 0]),
        (IsNull("a"), [0, 1, 1, 0, 1]),
        (IsNotNull("a"), [1, 1, 1, 1, 0]),
        (Or((_a("=", 1), IsNull("a"))), [1, 1, 1, 0, 1]),
        (Always(True), [1, 1, 1, 1, 1]),
        (Always(None), [0, 0, 0, 0, 0]),
        (Opaque(pc.field("a") + 1 > 100, frozenset({"a"})), [1, 1, 1, 1, 1]),
        (Comparison("unknown", Op.EQ, pa.scalar(1)), [1, 1, 1, 1, 1]),
        (Comparison("a", Op.EQ, pa.scalar("of another type")), [1, 1, 1, 1, 0]),
    ],
)
def test_files_dropped_by_integers(predicate: Any, kept: list[int]) -> None:
    """Files: 0 to 4; 5 to 9 with a null; unknown; only 7; only nulls. Each predicate keeps exactly those it must."""
    assert may_match(predicate, INTS, COUNTS).tolist() == [bool(flag) for flag in kept]


def test_files_without_rows_are_dropped() -> None:
    """A file of no rows can not match, not even TRUE."""
    assert may_match(Always(True), {}, np.array([0, 1])).tolist() == [False, True]


@pytest.mark.parametrize(
    ("predicate", "kept"),
    [
        (TextMatch("s", Match.STARTS_WITH, "ab"), [True, True, False, True]),
        (TextMatch("s", Match.LIKE, "ab%"), [True, True, False, True]),
        (TextMatch("s", Match.LIKE, "a\\b%"), [True, True, False, True]),
        (TextMatch("s", Match.LIKE, "%ab"), [True, True, True, True]),
        (TextMatch("s", Match.STARTS_WITH, "b"), [False, True, True, False]),
        (TextMatch("s", Match.CONTAINS, "zzz"), [True, True, True, True]),
        (negate(TextMatch("s", Match.STARTS_WITH, "ab")), [True, True, True, False]),
        (Comparison("s", Op.EQ, pa.scalar("é")), [False, False, True, False]),
    ],
)
def test_files_dropped_by_text(predicate: Any, kept: list[bool]) -> None:
    """Bounds aa..ac, aa..b, bz..ê and ab..abc: prefixes decide, suffixes do not, and order is that of UTF-8 bytes."""
    stats = {
        "s": ColumnStats(pa.array(["aa", "aa", "bz", "ab"]), pa.array(["ac", "b", "ê", "abc"]), pa.array([0, 0, 0, 0]))
    }
    assert may_match(predicate, stats, np.array([1, 1, 1, 1])).tolist() == kept


@pytest.mark.parametrize(
    ("predicate", "kept"),
    [
        (Comparison("x", Op.NE, pa.scalar(5.0)), [True, True]),
        (negate(Comparison("x", Op.LT, pa.scalar(9.0))), [True, True]),
        (negate(In("x", pa.array([5.0]))), [True, True]),
        (Comparison("x", Op.GT, pa.scalar(5.0)), [False, True]),
        (In("x", pa.array([7.0, float("nan")])), [False, True]),
        (In("x", pa.array([-0.0])), [False, True]),
    ],
)
def test_nan_hidden_from_bounds_is_expected(predicate: Any, kept: list[bool]) -> None:
    """Bounds 5..5 may hide NaN, which satisfies != and negations; bounds that are NaN themselves tell nothing."""
    nan = float("nan")
    stats = {"x": ColumnStats(pa.array([5.0, nan]), pa.array([5.0, nan]), pa.array([0, 0]))}
    assert may_match(predicate, stats, np.array([2, 2])).tolist() == kept


def test_both_zeros_are_one_value() -> None:
    """A bound of 0.0 does not exclude -0.0, nor the other way round."""
    stats = {"x": ColumnStats(pa.array([0.0, -0.0]), pa.array([0.0, -0.0]), pa.array([0, 0]))}
    for zero in (0.0, -0.0):
        for predicate in (Comparison("x", Op.EQ, pa.scalar(zero)), In("x", pa.array([zero]))):
            assert may_match(predicate, stats, np.array([1, 1])).all()
