"""Ranges of primary keys: how a table is cut for copying, and on which side of a cut a key lies.

A cut is the key of a row, as texts. Ranges are open below and closed above. Whole numbers are compared here; the
order of other keys (collations!) is the server's, so the server is asked, for all keys at once.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.sources.mysql.columns import INTEGERS, Column, TableColumns
from lakebed.cdc.sources.mysql.copy.text_rows import quoted
from lakebed.cdc.sources.mysql.server.server import rows
from lakebed.cdc.sources.mysql.values.gather import Array
from lakebed.records import dataclass

Cut = tuple[str, ...]
"""The values of the key's columns: numbers and times as the server spells them, bytes in hexadecimal."""

_BYTES: Final = ("binary", "varbinary")
_CUTTABLE: Final = (*INTEGERS, "decimal", "char", "varchar", *_BYTES, "date", "datetime", "year")
_ASKED_AT_ONCE: Final = 5_000
_NUMBER: Final = pa.decimal128(20, 0)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Rows of a table whose key is greater than `low` and not greater than `high`; None is no bound."""

    database: str
    table: str
    low: Cut | None = None
    high: Cut | None = None
    is_anew: bool = False
    """Whether the rows of the table in the lake go first."""

    def to_json(self) -> list[Any]:
        """For an offset."""
        bounds = [self.low and list(self.low), self.high and list(self.high)]
        return [self.database, self.table, *bounds, *([True] if self.is_anew else [])]

    @classmethod
    def from_json(cls, body: list[Any]) -> KeyRange:
        """Inverse of `to_json`."""
        database, table, low, high, *more = body
        first, last = (None if bound is None else tuple(bound) for bound in (low, high))
        return cls(database, table, first, last, is_anew=bool(more))


def key_columns(table: TableColumns) -> list[Column]:
    """The columns of the primary key, in the key's order."""
    return [column for name in table.primary_key if (column := table.column(name)) is not None]


def can_be_cut(table: TableColumns, *, orders_keys: bool = True) -> bool:
    """Whether the order of the keys is one that a statement can name: else the table is copied in one go."""
    keys = key_columns(table)
    return bool(keys) and all(column.kind in (_CUTTABLE if orders_keys else INTEGERS) for column in keys)


def cut_expression(column: Column) -> str:
    """The expression that gives a key's value as it stands in a cut."""
    name = quoted(column.name)
    return f"HEX({name})" if column.kind in _BYTES else f"CAST({name} AS CHAR)"


def range_condition(connection: Any, table: TableColumns, low: Cut | None, high: Cut | None) -> str:
    """The condition of a range, for WHERE."""
    keys = key_columns(table)
    names = [quoted(column.name) for column in keys]
    parts = ["TRUE"]
    if low is not None:
        parts.append(_beyond(names, _literals(connection, keys, low)))
    if high is not None:
        parts.append(f"NOT {_beyond(names, _literals(connection, keys, high))}")
        # The condition above says it all, but servers find the range in the index only by this one.
        parts.append(f"{names[0]} <= {_literals(connection, keys, high)[0]}")
    return " AND ".join(parts)


def _beyond(names: list[str], values: list[str]) -> str:
    """(a, b) > (x, y), spelled out so that indexes are used."""
    alternatives = [
        " AND ".join([*(f"{n} = {v}" for n, v in zip(names[:i], values[:i], strict=True)), f"{names[i]} > {values[i]}"])
        for i in range(len(names))
    ]
    return f"({names[0]} >= {values[0]} AND ({' OR '.join(f'({part})' for part in alternatives)}))"


def _literals(connection: Any, keys: list[Column], cut: Cut) -> list[str]:
    return [_literal(connection, column, text) for column, text in zip(keys, cut, strict=True)]


def _literal(connection: Any, column: Column, text: str) -> str:
    if column.kind in _BYTES:
        return f"X'{bytes.fromhex(text).hex()}'"
    if column.kind in INTEGERS or column.kind == "year":
        return str(int(text))
    escaped: str = connection.escape(text)
    return escaped


def within(connection: Any, table: TableColumns, keys: dict[str, pa.Array], low: Cut | None, high: Cut | None) -> Array:
    """Which of these keys (columns of the lake's types) lie in a range."""
    columns = key_columns(table)
    count = len(keys[columns[0].name])
    if low is None and high is None:
        return np.ones(count, bool)
    if all(column.kind in INTEGERS for column in columns):
        numbers = [keys[column.name] for column in columns]
        inside = np.ones(count, bool)
        if low is not None:
            inside &= _beyond_numbers(numbers, low)
        if high is not None:
            inside &= ~_beyond_numbers(numbers, high)
        return inside
    return _ask(connection, table, keys, low, high, count)


def _beyond_numbers(numbers: list[pa.Array], cut: Cut) -> Array:
    beyond = np.zeros(len(numbers[0]), bool)
    equal = np.ones(len(numbers[0]), bool)
    for values, text in zip(numbers, cut, strict=True):
        # Whole numbers may have become booleans, decimals or texts on their way.
        values = values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values.cast(_NUMBER)
        limit = pa.scalar(int(text), values.type) if values.type != _NUMBER else pa.scalar(Decimal(text), _NUMBER)
        beyond |= equal & np.asarray(pc.greater(values, limit))
        equal &= np.asarray(pc.equal(values, limit))
    return beyond


def _ask(
    connection: Any, table: TableColumns, keys: dict[str, pa.Array], low: Cut | None, high: Cut | None, count: int
) -> Array:
    columns = key_columns(table)
    texts = [_texts(column, keys[column.name]) for column in columns]
    typed = ", ".join(
        f"{quoted(column.name)} {_sql_type(connection, table, column)} PATH '$[{i}]'"
        for i, column in enumerate(columns)
    )
    condition = range_condition(connection, table, low, high)
    inside = np.zeros(count, bool)
    for begin in range(0, count, _ASKED_AT_ONCE):
        given = list(zip(*(part[begin : begin + _ASKED_AT_ONCE] for part in texts), strict=True))
        document = connection.escape(json.dumps(given, ensure_ascii=False))
        found = rows(
            connection,
            f"SELECT `#` FROM (SELECT `#`, {', '.join(_unpacked(column) for column in columns)} FROM "
            f"JSON_TABLE({document}, '$[*]' COLUMNS (`#` FOR ORDINALITY, {typed})) AS given) AS k WHERE {condition}",
        )
        inside[[begin + int(number) - 1 for (number,) in found]] = True
    return inside


def _texts(column: Column, values: pa.Array) -> list[str]:
    if column.kind in _BYTES:
        return [value.hex() for value in values.to_pylist()]
    return [str(value) for value in values.to_pylist()]


def _unpacked(column: Column) -> str:
    name = quoted(column.name)
    return f"UNHEX({name}) AS {name}" if column.kind in _BYTES else name


def _sql_type(connection: Any, table: TableColumns, column: Column) -> str:
    """The column's type, as a column of JSON_TABLE can have it; texts with the collation that orders them."""
    if column.kind in _BYTES:
        return f"VARCHAR({2 * (column.length or 1)})"
    found = rows(
        connection,
        "SELECT column_type, character_set_name, collation_name FROM information_schema.columns "
        "WHERE table_schema = %s AND table_name = %s AND column_name = %s",
        (table.database, table.table, column.name),
    )
    kind, charset, collation = found[0] if found else (column.kind, column.charset, None)
    return str(kind) if charset is None else f"{kind} CHARACTER SET {charset} COLLATE {collation}"


__all__ = ["Cut", "KeyRange", "can_be_cut", "cut_expression", "key_columns", "range_condition", "within"]
