"""Aggregate functions and windows of a query: the call with all that stands around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from lakebed.expressions import kinds
from lakebed.expressions.aggregates import AGGREGATES, RANKINGS
from lakebed.expressions.aggregates.aggregate import Aggregate
from lakebed.expressions.casts import coerced
from lakebed.expressions.nodes import Aggregation, Expression, NotProven, Ordering, call
from lakebed.expressions.orders import order_key
from lakebed.sql.bind.expressions import ExpressionBinder

_IGNORING = " ignore nulls"
"""What is added to the name of a function that leaves nulls out; such ones are on the list under that name."""


def bind_aggregate(node: exp.Expression, binder: ExpressionBinder) -> Aggregation:
    """An aggregate function with DISTINCT, FILTER, IGNORE NULLS and the order of its rows."""
    return _bind(node, binder, AGGREGATES)[1]


def _bind(
    node: exp.Expression, binder: ExpressionBinder, functions: Mapping[str, Aggregate]
) -> tuple[Aggregate, Aggregation]:
    condition: Expression | None = None
    order: list[Ordering] = []
    suffix = ""
    while not isinstance(node, exp.Anonymous):
        match node:
            case exp.Filter():
                condition = coerced(binder.bind(node.expression.this), kinds.BOOLEAN)
            case exp.WithinGroup():
                order = orderings(node.expression, binder)
            case exp.IgnoreNulls():
                suffix = _IGNORING
            case exp.RespectNulls():
                pass
            case _:
                raise NotProven(f"`{node.sql('spark')}`")
        node = node.this
    name = str(node.this).lower() + suffix
    function = functions.get(name)
    if function is None:
        raise NotProven(f"`{name}`")
    given, is_distinct = list(node.expressions), False
    if len(given) == 1 and isinstance(given[0], exp.Distinct):
        given, is_distinct = list(given[0].expressions), True
    if given and isinstance(given[-1], exp.Order):
        order = orderings(given[-1], binder)
        given[-1] = given[-1].this
    if name == "count" and not is_distinct and len(given) == 1 and isinstance(given[0], exp.Star):
        given = [exp.Literal.number(1)]
    if any(each.is_star for each in given):  # all columns, one by one
        raise NotProven(f"`{node.sql('spark')}`")
    arguments = [binder.bind(each) for each in given]
    if is_distinct and not function.takes_distinct:
        raise NotProven(f"`{name}` with DISTINCT")
    if bool(order) != function.takes_order:
        raise NotProven(f"`{name}` {'with' if order else 'without'} an order")
    if condition is not None and functions is AGGREGATES and not is_distinct:
        # What may fail is not computed for rows that are left out, as Spark has it in a group, but not in a window nor
        # with DISTINCT; DuckDB always computes arguments first.
        arguments = [_where(condition, each) if each.can_fail else each for each in arguments]
    if not function.value_is_in_order:
        if is_distinct and any(each.value != arguments[0] for each in order):
            raise NotProven(f"`{name}` with DISTINCT and an order of other values")
        found = function(name, arguments)
    else:
        if len(order) != 1:
            raise NotProven(f"`{name}` with an order of several values")
        found = function(name, [order[0].value, *arguments])
        order = [replace(order[0], value=found.arguments[0])]
    found = replace(found, is_distinct=is_distinct, condition=condition, order=tuple(order))
    return function, replace(found, can_fail=found.can_fail or any(part.can_fail for part in found.parts))


def _where(condition: Expression, value: Expression) -> Expression:
    return call("(CASE WHEN {0} THEN {1} END)", condition, value, type=value.type, nullable=True)


def orderings(node: exp.Order | exp.Expression, binder: ExpressionBinder) -> list[Ordering]:
    """ORDER BY; without a word nulls come first upwards and last downwards."""
    return [ordering(each, binder.bind(each.this)) for each in node.expressions]


def ordering(node: exp.Ordered, value: Expression) -> Ordering:
    """One part of ORDER BY."""
    is_descending = bool(node.args.get("desc"))
    nulls_first = node.args.get("nulls_first")
    return Ordering(order_key(value), is_descending, not is_descending if nulls_first is None else bool(nulls_first))


def bind_window(
    node: exp.Window, binder: ExpressionBinder, named: Mapping[str, exp.Window] | None = None
) -> Aggregation:
    """A function over a window; `named` are the windows of the WINDOW clause."""
    window = node
    alias = node.args.get("alias")
    if alias is not None:
        found = (named or {}).get(alias.name.lower())
        if found is None:
            raise NotProven(f"window `{alias.name}`", "there is no such window")
        if any(node.args.get(part) for part in ("partition_by", "order", "spec")):
            raise NotProven(f"window `{alias.name}` with more than its name")
        window = found
    name = str(_called(node.this).this).lower()
    function, called = _bind(node.this, binder, {**AGGREGATES, **RANKINGS})
    if called.is_distinct or not function.goes_over_windows:
        raise NotProven(f"`{name}(DISTINCT ...)` over a window" if called.is_distinct else f"`{name}` over a window")
    partition = [binder.bind(each) for each in window.args.get("partition_by") or []]
    order = orderings(window.args["order"], binder) if window.args.get("order") else []
    parts = []
    if partition:
        parts.append(f"PARTITION BY {', '.join(each.spelled() for each in partition)}")
    if order:
        parts.append(f"ORDER BY {', '.join(each.spelled() for each in order)}")
    parts += _frame(window, name, function, order)
    values = (*partition, *(each.value for each in order))
    can_fail = called.can_fail or any(each.can_fail for each in values)
    over = f" OVER ({' '.join(parts)})"
    return replace(called, over=over, window=values, partition=tuple(partition), can_fail=can_fail)


def _called(node: exp.Expression) -> exp.Anonymous:
    while not isinstance(node, exp.Anonymous):
        node = node.this
    return node


def _frame(window: exp.Window, name: str, function: Aggregate, order: Sequence[Ordering]) -> list[str]:
    spec = window.args.get("spec")
    if not function.takes_frame:
        if spec is not None:
            raise NotProven(f"`{name}` with a frame")
        if not order:
            raise NotProven(f"`{name}` over a window without an order")
        return []
    if spec is None:
        return ["RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"] if order else []
    kind = str(spec.args.get("kind") or "").upper()
    if kind not in ("ROWS", "RANGE") or spec.args.get("exclude") is not None:
        raise NotProven(f"`{window.sql('spark')}`")
    bounds = []
    for end in ("start", "end"):
        value, side = spec.args.get(end), str(spec.args.get(f"{end}_side") or "").upper()
        if value is None:
            value, side = "CURRENT ROW", ""
        text = value if isinstance(value, str) else _distance(value, kind, order)
        bounds.append(f"{text} {side}".strip())
    return [f"{kind} BETWEEN {bounds[0]} AND {bounds[1]}"]


def _distance(value: exp.Expression, kind: str, order: Sequence[Ordering]) -> str:
    """How far a frame reaches: rows, or a difference of the one value that rows are ordered by."""
    number = str(value.this) if isinstance(value, exp.Literal) and not value.is_string else None
    if kind == "ROWS" and number is not None and number.isdecimal():
        return number
    if kind == "RANGE" and len(order) == 1:
        ordered = order[0].value.type
        is_whole = number is not None and number.isdecimal()
        if is_whole and (kinds.is_integral(ordered) or kinds.is_decimal(ordered)):
            return str(number)
        if number is not None and kinds.is_fraction(ordered):
            return f"CAST({number} AS {kinds.duckdb_name(ordered)})"
        if is_whole and ordered == kinds.DATE:
            return f"INTERVAL ({number}) DAY"
        if isinstance(value, exp.Interval):
            seconds = _seconds(value)
            if ordered == kinds.DATE and seconds % _DAY == 0:
                return f"INTERVAL ({seconds // _DAY}) DAY"
            if ordered in (kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ):
                return f"INTERVAL ({seconds}) SECOND"  # a day is 24 hours, also where clocks are changed
    raise NotProven(f"a frame of `{value.sql('spark')}`")


_DAY = 86400
_UNITS = {"WEEK": 7 * _DAY, "DAY": _DAY, "HOUR": 3600, "MINUTE": 60, "SECOND": 1}


def _seconds(value: exp.Interval) -> int:
    unit = value.args["unit"].sql().upper().removesuffix("S")
    amount = str(value.this.this)
    if unit not in _UNITS or not amount.isdecimal():
        raise NotProven(f"a frame of `{value.sql('spark')}`")
    return int(amount) * _UNITS[unit]
