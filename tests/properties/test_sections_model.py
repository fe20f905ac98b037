"""Sections and sorted runs of random files, against the definition by brute force."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.lsm.sections import Section, cut_sections, key_bounds
from lakebed.metadata.data_file import EMPTY_STATS, DataFile
from lakebed.testing.model import Value, order_of
from lakebed.testing.model_arrow import to_arrow_array
from lakebed.testing.strategies import ATOMIC_TYPES, cells
from lakebed.types.binary_row import encode_row
from lakebed.types.logical import AtomicType

Key = tuple[Value, ...]
Token = tuple[tuple[object, ...], ...]


@dataclass(frozen=True)
class Bucket:
    """Files of one bucket and the key range of each, as tokens."""

    types: list[AtomicType]
    files: list[DataFile]
    ranges: dict[str, tuple[Token, Token]]

    def low(self, file: DataFile) -> Token:
        return self.ranges[file.file_name][0]

    def high(self, file: DataFile) -> Token:
        return self.ranges[file.file_name][1]

    def overlap(self, left: DataFile, right: DataFile) -> bool:
        return self.low(left) <= self.high(right) and self.low(right) <= self.high(left)


def _token(key: Key) -> Token:
    return tuple(order_of(value) for value in key)


@st.composite
def buckets(draw: st.DrawFn) -> Bucket:
    """Files with random key ranges over a few keys, so that touching, nested and equal ranges are frequent."""
    types = draw(st.lists(st.sampled_from(ATOMIC_TYPES), min_size=1, max_size=2))
    key = st.tuples(*(cells(data_type) for data_type in types))
    pool = draw(st.lists(key, min_size=1, max_size=8))
    files, ranges = [], {}
    for i in range(draw(st.integers(0, 10))):
        low, high = sorted((draw(st.sampled_from(pool)), draw(st.sampled_from(pool))), key=_token)
        name = f"data-{i}.parquet"
        files.append(_file(name, low, high, types, draw(st.integers(0, 5)), draw(st.integers(0, 3))))
        ranges[name] = (_token(low), _token(high))
    return Bucket(types, files, ranges)


def _file(name: str, low: Key, high: Key, types: list[AtomicType], sequence: int, level: int) -> DataFile:
    bounds = [
        encode_row([to_arrow_array([v], t)[0] for v, t in zip(key, types, strict=True)], types) for key in (low, high)
    ]
    return DataFile(name, 10, 1, *bounds, EMPTY_STATS, EMPTY_STATS, sequence, sequence, 0, level)


@settings(max_examples=150)
@given(buckets())
def test_key_bounds_compare_as_the_keys_do(bucket: Bucket) -> None:
    """The integers behind min and max keys are ordered, and equal, exactly as the keys."""
    if not bucket.files:
        return
    low, high = key_bounds(bucket.files, bucket.types)
    numbers = low + high
    tokens = [bucket.low(file) for file in bucket.files] + [bucket.high(file) for file in bucket.files]
    order = sorted(range(len(tokens)), key=lambda i: tokens[i])
    for left, right in pairwise(order):
        assert (numbers[left] < numbers[right]) == (tokens[left] < tokens[right])
        assert (numbers[left] == numbers[right]) == (tokens[left] == tokens[right])


@settings(max_examples=250)
@given(buckets())
def test_sections_share_no_key_and_runs_are_few(bucket: Bucket) -> None:
    """All files once; sections ascend without overlap and are as fine as can be; runs as few as can be, in order."""
    sections = cut_sections(bucket.files, bucket.types)
    assert sorted(f.file_name for s in sections for f in s.files) == sorted(f.file_name for f in bucket.files)
    for before, after in pairwise(sections):
        assert max(map(bucket.high, before.files)) < min(map(bucket.low, after.files))
    for section in sections:
        assert _is_connected(bucket, section)
        for run in section.runs:
            assert all(bucket.high(left) < bucket.low(right) for left, right in pairwise(run.files))
        assert len(section.runs) == _deepest_overlap(bucket, section)
        newest = [max(file.max_sequence_number for file in run.files) for run in section.runs]
        assert newest == sorted(newest)


def _deepest_overlap(bucket: Bucket, section: Section) -> int:
    """Most files that share one key: no fewer runs can hold them, and as many suffice."""
    return max(
        sum(bucket.low(other) <= bucket.low(file) <= bucket.high(other) for other in section.files)
        for file in section.files
    )


def _is_connected(bucket: Bucket, section: Section) -> bool:
    """Whether one gets from any file to any other through overlaps."""
    reached, pending = {section.files[0].file_name}, [section.files[0]]
    while pending:
        file = pending.pop()
        for other in section.files:
            if other.file_name not in reached and bucket.overlap(file, other):
                reached.add(other.file_name)
                pending.append(other)
    return len(reached) == len(section.files)
