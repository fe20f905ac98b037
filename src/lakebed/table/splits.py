"""Cuts planned files into splits: pieces of a table that can be read independently, on any machine.

A split of a primary-key table covers whole sections, so no key is ever in two splits. A split is *raw* when its files
can be read one after the other without merging.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakebed.lsm.sections import Section, SortedRun, cut_sections
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.deletion_vector import VectorPlace
from lakebed.types.logical import DataType

Vectors = Mapping[str, VectorPlace]
"""Where the deletion vectors of data files lie, by the names of the data files."""


@dataclass(frozen=True, slots=True)
class BucketFiles:
    """Live files of one bucket."""

    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """Sections of one bucket that are read together. `vectors` tells which rows of their files are gone."""

    partition: bytes
    bucket: int
    sections: tuple[Section, ...]
    vectors: Vectors = field(default_factory=dict, hash=False)
    branch: str = ""
    """The branch that the files are of, if it is another one than that of the table that is read."""

    @property
    def files(self) -> list[DataFile]:
        """All files of the split."""
        return [file for section in self.sections for file in section.files]

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size_bytes for file in self.files)

    def with_sections(self, sections: tuple[Section, ...]) -> Split:
        """Other sections of the same bucket in the same state."""
        return replace(self, sections=sections)

    def masked_by(self, vectors: Vectors) -> Split:
        """The split with those of the vectors that belong to its files."""
        names = (file.file_name for file in self.files)
        return replace(self, vectors={name: vectors[name] for name in names if name in vectors})


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
    return packed_splits(bucket, cut_sections(bucket.files, key_types), rules)


def append_splits(bucket: BucketFiles, rules: SplitRules) -> list[Split]:
    """Splits of a bucket without key, in the order the files were written.

    Where rows are hashed into buckets, sequence numbers tell that order; elsewhere the order of the manifests does.
    """
    files = bucket.files
    if bucket.total_buckets > 0:
        files = tuple(sorted(files, key=lambda file: (file.min_sequence_number, file.file_name)))
    return packed_splits(bucket, [Section((SortedRun((file,)),)) for file in files], rules)


def packed_splits(bucket: BucketFiles, sections: Iterable[Section], rules: SplitRules) -> list[Split]:
    """Sections of a bucket as splits of about the target size."""
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
