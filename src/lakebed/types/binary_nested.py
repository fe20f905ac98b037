"""ROW, ARRAY, MAP, MULTISET and VARIANT in BinaryRows, in both directions.

Nested columns are never keys, but they may be in statistics and in single rows. They take the same path as plain
columns: a nested column becomes a column of bytes that is pointed to, and its parts are columns in turn. `lower_any`
and `_read_any` are the entries that know all types.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.types import logical as lt
from lakebed.types.arrow import to_arrow_type
from lakebed.types.binary_layout import assemble, lay_out, null_bits_size, put, put_spill, to_binary, with_offsets
from lakebed.types.binary_read import Places, Source, describe, pointed_spans, read_atomic, read_spans, refuse, validity
from lakebed.types.binary_slots import (
    Ints,
    RaggedSpill,
    Slots,
    aligned_words,
    as_column,
    byte_spans,
    lower,
    null_mask,
    slot_dtype,
)
from lakebed.types.logical import ArrayType, AtomicType, DataType, MapType, MultisetType, RowType, TypeRoot

# --- to bytes --------------------------------------------------------------------------------------------------------


def lower_any(column: pa.Array, data_type: DataType, *, reserve_nulls: bool) -> Slots:
    """Slots of a column of any type."""
    array = as_column(column, data_type)
    if isinstance(data_type, AtomicType) and data_type.root is not TypeRoot.VARIANT:
        return lower(array, data_type, reserve_nulls=reserve_nulls)
    data, borders = byte_spans(_nested_bytes(array, data_type))
    is_null = null_mask(array)
    lengths = np.diff(borders) if is_null is None else np.where(is_null, 0, np.diff(borders))
    return Slots(lengths.view(np.uint64), is_null, RaggedSpill(aligned_words(data), borders[:-1], lengths))


def _nested_bytes(array: pa.Array, data_type: DataType) -> pa.Array:
    """One bytes value per value; what stands at nulls does not matter."""
    match data_type:
        case RowType(fields):
            parts = [
                lower_any(part, member.type, reserve_nulls=False)
                for part, member in zip(array.flatten(), fields, strict=True)
            ]
            return to_binary(*assemble(lay_out(parts), len(array)))
        case ArrayType(element):
            return _array_bytes(_borders(array), array.values, element)
        case MapType(key, value):
            return _map_bytes(array, key, value)
        case MultisetType(element):
            return _map_bytes(array, element, lt.INT)
        case AtomicType():
            value, metadata = array.flatten()
            return _joined(pc.binary_length(value), value, metadata)


def _borders(array: pa.Array) -> Ints:
    """Borders of lists or maps in their children, which are whole even when the array is a slice."""
    return np.asarray(array.offsets).astype(np.int64)


def _joined(lengths: pa.Array, *parts: pa.Array) -> pa.Array:
    """A 32-bit length, then the parts, row by row."""
    numbers = np.asarray(lengths.fill_null(0)).astype(np.int32)
    prefix = pa.Array.from_buffers(pa.binary(4), len(numbers), [None, pa.py_buffer(numbers)])
    columns = [prefix, *parts]
    separator = pa.scalar(b"", pa.large_binary())
    return pc.binary_join_element_wise(*(column.cast(pa.large_binary()) for column in columns), separator)


def _map_bytes(array: pa.Array, key: DataType, value: DataType) -> pa.Array:
    borders = _borders(array)
    keys = _array_bytes(borders, array.keys, key)
    return _joined(pc.binary_length(keys), keys, _array_bytes(borders, array.items, value))


def _array_bytes(borders: Ints, elements: pa.Array, element: DataType) -> pa.Array:
    """BinaryArrays of the elements between the borders."""
    counts = np.diff(borders)
    first = borders - borders[0]
    parent = np.repeat(np.arange(len(counts)), counts)
    index = np.arange(first[-1]) - first[parent]
    slots = lower_any(elements.slice(borders[0], first[-1]), element, reserve_nulls=False)
    width = slot_dtype(element).itemsize
    header = _header_size(counts)
    fixed = (header + counts * width + 7) & -8
    # Spilled bytes of all elements in a row, then counted from the start of the array each belongs to.
    spilled = np.zeros(first[-1] + 1, np.int64)
    if slots.spill is not None:
        np.cumsum(np.broadcast_to(slots.spill.size_bytes, first[-1]), out=spilled[1:])
    offsets = fixed[parent] + spilled[:-1] - spilled[first[parent]]
    array_borders = np.zeros(len(borders), np.int64)
    np.cumsum(fixed + spilled[first[1:]] - spilled[first[:-1]], out=array_borders[1:])

    out = np.zeros(int(array_borders[-1]), np.uint8)
    start = array_borders[:-1]
    put(out, start, counts.astype(np.uint32))
    if slots.is_null is not None:
        bits = (1 << (index[slots.is_null] & 7)).astype(np.uint8)
        np.bitwise_or.at(out, (start[parent] + 4 + (index >> 3))[slots.is_null], bits)
    values = slots.values if slots.spill is None else with_offsets(slots.values, slots.spill, offsets)
    put(out, (start + header)[parent] + width * index, np.asarray(values))
    if slots.spill is not None:
        put_spill(out, start[parent] + offsets, slots.spill)
    return to_binary(out, array_borders)


def _header_size(counts: Ints) -> Ints:
    """Bytes of the element count and the null bits of a BinaryArray."""
    return 4 + 4 * ((counts + 31) >> 5)


# --- from bytes ------------------------------------------------------------------------------------------------------


def _read_any(source: Source, places: Places, data_type: DataType) -> pa.Array:
    """Values of any type."""
    if isinstance(data_type, AtomicType) and data_type.root is not TypeRoot.VARIANT:
        return read_atomic(source, places, data_type)
    starts, lengths = pointed_spans(source, places)
    arrow, nulls = to_arrow_type(data_type), validity(places.is_null)
    match data_type:
        case RowType(fields):
            parts = read_row(source, starts, lengths, [member.type for member in fields], places)
            return pa.Array.from_buffers(arrow, len(starts), [nulls], children=parts)
        case ArrayType(element):
            borders, elements = _read_elements(source, starts, lengths, element, places)
            return pa.Array.from_buffers(arrow, len(starts), [nulls, borders], children=[elements])
        case MapType(key, value):
            return _read_map(source, starts, lengths, key, value, places, arrow)
        case MultisetType(element):
            return _read_map(source, starts, lengths, element, lt.INT, places, arrow)
        case AtomicType():
            head = _first_part(source, starts, lengths, places)
            value = read_spans(source, starts + 4 * ~places.is_null, head, places, pa.binary())
            rest = np.where(places.is_null, 0, lengths - 4 - head)
            metadata = read_spans(source, starts + lengths - rest, rest, places, pa.binary())
            return pa.Array.from_buffers(arrow, len(starts), [nulls], children=[value, metadata])


def read_row(
    source: Source,
    starts: Ints,
    lengths: Ints,
    types: Sequence[DataType],
    parent: Places | None = None,
    chosen: Sequence[int] | None = None,
) -> list[pa.Array]:
    """Fields of rows without arity prefix, those in `chosen` places or all; of a null parent, all fields are null."""
    head = null_bits_size(len(types))
    parent_null = np.zeros(len(starts), np.bool_) if parent is None else parent.is_null
    too_short = (lengths < head + 8 * len(types)) & ~parent_null
    if too_short.any():
        row = int(np.argmax(too_short))
        where = "row" if parent is None else f"{parent.what}, value"
        refuse(f"{where} {row} has {int(lengths[row])} bytes, {len(types)} fields need {head + 8 * len(types)}")
    fields = []
    for position in range(len(types)) if chosen is None else chosen:
        data_type = types[position]
        at_null_byte = np.where(parent_null, 0, starts + (position + 8) // 8)
        is_null = (source.bytes[at_null_byte] >> ((position + 8) % 8)) & 1 == 1
        is_null |= parent_null
        slot = np.where(parent_null, 0, starts + head + 8 * position)
        what = describe(position, data_type) if parent is None else f"{parent.what}, {describe(position, data_type)}"
        fields.append(_read_any(source, Places(what, slot, starts, starts + lengths, is_null), data_type))
    return fields


def _first_part(source: Source, starts: Ints, lengths: Ints, places: Places) -> Ints:
    """The 32-bit length of the first part of a map or variant, checked against the whole."""
    head = np.where(places.is_null, 0, source.int32(starts))
    places.check((lengths >= 4) & (head >= 0) & (head <= lengths - 4), "its first part is longer than all of it")
    return head


def _read_elements(
    source: Source, starts: Ints, lengths: Ints, element: DataType, places: Places
) -> tuple[pa.Buffer, pa.Array]:
    """Elements of BinaryArrays: Arrow's offsets and the flat values."""
    counts = np.where(places.is_null, 0, source.int32(starts))
    header, width = _header_size(counts), slot_dtype(element).itemsize
    places.check((counts >= 0) & (header + counts * width <= lengths), "its elements reach past its end")
    borders = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=borders[1:])
    if borders[-1] > np.iinfo(np.int32).max:
        refuse(f"{places.what}: more elements than one column can hold")
    parent = np.repeat(np.arange(len(counts)), counts)
    index = np.arange(borders[-1]) - borders[parent]
    base = starts[parent]
    is_null = (source.bytes[base + 4 + (index >> 3)] >> (index & 7)) & 1 == 1
    what = f"{places.what}, element ({element})"
    inner = Places(what, base + header[parent] + width * index, base, (starts + lengths)[parent], is_null)
    return pa.py_buffer(borders.astype(np.int32)), _read_any(source, inner, element)


def _read_map(
    source: Source, starts: Ints, lengths: Ints, key: DataType, value: DataType, places: Places, arrow: pa.DataType
) -> pa.Array:
    head = _first_part(source, starts, lengths, places)
    key_starts = starts + 4 * ~places.is_null
    key_borders, keys = _read_elements(source, key_starts, head, key, places)
    rest = np.where(places.is_null, 0, lengths - 4 - head)
    value_borders, values = _read_elements(source, key_starts + head, rest, value, places)
    if not key_borders.equals(value_borders):
        refuse(f"{places.what}: a map has another number of keys than of values")
    if keys.null_count:
        refuse(f"{places.what}: a map has a null key")
    entries = pa.StructArray.from_arrays([keys, values], fields=[arrow.key_field, arrow.item_field])
    return pa.Array.from_buffers(arrow, len(starts), [validity(places.is_null), key_borders], children=[entries])
