"""Dynamic buckets: the worked examples, and a plain dictionary that does the same key by key."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.bucket import dynamic as known_hashes
from lakebed.bucket.dynamic import MOST_BUCKETS, UNLIMITED, AssignerRules, KnownHashes, PartitionBuckets
from lakebed.bucket.hashing import Hashes
from lakebed.errors import InvalidOption


def keys(*numbers: int) -> Hashes:
    """Hashes of some keys: here the keys are their own hashes."""
    return np.array(numbers, np.int32)


def test_b_01_new_keys_fill_buckets_one_after_the_other() -> None:
    """Two keys to a bucket, in the order of arrival."""
    buckets = PartitionBuckets(AssignerRules(target_row_num=2), 0)
    assert buckets.assign(keys(51, 42, 33, 24, 15)).tolist() == [0, 0, 1, 1, 2]


def test_b_02_a_known_key_stays() -> None:
    """The first key's bucket is full, and still its own."""
    buckets = PartitionBuckets(AssignerRules(target_row_num=2), 0)
    buckets.assign(keys(51, 42, 33, 24, 15))
    assert buckets.assign(keys(51)).tolist() == [0]
    assert buckets.assign(keys(15, 6, 51, 6, 7)).tolist() == [2, 2, 0, 2, 3]


def test_b_03_full_buckets_are_overfilled_at_the_limit() -> None:
    """With all allowed buckets full, keys go to any of them, and stay there."""
    buckets = PartitionBuckets(AssignerRules(target_row_num=1, max_buckets=2), 0)
    assert buckets.assign(keys(1, 2)).tolist() == [0, 1]
    more = keys(*range(3, 103))
    found = buckets.assign(more)
    assert set(found.tolist()) == {0, 1}
    assert 20 < np.count_nonzero(found) < 80
    assert buckets.assign(more).tolist() == found.tolist()
    new = buckets.take_new()
    assert sorted([*new[0].tolist(), *new[1].tolist()]) == [1, 2, *more.tolist()]


def test_b_04_assigners_hand_out_buckets_of_their_own() -> None:
    """Of two assigners one opens even buckets only, the other odd ones, also when one process plays both."""
    rules = AssignerRules.of(2, UNLIMITED, None, 2)
    assert (rules.channels, rules.assigners) == (2, 2)
    hashes = keys(*range(12))
    channels = rules.channel_of(0, hashes)
    for channel in (0, 1):
        found = PartitionBuckets(rules, 0, channel=channel).assign(hashes[channels == channel])
        assert found.tolist() == [channel, channel, channel + 2, channel + 2, channel + 4, channel + 4]
    together = PartitionBuckets(rules, 0).assign(hashes)
    assert (together % 2).tolist() == channels.tolist()


def test_the_channel_of_a_key() -> None:
    """Partition and key together choose the channel, with remainders of negative numbers counted as positive ones."""
    rules = AssignerRules.of(2, UNLIMITED, 3, 10)
    assert (rules.channels, rules.assigners) == (10, 3)
    assert rules.channel_of(-18, keys(0, 1, 2, 3, -1, -2, -(2**31))).tolist() == [8, 9, 0, 8, 9, 0, 0]
    assert rules.channel_of(-(2**31), keys(0)).tolist() == [8]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((-1, None, None), (1, 1)),
        ((-1, 3, 10), (10, 3)),
        ((-1, 10, 3), (3, 3)),
        ((-1, None, 4), (4, 4)),
        ((-1, 3, None), (3, 3)),
        ((2, None, 4), (4, 2)),
        ((-1, None, 100_000), (100_000, MOST_BUCKETS)),
    ],
)
def test_channels_and_assigners_from_options(
    options: tuple[int, int | None, int | None], expected: tuple[int, int]
) -> None:
    """Initial buckets bound the assigners of a partition, parallelism the channels, and each assigner has a bucket."""
    rules = AssignerRules.of(5, *options)
    assert (rules.channels, rules.assigners) == expected


def test_no_bucket_at_all_is_refused() -> None:
    """A limit of 0 buckets leaves no place for any key."""
    with pytest.raises(InvalidOption, match="max-buckets"):
        AssignerRules.of(5, 0, None, None)


def test_too_many_buckets_are_refused() -> None:
    """Without a limit of its own, a partition ends at the largest number that fits the index."""
    buckets = PartitionBuckets(AssignerRules(target_row_num=1), 0)
    assert buckets.assign(np.arange(MOST_BUCKETS, dtype=np.int32))[-1] == MOST_BUCKETS - 1
    with pytest.raises(InvalidOption, match="target-row-num"):
        buckets.assign(keys(-1))


