"""count, sum, avg, and whether all or some hold."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.aggregates.aggregate import Aggregate
from lakebed.expressions.casts import coerced
from lakebed.expressions.functions.function import MANY
from lakebed.expressions.nodes import Aggregation, Expression, NotProven


def count(*values: Expression) -> Aggregation:
    """Rows in which no value is null; `count(*)` is count of a constant."""
    places = [f"{{{n}}}" for n in range(len(values))]
    if len(values) == 1:
        template = f"count({{distinct}}{places[0]}){{over}}"
    else:
        # Rows with a null among the values do not count: a value of none of them stands for those.
        isnt_null = " AND ".join(f"{place} IS NOT NULL" for place in places)
        template = f"count({{distinct}}CASE WHEN {isnt_null} THEN row({', '.join(places)}) END){{over}}"
    if any(pa.types.is_map(value.type) for value in values):
        raise NotProven("`count` of maps")  # DISTINCT of them is refused by Spark
    return Aggregation(type=kinds.BIGINT, nullable=False, template=template, arguments=values)


def count_if(condition: Expression) -> Aggregation:
    """Rows for which a condition holds."""
    template = "count({distinct}CASE WHEN {0} THEN TRUE END){over}"
    return Aggregation(
        type=kinds.BIGINT, nullable=False, template=template, arguments=(coerced(condition, kinds.BOOLEAN),)
    )


def total(value: Expression) -> Aggregation:
    """SUM: whole numbers give BIGINT, decimals ten digits more, the rest DOUBLE. One that does not fit is an error."""
    value, kind = _summed("sum", value)
    template = f"CAST(sum({{distinct}}{{0}}){{over}} AS {kinds.duckdb_name(kind)})"
    return Aggregation(type=kind, template=template, arguments=(value,), can_fail=not kinds.is_fraction(kind))


def try_total(value: Expression) -> Aggregation:
    """TRY_SUM: null if it does not fit."""
    value, kind = _summed("try_sum", value)
    if kinds.is_decimal(value.type) and value.type.precision > _SAFE_DIGITS:
        raise NotProven(f"`try_sum` of {kinds.spark_name(value.type)}")  # DuckDB's own sum fails past 38 digits
    template = f"TRY_CAST(sum({{distinct}}{{0}}){{over}} AS {kinds.duckdb_name(kind)})"
    return Aggregation(type=kind, template=template, arguments=(value,))


_SAFE_DIGITS = 28
"""Numbers of so many digits can be summed ten billion times within 38."""


def _summed(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    """The value as it is summed, and the type of the sum."""
    if kinds.is_integral(value.type):
        return value, kinds.BIGINT
    if kinds.is_decimal(value.type):
        return value, kinds.decimal(min(38, value.type.precision + 10), value.type.scale)
    if kinds.is_fraction(value.type) or value.type == kinds.STRING:
        return coerced(value, kinds.DOUBLE), kinds.DOUBLE
    raise NotProven(f"`{name}` of {kinds.spark_name(value.type)}")


def average(value: Expression) -> Aggregation:
    """AVG: of decimals exact, with four more digits behind the point, half of the last one rounded up; else DOUBLE."""
    value, kind = _summed("avg", value)
    if not kinds.is_decimal(kind):
        template = "avg({distinct}CAST({0} AS DOUBLE)){over}"
        return Aggregation(type=kinds.DOUBLE, template=template, arguments=(value,), can_fail=value.can_fail)
    scale = value.type.scale
    result = kinds.decimal(min(38, value.type.precision + 4), min(38, scale + 4))
    # DuckDB divides decimals as DOUBLE. So the digits of the sum are divided as a whole number, and get their point
    # back: once for a group, not for a row. Where 128 bits may be too few, both go by way of a text.
    is_narrow = value.type.precision + scale <= _SAFE_DIGITS
    total = "sum({distinct}{0}){over}"
    digits = (
        f"{total} * CAST('{10**scale}' AS DECIMAL(38,0))"
        if is_narrow
        else f"replace(CAST({total} AS VARCHAR), '.', '')"
    )
    more = 10 ** (result.scale - scale)
    half = "CASE WHEN t_.d < 0 THEN -t_.n ELSE t_.n END"
    whole = f"(t_.d // t_.n) * {more} + ((t_.d % t_.n) * {2 * more} + {half}) // (2 * t_.n)"
    pointed = (
        f"CAST({whole} AS DECIMAL(38,0)) * CAST('{Decimal(1).scaleb(-result.scale):f}' AS DECIMAL(38,{result.scale}))"
        if is_narrow
        else f"regexp_replace(printf('%040d', {whole}), '(.{{{{{result.scale}}}}})$', '.\\1')"
    )
    quotient = f"CASE WHEN t_.n > 0 THEN CAST({pointed} AS {kinds.duckdb_name(result)}) END"
    pair = f"struct_pack(d := CAST({digits} AS HUGEINT), n := count({{distinct}}{{0}}){{over}})"
    template = f"list_transform([{pair}], lambda t_ : {quotient})[1]"
    return Aggregation(type=result, template=template, arguments=(value,), can_fail=True)


def try_average(value: Expression) -> Aggregation:
    """TRY_AVG: only of what can not fail."""
    found = average(value)
    if kinds.is_decimal(value.type):
        raise NotProven(f"`try_avg` of {kinds.spark_name(value.type)}")
    return found


def all_hold(condition: Expression) -> Aggregation:
    """Whether a condition holds in all rows where it is not null."""
    return _bools("bool_and", condition)


def some_hold(condition: Expression) -> Aggregation:
    """Whether a condition holds in some row."""
    return _bools("bool_or", condition)


def _bools(name: str, condition: Expression) -> Aggregation:
    if condition.type not in (kinds.BOOLEAN, kinds.STRING, kinds.NULL):
        raise NotProven(f"`{name}` of {kinds.spark_name(condition.type)}")
    given = coerced(condition, kinds.BOOLEAN)
    return Aggregation(type=kinds.BOOLEAN, template=f"{name}({{distinct}}{{0}}){{over}}", arguments=(given,))


def bits_of_all(value: Expression) -> Aggregation:
    """BIT_AND."""
    return _bits("bit_and", value)


def bits_of_some(value: Expression) -> Aggregation:
    """BIT_OR."""
    return _bits("bit_or", value)


def bits_of_odd(value: Expression) -> Aggregation:
    """BIT_XOR."""
    return _bits("bit_xor", value)


def _bits(name: str, value: Expression) -> Aggregation:
    if not kinds.is_integral(value.type):
        raise NotProven(f"`{name}` of {kinds.spark_name(value.type)}")
    return Aggregation(type=value.type, template=f"{name}({{distinct}}{{0}}){{over}}", arguments=(value,))


AGGREGATES = {
    "count": Aggregate(count, 1, MANY),
    "count_if": Aggregate(count_if),
    "sum": Aggregate(total),
    "try_sum": Aggregate(try_total),
    "avg": Aggregate(average),
    "mean": Aggregate(average),
    "try_avg": Aggregate(try_average),
    "bool_and": Aggregate(all_hold),
    "every": Aggregate(all_hold),
    "bool_or": Aggregate(some_hold),
    "any": Aggregate(some_hold),
    "some": Aggregate(some_hold),
    "bit_and": Aggregate(bits_of_all),
    "bit_or": Aggregate(bits_of_some),
    "bit_xor": Aggregate(bits_of_odd),
}
