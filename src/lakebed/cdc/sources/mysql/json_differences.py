"""JSON values that the binary log tells by their differences: `binlog_row_value_options=PARTIAL_JSON`.

MySQL's updates by JSON_SET, JSON_REPLACE and JSON_REMOVE may log, instead of the new document, what was replaced,
inserted or removed at which path. The old document stands in the same event, so the new one can be made.
"""

from __future__ import annotations

import json
import re
from typing import Final

from lakebed.cdc.sources.mysql.binary_json import Node, json_tree, spelled
from lakebed.cdc.sources.mysql.events import length_encoded
from lakebed.errors import CorruptFile

_REPLACE, _INSERT, _REMOVE = 0, 1, 2
_LEG: Final = re.compile(
    r"""\s* (?: \. \s* (?: (?P<quoted>"(?:[^"\\]|\\.)*") | (?P<name>[^\s.\["*]+) )
        | \[ \s* (?: (?P<index>\d+) | last (?: \s* - \s* (?P<back>\d+))? ) \s* \] )""",
    re.VERBOSE | re.DOTALL,
)

Leg = str | int
"""A step into a document: the name of a member, or the number of an element; from -1 on, counted from the end."""


def changed_json_text(document: bytes, differences: bytes) -> str:
    """The text of a document after some differences, each of which sees what those before it have made."""
    tree = json_tree(document)
    at = 0
    try:
        while at < len(differences):
            operation = differences[at]
            path, at = _sized(differences, at + 1)
            value: Node = ""
            if operation != _REMOVE:
                content, at = _sized(differences, at)
                value = json_tree(content)
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


def _changed(tree: Node, operation: int, legs: list[Leg], value: Node) -> Node:
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


def _member(holder: Node, leg: Leg) -> Node:
    if isinstance(holder, dict) and isinstance(leg, str):
        return holder[leg]
    if isinstance(holder, list) and isinstance(leg, int):
        return holder[leg]
    raise TypeError(leg)


def _legs(path: str) -> list[Leg]:
    """The steps of a path such as `$.a."b c"[3]`."""
    text = path.strip()
    if not text.startswith("$"):
        raise IndexError(path)
    legs: list[Leg] = []
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


__all__ = ["changed_json_text"]