def test_what_is_stored_is_known() -> None:
    """Known hashes are found, full buckets get no more, others are filled up, and only what is new counts as new."""
    stored = [(0, keys(5, 9)), (3, keys(-7))]
    buckets = PartitionBuckets(AssignerRules(target_row_num=2), 0, {0: 2, 3: 1}, stored)
    assert buckets.assign(keys(-7, 9, 1, 2, 5)).tolist() == [3, 0, 3, 1, 0]
    assert {bucket: hashes.tolist() for bucket, hashes in buckets.take_new().items()} == {3: [1], 1: [2]}
    assert buckets.take_new() == {}
    assert len(buckets) == 5


def test_known_keys_are_found_whoever_placed_them() -> None:
    """With another number of assigners, keys keep their buckets although these belong to others now."""
    hashes = keys(*range(100))
    one = PartitionBuckets(AssignerRules.of(10, UNLIMITED, None, 1), 77)
    before = one.assign(hashes)
    stored = one.take_new()
    counts = {bucket: len(members) for bucket, members in stored.items()}
    rules = AssignerRules.of(10, UNLIMITED, None, 3)
    channels = rules.channel_of(77, hashes)
    for channel in range(3):
        part = PartitionBuckets(rules, 77, counts, stored.items(), channel)
        mine = channels == channel
        assert len(part) == np.count_nonzero(mine)
        assert part.assign(hashes[mine]).tolist() == before[mine].tolist()


class _Plain:
    """The rules, key by key, in a dictionary."""

    def __init__(self, rules: AssignerRules, partition_hash: int) -> None:
        self.rules = rules
        self.start = abs(partition_hash) % rules.channels
        self.bucket_of: dict[int, int] = {}
        self.counts: dict[int, int] = {}

    def own(self, key: int) -> list[int]:
        owner = (self.start + abs(key) % self.rules.assigners) % self.rules.channels % self.rules.assigners
        limit = MOST_BUCKETS if self.rules.max_buckets == UNLIMITED else self.rules.max_buckets
        return list(range(owner, limit, self.rules.assigners))

    def may_be(self, key: int) -> list[int]:
        """Buckets that the rules allow for a key: one, unless all are full."""
        if key in self.bucket_of:
            return [self.bucket_of[key]]
        own = self.own(key)
        roomy = [bucket for bucket in own if 0 < self.counts.get(bucket, 0) < self.rules.target_row_num]
        unused = [bucket for bucket in own if bucket not in self.counts]
        return roomy[:1] or unused[:1] or own

    def put(self, key: int, bucket: int) -> None:
        if key not in self.bucket_of:
            self.bucket_of[key] = bucket
            self.counts[bucket] = self.counts.get(bucket, 0) + 1


@settings(max_examples=150, deadline=None)
@given(
    batches=st.lists(st.lists(st.integers(-40, 40), min_size=1, max_size=30), max_size=8),
    target=st.integers(1, 9),
    max_buckets=st.sampled_from([UNLIMITED, 1, 2, 5]),
    initial=st.none() | st.integers(1, 4),
    parallelism=st.none() | st.integers(1, 5),
    partition_hash=st.integers(-(2**31), 2**31 - 1),
    reloads=st.booleans(),
)
def test_the_same_as_key_by_key(
    batches: list[list[int]],
    target: int,
    max_buckets: int,
    initial: int | None,
    parallelism: int | None,
    partition_hash: int,
    reloads: bool,
) -> None:
    """Whole batches get the buckets that a dictionary gives key by key, also after the index went through storage."""
    rules = AssignerRules.of(target, max_buckets, initial, parallelism)
    plain, stored = _Plain(rules, partition_hash), dict[int, Hashes]()
    buckets = PartitionBuckets(rules, partition_hash)
    for batch in batches:
        if reloads:
            counts = {bucket: len(hashes) for bucket, hashes in stored.items()}
            buckets = PartitionBuckets(rules, partition_hash, counts, stored.items())
        for key, bucket in zip(batch, buckets.assign(keys(*batch)).tolist(), strict=True):
            assert bucket in plain.may_be(key)
            plain.put(key, bucket)
        for bucket, hashes in buckets.take_new().items():
            stored[bucket] = np.concatenate([stored.get(bucket, keys()), hashes])
    in_index = {key: bucket for bucket, hashes in stored.items() for key in hashes.tolist()}
    assert in_index == plain.bucket_of
    assert sum(map(len, stored.values())) == len(in_index)


def test_recent_hashes_join_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes are found while they are recent, when they have been moved, and next to those that were loaded."""
    monkeypatch.setattr(known_hashes, "_LEAST_RECENT", 4)
    known = KnownHashes.load(3, [(1, keys(10, -10)), (2, keys(0))])
    for start in range(20, 40, 2):
        known.add(keys(start, start + 1), np.array([3, 4], np.int16))
    assert known.find(keys(-10, 0, 10, 20, 21, 39, 40, -(2**31))).tolist() == [1, 2, 1, 3, 4, 4, -1, -1]
    assert len(known) == 23
