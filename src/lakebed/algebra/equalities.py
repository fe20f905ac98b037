"""What a join says to be equal, and which columns are handed on as they are: who looks for partners or keys asks it."""

from __future__ import annotations

from lakebed.algebra.relations import Filter, Group, Join, Project, Relation, Scan, Unnest, Window
from lakebed.expressions.nodes import Call, Column, Expression
from lakebed.records import dataclass

_AND, _EQUAL = "({0} AND {1})", "({0} = {1})"


@dataclass(frozen=True, slots=True)
class Equalities:
    """Expressions of the left side that must equal expressions of the right side for rows to match."""

    left: tuple[Expression, ...]
    right: tuple[Expression, ...]


def conjuncts(condition: Expression | None) -> list[Expression]:
    """The conditions that AND puts together."""
    if condition is None:
        return []
    if isinstance(condition, Call) and condition.template == _AND:
        return [each for part in condition.arguments for each in conjuncts(part)]
    return [condition]


def columns_in(expression: Expression) -> set[str]:
    """The columns that an expression looks at."""
    return {each.id for each in expression.walk() if isinstance(each, Column)}


def equalities(node: Join) -> Equalities:
    """What the condition of a join says to be equal."""
    left, right = ({each.id for each in side.columns} for side in node.inputs)
    found: list[tuple[Expression, Expression]] = []
    for condition in conjuncts(node.condition):
        if isinstance(condition, Call) and condition.template == _EQUAL:
            one, other = condition.arguments
            if columns_in(one) and columns_in(other):
                if columns_in(one) <= left and columns_in(other) <= right:
                    found.append((one, other))
                elif columns_in(one) <= right and columns_in(other) <= left:
                    found.append((other, one))
    return Equalities(tuple(one for one, _ in found), tuple(other for _, other in found))


def origin_of(node: Relation, column: Column) -> str:
    """The column that this one hands on, as far down as it is handed on as it is."""
    match node:
        case Project():
            pairs = zip(node.columns, node.values, strict=True)
            value = next((value for each, value in pairs if each.id == column.id), None)
            return origin_of(node.input, value) if isinstance(value, Column) else column.id
        case Filter() | Window() | Unnest():
            return origin_of(node.input, column)
        case Join():
            side = next((side for side in node.inputs if any(each.id == column.id for each in side.columns)), None)
            return column.id if side is None else origin_of(side, column)
        case Group() | Scan():
            return column.id
    return column.id
