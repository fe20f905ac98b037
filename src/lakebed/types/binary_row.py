"""BinaryRow: the form of keys, partitions and column statistics in metadata, and of the bytes bucket hashes run over.

A row is an 8-byte aligned record: row kind and null bits, one 8-byte slot per field, then whatever does not fit a slot.
In metadata four bytes of arity stand in front. This file is the codec's front door; many rows go through it at once,
column by column. It does not hash, compare or interpret rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakebed.errors import InvalidArgument, InvalidData
from lakebed.types.arrow import to_arrow_type
from lakebed.types.binary_layout import ARITY_PREFIX_BYTES, Bytes, assemble, lay_out, to_binary
from lakebed.types.binary_nested import lower_any, read_row
from lakebed.types.binary_read import Source, refuse
from lakebed.types.binary_slots import Ints, byte_spans
from lakebed.types.logical import DataType

EMPTY_ROW = bytes(12)
"""The serialized row without fields: the partition of an unpartitioned table."""

_BLOCK_ROWS = 1 << 16
"""Rows encoded at a time, so that intermediate arrays stay small whatever the input's size."""


def encode_rows(
    columns: Sequence[pa.Array],
    types: Sequence[DataType],
    *,
    arity_prefix: bool = True,
    length: int | None = None,
    reserve_nulls: bool = True,
) -> pa.Array:
    """One serialized row per row of the columns, as a bytes array.

    `length` is the number of rows and needed only without columns. Nulls of wide decimals and timestamps take up
    variable space, as Java's key projections have it; `reserve_nulls=False` leaves that out. Readers do not care,
    hashes do.
    """
    rows = _common_length(columns, types, length)
    prefix = len(types).to_bytes(ARITY_PREFIX_BYTES, "big") if arity_prefix else b""
    blocks: list[tuple[Bytes, Ints]] = []
    for begin in range(0, max(rows, 1), _BLOCK_ROWS):
        size = min(_BLOCK_ROWS, rows - begin)
        block = [
            lower_any(column.slice(begin, size), data_type, reserve_nulls=reserve_nulls)
            for column, data_type in zip(columns, types, strict=True)
        ]
        blocks.append(assemble(lay_out(block), size, prefix))
    if len(blocks) == 1:
        return to_binary(*blocks[0])
    borders = np.zeros(rows + 1, np.int64)
    np.cumsum(np.concatenate([np.diff(block_borders) for _, block_borders in blocks]), out=borders[1:])
    return to_binary(np.concatenate([data for data, _ in blocks]), borders)


def decode_rows(
    rows: Sequence[bytes] | pa.Array, types: Sequence[DataType], chosen: Sequence[int] | None = None
) -> list[pa.Array]:
    """One Arrow array per field of serialized rows, of those in `chosen` places or of all.

    Their arity must be the number of types.
    """
    source, borders = _source(rows)
    lengths = np.diff(borders)
    if bool((lengths < ARITY_PREFIX_BYTES).any()):
        short = int(np.argmax(lengths < ARITY_PREFIX_BYTES))
        refuse(f"row {short} has {int(lengths[short])} bytes, too few even for its number of fields")
    arities = source.int32(borders[:-1]).astype(np.int32).byteswap()
    wrong = arities != len(types)
    if wrong.any():
        row = int(np.argmax(wrong))
        refuse(f"row {row} says it has {int(arities[row])} fields, {len(types)} are expected")
    return read_row(source, borders[:-1] + ARITY_PREFIX_BYTES, lengths - ARITY_PREFIX_BYTES, types, chosen=chosen)


def encode_row(values: Sequence[pa.Scalar | object], types: Sequence[DataType]) -> bytes:
    """One serialized row of Arrow scalars or Python values."""
    if len(values) != len(types):
        raise InvalidArgument(
            f"{len(values)} values are given for {len(types)} fields", hint="give one value (or None) per field"
        )
    columns = [_one_value(value, data_type) for value, data_type in zip(values, types, strict=True)]
    encoded: bytes = encode_rows(columns, types, length=1)[0].as_py()
    return encoded


def decode_row(data: bytes, types: Sequence[DataType]) -> list[pa.Scalar]:
    """The values of one serialized row."""
    return [column[0] for column in decode_rows([data], types)]


def _one_value(value: pa.Scalar | object, data_type: DataType) -> pa.Array:
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, 1)
    try:
        return pa.array([value], to_arrow_type(data_type))
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InvalidData(
            f"{value!r} is no value of {data_type}: {error}", hint=f"give a {to_arrow_type(data_type)} or None"
        ) from error


def _common_length(columns: Sequence[pa.Array], types: Sequence[DataType], length: int | None) -> int:
    if len(columns) != len(types):
        raise InvalidArgument(
            f"{len(columns)} columns are given for {len(types)} types", hint="give one type per column"
        )
    lengths = {len(column) for column in columns} | ({length} if length is not None else set())
    if len(lengths) != 1:
        raise InvalidArgument(
            f"the number of rows is not clear: {sorted(lengths) or 'no columns'}",
            hint="give columns of equal length, or `length` when there are none",
        )
    return lengths.pop()


def _source(rows: Sequence[bytes] | pa.Array) -> tuple[Source, Ints]:
    try:
        array = rows if isinstance(rows, pa.Array) else pa.array(rows, pa.large_binary())
        array = array if pa.types.is_binary(array.type) else array.cast(pa.large_binary())
    except (pa.ArrowException, TypeError) as error:
        raise InvalidArgument(f"rows are not bytes: {error}", hint="give bytes objects or a bytes array") from error
    if array.null_count:
        refuse(f"row {int(np.argmax(np.asarray(array.is_null())))} is missing")
    data, borders = byte_spans(array)
    return Source.of(data), borders
