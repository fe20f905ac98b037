"""The order of keys: codes for columns, values for single rows, and searches by them."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.testing.model import order_of
from lakebed.testing.model_arrow import to_arrow_array
from lakebed.testing.strategies import ATOMIC_TYPES, values_of
from lakebed.types import ordering

_INT64 = st.one_of(st.integers(-3, 3), st.integers(-(1 << 63), (1 << 63) - 1))


def ranks(column: pa.Array, *, descending: bool = False) -> list[int]:
    """Dense ranks of a column's codes."""
    return np.unique(ordering.sort_codes(column, descending=descending), return_inverse=True)[1].tolist()


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_floats_order_as_java_compares_them(kind: pa.DataType) -> None:
    """-0.0 lies below 0.0, NaN above infinity, and every NaN is the same."""
    odd_nan = float(np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0])
    column = pa.array([None, -math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan, odd_nan], kind)
    assert ranks(column) == [0, 1, 2, 3, 4, 5, 6, 7, 7]
    assert ranks(column, descending=True) == [0, 7, 6, 5, 4, 3, 2, 1, 1]


def test_text_orders_by_unsigned_bytes() -> None:
    """Characters beyond the basic plane come last, as their UTF-8 bytes do; UTF-16 would put them earlier."""
    assert ranks(pa.array(["\U00010000", "\uffff", "é", "z", "", "Z"])) == [5, 4, 3, 2, 0, 1]
    assert ranks(pa.array([b"\xff", b"\x00", b"\x7f", b"", b"\x00\x00"])) == [4, 1, 3, 0, 2]


def test_the_smallest_integer_is_not_null() -> None:
    """The least value of 64 bits keeps its place above null, in both directions."""
    smallest, largest = -(1 << 63), (1 << 63) - 1
    column = pa.array([largest, None, smallest, 0], pa.int64())
    assert ranks(column) == [3, 0, 1, 2]
    assert ranks(column, descending=True) == [1, 0, 3, 2]


def test_columns_of_nulls_and_of_nothing_have_codes() -> None:
    """No value to rank is no error."""
    for arrow in (pa.int8(), pa.string(), pa.float32(), pa.decimal128(38, 2), pa.bool_(), pa.date32()):
        assert ranks(pa.nulls(2, arrow)) == [0, 0]
        assert ranks(pa.array([], arrow)) == []


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_codes_and_single_values_agree_for_every_type(data: st.DataObject) -> None:
    """Codes, single sort values and the row-by-row definition order any two values alike, slices included."""
    data_type = data.draw(st.sampled_from(ATOMIC_TYPES), "type")
    values = data.draw(st.lists(st.none() | values_of(data_type), min_size=1, max_size=7), "values")
    # A slice has an offset into its buffers, as batches of a streaming merge have.
    column = to_arrow_array([None, *values], data_type).slice(1)
    codes = ordering.sort_codes(column).tolist()
    single = [ordering.sort_value(column, row) for row in range(len(values))]
    tokens = [order_of(value) for value in values]
    for i in range(len(values)):
        for j in range(len(values)):
            assert (codes[i] < codes[j]) == (single[i] < single[j]) == (tokens[i] < tokens[j])
            assert (codes[i] == codes[j]) == (single[i] == single[j]) == (tokens[i] == tokens[j])


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_count_not_above_is_where_the_cut_would_stand(data: st.DataObject) -> None:
    """Binary search counts the rows up to a key, whether the key is there or not."""
    types = data.draw(st.lists(st.sampled_from(ATOMIC_TYPES), min_size=1, max_size=2), "types")
    key = st.tuples(*(st.none() | values_of(data_type) for data_type in types))
    rows = data.draw(st.lists(key, min_size=1, max_size=8), "rows")

    def token(row: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(order_of(value) for value in row)

    rows.sort(key=token)
    cut = data.draw(key | st.sampled_from(rows), "cut")
    columns = [to_arrow_array([row[i] for row in rows], data_type) for i, data_type in enumerate(types)]
    needle = [to_arrow_array([cut[i]], data_type) for i, data_type in enumerate(types)]
    expected = sum(token(row) <= token(cut) for row in rows)
    assert ordering.count_not_above(columns, ordering.sort_key(needle, 0)) == expected


def test_argsort_is_stable_and_goes_by_the_first_column_first() -> None:
    """Equal rows keep their order, with one column and with several."""
    first, second = np.array([1, 0, 1, 0]), np.array([5, 5, 4, 5])
    assert ordering.argsort([first]).tolist() == [1, 3, 0, 2]
    assert ordering.argsort([first, second]).tolist() == [1, 3, 2, 0]


def test_changes_marks_the_first_row_of_each_key() -> None:
    """A row differs from the one before it when any column does."""
    columns = [np.array([1, 1, 1, 2]), np.array([7, 7, 8, 8])]
    assert ordering.changes(columns).tolist() == [True, False, True, True]
    assert ordering.changes([np.array([], np.int64)]).tolist() == []


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(-5, 5), st.sampled_from(["ab", "b", "", "ab\0", "zzzzzzzzz"])), max_size=30))
def test_key_codes_order_like_the_columns(rows: list[tuple[int, str]]) -> None:
    """Packed codes sort and separate rows exactly as the columns one by one do, whatever the lengths of texts."""
    columns = [pa.array([row[0] for row in rows], pa.int64()), pa.array([row[1] for row in rows], pa.string())]
    _check_key_codes(columns)


