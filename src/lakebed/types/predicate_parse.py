"""Filters as users give them, turned into predicates that fit a schema.

Accepted are predicates, pyarrow expressions, and lists of `(column, op, value)` as pandas and pyarrow take them.
Everything passes through `_fitted`, so afterwards all columns exist and all literals have their column's type. What is
not understood becomes `Opaque`, which evaluates as pyarrow does; nothing is ever guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.types.expression_tree import (
    CallNode,
    ExpressionTree,
    FieldNode,
    LiteralNode,
    Node,
    UnreadableExpression,
    column_names,
    is_picklable,
)
from lakebed.types.predicate import (
    MIRRORED,
    OPPOSITE,
    Always,
    And,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Not,
    Op,
    Opaque,
    Or,
    Predicate,
    TextMatch,
    conjunction,
    disjunction,
    is_predicate,
    negate,
    never,
    unknown_columns,
)
from lakebed.types.predicate_evaluate import MATCH_FUNCTIONS, to_expression
from lakebed.types.predicate_literal import Above, Exactly, Misfit, Nowhere, place

_FORMS = (
    "give SQL text such as \"a > 5 AND b IN (1, 2)\", a pyarrow expression such as pc.field('a') > 5, or a list such "
    "as [('a', '>', 5), ('b', 'in', [1, 2])]"
)


def to_predicate(given: object, schema: pa.Schema) -> Predicate | None:
    """The predicate for a user's filter, fitted to the schema's columns and types; None means no filter."""
    raw: Predicate
    if given is None:
        return None
    if is_predicate(given):
        raw = given  # type: ignore[assignment]
    elif isinstance(given, pc.Expression):
        raw = _from_expression(given, schema)
    elif isinstance(given, list | tuple):
        raw = _from_lists(given, schema)
    else:
        raise InvalidArgument(f"filter is a {type(given).__name__}", hint=_FORMS)
    missing = unknown_columns(raw, schema.names)
    if missing:
        raise NotFound(f"filter names column `{missing[0]}`", hint=did_you_mean(missing[0], schema.names))
    return _fitted(raw, schema)


# --- fitting to the schema -------------------------------------------------------------------------------------------


def _fitted(predicate: Predicate, schema: pa.Schema) -> Predicate:
    match predicate:
        case And(children):
            return conjunction(_fitted(child, schema) for child in children)
        case Or(children):
            return _one_in_per_column(disjunction(_fitted(child, schema) for child in children))
        case Not(child):
            return _fitted_negation(_fitted(child, schema))
        case Comparison():
            return _fitted_comparison(predicate, schema)
        case In(column, values):
            return In(column, _fitted_values(column, values, schema.field(column).type))
        case TextMatch(column) if not _is_text(schema.field(column).type):
            raise InvalidArgument(
                f"filter `{predicate}` needs text, but column `{column}` is {schema.field(column).type}",
                hint="compare the column with <, <=, =, >= or > instead",
            )
        case Opaque():
            return _checked(predicate, schema)
        case leaf:
            return leaf


def _one_in_per_column(fitted: Predicate) -> Predicate:
    """`a = 1 OR a = 2 OR …` as one IN, so that a thousand alternatives are one look-up."""
    if not isinstance(fitted, Or):
        return fitted
    values: dict[str, list[pa.Array]] = {}
    for child in fitted.children:
        if isinstance(child, In) or (isinstance(child, Comparison) and child.op == Op.EQ):
            some = child.values if isinstance(child, In) else pa.repeat(child.literal, 1)
            values.setdefault(child.column, []).append(some)
    merged = {column: In(column, pa.concat_arrays(some)) for column, some in values.items() if len(some) > 1}
    parts: dict[Predicate, None] = {}
    for child in fitted.children:
        match child:
            case Comparison(column, Op.EQ) | In(column) if column in merged:
                parts[merged[column]] = None
            case _:
                parts[child] = None
    return disjunction(parts)


def _fitted_negation(fitted: Predicate) -> Predicate:
    match fitted:
        case Comparison(column, op, literal) if not pa.types.is_floating(literal.type):
            return Comparison(column, OPPOSITE[op], literal)  # no NaN here
        case _:
            return negate(fitted)


def _fitted_comparison(predicate: Comparison, schema: pa.Schema) -> Predicate:
    column, op, column_type = predicate.column, predicate.op, schema.field(predicate.column).type
    if not predicate.literal.is_valid:
        return Always(None)
    try:
        placed = place(predicate.literal, column_type)
    except Misfit as misfit:
        # What pyarrow can compare and we can not place is still evaluated, as long as it is said in pyarrow's types.
        as_given = Opaque(to_expression(predicate), frozenset({column}))
        return _checked(as_given, schema, _misfit(predicate, column_type, misfit))
    match placed, op:
        case Exactly(value), _:
            return Comparison(column, op, value)
        case (Above() | Nowhere(), Op.NE):
            return Not(never(column, column_type))
        case (Above(), Op.EQ) | (Nowhere(), _) | (Above(None), Op.LT | Op.LE):
            return never(column, column_type)
        case Above(None), _:
            return Not(never(column, column_type))
        case Above(value), Op.LT | Op.LE:
            return Comparison(column, Op.LE, value)
        case Above(value), _:
            return Comparison(column, Op.GT, value)
    raise AssertionError("all places and comparisons are covered")


def _fitted_values(column: str, values: pa.Array, column_type: pa.DataType) -> pa.Array:
    """The values as the column's type; those that no cell can equal are left out."""
    values = values.drop_null()
    if values.type == column_type:
        return values
    if pa.types.is_integer(values.type) and pa.types.is_integer(column_type):
        with suppress(pa.ArrowInvalid):  # some value is out of range
            return values.cast(column_type)
    kept = []
    for value in values:
        try:
            placed = place(value, column_type)
        except Misfit as misfit:
            raise _misfit(Comparison(column, Op.EQ, value), column_type, misfit) from misfit
        if isinstance(placed, Exactly):
            kept.append(placed.value)
    return pa.array(kept, column_type)


