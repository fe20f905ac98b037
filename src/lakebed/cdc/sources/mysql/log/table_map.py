"""TABLE_MAP events: what the binary log says of a table before the rows that follow.

With `binlog_row_metadata=FULL` it is nearly everything: names, signs, character sets, members of enums, the key. A
`TableMap` keeps the bytes' view (`codes`, `metas`: how values are laid out) beside the column's (`columns`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
import pyarrow as pa

from lakebed.cdc.sources.mysql.columns import BLOBS, TEXTS, Column, TableColumns
from lakebed.cdc.sources.mysql.log.events import HEADER, Kind, Segment, length_encoded
from lakebed.cdc.sources.mysql.values.charsets import bytes_per_character, charset_of, to_text
from lakebed.cdc.sources.mysql.values.gather import Array
from lakebed.errors import CorruptFile, InvalidOption, Unsupported
from lakebed.records import dataclass


class Code(IntEnum):
    """Types as the binary log numbers them."""

    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


_META_SIZE: Final = {
    Code.FLOAT: 1,
    Code.DOUBLE: 1,
    Code.VARCHAR: 2,
    Code.VAR_STRING: 2,
    Code.BIT: 2,
    Code.TIMESTAMP2: 1,
    Code.DATETIME2: 1,
    Code.TIME2: 1,
    Code.JSON: 1,
    Code.NEWDECIMAL: 2,
    Code.ENUM: 2,
    Code.SET: 2,
    Code.BLOB: 1,
    Code.STRING: 2,
    Code.GEOMETRY: 1,
}
_INTEGERS: Final = {
    Code.TINY: "tinyint",
    Code.SHORT: "smallint",
    Code.INT24: "mediumint",
    Code.LONG: "int",
    Code.LONGLONG: "bigint",
}
_NUMBERS: Final = (*_INTEGERS, Code.FLOAT, Code.DOUBLE, Code.NEWDECIMAL, Code.YEAR)
_TEXTUAL: Final = (Code.VARCHAR, Code.VAR_STRING, Code.STRING, Code.BLOB)
_TIMES: Final = {
    Code.TIMESTAMP: "timestamp",
    Code.TIMESTAMP2: "timestamp",
    Code.DATETIME: "datetime",
    Code.DATETIME2: "datetime",
    Code.TIME: "time",
    Code.TIME2: "time",
}
_SIMPLE: Final = {
    Code.FLOAT: "float",
    Code.DOUBLE: "double",
    Code.DATE: "date",
    Code.NEWDATE: "date",
    Code.YEAR: "year",
    Code.JSON: "json",
    Code.GEOMETRY: "geometry",
}
_SIGNS, _CHARSET, _CHARSETS, _NAMES, _SET_MEMBERS, _ENUM_MEMBERS = 1, 2, 3, 4, 5, 6
_KEY, _PREFIX_KEY, _ENUM_CHARSET, _ENUM_CHARSETS = 8, 9, 10, 11


@dataclass(frozen=True, slots=True)
class TableMap:
    """A table as rows of the log lay it out."""

    table: TableColumns
    codes: tuple[Code, ...]
    metas: tuple[int, ...]


def table_name(body: bytes) -> tuple[str, str]:
    """Database and table of a TABLE_MAP event's body, without reading the rest."""
    length = body[8]
    at = 9 + length + 1
    return body[9 : 9 + length].decode(), body[at + 1 : at + 1 + body[at]].decode()