@settings(max_examples=200)
@given(
    st.integers(1, 20).flatmap(
        lambda length: st.lists(st.tuples(st.binary(min_size=length, max_size=length), _INT64), max_size=30)
    ),
    st.integers(0, 3),
)
def test_key_codes_of_texts_of_one_length(rows: list[tuple[bytes, int]], offset: int) -> None:
    """Bytes of one length go eight at a time, also in sliced arrays, next to integers of any size."""
    columns = [pa.array([row[0] for row in rows], pa.binary()), pa.array([row[1] for row in rows], pa.int64())]
    _check_key_codes([column.slice(offset) for column in columns])


def _check_key_codes(columns: list[pa.Array]) -> None:
    plain = [ordering.sort_codes(column) for column in columns]
    codes = ordering.key_codes(columns)
    assert ordering.argsort(codes).tolist() == ordering.argsort(plain).tolist()
    order = ordering.argsort(plain)
    assert ordering.changes([c[order] for c in codes]).tolist() == ordering.changes([c[order] for c in plain]).tolist()


@given(st.integers(1, 32).flatmap(lambda length: st.lists(st.binary(min_size=length, max_size=length), max_size=12)))
def test_key_codes_of_bytes_of_any_one_length(values: list[bytes]) -> None:
    """Words that overlap, because the length is no multiple of eight, order like the bytes."""
    codes = ordering.key_codes([pa.array(values, pa.binary())])
    assert [values[place] for place in ordering.argsort(codes)] == sorted(values)


def test_columns_that_never_change_do_not_order() -> None:
    """Packing leaves them out, unless nothing else is left."""
    same, other = np.array([7, 7, 7]), np.array([1, 0, 2])
    (codes,) = ordering.packed([same, other])
    assert ordering.argsort([codes]).tolist() == [1, 0, 2]
    assert len(ordering.packed([same, same])) == 1
    assert len(ordering.packed([np.array([], np.int64)] * 2)) == 1


@given(st.lists(st.integers(-20, 20), max_size=30), st.sampled_from([0, -(1 << 63) + 30, (1 << 63) - 30]), st.data())
def test_slots_say_what_sorting_says(values: list[int], shift: int, data: st.DataObject) -> None:
    """The last place of every code, in the order of codes or marked, and the places that share one with chosen ones."""
    codes = np.array([value + shift for value in values], dtype=np.int64)
    slots = ordering.Slots(codes)
    last = {code: place for place, code in enumerate(codes.tolist())}
    assert slots.last_places().tolist() == [last[code] for code in sorted(last)]
    assert np.flatnonzero(slots.are_last()).tolist() == sorted(last.values())
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))), dtype=np.bool_)
    wanted = set(codes[chosen].tolist())
    assert slots.shared_with(chosen).tolist() == [place for place, code in enumerate(codes.tolist()) if code in wanted]


def test_slots_are_few_where_most_numbers_occur() -> None:
    """A few rows far apart are sorted instead: slots would take more memory than the rows."""
    assert ordering.Slots(np.arange(100) * 5).are_few
    assert not ordering.Slots(np.array([0, 1 << 40])).are_few
    assert not ordering.Slots(np.array([-(1 << 63), (1 << 63) - 1])).are_few
    assert ordering.Slots(np.array([], np.int64)).are_few
    assert ordering.Slots(np.arange(100) * 20).are_worth_filling
    assert not ordering.Slots(np.arange(100) * 200).are_worth_filling
