"""Aggregate functions of the model, one value at a time.

Each function says what becomes of an accumulator when a value comes (`add`) or is taken back (`retract`). NOTHING is
the accumulator of a key that no value has reached yet; it is not the same as null, which may be a value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from enum import Enum
from typing import ClassVar, Final

from lakebed.errors import InvalidData, NotFound
from lakebed.records import dataclass
from lakebed.testing.model_records import Value, as_float, order_of
from lakebed.types.logical import INTEGERS, AtomicType, TypeRoot


class _Nothing(Enum):
    NOTHING = "nothing"


NOTHING: Final = _Nothing.NOTHING
Accumulator = Value | _Nothing

DEFAULT_FUNCTION = "last_non_null_value"
_BITS = {TypeRoot.TINYINT: 8, TypeRoot.SMALLINT: 16, TypeRoot.INT: 32, TypeRoot.BIGINT: 64}
_EXACT = Context(prec=200)


@dataclass(frozen=True, slots=True)
class ModelAggregate(ABC):
    """One function with the settings of its column."""

    ignore_retract: bool = False
    distinct: bool = False
    delimiter: str = ","

    can_retract: ClassVar[bool] = False

    @abstractmethod
    def add(self, old: Accumulator, new: Value, data_type: AtomicType) -> Accumulator:
        """A value comes on top of what is there."""

    def add_before(self, old: Accumulator, new: Value, data_type: AtomicType) -> Accumulator:
        """A value comes late: the operands change places."""
        return self.add(new, None if old is NOTHING else old, data_type)

    def retract(self, old: Accumulator, gone: Value, data_type: AtomicType) -> Accumulator:
        """A value is taken back."""
        if self.ignore_retract:
            return old
        if not self.can_retract:
            raise InvalidData(f"{type(self).__name__} takes nothing back", hint="set `ignore-retract`")
        return self._without(old, gone, data_type)

    def _without(self, old: Accumulator, gone: Value, data_type: AtomicType) -> Accumulator:
        raise NotImplementedError


class _SkipsNulls(ModelAggregate):
    """Null changes nothing; the first value is taken as it is."""

    def add(self, old: Accumulator, new: Value, data_type: AtomicType) -> Accumulator:
        if new is None:
            return None if old is NOTHING else old
        return new if old is NOTHING or old is None else self._joined(old, new, data_type)

    def _joined(self, old: Value, new: Value, data_type: AtomicType) -> Value:
        raise NotImplementedError


class Sum(_SkipsNulls):
    """What was written minus what was taken back."""

    can_retract = True

    def _joined(self, old: Value, new: Value, data_type: AtomicType) -> Value:
        if isinstance(old, float) and isinstance(new, float):
            return as_float(old + new, data_type)
        return fitting(_EXACT.add(_exact(old), _exact(new)), data_type)

    def _without(self, old: Accumulator, gone: Value, data_type: AtomicType) -> Accumulator:
        if gone is None:
            return old
        negated = -gone if isinstance(gone, float) else fitting(_exact(gone).copy_negate(), data_type)
        return self.add(old, negated, data_type)


class Product(_SkipsNulls):
    """What was written, multiplied; what is taken back divides."""

    can_retract = True

    def _joined(self, old: Value, new: Value, data_type: AtomicType) -> Value:
        if isinstance(old, float) and isinstance(new, float):
            return as_float(old * new, data_type)
        return fitting(_EXACT.multiply(_exact(old), _exact(new)), data_type)

    def _without(self, old: Accumulator, gone: Value, data_type: AtomicType) -> Accumulator:
        if old is NOTHING or old is None or gone is None:
            return None if old is NOTHING else old
        if gone == 0:
            raise InvalidData("0 can not be taken back from a product", hint="leave the row out")
        if isinstance(old, float) and isinstance(gone, float):
            return as_float(old / gone, data_type)
        return fitting(_EXACT.divide(_exact(old), _exact(gone)), data_type)


class Max(_SkipsNulls):
    """The largest value."""

    def _joined(self, old: Value, new: Value, data_type: AtomicType) -> Value:
        return max(old, new, key=order_of)


class Min(_SkipsNulls):
    """The smallest value."""

    def _joined(self, old: Value, new: Value, data_type: AtomicType) -> Value:
        return min(old, new, key=order_of)


class BoolAnd(_SkipsNulls):
    """Whether all are true."""

    def _joined(self, old: Value, new: Value, data_type: AtomicType) -> Value:
        return bool(old) and bool(new)


class BoolOr(_SkipsNulls):
    """Whether one is true."""

    def _joined(self, old: Value, new: Value, data_type: AtomicType) -> Value:
        return bool(old) or bool(new)


class LastValue(ModelAggregate):
    """The newest value, null included; taking back leaves null."""

    can_retract = True

    def add(self, old: Accumulator, new: Value, data_type: AtomicType) -> Accumulator:
        return new

    def add_before(self, old: Accumulator, new: Value, data_type: AtomicType) -> Accumulator:
        return new if old is NOTHING else old

    def _without(self, old: Accumulator, gone: Value, data_type: AtomicType) -> Accumulator:
        return None


class LastNonNullValue(_SkipsNulls):
    """The newest value that is not null; taking back a value leaves null."""

    can_retract = True

    def _joined(self, old: Value, new: Value, data_type: AtomicType) -> Value:
        return new

    def _without(self, old: Accumulator, gone: Value, data_type: AtomicType) -> Accumulator:
        return None if gone is not None else old


class FirstValue(ModelAggregate):
    """The oldest value, null included."""

    def add(self, old: Accumulator, new: Value, data_type: AtomicType) -> Accumulator:
        return new if old is NOTHING else old


class FirstNonNullValue(_SkipsNulls):
    """The oldest value that is not null."""

    def _joined(self, old: Value, new: Value, data_type: AtomicType) -> Value:
        return old


class ListAgg(ModelAggregate):
    """All texts in one; with `distinct`, only parts that are not there yet are appended."""

    def add(self, old: Accumulator, new: Value, data_type: AtomicType) -> Accumulator:
        if old is NOTHING or old is None or is_blank(str(old)):
            return None if new is None or is_blank(str(new)) else new
        if new is None or is_blank(str(new)):
            return old
        texts = [str(new)]
        if self.distinct:
            there = str(old).split(self.delimiter)
            texts = []
            for part in str(new).split(self.delimiter):
                if not is_blank(part) and part not in there:
                    there.append(part)
                    texts.append(part)
        return self.delimiter.join([str(old), *texts])


def is_blank(text: str) -> bool:
    """Whether a text is empty or white space."""
    return not text.strip()


# --- numbers ---------------------------------------------------------------------------------------------------------


def _exact(value: Value) -> Decimal:
    assert isinstance(value, int | Decimal)
    return Decimal(value)


def fitting(exact: Decimal, data_type: AtomicType) -> Value:
    """A number as its column holds it: integers cut, decimals rounded half up; InvalidData when there is no room."""
    if data_type.root in INTEGERS:
        whole = int(exact.to_integral_value(ROUND_DOWN, context=_EXACT))
        if not -(1 << (_BITS[data_type.root] - 1)) <= whole < 1 << (_BITS[data_type.root] - 1):
            raise InvalidData(f"{whole} does not fit into {data_type}", hint="use smaller numbers")
        return whole
    rounded = exact.quantize(Decimal(1).scaleb(-data_type.scale), ROUND_HALF_UP, context=_EXACT)
    if abs(rounded.scaleb(data_type.scale, context=_EXACT)) >= 10**data_type.precision:
        raise InvalidData(f"{rounded} does not fit into {data_type}", hint="use smaller numbers")
    return rounded


# --- by name ---------------------------------------------------------------------------------------------------------

MODEL_AGGREGATES: Mapping[str, type[ModelAggregate]] = {
    "sum": Sum,
    "count": Sum,  # values become 1 or 0 when they are written
    "product": Product,
    "max": Max,
    "min": Min,
    "bool_and": BoolAnd,
    "bool_or": BoolOr,
    "last_value": LastValue,
    "last_non_null_value": LastNonNullValue,
    "first_value": FirstValue,
    "first_non_null_value": FirstNonNullValue,
    "listagg": ListAgg,
}


def model_aggregate(
    name: str, *, ignore_retract: bool = False, distinct: bool = False, delimiter: str = ","
) -> ModelAggregate:
    """The function of that name."""
    if name not in MODEL_AGGREGATES:
        known = ", ".join(sorted(MODEL_AGGREGATES))
        raise NotFound(f"the model has no aggregate function `{name}`", hint=f"it has {known}")
    return MODEL_AGGREGATES[name](ignore_retract, distinct, delimiter)


__all__ = [
    "DEFAULT_FUNCTION",
    "MODEL_AGGREGATES",
    "NOTHING",
    "Accumulator",
    "ModelAggregate",
    "fitting",
    "is_blank",
    "model_aggregate",
]
