"""Which column types may turn into which, and the conversion of a column's old values to its new type.

The table follows Paimon: *implicit* conversions widen, *explicit* ones may lose digits or fail on a value, and a pair
is left out where Paimon has no conversion to read old files with. Nested columns convert part by part, matched by field
id; that is `evolution`, not a cast.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidArgument, InvalidSchema
from lakebed.schema import cast_numbers as cn
from lakebed.schema import cast_times as cm
from lakebed.schema.nested_text import nested_scalar
from lakebed.types import cast_text as ct
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import (
    FLOATS,
    INTEGERS,
    NUMERICS,
    STRING,
    STRINGS,
    TIMESTAMPS,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    TypeRoot,
    same_ignoring_nullability,
)

_T = TypeRoot
_BYTES = frozenset({_T.BINARY, _T.VARBINARY})

_IMPLICIT: dict[TypeRoot, frozenset[TypeRoot]] = {
    _T.TINYINT: NUMERICS - {_T.TINYINT},
    _T.SMALLINT: NUMERICS - {_T.TINYINT, _T.SMALLINT},
    _T.INT: FLOATS | {_T.BIGINT, _T.DECIMAL},
    _T.BIGINT: FLOATS | {_T.DECIMAL},
    _T.FLOAT: frozenset({_T.DOUBLE, _T.DECIMAL}),
    _T.DOUBLE: frozenset({_T.DECIMAL}),
    _T.DECIMAL: FLOATS | {_T.DECIMAL},
    _T.CHAR: STRINGS,
    _T.VARCHAR: frozenset({_T.VARCHAR}),
    _T.BINARY: _BYTES,
    _T.VARBINARY: frozenset({_T.VARBINARY}),
    _T.TIMESTAMP: TIMESTAMPS | {_T.DATE, _T.TIME},
    _T.TIMESTAMP_LTZ: TIMESTAMPS,
}
_EXPLICIT: dict[TypeRoot, frozenset[TypeRoot]] = {
    _T.BOOLEAN: NUMERICS | STRINGS,
    _T.TINYINT: STRINGS | {_T.BOOLEAN},
    _T.SMALLINT: STRINGS | {_T.BOOLEAN, _T.TINYINT},
    _T.INT: STRINGS | TIMESTAMPS | {_T.BOOLEAN, _T.TINYINT, _T.SMALLINT},
    _T.BIGINT: STRINGS | TIMESTAMPS | {_T.BOOLEAN, _T.TINYINT, _T.SMALLINT, _T.INT},
    _T.FLOAT: STRINGS | INTEGERS,
    _T.DOUBLE: STRINGS | INTEGERS | {_T.FLOAT},
    _T.DECIMAL: STRINGS | INTEGERS,
    _T.CHAR: NUMERICS | TIMESTAMPS | _BYTES | {_T.BOOLEAN, _T.DATE, _T.TIME},
    _T.VARCHAR: NUMERICS | TIMESTAMPS | _BYTES | {_T.BOOLEAN, _T.DATE, _T.TIME, _T.CHAR},
    _T.BINARY: STRINGS,
    _T.VARBINARY: STRINGS | {_T.BINARY},
    _T.DATE: TIMESTAMPS | {_T.VARCHAR},
    _T.TIME: TIMESTAMPS | {_T.VARCHAR},
    _T.TIMESTAMP: frozenset({_T.INT, _T.BIGINT, _T.VARCHAR}),
    _T.TIMESTAMP_LTZ: frozenset({_T.INT, _T.BIGINT, _T.VARCHAR, _T.DATE, _T.TIME}),
}
_TEXT_WITHOUT_LIMIT_ONLY = TIMESTAMPS | {_T.DATE, _T.TIME}
"""Types that Paimon turns into STRING, but not into text of limited length."""


class _Kind(StrEnum):
    """Groups of types that share conversions."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    TEXT = "text"
    BYTES = "bytes"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"


