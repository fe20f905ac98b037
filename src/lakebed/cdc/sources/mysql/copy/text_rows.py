"""Results of a query, read in large pieces: the values of all rows of a piece at once, as arrays of the lake's types.

PyMySQL sends the query; the rows, which it would make into Python objects one by one, are taken from its socket as
they come. Values are texts; numbers and times among them are parsed by Arrow and numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lakebed.cdc.sources.mysql.columns import GEOMETRIES, INTEGERS, Column
from lakebed.cdc.sources.mysql.log.dump import HEADER, cut, more_at_once, packet_length
from lakebed.cdc.sources.mysql.log.events import length_encoded
from lakebed.cdc.sources.mysql.values import moments
from lakebed.cdc.sources.mysql.values.gather import PADDING, Array, Bytes, by_distinct
from lakebed.cdc.sources.mysql.values.geometry import geo_json
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
from lakebed.errors import StorageError
from lakebed.types.logical import AtomicType, DataType, TypeRoot

_PIECE: Final = 4 << 20
_QUERY: Final = 0x03
_NULL, _TWO, _THREE, _EIGHT, _ERROR = 0xFB, 0xFC, 0xFD, 0xFE, 0xFF
_END: Final = 0xFE


def quoted(name: str) -> str:
    """A name as it stands in a statement."""
    return "`" + name.replace("`", "``") + "`"


def selected(column: Column) -> str:
    """The expression that gives a column's value in a form that loses nothing."""
    name = quoted(column.name)
    match column.kind:
        case "float":
            return f"{name} + 0e0"  # as FLOAT it would be rounded to six digits
        case "set":
            return f"{name} + 0"
        case _:
            return name


def rows_of_query(
    connection: Any, query: str, columns: Sequence[Column], targets: Sequence[DataType], zone: str = "UTC"
) -> Iterator[list[pa.Array]]:
    """Arrays of the columns of a query that selects `selected(column)` for each, piece by piece."""
    try:
        connection._execute_command(_QUERY, query)
        _read_head(connection)
    except connection.Error as error:
        raise StorageError(
            f"the server refuses or gave up a query: {error.args[-1] if error.args else error}",
            hint="try again; if it stays so, look into the server's error log",
        ) from error
    file = connection._rfile
    rest = b""
    done = False
    while not done:
        data, filled = _receive(file, rest, connection)
        starts, ends, at = cut(data, filled)
        rest = bytes(data[at:filled])
        if not len(starts):
            continue
        buffer = np.frombuffer(data, np.uint8)
        done = bool(buffer[starts[-1]] == _END and ends[-1] - starts[-1] < 9)
        if buffer[starts[-1]] == _ERROR:
            raise _failed(buffer[starts[-1] : ends[-1]].tobytes())
        starts = starts[:-1] if done else starts
        if len(starts):
            yield _read_rows(Bytes(buffer), starts, columns, targets, zone)


def _read_head(connection: Any) -> None:
    """Passes over the descriptions of the columns."""
    first = connection._read_packet()  # raises the server's errors
    width, _ = length_encoded(first.get_all_data(), 0)
    for _ in range(width + 1):
        connection._read_packet()


def _receive(file: Any, rest: bytes, connection: Any) -> tuple[bytearray, int]:
    wanted = _PIECE
    if len(rest) >= HEADER:
        wanted = max(wanted, 2 * (len(rest) + packet_length(rest)))
    data = bytearray(wanted + PADDING)
    filled = len(rest)
    data[:filled] = rest
    first = True
    while filled < wanted and (first or more_at_once(connection._sock)):
        try:
            part = file.read1(wanted - filled)
        except OSError:
            part = b""
        if not part:
            raise StorageError(
                "the server ended the connection in the middle of a result", hint="start again: nothing is lost"
            )
        data[filled : filled + len(part)] = part
        filled += len(part)
        first = False
    return data, filled


def _failed(packet: bytes) -> StorageError:
    text = packet[3:].decode("utf-8", "replace")
    return StorageError(
        f"the server gave up a query (error {int.from_bytes(packet[1:3], 'little')}): {text}", hint="start again"
    )


def _read_rows(
    data: Bytes, starts: Array, columns: Sequence[Column], targets: Sequence[DataType], zone: str
) -> list[pa.Array]:
    arrays: list[pa.Array] = []
    at = starts
    for column, target in zip(columns, targets, strict=True):
        first = data.data[at].astype(np.int64)
        valid = first != _NULL
        lengths = np.where(valid, first, 0)
        prefix = np.ones(len(at), np.int64)
        if (first > _NULL).any():
            for mark, size in ((_TWO, 2), (_THREE, 3), (_EIGHT, 8)):
                lengths = np.where(first == mark, data.little(at + 1, size).astype(np.int64), lengths)
                prefix = np.where(first == mark, size + 1, prefix)
        places = at + prefix
        arrays.append(_column(data, places, lengths, valid, column, target, zone))
        at = places + lengths
    return arrays


def _column(
    data: Bytes, places: Array, lengths: Array, valid: Array, column: Column, target: DataType, zone: str
) -> pa.Array:
    kind = column.kind
    if kind in ("date", "datetime", "timestamp"):
        dates = moments.dates_of_texts(data, places, lengths, valid)
        return from_dates(moments.in_zone(dates, zone) if kind == "timestamp" else dates, column, target)
    if kind == "time":
        return from_times(moments.times_of_texts(data, places, lengths, valid), valid, column, target)
    values = data.binary(places, lengths, valid)
    if kind in INTEGERS or kind in ("year", "set"):
        number = pa.uint64() if kind == "set" or (kind == "bigint" and column.unsigned) else pa.int64()
        numbers = np.asarray(values.cast(pa.string()).cast(number).fill_null(0))
        if kind == "set":
            return from_sets(numbers, valid, column, target)
        return from_integers(numbers, valid, column, target)
    if kind in ("float", "double"):
        doubles = np.asarray(values.cast(pa.string()).cast(pa.float64()).fill_null(0.0))
        return from_floats(doubles.astype(np.float32) if kind == "float" else doubles, valid, target)
    if kind == "decimal":
        precision = column.length or 10
        make = pa.decimal128 if precision <= 38 else pa.decimal256
        return from_decimals(values.cast(pa.string()).cast(make(precision, column.scale)), target)
    if kind in GEOMETRIES:
        return from_texts(by_distinct(values, lambda value: value and geo_json(value), pa.string()), target)
    if kind == "bit":
        if isinstance(target, AtomicType) and target.root is TypeRoot.BOOLEAN:
            return from_integers(np.where(valid, data.data[places] != 0, 0).astype(np.int64), valid, column, target)
        return from_bytes(values, target)
    if kind in ("enum", "json") or column.charset is not None:
        return from_texts(values.cast(pa.string()), target)
    return from_bytes(values, target)


__all__ = ["quoted", "rows_of_query", "selected"]
