"""Columns of texts, as CSV and JSON files hold them, turned into columns of their types.

Spelled as Paimon spells them: numbers, decimals, days and times as its casts do, bytes in base64. A text that does not
spell a value of its column is damage and said so; it never turns into a null.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidData, InvalidSchema, Unsupported
from lakebed.types import cast_text as ct
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import (
    BINARIES,
    FLOATS,
    INTEGERS,
    STRING,
    STRINGS,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
)

_INTEGER = "^[+-]?[0-9]+$"
_NO_TEXT = "read the table with the engine that wrote it, or have it rewritten as parquet"
_ZONE = "is written as the wall clock of the writer's time zone, and the file does not say which"


def check_spelled(fields: Sequence[DataField], path: str, *, nested: bool, zoned: bool = False) -> None:
    """Raises Unsupported for a column whose texts do not tell its values."""
    for field in fields:
        reason = unspelled(field.type, nested=nested, zoned=zoned)
        if reason:
            raise Unsupported(f"column `{field.name}` of data file `{path}` {reason}", hint=_NO_TEXT)


def unspelled(data_type: DataType, *, nested: bool, zoned: bool = False) -> str:
    """Why texts do not tell the values of a type; empty if they do. `zoned`: texts of moments say their zone."""
    match data_type:
        case AtomicType(root=TypeRoot.TIMESTAMP_LTZ) if not zoned:
            return f"of type {data_type} {_ZONE}"
        case AtomicType(root=TypeRoot.VARIANT | TypeRoot.BLOB) | MultisetType():
            return f"of type {data_type} has no text form"
        case AtomicType():
            return ""
        case _ if not nested:
            return f"of type {data_type} has no text form"
        case ArrayType(element):
            return unspelled(element, nested=True, zoned=zoned)
        case MapType(key, value):
            if not isinstance(key, AtomicType) or key.root in BINARIES:
                return f"of type {data_type} has keys without a text form"
            return unspelled(key, nested=True) or unspelled(value, nested=True, zoned=zoned)
        case RowType(members):
            return next(filter(None, (unspelled(each.type, nested=True, zoned=zoned) for each in members)), "")
    raise InvalidSchema(f"{data_type} is no type of a column", hint="declare another type")


def texts_of(data_type: DataType) -> pa.DataType:
    """The Arrow type with text in the place of every atomic type."""
    match data_type:
        case ArrayType(element):
            return pa.list_(texts_of(element))
        case MapType(key, value):
            return pa.map_(texts_of(key), texts_of(value))
        case RowType(members):
            return pa.struct([(member.name, texts_of(member.type)) for member in members])
    return pa.string()


def parsed(texts: pa.Array, data_type: DataType) -> pa.Array:
    """The values of texts of the type `texts_of(data_type)`. Arrays must begin at their buffers' beginning."""
    match data_type:
        case ArrayType(element):
            return pa.ListArray.from_arrays(texts.offsets, parsed(texts.values, element), mask=texts.is_null())
        case MapType(key, value):
            keys, items = parsed(texts.keys, key), parsed(texts.items, value)
            return pa.MapArray.from_arrays(texts.offsets, keys, items, mask=texts.is_null())
        case RowType(members):
            # Flattened: Arrow puts empty texts, not nulls, under a row that is null itself.
            columns = [parsed(part, member.type) for part, member in zip(texts.flatten(), members, strict=True)]
            names = [member.name for member in members]
            return pa.StructArray.from_arrays(columns, names, mask=texts.is_null())
        case AtomicType():
            return _parsed_atoms(texts, data_type)
    raise InvalidSchema(f"{data_type} has no text form", hint=_NO_TEXT)


def _parsed_atoms(texts: pa.Array, target: AtomicType) -> pa.Array:
    root = target.root
    if root in STRINGS:
        return texts
    if root in BINARIES:
        return _from_base64(texts)
    if root is TypeRoot.BOOLEAN:
        lower = pc.utf8_lower(texts)
        _require(texts, pc.is_in(lower, value_set=pa.array(["true", "false"])), target)
        return pc.equal(lower, "true")
    if root in INTEGERS:
        _require(texts, pc.match_substring_regex(texts, _INTEGER), target)
        return ct.text_to_integer(texts, STRING, target)
    if root in FLOATS:
        return ct.text_to_float(texts, STRING, target)
    if root is TypeRoot.TIMESTAMP_LTZ:
        _require(texts, pc.match_substring_regex(texts, ct.ZONED), target)
        return ct.text_to_timestamp(ct.in_utc(texts), STRING, target).cast(to_arrow_type(target))
    casts = {
        TypeRoot.DECIMAL: ct.text_to_decimal,
        TypeRoot.DATE: ct.text_to_date,
        TypeRoot.TIME: ct.text_to_time,
        TypeRoot.TIMESTAMP: ct.text_to_timestamp,
    }
    values = casts[root](texts, STRING, target)
    _require(texts, values.is_valid(), target)  # a decimal of too many digits would be null
    return values.cast(to_arrow_type(target))


def _require(texts: pa.Array, valid: pa.Array, target: AtomicType) -> None:
    wrong = pc.and_(texts.is_valid(), pc.invert(pc.fill_null(valid, False)))
    if pc.any(wrong).as_py():
        raise ct.unreadable(texts.filter(wrong)[0].as_py(), target)


def _from_base64(texts: pa.Array) -> pa.Array:
    encoded = texts.dictionary_encode()
    try:
        values = [binascii.a2b_base64(text, strict_mode=True) for text in encoded.dictionary.to_pylist()]
    except binascii.Error as error:
        raise InvalidData(f"a text is no base64: {error}", hint="restore the file") from error
    return pa.array(values, pa.binary()).take(encoded.indices)