_KINDS: dict[TypeRoot, _Kind] = {
    _T.BOOLEAN: _Kind.BOOLEAN,
    **dict.fromkeys(INTEGERS, _Kind.INTEGER),
    **dict.fromkeys(FLOATS, _Kind.FLOAT),
    _T.DECIMAL: _Kind.DECIMAL,
    **dict.fromkeys(STRINGS, _Kind.TEXT),
    **dict.fromkeys(_BYTES, _Kind.BYTES),
    _T.DATE: _Kind.DATE,
    _T.TIME: _Kind.TIME,
    **dict.fromkeys(TIMESTAMPS, _Kind.TIMESTAMP),
}

_Conversion = Callable[[pa.Array, AtomicType, AtomicType], pa.Array]

_CONVERSIONS: dict[tuple[_Kind, _Kind], _Conversion] = {
    (_Kind.BOOLEAN, _Kind.INTEGER): cn.boolean_to_number,
    (_Kind.BOOLEAN, _Kind.FLOAT): cn.boolean_to_number,
    (_Kind.BOOLEAN, _Kind.DECIMAL): cn.boolean_to_number,
    (_Kind.BOOLEAN, _Kind.TEXT): ct.plain_to_text,
    (_Kind.INTEGER, _Kind.BOOLEAN): cn.integer_to_boolean,
    (_Kind.INTEGER, _Kind.INTEGER): cn.integer_to_integer,
    (_Kind.INTEGER, _Kind.FLOAT): cn.number_to_float,
    (_Kind.INTEGER, _Kind.DECIMAL): cn.integer_to_decimal,
    (_Kind.INTEGER, _Kind.TEXT): ct.plain_to_text,
    (_Kind.INTEGER, _Kind.TIMESTAMP): cm.seconds_to_timestamp,
    (_Kind.FLOAT, _Kind.INTEGER): cn.float_to_integer,
    (_Kind.FLOAT, _Kind.FLOAT): cn.number_to_float,
    (_Kind.FLOAT, _Kind.DECIMAL): cn.float_to_decimal,
    (_Kind.FLOAT, _Kind.TEXT): ct.float_to_text,
    (_Kind.DECIMAL, _Kind.INTEGER): cn.decimal_to_integer,
    (_Kind.DECIMAL, _Kind.FLOAT): cn.decimal_to_float,
    (_Kind.DECIMAL, _Kind.DECIMAL): cn.decimal_to_decimal,
    (_Kind.DECIMAL, _Kind.TEXT): ct.decimal_to_text,
    (_Kind.TEXT, _Kind.BOOLEAN): ct.text_to_boolean,
    (_Kind.TEXT, _Kind.INTEGER): ct.text_to_integer,
    (_Kind.TEXT, _Kind.FLOAT): ct.text_to_float,
    (_Kind.TEXT, _Kind.DECIMAL): ct.text_to_decimal,
    (_Kind.TEXT, _Kind.TEXT): ct.text_to_text,
    (_Kind.TEXT, _Kind.BYTES): ct.text_to_bytes,
    (_Kind.TEXT, _Kind.DATE): ct.text_to_date,
    (_Kind.TEXT, _Kind.TIME): ct.text_to_time,
    (_Kind.TEXT, _Kind.TIMESTAMP): ct.text_to_timestamp,
    (_Kind.BYTES, _Kind.TEXT): ct.bytes_to_text,
    (_Kind.BYTES, _Kind.BYTES): ct.bytes_to_bytes,
    (_Kind.DATE, _Kind.TEXT): ct.plain_to_text,
    (_Kind.DATE, _Kind.TIMESTAMP): cm.date_to_timestamp,
    (_Kind.TIME, _Kind.TEXT): ct.time_to_text,
    (_Kind.TIME, _Kind.TIMESTAMP): cm.time_to_timestamp,
    (_Kind.TIMESTAMP, _Kind.INTEGER): cm.timestamp_to_seconds,
    (_Kind.TIMESTAMP, _Kind.TEXT): ct.timestamp_to_text,
    (_Kind.TIMESTAMP, _Kind.DATE): cm.timestamp_to_date,
    (_Kind.TIMESTAMP, _Kind.TIME): cm.timestamp_to_time,
    (_Kind.TIMESTAMP, _Kind.TIMESTAMP): cm.timestamp_to_timestamp,
}


