"""Aggregate functions by the name users write in `fields.<column>.aggregate-function`."""

from __future__ import annotations

from lakebed.merge.aggregates.base import Aggregate, AggregateSettings
from lakebed.registry import Registry

AGGREGATES: Registry[type[Aggregate]] = Registry(
    "lakebed.merge.aggregates",
    {
        "last_value": "values.LastValue",
        "last_non_null_value": "values.LastNonNullValue",
        "first_value": "values.FirstValue",
        "first_non_null_value": "values.FirstNonNullValue",
        "sum": "sum.Sum",
        "product": "product.Product",
        "max": "extremes.Max",
        "min": "extremes.Min",
        "bool_and": "booleans.BoolAnd",
        "bool_or": "booleans.BoolOr",
        "listagg": "listagg.ListAgg",
        "collect": "collect.Collect",
        "merge_map": "merge_map.MergeMap",
        "merge_map_with_keytime": "merge_map_with_keytime.MergeMapWithKeytime",
        "nested_update": "nested_update.NestedUpdate",
        "nested_partial_update": "nested_partial_update.NestedPartialUpdate",
        "rbm32": "roaring.RoaringBitmap32",
        "rbm64": "roaring.RoaringBitmap64",
        "hll_sketch": "sketches.HllSketch",
        "theta_sketch": "sketches.ThetaSketch",
    },
)

__all__ = ["AGGREGATES", "Aggregate", "AggregateSettings"]
