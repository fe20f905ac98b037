"""Fixed buckets: the row's bucket follows from its key and the number of buckets alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakebed.bucket import BUCKET_FUNCTIONS
from lakebed.bucket.functions import Buckets
from lakebed.bucket.hashing import key_columns
from lakebed.errors import InvalidOption, did_you_mean
from lakebed.types.logical import DataType


def assign_buckets(
    columns: Sequence[pa.Array], types: Sequence[DataType], num_buckets: int, function: str = "default"
) -> Buckets:
    """The bucket of every row; `columns` are the bucket key's in its order, nulls allowed."""
    chosen = BUCKET_FUNCTIONS.get(function)
    if chosen is None:
        raise InvalidOption(
            f"`bucket-function.type` = {function} is not known", hint=did_you_mean(function, BUCKET_FUNCTIONS)
        )
    if not 1 <= num_buckets <= np.iinfo(np.int32).max:
        raise InvalidOption(
            f"`bucket` = {num_buckets} is no number of fixed buckets", hint="use 1 or more fixed buckets"
        )
    chosen.check(types)
    if num_buckets == 1:
        prepared, _ = key_columns(columns, types)
        return np.zeros(len(prepared[0]), np.int32)
    return chosen.assign(columns, types, num_buckets)
