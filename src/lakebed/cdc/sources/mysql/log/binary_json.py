"""MySQL's binary JSON as text. MariaDB stores JSON as text and never comes here.

A document is a tree of offsets. Documents are walked one by one, once for each distinct value.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Final

import numpy as np

from lakebed.cdc.sources.mysql.log.events import length_encoded
from lakebed.cdc.sources.mysql.log.table_map import Code
from lakebed.cdc.sources.mysql.values.gather import Bytes
from lakebed.cdc.sources.mysql.values.moments import decimal_size, read_decimals
from lakebed.errors import CorruptFile

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL, _STRING, _OPAQUE = 0, 1, 2, 3, 4, 12, 15
_LITERALS: Final = ("null", "true", "false")
_NUMBERS: Final = {5: "<h", 6: "<H", 7: "<i", 8: "<I", 9: "<q", 10: "<Q", 11: "<d"}
_INLINE_SMALL: Final = (_LITERAL, 5, 6)
_INLINE_LARGE: Final = (*_INLINE_SMALL, 7, 8)

Node = str | list["Node"] | dict[str, "Node"]
"""A value: the text of a scalar, or what a container holds."""


def json_text(document: bytes) -> str:
    """The JSON text of a document, spelled as the server spells it."""
    return spelled(_json_tree(document))


def _json_tree(document: bytes) -> Node:
    """What a document consists of."""
    if not document:
        return "null"
    try:
        return _value(document[0], document, 1)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise CorruptFile(
            "a JSON value in the binary log is not understood", hint="this is a fault of the reader; report it"
        ) from error


def spelled(node: Node) -> str:
    """The text of a value."""
    if isinstance(node, str):
        return node
    if isinstance(node, list):
        return "[" + ", ".join(map(spelled, node)) + "]"
    return "{" + ", ".join(f"{_text(name)}: {spelled(node[name])}" for name in sorted(node, key=_order)) + "}"


def _order(name: str) -> tuple[int, bytes]:
    """The server keeps short names before long ones."""
    data = name.encode()
    return len(data), data


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _value(kind: int, data: bytes, at: int) -> Node:
    if kind in (_SMALL_OBJECT, _LARGE_OBJECT):
        return _object(data, at, kind == _LARGE_OBJECT)
    if kind in (_SMALL_ARRAY, _LARGE_ARRAY):
        return _array(data, at, kind == _LARGE_ARRAY)
    if kind == _LITERAL:
        return _LITERALS[data[at]]
    if kind in _NUMBERS:
        number = struct.unpack_from(_NUMBERS[kind], data, at)[0]
        return _double_text(number) if isinstance(number, float) else str(number)
    if kind == _STRING:
        length, at = _length(data, at)
        return _text(data[at : at + length].decode("utf-8"))
    if kind == _OPAQUE:
        length, start = _length(data, at + 1)
        return _opaque(data[at], data[start : start + length])
    raise IndexError(kind)


def _double_text(number: float) -> str:
    """As few digits as tell the number, without an exponent from 1e-15 up to 1e15, and so that it shows what it is."""
    if number == 0:
        return repr(number)
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)
    if point < -14 or (point > 15 and len(text) <= point):
        text = f"{text[0]}{'.' * (len(text) > 1)}{text[1:]}e{point - 1}"
    elif point <= 0:
        text = f"0.{'0' * -point}{text}"
    else:
        text = f"{text[:point].ljust(point, '0')}.{text[point:] or '0'}"
    return "-" * sign + text


def _object(data: bytes, at: int, large: bool) -> Node:
    size = 4 if large else 2
    count = _number(data, at, size)
    keys = at + 2 * size
    entries = keys + count * (size + 2)
    found: dict[str, Node] = {}
    for i in range(count):
        place = keys + i * (size + 2)
        start = at + _number(data, place, size)
        name = data[start : start + _number(data, place + size, 2)].decode("utf-8")
        found[name] = _entry(data, at, entries, i, large)
    return found


def _array(data: bytes, at: int, large: bool) -> Node:
    size = 4 if large else 2
    count = _number(data, at, size)
    return [_entry(data, at, at + 2 * size, i, large) for i in range(count)]


def _entry(data: bytes, base: int, entries: int, number: int, large: bool) -> Node:
    """A value entry: its kind and the value itself, if it is small, or where it lies from the container's beginning."""
    size = 4 if large else 2
    at = entries + number * (size + 1)
    kind = data[at]
    if kind in (_INLINE_LARGE if large else _INLINE_SMALL):
        return _value(kind, data, at + 1)
    return _value(kind, data, base + _number(data, at + 1, size))


def _number(data: bytes, at: int, size: int) -> int:
    return int(struct.unpack_from("<I" if size == 4 else "<H", data, at)[0])


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Seven bits to a byte, the least first; the high bit says that more follow."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def _opaque(code: int, data: bytes) -> str:
    reader = _OPAQUE_READERS.get(code)
    if reader is not None:
        return reader(data)
    return json.dumps(f"base64:type{code}:{base64.b64encode(data).decode()}")


