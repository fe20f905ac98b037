"""Arrow columns to Avro's row-wise binary encoding, without a Python loop over rows.

Every column becomes one or more arrays of *cells*, the encoded bytes of each row's value; joining the cells of all
columns row by row gives the records. Variable-length integers are computed for a whole column at once, and a list's
elements already lie side by side, so a list cell is the same bytes under coarser offsets. Containers, codecs and
schemas are not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.formats.conform import map_entries
from lakebed.types import logical as lt
from lakebed.types.logical import ArrayType, AtomicType, DataField, DataType, MapType, MultisetType, RowType, TypeRoot

_CELL = pa.large_binary()
_EMPTY = b""
_ZERO = b"\x00"
_SECOND_BRANCH = b"\x02"
_VARINT_LIMITS = np.array([1 << (7 * k) for k in range(1, 10)], np.uint64)

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Part: TypeAlias = "pa.LargeBinaryArray | pa.LargeBinaryScalar"


@cache
def _cell(data: bytes) -> pa.LargeBinaryScalar:
    # Made when first needed: pyarrow loads pandas, if there is one, to make a scalar.
    return pa.scalar(data, _CELL)


def encode_records(columns: Sequence[pa.Array], fields: Sequence[DataField]) -> pa.LargeBinaryArray:
    """One encoded record per row."""
    return _joined(*_members(columns, [field.type for field in fields]))


def encode_long(value: int) -> bytes:
    """One integer as Avro writes it."""
    return bytes(_varints(np.array([value], np.int64))[0].as_py())


def _members(columns: Sequence[pa.Array], types: Sequence[DataType]) -> list[Part]:
    return [part for column, data_type in zip(columns, types, strict=True) for part in _nullable(column, data_type)]


def _nullable(array: pa.Array, data_type: DataType) -> list[Part]:
    parts = _parts(array, data_type)
    if not data_type.nullable:
        return parts
    if not array.null_count:
        return [_cell(_SECOND_BRANCH), *parts]
    return [pc.if_else(array.is_valid(), _joined(_cell(_SECOND_BRANCH), *parts), _cell(_ZERO))]


def _parts(array: pa.Array, data_type: DataType) -> list[Part]:
    """What a value's bytes are joined of; what stands in place of a null is arbitrary, but never null.

    Parts stay apart as long as possible: every join copies, and one join of a whole record suffices.
    """
    match data_type:
        case AtomicType():
            return _atomic(array, data_type)
        case ArrayType(element):
            return [_blocks(_joined(*_nullable(array.flatten(), element)), _lengths(array))]
        case MapType(key, value):
            return [_map(array, key, value)]
        case MultisetType(element):
            return [_map(array, element, lt.INT)]
        case RowType(members):
            return _members(array.flatten(), [member.type for member in members])


def _atomic(array: pa.Array, data_type: AtomicType) -> list[Part]:
    root = data_type.root
    if root in lt.STRINGS or root in lt.BINARIES:
        return _sized(pc.fill_null(array.cast(pa.binary()), b"").cast(_CELL))
    if root is TypeRoot.DECIMAL:
        return _sized(_big_endian(array))
    if root is TypeRoot.BOOLEAN:
        return [_fixed(pc.fill_null(array, False).to_numpy(zero_copy_only=False).view(np.uint8))]
    if root in lt.FLOATS:
        values = pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False)
        return [_fixed(values.astype(values.dtype.newbyteorder("<"), copy=False))]
    if pa.types.is_timestamp(array.type) and array.type.unit == "s":
        array = array.cast(pa.timestamp("ms", tz=array.type.tz))
    if pa.types.is_temporal(array.type):
        array = array.cast(pa.int64() if array.type.bit_width == 64 else pa.int32())
    return [_varints(pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False))]


def _map(array: pa.Array, key: DataType, value: DataType) -> pa.LargeBinaryArray:
    entries = map_entries(array)
    pairs = entries.flatten()
    cells = _joined(*_parts(pairs.field(0), key), *_nullable(pairs.field(1), value))
    return _blocks(cells, _lengths(entries))


def _lengths(array: pa.ListArray) -> Longs:
    lengths: Longs = pc.fill_null(pc.list_value_length(array), 0).to_numpy().astype(np.int64)
    return lengths


def _blocks(elements: pa.LargeBinaryArray, lengths: Longs) -> pa.LargeBinaryArray:
    """Lists and maps: the number of elements, the elements, a zero. An empty one is the zero alone."""
    element_offsets = _offsets_of(elements)
    offsets = element_offsets[np.concatenate(([0], np.cumsum(lengths)))]
    bodies = pa.Array.from_buffers(_CELL, len(lengths), [None, pa.py_buffer(offsets), elements.buffers()[2]])
    return pc.if_else(pa.array(lengths > 0), _joined(_varints(lengths), bodies, _cell(_ZERO)), _cell(_ZERO))


def _offsets_of(cells: pa.LargeBinaryArray) -> Longs:
    offsets = np.frombuffer(cells.buffers()[1], np.int64) if cells.buffers()[1] else np.zeros(1, np.int64)
    return offsets[cells.offset : cells.offset + len(cells) + 1]


def _sized(content: pa.LargeBinaryArray) -> list[Part]:
    """Text, bytes and decimals: length, then content."""
    return [_varints(pc.binary_length(content).to_numpy(zero_copy_only=False).astype(np.int64)), content]


def _joined(*parts: Part) -> pa.LargeBinaryArray:
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _cell(_EMPTY))


def _fixed(values: npt.NDArray[np.generic]) -> pa.LargeBinaryArray:
    offsets = np.arange(len(values) + 1, dtype=np.int64) * values.dtype.itemsize
    return pa.Array.from_buffers(
        _CELL, len(values), [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(values))]
    )


def _ragged(matrix: Bytes, keep: npt.NDArray[np.bool_], lengths: Longs) -> pa.LargeBinaryArray:
    """The kept bytes of each row of a matrix as one cell per row."""
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
    return pa.Array.from_buffers(_CELL, len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(matrix[keep])])


def _varints(values: Longs) -> pa.LargeBinaryArray:
    """Zigzag, then seven bits per byte, lowest first, with the top bit set on all bytes but the last."""
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    lengths = np.searchsorted(_VARINT_LIMITS, zigzag, side="right").astype(np.int64) + 1
    width = int(lengths.max(initial=1))
    matrix = np.empty((len(values), width), np.uint8)
    for place in range(width):
        matrix[:, place] = (zigzag >> np.uint64(7 * place)).astype(np.uint8) | np.uint8(0x80)
    places = np.arange(width)
    matrix[places == lengths[:, None] - 1] &= 0x7F
    return _ragged(matrix, places < lengths[:, None], lengths)


def _big_endian(array: pa.Decimal128Array) -> pa.LargeBinaryArray:
    """Unscaled values in two's complement with as few bytes as each needs."""
    raw = np.frombuffer(array.buffers()[1] or b"", np.uint8)[array.offset * 16 : (array.offset + len(array)) * 16]
    matrix = raw.reshape(-1, 16)[:, ::-1]
    sign = np.where(matrix[:, 0] & 0x80, 0xFF, 0).astype(np.uint8)
    redundant = np.zeros(len(array), np.int64)
    leading = np.ones(len(array), np.bool_)
    for place in range(15):
        leading &= (matrix[:, place] == sign) & ((matrix[:, place + 1] ^ sign) < 0x80)
        redundant += leading
    return _ragged(matrix, np.arange(16) >= redundant[:, None], 16 - redundant)
