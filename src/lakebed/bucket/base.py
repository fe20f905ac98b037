"""What a bucket function is: key columns in, bucket numbers out.

A function is part of a table's format: once rows are written with it, its numbers must never change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.types.logical import DataType

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
