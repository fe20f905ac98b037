"""Values of the binary log: each column of many rows at once, from where `row_layout` found them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.sources.mysql.columns import Column
from lakebed.cdc.sources.mysql.log.binary_json import changed_json_text, json_text
from lakebed.cdc.sources.mysql.log.row_layout import fixed_size
from lakebed.cdc.sources.mysql.log.table_map import Code
from lakebed.cdc.sources.mysql.values import moments
from lakebed.cdc.sources.mysql.values.charsets import to_text
from lakebed.cdc.sources.mysql.values.gather import Array, Bytes, by_distinct, choose, with_nulls
from lakebed.cdc.sources.mysql.values.geometry import geo_json
from lakebed.cdc.sources.mysql.values.moments import read_decimals
from lakebed.cdc.sources.mysql.values.to_lake import (
    from_bytes,
    from_dates,
    from_decimals,
    from_floats,
    from_integers,
    from_sets,
    from_texts,
    from_times,
)
from lakebed.types.logical import AtomicType, DataType, TypeRoot

_INTEGER_SIZES: Final = {Code.TINY: 1, Code.SHORT: 2, Code.INT24: 3, Code.LONG: 4, Code.LONGLONG: 8}
_FIRST_YEAR: Final = 1900


class ColumnReader:
    """Reads one column of a table, into one type of the lake."""

    def __init__(self, column: Column, code: Code, meta: int, target: DataType, zone: str) -> None:
        self.column = column
        self.code = code
        self.meta = meta
        self.target = target
        self.zone = zone

    def read(
        self, data: Bytes, places: Array, lengths: Array | None, valid: Array, partial: Array | None = None
    ) -> pa.Array:
        """The values at these places; those that are `partial` are differences to the one before."""
        if lengths is not None:
            return self._read_varying(data.binary(places, lengths, valid), partial)
        code, column, target = self.code, self.column, self.target
        size = fixed_size(code, self.meta) or 0
        if code in _INTEGER_SIZES:
            return from_integers(self._integers(data, places, size), valid, column, target)
        match code:
            case Code.FLOAT | Code.DOUBLE:
                kind = np.dtype("<f4") if size == 4 else np.dtype("<f8")
                return from_floats(data.block(places, size).view(kind).ravel(), valid, target)
            case Code.NEWDECIMAL:
                return from_decimals(read_decimals(data, places, valid, self.meta >> 8, self.meta & 0xFF), target)
            case Code.YEAR:
                years = data.little(places, 1).astype(np.int64)
                return from_integers(np.where(years == 0, 0, years + _FIRST_YEAR), valid, column, target)
            case Code.ENUM:
                return self._enum(data.little(places, size), valid)
            case Code.SET:
                return from_sets(data.little(places, size), valid, column, target)
            case Code.BIT:
                return self._bits(data, places, valid, size)
            case Code.TIME2:
                return from_times(moments.read_times(data, places, self.meta), valid, column, target)
            case Code.TIME:
                return from_times(moments.read_old_times(data, places), valid, column, target)
            case _:
                return from_dates(self._dates(data, places, valid), column, target)

    def _integers(self, data: Bytes, places: Array, size: int) -> Array:
        if not self.column.unsigned:
            return data.signed(places, size)
        values = data.little(places, size)
        return values if size == 8 else values.astype(np.int64)

    def _dates(self, data: Bytes, places: Array, valid: Array) -> moments.Dates:
        match self.code:
            case Code.DATETIME2:
                return moments.read_datetimes(data, places, valid, self.meta)
            case Code.TIMESTAMP2:
                return moments.read_timestamps(data, places, valid, self.meta, self.zone)
            case Code.DATETIME:
                return moments.read_old_datetimes(data, places, valid)
            case Code.TIMESTAMP:
                return moments.read_old_timestamps(data, places, valid, self.zone)
            case _:
                return moments.read_dates(data, places, valid)

    def _enum(self, numbers: Array, valid: Array) -> pa.Array:
        # Number 0 is the empty text that a wrong value became in a lenient session.
        return from_texts(choose(["", *self.column.members], numbers, valid), self.target)

    def _bits(self, data: Bytes, places: Array, valid: Array, size: int) -> pa.Array:
        if isinstance(self.target, AtomicType) and self.target.root is TypeRoot.BOOLEAN:
            return with_nulls(data.little(places, 1) != 0, valid)
        return from_bytes(data.binary(places, np.full(len(places), size), valid), self.target)

    def _read_varying(self, values: pa.Array, partial: Array | None) -> pa.Array:
        if self.code is Code.JSON:
            return from_texts(_json_texts(values, partial), self.target)
        if self.code is Code.GEOMETRY:
            return from_texts(by_distinct(values, _unless_null(geo_json), pa.string()), self.target)
        if self.column.charset is not None:
            return from_texts(to_text(values, self.column.charset), self.target)
        if self.column.kind == "binary" and self.column.length is not None:
            values = _zero_padded(values, self.column.length)
        return from_bytes(values, self.target)


def _json_texts(values: pa.Array, partial: Array | None) -> pa.Array:
    """Texts of JSON values, or of what differences make of the value before."""
    if partial is None or not partial.any():
        return by_distinct(values, _unless_null(json_text), pa.string())
    changed = np.flatnonzero(partial)
    before, differences = values.take(pa.array(changed - 1)), values.take(pa.array(changed))
    made = [
        None if document is None or told is None else changed_json_text(document, told)
        for document, told in zip(before.to_pylist(), differences.to_pylist(), strict=True)
    ]
    whole = pc.if_else(pa.array(partial), pa.scalar(None, values.type), values)
    texts = by_distinct(whole, _unless_null(json_text), pa.string())
    return pc.replace_with_mask(texts, pa.array(partial), pa.array(made, pa.string()))


def _unless_null(convert: Callable[[bytes], str]) -> Callable[[bytes | None], str | None]:
    return lambda value: None if value is None else convert(value)


def _zero_padded(values: pa.Array, length: int) -> pa.Array:
    """BINARY(n) is stored without the zeros at its end."""
    lengths = np.asarray(pc.fill_null(pc.binary_length(values), length)).astype(np.int64)
    if (lengths == length).all():
        return values
    zeros = pa.array([bytes(count) for count in range(length + 1)], pa.binary())
    return pc.binary_join_element_wise(values, pc.take(zeros, pa.array(length - lengths)), b"")


__all__ = ["ColumnReader"]
