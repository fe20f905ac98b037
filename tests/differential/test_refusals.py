"""What the two engines are not known to agree on is refused, and never computed as something else."""

from __future__ import annotations

import pytest
from tests.differential.data import SCHEMA
from tests.differential.engines import PlainScope

from lakebed.expressions.nodes import NotProven

REFUSED = [
    "count(DISTINCT *)",
    "count(*, i)",
    "sum(*)",
    "sum(b)",
    "count(DISTINCT i) OVER (PARTITION BY g)",
    "collect_list(i ORDER BY id)",
    "first(i ORDER BY id)",
    "listagg(s, ',')",
    "listagg(DISTINCT s, ',') WITHIN GROUP (ORDER BY id)",
    "approx_count_distinct(i)",
    "percentile_approx(i, 0.5)",
    "skewness(i)",
    "kurtosis(d)",
    "collect_set(d)",
    "max(ms)",
    "row_number() OVER (PARTITION BY g)",
    "row_number() OVER (ORDER BY id ROWS 1 PRECEDING)",
    "sum(i) OVER (ORDER BY id GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "sum(i) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES)",
    "sum(i) OVER (ORDER BY i, id RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "sum(i) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' MONTH PRECEDING AND CURRENT ROW)",
    "row_number() OVER (ORDER BY ms)",
    "rank()",
    "shuffle(ai)",
    "transform(ai, (x, n, z) -> x)",
    "exists(ai, (x, n) -> true)",
    "transform(i, x -> x)",
    "array()",
    "array(NULL)",
    "array_distinct(array(d))",
    "array_remove(ai, 1.0)",
    "array_sort(ai, (a, z) -> a - z)",
    "ai[l]",
    "map(d, i)",
    "named_struct('a', i, 'A', i2)",
    "aggregate(ai, 0, (a, x) -> CAST(a AS BIGINT))",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_proven_is_refused(text: str) -> None:
    """An expression that Spark reads in a way of its own, or leaves open, is not proven."""
    with pytest.raises(NotProven):
        PlainScope(SCHEMA).bind(text)
