"""Curves that keep close rows together: their shape, and the numbers they are made of."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.write.row_order import BITS, Numbers, Spread, hilbert_words, value_codes, z_words


def _order(words: list[Numbers]) -> np.ndarray:
    return np.lexsort(words[::-1])


def _grid(dimensions: int, side: int) -> np.ndarray:
    return np.array(np.meshgrid(*[np.arange(side)] * dimensions, indexing="ij")).reshape(dimensions, -1)


@pytest.mark.parametrize(("dimensions", "side"), [(1, 64), (2, 32), (3, 8), (4, 4), (5, 4)])
def test_the_hilbert_curve_never_jumps(dimensions: int, side: int) -> None:
    """It visits every cell of a grid, and each next to the one before."""
    grid = _grid(dimensions, side)
    shift = np.uint64(BITS - int(side).bit_length() + 1)
    words = hilbert_words([axis.astype(np.uint64) << shift for axis in grid])
    visited = grid[:, _order(words)]
    assert len(np.unique(visited, axis=1).T) == side**dimensions
    assert np.all(np.abs(np.diff(visited, axis=1)).sum(axis=0) == 1)


def test_the_z_curve_takes_turns() -> None:
    """Bits of the columns alternate, the first column's first."""
    grid = _grid(2, 4)
    words = z_words([axis.astype(np.uint64) << np.uint64(BITS - 2) for axis in grid])
    visited = grid[:, _order(words)].T.tolist()
    assert visited[:8] == [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [0, 3], [1, 2], [1, 3]]


def test_many_columns_take_several_words() -> None:
    """What does not fit into one word goes on in the next, in the same order."""
    columns = [np.array([0, 1, 2], dtype=np.uint64) << np.uint64(BITS - 2) for _ in range(9)]
    words = z_words(columns)
    assert len(words) == 3
    assert _order(words).tolist() == [0, 1, 2]


VALUES = {
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "boolean": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))),
    "timestamp": (pa.timestamp("us"), st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))),
    "decimal": (pa.decimal128(10, 2), st.integers(-(10**8), 10**8).map(lambda n: Decimal(n) / 100)),
    "short text": (pa.string(), st.text("abyzé", max_size=4)),
    "bytes": (pa.binary(), st.binary(max_size=8)),
}


@pytest.mark.parametrize("kind", VALUES)
@settings(deadline=None)
@given(data=st.data())
def test_codes_are_in_the_order_of_the_values(kind: str, data: st.DataObject) -> None:
    """Null comes first; codes do not depend on what else is in the batch."""
    arrow, values = VALUES[kind]
    column = data.draw(st.lists(st.none() | values, min_size=1, max_size=20))
    codes = value_codes(pa.array(column, arrow))
    alone = [value_codes(pa.array([value], arrow))[0] for value in column]
    assert codes.tolist() == alone
    for left, right in itertools.pairwise(np.argsort(codes, kind="stable").tolist()):
        before, after = column[left], column[right]
        if codes[left] == codes[right] and isinstance(before, bytes):
            continue  # bytes that end in zeros look like shorter ones
        assert before is None or (after is not None and _key(before) <= _key(after))


def _key(value: object) -> object:
    return value.encode() if isinstance(value, str) else value


@settings(deadline=None)
@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=200), st.lists(st.integers(-2000, 2000), max_size=20))
def test_numbers_are_in_the_order_of_the_codes(sample: list[int], others: list[int]) -> None:
    """Values that the sample did not have find their place; values it had are told apart."""
    spread = Spread.of(np.array(sample))
    numbers = spread.numbers(np.sort(np.array([*sample, *others]))).astype(np.int64)
    assert np.all(np.diff(numbers) >= 0)
    assert numbers[-1] < 1 << BITS
    assert len(np.unique(spread.numbers(np.unique(sample)))) == len(set(sample))


def test_a_skewed_column_is_spread() -> None:
    """Most values lie close together and few far out: their numbers use all bits alike."""
    codes = np.concatenate([np.arange(1000), np.arange(1000) * 10**12]).astype(np.int64)
    numbers = Spread.of(codes).numbers(codes)
    assert numbers[codes < 1000].max() > (1 << BITS) * 0.45
