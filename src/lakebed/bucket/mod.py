"""The `mod` bucket function: a whole number modulo the number of buckets, so that the layout can be foreseen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakebed.bucket.base import BucketFunction, Buckets
from lakebed.bucket.hashing import key_columns
from lakebed.errors import InvalidOption
from lakebed.types.binary_slots import lower
from lakebed.types.logical import DataType, TypeRoot, is_root


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
