"""Expressions of polars as filters that tables understand.

polars writes an expression as JSON, which is read here; its constants are left to polars to work out. To polars NaN is
greater than all numbers and equals itself, and a constant may be rounded to the type of its column, so only constants
that are values of that type are understood. What is not understood gives None: then polars has to filter.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lakebed.types.predicate import (
    MIRRORED,
    Always,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Match,
    Op,
    Predicate,
    TextMatch,
    compared,
    conjunction,
    disjunction,
    negate,
)
from lakebed.types.predicate_literal import Exactly, Misfit, place

_OPS = {"Eq": Op.EQ, "NotEq": Op.NE, "Lt": Op.LT, "LtEq": Op.LE, "Gt": Op.GT, "GtEq": Op.GE}
_CLOSED = {
    "Both": (Op.GE, Op.LE),
    "Left": (Op.GE, Op.LT),
    "Right": (Op.GT, Op.LE),
    "None": (Op.GT, Op.LT),
}
_TEXTS = {"StartsWith": Match.STARTS_WITH, "EndsWith": Match.ENDS_WITH}


class _Unclear(Exception):
    """Only polars knows."""


def understood(expression: Any, schema: pa.Schema) -> Predicate | None:
    """The expression as a predicate that is true for the same rows; None if there is none."""
    return _try(_Reader(schema).read, _tree(expression))


def understood_part(expression: Any, schema: pa.Schema) -> Predicate | None:
    """A predicate that is true at least where the expression is: those parts of a conjunction that are understood."""
    return _part(_Reader(schema), _tree(expression))


def _part(reader: _Reader, node: Any) -> Predicate | None:
    match node:
        case {"BinaryExpr": {"left": left, "op": "And", "right": right}}:
            known = [part for part in (_part(reader, left), _part(reader, right)) if part is not None]
            return conjunction(known) if known else None
        case _:
            return _try(reader.read, node)


def _try(read: Callable[[Any], Predicate], node: Any) -> Predicate | None:
    try:
        return read(node)
    except _Unclear:
        return None


def _tree(expression: Any) -> Any:
    from polars.exceptions import PolarsError

    try:
        return json.loads(expression.meta.serialize(format="json"))
    except (AttributeError, TypeError, ValueError, PolarsError):
        return None  # another polars, or an expression with a Python function in it


class _Reader:
    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def read(self, node: Any) -> Predicate:
        match node:
            case {"BinaryExpr": {"left": left, "op": "And", "right": right}}:
                return conjunction([self.read(left), self.read(right)])
            case {"BinaryExpr": {"left": left, "op": "Or", "right": right}}:
                return disjunction([self.read(left), self.read(right)])
            case {"BinaryExpr": {"left": {"Column": name}, "op": op, "right": {"Literal": _} as value}} if op in _OPS:
                return self._compared(name, _OPS[op], value)
            case {"BinaryExpr": {"left": {"Literal": _} as value, "op": op, "right": {"Column": name}}} if op in _OPS:
                return self._compared(name, MIRRORED[_OPS[op]], value)
            case {"Function": {"input": [inner], "function": {"Boolean": "Not"}}}:
                return negate(self.read(inner))
            case {"Function": {"input": [{"Column": name}], "function": {"Boolean": "IsNull"}}}:
                return IsNull(self._known(name))
            case {"Function": {"input": [{"Column": name}], "function": {"Boolean": "IsNotNull"}}}:
                return IsNotNull(self._known(name))
            case {
                "Function": {
                    "input": [{"Column": name}, values],
                    "function": {"Boolean": {"IsIn": {"nulls_equal": False}}},
                }
            }:
                return self._within(name, values)
            case {"Function": {"input": [{"Column": name}, low, high], "function": {"Boolean": {"IsBetween": how}}}}:
                lower, upper = _CLOSED[how["closed"]]
                return conjunction([self._compared(name, lower, low), self._compared(name, upper, high)])
            case {"Function": {"input": [{"Column": name}, text], "function": {"StringExpr": str(kind)}}} if (
                kind in _TEXTS
            ):
                return self._matched(name, _TEXTS[kind], text)
            case {"Column": name} if pa.types.is_boolean(self._type(name)):
                return Comparison(name, Op.EQ, pa.scalar(True))
            case {"Literal": {"Scalar": {"Boolean": bool(value)}}}:
                return Always(value)
            case _:
                raise _Unclear

    def _known(self, name: str) -> str:
        if name not in self._schema.names:
            raise _Unclear
        return name

    def _type(self, name: str) -> pa.DataType:
        return self._schema.field(self._known(name)).type

    def _compared(self, name: str, op: Op, value: Any) -> Predicate:
        kind = self._type(name)
        array = _constant(value, kind)
        if len(array) != 1 or array.null_count:
            raise _Unclear
        return compared(name, op, _exactly(array[0], kind))

    def _within(self, name: str, value: Any) -> Predicate:
        kind, lists = self._type(name), _constant(value, None)
        is_list = pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)
        if not is_list or len(lists) != 1:
            raise _Unclear
        values = lists[0].values
        if values is None or values.null_count:
            raise _Unclear  # what a null in the list means is for polars to say
        return In(name, pa.array([_exactly(each, kind) for each in values], kind))

    def _matched(self, name: str, match: Match, value: Any) -> Predicate:
        found = _constant(value, None)
        if not _is_text(self._type(name)) or not _is_text(found.type) or len(found) != 1 or found.null_count:
            raise _Unclear
        return TextMatch(name, match, found[0].as_py())


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _constant(node: Any, kind: pa.DataType | None) -> pa.Array:
    """The value of a literal, as polars works it out; a number without a type of its own as it meets this column."""
    import polars
    from polars.exceptions import PolarsError

    if not isinstance(node, dict) or "Literal" not in node:
        raise _Unclear
    is_loose = isinstance(node["Literal"], dict) and "Dyn" in node["Literal"]
    try:
        literal = polars.Expr.deserialize(json.dumps(node).encode(), format="json")
        array = polars.select(literal).to_series().to_arrow()
    except (PolarsError, ValueError) as error:
        raise _Unclear from error
    if is_loose and kind is not None and pa.types.is_floating(kind):
        return array.cast(kind, safe=False)
    return array


def _exactly(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    is_rounded = pa.types.is_floating(value.type) and not pa.types.is_floating(kind)
    try:
        placed = place(value, kind)
    except Misfit as misfit:
        raise _Unclear from misfit
    if is_rounded or not isinstance(placed, Exactly):
        raise _Unclear
    return placed.value


__all__ = ["understood", "understood_part"]
