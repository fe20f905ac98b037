"""The bucket of a row in Spark's own arithmetic, for keys of one whole number.

Buckets are chosen by the Murmur3 hash (seed 42) of a binary row: eight bytes of header, all zero, then the number in
eight bytes. Spark has that hash for bytes but no way to lay out a number as such bytes, so the few rounds of it are
spelled out. Every step is a column of its own: each is used twice by the next, and Spark would write an expression
out as often as it is used. Sums and products stay below 2^63, because Spark may be set to refuse overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql import types as st

from lakebed.spark.filters import quoted
from lakebed.types.logical import DataField, TypeRoot, is_root

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MASK = 0xFFFFFFFF
_C1, _C2 = 0xCC9E2D51, 0x1B873593
_ROW_BYTES = 16
_NUMBERS = {TypeRoot.INT: st.IntegerType, TypeRoot.BIGINT: st.LongType}


def with_bucket(
    frame: DataFrame, keys: Sequence[DataField], buckets: int, function: str, name: str
) -> DataFrame | None:
    """The frame with the bucket as one more column.

    None when the key is not one number, is of another type in the frame, or the table hashes in another way.
    """
    if len(keys) != 1 or function != "default":
        return None
    (key,) = keys
    given = {field.name: field for field in frame.schema.fields}.get(key.name)
    wanted = next((kind for root, kind in _NUMBERS.items() if is_root(key.type, root)), None)
    if given is None or wanted is None or not isinstance(given.dataType, wanted) or key.type.nullable:
        return None
    rounds = _Rounds(frame, name, frame.columns)
    value = quoted(key.name).cast("long")
    low = rounds.scrambled(value.bitwiseAND(sf.lit(_MASK)), "low")
    rounds.mix(sf.lit(_after_header()), low)
    if is_root(key.type, TypeRoot.BIGINT):
        high = rounds.scrambled(sf.shiftrightunsigned(value, 32), "high")
        rounds.mix(rounds.state, high)
    else:
        rounds.mix(rounds.state, sf.lit(0).cast("long"))
    return rounds.finished(buckets)


class _Rounds:
    """The hash in the making: columns that are added one after the other, and dropped at the end."""

    def __init__(self, frame: DataFrame, name: str, kept: Sequence[str]) -> None:
        self._frame = frame
        self._name = name
        self._kept = [quoted(column) for column in kept]

    @property
    def state(self) -> Column:
        return sf.col(f"{self._name}_state")

    def _step(self, suffix: str, value: Column) -> Column:
        self._frame = self._frame.withColumn(f"{self._name}_{suffix}", value)
        return sf.col(f"{self._name}_{suffix}")

    def scrambled(self, word: Column, suffix: str) -> Column:
        word = self._step(suffix, word)
        word = self._step(suffix, _times(word, _C1))
        word = self._step(suffix, _rotated(word, 15))
        return self._step(suffix, _times(word, _C2))

    def mix(self, state: Column, word: Column) -> None:
        state = self._step("state", state.bitwiseXOR(word))
        rotated = _rotated(state, 13)
        self._step("state", (rotated * sf.lit(5) + sf.lit(0xE6546B64)).bitwiseAND(sf.lit(_MASK)))

    def finished(self, buckets: int) -> DataFrame:
        state = self._step("state", self.state.bitwiseXOR(sf.lit(_ROW_BYTES).cast("long")))
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            state = self._step("state", state.bitwiseXOR(sf.shiftrightunsigned(state, shift)))
            state = self._step("state", _times(state, factor))
        state = self._step("state", state.bitwiseXOR(sf.shiftrightunsigned(state, 16)))
        # As Java has it: the remainder of the signed number, without its sign.
        signed = sf.when(state > sf.lit(0x7FFFFFFF), state - sf.lit(1 << 32)).otherwise(state)
        return self._frame.select(*self._kept, sf.abs(signed % sf.lit(buckets)).cast("int").alias(self._name))


def _after_header() -> int:
    """The state after the two words of a header without nulls."""
    state = 42
    for _ in range(2):
        state = ((state << 13 | state >> 19) * 5 + 0xE6546B64) & _MASK
    return state


def _times(value: Column, factor: int) -> Column:
    """The low 32 bits of a product of two numbers of 32 bits."""
    low = value.bitwiseAND(sf.lit(0xFFFF)) * sf.lit(factor)
    high = (sf.shiftrightunsigned(value, 16) * sf.lit(factor)).bitwiseAND(sf.lit(0xFFFF))
    return (low + sf.shiftleft(high, 16)).bitwiseAND(sf.lit(_MASK))


def _rotated(value: Column, count: int) -> Column:
    left = sf.shiftleft(value, count).bitwiseAND(sf.lit(_MASK))
    return left.bitwiseOR(sf.shiftrightunsigned(value, 32 - count))