def _misfit(comparison: Comparison, column_type: pa.DataType, misfit: Misfit) -> InvalidArgument:
    return InvalidArgument(
        f"value in filter `{comparison}` does not fit column `{comparison.column}` of type {column_type}: {misfit}",
        hint=f"give a value of type {column_type}",
    )


def _checked(opaque: Opaque, schema: pa.Schema, otherwise: InvalidArgument | None = None) -> Opaque:
    """The same, once pyarrow has evaluated it on a row of nulls: without rows, some kernels do not check types."""
    names = sorted(opaque.columns)
    nulls = [pa.nulls(1, schema.field(name).type) for name in names]
    try:
        # The extra column keeps the row when the expression reads no column at all.
        pa.RecordBatch.from_arrays([*nulls, pa.nulls(1)], [*names, "#" + "".join(names)]).filter(opaque.expression)
    except pa.ArrowException as error:
        raise otherwise or InvalidArgument(
            f"filter `{opaque}` can not be evaluated: {error}",
            hint="combine conditions with &, | and ~, and compare columns with values of their own type",
        ) from error
    return opaque


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


# --- pyarrow expressions ---------------------------------------------------------------------------------------------

_COMPARISONS = {
    "equal": Op.EQ,
    "not_equal": Op.NE,
    "less": Op.LT,
    "less_equal": Op.LE,
    "greater": Op.GT,
    "greater_equal": Op.GE,
}
_MATCHES = {function: match for match, function in MATCH_FUNCTIONS.items()}


def _from_expression(expression: pc.Expression, schema: pa.Schema) -> Predicate:
    if not is_picklable(expression):
        # A position means something else after a projection, and can not travel to workers.
        raise InvalidArgument(
            f"filter `{expression}` refers to a column by position", hint="refer to columns by name: pc.field('a')"
        )
    try:
        tree = ExpressionTree(expression)
    except UnreadableExpression:
        # A pyarrow that pickles otherwise: slower, since nothing is pruned and all columns are read, but right.
        return Opaque(expression, frozenset(schema.names))
    missing = sorted(column_names(tree.root) - set(schema.names))
    if missing:
        raise NotFound(f"filter names column `{missing[0]}`", hint=did_you_mean(missing[0], schema.names))
    return _ExpressionReader(tree, schema).read(tree.root)


