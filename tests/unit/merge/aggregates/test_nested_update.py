from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.merge.aggregates.nested_folds import Change, Column, frozen, row_by_row, same

from lakebed.errors import InvalidData, InvalidOption

Rows = list[dict[str, Any] | None]
ORDERS = "ARRAY<ROW<id INT, v STRING>>"
WIDE = "ARRAY<ROW<id INT, sub STRING, s1 INT, s2 STRING, v ARRAY<INT>>>"


def rows(*pairs: tuple[int | None, str | None] | None) -> Rows:
    return [None if pair is None else {"id": pair[0], "v": pair[1]} for pair in pairs]


class PlainNestedUpdate:
    """One change after the other, one row after the other."""

    def __init__(self, key: tuple[str, ...], sequence: tuple[str, ...], limit: int, nulls: str) -> None:
        self.key, self.sequence, self.limit, self.nulls = key, sequence, limit, nulls

    def counts(self, row: dict[str, Any] | None) -> bool:
        if row is None:
            return False
        if all(row[name] is not None for name in self.key) or self.nulls == "merge":
            return True
        if self.nulls == "error":
            raise InvalidData("null in a nested key", hint="")
        return False

    def identity(self, row: dict[str, Any]) -> Any:
        return frozen([row[name] for name in self.key] if self.key else row)

    def add(self, state: Rows | None, value: Rows | None) -> Rows | None:
        if value is None:
            return state
        kept = list(state or [])
        for row in value:
            if not self.counts(row):
                continue
            same_key = [at for at, old in enumerate(kept) if self.identity(old) == self.identity(row)]
            if self.key and same_key:
                if not self.newer(kept[same_key[0]], row):
                    kept[same_key[0]] = row
            elif len(kept) < self.limit:
                kept.append(row)
        return kept

    def newer(self, old: dict[str, Any], row: dict[str, Any]) -> bool:
        for name in self.sequence:
            if old[name] != row[name]:
                return row[name] is None or (old[name] is not None and old[name] > row[name])
        return False

    def retract(self, state: Rows | None, value: Rows | None) -> Rows | None:
        if state is None or value is None:
            return state
        gone = [self.identity(row) for row in value if self.counts(row)]
        return [row for row in state if self.identity(row) not in gone]


WIDE_ROWS = st.none() | st.builds(
    lambda number, sub, s1, s2, v: {"id": number, "sub": sub, "s1": s1, "s2": s2, "v": v},
    st.sampled_from([1, 2, 3, None]),
    st.sampled_from(["a", "b", None]),
    st.sampled_from([None, -1, 0, 1]),
    st.sampled_from([None, "", "x"]),
    st.sampled_from([None, [], [1]]),
)


@st.composite
def changes_of(draw: st.DrawFn, kinds: list[str]) -> tuple[list[Change], set[int]]:
    value = st.none() | st.lists(WIDE_ROWS, max_size=4)
    changes = draw(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(kinds), value), min_size=1, max_size=14))
    return changes, draw(st.sets(st.integers(0, len(changes)), max_size=3))


def column_of(key: tuple[str, ...], sequence: tuple[str, ...], limit: int | None, nulls: str) -> Column:
    options = {"nested_key": ",".join(key), "nested_sequence_field": ",".join(sequence)}
    options = {name: text for name, text in options.items() if text}
    if limit is not None:
        options["count_limit"] = str(limit)
    if nulls != "merge":
        options["nested_key_null_strategy"] = nulls
    return Column(WIDE, "nested_update", **options)


def test_m_47_nested_key() -> None:
    """Rows replace those with their key where these stood, and a retract removes by key."""
    column = Column(ORDERS, "nested_update", nested_key="id")
    history = column.history(
        rows((1, "a")), rows((2, "b")), rows((1, "c")), rows((2, "other")), kinds=["+I", "+I", "+I", "-D"]
    )
    assert history[1:] == [rows((1, "a"), (2, "b")), rows((1, "c"), (2, "b")), rows((1, "c"))]


def test_m_48_count_limit() -> None:
    """Without nested key rows are appended until the limit is reached."""
    column = Column(ORDERS, "nested_update", count_limit="2")
    assert column.history(rows((1, "a")), rows((1, "a"), (2, "b")))[1] == rows((1, "a"), (1, "a"))


