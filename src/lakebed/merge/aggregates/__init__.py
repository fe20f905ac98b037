"""Aggregate functions by the name users write in `fields.<column>.aggregate-function`."""

from __future__ import annotations

from lakebed.merge.aggregates.base import Aggregate, AggregateSettings
from lakebed.merge.aggregates.booleans import BoolAnd, BoolOr
from lakebed.merge.aggregates.collect import Collect
from lakebed.merge.aggregates.extremes import Max, Min
from lakebed.merge.aggregates.listagg import ListAgg
from lakebed.merge.aggregates.merge_map import MergeMap
from lakebed.merge.aggregates.merge_map_with_keytime import MergeMapWithKeytime
from lakebed.merge.aggregates.nested_partial_update import NestedPartialUpdate
from lakebed.merge.aggregates.nested_update import NestedUpdate
from lakebed.merge.aggregates.product import Product
from lakebed.merge.aggregates.roaring import RoaringBitmap32, RoaringBitmap64
from lakebed.merge.aggregates.sketches import HllSketch, ThetaSketch
from lakebed.merge.aggregates.sum import Sum
from lakebed.merge.aggregates.values import FirstNonNullValue, FirstValue, LastNonNullValue, LastValue

AGGREGATES: dict[str, type[Aggregate]] = {
    function.name: function
    for function in (
        *(LastValue, LastNonNullValue, FirstValue, FirstNonNullValue),
        *(Sum, Product, Max, Min, BoolAnd, BoolOr, ListAgg),
        *(Collect, MergeMap, MergeMapWithKeytime, NestedUpdate, NestedPartialUpdate),
        *(RoaringBitmap32, RoaringBitmap64, HllSketch, ThetaSketch),
    )
}

__all__ = ["AGGREGATES", "Aggregate", "AggregateSettings"]
