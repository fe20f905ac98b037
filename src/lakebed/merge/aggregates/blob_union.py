"""Functions on VARBINARY columns whose values are sets in somebody else's serialised form.

The bytes mean nothing to Arrow, so values are handed one by one to the library that knows them; the loop runs only over
keys that have several values.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakebed.errors import InvalidData
from lakebed.merge.aggregates.base import Aggregate
from lakebed.merge.segments import Segments
from lakebed.types.logical import DataType, TypeRoot, is_root


class BlobUnion(Aggregate):
    """The union of all values of a key; a single value stays as it is, byte for byte."""

    content: str
    """What a value is, in words, for error messages."""

    @classmethod
    def accepts(cls, data_type: DataType) -> bool:
        return is_root(data_type, TypeRoot.VARBINARY)

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        valid = segments.valid(column)
        result = segments.pick(column, segments.last(valid))
        several = np.add.reduceat(valid.astype(np.int64), segments.starts) > 1
        if not np.any(several):
            return result
        kept, _ = segments.only(valid & several[segments.segment_of])
        blobs = kept.sorted(column).to_pylist()
        unions = [
            self._checked_union(blobs[start:end])
            for start, end in zip(kept.starts.tolist(), kept.ends.tolist(), strict=True)
        ]
        sources = np.arange(len(segments))
        sources[several] = len(segments) + np.arange(len(unions))
        return pa.concat_arrays([result, pa.array(unions, column.type)]).take(pa.array(sources))

    def _checked_union(self, blobs: Sequence[bytes]) -> bytes:
        try:
            return self.union(blobs)
        except (ValueError, IndexError, RuntimeError, MemoryError) as error:
            # What the libraries raise on bytes that are not theirs.
            raise InvalidData(
                f"column `{self.field.name}`: a value is no {self.content}: {error}",
                hint=f"`{self.name}` joins values that were written as {self.content}; correct the rows, or choose "
                "another aggregate function",
            ) from error

    @abstractmethod
    def union(self, blobs: Sequence[bytes]) -> bytes:
        """The union of two or more values, oldest first. Bytes of another kind may raise ValueError."""
