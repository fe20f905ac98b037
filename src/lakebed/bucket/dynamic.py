"""Dynamic buckets: a key stays in the bucket it was first given, new keys fill buckets up and open others.

Several assigners can work side by side, in one process or in many. Each gets its own keys (`channel_of`) and hands out
its own buckets, those whose number leaves its own remainder, so that no two of them need to agree on anything. Where
the known hashes come from, and where new ones are written to, is not decided here.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from lakebed.bucket.functions import Buckets
from lakebed.bucket.hashing import Hashes
from lakebed.errors import InvalidOption
from lakebed.records import dataclass

UNLIMITED = -1
MOST_BUCKETS = (1 << 15) - 1
"""Buckets that a partition can have where no limit is set."""


@dataclass(frozen=True, slots=True)
class AssignerRules:
    """How many rows fill a bucket, how many buckets there may be, and how the work is shared.

    `channels` are the workers that keys are dealt out to, `assigners` how many of them work on one partition. They may
    differ from one write to the next: known keys are found whoever placed them.
    """

    target_row_num: int
    max_buckets: int = UNLIMITED
    channels: int = 1
    assigners: int = 1

    @staticmethod
    def of(
        target_row_num: int, max_buckets: int, initial_buckets: int | None, parallelism: int | None, workers: int = 1
    ) -> AssignerRules:
        """The rules for a table's options; `workers` are there if no parallelism is set.

        One worker can do the work of as many assigners as a partition is to have buckets at first.
        """
        if max_buckets == 0:
            raise InvalidOption(
                "`dynamic-bucket.max-buckets` is 0", hint="use -1 for no limit, or a number of buckets of at least 1"
            )
        channels = parallelism or max(workers, initial_buckets or 1)
        assigners = min(initial_buckets or channels, channels)
        # One more than there are buckets would have none to put its keys into.
        assigners = min(assigners, max_buckets if max_buckets != UNLIMITED else MOST_BUCKETS)
        return AssignerRules(target_row_num, max_buckets, channels, assigners)

    def channel_of(self, partition_hash: int, hashes: Hashes) -> npt.NDArray[np.int64]:
        """Which of the channels assigns each key of a partition."""
        # A remainder without its sign, as Java has it.
        shares = np.abs(hashes.astype(np.int64)) % self.assigners
        return (abs(partition_hash) % self.channels + shares) % self.channels

    def owner_of(self, channels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The remainder of the buckets that these channels hand out."""
        return channels % self.assigners


class PartitionBuckets:
    """Hands out the buckets of one partition.

    `counts` are the keys in each bucket so far. With a `channel`, only keys of that channel may be asked for.
    """

    def __init__(
        self,
        rules: AssignerRules,
        partition_hash: int,
        counts: dict[int, int] | None = None,
        stored: Iterable[tuple[int, Hashes]] = (),
        channel: int | None = None,
    ) -> None:
        self._rules = rules
        self._partition_hash = partition_hash
        self._counts = dict(counts or {})
        self._owners: dict[int, BucketFiller] = {}
        self._new: dict[int, list[Hashes]] = {}
        self._known = KnownHashes.load(
            sum(self._counts.values()),
            stored,
            None if channel is None else lambda hashes: rules.channel_of(partition_hash, hashes) == channel,
        )

    def __len__(self) -> int:
        return len(self._known)

    def assign(self, hashes: Hashes) -> Buckets:
        """The bucket of every key, given its hash; new keys are placed in the order in which they come."""
        distinct, first_places, places = np.unique(hashes, return_index=True, return_inverse=True)
        buckets = self._known.find(distinct)
        is_new = buckets == UNKNOWN
        if np.any(is_new):
            new = np.flatnonzero(is_new)
            by_arrival = new[np.argsort(first_places[new])]
            buckets[by_arrival] = self._placed(distinct[by_arrival])
            self._known.add(distinct[is_new], buckets[is_new])
        return buckets[places].astype(np.int32)

    def take_new(self) -> dict[int, Hashes]:
        """Hashes placed since the last call, by bucket."""
        taken, self._new = self._new, {}
        return {bucket: np.concatenate(parts) for bucket, parts in taken.items()}

    def _placed(self, hashes: Hashes) -> ShortBuckets:
        buckets = np.empty(len(hashes), np.int16)
        owners = self._rules.owner_of(self._rules.channel_of(self._partition_hash, hashes))
        for number in np.unique(owners).tolist():
            mine = np.flatnonzero(owners == number)
            buckets[mine] = self._owner(number).place(hashes[mine])
        order = np.argsort(buckets, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(buckets[order])) + 1):
            self._new.setdefault(int(buckets[group[0]]), []).append(hashes[group])
        return buckets

    def _owner(self, number: int) -> BucketFiller:
        if number not in self._owners:
            self._owners[number] = BucketFiller(self._rules, number, self._counts)
        return self._owners[number]


