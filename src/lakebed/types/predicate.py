"""Row filters as a small immutable tree that the engine can reason about.

A predicate selects the rows for which it is TRUE; rows where it is FALSE or NULL are dropped. Partition pruning, bucket
pruning, statistics and readers all work on this one form. `predicate_parse` builds it from what users give,
`predicate_evaluate` applies it to rows, `predicate_stats` to file statistics; this module only knows its logic.

Rules that the tree keeps:
- A literal has exactly the Arrow type of its column once `to_predicate` has seen the tree.
- `Not` stands directly above a leaf; `negate` pushes it down, with SQL's three-valued logic.
- Comparisons are pyarrow's: NaN equals nothing and is neither less nor greater, -0.0 equals 0.0, text and bytes
  compare as unsigned bytes.
- `In` is NULL for a NULL cell, so `In` of no values is "never" and `Not(In)` of no values is "every non-null".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import replace
from enum import StrEnum
from functools import reduce
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidArgument
from lakebed.records import dataclass
from lakebed.types.expression_tree import ExpressionTree, UnreadableExpression
from lakebed.types.predicate_text import identifier, literal_list, literal_text

LONG_LIST = 4096
"""Values from which on it costs more to make a set of them than to look for the rows of a batch in it."""


class Op(StrEnum):
    """A comparison of a column with a literal, the column on the left."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


OPPOSITE = {Op.EQ: Op.NE, Op.NE: Op.EQ, Op.LT: Op.GE, Op.GE: Op.LT, Op.GT: Op.LE, Op.LE: Op.GT}
"""The comparison that is TRUE where the other is FALSE, for types whose values are all ordered."""

MIRRORED = {Op.EQ: Op.EQ, Op.NE: Op.NE, Op.LT: Op.GT, Op.GT: Op.LT, Op.LE: Op.GE, Op.GE: Op.LE}
"""The comparison that says the same with its two sides exchanged."""


class Match(StrEnum):
    """How a text pattern applies."""

    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    CONTAINS = "contains"
    LIKE = "like"


@dataclass(frozen=True, slots=True)
class Always:
    """A constant: TRUE, FALSE or (None) NULL."""

    value: bool | None

    def __str__(self) -> str:
        return "NULL" if self.value is None else str(self.value).upper()


@dataclass(frozen=True, slots=True)
class Comparison:
    """`column op literal`."""

    column: str
    op: Op
    literal: pa.Scalar

    def __str__(self) -> str:
        return f"{identifier(self.column)} {self.op} {literal_text(self.literal)}"


@dataclass(frozen=True, slots=True)
class In:
    """The column equals one of the values; NULL where the column is. The values hold no null."""

    column: str
    values: pa.Array

    def __hash__(self) -> int:
        return hash((self.column, str(self.values.type), len(self.values)))

    def __str__(self) -> str:
        return f"{identifier(self.column)} IN ({literal_list(self.values)})"


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column is NULL."""

    column: str

    def __str__(self) -> str:
        return f"{identifier(self.column)} IS NULL"


@dataclass(frozen=True, slots=True)
class IsNotNull:
    """The column is not NULL."""

    column: str

    def __str__(self) -> str:
        return f"{identifier(self.column)} IS NOT NULL"


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A text column matches a pattern; in LIKE `%`, `_` and the escape `\\` are special, elsewhere nothing is."""

    column: str
    match: Match
    pattern: str

    def __str__(self) -> str:
        pattern = literal_text(pa.scalar(self.pattern))
        if self.match is Match.LIKE:
            return f"{identifier(self.column)} LIKE {pattern}"
        return f"{self.match}({identifier(self.column)}, {pattern})"


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """Something that can be evaluated but not reasoned about. `columns` are all it may refer to."""

    expression: pc.Expression
    columns: frozenset[str]

    # Expressions build a new expression when compared with ==, hence these two.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and self.columns == other.columns and self.expression.equals(other.expression)

    def __hash__(self) -> int:
        return hash((self.columns, str(self.expression)))

    def __str__(self) -> str:
        return " ".join(str(self.expression).split())