def _decimal(data: bytes) -> str:
    precision, scale = data[0], data[1]
    packed = Bytes.of(data[2 : 2 + decimal_size(precision, scale)])
    value: Decimal = read_decimals(packed, np.array([0]), np.array([True]), precision, scale)[0].as_py()
    return format(value, "f")


def _date_parts(data: bytes) -> tuple[str, str]:
    packed = struct.unpack("<q", data)[0]
    whole, micros = packed >> 24, packed & 0xFFFFFF
    month = whole >> 22
    date = f"{month // 13:04}-{month % 13:02}-{whole >> 17 & 31:02}"
    return date, f"{whole >> 12 & 31:02}:{whole >> 6 & 63:02}:{whole & 63:02}.{micros:06}"


def _time(data: bytes) -> str:
    packed = struct.unpack("<q", data)[0]
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    whole, micros = packed >> 24, packed & 0xFFFFFF
    return json.dumps(f"{sign}{whole >> 12 & 1023:02}:{whole >> 6 & 63:02}:{whole & 63:02}.{micros:06}")


_OPAQUE_READERS: Final[dict[int, Callable[[bytes], str]]] = {
    Code.NEWDECIMAL: _decimal,
    Code.DATE: lambda data: json.dumps(_date_parts(data)[0]),
    Code.DATETIME: lambda data: json.dumps(" ".join(_date_parts(data))),
    Code.TIMESTAMP: lambda data: json.dumps(" ".join(_date_parts(data))),
    Code.TIME: _time,
}


# --- JSON values that the binary log tells by their differences: `binlog_row_value_options=PARTIAL_JSON` ----------
#
# MySQL's updates by JSON_SET, JSON_REPLACE and JSON_REMOVE may log, instead of the new document, what was replaced,
# inserted or removed at which path. The old document stands in the same event, so the new one can be made.


_REPLACE, _INSERT, _REMOVE = 0, 1, 2
_LEG: Final = re.compile(
    r"""\s* (?: \. \s* (?: (?P<quoted>"(?:[^"\\]|\\.)*") | (?P<name>[^\s.\["*]+) )
        | \[ \s* (?: (?P<index>\d+) | last (?: \s* - \s* (?P<back>\d+))? ) \s* \] )""",
    re.VERBOSE | re.DOTALL,
)

_Leg = str | int
"""A step into a document: the name of a member, or the number of an element; from -1 on, counted from the end."""


def changed_json_text(document: bytes, differences: bytes) -> str:
    """The text of a document after some differences, each of which sees what those before it have made."""
    tree = _json_tree(document)
    at = 0
    try:
        while at < len(differences):
            operation = differences[at]
            path, at = _sized(differences, at + 1)
            value: Node = ""
            if operation != _REMOVE:
                content, at = _sized(differences, at)
                value = _json_tree(content)
            tree = _changed(tree, operation, _legs(path.decode("utf-8")), value)
    except (IndexError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise CorruptFile(
            "a difference of JSON values in the binary log does not fit the value",
            hint="this is a fault of the reader; report it",
        ) from error
    return spelled(tree)


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = length_encoded(data, at)
    if at + length > len(data):
        raise IndexError(at)
    return data[at : at + length], at + length


def _changed(tree: Node, operation: int, legs: list[_Leg], value: Node) -> Node:
    if not legs:
        if operation != _REPLACE:
            raise IndexError(operation)
        return value
    holder: Node = tree
    for leg in legs[:-1]:
        holder = _member(holder, leg)
    leg = legs[-1]
    if isinstance(holder, dict) and isinstance(leg, str):
        if operation == _REPLACE or (operation == _INSERT and leg not in holder):
            holder[leg] = value
        elif operation == _REMOVE:
            del holder[leg]
        return tree
    if isinstance(holder, list) and isinstance(leg, int):
        if operation == _REPLACE:
            holder[leg] = value
        elif operation == _INSERT:
            holder.insert(leg, value)
        elif operation == _REMOVE:
            del holder[leg]
        else:
            raise IndexError(operation)
        return tree
    raise TypeError(leg)


def _member(holder: Node, leg: _Leg) -> Node:
    if isinstance(holder, dict) and isinstance(leg, str):
        return holder[leg]
    if isinstance(holder, list) and isinstance(leg, int):
        return holder[leg]
    raise TypeError(leg)


def _legs(path: str) -> list[_Leg]:
    """The steps of a path such as `$.a."b c"[3]`."""
    text = path.strip()
    if not text.startswith("$"):
        raise IndexError(path)
    legs: list[_Leg] = []
    at = 1
    while at < len(text):
        found = _LEG.match(text, at)
        if found is None:
            raise IndexError(path)
        if found["quoted"] is not None:
            legs.append(str(json.loads(found["quoted"])))
        elif found["name"] is not None:
            legs.append(found["name"])
        elif found["index"] is not None:
            legs.append(int(found["index"]))
        else:
            legs.append(-1 - int(found["back"] or 0))
        at = found.end()
    return legs


__all__ = ["Node", "changed_json_text", "json_text", "spelled"]
