"""Predicates applied to rows: a mask for a batch, or an expression for a reader.

Both say which rows are kept, that is, where the predicate is TRUE. FALSE and NULL are not told apart, which is sound
because `Not` never stands above AND or OR. Negate the predicate, not the outcome.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.types.predicate import (
    Always,
    And,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Match,
    Not,
    Op,
    Opaque,
    Or,
    Predicate,
    TextMatch,
    columns,
    distinct_values,
)

_COMPARE: dict[Op, tuple[Callable[[Any, Any], Any], Callable[..., Any]]] = {
    Op.EQ: (operator.eq, pc.equal),
    Op.NE: (operator.ne, pc.not_equal),
    Op.LT: (operator.lt, pc.less),
    Op.LE: (operator.le, pc.less_equal),
    Op.GT: (operator.gt, pc.greater),
    Op.GE: (operator.ge, pc.greater_equal),
}
MATCH_FUNCTIONS: dict[Match, str] = {
    Match.STARTS_WITH: "starts_with",
    Match.ENDS_WITH: "ends_with",
    Match.CONTAINS: "match_substring",
    Match.LIKE: "match_like",
}
"""The pyarrow compute function behind each kind of match."""


def to_expression(predicate: Predicate) -> pc.Expression:
    """A pyarrow expression that is TRUE for the same rows; elsewhere it may be FALSE or NULL."""
    match predicate:
        case Always(value):
            return pc.scalar(bool(value))
        case Comparison(column, op, literal):
            return _COMPARE[op][0](pc.field(column), literal)
        case In(column, values):
            return pc.field(column).isin(distinct_values(values))
        case IsNull(column):
            return pc.field(column).is_null()
        case IsNotNull(column):
            return pc.field(column).is_valid()
        case TextMatch(column, match, pattern):
            return getattr(pc, MATCH_FUNCTIONS[match])(pc.field(column), pattern)
        case Opaque(expression):
            return expression
        case Not(In(column) as child):
            return pc.field(column).is_valid() & ~to_expression(child)
        case Not(child):
            return ~to_expression(child)
        case And(children):
            return _balanced(operator.and_, [to_expression(child) for child in children])
        case Or(children):
            return _balanced(operator.or_, [to_expression(child) for child in children])


def _balanced(join: Callable[[Any, Any], Any], parts: list[pc.Expression]) -> pc.Expression:
    # Arrow walks expressions by recursion: a list of ten thousand alternatives must not become ten thousand levels.
    while len(parts) > 1:
        pairs = [join(left, right) for left, right in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[len(pairs) * 2 :]
    return parts[0]


def evaluate(predicate: Predicate, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Which rows of the batch the predicate selects; without nulls."""
    missing = sorted(columns(predicate) - set(batch.schema.names))
    if missing:
        raise NotFound(
            f"filter `{predicate}` needs column `{missing[0]}`, which the batch lacks",
            hint=did_you_mean(missing[0], batch.schema.names),
        )
    try:
        return _mask(predicate, batch)
    except pa.ArrowException as error:
        raise InvalidArgument(
            f"filter `{predicate}` can not be evaluated: {error}", hint="correct the filter so that it fits these rows"
        ) from error


def _mask(predicate: Predicate, batch: pa.RecordBatch) -> pa.BooleanArray:
    match predicate:
        case Always(value):
            return pa.repeat(bool(value), batch.num_rows)
        case IsNull(column):
            return pc.is_null(batch.column(column))
        case IsNotNull(column):
            return pc.is_valid(batch.column(column))
        case Opaque(expression):
            return _opaque_mask(expression, sorted(predicate.columns), batch)
        case And(children):
            return _fold(pc.and_, children, batch)
        case Or(children):
            return _fold(pc.or_, children, batch)
        case Not(child):
            held = _leaf(child, batch)
            refuted = pc.fill_null(pc.invert(held), False)
            return pc.and_(refuted, pc.is_valid(batch.column(child.column))) if isinstance(child, In) else refuted
        case leaf:
            return pc.fill_null(_leaf(leaf, batch), False)


def _fold(
    join: Callable[..., pa.BooleanArray], children: tuple[Predicate, ...], batch: pa.RecordBatch
) -> pa.BooleanArray:
    mask = _mask(children[0], batch)
    for child in children[1:]:
        mask = join(mask, _mask(child, batch))
    return mask


def _leaf(leaf: Comparison | In | TextMatch, batch: pa.RecordBatch) -> pa.BooleanArray:
    values = batch.column(leaf.column)
    match leaf:
        case Comparison(_, op, literal):
            return _COMPARE[op][1](values, literal)
        case In(_, allowed):
            return pc.is_in(values, value_set=distinct_values(allowed))
        case TextMatch(_, match, pattern):
            return getattr(pc, MATCH_FUNCTIONS[match])(values, pattern)


def _opaque_mask(expression: pc.Expression, names: list[str], batch: pa.RecordBatch) -> pa.BooleanArray:
    """pyarrow filters by expression but hands out no mask, so numbered rows are filtered and the survivors marked."""
    number = "#" + "".join(names)  # longer than every name, hence none of them
    numbered = pa.RecordBatch.from_arrays(
        [*(batch.column(name) for name in names), pa.array(np.arange(batch.num_rows))], [*names, number]
    )
    mask = np.zeros(batch.num_rows, np.bool_)
    mask[numbered.filter(expression).column(number).to_numpy()] = True
    return pa.array(mask)