@dataclass(frozen=True, slots=True)
class Not:
    """TRUE where the leaf is FALSE; NULL stays NULL. Made by `negate`, for leaves without an opposite of their own."""

    child: Comparison | In | TextMatch

    def __str__(self) -> str:
        match self.child:
            case In(column, values):
                return f"{identifier(column)} NOT IN ({literal_list(values)})"
            case child:
                return f"NOT ({child})"


@dataclass(frozen=True, slots=True)
class And:
    """All children hold. Made by `conjunction`."""

    children: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " AND ".join(f"({child})" if isinstance(child, Or) else str(child) for child in self.children)


@dataclass(frozen=True, slots=True)
class Or:
    """At least one child holds. Made by `disjunction`."""

    children: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " OR ".join(f"({child})" if isinstance(child, And) else str(child) for child in self.children)


Predicate: TypeAlias = Always | Comparison | In | IsNull | IsNotNull | TextMatch | Opaque | Not | And | Or


def is_predicate(value: object) -> bool:
    """Whether the value is a node of this tree."""
    return isinstance(value, Always | Comparison | In | IsNull | IsNotNull | TextMatch | Opaque | Not | And | Or)


def never(column: str, column_type: pa.DataType) -> In:
    """FALSE for every value of the column, NULL for NULL."""
    return In(column, pa.array([], column_type))


def conjunction(children: Iterable[Predicate]) -> Predicate:
    """AND of all, flattened and without constants that decide nothing; TRUE for none."""
    flat: dict[Predicate, None] = {}
    for child in children:
        for part in child.children if isinstance(child, And) else (child,):
            if part == Always(False):
                return part
            if part != Always(True):
                flat[part] = None
    return _joined(And, list(flat), Always(True))


def disjunction(children: Iterable[Predicate]) -> Predicate:
    """OR of all, flattened and without constants that decide nothing; FALSE for none."""
    flat: dict[Predicate, None] = {}
    for child in children:
        for part in child.children if isinstance(child, Or) else (child,):
            if part == Always(True):
                return part
            if part != Always(False):
                flat[part] = None
    return _joined(Or, list(flat), Always(False))


def _joined(kind: type[And] | type[Or], parts: list[Predicate], empty: Always) -> Predicate:
    return kind(tuple(parts)) if len(parts) > 1 else parts[0] if parts else empty


def negate(predicate: Predicate) -> Predicate:
    """NOT of a predicate, pushed to its leaves."""
    match predicate:
        case Always(value):
            return Always(None if value is None else not value)
        case Comparison(column, Op.EQ | Op.NE as op, literal):
            return Comparison(column, OPPOSITE[op], literal)
        case Comparison() | In() | TextMatch():
            # `x < 5` and `x >= 5` are both false for NaN, and the literal need not show that the column holds floats.
            return Not(predicate)
        case IsNull(column):
            return IsNotNull(column)
        case IsNotNull(column):
            return IsNull(column)
        case Not(child):
            return child
        case Opaque(expression, referenced):
            return Opaque(~expression, referenced)
        case And(children):
            return disjunction(negate(child) for child in children)
        case Or(children):
            return conjunction(negate(child) for child in children)


def compared(column: str, op: Op, literal: pa.Scalar) -> Predicate:
    """`column op literal` where NaN is greater than all numbers, as it is to Spark and polars."""
    if op in (Op.GT, Op.GE):
        return Not(Comparison(column, OPPOSITE[op], literal))
    return Comparison(column, op, literal)


def columns(predicate: Predicate) -> frozenset[str]:
    """All columns that are needed to evaluate the predicate."""
    match predicate:
        case Always():
            return frozenset()
        case Opaque():
            return predicate.columns
        case Not(child):
            return columns(child)
        case And(children) | Or(children):
            return frozenset().union(*(columns(child) for child in children))
        case leaf:
            return frozenset({leaf.column})


