"""Which bucket each known hash belongs to: tens of millions of hashes in six bytes each, searched with whole arrays.

Two sorted arrays, a large one and a small one for what came last, so that adding a batch does not move everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from lakebed.bucket.hashing import Hashes

ShortBuckets = npt.NDArray[np.int16]
Choice = Callable[[Hashes], npt.NDArray[np.bool_]]

UNKNOWN = -1
"""The bucket of a hash that has none."""

_LEAST_RECENT = 1 << 16
_RECENT_SHARE = 8
"""Recent hashes join the others when they are an eighth of them: moving costs little per hash then."""


class KnownHashes:
    """A map from hashes to buckets that only grows."""

    def __init__(self, hashes: Hashes | None = None, buckets: ShortBuckets | None = None) -> None:
        self._main = _SortedPairs(hashes, buckets)
        self._recent = _SortedPairs()

    @staticmethod
    def load(count: int, stored: Iterable[tuple[int, Hashes]], keep: Choice | None = None) -> KnownHashes:
        """From (bucket, its hashes) pairs with `count` hashes in all; `keep` leaves out those of no interest."""
        # Hash and bucket in one number: sorting it needs no index array, the largest of all there could be.
        packed = np.empty(count, np.int64)
        used = 0
        for bucket, hashes in stored:
            kept = hashes if keep is None else hashes[keep(hashes)]
            part = packed[used : used + len(kept)]
            np.left_shift(kept, 16, out=part, dtype=np.int64)
            np.bitwise_or(part, bucket, out=part)
            used += len(kept)
        packed = packed[:used]
        packed.sort()
        buckets = packed.astype(np.int16)
        np.right_shift(packed, 16, out=packed)
        return KnownHashes(packed.astype(np.int32), buckets)

    def __len__(self) -> int:
        return len(self._main.hashes) + len(self._recent.hashes)

    def find(self, hashes: Hashes) -> ShortBuckets:
        """The bucket of each hash, or UNKNOWN; ascending hashes are found fastest."""
        found = self._main.find(hashes)
        if len(self._recent.hashes):
            missing = np.flatnonzero(found == UNKNOWN)
            found[missing] = self._recent.find(hashes[missing])
        return found

    def add(self, hashes: Hashes, buckets: ShortBuckets) -> None:
        """Adds hashes, ascending, distinct and all of them unknown so far."""
        self._recent.insert(hashes, buckets)
        if len(self._recent.hashes) > max(_LEAST_RECENT, len(self._main.hashes) // _RECENT_SHARE):
            self._main.insert(self._recent.hashes, self._recent.buckets)
            self._recent = _SortedPairs()


class _SortedPairs:
    """Hashes in ascending order and, in the same places, their buckets."""

    def __init__(self, hashes: Hashes | None = None, buckets: ShortBuckets | None = None) -> None:
        self.hashes = np.empty(0, np.int32) if hashes is None else hashes
        self.buckets = np.empty(0, np.int16) if buckets is None else buckets

    def find(self, hashes: Hashes) -> ShortBuckets:
        if not len(self.hashes):
            return np.full(len(hashes), UNKNOWN, np.int16)
        places = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[places] == hashes, self.buckets[places], np.int16(UNKNOWN))

    def insert(self, hashes: Hashes, buckets: ShortBuckets) -> None:
        places = np.searchsorted(self.hashes, hashes)
        self.hashes = np.insert(self.hashes, places, hashes)
        self.buckets = np.insert(self.buckets, places, buckets)