class _ExpressionReader:
    """Meaning of an expression's nodes; a node that is not understood becomes Opaque, alone."""

    def __init__(self, tree: ExpressionTree, schema: pa.Schema) -> None:
        self.tree = tree
        self.schema = schema

    def read(self, node: Node) -> Predicate:
        match node:
            case LiteralNode(value) if pa.types.is_boolean(value.type) or pa.types.is_null(value.type):
                return Always(value.as_py())
            case FieldNode((column,)) if pa.types.is_boolean(self.schema.field(column).type):
                return Comparison(column, Op.EQ, pa.scalar(True))
            case CallNode("and_kleene"):
                return conjunction(self.read(part) for part in _operands(node))
            case CallNode("or_kleene"):
                return disjunction(self.read(part) for part in _operands(node))
            case CallNode("and_not_kleene", (left, right)):
                return conjunction([self.read(left), negate(self.read(right))])
            case CallNode("invert", (part,)):
                return negate(self.read(part))
            case CallNode(function, (FieldNode((column,)), LiteralNode(value))) if function in _COMPARISONS:
                return Comparison(column, _COMPARISONS[function], value)
            case CallNode(function, (LiteralNode(value), FieldNode((column,)))) if function in _COMPARISONS:
                return Comparison(column, MIRRORED[_COMPARISONS[function]], value)
            case CallNode("if_else", (CallNode("is_valid", (FieldNode((column,)),)), inner, LiteralNode(value))):
                # DuckDB's IN: NULL for a NULL, else what is inside.
                found = None if value.is_valid else self._where_present(column, inner)
                return self._opaque(node) if found is None else found
            case CallNode(function, (FieldNode((column,)),), options):
                return self._test(function, column, options) or self._opaque(node)
            case _:
                return self._opaque(node)

    def _test(self, function: str, column: str, options: pa.StructScalar | None) -> Predicate | None:
        """A function of one column, or None where its options ask for something the tree can not say."""
        column_type = self.schema.field(column).type
        match function:
            case "is_valid":
                return IsNotNull(column)
            case "is_null" if options is None or _option(options, "nan_is_null") is False:
                return IsNull(column)
            case "is_null" if not pa.types.is_floating(column_type):
                return IsNull(column)
            case "is_in" if options is not None:
                return _membership(column, options, column_type)
            case _ if function in _MATCHES and options is not None and _option(options, "ignore_case") is False:
                # Bytes have patterns too, but those need not be text.
                if _is_text(column_type):
                    return TextMatch(column, _MATCHES[function], _option(options, "pattern"))
        return None

    def _where_present(self, column: str, node: Node) -> Predicate | None:
        """A condition on this column alone that is NULL for NULL, as comparisons are and `is_in` is made to be."""
        match node:
            case CallNode("or_kleene"):
                parts = [self._where_present(column, part) for part in _operands(node)]
                known = [part for part in parts if part is not None]
                return disjunction(known) if len(known) == len(parts) else None
            case CallNode("is_in", (FieldNode((name,)),), options) if name == column and options is not None:
                return _members(column, options, self.schema.field(column).type)
            case CallNode("equal", (FieldNode((name,)), LiteralNode(value))) if name == column and value.is_valid:
                return Comparison(column, Op.EQ, value)
            case _:
                return None

    def _opaque(self, node: Node) -> Opaque:
        return Opaque(self.tree.expression_of(node), column_names(node))


def _operands(node: CallNode) -> list[Node]:
    """Operands of a chain of one connective, left to right. A loop, since chains are deep on one side."""
    found: list[Node] = []
    pending: list[Node] = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, CallNode) and current.function == node.function:
            pending.extend(reversed(current.arguments))
        else:
            found.append(current)
    return found


def _option(options: pa.StructScalar, name: str) -> Any:
    """A function option; None when this pyarrow does not have it under that name."""
    if name not in options:
        return None
    value = options[name]
    return value.values if isinstance(value, pa.ListScalar) else value.as_py()


def _membership(column: str, options: pa.StructScalar, column_type: pa.DataType) -> Predicate | None:
    """`is_in`, which unlike SQL's IN is never NULL."""
    values, found = _option(options, "value_set"), _members(column, options, column_type)
    if found is None:
        return None
    finds_null = _option(options, "null_matching_behavior") == _NULL_FINDS_NULL
    return _null_or_not(column, found, with_null=finds_null and values.null_count > 0)


