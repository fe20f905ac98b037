"""Relations that only the delta of a query is made of: rows with a weight, states by name, rows of some keys.

A delta is a relation with one more column, the weight `w`: a row that came has 1, one that went has -1. The old result
with the delta added is the new result.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

import pyarrow as pa

from lakebed.algebra.relations import Relation, told_apart
from lakebed.expressions import kinds
from lakebed.expressions.nodes import Column, Expression
from lakebed.records import dataclass

WEIGHT = Column(type=kinds.BIGINT, nullable=False, id="w")


class Version(Enum):
    """Which state of the tables is meant: the one that the stored result belongs to, or the one it is to belong to."""

    OLD = "old"
    NEW = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored(Relation):
    """Rows that a statement before has put under a name."""

    name: str

    def spelled(self) -> str:
        """A SELECT of it."""
        return f"SELECT {_listed(self.columns)} FROM {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted(Relation):
    """Rows of a state as a delta: all with the same weight."""

    input: Relation
    weight: int

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """What it is made of."""
        return (self.input,)

    def spelled(self) -> str:
        """A SELECT with the weight beside the columns."""
        chosen = [each.id for each in self.columns if each != WEIGHT]
        return f"SELECT {', '.join([*chosen, f'CAST({self.weight} AS BIGINT) AS w'])} FROM ({self.input.spelled()})"


def weighted(relation: Relation, weight: int) -> Weighted:
    """A state as a delta."""
    return Weighted(columns=(*relation.columns, WEIGHT), input=relation, weight=weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Together(Relation):
    """All rows of several relations that have the same columns, in whatever order."""

    parts: tuple[Relation, ...]

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """What it is made of."""
        return self.parts

    def spelled(self) -> str:
        """A UNION ALL that names the columns."""
        chosen = _listed(self.columns)
        return " UNION ALL ".join(f"(SELECT {chosen} FROM ({part.spelled()}))" for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidated(Relation):
    """A delta in which every row stands once, and rows that came and went not at all."""

    input: Relation

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """What it is made of."""
        return (self.input,)

    def spelled(self) -> str:
        """A grouping by all columns. Zeros of two signs are two values: a row may change from one to the other."""
        columns = [each for each in self.columns if each != WEIGHT]
        apart = [told for each in columns for told in _told_exactly(each)]
        grouped = f" GROUP BY {', '.join(apart)}" if apart else ""
        chosen = ", ".join([*(each.id for each in columns), "CAST(sum(w) AS BIGINT) AS w"])
        return f"SELECT {chosen} FROM ({self.input.spelled()}){grouped} HAVING sum(w) <> 0"


def _told_exactly(column: Column) -> list[str]:
    """By what two values of a column are told apart, down to the sign of zero."""
    if kinds.is_fraction(column.type):
        return [column.id, f"({column.id} = 0 AND signbit({column.id}))"]
    if kinds.is_nested(column.type) and _holds_fractions(column.type):
        return [column.id, f"CAST({column.id} AS VARCHAR)"]
    return [column.id]


def differs(left: str, right: str, kind: pa.DataType) -> str:
    """Whether two values are not the same, down to the sign of zero; nulls are."""
    found = f"{left} IS DISTINCT FROM {right}"
    if kinds.is_fraction(kind):
        return f"({found} OR (({left} = 0) AND signbit({left}) <> signbit({right})))"
    if kinds.is_nested(kind) and _holds_fractions(kind):
        return f"({found} OR CAST({left} AS VARCHAR) IS DISTINCT FROM CAST({right} AS VARCHAR))"
    return f"({found})"


def _holds_fractions(kind: pa.DataType) -> bool:
    return kinds.is_fraction(kind) or any(_holds_fractions(kind.field(n).type) for n in range(kind.num_fields))


@dataclass(frozen=True, slots=True)
class Keys:
    """Some values of some columns, under a name: rows with these are looked for."""

    name: str
    columns: tuple[Column, ...]

    def picked(self, places: tuple[int, ...]) -> Keys:
        """Those of some of the columns; values may stand there twice."""
        return replace(self, columns=tuple(self.columns[place] for place in places))


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching(Relation):
    """Rows whose values are among the keys; a null is among them if it is one."""

    input: Relation
    values: tuple[Expression, ...]
    keys: Keys

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """What it is made of."""
        return (self.input,)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What is looked at."""
        return self.values

    def spelled(self) -> str:
        """A semi join."""
        pairs = zip(self.values, self.keys.columns, strict=True)
        condition = " AND ".join(f"{value.spelled()} IS NOT DISTINCT FROM k.{key.id}" for value, key in pairs)
        keys = f"(SELECT {_listed(self.keys.columns)} FROM {self.keys.name})"
        return f"SELECT * FROM ({self.input.spelled()}) SEMI JOIN {keys} AS k ON {condition or 'TRUE'}"


def matching(relation: Relation, values: tuple[Expression, ...], keys: Keys) -> Matching:
    """The rows of a relation whose values are among the keys."""
    return Matching(columns=relation.columns, input=relation, values=values, keys=keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctValues(Relation):
    """The values of some expressions over a relation, each once: keys of what it touches."""

    input: Relation
    values: tuple[Expression, ...]

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """What it is made of."""
        return (self.input,)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What is looked at."""
        return self.values

    def spelled(self) -> str:
        """A SELECT DISTINCT. Stored groups are found by these values, so -0.0 is 0.0 here as it is there."""
        pairs = zip(self.values, self.columns, strict=True)
        chosen = ", ".join(f"{told_apart(value.spelled(), value.type)} AS {each.id}" for value, each in pairs)
        return f"SELECT DISTINCT {chosen or '1 AS nothing'} FROM ({self.input.spelled()})"


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutKeys(Relation):
    """Rows whose keys are not among those of a delta."""

    input: Relation
    delta: Stored
    keys: tuple[Column, ...]

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """What it is made of."""
        return (self.input, self.delta)

    def spelled(self) -> str:
        """An anti join."""
        condition = " AND ".join(f"n.{each.id} = d.{each.id}" for each in self.keys)
        return f"SELECT n.* FROM ({self.input.spelled()}) AS n ANTI JOIN {self.delta.name} AS d ON {condition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone(Relation):
    """Rows of a delta that were there before."""

    delta: Stored

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """What it is made of."""
        return (self.delta,)

    def spelled(self) -> str:
        """A SELECT of what has a negative weight."""
        return f"SELECT {_listed(self.columns)} FROM {self.delta.name} WHERE w < 0"


def _listed(columns: tuple[Column, ...]) -> str:
    return ", ".join(each.id for each in columns) or "1 AS nothing"
