"""=, <, IN and their like. NaN is equal to itself and the greatest number in both engines; -0.0 equals 0.0."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lakebed.errors import InvalidArgument
from lakebed.expressions import kinds
from lakebed.expressions.casts import coerced
from lakebed.expressions.functions.function import MANY, Function
from lakebed.expressions.nodes import Expression, NotProven, call


def _comparison(
    sign: str, spelled: str, *, is_null_safe: bool = False
) -> Callable[[Expression, Expression], Expression]:
    def build(left: Expression, right: Expression) -> Expression:
        kind = kinds.common_type(left.type, right.type)
        if kind is not None and kinds.is_nested(kind) and kinds.NULL not in (left.type, right.type):
            # Spark does not read text as numbers inside of arrays to compare them.
            kind = kind if kinds.spark_name(left.type) == kinds.spark_name(right.type) else None
        if kind is None:
            raise NotProven(f"`{sign}` of {kinds.spark_name(left.type)} and {kinds.spark_name(right.type)}")
        _check(sign, kind, is_ordered=sign in ("<", "<=", ">", ">="))
        left, right = coerced(left, kind), coerced(right, kind)
        nullable = False if is_null_safe else None
        return call(f"({{0}} {spelled} {{1}})", left, right, type=kinds.BOOLEAN, nullable=nullable)

    return build


def _check(sign: str, kind: pa.DataType, *, is_ordered: bool) -> None:
    """Refuses types that Spark does not compare, and those of which the engines have an order of their own."""
    if pa.types.is_map(kind) or (is_ordered and kinds.is_nested(kind)):
        raise NotProven(f"`{sign}` of {kinds.spark_name(kind)}")


def is_in(value: Expression, *others: Expression) -> Expression:
    """IN with a list: all are brought to one type."""
    if len(others) == 1 and pa.types.is_list(others[0].type) and not kinds.is_nested(value.type):
        raise InvalidArgument(
            f"`in` compares {kinds.spark_name(value.type)} with an array", hint="write array_contains(array, value)"
        )
    kind = kinds.common_type_of([value.type, *(other.type for other in others)], "`in`")
    _check("in", kind, is_ordered=False)
    given = [coerced(each, kind) for each in (value, *others)]
    places = [f"{{{n}}}" for n in range(1, len(given))]
    if any(each.can_fail for each in given[2:]):  # nothing behind an equal value is computed
        found = "WHEN {0} IS NULL THEN NULL " + " ".join(f"WHEN {{0}} = {place} THEN TRUE" for place in places)
        unknown = " OR ".join(f"{place} IS NULL" for place in places)
        return call(
            f"(CASE {found} WHEN {unknown} THEN NULL ELSE FALSE END)", *given, type=kinds.BOOLEAN, nullable=True
        )
    return call(f"({{0}} IN ({', '.join(places)}))", *given, type=kinds.BOOLEAN)


def _outermost(name: str) -> Callable[..., Expression]:
    def build(*values: Expression) -> Expression:
        kind = kinds.common_type_of([value.type for value in values], f"`{name}`")
        _check(name, kind, is_ordered=True)
        given = [coerced(value, kind) for value in values]
        places = ", ".join(f"{{{n}}}" for n in range(len(given)))
        return call(f"{name}({places})", *given, type=kind, nullable=all(value.nullable for value in given))

    return build


FUNCTIONS = {
    "greatest": Function(_outermost("greatest"), 2, MANY),
    "least": Function(_outermost("least"), 2, MANY),
    **{sign: Function(_comparison(sign, sign), 2, 2) for sign in ("=", "<>", "<", "<=", ">", ">=")},
    "<=>": Function(_comparison("<=>", "IS NOT DISTINCT FROM", is_null_safe=True), 2, 2),
    "equal_null": Function(_comparison("<=>", "IS NOT DISTINCT FROM", is_null_safe=True), 2, 2),
    "is distinct from": Function(_comparison("is distinct from", "IS DISTINCT FROM", is_null_safe=True), 2, 2),
    "in": Function(is_in, 2, MANY),
}
