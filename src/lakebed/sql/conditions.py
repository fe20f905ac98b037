"""Conditions of SQL as filters that tables understand: comparisons of columns with constants, combined.

Nothing is guessed: a condition that is not of this kind gives None, and whoever asked lets Spark evaluate it.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakebed.errors import LakebedError
from lakebed.schema.casts import cast_array
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import STRING, DataField, DataType, TypeRoot, is_root, with_nullable
from lakebed.types.predicate import (
    MIRRORED,
    Always,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Op,
    Predicate,
    conjunction,
    disjunction,
    negate,
)

_COMPARISONS: dict[type[exp.Expression], Op] = {
    exp.EQ: Op.EQ,
    exp.NEQ: Op.NE,
    exp.LT: Op.LT,
    exp.LTE: Op.LE,
    exp.GT: Op.GT,
    exp.GTE: Op.GE,
}


class _Unclear(Exception):
    """The condition is more than comparisons with constants."""


def to_predicate(condition: exp.Expression, fields: tuple[DataField, ...]) -> Predicate | None:
    """The condition as a filter; None if only Spark can evaluate it."""
    try:
        return _Reader({field.name.lower(): field for field in fields}).read(condition)
    except _Unclear:
        return None


class _Reader:
    def __init__(self, fields: dict[str, DataField]) -> None:
        self._fields = fields

    def read(self, node: exp.Expression) -> Predicate:
        if isinstance(node, exp.Paren):
            return self.read(node.this)
        if isinstance(node, exp.And):
            return conjunction([self.read(node.left), self.read(node.right)])
        if isinstance(node, exp.Or):
            return disjunction([self.read(node.left), self.read(node.right)])
        if isinstance(node, exp.Not):
            return negate(self.read(node.this))
        if isinstance(node, exp.Boolean):
            return Always(bool(node.this))
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return IsNull(self._column(node.this).name)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Not):
            return IsNotNull(self._column(node.this).name)
        if isinstance(node, exp.Between):
            low = self._compared(node.this, Op.GE, node.args["low"])
            return conjunction([low, self._compared(node.this, Op.LE, node.args["high"])])
        if isinstance(node, exp.In) and node.expressions:
            return self._within(node)
        if type(node) in _COMPARISONS:
            op = _COMPARISONS[type(node)]
            if isinstance(node.left, exp.Column):
                return self._compared(node.left, op, node.right)
            return self._compared(node.right, MIRRORED[op], node.left)
        raise _Unclear

    def _within(self, node: exp.In) -> Predicate:
        field = self._column(node.this)
        values = [_value(item, field.type) for item in node.expressions]
        if any(not value.is_valid for value in values):
            raise _Unclear  # `x IN (1, NULL)` is never FALSE, which a filter's NOT could not know
        return In(field.name, pa.array([value.as_py() for value in values], values[0].type))

    def _compared(self, column: exp.Expression, op: Op, value: exp.Expression) -> Predicate:
        field = self._column(column)
        found = _value(value, field.type)
        return Comparison(field.name, op, found) if found.is_valid else Always(None)

    def _column(self, node: exp.Expression) -> DataField:
        if not isinstance(node, exp.Column) or node.name.lower() not in self._fields:
            raise _Unclear
        return self._fields[node.name.lower()]


def _value(node: exp.Expression, data_type: DataType) -> pa.Scalar:
    """A constant as a value of the column's type, where nothing about it changes."""
    value = constant(node)
    data_type = with_nullable(data_type, True)
    if value is None:
        return pa.scalar(None, to_arrow_type(data_type))
    if is_root(data_type, TypeRoot.TIMESTAMP_LTZ) or isinstance(value, dt.datetime):
        raise _Unclear  # depends on the session's zone
    is_text = is_root(data_type, {TypeRoot.CHAR, TypeRoot.VARCHAR})
    try:
        if isinstance(value, str) and not is_text:
            return cast_array(pa.array([value]), STRING, data_type)[0]
        if is_text and not isinstance(value, str):
            raise _Unclear  # Spark would compare as numbers
        found = pa.scalar(value).cast(to_arrow_type(data_type))
    except (pa.ArrowException, LakebedError) as error:
        raise _Unclear from error
    if not isinstance(value, str | dt.date) and found.as_py() != value:
        raise _Unclear
    return found


def constant(node: exp.Expression) -> Any:
    """The value of a literal; raises for anything else."""
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else int(node.this) if node.is_int else Decimal(node.this)
    if isinstance(node, exp.Neg):
        return -constant(node.this)
    if isinstance(node, exp.Paren):
        return constant(node.this)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        if node.to.is_type("date") and node.this.is_string:
            return dt.date.fromisoformat(str(node.this.this))
        if node.to.is_type("bigint", "int", "smallint", "tinyint") and node.this.is_int:
            return int(node.this.this)
    raise _Unclear
