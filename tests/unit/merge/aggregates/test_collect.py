from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.merge.aggregates.nested_folds import Column, frozen, row_by_row, same

from lakebed.errors import InvalidOption

ELEMENTS: dict[str, st.SearchStrategy[Any]] = {
    "STRING": st.sampled_from(["a", "b", "ü", None]),
    "DOUBLE": st.sampled_from([0.0, -0.0, math.nan, 1.5, None]),
    "ARRAY<INT>": st.sampled_from([[], [1], [1, None], [None, 1], None]),
    "MAP<STRING, INT>": st.sampled_from([[], [("x", 1), ("y", None)], [("y", None), ("x", 1)], [("x", None)], None]),
    "ROW<a INT, b ARRAY<STRING>>": st.sampled_from(
        [{"a": 1, "b": None}, {"a": 1, "b": []}, {"a": None, "b": ["x"]}, {"a": 1, "b": ["x"]}, None]
    ),
}


@st.composite
def changes_of(draw: st.DrawFn, kinds: list[str]) -> tuple[str, list[Any], set[int]]:
    type_text = draw(st.sampled_from(list(ELEMENTS)))
    value = st.none() | st.lists(ELEMENTS[type_text], max_size=4)
    changes = draw(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(kinds), value), min_size=1, max_size=14))
    return type_text, changes, draw(st.sets(st.integers(0, len(changes)), max_size=3))


def add(state: list[Any] | None, value: list[Any] | None) -> list[Any] | None:
    return state if value is None else (state or []) + value


def add_first_seen(state: list[Any] | None, value: list[Any] | None) -> list[Any] | None:
    if value is None:
        return state
    seen: dict[Any, Any] = {}
    for element in (state or []) + value:
        seen.setdefault(frozen(element), element)
    return list(seen.values())


def retract(state: list[Any] | None, value: list[Any] | None) -> list[Any] | None:
    if state is None:
        return None
    gone = [frozen(element) for element in value or []]
    left = []
    for element in state:
        if frozen(element) in gone:
            gone.remove(frozen(element))
        else:
            left.append(element)
    return left


def test_m_42_collect_and_retract() -> None:
    """Arrays are joined, and a retract takes away the oldest equal element."""
    column = Column("ARRAY<STRING>", "collect")
    assert column.history(["A", "B"], ["A"], ["A"], kinds=["+I", "+I", "-U"])[1:] == [["A", "B", "A"], ["B", "A"]]


def test_m_42_collect_distinct_and_retract() -> None:
    """With `distinct` an element is there once, and gone after one retract."""
    column = Column("ARRAY<STRING>", "collect", distinct="true")
    assert column.history(["A", "B"], ["A"], ["A"], kinds=["+I", "+I", "-U"])[1:] == [["A", "B"], ["B"]]


def test_null_arrays_change_nothing() -> None:
    """A null array leaves what is there; nothing but nulls stays null."""
    assert Column("ARRAY<INT>", "collect").history(None, None, [1], None, []) == [None, None, [1], [1], [1]]


def test_retract_before_any_value() -> None:
    """What is taken back before it came is forgotten."""
    assert Column("ARRAY<INT>", "collect").history([1], [1], kinds=["-D", "+I"])[1] == [1]


def test_only_retracts_give_null() -> None:
    """Retracts alone leave null, not an empty array."""
    assert Column("ARRAY<INT>", "collect").history([1], [2], kinds=["-D", "-D"])[1] is None


@given(changes_of(["+I", "+U", "-U", "-D"]))
def test_collect_as_row_by_row(case: tuple[str, list[Any], set[int]]) -> None:
    """However the changes are cut, the result is that of one change after the other."""
    type_text, changes, cuts = case
    assert same(Column(f"ARRAY<{type_text}>", "collect").after(changes, cuts), row_by_row(changes, add, retract))


@given(changes_of(["+I", "+U", "-U", "-D"]))
def test_collect_distinct_as_row_by_row(case: tuple[str, list[Any], set[int]]) -> None:
    """The same with `distinct`: elements stay where they were first seen."""
    type_text, changes, cuts = case
    column = Column(f"ARRAY<{type_text}>", "collect", distinct="true")
    assert same(column.after(changes, cuts), row_by_row(changes, add_first_seen, retract))


@given(changes_of(["+I"]), st.booleans())
def test_parts_merge_to_the_same(case: tuple[str, list[Any], set[int]], distinct: bool) -> None:
    """Without retracts, parts that were merged among themselves first give the same."""
    type_text, changes, cuts = case
    column = Column(f"ARRAY<{type_text}>", "collect", distinct=str(distinct).lower())
    assert same(column.after_parts(changes, cuts), column.after(changes))


def test_ignore_retract() -> None:
    """With `ignore-retract` nothing is taken away."""
    column = Column("ARRAY<INT>", "collect", ignore_retract="true")
    assert column.history([1, 2], [1], [3], kinds=["+I", "-D", "+I"])[1:] == [[1, 2], [1, 2, 3]]


def test_other_types_are_refused() -> None:
    """Only arrays can be collected."""
    with pytest.raises(InvalidOption, match="`collect` does not take column `v` of type INT"):
        Column("INT", "collect")
