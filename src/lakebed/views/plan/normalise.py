"""A bound query in fewer words: what can be said by others of its operators is said by them.

Subqueries become joins, DISTINCT and UNION groupings, RIGHT and FULL joins LEFT ones. Orders go: a table has none. What
can not be said otherwise stays as it is, for `judge` to name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from itertools import count
from typing import Any

import pyarrow as pa

from lakebed.algebra.relations import (
    Distinct,
    Filter,
    Group,
    Join,
    JoinKind,
    Limit,
    Project,
    Relation,
    Scan,
    SetKind,
    SetOperation,
    Sort,
    Subquery,
    Unnest,
    Window,
)
from lakebed.expressions import kinds
from lakebed.expressions.functions import FUNCTIONS
from lakebed.expressions.nodes import Aggregation, Call, Column, Constant, Expression
from lakebed.records import dataclass
from lakebed.views.plan.correlated import Correlated, uncorrelated
from lakebed.views.plan.joined import is_inner, joined, may_move
from lakebed.views.rules.windows import common_partition

_EXISTS, _AMONG, _NOT = "EXISTS ({0})", "({1} IN ({0}))", "(NOT {0})"
VALUE = "({0})"
"""A query for one value."""
_AVERAGE = "avg({distinct}CAST({0} AS DOUBLE)){over}"
_EXACT_AVERAGE = "(CAST(sum({distinct}{0}){over} AS DOUBLE) / count({distinct}{0}){over})"


@dataclass
class Normaliser:
    """Makes one query plain; columns that it adds have names of their own."""

    _numbers: Any = field(default_factory=lambda: count(1))

    def new(self, kind: pa.DataType, nullable: bool = True) -> Column:
        """A column that nobody else has."""
        return Column(type=kind, nullable=nullable, id=f"x{next(self._numbers)}")

    def plain(self, node: Relation) -> Relation:
        """The relation in fewer words."""
        match node:
            case Sort():
                return self.plain(node.input)
            case Limit():
                return node
            case Distinct():
                return self._once(self.plain(node.input), node.columns)
            case SetOperation():
                return self._set(node)
            case Join():
                return self._join(node)
            case Filter():
                return self._filter(node)
            case Project():
                return self._project(node)
            case Group():
                return replace(node, input=self.plain(node.input), aggregates=tuple(map(_exact, node.aggregates)))
            case Window():
                return self._window(replace(node, input=self.plain(node.input)))
            case Unnest():
                return replace(node, input=self.plain(node.input))
        return node

    # --- rows once -----------------------------------------------------------------------------------------------

    def _once(self, rows: Relation, columns: Sequence[Column]) -> Relation:
        """DISTINCT as a grouping by all columns."""
        keys = tuple(self.new(each.type, each.nullable) for each in rows.columns)
        grouped = Group(columns=keys, input=rows, keys=rows.columns, aggregates=())
        return Project(columns=tuple(columns), input=grouped, values=keys)

    def _set(self, node: SetOperation) -> Relation:
        left, right = self.plain(node.left), self.plain(node.right)
        if node.kind is SetKind.UNION_ALL:
            return replace(node, left=left, right=right)
        if node.kind is SetKind.UNION:
            columns = tuple(self.new(each.type, each.nullable) for each in node.columns)
            rows = SetOperation(columns=columns, left=left, right=right, kind=SetKind.UNION_ALL)
            return self._once(rows, node.columns)
        return node

    # --- joins ---------------------------------------------------------------------------------------------------

    def _join(self, node: Join) -> Relation:
        if node.is_lateral or any(isinstance(each, Subquery) for each in _all(node.expressions)):
            return node
        if is_inner(node):
            return joined(node, (), self.plain)
        node = replace(node, left=self.plain(node.left), right=self.plain(node.right))
        if node.kind is JoinKind.RIGHT:
            return replace(node, left=node.right, right=node.left, kind=JoinKind.LEFT)
        if node.kind is not JoinKind.FULL:
            return node
        left = replace(node, kind=JoinKind.LEFT)
        alone = Join(
            columns=node.right.columns,
            left=node.right,
            right=node.left,
            kind=JoinKind.ANTI,
            condition=node.condition,
        )
        theirs = {each.id for each in node.right.columns}
        values = tuple(each if each.id in theirs else _null(each.type) for each in node.columns)
        padded = Project(
            columns=tuple(self.new(each.type) for each in node.columns),
            input=alone,
            values=values,
        )
        columns = tuple(replace(each, nullable=True) for each in node.columns)
        named = Project(columns=tuple(self.new(each.type) for each in columns), input=left, values=node.columns)
        return SetOperation(columns=columns, left=named, right=padded, kind=SetKind.UNION_ALL)

    # --- subqueries ----------------------------------------------------------------------------------------------

    def _filter(self, node: Filter) -> Relation:
        """EXISTS and IN are semi joins, NOT EXISTS is an anti join, a value a left join."""
        first, others = _apart(node.conditions)
        rows = self._filtered(node.input, first)
        rest: list[Expression] = []
        for condition in others:
            joined = self._half_join(rows, condition)
            if joined is not None and not rest:
                rows = joined
                continue
            if joined is not None:
                rows = Filter(columns=rows.columns, input=rows, conditions=tuple(rest))
                rest = []
                again = self._half_join(rows, condition)
                assert again is not None
                rows = again
                continue
            found = self._valued(rows, condition)
            if found is not None:
                rows, condition = found
            rest.append(condition)
        kept = Filter(columns=rows.columns, input=rows, conditions=tuple(rest)) if rest else rows
        if {each.id for each in kept.columns} == {each.id for each in node.columns}:
            return kept
        names = {each.id for each in node.columns}
        columns = tuple(each for each in kept.columns if each.id in names)
        return Project(columns=columns, input=kept, values=columns)

    def _filtered(self, rows: Relation, conditions: Sequence[Expression]) -> Relation:
        """Rows that meet conditions which can be asked at any time: as early as all that they look at is there."""
        if is_inner(rows):
            return joined(rows, conditions, self.plain)
        found = self.plain(rows)
        return Filter(columns=found.columns, input=found, conditions=tuple(conditions)) if conditions else found

    def _half_join(self, rows: Relation, condition: Expression) -> Relation | None:
        kind = JoinKind.SEMI
        if isinstance(condition, Call) and condition.template == _NOT:
            (condition,) = condition.arguments
            kind = JoinKind.ANTI
        if not isinstance(condition, Subquery):
            return None
        if condition.template == _EXISTS:
            found = uncorrelated(condition.relation, needs_columns=False)
            return None if found is None else self._matched(rows, found, kind, found.conditions)
        if condition.template == _AMONG and condition.value is not None:
            if any(isinstance(each, Subquery) for each in condition.value.walk()):
                return None
            if kind is JoinKind.ANTI and (condition.value.nullable or condition.relation.columns[0].nullable):
                return None  # NOT IN gives nothing beside a null, which is no question of what matches
            found = uncorrelated(condition.relation, needs_columns=True)
            if found is None:
                return None
            equal = FUNCTIONS["="]("=", [condition.value, condition.relation.columns[0]])
            return self._matched(rows, found, kind, (*found.conditions, equal))
        return None

    def _matched(self, rows: Relation, found: Correlated, kind: JoinKind, conditions: Sequence[Expression]) -> Relation:
        return Join(
            columns=rows.columns,
            left=rows,
            right=self.plain(found.relation),
            kind=kind,
            condition=_conjunction(conditions),
        )

    def _project(self, node: Project) -> Relation:
        rows = self.plain(node.input)
        values = list(node.values)
        for place, value in enumerate(values):
            found = self._valued(rows, value)
            if found is not None:
                rows, values[place] = found
        return replace(node, input=rows, values=tuple(values))

    def _valued(self, rows: Relation, value: Expression) -> tuple[Relation, Expression] | None:
        """An expression whose queries for one value are columns of a left join; None if it has none, or others."""
        queries = [each for each in value.walk() if isinstance(each, Subquery)]
        if not queries or any(each.template != VALUE for each in queries):
            return None
        for query in queries:
            found = self._beside(rows, query)
            if found is None:
                return None
            rows, column = found
            value = _with(value, query, column)
        return None if any(isinstance(each, Subquery) for each in value.walk()) else (rows, value)

    def _beside(self, rows: Relation, query: Subquery) -> tuple[Relation, Expression] | None:
        """`(SELECT max(x) FROM t WHERE t.k = outer.k)`: the groups of t by k, joined; one without rows is empty."""
        node, outputs = query.relation, []
        while isinstance(node, Project):
            outputs.append(node)
            node = node.input
        if not isinstance(node, Group) or node.keys or node.sets is not None:
            return None
        found = uncorrelated(node.input, needs_columns=True)
        if found is None or not found.conditions:
            return None
        inner = {each.id for each in found.relation.columns}
        pairs = []
        for condition in found.conditions:
            pair = _equated(condition, inner)
            if pair is None:
                return None
            pairs.append(pair)
        empty = [_of_nothing(each) for each in node.aggregates]
        if any(each is None for each in empty):
            return None
        keys = tuple(self.new(mine.type) for mine, _ in pairs)
        values = tuple(self.new(each.type) for each in node.columns)
        groups = Group(
            columns=(*keys, *values),
            input=self.plain(found.relation),
            keys=tuple(mine for mine, _ in pairs),
            aggregates=tuple(map(_exact, node.aggregates)),
        )
        conditions = [FUNCTIONS["="]("=", [key, theirs]) for key, (_, theirs) in zip(keys, pairs, strict=True)]
        joined = Join(
            columns=(*rows.columns, *groups.columns),
            left=rows,
            right=groups,
            kind=JoinKind.LEFT,
            condition=_conjunction(conditions),
        )
        value: Expression = node.columns[0] if not outputs else outputs[0].values[0]
        below: dict[str, Expression] = {}
        for own, column, nothing in zip(node.columns, values, empty, strict=True):
            below[own.id] = (
                column if nothing == "NULL" else FUNCTIONS["coalesce"]("coalesce", [column, _zero(own.type)])
            )
        for place in range(1, len(outputs) + 1):
            step = outputs[place] if place < len(outputs) else None
            mapping = (
                below
                if step is None
                else {each.id: given for each, given in zip(step.columns, step.values, strict=True)}
            )
            value = replaced(value, mapping)
        if not outputs:
            value = replaced(value, below)
        known = {each.id for each in joined.columns}
        is_complete = all(each.id in known for each in value.walk() if isinstance(each, Column))
        return (joined, value) if is_complete else None

    # --- windows -------------------------------------------------------------------------------------------------

    def _window(self, node: Window) -> Relation:
        """What rows are partitioned by is a column, and rows that are equal in the order have a place all the same."""
        node = replace(node, values=tuple(map(_exact, node.values)))
        computed = [each for each in common_partition(node) if not isinstance(each, Column)]
        if computed:
            fresh = {each.spelled(): self.new(each.type, each.nullable) for each in computed}
            rows = Project(
                columns=(*node.input.columns, *fresh.values()),
                input=node.input,
                values=(*node.input.columns, *computed),
            )
            values = tuple(
                replace(
                    value,
                    partition=tuple(fresh.get(each.spelled(), each) for each in value.partition),
                )
                for value in node.values
            )
            own = node.columns[len(node.input.columns) :]
            node = replace(node, columns=(*rows.columns, *own), input=rows, values=values)
        values = tuple(_in_one_order(value, node.input.columns) for value in node.values)
        return replace(node, values=values)


def _apart(conditions: Sequence[Expression]) -> tuple[list[Expression], list[Expression]]:
    """Conditions that can be asked first, and the others. Nothing goes before what may fail: that is to fail."""
    first: list[Expression] = []
    others: list[Expression] = []
    for place, condition in enumerate(conditions):
        if not may_move(condition) and not any(isinstance(each, Subquery) for each in condition.walk()):
            return first, [*others, *conditions[place:]]
        (first if may_move(condition) else others).append(condition)
    return first, others


def _all(expressions: Sequence[Expression]) -> list[Expression]:
    return [each for expression in expressions for each in expression.walk()]


def _null(kind: pa.DataType) -> Constant:
    text = "NULL" if kind == kinds.NULL else f"CAST(NULL AS {kinds.duckdb_name(kind)})"
    return Constant(type=kind, nullable=True, value=None, text=text)


def _zero(kind: pa.DataType) -> Constant:
    return Constant(type=kind, nullable=False, value=0, text=f"CAST(0 AS {kinds.duckdb_name(kind)})")


def _conjunction(conditions: Sequence[Expression]) -> Expression | None:
    found: Expression | None = None
    for each in conditions:
        found = each if found is None else FUNCTIONS["and"]("and", [found, each])
    return found


def _equated(condition: Expression, inner: set[str]) -> tuple[Expression, Expression] | None:
    """An expression of the inner query and the one of the outer query that must equal it."""
    if not isinstance(condition, Call) or condition.template != "({0} = {1})":
        return None
    one, other = condition.arguments
    names = [{each.id for each in side.walk() if isinstance(each, Column)} for side in (one, other)]
    if names[0] and names[0] <= inner and not names[1] & inner:
        return one, other
    if names[1] and names[1] <= inner and not names[0] & inner:
        return other, one
    return None


def _of_nothing(value: Expression) -> str | None:
    """What an aggregate gives for no rows; None if that is not known."""
    if not isinstance(value, Aggregation):
        return None
    if value.template.startswith("count("):
        return "0"
    known = (
        "min(",
        "max(",
        "CAST(sum(",
        "TRY_CAST(sum(",
        "avg(",
        "bool_and(",
        "bool_or(",
        "list_transform([struct_pack(",
    )
    return "NULL" if value.template.startswith(known) else None


def _exact(value: Any) -> Any:
    """The mean of whole numbers from their exact sum: the same number, in whatever order rows come."""
    is_mean = (
        isinstance(value, Aggregation) and value.template == _AVERAGE and kinds.is_integral(value.arguments[0].type)
    )
    return replace(value, template=_EXACT_AVERAGE) if is_mean else value


ROWS = " ROWS BETWEEN "
_PLACES = ("CAST(row_number()", "CAST(ntile(", "lag(", "lead(")


def _in_one_order(value: Aggregation, columns: Sequence[Column]) -> Aggregation:
    """A window function for which it matters which of two equal rows comes first: any order is right, but it has to be
    the same each time. So all columns decide."""
    end = len(value.over) - 1 if value.template.startswith(_PLACES) else value.over.rfind(ROWS)
    if end < 0 or len(value.window) == len(value.partition):
        return value
    sortable = [each for each in columns if not kinds.is_nested(each.type)]
    more = "".join(f", {each.id} ASC NULLS FIRST" for each in sortable)
    return replace(value, over=f"{value.over[:end]}{more}{value.over[end:]}", window=(*value.window, *sortable))


def _with(value: Expression, query: Subquery, other: Expression) -> Expression:
    """An expression with another in the place of a subquery."""
    return _changed(value, lambda each: other if each is query else None)


def replaced(value: Expression, mapping: dict[str, Expression]) -> Expression:
    """An expression with others in the place of columns."""
    return _changed(value, lambda each: mapping.get(each.id) if isinstance(each, Column) else None)


def _changed(value: Expression, other: Any) -> Expression:
    found = other(value)
    if found is not None:
        return found  # type: ignore[no-any-return]
    if isinstance(value, Call):
        return replace(value, arguments=tuple(_changed(each, other) for each in value.arguments))
    return value


def carrying(node: Relation, wanted: set[str]) -> Relation:
    """The relation with these columns of what it reads among its own, as far as rows can carry them up."""
    match node:
        case Project():
            below = carrying(node.input, wanted)
            known = {each.id for each in node.columns}
            more = tuple(each for each in below.columns if each.id in wanted and each.id not in known)
            return replace(node, columns=(*node.columns, *more), values=(*node.values, *more), input=below)
        case Filter():
            below = carrying(node.input, wanted)
            return replace(node, columns=below.columns, input=below)
        case Window():
            below = carrying(node.input, wanted)
            return replace(node, columns=(*below.columns, *node.columns[len(node.input.columns) :]), input=below)
        case Unnest():
            below = carrying(node.input, wanted)
            return replace(node, columns=(*below.columns, *node.outputs), input=below)
        case Join():
            left = carrying(node.left, wanted)
            if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
                return replace(node, columns=left.columns, left=left)
            right = carrying(node.right, wanted)
            return replace(node, columns=(*left.columns, *right.columns), left=left, right=right)
    return node


def pruned(node: Relation, used: set[str]) -> Relation:
    """The relation without columns that nobody looks at; `columns` are then what there really is."""
    match node:
        case Scan():
            return node.narrowed(used)
        case Project():
            kept = [(e, v) for e, v in zip(node.columns, node.values, strict=True) if e.id in used]
            return replace(
                node,
                columns=tuple(each for each, _ in kept),
                values=tuple(value for _, value in kept),
                input=pruned(node.input, used),
            )
        case Filter():
            below = pruned(node.input, used)
            return replace(node, columns=below.columns, input=below)
        case Window():
            below = pruned(node.input, used)
            return replace(node, columns=(*below.columns, *node.columns[len(node.input.columns) :]), input=below)
        case Unnest():
            below = pruned(node.input, used)
            return replace(node, columns=(*below.columns, *node.outputs), input=below)
        case Group():
            return replace(node, input=pruned(node.input, used))
        case SetOperation():
            return replace(node, left=pruned(node.left, used), right=pruned(node.right, used))
        case Join():
            left, right = pruned(node.left, used), pruned(node.right, used)
            half = node.kind in (JoinKind.SEMI, JoinKind.ANTI)
            columns = left.columns if half else (*left.columns, *right.columns)
            return replace(node, columns=columns, left=left, right=right)
    return node
