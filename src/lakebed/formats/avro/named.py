"""Schemas of Avro records with every name replaced by what it stands for, as objects that a decoder walks along."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lakebed.errors import InvalidSchema
from lakebed.records import dataclass

_PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_MOST_DEPTH: Final = 64
_MOST_ENTRIES: Final = 20_000
"""Names that stand for records that hold names and so on can make a short text endless."""


@dataclass(frozen=True, slots=True)
class Node:
    """A type: one of the primitive ones, or `record`, `enum`, `array`, `map`, `union`, `fixed`.

    `parts` are the types of a record's fields (`names` has theirs), of an array's or a map's items, or a union's
    branches. `names` are an enum's symbols, too. `told` is all that the schema says of the type, logical types and
    notes of other systems among it.
    """

    kind: str
    parts: tuple[Node, ...] = ()
    names: tuple[str, ...] = ()
    size: int = 0
    told: Mapping[str, Any] | None = None

    def note(self, key: str) -> Any:
        """What the schema says beside the type, or None."""
        return (self.told or {}).get(key)

    @property
    def plain(self) -> Node:
        """Of a union of null and one other type, that; else the type itself."""
        others = [part for part in self.parts if part.kind != "null"]
        return others[0] if self.kind == "union" and len(others) == 1 else self

    @property
    def is_optional(self) -> bool:
        """Whether null is a value."""
        return self.kind == "null" or (self.kind == "union" and any(part.kind == "null" for part in self.parts))

    def field(self, name: str) -> Node | None:
        """The type of a record's field."""
        return self.parts[self.names.index(name)] if self.kind == "record" and name in self.names else None


def parsed_schema(text: str, references: Sequence[str] = ()) -> Node:
    """The schema of a text; `references` are texts of schemas whose names it uses, each after those that it uses."""
    reader = _Reader()
    try:
        for reference in references:
            reader.node(json.loads(reference), "", 0)
        return reader.node(json.loads(text), "", 0)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidSchema(
            f"this is no schema of Avro: {text[:200]} ({type(error).__name__}: {error})",
            hint="look at the schema in its registry",
        ) from error


class _Reader:
    def __init__(self) -> None:
        self._named: dict[str, Node | None] = {}
        """Types by their full names; None for one that is being read."""
        self._entries = 0

    def node(self, body: Any, space: str, depth: int) -> Node:
        self._entries += 1
        if depth > _MOST_DEPTH or self._entries > _MOST_ENTRIES:
            raise ValueError("it is nested too deeply")
        if isinstance(body, str):
            return self._by_name(body, space, None)
        if isinstance(body, list):
            return Node("union", tuple(self.node(each, space, depth + 1) for each in body))
        kind = body["type"]
        if isinstance(kind, dict | list):
            return self.node(kind, space, depth + 1)
        if kind in ("record", "error"):
            return self._record(body, space, depth)
        if kind == "enum":
            symbols = tuple(str(each) for each in body["symbols"])
            return self._known(body, space, Node("enum", (), symbols, told=body))
        if kind == "fixed":
            return self._known(body, space, Node("fixed", size=int(body["size"]), told=body))
        if kind in ("array", "map"):
            items = self.node(body["items" if kind == "array" else "values"], space, depth + 1)
            return Node(kind, (items,), told=body)
        return self._by_name(kind, space, body)

    def _record(self, body: Mapping[str, Any], space: str, depth: int) -> Node:
        name = _full_name(body, space)
        self._named[name] = None
        inner = name.rpartition(".")[0]
        parts = tuple(self.node(_typed(each), inner, depth + 1) for each in body["fields"])
        found = Node("record", parts, tuple(str(each["name"]) for each in body["fields"]), told=body)
        self._named[name] = found
        return found

    def _known(self, body: Mapping[str, Any], space: str, node: Node) -> Node:
        self._named[_full_name(body, space)] = node
        return node

    def _by_name(self, name: str, space: str, told: Mapping[str, Any] | None) -> Node:
        if name in _PRIMITIVES:
            return Node(name, told=told)
        for full in (name if "." in name or not space else f"{space}.{name}", name):
            if full in self._named:
                found = self._named[full]
                if found is None:
                    raise ValueError(f"`{full}` contains itself")
                return found
        raise ValueError(f"nothing says what `{name}` is")


def _typed(field: Mapping[str, Any]) -> Any:
    """The type of a field. Some writers put notes beside it rather than into it."""
    kind = field["type"]
    notes = {key: value for key, value in field.items() if key in ("logicalType", "precision", "scale")}
    return {"type": kind, **notes} if notes and isinstance(kind, str) and kind in _PRIMITIVES else kind


def _full_name(body: Mapping[str, Any], space: str) -> str:
    name = str(body["name"])
    inner = str(body.get("namespace") or "") if "namespace" in body else space
    return name if "." in name or not inner else f"{inner}.{name}"


__all__ = ["Node", "parsed_schema"]
