"""Which keys two states of a table may differ in, found without reading what they share.

The row that a state shows for a key is made of the rows of that key alone. So a key that occurs in no file which only
one of the states has, and in none of which other rows are marked, has the same row in both. Compactions put many files
in the place of others and change no row; as long as every commit in between is there to be asked, what the others
wrote tells the keys better than the files that the states ended up with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lakebed.definition.context import TableContext
from lakebed.definition.row_rules import vectors_at
from lakebed.errors import FileMissing, NotFound
from lakebed.lsm.merge_runs import windows
from lakebed.lsm.sections import Section, SortedRun, cut_sections
from lakebed.merge.base import ChoosingEngine
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.deletion_vector import NO_POSITIONS, Vectors
from lakebed.metadata.entries import Bucket, delta_entries
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import RECORD_LEVEL_EXPIRE_TIME
from lakebed.read.plan import FileSieve
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.schema.system_columns import ROW_INDEX
from lakebed.types import ordering

CHUNK_KEYS = 1 << 17
"""Keys that are looked up at a time. Their rows of both states are in memory."""

_ROWS_PER_KEY = 4
"""To find a key costs as much as to read and compare this many rows one after the other, or less."""

_MOST_COMMITS = 512
"""Commits that are asked for what they wrote; of more, the states' files are compared."""


# --- Which way ----------------------------------------------------------------------------------------------------


def is_worth_looking_up(changed: Collection[DataFile], others: Collection[DataFile]) -> bool:
    """Whether to look for the keys of files costs less than to read all of these."""
    return _rows(changed) * _ROWS_PER_KEY <= _rows(others)


def _rows(files: Iterable[DataFile]) -> int:
    return sum(file.row_count for file in files)


# --- Files by what was committed in between -----------------------------------------------------------------------


@dataclass(frozen=True)
class Commits:
    """What the commits between two snapshots wrote and took away, compactions left out."""

    context: TableContext
    schema_id: int
    is_backwards: bool
    """Whether the state to start from is the younger one."""
    files: Mapping[Bucket, Sequence[DataFile]]

    def keys_changed_in(
        self, bucket: Bucket, before: Collection[DataFile], after: Collection[DataFile], hidden: Sequence[DataFile]
    ) -> list[DataFile] | None:
        """Files that hold all keys of a bucket whose rows may differ; None if that can not be told.

        `hidden` are files of the older state that it does not show yet.
        """
        older, newer = (after, before) if self.is_backwards else (before, after)
        stays = {(file.file_name, file.level) for file in newer}
        gone = [file for file in older if (file.file_name, file.level) not in stays]
        # A compaction that lifts rows to another schema may change what is read of them under a third one.
        if any(file.schema_id != self.schema_id for file in gone):
            return None
        # INVARIANT: rows of a key may come to something else if they are merged earlier or later, so keys with several
        # rows may differ without a commit. Of a key that is in the largest run only, there is one row.
        largest = self._largest_run(older)
        found = [*self.files.get(bucket, ()), *hidden, *(file for file in gone if file.file_name not in largest)]
        return list({file.file_name: file for file in found}.values())

    def _largest_run(self, files: Collection[DataFile]) -> set[str]:
        """Names of the files of the sorted run with most rows, those left out that take rows away.

        Files of a level above 0 are a run, and so is each one of level 0. Those are merged with nothing yet: an engine
        that combines rows need not leave them as they are.
        """
        is_chosen = isinstance(self.context.merge_engine, ChoosingEngine)
        runs: dict[Hashable, list[DataFile]] = defaultdict(list)
        for file in files:
            if file.level > 0 or is_chosen:
                runs[file.level or file.file_name].append(file)
        largest = max(runs.values(), key=_rows, default=[])
        return {
            file.file_name
            for file in largest
            if file.delete_row_count == 0 and not self.context.may_miscount_retracts(file)
        }