def is_castable(source: DataType, target: DataType, explicit: bool) -> bool:
    """Whether a column of type `source` may become `target`; nullability is left aside."""
    if same_ignoring_nullability(source, target):
        return True
    if not isinstance(target, AtomicType):
        return False
    if not isinstance(source, AtomicType):
        return explicit and target.root in STRINGS and _parts_are_castable(source)
    if target.root in _IMPLICIT.get(source.root, ()):
        return True
    if not explicit or target.root not in _EXPLICIT.get(source.root, ()):
        return False
    is_text = target.root in STRINGS
    return not is_text or source.root not in _TEXT_WITHOUT_LIMIT_ONLY or same_ignoring_nullability(target, STRING)


def _parts_are_castable(source: DataType) -> bool:
    match source:
        case ArrayType(element):
            return is_castable(element, STRING, explicit=True)
        case MapType(key, value):
            return all(is_castable(part, STRING, explicit=True) for part in (key, value))
        case RowType(fields):
            return all(is_castable(member.type, STRING, explicit=True) for member in fields)
        case _:
            return False


def cast_array(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """The values of a column of type `source` as `target`. Values that can not be read raise `InvalidData`."""
    if same_ignoring_nullability(source, target):
        return array
    if not isinstance(target, AtomicType) or not is_castable(source, target, explicit=True):
        raise InvalidArgument(f"{source} can not be cast to {target}", hint="ask `is_castable` first")
    if not isinstance(source, AtomicType):
        return ct.fit_text(_nested_to_text(array, source), target)
    return _CONVERSIONS[_KINDS[source.root], _KINDS[target.root]](array, source, target)


def _nested_to_text(array: pa.Array, source: DataType) -> pa.Array:
    """`[a, b]`, `{k -> v}` and `{a, b}`, with `null` for missing parts."""
    match source:
        case ArrayType(element):
            inner = _part_text(array.flatten(), element)
            return pc.binary_join_element_wise("[", _joined(array, inner), "]", "")
        case MapType(key, value):
            entries = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
            keys, values = entries.flatten().flatten()
            pairs = pc.binary_join_element_wise(_part_text(keys, key), _part_text(values, value), " -> ")
            return pc.binary_join_element_wise("{", _joined(entries, pairs), "}", "")
        case RowType(fields):
            parts = [_part_text(part, member.type) for part, member in zip(array.flatten(), fields, strict=True)]
            text = pc.binary_join_element_wise("{", pc.binary_join_element_wise(*parts, ", "), "}", "")
            return pc.if_else(array.is_valid(), text, pa.scalar(None, pa.string()))
    raise InvalidArgument(f"{source} has no text form", hint="ask `is_castable` first")


def _part_text(values: pa.Array, data_type: DataType) -> pa.Array:
    return cast_array(values, data_type, STRING).fill_null("null")


def _joined(lists: pa.Array, inner: pa.Array) -> pa.Array:
    """Element texts joined per list."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    texts = pa.ListArray.from_arrays(offsets, inner, mask=lists.is_null())
    return pc.binary_join(texts, ", ")


def _from_text(text: str, data_type: AtomicType) -> Any:
    return cast_array(pa.array([text]), STRING, data_type)[0].as_py()


def default_scalar(column: DataField) -> pa.Scalar:
    """The value that writers put in place of NULL: the column's DEFAULT text as its type, or a null without one."""
    arrow = to_arrow_type(column.type)
    text = column.default_value
    if text is None:
        return pa.scalar(None, arrow)
    if len(text) >= 2 and text[0] == text[-1] == "'":
        text = text[1:-1]
    if not isinstance(column.type, AtomicType):
        return nested_scalar(text, column.type, _from_text)
    if not is_castable(STRING, column.type, explicit=True):
        raise InvalidSchema(f"column `{column.name}` of type {column.type} can not have a DEFAULT", hint="remove it")
    return cast_array(pa.array([text]), STRING, column.type)[0]


def filled(column: pa.Array, value: pa.Scalar) -> pa.Array:
    """The column with the value in place of NULL."""
    if not pa.types.is_nested(column.type):
        return column.fill_null(value)
    # Arrow fills atomic columns only; the others take the value from a row behind the last.
    places = np.where(column.is_valid().to_numpy(zero_copy_only=False), np.arange(len(column)), len(column))
    return pa.concat_arrays([column, pa.array([value.as_py()], column.type)]).take(pa.array(places))
