"""Queries: SELECT, VALUES, set operations and common table expressions, as relations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace

import pyarrow as pa
from sqlglot import exp

from lakebed.algebra.relations import (
    Filter,
    Limit,
    Project,
    Relation,
    Rows,
    Scan,
    SetKind,
    SetOperation,
    Sort,
    Subquery,
)
from lakebed.errors import InvalidArgument, Unsupported
from lakebed.expressions import kinds
from lakebed.expressions.casts import coerced
from lakebed.expressions.functions import FUNCTIONS
from lakebed.expressions.nodes import Expression, NotProven, Ordering, call
from lakebed.records import dataclass
from lakebed.sql.bind.aggregates import ordering
from lakebed.sql.bind.expressions import ExpressionBinder
from lakebed.sql.bind.scope import Bound, Ids, Named, Names, OuterColumn, missing_column

_SETS = {
    (exp.Union, False): SetKind.UNION_ALL,
    (exp.Union, True): SetKind.UNION,
    (exp.Intersect, False): SetKind.INTERSECT_ALL,
    (exp.Intersect, True): SetKind.INTERSECT,
    (exp.Except, False): SetKind.EXCEPT_ALL,
    (exp.Except, True): SetKind.EXCEPT,
}
_CLAUSES = {
    *("with_", "expressions", "from_", "joins", "laterals", "where", "group", "having", "windows", "order", "limit"),
    *("offset", "distinct", "this", "expression", "by_name", "kind", "hint", "operation_modifiers", "qualify"),
    *("sort", "cluster", "distribute"),
}
"""What a query may have; anything else is not understood."""


@dataclass(frozen=True, slots=True)
class TableColumns:
    """A table as a query sees it: `source` is for whoever reads it; columns by name and type, hidden ones apart."""

    source: object
    path: tuple[str, ...]
    columns: tuple[pa.Field, ...]
    hidden: tuple[pa.Field, ...] = ()


Tables = Callable[[exp.Table], TableColumns]
"""Finds the table that a node names; raises if there is none, NotProven if only Spark knows it."""


Views = Callable[[exp.Table], exp.Expression | None]
"""The query of the view that a node names; None if it names none."""


LookedUp = Callable[[Relation, str], None]
"""Takes note of a relation in which rows are looked up when others come; raises where none come."""


def _no_view(node: exp.Table) -> exp.Expression | None:
    return None


def refuse_lookup(relation: Relation, clause: str) -> None:
    """Raises: the rows of a query that ends are all there."""
    raise Unsupported(
        "a lookup join asks a table again for each row of a stream",
        hint=f"leave `{clause}` out: a plain JOIN reads the table as it is now",
    )


@dataclass(frozen=True)
class QueryBinder:
    """Binds queries of one statement. `common` are the common table expressions that can be seen."""

    tables: Tables
    select: Callable[[QueryBinder, exp.Select], Bound]
    """Binds a SELECT."""
    ids: Ids = field(default_factory=Ids)
    views: Views = _no_view
    common: dict[str, Callable[[], Bound]] = field(default_factory=dict)
    outer: OuterColumn | None = None
    looked_up: LookedUp = refuse_lookup

    def bind(self, node: exp.Expression) -> Bound:
        """The relation of a query."""
        unknown = [key for key, value in node.args.items() if value and key not in _CLAUSES]
        if unknown and not isinstance(node, exp.Subquery | exp.Values):
            raise NotProven(f"`{unknown[0].strip('_').upper()}` in a query")
        binder = self._with_common(node)
        match node:
            case exp.Subquery():
                return binder._with_tail(binder.bind(node.this), node)
            case exp.SetOperation():
                return binder._set_operation(node)
            case exp.Values():
                return binder.values(node)
            case exp.Select():
                return self.select(binder, node)
        raise NotProven(f"`{node.sql('spark')}`")

    def view(self, node: exp.Table) -> Bound | None:
        """What a view shows: nothing around the place that names it is known in it."""
        query = self.views(node)
        return None if query is None else replace(self, common={}, outer=None).bind(query)

    def inside(self, outer: OuterColumn) -> QueryBinder:
        """For a query within another: names that mean nothing in it are looked for around it."""
        return replace(self, outer=outer)

    # --- common table expressions --------------------------------------------------------------------------------

    def _with_common(self, node: exp.Expression) -> QueryBinder:
        clause = node.args.get("with_")
        if clause is None:
            return self
        if clause.args.get("recursive"):
            raise NotProven("a recursive query")
        binder = self
        for each in clause.expressions:
            binder = replace(binder, common={**binder.common, each.alias.lower(): binder._common(each)})
        return binder

    def _common(self, node: exp.CTE) -> Callable[[], Bound]:
        columns = [each.name for each in node.args["alias"].args.get("columns") or []]

        def bound() -> Bound:
            found = self.bind(node.this)  # for each use anew: columns are unique
            if columns and len(columns) != len(found.names):
                raise InvalidArgument(
                    f"`{node.alias}` names {len(columns)} columns, its query gives {len(found.names)}",
                    hint="name as many columns as the query gives",
                )
            return found.renamed(columns) if columns else found

        bound()  # what is wrong with it is wrong even if nobody uses it
        return bound

    # --- set operations ------------------------------------------------------------------------------------------

    def _set_operation(self, node: exp.SetOperation) -> Bound:
        if node.args.get("by_name"):
            raise NotProven("a set operation BY NAME")
        kind = _SETS.get((type(node), bool(node.args.get("distinct"))))
        if kind is None:
            raise NotProven(f"`{node.key}`")
        left, right = self.bind(node.this), self.bind(node.expression)
        if len(left.names) != len(right.names):
            raise InvalidArgument(
                f"the queries of {node.key.upper()} give {len(left.names)} and {len(right.names)} columns",
                hint="select as many columns on both sides",
            )
        types = [
            _united(a.type, b.type, name)
            for a, b, name in zip(left.relation.columns, right.relation.columns, left.names, strict=True)
        ]
        if kind is not SetKind.UNION_ALL:
            for each in types:
                check_told_apart(each, "a set operation")
        sides = [self.as_types(side.relation, types) for side in (left, right)]
        columns = tuple(
            self.ids.new(kind, nullable=a.nullable or b.nullable)
            for kind, a, b in zip(types, left.relation.columns, right.relation.columns, strict=True)
        )
        found = Bound(SetOperation(columns=columns, left=sides[0], right=sides[1], kind=kind), left.names)
        return self._with_tail(found, node)

    def as_types(self, relation: Relation, types: Sequence[pa.DataType]) -> Relation:
        """The relation with columns of these types."""
        if [each.type for each in relation.columns] == list(types):
            return relation
        values = tuple(coerced(each, kind) for each, kind in zip(relation.columns, types, strict=True))
        columns = tuple(self.ids.new(value.type, nullable=value.nullable) for value in values)
        return Project(columns=columns, input=relation, values=values)

    def _with_tail(self, found: Bound, node: exp.Expression) -> Bound:
        """ORDER BY and LIMIT behind a query in brackets, or behind a set operation: names are those of its columns."""
        order = node.args.get("order")
        relation = found.relation
        if order is not None:
            binder = ExpressionBinder(_OutputScope(self, found.columns()))
            relation = Sort(
                columns=relation.columns,
                input=relation,
                order=tuple(self.ordered(each, found.columns(), binder) for each in order.expressions),
            )
        return replace(found, relation=self.limited(relation, node))

    def ordered(self, node: exp.Ordered, outputs: Sequence[Named], binder: ExpressionBinder) -> Ordering:
        """One part of ORDER BY: a number is the place of a column."""
        place = place_of(node.this, len(outputs), "ORDER BY")
        return ordering(node, outputs[place].value if place is not None else binder.bind(node.this))

    def limited(self, relation: Relation, node: exp.Expression) -> Relation:
        """LIMIT and OFFSET."""
        limit, offset = node.args.get("limit"), node.args.get("offset")
        if limit is None and offset is None:
            return relation
        if isinstance(limit, exp.Fetch):
            raise NotProven("FETCH", "it has rules of its own; write LIMIT")
        is_all = limit is not None and limit.expression.name.upper() == "ALL"
        count = None if limit is None or is_all else _whole(limit.expression, "LIMIT")
        skipped = 0 if offset is None else _whole(offset.expression, "OFFSET")
        return Limit(columns=relation.columns, input=relation, count=count, offset=skipped)

    # --- rows ----------------------------------------------------------------------------------------------------

    def values(self, node: exp.Values) -> Bound:
        """VALUES (...), (...): columns are `col1`, `col2`, ..., of the common types of their values."""
        binder = ExpressionBinder(_OutputScope(self, ()))
        rows = [
            [binder.bind(value) for value in (row.expressions if isinstance(row, exp.Tuple) else [row])]
            for row in node.expressions
        ]
        if len({len(row) for row in rows}) != 1:
            raise InvalidArgument("rows of VALUES have different numbers of values", hint="give every row as many")
        types = [kinds.common_type_of([row[n].type for row in rows], "VALUES") for n in range(len(rows[0]))]
        given = tuple(tuple(coerced(v, kind) for v, kind in zip(row, types, strict=True)) for row in rows)
        columns = tuple(
            self.ids.new(kind, nullable=any(row[n].nullable for row in given)) for n, kind in enumerate(types)
        )
        names = tuple(f"col{n + 1}" for n in range(len(types)))
        return Bound(Rows(columns=columns, rows=given), names)

    # --- tables --------------------------------------------------------------------------------------------------

    def scan(self, node: exp.Table) -> tuple[TableColumns, Scan, tuple[Named, ...]]:
        """A table of the lake, and its hidden columns."""
        table = self.tables(node)
        fields = [*table.columns, *table.hidden]
        columns = tuple(self.ids.new(each.type, nullable=each.nullable) for each in fields)
        scan = Scan(
            columns=columns, source=table.source, view=self.ids.view(), names=tuple(each.name for each in fields)
        )
        named = tuple(Named(each.name, column) for each, column in zip(fields, columns, strict=True))
        return table, scan, named

    # --- subqueries ----------------------------------------------------------------------------------------------

    def subquery(self, node: exp.Expression, binder: ExpressionBinder, around: OuterColumn) -> Expression:
        """A query as a value, EXISTS, or IN."""
        outer: list[str] = []

        def asked(path: Sequence[str]) -> Expression | None:
            found = around(path)
            if found is not None and path[-1] not in outer:
                outer.append(path[-1])
            return found

        node.meta["outer"] = outer  # part of what Spark calls such a column
        inside = self.inside(asked)
        if isinstance(node, exp.Exists):
            found = inside.bind(node.this)
            return Subquery(type=kinds.BOOLEAN, nullable=False, relation=found.relation, template="EXISTS ({0})")
        if isinstance(node, exp.In):
            return self._among(node, binder, inside)
        found = inside.bind(node.this if isinstance(node, exp.Subquery) else node)
        if len(found.names) != 1:
            raise InvalidArgument(
                f"a query that stands for a value gives {len(found.names)} columns", hint="select one column in it"
            )
        return Subquery(type=found.relation.columns[0].type, relation=found.relation, can_fail=True)

    def _among(self, node: exp.In, binder: ExpressionBinder, inside: QueryBinder) -> Expression:
        is_negated, is_condition = _place_of_in(node)
        query = node.args["query"]
        found = inside.bind(query.this if isinstance(query, exp.Subquery) else query)
        given = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this.unnest()]
        if len(found.names) != len(given):
            raise InvalidArgument(
                f"the query of IN gives {len(found.names)} columns, {len(given)} are compared",
                hint="select as many columns in it",
            )
        values = [binder.bind(each) for each in given]
        types = [
            kinds.common_type_of([value.type, column.type], "IN")
            for value, column in zip(values, found.relation.columns, strict=True)
        ]
        relation = self.as_types(found.relation, types)
        values = [coerced(value, kind) for value, kind in zip(values, types, strict=True)]
        if len(values) == 1 and is_condition:
            return Subquery(type=kinds.BOOLEAN, relation=relation, template="({1} IN ({0}))", value=values[0])
        # As a value it is never null in Spark: what is not known counts as not fulfilled, for IN and for NOT IN.
        equals = [FUNCTIONS["="]("=", pair) for pair in zip(values, relation.columns, strict=True)]
        conditions = tuple(
            call("({0} IS NOT FALSE)", each, type=kinds.BOOLEAN) if is_negated else each for each in equals
        )
        matching = Filter(columns=relation.columns, input=relation, conditions=conditions)
        return Subquery(type=kinds.BOOLEAN, nullable=False, relation=matching, template="EXISTS ({0})")


@dataclass(frozen=True, slots=True)
class _OutputScope:
    """Names of a result's columns only; of the queries around if there are any."""

    queries: QueryBinder
    outputs: Sequence[Named]

    def column(self, path: Sequence[str]) -> Expression:
        names = Names()
        for each in self.outputs:
            if len(path) == 1 and each.name.lower() == path[0].lower():
                return each.value
        found = self.queries.outer(path) if self.queries.outer is not None else None
        if found is None:
            raise missing_column(path, names)
        return found

    def aggregate(self, node: exp.Expression) -> Expression:
        raise NotProven("an aggregate function here")

    def window(self, node: exp.Window) -> Expression:
        raise NotProven("a window here")

    def subquery(self, node: exp.Expression) -> Expression:
        return self.queries.subquery(node, ExpressionBinder(self), self.column)


