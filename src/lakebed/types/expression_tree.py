"""What a pyarrow compute expression says: its calls, columns and literals as a tree.

pyarrow offers no way to look inside an `Expression`, and neither its text (types are lost) nor Substrait (many
functions and types are refused) tells everything. Pickling does: an expression pickles as an Arrow IPC file with one
row, whose columns are the literals and function options with their exact types, and whose schema metadata lists the
tree in prefix order. This module reads that list. It gives no meaning to function names, and it fails with
`UnreadableExpression` on anything it does not expect, so that the caller can treat the expression as a black box.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.records import dataclass

Tokens: TypeAlias = list[tuple[bytes, bytes]]


class UnreadableExpression(Exception):
    """The pickled form is not as expected; never leaves `types/`."""


@dataclass(frozen=True, slots=True)
class FieldNode:
    """A column, or a member inside it when the path has more than one name."""

    path: tuple[str, ...]
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class LiteralNode:
    """A constant with its exact Arrow type."""

    value: pa.Scalar
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class CallNode:
    """A compute function applied to arguments; `options` is a struct scalar named like the function's options."""

    function: str
    arguments: tuple[Node, ...]
    options: pa.StructScalar | None
    span: tuple[int, int]


Node: TypeAlias = FieldNode | LiteralNode | CallNode


class ExpressionTree:
    """A readable expression: `root` is its tree, and every node can be turned back into an expression."""

    def __init__(self, expression: pc.Expression) -> None:
        self._restore, self._batch = _pickled(expression)
        self._tokens = _ordered_metadata(self._batch.schema)
        self.root = _parse(self._tokens, self._batch)

    def expression_of(self, node: Node) -> pc.Expression:
        """The part of the expression that this node stands for."""
        return self._rebuild(self._tokens[slice(*node.span)])

    def renamed(self, mapping: Mapping[str, str]) -> pc.Expression:
        """The whole expression with other column names; members inside a column keep theirs."""
        tokens = list(self._tokens)
        for node in walk(self.root):
            if isinstance(node, FieldNode):
                at = node.span[0] if len(node.path) == 1 else node.span[0] + 1
                tokens[at] = (b"field_ref", mapping.get(node.path[0], node.path[0]).encode())
        return self._rebuild(tokens)

    def _rebuild(self, tokens: Tokens) -> pc.Expression:
        # Only the literals in use, numbered anew. One column is there in any case: a file without has no row.
        columns = [pa.nulls(1)]
        numbered: Tokens = []
        for kind, value in tokens:
            if kind in (b"literal", b"options"):
                columns.append(self._batch.column(int(value)))
                value = str(len(columns) - 1).encode()
            numbered.append((kind, value))
        schema = pa.schema([pa.field("", column.type) for column in columns], pa.KeyValueMetadata(numbered))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
        return self._restore(sink.getvalue())


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it. A loop, not a recursion: chains of thousands of ORs are common."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, CallNode):
            pending.extend(current.arguments)


def column_names(node: Node) -> frozenset[str]:
    """Top-level columns that the node refers to."""
    return frozenset(each.path[0] for each in walk(node) if isinstance(each, FieldNode))


def is_picklable(expression: pc.Expression) -> bool:
    """Whether the expression can travel to workers; one that refers to columns by position can not."""
    try:
        expression.__reduce__()
    except pa.ArrowException:
        return False
    return True


def _pickled(expression: pc.Expression) -> tuple[Callable[[pa.Buffer], pc.Expression], pa.RecordBatch]:
    try:
        restore, (buffer,) = expression.__reduce__()
        return restore, pa.ipc.open_file(buffer).get_batch(0)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UnreadableExpression(str(error)) from error


# --- metadata in order -----------------------------------------------------------------------------------------------
# `Schema.metadata` is a dict and keeps one of several equal keys. The Arrow C data interface, whose layout is frozen,
# hands out all pairs in order: int32 count, then for key and value an int32 length and the bytes.


class _CSchema(ctypes.Structure):
    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _ordered_metadata(schema: pa.Schema) -> Tokens:
    capsule = schema.__arrow_c_schema__()
    address = _CSchema.from_address(_capsule_pointer(capsule, b"arrow_schema")).metadata
    if not address:
        raise UnreadableExpression("no metadata")

    def number() -> int:
        nonlocal address
        value = ctypes.c_int32.from_address(address).value
        address += 4
        return value

    def text() -> bytes:
        nonlocal address
        size = number()
        value = ctypes.string_at(address, size)
        address += size
        return value

    return [(text(), text()) for _ in range(number())]


# --- tree ------------------------------------------------------------------------------------------------------------


def _parse(tokens: Tokens, literals: pa.RecordBatch) -> Node:
    # One frame per open call: function name, position of its first token, arguments so far, options.
    open_calls: list[tuple[str, int, list[Node], list[Any]]] = []
    finished: list[Node] = []
    position = 0
    while position < len(tokens):
        (kind, value), start = tokens[position], position
        position += 1
        target = open_calls[-1][2] if open_calls else finished
        if kind == b"call":
            open_calls.append((value.decode(), start, [], []))
        elif kind == b"field_ref":
            target.append(FieldNode((value.decode(),), (start, position)))
        elif kind == b"nested_field_ref":
            position += int(value)
            target.append(FieldNode(_path(tokens[start + 1 : position]), (start, position)))
        elif kind == b"literal":
            target.append(LiteralNode(_cell(literals, value), (start, position)))
        elif kind == b"options" and open_calls:
            open_calls[-1][3].append(_cell(literals, value))
        elif kind == b"end" and open_calls and open_calls[-1][0] == value.decode():
            function, begin, arguments, options = open_calls.pop()
            node = CallNode(function, tuple(arguments), options[0] if options else None, (begin, position))
            (open_calls[-1][2] if open_calls else finished).append(node)
        else:
            raise UnreadableExpression(f"unexpected {kind!r}")
    if open_calls or len(finished) != 1:
        raise UnreadableExpression("incomplete")
    return finished[0]


def _path(tokens: Tokens) -> tuple[str, ...]:
    if not tokens or any(kind != b"field_ref" for kind, _ in tokens):
        raise UnreadableExpression("a nested column that is not a path of names")
    return tuple(value.decode() for _, value in tokens)


def _cell(literals: pa.RecordBatch, index: bytes) -> pa.Scalar:
    if not index.isdigit() or int(index) >= literals.num_columns:
        raise UnreadableExpression("a literal that is not there")
    return literals.column(int(index))[0]
