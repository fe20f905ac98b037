"""The default bucket function: the key's hash modulo the number of buckets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakebed.bucket.base import BucketFunction, Buckets, remainder_in_place
from lakebed.bucket.hashing import BLOCK_ROWS, hash_rows
from lakebed.errors import InvalidOption
from lakebed.types.logical import DataType, is_nested


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
