"""AND, OR, NOT, CASE, tests for null, and functions that choose one of their arguments."""

from __future__ import annotations

from lakebed.expressions import kinds
from lakebed.expressions.casts import coerced
from lakebed.expressions.functions.function import MANY, Function
from lakebed.expressions.nodes import Expression, call


def both(left: Expression, right: Expression) -> Expression:
    """AND. What may fail on the right is not looked at where the left is false, as in Spark."""
    left, right = coerced(left, kinds.BOOLEAN), coerced(right, kinds.BOOLEAN)
    guarded = "(CASE {0} WHEN FALSE THEN FALSE WHEN TRUE THEN {1} ELSE nullif({1}, TRUE) END)"
    template = guarded if right.can_fail else "({0} AND {1})"
    return call(template, left, right, type=kinds.BOOLEAN)


def either(left: Expression, right: Expression) -> Expression:
    """OR. What may fail on the right is not looked at where the left is true, as in Spark."""
    left, right = coerced(left, kinds.BOOLEAN), coerced(right, kinds.BOOLEAN)
    guarded = "(CASE {0} WHEN TRUE THEN TRUE WHEN FALSE THEN {1} ELSE nullif({1}, FALSE) END)"
    template = guarded if right.can_fail else "({0} OR {1})"
    return call(template, left, right, type=kinds.BOOLEAN)


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


FUNCTIONS = {
    "and": Function(both, 2, 2),
    "or": Function(either, 2, 2),
    "not": Function(negated, 1, 1),
    "isnull": Function(is_null, 1, 1),
    "isnotnull": Function(is_not_null, 1, 1),
    "coalesce": Function(coalesce, 1, MANY),
    "case": Function(case, 1, MANY),
    "if": Function(if_else, 3, 3),
}
