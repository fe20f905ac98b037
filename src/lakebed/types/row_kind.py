"""The four kinds of change a row can stand for, as stored in `_VALUE_KIND` and as spelled by users."""

from __future__ import annotations

from enum import IntEnum
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidData


class RowKind(IntEnum):
    """Stored number of a row kind."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3


TEXTS = ("+I", "-U", "+U", "-D")
"""Spelling of each kind, at the index of its number."""


@cache
def _texts() -> pa.Array:
    # Made when first needed: pyarrow loads pandas, if there is one, to make an array of Python objects.
    return pa.array(TEXTS, pa.string())


def is_retract(kinds: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
    """Which kinds take something away: -U and -D are the odd numbers."""
    return (kinds & 1).astype(np.bool_)


def kinds_from_text(column: pa.Array | pa.ChunkedArray, name: str) -> pa.Array:
    """int8 kinds of a column of texts; anything but the four spellings is an error that names the column."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        try:
            column = pc.cast(column, pa.string())
        except pa.ArrowException as error:
            raise InvalidData(
                f"row kind column `{name}` has type {column.type}", hint="give it as text: +I, -U, +U or -D"
            ) from error
    kinds = pc.index_in(column, value_set=_texts().cast(column.type))
    if kinds.null_count:
        bad = column.filter(pc.is_null(kinds))[0].as_py()
        raise InvalidData(f"row kind column `{name}` holds {bad!r}", hint="use one of +I, -U, +U, -D in every row")
    return kinds.cast(pa.int8())


def kinds_to_text(kinds: pa.Array) -> pa.Array:
    """The spellings of int8 kinds."""
    return _texts().take(kinds)
