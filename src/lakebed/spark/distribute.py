"""Brings the rows of a bucket together: one task writes all of them, so that each commit adds one run to a bucket.

Keyed tables and tables with buckets are shuffled once, by a number that Spark computes for each row; other tables are
written where their rows are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from lakebed.bucket.fixed import assign_buckets
from lakebed.definition.bucket_mode import TaskNeeds, shared_rules
from lakebed.definition.context import TableContext
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import BUCKET, BUCKET_FUNCTION_TYPE
from lakebed.records import dataclass
from lakebed.spark.filters import quoted
from lakebed.spark.known_keys import with_known_keys
from lakebed.spark.session import prepare_worker
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import DataField, TypeRoot, is_root

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


MOST_TASKS = 512

_BUCKET = "_lakebed_bucket"


@dataclass(frozen=True, slots=True)
class Distribution:
    """Rows in the tasks that shall write them. `parts` is how many of them share dynamic buckets, 0 if none do."""

    frame: DataFrame
    parts: int = 0
    is_taught: bool = False
    """Whether the table's keys come with the rows."""


def distributed(
    context: TableContext,
    frame: DataFrame,
    parallelism: int,
    *,
    base: Snapshot | None = None,
    shares_keys: bool = False,
    teaches: bool = True,
) -> Distribution:
    """The frame with all rows of a bucket in one partition, where the table wants that.

    With `shares_keys` rows that wait for their buckets are shared by key, and so is an index of all keys: tasks are
    brought those of `base`, the snapshot that the rows are written on top of, unless they know them (`teaches`). Else
    one task gets all such rows, and has the index, or whoever it hands them to.
    """
    needs = context.bucket_mode.needs
    if needs is TaskNeeds.ANY_ROWS:
        return Distribution(frame)
    if needs is TaskNeeds.WHOLE_BUCKETS:
        buckets = int(context.options[BUCKET])
        tasks = min(buckets if not context.partition_fields else 4 * buckets, MOST_TASKS)
        keys = context.schema.fields_of(context.schema.bucket_keys)
        function = str(context.options[BUCKET_FUNCTION_TYPE])
        return Distribution(_by_bucket(context, frame, tuple(keys), buckets, function, tasks))
    if needs is TaskNeeds.SHARE_OF_KEYS:
        parts = shared_rules(context.options, parallelism).assigners
        return Distribution(_by_share(frame, context.key_fields, parts), parts)
    primary_key = tuple(context.schema.fields_of(context.schema.primary_keys))
    if needs is TaskNeeds.SHARE_OF_TABLE_KEYS and shares_keys:
        parts = shared_rules(context.options, parallelism).assigners
        return _by_primary_key(context, frame, primary_key, parts, base if teaches else None)
    if context.lets_rows_wait and shares_keys:
        # Rows of one key wait in one file, so that they stay in their order.
        return Distribution(_by_share(frame, primary_key, parallelism))
    # An index of all keys, or a number of buckets that follows from all rows of a partition: one task at a time.
    return Distribution(frame.coalesce(1))


def _by_primary_key(
    context: TableContext, frame: DataFrame, keys: tuple[DataField, ...], parts: int, base: Snapshot | None
) -> Distribution:
    """Rows of one key in one task, which knows where the key is."""
    if base is not None:
        numbered = _with_bucket(frame, keys, parts, "default")
        taught = with_known_keys(context, numbered, _BUCKET, parts, base)
        if taught is not None:
            return Distribution(taught, parts, is_taught=True)
    return Distribution(_by_share(frame, keys, parts), parts)


def _by_share(frame: DataFrame, keys: tuple[DataField, ...], parts: int) -> DataFrame:
    """Keys by the remainder of their hashes, whatever their partitions."""
    if parts == 1:
        return frame.coalesce(1)
    columns = [quoted(name) for name in frame.columns]
    numbered = _with_bucket(frame, keys, parts, "default")
    return numbered.repartitionById(parts, sf.col(_BUCKET)).select(*columns)


def _by_bucket(
    context: TableContext, frame: DataFrame, keys: tuple[DataField, ...], buckets: int, function: str, tasks: int
) -> DataFrame:
    if tasks == 1:
        return frame.coalesce(1)
    columns = [quoted(name) for name in frame.columns]
    numbered = _with_bucket(frame, keys, buckets, function)
    number = sf.col(_BUCKET)
    if context.partition_fields:
        number = number + sf.hash(*(quoted(field.name) for field in context.partition_fields)).cast("long")
    return numbered.repartitionById(tasks, sf.pmod(number, sf.lit(tasks)).cast("int")).select(*columns)


def _with_bucket(frame: DataFrame, keys: tuple[DataField, ...], buckets: int, function: str) -> DataFrame:
    if buckets == 1:
        return frame.withColumn(_BUCKET, sf.lit(0))
    numbered = with_bucket(frame, keys, buckets, function, _BUCKET)
    return frame.withColumn(_BUCKET, _bucket_in_arrow(keys, buckets, function)) if numbered is None else numbered


def _bucket_in_arrow(keys: tuple[DataField, ...], buckets: int, function: str) -> Column:
    """For keys of any type: the same code that routes rows, in Spark's Python workers."""

    @sf.arrow_udf("int")  # type: ignore[untyped-decorator]
    def bucket(*columns: pa.Array) -> pa.Array:
        prepare_worker()
        try:
            typed = [pc.cast(column, to_arrow_type(key.type)) for column, key in zip(columns, keys, strict=True)]
            numbers = assign_buckets(typed, [key.type for key in keys], buckets, function)
        except (pa.ArrowException, ValueError):
            # A value that does not fit: whichever task gets it will say so, and name the column.
            return pa.array(np.zeros(len(columns[0]), dtype=np.int32))
        return pa.array(np.asarray(numbers, dtype=np.int32))

    result: Column = bucket(*(quoted(key.name) for key in keys))
    return result


# --- The bucket of a row in Spark's own arithmetic, for keys of one whole number ----------------------------------
#
# Buckets are chosen by the Murmur3 hash (seed 42) of a binary row: eight bytes of header, all zero, then the number
# in eight bytes. Spark has that hash for bytes but no way to lay out a number as such bytes, so the few rounds of it
# are spelled out. Every step is a column of its own: each is used twice by the next, and Spark would write an
# expression out as often as it is used. Sums and products stay below 2^63, because Spark may be set to refuse
# overflow.


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
