"""Cuts planned files into splits: pieces of a table that can be read independently, on any machine.

A split of a primary-key table covers whole sections, so no key is ever in two splits. A split is *raw* when its files
can be read one after the other without merging.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace

from lakebed.errors import Unsupported
from lakebed.lsm.sections import Section, SortedRun, cut_sections
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.deletion_vector import Vectors
from lakebed.records import dataclass
from lakebed.schema.evolution import map_fields
from lakebed.schema.system_columns import PLACE_FIELDS, ROW_ID, TRACKED_SEQUENCE_NUMBER
from lakebed.schema.table_schema import TableSchema
from lakebed.types.logical import DataField, DataType


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


# --- Rows that are spread over several files: some columns in one, others in another, aligned by position ---------
#
# An engine that replaces single columns of existing rows (`data-evolution.enabled`) writes files that hold only
# those, for the same range of row ids. Of several files with a column the one that was written last counts. The
# oldest file of a range stands for all of them: a row of it that is marked as deleted is gone from the others too.


def stitched_sections(files: Sequence[DataFile], table: str) -> list[Section]:
    """One section for each range of rows, its files as runs from the oldest to the newest, in the order of row ids."""
    ranges: dict[tuple[int, int], list[DataFile]] = defaultdict(list)
    sections: list[Section] = []
    for file in files:
        if file.first_row_id is None:
            sections.append(Section((SortedRun((file,)),)))
        else:
            ranges[file.first_row_id, file.row_count].append(file)
    end = 0
    for (first, count), members in sorted(ranges.items()):
        if first < end:
            raise Unsupported(
                f"table `{table}`: rows from {first} on are spread over files of different ranges, among them "
                f"{members[0].file_name}",
                hint="read the table with the engine that wrote it, and let that one compact it",
            )
        end = first + count
        # Whoever marks rows has to name the same file of a range as the oldest, also where two were written at once.
        members.sort(key=lambda file: (file.max_sequence_number, file.file_name))
        sections.append(Section(tuple(SortedRun((file,)) for file in members)))
    return sections


def columns_by_file(
    section: Section, fields: Sequence[DataField], schema_of: Callable[[int], TableSchema]
) -> list[tuple[DataFile, list[DataField]]]:
    """Which columns to read from which file of a section; every file that gives any."""
    newest_first = section.files[::-1]
    oldest = newest_first[-1]
    chosen: dict[str, list[DataField]] = defaultdict(list)
    for column in fields:
        if column in PLACE_FIELDS or column == ROW_ID:
            owner = oldest
        elif column == TRACKED_SEQUENCE_NUMBER:
            owner = newest_first[0]
        else:
            owner = next((file for file in newest_first if _holds(file, column, schema_of)), oldest)
        chosen[owner.file_name].append(column)
    return [(file, chosen[file.file_name]) for file in newest_first if file.file_name in chosen]


def held_fields(
    file: DataFile, fields: Sequence[DataField], schema_of: Callable[[int], TableSchema]
) -> tuple[DataField, ...]:
    """Those of the columns that a file has values for."""
    return tuple(field for field in fields if _holds(file, field, schema_of))


def refuse_parts_of_rows(files: Sequence[DataFile], table: str) -> None:
    """Raises if a file read alone would show rows without some of their columns."""
    for file in files:
        if file.write_cols is not None:
            raise Unsupported(
                f"table `{table}`: file {file.file_name} holds only some columns of its rows: no change can be read",
                hint="read states of the table, for example with t.at(...), and compare them",
            )


def _holds(file: DataFile, field: DataField, schema_of: Callable[[int], TableSchema]) -> bool:
    name = map_fields([field], schema_of(file.schema_id)).old_name_of(field.name)
    return name is not None and (file.write_cols is None or name in file.write_cols)


__all__ = ["columns_by_file", "held_fields", "refuse_parts_of_rows", "stitched_sections"]