def test_n_47_wide_orders() -> None:
    """Sub-orders that arrive one by one stand in the order in which they came."""
    column = Column(
        "ARRAY<ROW<sub_order_id BIGINT, product_name STRING, price BIGINT>>", "nested_update", nested_key="sub_order_id"
    )
    phone = {"sub_order_id": 1, "product_name": "iphone", "price": 799}
    tablet = {"sub_order_id": 2, "product_name": "ipad", "price": 699}
    assert column.history(None, [phone], [tablet])[2] == [phone, tablet]


def test_retract_without_key_removes_all_equal_rows() -> None:
    """Without nested key every row equal to a retracted one goes."""
    column = Column(ORDERS, "nested_update")
    history = column.history(rows((1, "a"), (1, "b")), rows((1, "a")), rows((1, "a")), kinds=["+I", "+I", "-U"])
    assert history[2] == rows((1, "b"))


def test_nested_sequence_field() -> None:
    """A row with a smaller sequence loses; with an equal one it wins; null is the smallest."""
    column = Column(ORDERS, "nested_update", nested_key="id", nested_sequence_field="v")
    assert column.history(rows((1, "b")), rows((1, "a")), rows((1, None)))[2] == rows((1, "b"))


def test_limit_keeps_updating_known_keys() -> None:
    """At the limit new keys are left out, while keys that are there are updated."""
    column = Column(ORDERS, "nested_update", nested_key="id", count_limit="1")
    assert column.history(rows((1, "a")), rows((2, "b"), (1, "c")))[1] == rows((1, "c"))


def test_retract_makes_room_below_the_limit() -> None:
    """What a retract removes leaves room for the next new key."""
    column = Column(ORDERS, "nested_update", nested_key="id", count_limit="1")
    changes = [
        (1, "+I", rows((1, "a"), (2, "b"))),
        (1, "-D", rows((1, "a"))),
        (1, "+I", rows((2, "c"))),
        (2, "+I", rows((5, "a"))),
        (2, "+I", rows((6, "a"))),
    ]
    assert column.after(changes) == {1: rows((2, "c")), 2: rows((5, "a"))}


def test_null_keys_by_strategy() -> None:
    """Null keys are a key like others, or are left out, or are an error."""
    values = [rows((None, "a"), (1, "b")), rows((None, "c"), None)]
    merge = Column(ORDERS, "nested_update", nested_key="id")
    assert merge.history(*values)[1] == rows((None, "c"), (1, "b"))
    ignore = Column(ORDERS, "nested_update", nested_key="id", nested_key_null_strategy="ignore")
    assert ignore.history(*values)[1] == rows((1, "b"))
    error = Column(ORDERS, "nested_update", nested_key="id", nested_key_null_strategy="error")
    with pytest.raises(InvalidData, match=r"column `v`: a row of the array has null in its nested key \(id\)"):
        error.history(*values)


SETTINGS = st.tuples(
    st.sampled_from([("id",), ("id", "sub"), ("sub",)]),
    st.sampled_from([(), ("s1",), ("s1", "s2")]),
    st.sampled_from([None, 0, 1, 2, 3]),
    st.sampled_from(["merge", "ignore"]),
)


@given(changes_of(["+I", "+U", "-U", "-D"]), SETTINGS)
def test_keyed_as_row_by_row(case: tuple[list[Change], set[int]], settings: tuple[Any, Any, Any, str]) -> None:
    """With a key, however the changes are cut, the result is that of one change after the other."""
    (changes, cuts), (key, sequence, limit, nulls) = case, settings
    plain = PlainNestedUpdate(key, sequence, 1 << 31 if limit is None else limit, nulls)
    result = column_of(key, sequence, limit, nulls).after(changes, cuts)
    assert same(result, row_by_row(changes, plain.add, plain.retract))


@given(changes_of(["+I", "-D"]), st.sampled_from([None, 0, 1, 3]))
def test_appended_as_row_by_row(case: tuple[list[Change], set[int]], limit: int | None) -> None:
    """Without a key too."""
    changes, cuts = case
    plain = PlainNestedUpdate((), (), 1 << 31 if limit is None else limit, "merge")
    assert same(column_of((), (), limit, "merge").after(changes, cuts), row_by_row(changes, plain.add, plain.retract))


