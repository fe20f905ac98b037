from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.merge.aggregates.nested_folds import Column, frozen, row_by_row, same

from lakebed.errors import InvalidData, InvalidOption

Entries = list[tuple[Any, Any]]
TIMED = "MAP<STRING, ROW<v STRING, ts STRING>>"


def timed(**entries: tuple[str, str | int | None] | None) -> Entries:
    return [(key, None if row is None else {"v": row[0], "ts": row[1]}) for key, row in entries.items()]


@st.composite
def maps(draw: st.DrawFn, keys: st.SearchStrategy[Any], values: st.SearchStrategy[Any]) -> Entries | None:
    if draw(st.integers(0, 5)) == 0:
        return None
    return [(key, draw(values)) for key in draw(st.lists(keys, max_size=4, unique_by=frozen))]


@st.composite
def changes_of(draw: st.DrawFn, value: st.SearchStrategy[Any], kinds: list[str]) -> tuple[list[Any], set[int]]:
    changes = draw(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(kinds), value), min_size=1, max_size=14))
    return changes, draw(st.sets(st.integers(0, len(changes)), max_size=3))


ROW_KEYS = st.sampled_from([{"a": 1, "b": "x"}, {"a": 1, "b": None}, {"a": None, "b": "x"}])
PLAIN = changes_of(maps(st.sampled_from(["a", "b", "c", ""]), st.none() | st.integers(0, 9)), ["+I", "+U", "-U", "-D"])
NESTED = changes_of(maps(ROW_KEYS, st.none() | st.lists(st.integers(0, 3), max_size=2)), ["+I", "-D"])
ROWS = st.none() | st.builds(
    lambda v, ts: {"v": v, "ts": ts}, st.sampled_from("xyz"), st.sampled_from([None, "1", "10", "9"])
)


def add(state: Entries | None, value: Entries | None) -> Entries | None:
    if value is None:
        return state
    merged: dict[Any, tuple[Any, Any]] = {}
    for key, item in (state or []) + value:
        first = merged.get(frozen(key), (key,))[0]
        merged[frozen(key)] = (first, item)
    return list(merged.values())


def retract(state: Entries | None, value: Entries | None) -> Entries | None:
    if state is None:
        return None
    gone = [frozen(key) for key, _ in value or []]
    return [entry for entry in state if frozen(entry[0]) not in gone]


def add_timed(state: Entries | None, value: Entries | None) -> Entries | None:
    if state is None or value is None:
        return value if state is None else state
    merged = dict(state)
    for key, row in value:
        if row is None:
            merged.pop(key, None)
        elif row["ts"] is not None:
            old = merged.get(key)
            if old is None or old["ts"] is None or row["ts"] > old["ts"]:
                merged[key] = row
    return list(merged.items())


def test_m_43_merge_map() -> None:
    """Newer values win, and a retract removes keys whatever their values."""
    column = Column("MAP<INT, STRING>", "merge_map")
    history = column.history([(1, "A")], [(1, "B"), (2, "C")], [(1, "other")], kinds=["+I", "+I", "-D"])
    assert history == [[(1, "A")], [(1, "B"), (2, "C")], [(2, "C")]]


def test_null_values_win_too() -> None:
    """A null value is a value: it replaces the older one."""
    assert Column("MAP<INT, STRING>", "merge_map").history([(1, "A")], [(1, None)], None)[2] == [(1, None)]


def test_all_keys_removed_leaves_an_empty_map() -> None:
    """A map of which everything was taken back is empty, not null."""
    assert Column("MAP<INT, STRING>", "merge_map").history([(1, "A")], [(1, "A")], kinds=["+I", "-D"])[1] == []


@given(PLAIN)
def test_merge_map_as_row_by_row(case: tuple[list[Any], set[int]]) -> None:
    """However the changes are cut, the result is that of one change after the other."""
    changes, cuts = case
    assert same(Column("MAP<STRING, INT>", "merge_map").after(changes, cuts), row_by_row(changes, add, retract))


@given(NESTED)
def test_merge_map_with_rows_as_keys(case: tuple[list[Any], set[int]]) -> None:
    """Keys may be rows, and values arrays."""
    changes, cuts = case
    column = Column("MAP<ROW<a INT, b STRING>, ARRAY<INT>>", "merge_map")
    assert same(column.after(changes, cuts), row_by_row(changes, add, retract))


