"""Finds many keys in sorted columns at once: a binary search whose every step is one comparison of arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.types import ordering
from lakebed.types.ordering import Codes

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def find_keys(columns: Sequence[pa.Array], asked: Sequence[pa.Array]) -> tuple[Positions, Mask]:
    """For each asked key its row in the columns, and whether it is there; where it is not, the row means nothing.

    REQUIRES: columns in ascending key order, each key once, and at least one row.
    """
    count = len(columns[0])
    if all(_has_lasting_codes(column.type) for column in columns):
        codes = _packed_codes(columns, asked)
        if codes is not None:
            mine, wanted = codes
            places = np.minimum(np.searchsorted(mine, wanted), count - 1)
            return places, mine[places] == wanted
    places = np.minimum(_lower_bounds(columns, asked), count - 1)
    return places, _compared(columns, places, asked)[1]


def find_ranges(columns: Sequence[pa.Array], asked: Sequence[pa.Array]) -> tuple[Positions, Positions]:
    """For each asked key where its rows begin and where they end; both are the same if there is none.

    REQUIRES: columns in ascending order, and at least one row.
    """
    if all(_has_lasting_codes(column.type) for column in columns):
        codes = _packed_codes(columns, asked)
        if codes is not None:
            mine, wanted = codes
            return np.searchsorted(mine, wanted, "left"), np.searchsorted(mine, wanted, "right")
    return _lower_bounds(columns, asked), _lower_bounds(columns, asked, and_equal=True)


def _lower_bounds(columns: Sequence[pa.Array], asked: Sequence[pa.Array], *, and_equal: bool = False) -> Positions:
    """How many rows lie below each asked key; or below it and at it."""
    count = len(columns[0])
    low = np.zeros(len(asked[0]), dtype=np.int64)
    high = np.full(len(asked[0]), count, dtype=np.int64)
    while np.any(low < high):
        middle = np.minimum((low + high) // 2, count - 1)
        is_below, is_equal = _compared(columns, middle, asked)
        if and_equal:
            is_below |= is_equal
        is_open = low < high
        low = np.where(is_open & is_below, middle + 1, low)
        high = np.where(is_open & ~is_below, middle, high)
    return low


def _packed_codes(columns: Sequence[pa.Array], asked: Sequence[pa.Array]) -> tuple[Codes, Codes] | None:
    """One number for each row and one for each key, if numbers are large enough."""
    if len(columns) == 1 and columns[0].null_count == asked[0].null_count == 0:
        return ordering.sort_codes(columns[0]), ordering.sort_codes(asked[0])
    both = [pa.concat_arrays([column, wanted]) for column, wanted in zip(columns, asked, strict=True)]
    codes = ordering.key_codes(both)
    return (codes[0][: len(columns[0])], codes[0][len(columns[0]) :]) if len(codes) == 1 else None


def _has_lasting_codes(arrow: pa.DataType) -> bool:
    """Whether codes of two columns of the type compare although they came from two calls, and are cheap to make."""
    return bool(
        pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_temporal(arrow)
    ) and not pa.types.is_duration(arrow)


def _compared(columns: Sequence[pa.Array], rows: Positions, asked: Sequence[pa.Array]) -> tuple[Mask, Mask]:
    """Which of these rows lie below the key asked in their place, and which are that key."""
    indices = pa.array(rows)
    both = [pa.concat_arrays([column.take(indices), wanted]) for column, wanted in zip(columns, asked, strict=True)]
    below = np.zeros(len(rows), dtype=np.bool_)
    equal = np.ones(len(rows), dtype=np.bool_)
    for codes in ordering.key_codes(both):
        mine, theirs = codes[: len(rows)], codes[len(rows) :]
        below |= equal & (mine < theirs)
        equal &= mine == theirs
    return below, equal


__all__ = ["find_keys", "find_ranges"]