def commits_between(
    context: TableContext, before: Snapshot | None, after: Snapshot | None, sieve: FileSieve
) -> Commits | None:
    """What was committed between two states; None if it is not all there, or if compactions change rows.

    INVARIANT: the snapshots are a line from one state to the other. A tag may be of a line that was rolled back, whose
    numbers were given anew: then the commits in between would tell of other changes.
    """
    options = context.options
    if before is None or after is None or not context.has_key:
        return None
    if context.bucket_mode.postpones or options.has(RECORD_LEVEL_EXPIRE_TIME):
        return None
    older, newer = sorted((before, after), key=lambda snapshot: snapshot.id)
    line = _line(context, older, newer)
    if line is None or any(snapshot.schema_id != older.schema_id for snapshot in line):
        return None
    files: dict[Bucket, list[DataFile]] = defaultdict(list)
    for previous, snapshot in pairwise(line):
        if snapshot.commit_kind in (CommitKind.COMPACT, CommitKind.ANALYZE):
            continue
        if _marks_rows(context, previous, snapshot):
            return None
        for entry in delta_entries(context.stores, snapshot, sieve.keep_entries):
            files[entry.partition, entry.bucket].append(entry.file)
    return Commits(context, older.schema_id, before.id > after.id, files)


def _line(context: TableContext, older: Snapshot, newer: Snapshot) -> list[Snapshot] | None:
    """All snapshots from the one to the other, if they are what stands in the table."""
    if newer.id - older.id > _MOST_COMMITS:
        return None
    try:
        line = [context.stores.snapshots.get(number) for number in range(older.id, newer.id + 1)]
    except (NotFound, FileMissing):
        return None
    return line if line[0] == older and line[-1] == newer else None


def _marks_rows(context: TableContext, previous: Snapshot, snapshot: Snapshot) -> bool:
    """Whether a commit that is no compaction changed which rows of files count."""
    if previous.index_manifest == snapshot.index_manifest:
        return False
    return dict(vectors_at(context, previous)) != dict(vectors_at(context, snapshot))


# --- The keys themselves ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChangedKeys:
    """Keys of files of one bucket in ascending order, each once, so many at a time."""

    context: TableContext
    partition: bytes
    bucket: int
    files: Sequence[DataFile]
    masked: Sequence[DataFile] = ()
    """Files of which only those rows count whose marks the two states do not share."""
    vectors: tuple[Vectors, Vectors] = ({}, {})

    def chunks(self) -> Iterator[tuple[pa.Array, ...]]:
        """The columns of the keys."""
        held: list[tuple[pa.Array, ...]] = []
        count = 0
        for keys in self._distinct():
            held.append(keys)
            count += len(keys[0])
            if count >= CHUNK_KEYS:
                yield _joined(held)
                held, count = [], 0
        if held:
            yield _joined(held)

    def _distinct(self) -> Iterator[tuple[pa.Array, ...]]:
        order = self.context.merge_order
        for section in cut_sections([*self.files, *self.masked], self.context.key_types):
            for window in windows([self._keys_of(run) for run in section.runs], order):
                rows = pa.concat_batches(window)
                columns = [rows.column(name) for name in order.key]
                codes = ordering.key_codes(columns)
                ascending = ordering.argsort(codes)
                firsts = ascending[ordering.changes([column[ascending] for column in codes])]
                yield tuple(column.take(pa.array(firsts)) for column in columns)

    def _keys_of(self, run: SortedRun) -> Iterator[pa.RecordBatch]:
        masked = {file.file_name for file in self.masked}
        for file in run.files:
            yield from self._marked_keys(file) if file.file_name in masked else self._read(file)

    def _read(self, file: DataFile, with_places: bool = False) -> Iterator[pa.RecordBatch]:
        fields = (*self.context.key_fields, ROW_INDEX) if with_places else self.context.key_fields
        reader = SplitReader(self.context, tuple(fields))
        return reader.read_stored(Split(self.partition, self.bucket, (Section((SortedRun((file,)),)),)))

    def _marked_keys(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        store, name = self.context.vector_store, file.file_name
        old, new = (store.read(side[name]) if name in side else NO_POSITIONS for side in self.vectors)
        marks = np.setxor1d(old, new, assume_unique=True)
        for batch in self._read(file, with_places=True):
            is_marked = np.isin(np.asarray(batch.column(ROW_INDEX.name)), marks, assume_unique=True)
            yield batch.drop_columns([ROW_INDEX.name]).filter(pa.array(is_marked))


def _joined(parts: Sequence[tuple[pa.Array, ...]]) -> tuple[pa.Array, ...]:
    return parts[0] if len(parts) == 1 else tuple(map(pa.concat_arrays, zip(*parts, strict=True)))


__all__ = ["ChangedKeys", "Commits", "commits_between", "is_worth_looking_up"]
