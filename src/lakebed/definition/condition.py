"""Conditions of SQL as filters that tables understand: comparisons of columns with constants, combined.

    amount > 10 AND state IN ('new', 'paid') AND day >= DATE '2024-01-01' AND NOT note LIKE 'x%'

They mean what they mean to Spark: NaN is greater than all numbers, names do not mind capitals, NULL is neither true nor
false. Nothing is guessed: of a condition that is more than that, or depends on the zone of a session, the part that is
not understood is named, and whoever asked refuses it or lets Spark evaluate it.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from lakebed.errors import InvalidArgument, LakebedError, NotFound, did_you_mean
from lakebed.schema.casts import cast_array
from lakebed.types.arrow import from_arrow_type
from lakebed.types.logical import BIGINT, STRING
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
from lakebed.types.predicate_literal import Misfit, Nowhere, place
from lakebed.types.predicate_parse import to_predicate

COMPARISONS: dict[type[exp.Expression], Op] = {
    exp.EQ: Op.EQ,
    exp.NEQ: Op.NE,
    exp.LT: Op.LT,
    exp.LTE: Op.LE,
    exp.GT: Op.GT,
    exp.GTE: Op.GE,
}
"""The comparison that a node of a syntax tree stands for."""


class SparkText(Spark):  # type: ignore[misc]
    """Spark's spelling, in which two quotes in a text are one, as in Flink and in Spark since version 4."""

    class Tokenizer(Spark.Tokenizer):  # type: ignore[misc]
        """Words and quotes."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']


class Unclear(Exception):
    """The condition is more than comparisons with constants; the text is the part that is."""

    def __init__(self, node: exp.Expression, why: str = "", instead: str = "") -> None:
        super().__init__(node.sql(dialect="spark"))
        self.why = why
        self.instead = instead


def text_predicate(text: str, schema: pa.Schema) -> Predicate:
    """The filter that a condition in SQL stands for; what can not be said as one is refused by name."""
    try:
        tree = SparkText().parse(text)
    except (SqlglotError, RecursionError) as error:
        raise _unreadable(text) from error
    if len(tree) != 1 or not isinstance(tree[0], exp.Condition):
        raise _unreadable(text)
    condition = tree[0]
    known = {name.lower() for name in schema.names}
    for column in condition.find_all(exp.Column):
        if column.name.lower() not in known and not column.table:
            raise NotFound(f"filter names column `{column.name}`", hint=did_you_mean(column.name, schema.names))
    try:
        return condition_predicate(condition, schema)
    except Unclear as unclear:
        raise InvalidArgument(
            f"`{unclear}` in filter `{text}` is more than a comparison of a column with a constant"
            if not unclear.why
            else f"`{unclear}` in filter `{text}`: {unclear.why}",
            hint=unclear.instead
            or "filter by comparisons, IN, BETWEEN, LIKE and IS NULL, with AND, OR and NOT; a pyarrow expression, such "
            "as pc.field('a') + pc.field('b') > 5, says more, lake.query('SELECT * FROM t WHERE ...') says anything",
        ) from unclear


def _unreadable(text: str) -> InvalidArgument:
    return InvalidArgument(
        f"filter `{text}` is no condition in SQL", hint="write it like \"amount > 10 AND state = 'paid'\""
    )


def condition_predicate(condition: exp.Expression, schema: pa.Schema) -> Predicate:
    """The condition as a filter on these columns; raises Unclear if it can not be said as one."""
    fitted = to_predicate(_Reader(schema).read(condition), schema)
    assert fitted is not None
    return fitted


class _Reader:
    def __init__(self, schema: pa.Schema) -> None:
        self._fields = {field.name.lower(): field for field in schema}

    def read(self, node: exp.Expression) -> Predicate:
        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.And():
                return conjunction([self.read(part) for part in node.flatten()])
            case exp.Or():
                return disjunction([self.read(part) for part in node.flatten()])
            case exp.Not():
                return negate(self.read(node.this))
            case exp.Boolean():
                return Always(bool(node.this))
            case exp.Null():
                return Always(None)
            case exp.Is():
                return self._tested(node)
            case exp.Between() if not node.args.get("symmetric"):
                low = self._compared(node, node.this, Op.GE, node.args["low"])
                return conjunction([low, self._compared(node, node.this, Op.LE, node.args["high"])])
            case exp.In() if node.expressions and not node.args.get("query"):
                return self._within(node)
            case exp.Like() if not isinstance(node.parent, exp.Escape):
                return self._like(node)
            case exp.NullSafeEQ():
                return self._null_safe(node)
            case exp.Column() if pa.types.is_boolean(self._column(node).type):
                return Comparison(self._column(node).name, Op.EQ, pa.scalar(True))
            case _ if type(node) in COMPARISONS:
                return self._either_side(node, COMPARISONS[type(node)])
            case _:
                raise Unclear(node)

    def _either_side(self, node: exp.Expression, op: Op) -> Predicate:
        left, right = node.this.unnest(), node.expression.unnest()
        if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
            return self._compared(node, right, MIRRORED[op], left)
        return self._compared(node, left, op, right)

    def _compared(self, node: exp.Expression, column: exp.Expression, op: Op, value: exp.Expression) -> Predicate:
        field = self._column(column)
        found = _value(node, value, field.type)
        return compared(field.name, op, found) if found.is_valid else Always(None)

    def _null_safe(self, node: exp.NullSafeEQ) -> Predicate:
        """`x <=> 1`, which is never NULL."""
        found = self._either_side(node, Op.EQ)
        column = node.this.unnest() if isinstance(node.this.unnest(), exp.Column) else node.expression.unnest()
        name = self._column(column).name
        return IsNull(name) if found == Always(None) else conjunction([IsNotNull(name), found])

    def _within(self, node: exp.In) -> Predicate:
        field = self._column(node.this)
        values = [_value(node, item, field.type) for item in node.expressions]
        if any(not value.is_valid for value in values):
            raise Unclear(node, "a list with NULL in it is never false")  # which a filter's NOT could not know
        if len({value.type for value in values}) > 1:
            return disjunction([Comparison(field.name, Op.EQ, value) for value in values])
        return In(field.name, pa.array([value.as_py() for value in values], values[0].type))

    def _like(self, node: exp.Like) -> Predicate:
        field, pattern = self._column(node.this), node.expression
        is_text = isinstance(pattern, exp.Literal) and pattern.is_string
        if not is_text or not pa.types.is_string(field.type) or "\\" in pattern.name:
            raise Unclear(node)
        found = TextMatch(field.name, Match.LIKE, pattern.name)
        return negate(found) if node.args.get("negate") else found

    def _tested(self, node: exp.Is) -> Predicate:
        expected, is_negated = node.expression, False
        if isinstance(expected, exp.Not):
            expected, is_negated = expected.this, True
        name = self._column(node.this).name
        if isinstance(expected, exp.Null):
            return IsNotNull(name) if is_negated else IsNull(name)
        if not isinstance(expected, exp.Boolean) or not pa.types.is_boolean(self._column(node.this).type):
            raise Unclear(node)
        found = conjunction([IsNotNull(name), Comparison(name, Op.EQ, pa.scalar(bool(expected.this)))])
        return negate(found) if is_negated else found

    def _column(self, node: exp.Expression) -> pa.Field:
        node = node.unnest()
        if not isinstance(node, exp.Column) or node.table or node.name.lower() not in self._fields:
            raise Unclear(node)
        return self._fields[node.name.lower()]


def _value(node: exp.Expression, given: exp.Expression, kind: pa.DataType) -> pa.Scalar:
    """A constant that compares with a column of this type as Spark compares the two."""
    value = constant(given)
    if value is None:
        return pa.scalar(None, kind)
    scalar = _as_spark_compares(node, value, kind)
    try:
        placed = place(scalar, kind)
    except Misfit as misfit:
        raise Unclear(node, str(misfit), _with_zone(value, kind)) from misfit
    if isinstance(placed, Nowhere):
        raise Unclear(node, "NaN is compared otherwise than numbers")
    return scalar


def _as_spark_compares(node: exp.Expression, value: Any, kind: pa.DataType) -> pa.Scalar:
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if pa.types.is_floating(kind) and is_number:
        return pa.scalar(float(value))
    if isinstance(value, float) and not (pa.types.is_integer(kind) and kind.bit_width <= 32):
        raise Unclear(node, "Spark would compare with rounded numbers; write the constant without exponent")
    if pa.types.is_integer(kind) and isinstance(value, str):
        return _cast(node, value, BIGINT)
    if pa.types.is_floating(kind) and isinstance(value, str):
        return _cast(node, value, from_arrow_type(pa.float64(), ""))
    if isinstance(value, str) and (pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None)):
        return _cast(node, value, from_arrow_type(kind, ""))
    if isinstance(value, str) and (pa.types.is_decimal(kind) or pa.types.is_boolean(kind)):
        raise Unclear(node, "write the constant without quotes")
    if isinstance(value, dt.datetime) and not (pa.types.is_timestamp(kind) and kind.tz is None):
        raise Unclear(node, "what it is depends on the zone of a session; write text with a zone: '… 12:00:00+00:00'")
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return pa.scalar(Decimal(value))
    return pa.scalar(value)


def _cast(node: exp.Expression, text: str, data_type: Any) -> pa.Scalar:
    try:
        found = cast_array(pa.array([text]), STRING, data_type)[0]
    except (pa.ArrowException, LakebedError) as error:
        raise Unclear(node, f"'{text}' is no {data_type}", f"compare with a value of type {data_type}") from error
    if not found.is_valid:
        raise Unclear(node, f"'{text}' is no {data_type}", f"compare with a value of type {data_type}")
    return found


def _with_zone(value: Any, kind: pa.DataType) -> str:
    """What to write for a moment that is given without a zone; nothing if it is something else."""
    if not isinstance(value, str) or not pa.types.is_timestamp(kind) or kind.tz is None:
        return ""
    try:
        moment = dt.datetime.fromisoformat(value.strip())
    except ValueError:
        return "write it like '2024-05-14 13:45:00+00:00'"
    return f"write it with its zone, such as '{moment.replace(tzinfo=dt.UTC)}'"


def constant(node: exp.Expression) -> Any:
    """The value of a literal; raises Unclear for anything else. Numbers with an exponent are floats."""
    match node:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal():
            return _literal(node)
        case exp.HexString():
            digits = str(node.this)
            return bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}")
        case exp.Neg():
            value = constant(node.this)
            if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
                return -value
            raise Unclear(node)
        case exp.Paren():
            return constant(node.this)
        case exp.Cast() if isinstance(node.this, exp.Literal):
            return _typed(node)
        case _:
            raise Unclear(node)


def _literal(node: exp.Literal) -> Any:
    text = str(node.this)
    if node.is_string:
        return text
    if node.is_int:
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def _typed(node: exp.Cast) -> Any:
    """`DATE '2024-01-01'`, `TIMESTAMP '…'`, `3L`, `1.5D`."""
    text = str(node.this.this)
    try:
        if node.this.is_string and node.to.is_type("date"):
            return dt.date.fromisoformat(text)
        if node.this.is_string and node.to.is_type("timestamp", "timestampntz", "timestampltz", "timestamptz"):
            moment = dt.datetime.fromisoformat(text)
            if moment.tzinfo is None:
                return moment
        if node.this.is_int and node.to.is_type("bigint", "int", "smallint", "tinyint"):
            return int(text)
        if not node.this.is_string and node.to.is_type("double"):
            return float(text)
    except ValueError as error:
        raise Unclear(node) from error
    raise Unclear(node)


__all__ = ["COMPARISONS", "SparkText", "Unclear", "condition_predicate", "text_predicate"]
