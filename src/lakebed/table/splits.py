"""Cuts planned files into splits: pieces of a table that can be read independently, on any machine.

A split of a primary-key table covers whole sections, so no key is ever in two splits. A split is *raw* when its files
can be read one after the other without merging.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakebed.lsm.sections import Section, SortedRun, cut_sections
from lakebed.metadata.data_file import DataFile
from lakebed.types.logical import DataType


@dataclass(frozen=True, slots=True)
class BucketFiles:
    """Live files of one bucket."""

    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """Sections of one bucket that are read together."""

    partition: bytes
    bucket: int
    sections: tuple[Section, ...]

    @property
    def files(self) -> list[DataFile]:
        """All files of the split."""
        return [file for section in self.sections for file in section.files]

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class SplitRules:
    """How large splits get; a file counts at least its opening cost."""

    target_size_bytes: int
    open_file_cost_bytes: int


def needs_merge(section: Section) -> bool:
    """Whether rows of this section can not be taken as they are stored.

    A lone run needs none: its keys are unique. Retracts in it are dropped while reading.
    """
    return len(section.runs) > 1


def keyed_splits(bucket: BucketFiles, key_types: Sequence[DataType], rules: SplitRules) -> list[Split]:
    """Splits of a primary-key bucket, in key order."""
    sections = cut_sections(bucket.files, key_types)
    return [Split(bucket.partition, bucket.bucket, group) for group in _pack(sections, rules)]


def append_splits(bucket: BucketFiles, rules: SplitRules) -> list[Split]:
    """Splits of a bucket without key, in the order the files were written.

    Where rows are hashed into buckets, sequence numbers tell that order; elsewhere the order of the manifests does.
    """
    files = bucket.files
    if bucket.total_buckets > 0:
        files = tuple(sorted(files, key=lambda file: (file.min_sequence_number, file.file_name)))
    sections = [Section((SortedRun((file,)),)) for file in files]
    return [Split(bucket.partition, bucket.bucket, group) for group in _pack(sections, rules)]


def _pack(sections: Iterable[Section], rules: SplitRules) -> list[tuple[Section, ...]]:
    groups: list[tuple[Section, ...]] = []
    current: list[Section] = []
    weight = 0
    for section in sections:
        cost = sum(max(file.size_bytes, rules.open_file_cost_bytes) for file in section.files)
        if current and weight + cost > rules.target_size_bytes:
            groups.append(tuple(current))
            current, weight = [], 0
        current.append(section)
        weight += cost
    if current:
        groups.append(tuple(current))
    return groups
