"""The product of a key's values.

Taking back divides, and division rounds, so the order of rows matters: keys from which something is taken back, and all
decimals, go step by step, one row of every key at a time. Other keys are multiplied in one go. Integers and decimals
are exact up to that rounding (integers towards zero, decimals half up to the column's scale); a step that its column
has no room for is an error, never a wrapped or cut number. Floats follow IEEE arithmetic in the precision of their
column, so they may become infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidData
from lakebed.merge.aggregates import numbers
from lakebed.merge.aggregates.base import Aggregate
from lakebed.merge.aggregates.numbers import Integers
from lakebed.merge.segments import Mask, Segments
from lakebed.types.logical import NUMERICS, DataType, is_root

_Step = Callable[[Any, Any], Any]


class Product(Aggregate):
    """Multiplies values and divides by those taken back; taking back from nothing leaves nothing; nulls do nothing."""

    name = "product"
    takes = "numbers: TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL"
    can_retract = True

    @classmethod
    def accepts(cls, data_type: DataType) -> bool:
        return is_root(data_type, NUMERICS)

    def check_retracted(self, values: pa.Array) -> None:
        """See `Aggregate.check_retracted`: nothing can be divided by zero, but for floats."""
        if pa.types.is_floating(values.type) or self.settings.ignore_retract:
            return
        if pc.any(pc.equal(values, pa.scalar(0).cast(values.type))).as_py():
            raise self._refusal_of_zero()

    def _refusal_of_zero(self) -> InvalidData:
        return InvalidData(
            f"column `{self.field.name}`: 0 can not be taken back from a product",
            hint=f"set `fields.{self.field.name}.ignore-retract` to true, or send no -U and -D rows with 0",
        )

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        kept, remaining = segments.only(segments.valid(column))
        if not len(kept):
            return pa.nulls(len(segments), column.type)
        values = kept.sorted(column)
        if pa.types.is_floating(column.type):
            products = _product_of_floats(values, kept)
        elif pa.types.is_decimal(column.type):
            products = self._exact_in_steps(values, kept)
        else:
            products = self._product_of_integers(values, kept)
        return segments.spread(products, remaining)

    def _product_of_integers(self, values: pa.Array, segments: Segments) -> pa.Array:
        factors = np.asarray(values).astype(np.int64, copy=False)
        # Zeros are left out of the estimate, so it tells how far a product went before it became zero.
        reach = np.ones(len(segments))
        with np.errstate(over="ignore"):
            np.multiply.at(reach, segments.segment_of, np.where(factors == 0, 1.0, np.abs(factors.astype(np.float64))))
        is_large = reach >= numbers.limits(values.type)[1] * (1 - 1e-9)
        products = np.ones(len(segments), dtype=np.int64)
        np.multiply.at(products, segments.segment_of, factors)
        return _with_steps(
            pa.array(products.astype(values.type.to_pandas_dtype(), copy=False)),
            values,
            segments,
            is_large | segments.any(segments.retracts),
            self._exact_in_steps,
        )

    def _exact_in_steps(self, values: pa.Array, segments: Segments) -> pa.Array:
        arrow = values.type
        unit = 10**arrow.scale if pa.types.is_decimal(arrow) else 1
        low, high = numbers.limits(arrow)

        def fitting(results: Integers) -> Integers:
            if np.any((results < low) | (results > high)):
                raise numbers.does_not_fit(self.name, self.field)
            return results

        def multiply(left: Integers, right: Integers) -> Integers:
            return fitting(_half_up(left * right, np.full(len(left), unit, dtype=object)))

        def divide(left: Integers, right: Integers) -> Integers:
            if np.any(right == 0):
                raise self._refusal_of_zero()
            return fitting(_half_up(left * unit, right) if pa.types.is_decimal(arrow) else _towards_zero(left, right))

        products, is_nothing = _in_steps(numbers.integers(values), unit, segments, multiply, divide)
        products[is_nothing] = 0
        return _null_where(is_nothing, numbers.from_integers(products, arrow))


def _product_of_floats(values: pa.Array, segments: Segments) -> pa.Array:
    factors = np.asarray(values)
    products = np.ones(len(segments), dtype=factors.dtype)

    def in_steps(values: pa.Array, segments: Segments) -> pa.Array:
        results, is_nothing = _in_steps(np.asarray(values), 1.0, segments, np.multiply, np.divide)
        return pa.array(results, mask=is_nothing)

    with np.errstate(all="ignore"):
        np.multiply.at(products, segments.segment_of, factors)
        return _with_steps(pa.array(products), values, segments, segments.any(segments.retracts), in_steps)


def _with_steps(
    products: pa.Array,
    values: pa.Array,
    segments: Segments,
    needs_steps: Mask,
    in_steps: Callable[[pa.Array, Segments], pa.Array],
) -> pa.Array:
    """The products, with those of the segments that need it computed step by step instead."""
    if not np.any(needs_steps):
        return products
    concerned = needs_steps[segments.segment_of]
    few, which = segments.only(concerned)
    exact = in_steps(values.filter(pa.array(concerned)), few)
    places = np.arange(len(segments), dtype=np.int64)
    places[which] = len(segments) + np.arange(len(which))
    return pa.concat_arrays([products, exact]).take(pa.array(places))


def _in_steps(
    values: npt.NDArray[Any], one: float, segments: Segments, multiply: _Step, divide: _Step
) -> tuple[npt.NDArray[Any], Mask]:
    """Products row by row, all segments at once, and which of them were only taken back from.

    Segments are visited largest first: those that have a k-th row are then always the first ones.
    """
    largest_first = np.argsort(-segments.sizes, kind="stable")
    starts, sizes = segments.starts[largest_first], segments.sizes[largest_first]
    is_nothing = segments.retracts[starts]
    products = values[starts]
    products[is_nothing] = one
    for step in range(1, int(sizes[0])):
        positions = starts[: int(np.searchsorted(-sizes, -step))] + step
        takes_back = segments.retracts[positions]
        divided = np.flatnonzero(takes_back & ~is_nothing[: len(positions)])
        products[divided] = divide(products[divided], values[positions[divided]])
        multiplied = np.flatnonzero(~takes_back)
        products[multiplied] = multiply(products[multiplied], values[positions[multiplied]])
        is_nothing[multiplied] = False
    in_order = np.argsort(largest_first)
    return products[in_order], is_nothing[in_order]


def _half_up(dividends: Integers, divisors: Integers) -> Integers:
    sizes: Integers = (2 * np.abs(dividends) + np.abs(divisors)) // (2 * np.abs(divisors))
    return np.where(_differ_in_sign(dividends, divisors), -sizes, sizes)


def _towards_zero(dividends: Integers, divisors: Integers) -> Integers:
    sizes: Integers = np.abs(dividends) // np.abs(divisors)
    return np.where(_differ_in_sign(dividends, divisors), -sizes, sizes)


def _differ_in_sign(left: Integers, right: Integers) -> Mask:
    differ: Mask = (left < 0) != (right < 0)
    return differ


def _null_where(is_null: Mask, column: pa.Array) -> pa.Array:
    if not np.any(is_null):
        return column
    return column.take(pa.array(np.arange(len(column)), mask=is_null))
