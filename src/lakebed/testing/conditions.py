"""Conditions on rows, said twice: as the pyarrow expression that users write, and as a function of a model row.

Comparisons are pyarrow's: NaN equals nothing, -0.0 equals 0.0, nothing is known of null.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc

from lakebed.records import dataclass
from lakebed.testing.model import Row, Value, order_of
from lakebed.testing.model_arrow import to_arrow_array
from lakebed.types.logical import AtomicType


@dataclass(frozen=True)
class Filter:
    """The same condition for the engine and for the model: True, False or (None) unknown."""

    expression: pc.Expression
    holds: Callable[[Row], bool | None]
    text: str

    def __repr__(self) -> str:
        return self.text


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparison(name: str, data_type: AtomicType, sign: str, value: Value) -> Filter:
    """A column compared with a value."""
    compare = COMPARISONS[sign]
    literal = to_arrow_array([value], data_type)[0]

    def holds(row: Row) -> bool | None:
        return None if row[name] is None else bool(compare(row[name], value))

    return Filter(compare(pc.field(name), pc.scalar(literal)), holds, f"{name} {sign} {value!r}")


def membership(name: str, data_type: AtomicType, values: list[Value]) -> Filter:
    """A column among values, as pyarrow's isin has it."""
    # pyarrow's isin finds nulls and NaN, and tells the zeros apart: exactly the equality of keys.
    tokens = {order_of(value) for value in values}
    expression = pc.field(name).isin(to_arrow_array(values, data_type))
    return Filter(expression, lambda row: order_of(row[name]) in tokens, f"{name} in {values!r}")


def null_test(name: str, negated: bool) -> Filter:
    """A column is null, or is not."""
    if negated:
        return Filter(pc.field(name).is_valid(), lambda row: row[name] is not None, f"{name} is not null")
    return Filter(pc.field(name).is_null(), lambda row: row[name] is None, f"{name} is null")


def prefix(name: str, prefix: str) -> Filter:
    """A text column starts with a text."""

    def holds(row: Row) -> bool | None:
        return None if row[name] is None else str(row[name]).startswith(prefix)

    return Filter(pc.starts_with(pc.field(name), prefix), holds, f"{name} starts with {prefix!r}")


def joined(sign: str, decisive: bool, left: Filter, right: Filter) -> Filter:
    """Three-valued AND and OR: one side can decide alone, otherwise unknown wins."""

    def holds(row: Row) -> bool | None:
        sides = (left.holds(row), right.holds(row))
        return decisive if decisive in sides else None if None in sides else not decisive

    join = operator.or_ if decisive else operator.and_
    return Filter(join(left.expression, right.expression), holds, f"({left} {sign} {right})")


def negated(inner: Filter) -> Filter:
    """NOT: what is unknown stays unknown."""

    def holds(row: Row) -> bool | None:
        value = inner.holds(row)
        return None if value is None else not value

    return Filter(~inner.expression, holds, f"~({inner})")
