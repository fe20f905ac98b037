"""Columns turned into the texts that CSV and JSON files hold of them, the way Paimon spells them.

The counterpart of `columns`: what is spelled here is read there as the same value, and by Paimon. A value that no
text stands for is refused, since it would come back as another one.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidData, InvalidSchema
from lakebed.formats.base64_text import to_base64
from lakebed.types import cast_text as ct
from lakebed.types.arrow import timestamp_unit
from lakebed.types.logical import (
    BINARIES,
    FLOATS,
    INTEGERS,
    STRING,
    STRINGS,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    RowType,
    TypeRoot,
    time,
)

_TEXT = pa.large_string()
_OTHER_FORMAT = "correct the rows, or set `file.format` to parquet, orc or avro"
_UNIT_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_CONTROLS = {chr(code): f"\\u{code:04X}" for code in range(0x20)} | {
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}
"""Characters that JSON has other spellings for, with them."""
_CONTROL = r"[\x00-\x1f]"


def spelled(values: pa.Array, data_type: AtomicType, column: str) -> pa.Array:
    """The texts of values of an atomic type; nulls stay null."""
    root = data_type.root
    if root in STRINGS:
        return values.cast(_TEXT)
    if root in BINARIES:
        return to_base64(values)
    if root in FLOATS:
        return ct.float_to_text(values, data_type, STRING).cast(_TEXT)
    if root is TypeRoot.DECIMAL:
        return ct.decimal_to_text(values, data_type, STRING).cast(_TEXT)
    if root is TypeRoot.TIME:
        return _spelled_times(values, data_type).cast(_TEXT)
    if root in (TypeRoot.DATE, TypeRoot.TIMESTAMP):
        _check_years(values, data_type, column)
    if root is TypeRoot.TIMESTAMP:
        _check_digits(values, data_type, column)
        return ct.timestamp_to_text(values, data_type, STRING).cast(_TEXT)
    return ct.plain_to_text(values, data_type, STRING).cast(_TEXT)


def _spelled_times(values: pa.Array, data_type: AtomicType) -> pa.Array:
    texts = ct.time_to_text(values, data_type, STRING)
    if data_type.precision >= 3:
        return texts
    # A time may have more digits than its type says, and reading takes them all.
    step = 10 ** (3 - data_type.precision)
    millis = values.cast(pa.int32())
    has_more = pc.not_equal(pc.multiply(pc.divide(millis, step), step), millis)
    return pc.if_else(has_more, ct.time_to_text(values, time(3), STRING), texts)


def _check_years(values: pa.Array, data_type: AtomicType, column: str) -> None:
    years = pc.year(values)
    _refuse(values, pc.invert(pc.and_(pc.greater_equal(years, 1), pc.less_equal(years, 9999))), data_type, column)


def _check_digits(values: pa.Array, data_type: AtomicType, column: str) -> None:
    """A reader cuts texts to the digits of their type."""
    step = 10 ** (_UNIT_DIGITS[timestamp_unit(data_type.precision)] - data_type.precision)
    ticks = values.cast(pa.int64())
    _refuse(values, pc.not_equal(pc.multiply(pc.divide(ticks, step), step), ticks), data_type, column)


def _refuse(values: pa.Array, wrong: pa.Array, data_type: AtomicType, column: str) -> None:
    if pc.any(wrong).as_py():
        # Not by way of Python, which does not know every moment.
        shown = values.filter(wrong)[:1].cast(pa.string())[0].as_py()
        raise InvalidData(
            f"column `{column}`: {shown} has no text that is read as the same {data_type}",
            hint=_OTHER_FORMAT,
        )


def spelled_as_json(values: pa.Array, data_type: DataType, column: str, *, bare: bool = False) -> pa.Array:
    """The texts of values of any type as JSON: atomic values in quotes, `null` for nulls. `bare`: numbers and truth
    without quotes, and moments in UTC, as messages have them that others read."""
    match data_type:
        case AtomicType():
            texts = _bare(values, data_type, column) if bare else _quoted(spelled(values, data_type, column))
        case ArrayType(element):
            begin, end, offsets = _spread(values)
            elements = spelled_as_json(values.values.slice(begin, end - begin), element, column, bare=bare)
            texts = _bracketed(offsets, elements, "[]")
        case MapType(key, value):
            begin, end, offsets = _spread(values)
            keys = spelled_as_json(values.keys.slice(begin, end - begin), key, column)
            items = spelled_as_json(values.items.slice(begin, end - begin), value, column, bare=bare)
            texts = _bracketed(offsets, joined(keys, items, between=":"), "{}")
        case RowType(members):
            # Flattened, so that nothing under a row that is null itself counts.
            parts = [
                joined(
                    f"{json.dumps(member.name, ensure_ascii=False)}:",
                    spelled_as_json(part, member.type, column or member.name, bare=bare),
                )
                for part, member in zip(values.flatten(), members, strict=True)
            ]
            texts = joined("{", joined(*parts, between=","), "}") if parts else pa.repeat("{}", len(values))
        case _:
            raise InvalidSchema(f"column `{column}`: {data_type} has no text form", hint="declare another type")
    return pc.if_else(values.is_valid(), texts.cast(_TEXT), pa.scalar("null", _TEXT))


def _bare(values: pa.Array, data_type: AtomicType, column: str) -> pa.Array:
    root = data_type.root
    if root is TypeRoot.TIMESTAMP_LTZ:
        wall = AtomicType(TypeRoot.TIMESTAMP, data_type.nullable, precision=data_type.precision)
        return joined('"', spelled(values.cast(pa.timestamp(values.type.unit)), wall, column), 'Z"')
    texts = spelled(values, data_type, column)
    if root is TypeRoot.BOOLEAN or root is TypeRoot.DECIMAL or root in INTEGERS:
        return texts
    if root in FLOATS:
        return pc.if_else(pc.is_finite(values), texts, _quoted(texts))
    return _quoted(texts)


def joined(*texts: pa.Array | str, between: str = "") -> pa.Array:
    """Texts side by side."""
    parts = [pa.scalar(text, _TEXT) if isinstance(text, str) else text for text in texts]
    return pc.binary_join_element_wise(*parts, pa.scalar(between, _TEXT))


def _quoted(texts: pa.Array) -> pa.Array:
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"')):
        texts = pc.replace_substring(texts, plain, escaped)
    if pc.any(pc.match_substring_regex(texts, _CONTROL)).as_py():
        for plain, escaped in _CONTROLS.items():
            texts = pc.replace_substring(texts, plain, escaped)
    return joined('"', texts, '"')


def _spread(values: pa.Array) -> tuple[int, int, pa.Array]:
    """Where the elements of a list or map begin and end, and its offsets from there."""
    offsets = values.offsets.to_numpy()
    begin, end = int(offsets[0]), int(offsets[-1])
    return begin, end, pa.array(offsets - begin, pa.int64() if offsets.dtype == np.int64 else pa.int32())


def _bracketed(offsets: pa.Array, elements: pa.Array, brackets: str) -> pa.Array:
    lists = pa.ListArray if offsets.type == pa.int32() else pa.LargeListArray
    together = pc.binary_join(lists.from_arrays(offsets, elements), pa.scalar(",", _TEXT))
    return joined(brackets[0], together, brackets[1])
