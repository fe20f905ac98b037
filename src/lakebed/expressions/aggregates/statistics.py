"""Variance, correlation and percentiles: results that both engines compute in DOUBLE, step by step.

The steps are rounded, and not in the same order in both; so the last digits may differ, as they do between two runs of
one engine. SKEWNESS and KURTOSIS are not here: DuckDB adds up powers of the values, which is worth nothing where the
mean is large. Estimates (APPROX_COUNT_DISTINCT, PERCENTILE_APPROX) are not here: no two engines give the same.
"""

from __future__ import annotations

from lakebed.expressions import kinds
from lakebed.expressions.aggregates.aggregate import Aggregate
from lakebed.expressions.casts import coerced
from lakebed.expressions.nodes import Aggregation, Constant, Expression, NotProven


def _number(value: Expression) -> Expression:
    if not kinds.is_numeric(value.type) and value.type != kinds.STRING:
        raise NotProven(f"a statistic of {kinds.spark_name(value.type)}")
    return coerced(value, kinds.DOUBLE)


def _of_one(name: str) -> Aggregate:
    def build(value: Expression) -> Aggregation:
        template = f"{name}({{distinct}}{{0}}){{over}}"
        return Aggregation(type=kinds.DOUBLE, template=template, arguments=(_number(value),), can_fail=True)

    return Aggregate(build)


def _of_two(template: str, kind: str = "DOUBLE") -> Aggregate:
    result = kinds.BIGINT if kind == "BIGINT" else kinds.DOUBLE

    def build(left: Expression, right: Expression) -> Aggregation:
        return Aggregation(type=result, template=template, arguments=(_number(left), _number(right)), can_fail=True)

    return Aggregate(build, 2, 2, takes_distinct=False)


def percentile(value: Expression, share: Expression) -> Aggregation:
    """PERCENTILE: between two values in proportion."""
    _check_share(share)
    template = "quantile_cont({0}, {1}){over}"
    return Aggregation(type=kinds.DOUBLE, template=template, arguments=(_number(value), share))


def percentile_in_order(value: Expression, share: Expression) -> Aggregation:
    """PERCENTILE_CONT: its value is what the rows are ordered by."""
    _check_share(share)
    template = "percentile_cont({1}) WITHIN GROUP ({order}){over}"
    return Aggregation(type=kinds.DOUBLE, template=template, arguments=(_number(value), share))


def percentile_of_values(value: Expression, share: Expression) -> Aggregation:
    """PERCENTILE_DISC: one of the values."""
    _check_share(share)
    template = "percentile_disc({1}) WITHIN GROUP ({order}){over}"
    return Aggregation(type=kinds.DOUBLE, template=template, arguments=(_number(value), share))


def median(value: Expression) -> Aggregation:
    """MEDIAN."""
    template = "quantile_cont({distinct}{0}, 0.5){over}"
    return Aggregation(type=kinds.DOUBLE, template=template, arguments=(_number(value),))


def _check_share(share: Expression) -> None:
    if not isinstance(share, Constant) or not kinds.is_numeric(share.type) or not 0 <= share.value <= 1:
        raise NotProven("a percentile", "its share is not a constant of 0 to 1")


_X_DIFFERS = "regr_sxx({0}, {1}){over} <> 0"
_Y_DIFFERS = "regr_syy({0}, {1}){over} <> 0"
"""Where all values of a side are equal, Spark has no correlation, DuckDB NaN."""

AGGREGATES = {
    "stddev": _of_one("stddev_samp"),
    "std": _of_one("stddev_samp"),
    "stddev_samp": _of_one("stddev_samp"),
    "stddev_pop": _of_one("stddev_pop"),
    "variance": _of_one("var_samp"),
    "var_samp": _of_one("var_samp"),
    "var_pop": _of_one("var_pop"),
    "covar_pop": _of_two("covar_pop({0}, {1}){over}"),
    "covar_samp": _of_two("covar_samp({0}, {1}){over}"),
    "median": Aggregate(median),
    "percentile": Aggregate(percentile, 2, 2, takes_distinct=False),
    "percentile_cont": Aggregate(
        percentile_in_order,
        2,
        2,
        takes_distinct=False,
        takes_order=True,
        value_is_in_order=True,
        goes_over_windows=False,
    ),
    "percentile_disc": Aggregate(
        percentile_of_values,
        2,
        2,
        takes_distinct=False,
        takes_order=True,
        value_is_in_order=True,
        goes_over_windows=False,
    ),
    "corr": _of_two(f"CASE WHEN {_X_DIFFERS} AND {_Y_DIFFERS} THEN corr({{0}}, {{1}}){{over}} END"),
    "regr_count": _of_two("CAST(regr_count({0}, {1}){over} AS BIGINT)", "BIGINT"),
    "regr_avgx": _of_two("regr_avgx({0}, {1}){over}"),
    "regr_avgy": _of_two("regr_avgy({0}, {1}){over}"),
    "regr_sxx": _of_two("regr_sxx({0}, {1}){over}"),
    "regr_syy": _of_two("regr_syy({0}, {1}){over}"),
    "regr_sxy": _of_two("regr_sxy({0}, {1}){over}"),
    "regr_slope": _of_two(f"CASE WHEN {_X_DIFFERS} THEN regr_slope({{0}}, {{1}}){{over}} END"),
    "regr_intercept": _of_two(f"CASE WHEN {_X_DIFFERS} THEN regr_intercept({{0}}, {{1}}){{over}} END"),
    "regr_r2": _of_two("regr_r2({0}, {1}){over}"),
}
