"""Texts of nested values, as DEFAULT clauses give them: `[1, 2]`, `{k -> v}` and `{1, a}` for ARRAY, MAP and ROW.

The texts are those that casts to text give, so that reading one back gives the value. An element is what stands between
separators outside of brackets and quotes, without blanks around it; quotes around an element are not part of it. The
word `null` without quotes is no value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from lakebed.errors import InvalidData
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import ArrayType, AtomicType, DataType, MapType, RowType

_CLOSING = {"[": "]", "{": "}", "(": ")", "<": ">"}
_QUOTES = "'\""

FromText = Callable[[str, AtomicType], Any]
"""How the text of an atomic value is read."""


def nested_scalar(text: str, data_type: DataType, from_text: FromText) -> pa.Scalar:
    """The value that a text stands for."""
    return pa.scalar(_read(text.strip(), data_type, from_text), to_arrow_type(data_type))


def _read(text: str, data_type: DataType, from_text: FromText) -> Any:
    if text.lower() == "null":
        return None
    match data_type:
        case ArrayType(element):
            return [_read(part, element, from_text) for part in _parts(_inside(text, "[]", data_type))]
        case MapType(key, value):
            pairs = [_pair(part, text, data_type) for part in _parts(_inside(text, "{}", data_type))]
            return [(_read(left, key, from_text), _read(right, value, from_text)) for left, right in pairs]
        case RowType(fields):
            parts = list(_parts(_inside(text, "{}", data_type)))
            if len(parts) != len(fields):
                raise _wrong(text, data_type)
            named = zip(fields, parts, strict=True)
            return {field.name: _read(part, field.type, from_text) for field, part in named}
        case AtomicType():
            is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in _QUOTES
            return from_text(text[1:-1] if is_quoted else text, data_type)
    raise _wrong(text, data_type)


def _inside(text: str, brackets: str, data_type: DataType) -> str:
    if len(text) < 2 or text[0] != brackets[0] or text[-1] != brackets[1]:
        raise _wrong(text, data_type)
    return text[1:-1].strip()


def _parts(text: str) -> Iterator[str]:
    """What commas separate, outside of brackets and quotes."""
    if not text:
        return
    start = 0
    for index in _places(text):
        if text[index] == ",":
            yield text[start:index].strip()
            start = index + 1
    yield text[start:].strip()


def _pair(part: str, text: str, data_type: DataType) -> tuple[str, str]:
    for index in _places(part):
        if part.startswith("->", index):
            return part[:index].strip(), part[index + 2 :].strip()
    raise _wrong(text, data_type)


def _places(text: str) -> Iterator[int]:
    """Where separators can stand."""
    awaited: list[str] = []
    quote = ""
    for index, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in _QUOTES:
            quote = letter
        elif awaited and letter == awaited[-1]:
            awaited.pop()
        elif letter in _CLOSING:
            awaited.append(_CLOSING[letter])
        elif not awaited:
            yield index


def _wrong(text: str, data_type: DataType) -> InvalidData:
    return InvalidData(
        f"text `{text}` is no {data_type}",
        hint="write `[1, 2]` for an ARRAY, `{k -> v}` for a MAP, `{1, a}` for a ROW",
    )
