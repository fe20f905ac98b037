"""What a bucket function is: key columns in, bucket numbers out.

A function is part of a table's format: once rows are written with it, its numbers must never change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.bucket.hashing import BLOCK_ROWS, hash_rows, key_columns
from lakebed.errors import InvalidOption
from lakebed.types.binary_slots import lower
from lakebed.types.logical import DataType, TypeRoot, is_nested, is_root

Buckets = npt.NDArray[np.int32]


class BucketFunction(ABC):
    """Base of the functions in `BUCKET_FUNCTIONS`; instances have no state."""

    name: str
    """The word users write in `bucket-function.type`."""

    @abstractmethod
    def check(self, types: Sequence[DataType]) -> None:
        """Raises InvalidOption when the function can not work on a bucket key of these types."""

    @abstractmethod
    def assign(self, columns: Sequence[pa.Array], types: Sequence[DataType], num_buckets: int) -> Buckets:
        """The bucket, from 0 to `num_buckets` - 1, of every row; `types` have passed `check`."""


def remainder_in_place(values: npt.NDArray[np.uint32], divisor: int) -> None:
    """Replaces unsigned numbers by their remainders; dividing by a constant is far cheaper than taking remainders."""
    if divisor & (divisor - 1) == 0:
        np.bitwise_and(values, np.uint32(divisor - 1), out=values)
        return
    quotients = values // np.uint32(divisor)
    quotients *= np.uint32(divisor)
    values -= quotients


# --- The default bucket function: the key's hash modulo the number of buckets -------------------------------------


class DefaultFunction(BucketFunction):
    """Works on every type that can be a key."""

    name = "default"

    def check(self, types: Sequence[DataType]) -> None:
        """Raises InvalidOption for a key without columns or with nested ones."""
        if not types or any(is_nested(data_type) for data_type in types):
            raise InvalidOption(
                f"`bucket-key` of ({', '.join(map(str, types))}) can not be hashed",
                hint="choose one or more columns that are neither nested nor VARIANT or BLOB",
            )

    def assign(self, columns: Sequence[pa.Array], types: Sequence[DataType], num_buckets: int) -> Buckets:
        """|hash| modulo the number of buckets, which is what a signed remainder without its sign comes to."""
        hashes = hash_rows(columns, types)
        np.abs(hashes, out=hashes)
        # The smallest int32 has no positive twin; it stays as it is, and read as unsigned it is its own magnitude.
        for begin in range(0, len(hashes), BLOCK_ROWS):
            remainder_in_place(hashes[begin : begin + BLOCK_ROWS].view(np.uint32), num_buckets)
        return hashes


# --- The `mod` bucket function: a whole number modulo the number of buckets, so that the layout can be foreseen ---


class ModFunction(BucketFunction):
    """Works on exactly one INT or BIGINT column; null counts as 0."""

    name = "mod"

    def check(self, types: Sequence[DataType]) -> None:
        """Raises InvalidOption for any other key."""
        if len(types) != 1 or not is_root(types[0], {TypeRoot.INT, TypeRoot.BIGINT}):
            raise InvalidOption(
                f"`bucket-function.type` = mod does not work on ({', '.join(map(str, types))})",
                hint="make `bucket-key` exactly one INT or BIGINT column, or use the default function",
            )

    def assign(self, columns: Sequence[pa.Array], types: Sequence[DataType], num_buckets: int) -> Buckets:
        """The remainder that is never negative."""
        prepared, atomic = key_columns(columns, types)
        values = np.asarray(lower(prepared[0], atomic[0]).values)
        buckets: Buckets = np.remainder(values.view(f"i{values.itemsize}"), num_buckets).astype(np.int32)
        return buckets
