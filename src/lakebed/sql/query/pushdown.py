"""What a query needs of a table: which columns, and which rows at most.

Read from the text alone, and cautiously: Spark filters again, so rows may be too many but never too few, and columns
likewise. A condition goes down only if it means the same to both sides; NaN, zones and padded text do not, so
conditions on such columns stay with Spark.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakebed.definition.condition import COMPARISONS
from lakebed.records import dataclass
from lakebed.sql.words.literals import evaluate
from lakebed.sql.words.values import NotLiteral, Scalar
from lakebed.table.table import Table
from lakebed.types.logical import INTEGERS, STRINGS, TypeRoot, is_root
from lakebed.types.predicate import (
    MIRRORED,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Match,
    Op,
    Predicate,
    TextMatch,
    conjunction,
    disjunction,
)


@dataclass(frozen=True, slots=True)
class Needs:
    """`columns` None: all of them."""

    columns: frozenset[str] | None
    predicate: Predicate | None = None


def needs_of(node: exp.Table, columns: Mapping[str, pa.DataType]) -> Needs:
    """What the query around a table reference needs of the table with these columns (hidden ones included)."""
    select = _readable_select_of(node)
    if select is None:
        return Needs(None)
    return Needs(_used_columns(node, select, columns), _Conditions(node, select, columns).predicate())


def rows_needed(node: exp.Table, columns: Mapping[str, pa.DataType]) -> Predicate | None:
    """Which rows at most, for those who know the columns."""
    select = _readable_select_of(node)
    return None if select is None else _Conditions(node, select, columns).predicate()


def _readable_select_of(node: exp.Table) -> exp.Select | None:
    """The SELECT around a table, if names in it are those of its columns."""
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return None  # `t AS x (a, b)`
    select = _select_of(node)
    if select is None or select.find_ancestor(exp.Pivot) or any(node.root().find_all(exp.Pivot)):
        return None
    return select


def comparable_types(table: Table) -> dict[str, pa.DataType]:
    """Types of all columns, for conditions; null for padded text, which Spark compares in its own way."""
    types = {member.name: member.type for member in [*table.arrow_schema, *table.hidden_schema]}
    padded = {field.name: pa.null() for field in table.schema.fields if is_root(field.type, TypeRoot.CHAR)}
    return types | padded


def cheapest_column(schema: pa.Schema) -> str:
    """A column to count rows with: one of few bytes, if there is any."""
    widths = [each.type.bit_width if pa.types.is_primitive(each.type) else 1 << 20 for each in schema]
    return str(schema.names[widths.index(min(widths))])


def condition_of(
    condition: exp.Expression, columns: Mapping[str, pa.DataType], names: set[str], *, is_alone: bool
) -> Predicate | None:
    """What a condition allows to leave out of a table.

    `names` may qualify its columns; `is_alone`: columns without a qualifier are the table's, too.
    """
    return _conjoined(_Columns(columns, frozenset(name.lower() for name in names), is_alone), condition)


def has_star(select: exp.Select) -> bool:
    """Whether all columns are asked for, other than to count rows."""
    return any(not isinstance(star.parent, exp.Count) for star in _stars(select))


def _stars(select: exp.Select) -> Iterator[exp.Star]:
    return (star for star in select.find_all(exp.Star) if star.find_ancestor(exp.Select) is select)


def _select_of(node: exp.Table) -> exp.Select | None:
    """The SELECT that the table is a direct source of."""
    parent = node.parent
    if isinstance(parent, exp.From | exp.Join) and isinstance(parent.parent, exp.Select):
        return parent.parent
    return None


def _used_columns(node: exp.Table, select: exp.Select, columns: Mapping[str, pa.DataType]) -> frozenset[str] | None:
    """Every column whose name is a word of the query: too many at times, never too few."""
    joins = select.args.get("joins") or []
    if has_star(select) or any(join.method.upper() == "NATURAL" for join in joins):
        return None
    known = {name.lower() for name in columns}
    names = {node.name.lower(), node.alias_or_name.lower()}
    words = {
        word.name.lower()
        for word in select.root().find_all(exp.Identifier)
        if not (word.name.lower() in names and _names_a_table(word, known))
    }
    return frozenset(name for name in columns if name.lower() in words)


def _names_a_table(word: exp.Identifier, columns: set[str]) -> bool:
    """Whether a word names a table: where it is read, or in front of one of its columns."""
    parent = word.parent
    if isinstance(parent, exp.Table | exp.TableAlias):
        return parent.this is word
    return isinstance(parent, exp.Column) and parent.this is not word and parent.name.lower() in columns


# --- conditions ------------------------------------------------------------------------------------------------------
class _Conditions:
    """Conditions of WHERE on one of the tables of a SELECT."""

    def __init__(self, node: exp.Table, select: exp.Select, columns: Mapping[str, pa.DataType]) -> None:
        self._node = node
        self._select = select
        joins = select.args.get("joins") or []
        is_alone = not joins and not select.args.get("laterals")
        self._columns = _Columns(columns, frozenset({node.alias_or_name.lower()}), is_alone)

    def predicate(self) -> Predicate | None:
        where = self._select.args.get("where")
        is_sampled = self._node.args.get("sample") is not None  # a sample of all rows, not of those that match
        # Which version is valid is told by all of them: a condition chooses among those that are.
        is_versioned = "as_of" in self._node.meta
        if where is None or is_sampled or is_versioned or self._may_be_absent():
            return None
        return _conjoined(self._columns, where.this)

    def _may_be_absent(self) -> bool:
        """Whether an outer join can put nulls in place of the table's rows: filtering before is not filtering after."""
        joins: list[exp.Join] = self._select.args.get("joins") or []
        own = next((index for index, join in enumerate(joins) if join.this is self._node), None)
        if own is not None and (joins[own].side in ("LEFT", "FULL") or joins[own].kind in ("SEMI", "ANTI")):
            return True
        return any(join.side in ("RIGHT", "FULL") for join in joins[0 if own is None else own + 1 :])


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a table, as conditions name them."""

    types: Mapping[str, pa.DataType]
    qualifiers: frozenset[str]
    is_alone: bool

    def find(self, node: exp.Expression) -> tuple[str, pa.DataType] | None:
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star) or node.args.get("db"):
            return None
        if node.table.lower() not in self.qualifiers if node.table else not self.is_alone:
            return None
        found = [name for name in self.types if name.lower() == node.name.lower()]
        return (found[0], self.types[found[0]]) if len(found) == 1 else None


def _conjoined(columns: _Columns, condition: exp.Expression) -> Predicate | None:
    """Those parts of a conjunction that can be said; all of them need not."""
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        parts = [_conjoined(columns, condition.this), _conjoined(columns, condition.expression)]
        known = [part for part in parts if part is not None]
        return conjunction(known) if known else None
    return _leaf(columns, condition)


def _leaf(columns: _Columns, condition: exp.Expression) -> Predicate | None:
    match condition:
        case exp.Or():
            left, right = (_conjoined(columns, side) for side in (condition.this, condition.expression))
            return None if left is None or right is None else disjunction([left, right])
        case exp.Is():
            return _null_test(columns, condition, is_negated=False)
        case exp.Not() if isinstance(condition.this.unnest(), exp.Is):
            return _null_test(columns, condition.this.unnest(), is_negated=True)
        case exp.In() if condition.expressions and not condition.args.get("query"):
            return _in_list(columns, condition)
        case exp.Between():
            low = _comparison(columns, condition.this, Op.GE, condition.args["low"])
            high = _comparison(columns, condition.this, Op.LE, condition.args["high"])
            return None if low is None or high is None else conjunction([low, high])
        case exp.Like() if not condition.args.get("negate") and not isinstance(condition.parent, exp.Escape):
            return _prefix(columns, condition)
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            op = COMPARISONS[type(condition)]
            return _comparison(columns, condition.this, op, condition.expression) or _comparison(
                columns, condition.expression, MIRRORED[op], condition.this
            )
        case _:
            return None


def _null_test(columns: _Columns, condition: exp.Is, *, is_negated: bool) -> Predicate | None:
    found = columns.find(condition.this)
    expected = condition.expression
    if isinstance(expected, exp.Not):
        is_negated, expected = not is_negated, expected.this
    if found is None or not isinstance(expected, exp.Null):
        return None
    return IsNotNull(found[0]) if is_negated else IsNull(found[0])


def _comparison(columns: _Columns, column: exp.Expression, op: Op, value: exp.Expression) -> Predicate | None:
    found = columns.find(column.unnest())
    literal = None if found is None else _literal(value, found[1])
    return None if found is None or literal is None else Comparison(found[0], op, pa.scalar(literal))


def _in_list(columns: _Columns, condition: exp.In) -> Predicate | None:
    found = columns.find(condition.this.unnest())
    if found is None:
        return None
    values = [_literal(value, found[1]) for value in condition.expressions]
    return None if None in values else In(found[0], pa.array(values))


def _prefix(columns: _Columns, condition: exp.Like) -> Predicate | None:
    """`LIKE 'abc%'`."""
    found = columns.find(condition.this)
    pattern = condition.expression
    is_text = isinstance(pattern, exp.Literal) and pattern.is_string
    if found is None or not pa.types.is_string(found[1]) or not is_text:
        return None
    start = str(pattern.this).removesuffix("%")
    if start == pattern.this or not start or set(start) & set("%_\\"):
        return None
    return TextMatch(found[0], Match.STARTS_WITH, start)


def _literal(node: exp.Expression, column: pa.DataType) -> Any:
    """The value, if comparing the column with it is plain: whole or exact numbers, text with text, dates."""
    try:
        value = evaluate(node)
    except NotLiteral:
        return None
    if not isinstance(value, Scalar):
        return None
    if pa.types.is_integer(column) or pa.types.is_decimal(column):
        is_exact = value.root in INTEGERS or value.root == TypeRoot.DECIMAL
        return Decimal(value.value) if is_exact else None
    if pa.types.is_string(column):
        return value.value if value.root in STRINGS else None
    if pa.types.is_date(column):
        return value.value if isinstance(value.value, dt.date) else None
    if pa.types.is_boolean(column):
        return value.value if value.root == TypeRoot.BOOLEAN else None
    return None