def _parse_table_map(body: bytes, *, mariadb: bool) -> TableMap:
    """The whole of a TABLE_MAP event's body."""
    database, table = table_name(body)
    at = 8 + 1 + body[8] + 1
    at += 1 + body[at] + 1
    count, at = length_encoded(body, at)
    raw_codes = body[at : at + count]
    meta_length, at = length_encoded(body, at + count)
    codes, metas = _types(raw_codes, body[at : at + meta_length], f"{database}.{table}")
    at += meta_length
    nulls = body[at : at + (count + 7) // 8]
    extra = _extra(body[at + (count + 7) // 8 :])
    columns = _columns(codes, metas, nulls, extra, f"{database}.{table}", mariadb)
    return TableMap(TableColumns(database, table, columns, _key(extra, columns)), codes, metas)


def _types(raw: bytes, meta: bytes, table: str) -> tuple[tuple[Code, ...], tuple[int, ...]]:
    codes: list[Code] = []
    metas: list[int] = []
    at = 0
    for number in raw:
        try:
            code = Code(number)
        except ValueError:
            raise Unsupported(
                f"table {table} has a column of a type (number {number}) that can not be read from the binary log",
                hint="leave the table out (excluding_tables), or change the column's type",
            ) from None
        size = _META_SIZE.get(code, 0)
        # Numbers of two bytes have the least byte first, but for pairs of one byte each: those read high, low.
        pair = code in (Code.STRING, Code.NEWDECIMAL, Code.ENUM, Code.SET)
        value = int.from_bytes(meta[at : at + size], "big" if pair else "little")
        at += size
        if code is Code.STRING and value >> 8 in (Code.ENUM, Code.SET):
            code, value = Code(value >> 8), value & 0xFF
        elif code is Code.STRING:
            # The two high bits of the length hide, inverted, in the byte of the type.
            value = ((value >> 4) & 0x300 ^ 0x300) + (value & 0xFF)
        codes.append(code)
        metas.append(value)
    return tuple(codes), tuple(metas)


def _extra(data: bytes) -> dict[int, bytes]:
    fields: dict[int, bytes] = {}
    at = 0
    while at < len(data):
        kind = data[at]
        length, at = length_encoded(data, at + 1)
        fields[kind] = data[at : at + length]
        at += length
    return fields


def _columns(
    codes: tuple[Code, ...], metas: tuple[int, ...], nulls: bytes, extra: dict[int, bytes], table: str, mariadb: bool
) -> tuple[Column, ...]:
    names = _texts(extra.get(_NAMES, b""))
    if len(names) != len(codes):
        raise InvalidOption(
            f"the binary log does not tell the names of the columns of {table}",
            hint="SET GLOBAL binlog_row_metadata = 'FULL'; rows that were written before can not be followed: "
            "start again with a new checkpoint",
        )
    signs = _signs(codes, extra.get(_SIGNS, b""))
    # MariaDB counts geometries among the columns that have a character set.
    textual = (*_TEXTUAL, Code.GEOMETRY) if mariadb else _TEXTUAL
    charsets = _collations(codes, textual, extra.get(_CHARSET), extra.get(_CHARSETS))
    charsets |= _collations(codes, (Code.ENUM, Code.SET), extra.get(_ENUM_CHARSET), extra.get(_ENUM_CHARSETS))
    members = _members(codes, extra, charsets)
    return tuple(
        _column(
            name,
            code,
            meta,
            bool(nulls[i // 8] >> i % 8 & 1),
            signs.get(i, False),
            charsets.get(i, "binary"),
            members.get(i, ()),
        )
        for i, (name, code, meta) in enumerate(zip(names, codes, metas, strict=True))
    )


def _column(
    name: str, code: Code, meta: int, nullable: bool, unsigned: bool, charset: str, members: tuple[str, ...]
) -> Column:
    binary = charset == "binary"
    if code in _INTEGERS:
        return Column(name, _INTEGERS[code], nullable, unsigned)
    if code in _TIMES:
        return Column(name, _TIMES[code], nullable, scale=meta)
    match code:
        case Code.NEWDECIMAL:
            return Column(name, "decimal", nullable, unsigned, length=meta >> 8, scale=meta & 0xFF)
        case Code.BIT:
            return Column(name, "bit", nullable, length=(meta >> 8) * 8 + (meta & 0xFF))
        case Code.ENUM | Code.SET:
            return Column(name, code.name.lower(), nullable, charset=charset, members=members)
        case Code.BLOB:
            return Column(name, (BLOBS if binary else TEXTS)[meta - 1], nullable, charset=None if binary else charset)
        case Code.VARCHAR | Code.VAR_STRING:
            kind = "varbinary" if binary else "varchar"
            length = meta // bytes_per_character(charset)
            return Column(name, kind, nullable, length=length, charset=None if binary else charset)
        case Code.STRING:
            length = meta // bytes_per_character(charset)
            return Column(
                name, "binary" if binary else "char", nullable, length=length, charset=None if binary else charset
            )
        case _:
            return Column(name, _SIMPLE[code], nullable, unsigned)


def _texts(data: bytes) -> list[str]:
    texts: list[str] = []
    at = 0
    while at < len(data):
        length, at = length_encoded(data, at)
        texts.append(data[at : at + length].decode("utf-8"))
        at += length
    return texts


def _numbers(data: bytes) -> list[int]:
    numbers: list[int] = []
    at = 0
    while at < len(data):
        number, at = length_encoded(data, at)
        numbers.append(number)
    return numbers


def _signs(codes: tuple[Code, ...], bits: bytes) -> dict[int, bool]:
    numeric = [i for i, code in enumerate(codes) if code in _NUMBERS]
    return {i: bool(bits[n // 8] >> (7 - n % 8) & 1) for n, i in enumerate(numeric) if n // 8 < len(bits)}


def _collations(
    codes: tuple[Code, ...], of: tuple[Code, ...], common: bytes | None, each: bytes | None
) -> dict[int, str]:
    """Character sets of the columns of some types: one for all with exceptions, or one for each."""
    places = [i for i, code in enumerate(codes) if code in of]
    if each is not None:
        return {i: charset_of(number) for i, number in zip(places, _numbers(each), strict=False)}
    if common is None:
        return {}
    first, *exceptions = _numbers(common)
    found = {i: charset_of(first) for i in places}
    for n, number in zip(exceptions[::2], exceptions[1::2], strict=True):
        found[places[n]] = charset_of(number)
    return found


def _members(codes: tuple[Code, ...], extra: dict[int, bytes], charsets: dict[int, str]) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    for code, field in ((Code.SET, _SET_MEMBERS), (Code.ENUM, _ENUM_MEMBERS)):
        data, at = extra.get(field, b""), 0
        for i in [i for i, other in enumerate(codes) if other is code]:
            if at >= len(data):
                break
            found[i], at = _member_names(data, at, charsets.get(i))
    return found


def _member_names(data: bytes, at: int, charset: str | None) -> tuple[tuple[str, ...], int]:
    count, at = length_encoded(data, at)
    names: list[bytes] = []
    for _ in range(count):
        length, at = length_encoded(data, at)
        names.append(data[at : at + length])
        at += length
    return tuple(to_text(pa.array(names, pa.binary()), charset).to_pylist()), at


def _key(extra: dict[int, bytes], columns: tuple[Column, ...]) -> tuple[str, ...]:
    if _KEY in extra:
        return tuple(columns[i].name for i in _numbers(extra[_KEY]))
    if _PREFIX_KEY in extra:
        return tuple(columns[i].name for i in _numbers(extra[_PREFIX_KEY])[::2])
    return ()


# --- The tables that rows of a log file refer to by number --------------------------------------------------------


_NO_TABLE = 0xFFFFFF  # of an empty event that only ends a statement


class LoggedTables:
    """Numbers of tables and what TABLE_MAP events said of them. Bodies are kept and parsed when rows are wanted."""

    def __init__(self) -> None:
        self._bodies: dict[int, bytes] = {}
        self._names: dict[int, tuple[str, str]] = {}
        self._parsed: dict[int, TableMap] = {}

    def note(self, segment: Segment) -> None:
        """Takes in the TABLE_MAP events of a segment."""
        events = np.flatnonzero(segment.kinds == Kind.TABLE_MAP)
        numbers, first = np.unique(table_numbers(segment, events), return_index=True)
        for number, index in zip(numbers.tolist(), events[first].tolist(), strict=True):
            if number not in self._bodies:
                body = segment.body(index)
                self._bodies[number] = body
                self._names[number] = table_name(body)

    def name(self, number: int) -> tuple[str, str] | None:
        """Database and table; None for the number that stands for none."""
        if number not in self._names:
            if number == _NO_TABLE:
                return None
            raise CorruptFile(
                f"the binary log has rows of a table (number {number}) that it did not describe",
                hint="this is a fault of the reader; report it",
            )
        return self._names[number]

    def table(self, number: int, *, mariadb: bool) -> TableMap:
        """The table of a number."""
        if number not in self._parsed:
            self._parsed[number] = _parse_table_map(self._bodies[number], mariadb=mariadb)
        return self._parsed[number]


def table_numbers(segment: Segment, events: Array) -> Array:
    """The table's number in each of some TABLE_MAP or row events."""
    return segment.bytes.little(segment.starts[events] + HEADER, 6).astype(np.int64)


__all__ = ["Code", "LoggedTables", "TableMap", "table_name", "table_numbers"]
