"""Turns the schema of an Avro file into a Python function that decodes its records straight into our dataclasses.

Manifests are read at every planning, and a general decoder spends most of its time on finding out, value after value,
what it already knew from the schema, and on dictionaries that are thrown away at once. The function made here takes
about half as long. Fields are matched by name: a writer may reorder them, add others, or lack those that are optional
in our schema.

The generated text holds numbers and names of our own choosing only, never anything from the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Decoder = Callable[[bytes, int], list[Any]]
"""Decodes so many records from the bytes of a block; `LookupError` or `ValueError` when they do not fit exactly."""

_NUMBERS = ("int", "long", "enum")
_WIDTHS = {"boolean": 1, "float": 4, "double": 8}
_MAX_DEPTH = 32
"""Deeper types are not metadata; and a type that contains itself has no end."""


def compile_decoder(theirs: Any, ours: Any, builders: Mapping[str, Callable[..., Any]]) -> Decoder:
    """A decoder for blocks of a writer's schema that yields what the builder of our record makes of each record.

    Builders are found by record name and called with the values of our fields, by position; `None` stands for an
    optional field that the writer does not have. Arrays come as tuples. `ValueError` when the schemas do not fit.
    """
    compiler = _Compiler(builders)
    record = compiler.required(theirs, ours, "the record")
    lines = [
        "def decode(d, count):",
        " p = 0",
        " records = []",
        " for _ in range(count):",
        *compiler.lines,
        f"  records.append({record})",
        " if p != len(d): raise ValueError('a block does not end with its last record')",
        " return records",
    ]
    scope: dict[str, Any] = dict(compiler.scope)
    exec("\n".join(lines), scope)
    decoder: Decoder = scope["decode"]
    return decoder


class _Compiler:
    """Collects the statements that read one record; `d` is the block and `p` the position of the next byte in it."""

    def __init__(self, builders: Mapping[str, Callable[..., Any]]) -> None:
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {"long": read_long, "length": _length, "items": _items, "unfit": _unfit}
        self._builders = builders
        self._depth = 2
        self._nesting = 0
        self._variables = 0

    def required(self, theirs: Any, ours: Any, where: str) -> str:
        """Read a value that must not be null; the name of the variable that then holds it."""
        value = self.value(theirs, ours, where)
        if isinstance(theirs, list) and "null" in theirs:
            self._emit(f"if {value} is None: unfit('null where a value is required')")
        return value

    def value(self, theirs: Any, ours: Any, where: str) -> str:
        """Read a value of their type, for a field of our type; `ours` is `None` for one that we do not want."""
        if self._nesting > _MAX_DEPTH:
            raise ValueError(f"{where} is nested too deeply")
        if isinstance(theirs, list):
            return self._union(theirs, ours, where)
        kind = theirs["type"] if isinstance(theirs, dict) else theirs
        wanted = _not_null(ours)
        if wanted is not None:
            wanted_kind = wanted["type"] if isinstance(wanted, dict) else wanted
            if kind != wanted_kind and not (kind in _NUMBERS[:2] and wanted_kind in _NUMBERS[:2]):
                raise ValueError(f"{where} is not of type {wanted_kind}")
        self._nesting += 1
        value = self._by_kind(kind, theirs, wanted, where)
        self._nesting -= 1
        return value

    def _by_kind(self, kind: Any, theirs: Any, ours: Any, where: str) -> str:
        if kind in _NUMBERS:
            return self._number()
        if kind in ("bytes", "string"):
            return self._bytes(".decode()" if kind == "string" else "")
        if kind == "record":
            return self._record(theirs, ours, where)
        if kind == "array":
            return self._array(theirs["items"], ours and ours["items"], where)
        if kind == "map":
            members = [{"name": "key", "type": "string"}, {"name": "value", "type": theirs["values"]}]
            return self._array({"type": "record", "fields": members}, None, where)
        if kind in _WIDTHS or kind == "fixed":
            self._emit(f"p += {int(theirs['size']) if kind == 'fixed' else _WIDTHS[kind]}")
            return "None"
        if kind == "null":
            return "None"
        raise ValueError(f"{where} is of a type that Avro does not know")

    def _number(self) -> str:
        name = self._variable()
        self._emit("b = d[p]")
        self._emit(f"if b > 127: {name}, p = long(d, p)")
        self._emit("else:")
        self._emit(f" {name} = (b >> 1) ^ -(b & 1)")
        self._emit(" p += 1")
        return name

    def _bytes(self, conversion: str) -> str:
        name = self._variable()
        self._emit("b = d[p]")
        # Continued in the next byte, or negative.
        self._emit("if b & 0x81: n, p = length(d, p)")
        self._emit("else: n = b >> 1; p += 1")
        self._emit(f"{name} = d[p:p + n]{conversion}")
        self._emit("p += n")
        return name

    def _record(self, theirs: Any, ours: Any, where: str) -> str:
        wanted = {field["name"]: field["type"] for field in ours["fields"]} if ours else {}
        there = {}
        for field in theirs["fields"]:
            name, kind = field["name"], wanted.get(field["name"])
            is_required = kind is not None and not isinstance(kind, list)
            read = self.required if is_required else self.value
            there[name] = read(field["type"], kind, f"{where}.{name}" if kind else "an unknown field")
        if not ours:
            return "None"
        for name, kind in wanted.items():
            if name not in there and not isinstance(kind, list):
                raise ValueError(f"{where} has no {name}")
        builder = f"build{len(self.scope)}"
        self.scope[builder] = self._builders[ours["name"]]
        result = self._variable()
        self._emit(f"{result} = {builder}({', '.join(there.get(name, 'None') for name in wanted)})")
        return result

    def _array(self, their_items: Any, our_items: Any, where: str) -> str:
        if their_items == "null" or (isinstance(their_items, dict) and not their_items.get("fields", True)):
            raise ValueError(f"{where} holds items of no size")
        array, loop = self._variable(), self._variable()
        self._emit(f"{array} = ()")
        self._emit("b = d[p]")
        self._emit("p += 1")
        self._emit("if b:")
        self._depth += 1
        self._emit(f"{array} = []")
        self._emit("while b:")
        self._depth += 1
        self._emit("if b & 0x81: n, p = items(d, p - 1)")
        self._emit("else: n = b >> 1")
        self._emit(f"for {loop} in range(n):")
        self._depth += 1
        item = self.value(their_items, our_items, f"{where}.items")
        self._emit(f"{array}.append({item})")
        self._depth -= 1
        self._emit("b = d[p]")
        self._emit("p += 1")
        self._depth -= 1
        self._emit(f"{array} = tuple({array})")
        self._depth -= 1
        return array

    def _union(self, theirs: list[Any], ours: Any, where: str) -> str:
        result = self._variable()
        index = self._variable()
        self._emit(f"{index} = d[p]")
        self._emit("p += 1")
        for position, branch in enumerate(theirs):
            self._emit(f"{'elif' if position else 'if'} {index} == {position * 2}:")
            self._depth += 1
            wanted = None if branch == "null" else ours
            self._emit(f"{result} = {self.value(branch, wanted, where)}")
            self._depth -= 1
        self._emit("else: unfit('a union has no such branch')")
        return result

    def _variable(self) -> str:
        self._variables += 1
        return f"v{self._variables}"

    def _emit(self, line: str) -> None:
        self.lines.append(" " * self._depth + line)


def _not_null(ours: Any) -> Any:
    """Our type without null."""
    return next(kind for kind in ours if kind != "null") if isinstance(ours, list) else ours


# Called by generated code, for what does not fit in one byte ---------------------------------------------------------


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at a position, and the position after it."""
    raw = shift = 0
    while True:
        byte = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at
        shift += 7
        if shift > 63:
            raise ValueError("a number has more than 64 bits")


def _length(data: bytes, at: int) -> tuple[int, int]:
    number, at = read_long(data, at)
    if number < 0:
        raise ValueError("a length is negative")
    return number, at


def _items(data: bytes, at: int) -> tuple[int, int]:
    """The number of items in this part of an array; a negative one is followed by the size of the part."""
    number, at = read_long(data, at)
    return (number, at) if number >= 0 else (-number, read_long(data, at)[1])


def _unfit(what: str) -> None:
    raise ValueError(what)