class BucketFiller:
    """The buckets of one assigner: which of them have room, and which one to open next.

    `number` is the assigner's: it hands out the buckets whose numbers leave it as remainder.
    """

    def __init__(self, rules: AssignerRules, number: int, counts: dict[int, int]) -> None:
        self._rules = rules
        self._counts = {bucket: n for bucket, n in sorted(counts.items()) if bucket % rules.assigners == number}
        self._open = [bucket for bucket, n in self._counts.items() if n < rules.target_row_num]
        self._next = number

    def buckets(self) -> list[int]:
        """All buckets so far."""
        return list(self._counts)

    def release(self, bucket: int, count: int) -> None:
        """Makes room in a bucket for as many keys as have left it."""
        if bucket in self._counts:
            self._counts[bucket] -= count
            if bucket not in self._open and self._counts[bucket] < self._rules.target_row_num:
                bisect.insort(self._open, bucket)

    def place(self, hashes: Hashes) -> ShortBuckets:
        """Buckets for new keys, given in the order in which they came."""
        buckets = np.empty(len(hashes), np.int16)
        begin = 0
        for bucket, count in self._take(len(hashes)):
            buckets[begin : begin + count] = bucket
            begin += count
        if begin < len(hashes):
            # All buckets there may be are full: any of them will do, and the hash is as good as a random number.
            choices = np.array(self.buckets(), np.int16)
            scattered = np.abs(hashes[begin:].astype(np.int64)) // self._rules.assigners
            buckets[begin:] = choices[scattered % len(choices)]
        return buckets

    def _take(self, wanted: int) -> Iterable[tuple[int, int]]:
        """Room for so many new keys as (bucket, how many) pairs; less than wanted once no bucket may be opened."""
        while wanted:
            if not self._open and not self._open_one():
                return
            bucket = self._open[0]
            count = min(wanted, self._rules.target_row_num - self._counts[bucket])
            self._counts[bucket] += count
            if self._counts[bucket] >= self._rules.target_row_num:
                self._open.pop(0)
            wanted -= count
            yield bucket, count

    def _open_one(self) -> bool:
        rules = self._rules
        while self._next in self._counts:
            self._next += rules.assigners
        if self._next >= (MOST_BUCKETS if rules.max_buckets == UNLIMITED else min(rules.max_buckets, MOST_BUCKETS)):
            if rules.max_buckets == UNLIMITED:
                raise InvalidOption(
                    f"a partition would need more than {MOST_BUCKETS} dynamic buckets",
                    hint="raise `dynamic-bucket.target-row-num`, or set `dynamic-bucket.max-buckets`",
                )
            return False
        self._counts[self._next] = 0
        self._open.append(self._next)
        return True


# ------------------------------------------------------------------------------------------------------------------
# Which bucket each known hash belongs to: tens of millions of hashes in six bytes each, searched with whole arrays.
#
# Two sorted arrays, a large one and a small one for what came last, so that adding a batch does not move everything.


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