@given(changes_of(["+I"]), st.sampled_from([((), ()), (("id",), ()), (("id",), ("s1", "s2"))]))
def test_parts_merge_to_the_same(case: tuple[list[Change], set[int]], names: Any) -> None:
    """Without retracts and limit, parts that were merged among themselves first give the same."""
    changes, cuts = case
    key, sequence = names
    column = column_of(key, sequence, None, "merge")
    assert same(column.after_parts(changes, cuts), column.after(changes))


@given(changes_of(["+I", "-D"]))
def test_error_strategy_as_row_by_row(case: tuple[list[Change], set[int]]) -> None:
    """The error comes exactly where it comes row by row."""
    changes, _ = case
    plain, column = PlainNestedUpdate(("id",), (), 1 << 31, "error"), column_of(("id",), (), None, "error")
    try:
        expected = row_by_row(changes, plain.add, plain.retract)
    except InvalidData:
        with pytest.raises(InvalidData):
            column.after(changes)
        return
    assert same(column.after(changes), expected)


# --- nested_partial_update -------------------------------------------------------------------------------------------


def test_partial_update_fills_members() -> None:
    """Members that are not null overwrite, others keep what they had."""
    column = Column(WIDE, "nested_partial_update", nested_key="id")
    first = {"id": 1, "sub": "a", "s1": None, "s2": "x", "v": [1]}
    second = {"id": 1, "sub": None, "s1": 5, "s2": "y", "v": None}
    assert column.history([first], [None, second])[1] == [{"id": 1, "sub": "a", "s1": 5, "s2": "y", "v": [1]}]


@given(changes_of(["+I", "+U"]), st.sampled_from([("id",), ("id", "sub")]), st.sampled_from(["merge", "ignore"]))
def test_partial_update_as_row_by_row(case: tuple[list[Change], set[int]], key: tuple[str, ...], nulls: str) -> None:
    """However the changes are cut, into a chain or into parts, the result is that of one change after the other."""
    changes, cuts = case
    plain = PlainNestedUpdate(key, (), 1 << 31, nulls)

    def add(state: Rows | None, value: Rows | None) -> Rows | None:
        if value is None:
            return state
        kept: dict[Any, dict[str, Any]] = {}
        for row in [*(state or []), *value]:
            if row is not None and plain.counts(row):
                old = kept.setdefault(plain.identity(row), dict.fromkeys(row))
                old.update({name: member for name, member in row.items() if member is not None})
        return list(kept.values())

    options = {"nested_key": ",".join(key), "nested_key_null_strategy": nulls}
    column = Column(WIDE, "nested_partial_update", **options)
    expected = row_by_row(changes, add)
    assert same(column.after(changes, cuts), expected)
    assert same(column.after_parts(changes, cuts), expected)


def test_partial_update_refuses_retracts() -> None:
    """What was filled in can not be taken back."""
    with pytest.raises(InvalidData, match="`nested_partial_update` can not take back"):
        Column(ORDERS, "nested_partial_update", nested_key="id").history([], [], kinds=["+I", "-D"])


@pytest.mark.parametrize(
    ("type_text", "function", "options", "message"),
    [
        ("ARRAY<INT>", "nested_update", {}, "does not take column `v`"),
        ("ROW<id INT>", "nested_partial_update", {"nested_key": "id"}, "does not take column `v`"),
        (ORDERS, "nested_update", {"nested_key": "id,w"}, r"`fields\.v\.nested-key` names `w`"),
        (
            ORDERS,
            "nested_update",
            {"nested_key": "id", "nested_sequence_field": "w"},
            "nested-sequence-field` names `w`",
        ),
        (ORDERS, "nested_update", {"nested_sequence_field": "v"}, r"`fields\.v\.nested-key` is not"),
        (ORDERS, "nested_update", {"nested_key_null_strategy": "error"}, r"`fields\.v\.nested-key` is not"),
        (WIDE, "nested_update", {"nested_key": "id", "nested_sequence_field": "v"}, "has no order"),
        (ORDERS, "nested_partial_update", {}, "needs a nested key"),
    ],
)
def test_what_does_not_fit_is_refused(type_text: str, function: str, options: dict[str, str], message: str) -> None:
    """Types and members that the functions can not work with are named."""
    with pytest.raises(InvalidOption, match=message):
        Column(type_text, function, **options)