def _members(column: str, options: pa.StructScalar, column_type: pa.DataType) -> In | None:
    """The values of `is_in`, nulls aside; None where it does not compare as `=` does."""
    values, null_matching = _option(options, "value_set"), _option(options, "null_matching_behavior")
    if values is None or null_matching not in (_NULL_FINDS_NULL, _NULL_IS_SKIPPED):
        return None
    present = _rounded(values.drop_null(), column_type)
    if pa.types.is_floating(column_type) and (
        not pa.types.is_floating(present.type)
        or pc.any(pc.is_in(present.cast(pa.float64()), pa.array(_ZERO_OR_NAN))).as_py()
    ):
        # is_in compares bits: it finds NaN, and tells 0.0 from -0.0. Equality does neither.
        return None
    return In(column, present)


_NULL_FINDS_NULL, _NULL_IS_SKIPPED = 0, 1
_ZERO_OR_NAN = [0.0, -0.0, float("nan")]


def _null_or_not(column: str, found: Predicate, *, with_null: bool) -> Predicate:
    """Membership that is never NULL: what finds nulls too, or refuses them."""
    return disjunction([IsNull(column), found]) if with_null else conjunction([IsNotNull(column), found])


def _rounded(values: pa.Array, column_type: pa.DataType) -> pa.Array:
    """Values for a float column, rounded to its precision: `is_in` casts its values, where `=` casts the column."""
    is_number = pa.types.is_floating(values.type) or pa.types.is_integer(values.type)
    return values.cast(column_type, safe=False) if is_number and pa.types.is_floating(column_type) else values


# --- lists -----------------------------------------------------------------------------------------------------------

_LIST_OPS = [*map(str, Op), "==", "in", "not in"]


def _from_lists(given: Sequence[Any], schema: pa.Schema) -> Predicate:
    """`[(column, op, value), …]` is an AND; a list of such lists is an OR of ANDs."""
    if not given or any(not isinstance(part, list | tuple) or not part for part in given):
        raise InvalidArgument(f"filter {given!r} is not a list of conditions", hint=_FORMS)
    groups = [given] if isinstance(given[0][0], str) else given
    return disjunction(conjunction(_condition(part, schema) for part in group) for group in groups)


def _condition(part: Any, schema: pa.Schema) -> Predicate:
    if not (isinstance(part, list | tuple) and len(part) == 3 and all(isinstance(word, str) for word in part[:2])):
        raise InvalidArgument(f"filter condition {part!r} is not (column, op, value)", hint=_FORMS)
    column, op, value = part[0], part[1].lower(), part[2]
    if column not in schema.names:
        raise NotFound(f"filter names column `{column}`", hint=did_you_mean(column, schema.names))
    if op not in _LIST_OPS:
        raise InvalidArgument(
            f"operator `{op}` of filter condition {part!r} is not known", hint=did_you_mean(op, _LIST_OPS)
        )
    if op in ("in", "not in"):
        found = _listed(column, value, schema.field(column).type)
        return found if op == "in" else negate(found)
    return Comparison(column, Op("=" if op == "==" else op), _scalar(column, value))


def _listed(column: str, values: Any, column_type: pa.DataType) -> Predicate:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidArgument(
            f"`in` on column `{column}` needs several values, not {values!r}", hint=f"write ({column!r}, 'in', [...])"
        )
    members = values if isinstance(values, pa.Array | pa.ChunkedArray) else list(values)
    try:
        array = pa.array(members.to_pylist() if isinstance(members, pa.ChunkedArray) else members)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # Values of several types: each is asked alone.
        found = disjunction(Comparison(column, Op.EQ, _scalar(column, each)) for each in members if each is not None)
        return _null_or_not(column, found, with_null=None in members)
    return _null_or_not(column, In(column, _rounded(array.drop_null(), column_type)), with_null=array.null_count > 0)


def _scalar(column: str, value: Any) -> pa.Scalar:
    if value is None:
        raise InvalidArgument(
            f"filter compares column `{column}` with None, which nothing equals",
            hint=f"write ({column!r}, 'in', [None]) to find nulls",
        )
    if isinstance(value, pa.Scalar):
        return value
    try:
        # Integers beyond 64 bits have no Arrow integer type, but compare all the same.
        is_huge = isinstance(value, int) and not -(2**63) <= value < 2**63
        return pa.scalar(Decimal(value) if is_huge else value)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(
            f"filter value {value!r} for column `{column}` has no Arrow type",
            hint="give a number, text, bytes, date or time",
        ) from error