def place_of(node: exp.Expression, columns: int, clause: str) -> int | None:
    """The column that a number in ORDER BY or GROUP BY means; None if it is no number."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.is_int:
        return None
    place = int(node.this)
    if not 1 <= place <= columns:
        raise InvalidArgument(f"{clause} {place}: the query gives {columns} columns", hint="count columns from 1")
    return place - 1


def conjuncts(condition: exp.Expression) -> list[exp.Expression]:
    """The conditions that AND puts together, in their order."""
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.left), *conjuncts(condition.right)]
    return [condition]


def filtered(relation: Relation, conditions: Sequence[Expression]) -> Relation:
    """The rows that meet all conditions."""
    given = tuple(truth(each, "WHERE") for each in conditions)
    return Filter(columns=relation.columns, input=relation, conditions=given) if given else relation


def truth(value: Expression, clause: str) -> Expression:
    """A condition, which nothing but a BOOLEAN is."""
    if value.type not in (kinds.BOOLEAN, kinds.NULL):
        raise InvalidArgument(
            f"the condition of {clause} is of type {kinds.spark_name(value.type)}", hint="compare it with something"
        )
    return coerced(value, kinds.BOOLEAN)


def check_told_apart(kind: pa.DataType, what: str) -> None:
    """Raises if rows can not be told apart by values of a type as Spark does it."""
    if pa.types.is_map(kind) or (kinds.is_nested(kind) and _holds(kind, pa.types.is_map)):
        raise NotProven(f"{what} by maps")
    if kinds.is_nested(kind) and _holds(kind, kinds.is_fraction):
        raise NotProven(f"{what} by fractions inside of {kinds.spark_name(kind)}")


def _holds(kind: pa.DataType, is_such: Callable[[pa.DataType], bool]) -> bool:
    if is_such(kind):
        return True
    return any(_holds(kind.field(n).type, is_such) for n in range(kind.num_fields))


def _place_of_in(node: exp.In) -> tuple[bool, bool]:
    """Whether NOT stands before an IN, and whether it is a condition for rows, where null is as good as false.

    Spark moves a NOT around AND and OR inside, so that it would mean something else there.
    """
    around, is_negated = node.parent, False
    while isinstance(around, exp.Paren):
        around = around.parent
    if isinstance(around, exp.Not):
        is_negated, around = True, around.parent
    is_condition = True
    while isinstance(around, exp.Paren | exp.And | exp.Or):
        is_condition = is_condition and not isinstance(around, exp.Or)
        around = around.parent
    if isinstance(around, exp.Where | exp.Having | exp.Join):
        return is_negated, is_condition
    if isinstance(around, exp.Alias | exp.Select | exp.If):
        return is_negated, False
    raise NotProven("IN with a query inside of other conditions")


def _whole(node: exp.Expression, clause: str) -> int:
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        raise InvalidArgument(f"{clause} {node.sql('spark')} is less than 0", hint="write a number of rows")
    if isinstance(node, exp.Literal) and not node.is_string and node.is_int:
        return int(node.this)
    raise NotProven(f"{clause} `{node.sql('spark')}`")


def _united(left: pa.DataType, right: pa.DataType, name: str) -> pa.DataType:
    if kinds.STRING in (left, right) and left != right and kinds.NULL not in (left, right):
        raise NotProven(f"text and {kinds.spark_name(right if left == kinds.STRING else left)} in column `{name}`")
    found = kinds.common_type(left, right)
    if found is None:
        raise NotProven(f"{kinds.spark_name(left)} and {kinds.spark_name(right)} in column `{name}`")
    return found