@given(changes_of(maps(st.sampled_from("abc"), st.integers(0, 9)), ["+I"]))
def test_merge_map_parts(case: tuple[list[Any], set[int]]) -> None:
    """Without retracts, parts that were merged among themselves first give the same."""
    changes, cuts = case
    column = Column("MAP<STRING, INT>", "merge_map")
    assert same(column.after_parts(changes, cuts), column.after(changes))


def test_m_46_merge_map_with_keytime() -> None:
    """Every key keeps the row with the greatest time."""
    history = Column("MAP<STRING, ROW<v STRING, ts BIGINT>>", "merge_map_with_keytime").history(
        timed(n=("iPhone", 100), c=("Black", 100)),
        timed(n=("iPad", 200), p=("999", 200)),
        timed(c=("White", 50)),
    )
    assert history[2] == timed(n=("iPad", 200), c=("Black", 100), p=("999", 200))


def test_times_in_text_compare_as_text() -> None:
    """Of times in text the greater text wins, not the greater number."""
    column = Column(TIMED, "merge_map_with_keytime")
    assert column.history(timed(c=("Black", "100")), timed(c=("White", "50")))[1] == timed(c=("White", "50"))


def test_equal_time_keeps_the_older() -> None:
    """Only a greater time replaces."""
    column = Column(TIMED, "merge_map_with_keytime")
    assert column.history(timed(a=("x", "5")), timed(a=("y", "5")))[1] == timed(a=("x", "5"))


def test_null_rows_and_times() -> None:
    """A null row removes its key; a row without time is left out, unless it is in the first map."""
    column = Column(TIMED, "merge_map_with_keytime")
    history = column.history(
        timed(a=("x", None), b=None), timed(c=("y", None), b=None), timed(a=("z", "")), timed(a=None)
    )
    assert history[1:] == [timed(a=("x", None)), timed(a=("z", "")), []]


def test_named_time_member() -> None:
    """`ts-field` names the member that holds the time."""
    column = Column("MAP<INT, ROW<at STRING, v INT>>", "merge_map_with_keytime", ts_field="at")
    assert column.history([(1, {"at": "2", "v": 1})], [(1, {"at": "1", "v": 2})])[1] == [(1, {"at": "2", "v": 1})]


@given(changes_of(maps(st.sampled_from("abc"), ROWS), ["+I", "+U"]))
def test_keytime_as_row_by_row(case: tuple[list[Any], set[int]]) -> None:
    """However the changes are cut, the result is that of one change after the other."""
    changes, cuts = case
    assert same(Column(TIMED, "merge_map_with_keytime").after(changes, cuts), row_by_row(changes, add_timed))


def test_keytime_refuses_retracts() -> None:
    """What is taken back can not be undone, and the error says which option helps."""
    with pytest.raises(InvalidData, match=r"fields\.v\.ignore-retract"):
        Column(TIMED, "merge_map_with_keytime").history(timed(a=("x", "1")), None, kinds=["+I", "-D"])


@pytest.mark.parametrize(
    ("type_text", "function", "options", "message"),
    [
        ("ARRAY<INT>", "merge_map", {}, "does not take column `v`"),
        ("MULTISET<INT>", "merge_map", {}, "does not take column `v`"),
        ("MAP<INT, INT>", "merge_map_with_keytime", {}, "does not take column `v`"),
        ("MAP<INT, ROW<ts STRING>>", "merge_map_with_keytime", {}, "two or more members"),
        (TIMED, "merge_map_with_keytime", {"ts_field": "tz"}, "valid choices: `ts`, `v`"),
        ("MAP<INT, ROW<v INT, ts ARRAY<INT>>>", "merge_map_with_keytime", {}, "member `ts`.*is ARRAY"),
    ],
)
def test_what_does_not_fit_is_refused(type_text: str, function: str, options: dict[str, str], message: str) -> None:
    """Types and members that the function can not work with are named."""
    with pytest.raises(InvalidOption, match=message):
        Column(type_text, function, **options)