def project_onto(predicate: Predicate, names: Set[str]) -> Predicate | None:
    """The strongest predicate over these columns alone that holds wherever the given one does; None if there is none.

    An Opaque that reads no column (a random number, say) is not projected: it must see the rows it was written for.
    """
    match predicate:
        case And(children):
            kept = [part for child in children if (part := project_onto(child, names)) is not None]
            return conjunction(kept) if kept else None
        case Or(children):
            parts = [project_onto(child, names) for child in children]
            known = [part for part in parts if part is not None]
            return disjunction(known) if len(known) == len(parts) else None
        case Opaque(_, referenced) if not referenced:
            return None
        case leaf:
            return leaf if columns(leaf) <= names else None


def is_opaque(predicate: Predicate) -> bool:
    """Whether a part of it can be evaluated but not reasoned about: then it may fail, too."""
    match predicate:
        case And(children) | Or(children):
            return any(is_opaque(child) for child in children)
        case leaf:
            return isinstance(leaf, Opaque)


def rename(predicate: Predicate, mapping: Mapping[str, str]) -> Predicate:
    """The same predicate with other column names; columns that the mapping does not name keep theirs."""
    match predicate:
        case Always():
            return predicate
        case Not(child):
            return Not(replace(child, column=mapping.get(child.column, child.column)))
        case And(children):
            return And(tuple(rename(child, mapping) for child in children))
        case Or(children):
            return Or(tuple(rename(child, mapping) for child in children))
        case Opaque(expression, referenced):
            if referenced.isdisjoint(mapping):
                return predicate
            renamed = frozenset(mapping.get(name, name) for name in referenced)
            return Opaque(_renamed_expression(expression, mapping), renamed)
        case leaf:
            return replace(leaf, column=mapping.get(leaf.column, leaf.column))


def _renamed_expression(expression: pc.Expression, mapping: Mapping[str, str]) -> pc.Expression:
    try:
        return ExpressionTree(expression).renamed(mapping)
    except UnreadableExpression as error:
        raise InvalidArgument(
            f"columns of filter `{expression}` can not be renamed: {error}",
            hint="write the filter with comparisons, isin, is_null, starts_with, &, | and ~ on columns by name",
        ) from error


def equalities(predicate: Predicate) -> dict[str, pa.Array]:
    """Columns that can only have finitely many values where the predicate holds, with those values.

    No value at all means that no row can match. Floats list both zeros, since they are equal but hash differently.
    """
    match predicate:
        case Comparison(column, Op.EQ, literal):
            return {column: distinct_values(pa.repeat(literal, 1))}
        case In(column, values):
            return {column: distinct_values(values)}
        case And(children):
            return reduce(_both, (equalities(child) for child in children))
        case Or(children):
            # A NULL branch never selects a row, so it does not widen what the others allow.
            branches = [equalities(child) for child in children if child != Always(None)]
            return reduce(_either, branches) if branches else {}
        case _:
            return {}


def _both(left: dict[str, pa.Array], right: dict[str, pa.Array]) -> dict[str, pa.Array]:
    merged = {**left, **right}
    for name in left.keys() & right.keys():
        merged[name] = left[name].filter(pc.is_in(left[name], value_set=right[name]))
    return merged


def _either(left: dict[str, pa.Array], right: dict[str, pa.Array]) -> dict[str, pa.Array]:
    return {name: pa.concat_arrays([left[name], right[name]]).unique() for name in left if name in right}


def most_values(predicate: Predicate) -> int:
    """The length of the longest list in it."""
    match predicate:
        case In(_, values) | Not(In(_, values)):
            return len(values)
        case And(children) | Or(children):
            return max(map(most_values, children), default=0)
        case _:
            return 0


def distinct_values(values: pa.Array) -> pa.Array:
    """The values that equality with one of these accepts, bit by bit: for floats both zeros or none, and no NaN."""
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
        zeros = pa.array([0.0, -0.0], values.type)
        if pc.any(pc.equal(values, zeros[0])).as_py():
            values = pa.concat_arrays([values, zeros])
    return values.unique()


def unknown_columns(predicate: Predicate, known: Collection[str]) -> list[str]:
    """Names in the predicate that are not among the known ones, sorted."""
    return sorted(columns(predicate) - set(known))
