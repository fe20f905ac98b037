"""Expressions with their types, and their spelling for DuckDB.

Types are Spark's, written as the Arrow types in which Spark hands them out (see `kinds`). Columns have names that are
unique in a query, so that an expression can be moved about without a thought of scopes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

import pyarrow as pa

from lakebed.records import dataclass


class NotProven(Exception):
    """Something that is not known to mean the same in both engines."""

    def __init__(
        self,
        what: str,
        why: str = "it is not on the list of what both engines are known to agree on",
        instead: str = "write that part otherwise",
    ) -> None:
        super().__init__(f"{what}: {why}")
        self.what = what
        self.why = why
        self.instead = instead


@dataclass(frozen=True, slots=True)
class Expression:
    """A value for each row. `can_fail`: some values make it raise, as ANSI SQL has it, so it may not run too early."""

    type: pa.DataType
    nullable: bool = True
    can_fail: bool = False

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The expressions that it is made of."""
        return ()

    def spelled(self) -> str:
        """The expression as DuckDB reads it."""
        raise NotImplementedError

    def walk(self) -> Iterator[Expression]:
        """The expression and all its parts."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Expression):
    """A column of what is read. `id` is its name in DuckDB's text."""

    id: str

    def spelled(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Expression):
    """A value that stands in the query; `text` is how DuckDB reads it, with its type."""

    value: Any
    text: str

    def spelled(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowFunction:
    """A function that DuckDB has not, computed in Arrow a batch at a time. `types` are DuckDB's, the result's is last.

    `compute` gets one array for each argument, nulls included, and gives an array of the same length.
    """

    name: str
    compute: Callable[..., Any] = field(compare=False)
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Expression):
    """A function or operator. `template` has `{0}`, `{1}`, ... where the arguments stand; it is closed in itself."""

    template: str
    arguments: tuple[Expression, ...] = ()
    uses: tuple[ArrowFunction, ...] = ()

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.arguments

    def spelled(self) -> str:
        return self.template.format(*(argument.spelled() for argument in self.arguments))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter(Expression):
    """The parameter of a lambda, `x` in `transform(a, x -> x + 1)`."""

    id: str

    def spelled(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Lambda(Expression):
    """A function as an argument. Its type is that of its body."""

    parameters: tuple[Parameter, ...]
    body: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.body,)

    def spelled(self) -> str:
        return f"(lambda {', '.join(each.id for each in self.parameters)} : {self.body.spelled()})"


@dataclass(frozen=True, slots=True)
class Ordering:
    """One of the values that rows are ordered by."""

    value: Expression
    is_descending: bool = False
    nulls_first: bool = True

    def spelled(self) -> str:
        """As DuckDB reads it; both directions are said, since the engines take other ones for granted."""
        direction = "DESC" if self.is_descending else "ASC"
        return f"{self.value.spelled()} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation(Expression):
    """A value of many rows: of a group, or of a window.

    `template` has, beside `{0}`, `{1}`, ..., for each call of a function of DuckDB's: `{distinct}` in front of its
    arguments, `{order}` behind them, `{over}` behind its brackets (FILTER and OVER go there).
    """

    template: str
    arguments: tuple[Expression, ...] = ()
    is_distinct: bool = False
    condition: Expression | None = None
    order: tuple[Ordering, ...] = ()
    over: str = ""
    """The window, as DuckDB reads it; empty for a group."""
    window: tuple[Expression, ...] = ()
    """What the window is partitioned and ordered by, which stands in `over`."""
    partition: tuple[Expression, ...] = ()
    """What the window is partitioned by: the first of `window`."""

    @property
    def parts(self) -> tuple[Expression, ...]:
        condition = () if self.condition is None else (self.condition,)
        return (*self.arguments, *condition, *(each.value for each in self.order), *self.window)

    def spelled(self) -> str:
        chosen = "" if self.condition is None else f" FILTER (WHERE {self.condition.spelled()})"
        return self.template.format(
            *(argument.spelled() for argument in self.arguments),
            distinct="DISTINCT " if self.is_distinct else "",
            order=f" ORDER BY {', '.join(each.spelled() for each in self.order)}" if self.order else "",
            over=f"{chosen}{self.over}",
        )


def _may_go_first(argument: Expression) -> bool:
    """Whether DuckDB may look at an argument before all others: it computes each branch of a CASE with what is around
    it, and nothing around one that is null."""
    parts = [each for each in argument.walk() if isinstance(each, Call)]
    return argument.nullable and any("CASE" in each.template for each in parts)


def call(
    template: str,
    *arguments: Expression,
    type: pa.DataType,  # noqa: A002
    nullable: bool | None = None,
    can_fail: bool = False,
    uses: tuple[ArrowFunction, ...] = (),
    last_first: bool = False,
) -> Call:
    """A call that is null if an argument is, unless said otherwise, and fails if an argument does.

    Spark looks at arguments one after the other (`last_first`: from the last on), and at none behind a null: what may
    fail there is not computed.
    """
    if nullable is None:
        is_null = any(isinstance(argument, Constant) and argument.value is None for argument in arguments)
        if is_null and any(argument.can_fail for argument in arguments):
            raise NotProven("NULL beside what may fail", "DuckDB leaves it out, and Spark computes some of it")
        in_turn = [*enumerate(arguments)][:: -1 if last_first else 1]
        known = [
            f"{{{n}}} IS NOT NULL"
            for place, (n, argument) in enumerate(in_turn)
            if (argument.nullable and any(later.can_fail for _, later in in_turn[place + 1 :]))
            or (argument.can_fail and any(_may_go_first(later) for _, later in in_turn[place + 1 :]))
        ]
        template = f"(CASE WHEN {' AND '.join(known)} THEN {template} END)" if known else template
    return Call(
        type=type,
        nullable=any(argument.nullable for argument in arguments) if nullable is None else nullable,
        can_fail=can_fail or any(argument.can_fail for argument in arguments),
        template=template,
        arguments=arguments,
        uses=uses,
    )
