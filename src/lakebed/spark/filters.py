"""Row filters as Spark conditions, for the files that Spark reads itself.

Only what means the same in both: Spark finds NaN equal to itself and greater than all, Arrow does not, so conditions on
floating-point columns are not translated.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

from lakebed.types.predicate import (
    Always,
    And,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Match,
    Not,
    Op,
    Or,
    Predicate,
    TextMatch,
)

if TYPE_CHECKING:
    from pyspark.sql import Column

_SAME = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_date,
)


def spark_condition(predicate: Predicate) -> Column | None:
    """The condition, or None if some part of it can not be said in Spark with the same meaning."""
    match predicate:
        case Always(value):
            return sf.lit(value)
        case IsNull(column):
            return quoted(column).isNull()
        case IsNotNull(column):
            return quoted(column).isNotNull()
        case Comparison(column, op, literal):
            return _comparison(quoted(column), op, literal) if _is_same(literal.type) else None
        case In(column, values):
            if not _is_same(values.type):
                return None
            return quoted(column).isin(values.to_pylist()) if len(values) else sf.lit(False)
        case TextMatch(column, Match.STARTS_WITH, pattern):
            return quoted(column).startswith(pattern)
        case TextMatch(column, Match.ENDS_WITH, pattern):
            return quoted(column).endswith(pattern)
        case TextMatch(column, Match.CONTAINS, pattern):
            return quoted(column).contains(pattern)
        case Not(child):
            inner = spark_condition(child)
            return None if inner is None else ~inner
        case And(children):
            return _joined([spark_condition(child) for child in children], is_and=True)
        case Or(children):
            return _joined([spark_condition(child) for child in children], is_and=False)
        case _:
            return None


def _joined(parts: list[Column | None], *, is_and: bool) -> Column | None:
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    return reduce(lambda left, right: left & right if is_and else left | right, known)


def _comparison(column: Column, op: Op, literal: pa.Scalar) -> Column:
    value = sf.lit(literal.as_py())
    match op:
        case Op.EQ:
            return column == value
        case Op.NE:
            return column != value
        case Op.LT:
            return column < value
        case Op.LE:
            return column <= value
        case Op.GT:
            return column > value
        case _:
            return column >= value


def _is_same(arrow: pa.DataType) -> bool:
    return any(matches(arrow) for matches in _SAME)


def quoted(name: str) -> Column:
    """A column by its plain name, whatever characters are in it."""
    return sf.col("`" + name.replace("`", "``") + "`")
