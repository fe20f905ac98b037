"""INT96 timestamps of Parquet files as raw bytes: the arithmetic in both directions.

An INT96 is the nanoseconds of a day and the day. Released Java reads timestamps finer than microseconds in this form
only, so they are written this way, and all others as integers: Java refuses to filter a coarser one that is INT96. Java
itself stores instants before 1970 with negative nanoseconds, which pyarrow would take for enormous positive ones, and
nothing tells the result from an instant 584 years later; so the bytes are read here too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.errors import Unsupported

RAW = pa.binary(12)
"""What stands for INT96 in the hands of pyarrow."""

_ITEM = np.dtype([("nanos", "<i8"), ("day", "<i4")])
_EPOCH_DAY = 2440588
_NANOS_PER_DAY = 86_400_000_000_000

_Convert = Callable[[pa.Array, pa.DataType], pa.Array]


def int96_columns(file: pq.ParquetFile, shown: pa.Schema) -> set[str]:
    """Top-level columns that are, or contain, INT96. `shown` is what pyarrow makes of the file's schema."""
    if not any(_may_be_int96(field.type) for field in shown):
        return set()
    leaves = [file.schema.column(i) for i in range(len(file.schema))]
    return {leaf.path.split(".")[0] for leaf in leaves if leaf.physical_type == "INT96"}


def _may_be_int96(arrow: pa.DataType) -> bool:
    """Whether pyarrow may have shown an INT96 like this."""
    return bool(pa.types.is_timestamp(arrow) or pa.types.is_nested(arrow))


def encoded(column: pa.ChunkedArray, stored: pa.DataType) -> pa.ChunkedArray:
    """The column as it is stored: bytes wherever the stored type says so."""
    if not contains_raw(stored):
        return column
    return pa.chunked_array([_converted(chunk, stored, _to_bytes) for chunk in column.chunks], stored)


def decoded(array: pa.Array, wanted: pa.DataType, column: str, path: str) -> pa.Array:
    """The array with timestamps for raw INT96, fine enough for `wanted`; other types stay."""

    def from_bytes(raw: pa.Array, timestamp: pa.DataType) -> pa.Array:
        unit = "ns" if pa.types.is_timestamp(timestamp) and timestamp.unit == "ns" else "us"
        return _to_timestamps(raw, unit, column, path)

    return _converted(array, wanted, from_bytes)


def contains_raw(arrow: pa.DataType) -> bool:
    """Whether a stored type is, or contains, INT96."""
    if arrow == RAW:
        return True
    return pa.types.is_nested(arrow) and any(contains_raw(arrow.field(i).type) for i in range(arrow.num_fields))


def _converted(array: pa.Array, wanted: pa.DataType, convert: _Convert) -> pa.Array:
    """The array with its leaves converted where exactly one side is raw; nesting, nulls and offsets stay."""
    if (array.type == RAW) != (wanted == RAW):
        return convert(array, wanted)
    if pa.types.is_struct(array.type) and pa.types.is_struct(wanted):
        types = {child.name: child for child in wanted}
        fields, members = [], []
        # Flattened, members of a null row are null: whatever stands in their place is no timestamp.
        for child, part in zip(array.type, array.flatten(), strict=True):
            target = types.get(child.name, child)
            member = _converted(part, target.type, convert)
            fields.append(target.with_type(member.type))
            members.append(member)
        return pa.StructArray.from_arrays(members, fields=fields, mask=array.is_null())
    if pa.types.is_map(array.type) and pa.types.is_map(wanted):
        keys = _converted(array.keys, wanted.key_type, convert)
        items = _converted(array.items, wanted.item_type, convert)
        arrow = pa.map_(wanted.key_field.with_type(keys.type), wanted.item_field.with_type(items.type))
        entries = pa.StructArray.from_arrays([keys, items], fields=[arrow.key_field, arrow.item_field])
        return _with_child(array, arrow, entries)
    if pa.types.is_list(array.type) and pa.types.is_list(wanted):
        values = _converted(array.values, wanted.value_type, convert)
        return _with_child(array, pa.list_(wanted.value_field.with_type(values.type)), values)
    return array


def _with_child(array: pa.Array, arrow: pa.DataType, child: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(arrow, len(array), array.buffers()[:2], offset=array.offset, children=[child])


def _to_bytes(array: pa.Array, _: pa.DataType) -> pa.Array:
    days, nanos = np.divmod(_int64(array), _NANOS_PER_DAY)
    items = np.empty(len(array), _ITEM)
    items["nanos"], items["day"] = nanos, days + _EPOCH_DAY
    validity = array.is_valid().buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(RAW, len(array), [validity, pa.py_buffer(items)])


def _int64(array: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    values: np.ndarray[tuple[int], np.dtype[np.int64]] = np.frombuffer(array.buffers()[1] or b"", np.int64)
    return values[array.offset : array.offset + len(array)]


def _to_timestamps(array: pa.Array, unit: str, column: str, path: str) -> pa.Array:
    divisor = 1 if unit == "ns" else 1000
    items = np.frombuffer(array.buffers()[1] or b"", _ITEM)[array.offset : array.offset + len(array)]
    # Negative nanoseconds, or those of a whole day and more, move the day.
    extra_days, nanos = np.divmod(items["nanos"], _NANOS_PER_DAY)
    days = items["day"].astype(np.int64) - _EPOCH_DAY + extra_days
    is_null = array.is_null().to_numpy(zero_copy_only=False)
    low, high = _day_range(_NANOS_PER_DAY // divisor)
    outside = ~is_null & ((days < low) | (days > high))
    values = np.where(is_null | outside, 0, days) * (_NANOS_PER_DAY // divisor) + nanos // divisor
    # On the first and the last day the clock decides: the sum wraps around where it does not fit.
    outside |= ~is_null & (((days == high) & (values < 0)) | ((days == low) & (values > 0)))
    if outside.any():
        raise Unsupported(
            f"column `{column}` of data file `{path}` has a timestamp that timestamp[{unit}] can not hold",
            hint="only the years 1677 to 2262 can be read with nanoseconds; declare precision 6 for others",
        )
    return pa.array(values, pa.timestamp(unit), mask=is_null)


def _day_range(units_per_day: int) -> tuple[int, int]:
    """First and last day of which at least a part fits into 64 bits."""
    return (-(2**63)) // units_per_day, (2**63 - 1) // units_per_day
