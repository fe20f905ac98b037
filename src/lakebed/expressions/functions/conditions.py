"""AND, OR, NOT, CASE, tests for null, and functions that choose one of their arguments."""

from __future__ import annotations

from lakebed.expressions import kinds
from lakebed.expressions.casts import coerced
from lakebed.expressions.functions.comparisons import FUNCTIONS as COMPARISONS
from lakebed.expressions.functions.function import MANY, Function
from lakebed.expressions.nodes import Constant, Expression, NotProven, call

_ZERO = Constant(type=kinds.INT, nullable=False, value=0, text="CAST(0 AS INTEGER)")
NOTHING = Constant(type=kinds.NULL, nullable=True, value=None, text="NULL")


def both(left: Expression, right: Expression) -> Expression:
    """AND. What may fail on the right is not looked at where the left is false, as in Spark."""
    left, right = coerced(left, kinds.BOOLEAN), coerced(right, kinds.BOOLEAN)
    guarded = "(CASE {0} WHEN FALSE THEN FALSE WHEN TRUE THEN {1} ELSE nullif({1}, TRUE) END)"
    template = guarded if right.can_fail else "({0} AND {1})"
    return call(template, left, right, type=kinds.BOOLEAN, nullable=left.nullable or right.nullable)


def either(left: Expression, right: Expression) -> Expression:
    """OR. What may fail on the right is not looked at where the left is true, as in Spark."""
    left, right = coerced(left, kinds.BOOLEAN), coerced(right, kinds.BOOLEAN)
    guarded = "(CASE {0} WHEN TRUE THEN TRUE WHEN FALSE THEN {1} ELSE nullif({1}, FALSE) END)"
    template = guarded if right.can_fail else "({0} OR {1})"
    return call(template, left, right, type=kinds.BOOLEAN, nullable=left.nullable or right.nullable)


def negated(value: Expression) -> Expression:
    """NOT."""
    return call("(NOT {0})", coerced(value, kinds.BOOLEAN), type=kinds.BOOLEAN)


def is_null(value: Expression) -> Expression:
    """IS NULL."""
    return call("({0} IS NULL)", value, type=kinds.BOOLEAN, nullable=False)


def is_not_null(value: Expression) -> Expression:
    """IS NOT NULL."""
    return call("({0} IS NOT NULL)", value, type=kinds.BOOLEAN, nullable=False)


def coalesce(*values: Expression) -> Expression:
    """The first that is not null."""
    kind = kinds.common_type_of([value.type for value in values], "coalesce")
    given = [coerced(value, kind) for value in values]
    places = ", ".join(f"{{{n}}}" for n in range(len(given)))
    return call(f"coalesce({places})", *given, type=kind, nullable=all(value.nullable for value in given))


def case(*parts: Expression) -> Expression:
    """CASE WHEN condition THEN value ... ELSE value END: conditions and values in turn, the last alone."""
    if any(part.type == kinds.NULL for part in parts[:-1:2]):
        raise NotProven("CASE WHEN NULL", "Spark refuses it")
    conditions = [coerced(part, kinds.BOOLEAN) for part in parts[:-1:2]]
    kind = kinds.common_type_of([part.type for part in (*parts[1::2], parts[-1])], "CASE")
    values = [coerced(part, kind) for part in (*parts[1::2], parts[-1])]
    branches = " ".join(f"WHEN {{{2 * n}}} THEN {{{2 * n + 1}}}" for n in range(len(conditions)))
    flat = [part for pair in zip(conditions, values[:-1], strict=True) for part in pair]
    return call(
        f"(CASE {branches} ELSE {{{len(flat)}}} END)",
        *flat,
        values[-1],
        type=kind,
        nullable=any(value.nullable for value in values),
    )


def if_else(condition: Expression, yes: Expression, no: Expression) -> Expression:
    """One of two values."""
    return case(condition, yes, no)


def null_if(value: Expression, other: Expression) -> Expression:
    """Null where two values are equal, else the first."""
    equal = COMPARISONS["="]("nullif", [value, other])
    return call("(CASE WHEN {0} THEN NULL ELSE {1} END)", equal, value, type=value.type, nullable=True)


def null_if_zero(value: Expression) -> Expression:
    """Null for 0."""
    return null_if(value, _ZERO)


def zero_if_null(value: Expression) -> Expression:
    """0 for null."""
    return coalesce(value, _ZERO)


def by_null(value: Expression, there: Expression, missing: Expression) -> Expression:
    """One of two values, by whether the first is null."""
    return case(is_not_null(value), there, missing)


def decode(value: Expression, *parts: Expression) -> Expression:
    """The result behind the first equal value; null equals null."""
    results = {part.type for part in (*parts[1::2], *(parts[-1:] if len(parts) % 2 else ()))} - {kinds.NULL}
    if len({value.type, *(part.type for part in parts[:-1:2])} - {kinds.NULL}) > 1 or len(results) > 1:
        raise NotProven("`decode` of several types")
    pairs = [*zip(parts[:-1:2], parts[1::2], strict=True)]
    found = [part for known, result in pairs for part in (COMPARISONS["<=>"]("decode", [value, known]), result)]
    return case(*found, parts[-1] if len(parts) % 2 else NOTHING)


def unless_nan(value: Expression, other: Expression) -> Expression:
    """The first value, or the second where the first is no number."""
    kind = kinds.FLOAT if value.type == other.type == kinds.FLOAT else kinds.DOUBLE
    value, other = coerced(value, kind), coerced(other, kind)
    return call("(CASE WHEN isnan({0}) THEN {1} ELSE {0} END)", value, other, type=kind, nullable=True)


def is_nan(value: Expression) -> Expression:
    """Whether a value is no number; null is."""
    value = value if kinds.is_fraction(value.type) else coerced(value, kinds.DOUBLE)
    return call("coalesce(isnan({0}), FALSE)", value, type=kinds.BOOLEAN, nullable=False)


FUNCTIONS = {
    "and": Function(both, 2, 2),
    "or": Function(either, 2, 2),
    "not": Function(negated, 1, 1),
    "isnull": Function(is_null, 1, 1),
    "isnotnull": Function(is_not_null, 1, 1),
    "coalesce": Function(coalesce, 1, MANY),
    "case": Function(case, 1, MANY),
    "if": Function(if_else, 3, 3),
    "ifnull": Function(coalesce, 2, 2),
    "nvl": Function(coalesce, 2, 2),
    "nvl2": Function(by_null, 3, 3),
    "nullif": Function(null_if, 2, 2),
    "nullifzero": Function(null_if_zero, 1, 1),
    "zeroifnull": Function(zero_if_null, 1, 1),
    "nanvl": Function(unless_nan, 2, 2),
    "isnan": Function(is_nan, 1, 1),
    "decode": Function(decode, 3, MANY),
}
