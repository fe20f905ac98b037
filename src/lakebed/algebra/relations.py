"""The relations, and how DuckDB is told to compute each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from enum import Enum
from typing import Any

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.nodes import Aggregation, Column, Expression, Ordering
from lakebed.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """Rows with these columns, in no order unless it is a `Sort`."""

    columns: tuple[Column, ...]

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """The relations that it is made of."""
        return ()

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that it computes."""
        return ()

    def spelled(self) -> str:
        """A SELECT that DuckDB understands and that gives the columns under their names."""
        raise NotImplementedError

    def walk(self) -> Iterator[Relation]:
        """The relation, those that it is made of, and those in subqueries of its expressions."""
        yield self
        for part in self.inputs:
            yield from part.walk()
        for expression in self.expressions:
            for each in expression.walk():
                if isinstance(each, Subquery):
                    yield from each.relation.walk()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan(Relation):
    """A table. `source` is whoever can read it; `names` are those of its columns, one for each."""

    source: Any
    view: str
    """Under what name DuckDB finds it."""
    names: tuple[str, ...]

    def spelled(self) -> str:
        given = zip(self.names, self.columns, strict=True)
        chosen = ", ".join(f"{kinds.quoted(name)} AS {each.id}" for name, each in given) or "1 AS nothing"
        return f"SELECT {chosen} FROM {self.view}"

    def narrowed(self, used: set[str]) -> Scan:
        """The same with only those columns that are used."""
        kept = [(name, each) for name, each in zip(self.names, self.columns, strict=True) if each.id in used]
        return replace(self, names=tuple(name for name, _ in kept), columns=tuple(each for _, each in kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(Relation):
    """VALUES: rows of constants or expressions without columns; a row without columns is `SELECT 1` without FROM."""

    rows: tuple[tuple[Expression, ...], ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(value for row in self.rows for value in row)

    def spelled(self) -> str:
        if not self.columns:
            return "SELECT 1 AS nothing"
        rows = ", ".join(f"({', '.join(value.spelled() for value in row)})" for row in self.rows)
        return f"SELECT * FROM (VALUES {rows}) AS given({', '.join(each.id for each in self.columns)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers(Relation):
    """Whole numbers from `start` on, below `stop`; they are made as they are asked for, however many."""

    start: int
    stop: int
    step: int

    def spelled(self) -> str:
        return f"SELECT range AS {self.columns[0].id} FROM range({self.start}, {self.stop}, {self.step})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project(Relation):
    """Other columns, computed from those of the input."""

    input: Relation
    values: tuple[Expression, ...]

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return self.values

    def spelled(self) -> str:
        given = zip(self.values, self.columns, strict=True)
        chosen = ", ".join(f"{value.spelled()} AS {each.id}" for value, each in given) or "1 AS nothing"
        # An order is kept only where it is said last.
        limit = self.input if isinstance(self.input, Limit) else None
        sort = self.input if limit is None else limit.input
        if isinstance(sort, Sort):
            tail = "" if limit is None else limit.tail
            return f"SELECT {chosen} FROM ({sort.input.spelled()}) ORDER BY {sort.listed}{tail}"
        return f"SELECT {chosen} FROM ({self.input.spelled()})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Relation):
    """Rows for which all conditions are true. What may fail is asked only of rows that meet those before it."""

    input: Relation
    conditions: tuple[Expression, ...]

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return self.conditions

    def spelled(self) -> str:
        texts: list[str] = []
        for condition in self.conditions:
            text = condition.spelled()
            if condition.can_fail and texts:
                text = f"CASE WHEN {' AND '.join(texts)} THEN {text} ELSE FALSE END"
            texts.append(text)
        return f"SELECT * FROM ({self.input.spelled()}) WHERE {' AND '.join(texts)}"


class JoinKind(Enum):
    """Which rows of two relations come together, and which stay alone."""

    INNER = "INNER JOIN"
    LEFT = "LEFT JOIN"
    RIGHT = "RIGHT JOIN"
    FULL = "FULL JOIN"
    SEMI = "SEMI JOIN"
    ANTI = "ANTI JOIN"
    CROSS = "CROSS JOIN"


@dataclass(frozen=True, slots=True)
class Latest:
    """Of rows of the right side of a join that meet `condition` with a row of the left side, only those that have the
    greatest value of `column` can match it. The condition is made of equalities and one comparison."""

    condition: Expression
    column: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(Relation):
    """Rows of two relations side by side; `is_lateral`: the right one is computed for each row of the left one."""

    left: Relation
    right: Relation
    kind: JoinKind
    condition: Expression | None = None
    is_lateral: bool = False
    latest: Latest | None = None
    """If no row of the left one has more than one partner: which one that can be."""

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.left, self.right)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return () if self.condition is None else (self.condition,)

    def spelled(self) -> str:
        kind = self.kind
        condition = "" if self.condition is None else f" ON {self.condition.spelled()}"
        if self.condition is None and kind is not JoinKind.CROSS:
            condition = " ON TRUE"
        if self.latest is not None and kind in (JoinKind.INNER, JoinKind.LEFT):
            return self._by_latest(self.latest, condition)
        right = f"{'LATERAL ' if self.is_lateral else ''}({self.right.spelled()})"
        return f"SELECT * FROM ({self.left.spelled()}) AS l {kind.value} {right} AS r{condition}"

    def _by_latest(self, latest: Latest, condition: str) -> str:
        """The greatest value is found first, in one pass over both sides in order; otherwise each row of the left side
        would be compared with all rows of its key."""
        value = latest.column.id
        found = (
            f"SELECT l.*, v.{value} AS latest FROM ({self.left.spelled()}) AS l "
            f"ASOF LEFT JOIN versions AS v ON {latest.condition.spelled()}"
        )
        return (
            f"WITH versions AS MATERIALIZED ({self.right.spelled()}) SELECT * EXCLUDE (latest) FROM ({found}) AS l "
            f"{self.kind.value} versions AS r{condition} AND r.{value} = l.latest"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Relation):
    """One row for each group: the keys, then the aggregates. `sets` are GROUPING SETS, as places of keys."""

    input: Relation
    keys: tuple[Expression, ...]
    aggregates: tuple[Expression, ...]
    sets: tuple[tuple[int, ...], ...] | None = None

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (*self.keys, *self.aggregates)

    def spelled(self) -> str:
        # Keys become columns first, so that grouping sets and GROUPING can name them.
        keys = self.columns[: len(self.keys)]
        given = zip(self.keys, keys, strict=True)
        named = "".join(f", {told_apart(value.spelled(), value.type)} AS {each.id}" for value, each in given)
        inner = f"SELECT *{named} FROM ({self.input.spelled()})"
        values = zip(self.aggregates, self.columns[len(keys) :], strict=True)
        chosen = [each.id for each in keys] + [f"{value.spelled()} AS {each.id}" for value, each in values]
        if self.sets is not None:
            sets = ", ".join(f"({', '.join(keys[place].id for place in each)})" for each in self.sets)
            # Without rows Spark has no total either.
            tail = f" GROUP BY GROUPING SETS ({sets}) HAVING count(*) > 0"
        else:
            tail = f" GROUP BY {', '.join(each.id for each in keys)}" if keys else ""
        return f"SELECT {', '.join(chosen) or '1 AS nothing'} FROM ({inner}){tail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Relation):
    """The input with values of windows beside each row."""

    input: Relation
    values: tuple[Aggregation, ...]

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return self.values

    def spelled(self) -> str:
        own = zip(self.values, self.columns[-len(self.values) :], strict=True)
        return f"SELECT *, {', '.join(f'{v.spelled()} AS {each.id}' for v, each in own)} FROM ({self.input.spelled()})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnest(Relation):
    """A row for each element of an array, beside the columns of the input; `is_outer`: one of nulls if there is none.

    The last columns are those of the elements: the element itself or the members of a struct, with its place in front
    if `has_place`.
    """

    input: Relation
    array: Expression
    outputs: tuple[Column, ...]
    is_outer: bool = False
    has_place: bool = False
    has_members: bool = False

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.array,)

    def spelled(self) -> str:
        array = self.array.spelled()
        if self.is_outer:
            array = f"CASE WHEN len({array}) > 0 THEN {array} ELSE [NULL] END"
        own = list(self.outputs)
        chosen = []
        if self.has_place:
            place = "element_place - 1"
            if self.is_outer:
                place = f"CASE WHEN len({self.array.spelled()}) > 0 THEN {place} END"
            chosen.append(f"CAST({place} AS INTEGER) AS {own.pop(0).id}")
        if self.has_members:
            members = [member.name for member in self.array.type.value_type]
            chosen += [f"element.{kinds.quoted(name)} AS {each.id}" for name, each in zip(members, own, strict=True)]
        else:
            chosen.append(f"element AS {own[0].id}")
        inner = (
            f"SELECT *, unnest({array}) AS element, generate_subscripts({array}, 1) AS element_place "
            f"FROM ({self.input.spelled()})"
        )
        return f"SELECT * EXCLUDE (element, element_place), {', '.join(chosen)} FROM ({inner})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct(Relation):
    """Every row once."""

    input: Relation

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def spelled(self) -> str:
        chosen = ", ".join(f"{told_apart(each.id, each.type)} AS {each.id}" for each in self.columns)
        return f"SELECT DISTINCT {chosen or '1 AS nothing'} FROM ({self.input.spelled()})"


class SetKind(Enum):
    """How rows of two relations are put together."""

    UNION_ALL = "UNION ALL"
    UNION = "UNION"
    INTERSECT = "INTERSECT"
    INTERSECT_ALL = "INTERSECT ALL"
    EXCEPT = "EXCEPT"
    EXCEPT_ALL = "EXCEPT ALL"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOperation(Relation):
    """Rows of two relations with columns of the same types."""

    left: Relation
    right: Relation
    kind: SetKind

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.left, self.right)

    def spelled(self) -> str:
        left = f"SELECT {self._renamed(self.left)} FROM ({self.left.spelled()})"
        right = f"SELECT {self._renamed(self.right)} FROM ({self.right.spelled()})"
        return f"({left}) {self.kind.value} ({right})"

    def _renamed(self, side: Relation) -> str:
        pairs = zip(side.columns, self.columns, strict=True)
        if self.kind is SetKind.UNION_ALL:
            return ", ".join(f"{a.id} AS {b.id}" for a, b in pairs)
        return ", ".join(f"{told_apart(a.id, a.type)} AS {b.id}" for a, b in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort(Relation):
    """The input in an order."""

    input: Relation
    order: tuple[Ordering, ...]

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(each.value for each in self.order)

    @property
    def listed(self) -> str:
        """What stands after ORDER BY."""
        return ", ".join(each.spelled() for each in self.order)

    def spelled(self) -> str:
        return f"SELECT * FROM ({self.input.spelled()}) ORDER BY {self.listed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit(Relation):
    """So many rows of the input, in its order, after so many others."""

    input: Relation
    count: int | None
    offset: int = 0

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    @property
    def tail(self) -> str:
        """LIMIT and OFFSET."""
        limit = "" if self.count is None else f" LIMIT {self.count}"
        return f"{limit} OFFSET {self.offset}" if self.offset else limit

    def spelled(self) -> str:
        if isinstance(self.input, Sort):
            return f"{self.input.spelled()}{self.tail}"
        return f"SELECT * FROM ({self.input.spelled()}){self.tail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subquery(Expression):
    """A query as a value: its one value, whether it has rows (EXISTS), or whether a value is among its rows (IN)."""

    relation: Relation
    template: str = "({0})"
    value: Expression | None = None

    @property
    def parts(self) -> tuple[Expression, ...]:
        return () if self.value is None else (self.value,)

    def spelled(self) -> str:
        given = [] if self.value is None else [self.value.spelled()]
        return self.template.format(self.relation.spelled(), *given)


def told_apart(text: str, kind: pa.DataType) -> str:
    """A value by which rows are told apart: -0.0 is 0.0 then, and comes out as that."""
    return f"({text} + CAST(0 AS {kinds.duckdb_name(kind)}))" if kinds.is_fraction(kind) else text


def narrowed(relation: Relation, used: set[str]) -> Relation:
    """The relation with scans that read only what is used."""
    return changed(relation, lambda part: part.narrowed(used) if isinstance(part, Scan) else None)


Change = Callable[[Relation], Relation | None]
"""What stands in the place of a relation; None for the same, changed within."""


def changed(relation: Relation, change: Change) -> Relation:
    """The relation with others in the place of some of its parts, those in subqueries included."""
    found = change(relation)
    if found is not None:
        return found
    parts = {part.name: getattr(relation, part.name) for part in fields(relation) if part.name != "columns"}
    return replace(relation, **{name: _changed_item(value, change) for name, value in parts.items()})


def _changed_item(value: Any, change: Change) -> Any:
    if isinstance(value, Relation):
        return changed(value, change)
    if isinstance(value, Expression):
        return _changed_in(value, change)
    if isinstance(value, Ordering):
        return replace(value, value=_changed_in(value.value, change))
    if isinstance(value, tuple):
        return tuple(_changed_item(each, change) for each in value)
    return value


def _changed_in(expression: Expression, change: Change) -> Expression:
    """An expression with changed subqueries."""
    if not any(isinstance(each, Subquery) for each in expression.walk()):
        return expression
    parts = {part.name: getattr(expression, part.name) for part in fields(expression)}
    return replace(expression, **{name: _changed_item(value, change) for name, value in parts.items()})


def scans(relation: Relation) -> list[Scan]:
    """The tables that a query reads."""
    return [part for part in relation.walk() if isinstance(part, Scan)]


def used_ids(relation: Relation) -> set[str]:
    """Columns that something in the query looks at; what else is read is read in vain."""
    found = {each.id for each in relation.columns}
    for part in relation.walk():
        for expression in part.expressions:
            found |= {each.id for each in expression.walk() if isinstance(each, Column)}
        if isinstance(part, Distinct | SetOperation):
            found |= {each.id for side in part.inputs for each in side.columns}
    return found


def arrow_schema(names: tuple[str, ...], relation: Relation) -> pa.Schema:
    """The schema of a query's result: columns by the names that users gave them."""
    return pa.schema([pa.field(name, each.type) for name, each in zip(names, relation.columns, strict=True)])
