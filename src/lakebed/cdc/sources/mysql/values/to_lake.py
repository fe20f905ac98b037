"""Values in MySQL's own terms as arrays of the lake's types.

The binary log and the copy read values in two ways, but both end here: the same value gives the same array, whichever
way it came. Each function takes what a kind of column holds and the type it is to become.
"""

from __future__ import annotations

import base64

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.sources.mysql.columns import Column
from lakebed.cdc.sources.mysql.values.gather import Array, by_distinct, with_nulls
from lakebed.cdc.sources.mysql.values.moments import Dates, date_texts, time_texts, to_days, to_times, to_timestamps
from lakebed.errors import InvalidData
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import AtomicType, DataType, TypeRoot

_MOST_INT64 = (1 << 63) - 1


def is_text(target: DataType) -> bool:
    """Whether the target is a text."""
    return isinstance(target, AtomicType) and target.root in (TypeRoot.VARCHAR, TypeRoot.CHAR)


def from_integers(values: Array, valid: Array, column: Column, target: DataType) -> pa.Array:
    """Whole numbers: int64, or uint64 for BIGINT UNSIGNED."""
    root = target.root if isinstance(target, AtomicType) else None
    if root is TypeRoot.BOOLEAN:
        return with_nulls(values != 0, valid)
    if root is TypeRoot.DECIMAL:
        limbs = np.zeros((len(values), 2), np.uint64)
        limbs[:, 0] = values.view(np.uint64)
        if values.dtype == np.int64:
            limbs[:, 1] = np.where(values < 0, np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0))
        validity = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(to_arrow_type(target), len(values), [validity, pa.py_buffer(limbs)])
    if is_text(target):
        return with_nulls(values, valid).cast(pa.string())
    if values.dtype == np.uint64:
        too_large = valid & (values > np.uint64(_MOST_INT64))
        if too_large.any():
            raise InvalidData(
                f"column `{column.name}` holds {values[too_large][0]}, which is no BIGINT of the lake",
                hint="leave out the type mapping `bigint-unsigned-to-bigint`: the column becomes DECIMAL(20, 0)",
            )
        values = values.astype(np.int64)
    return with_nulls(np.where(valid, values, 0), valid).cast(to_arrow_type(target))


def from_floats(values: Array, valid: Array, target: DataType) -> pa.Array:
    """FLOAT and DOUBLE."""
    return with_nulls(values, valid).cast(to_arrow_type(target))


def from_decimals(values: pa.Array, target: DataType) -> pa.Array:
    """DECIMAL, as Arrow decimals of the column's own precision and scale."""
    return _decimal_texts(values) if is_text(target) else values.cast(to_arrow_type(target))


def _decimal_texts(values: pa.Array) -> pa.Array:
    """All digits, as the server spells them, never with an exponent."""
    kind = values.type
    scale = kind.scale
    make = pa.decimal128 if kind.bit_width == 128 else pa.decimal256
    values = pa.concat_arrays([values])
    whole = pa.Array.from_buffers(make(kind.precision, 0), len(values), values.buffers())
    digits = whole.cast(pa.string())
    if scale == 0:
        return digits
    negative = pc.starts_with(digits, "-")
    sizes = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
    return pc.binary_join_element_wise(
        pc.if_else(negative, "-", ""),
        pc.utf8_slice_codeunits(sizes, 0, -scale),
        ".",
        pc.utf8_slice_codeunits(sizes, -scale),
        "",
    )


def from_dates(dates: Dates, column: Column, target: DataType) -> pa.Array:
    """DATE, DATETIME and TIMESTAMP."""
    if is_text(target):
        return date_texts(dates, None if column.kind == "date" else column.scale)
    kind = to_arrow_type(target)
    if column.kind == "date":
        return to_days(dates, column.name, target.nullable)
    return to_timestamps(dates, column.name, target.nullable, kind)


def from_times(micros: Array, valid: Array, column: Column, target: DataType) -> pa.Array:
    """TIME."""
    return time_texts(micros, valid, column.scale) if is_text(target) else to_times(micros, valid, column.name)


def from_texts(values: pa.Array, target: DataType) -> pa.Array:
    """Texts, as texts or as their bytes."""
    return values if is_text(target) else values.cast(pa.binary())


def from_bytes(values: pa.Array, target: DataType) -> pa.Array:
    """Bytes. As text they are in base64: they need not be text at all."""
    if not is_text(target):
        return values
    return by_distinct(values, lambda value: None if value is None else base64.b64encode(value).decode(), pa.string())


def from_sets(bits: Array, valid: Array, column: Column, target: DataType) -> pa.Array:
    """SET, as a number whose bits are its members."""
    count = len(column.members)
    chosen = (bits[:, None] >> np.arange(count, dtype=np.uint64)) & np.uint64(1)
    chosen[~valid] = 0
    offsets = np.zeros(len(bits) + 1, np.int32)
    np.cumsum(chosen.sum(axis=1), out=offsets[1:])
    which = pa.array(np.nonzero(chosen)[1].astype(np.int32))
    names = pc.take(pa.array(column.members, pa.string()), which)
    lists = pa.ListArray.from_arrays(pa.array(offsets), names, mask=pa.array(~valid))
    return _from_lists(lists, target)


def _from_lists(lists: pa.Array, target: DataType) -> pa.Array:
    """SET, as a list of its members."""
    return pc.binary_join(lists, ",") if is_text(target) else lists.cast(to_arrow_type(target))


__all__ = [
    "from_bytes",
    "from_dates",
    "from_decimals",
    "from_floats",
    "from_integers",
    "from_sets",
    "from_texts",
    "from_times",
    "is_text",
]
