"""Replaces columns of existing rows by files that hold only those: `data-evolution.enabled`.

A change to some rows of a range writes the columns it changes for all rows of that range, in one file that stands
beside the older ones; the rest of the rows is not written again. Where ranges begin and end stays as it is, so whoever
changes the same range meanwhile is in the way. Compaction makes one file of neighbouring ranges again.

Rows that are marked as deleted keep their places, and so their ids: new columns have a value for them too, and a
compaction takes their marks along. Only if the table allows other ids, by `data-evolution.compaction.rewrite-row-ids`,
does a compaction leave them out; the rows that stay are new ones then.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.commit.message import CommitMessage
from lakebed.datafiles.rolling_writer import FileLayout, RollingWriter
from lakebed.definition.context import TableContext
from lakebed.definition.file_rules import write_rules
from lakebed.definition.statement_rules import Statement, Way, rule_of
from lakebed.errors import CommitConflict, InvalidArgument, Unsupported
from lakebed.fileio.base import FileIO
from lakebed.lsm.sections import Section
from lakebed.metadata.data_file import DataFile, FileSource, first_row_id
from lakebed.metadata.deletion_vector import NO_POSITIONS, Positions, Vectors
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import DATA_EVOLUTION_ENABLED
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split, stitched_sections
from lakebed.records import dataclass
from lakebed.schema.system_columns import ROW_ID
from lakebed.types.logical import DataField
from lakebed.write.conform import Conformer

_Rows = npt.NDArray[np.int64]
_UNLIMITED_BYTES = 1 << 62


@dataclass(frozen=True, slots=True)
class RowRange:
    """Rows with ids from `first` on, and the files that hold their columns."""

    entry: ManifestEntry
    section: Section

    @property
    def first(self) -> int:
        """The id of the first row."""
        return first_row_id(self.section.files[0])

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.section.files[0].row_count


def refuse_deletes(context: TableContext) -> None:
    """Raises where single rows can not go away: the ids of a range have no gaps, so rows can only be marked."""
    rule = rule_of(Statement.DELETE, context.options, has_key=context.has_key)
    if rule.way is Way.REFUSED:
        raise Unsupported(f"{Statement.DELETE} of table `{context.name}`: {rule.why}", hint=rule.hint)


@dataclass(frozen=True)
class ColumnChanges:
    """Changes to columns of rows that were read in the state of a snapshot."""

    context: TableContext
    base: Snapshot | None
    fileio: FileIO

    def messages(self, changed: pa.Table) -> list[CommitMessage]:
        """Files for the new versions of rows, which bring their ids along. Nothing is visible yet."""
        ids, rows = self._in_order(changed)
        return [message for part in self.ranges() for message in self._of_range(part, ids, rows)]

    def messages_in(self, part: RowRange, changed: pa.Table) -> list[CommitMessage]:
        """The same for rows of one range. May run in a task."""
        return self._of_range(part, *self._in_order(changed))

    def places(self, ids: npt.ArrayLike) -> dict[str, _Rows]:
        """Where the rows with these ids lie: positions by the file that stands for their range."""
        wanted = np.unique(np.asarray(ids, dtype=np.int64))
        found: dict[str, _Rows] = {}
        for part in self.ranges():
            start, stop = np.searchsorted(wanted, (part.first, part.first + part.count))
            if start < stop:
                found[part.section.files[0].file_name] = wanted[start:stop] - part.first
        return found

    def ranges(self) -> list[RowRange]:
        """All ranges of rows, in the order of their ids."""
        return row_ranges(self.context, live_files(self.context.stores, self.base))

    def _in_order(self, changed: pa.Table) -> tuple[_Rows, pa.RecordBatch]:
        ids = np.asarray(changed.column(ROW_ID.name)).astype(np.int64)
        rows = self._conformed(changed.select([field.name for field in self.context.schema.fields]))
        order = np.argsort(ids, kind="stable")
        return ids[order], rows.take(pa.array(order))

    def _of_range(self, part: RowRange, ids: _Rows, rows: pa.RecordBatch) -> list[CommitMessage]:
        start, stop = np.searchsorted(ids, (part.first, part.first + part.count))
        if start == stop:
            return []
        file = self._column_file(part, ids[start:stop] - part.first, rows.slice(start, stop - start))
        if file is None:
            return []
        return [CommitMessage(part.entry.partition, part.entry.bucket, part.entry.total_buckets, 0, (file,))]

    def _conformed(self, rows: pa.Table) -> pa.RecordBatch:
        conformer = Conformer(self.context.name, self.context.schema.fields)
        return conformer.conform(rows.combine_chunks().to_batches()[0])[0]

    def _column_file(self, part: RowRange, places: _Rows, new: pa.RecordBatch) -> DataFile | None:
        """The columns of a range in which some of the rows are new; None if all are as they were."""
        context = self.context
        split = Split(part.entry.partition, part.entry.bucket, (part.section,))
        old = pa.Table.from_batches(SplitReader(context, context.schema.fields).read_stored(split)).combine_chunks()
        columns: dict[DataField, pa.Array] = {}
        for field in context.schema.fields:
            before, after = old.column(field.name).combine_chunks(), new.column(field.name)
            if not before.take(pa.array(places)).equals(after):
                columns[field] = _with(before, places, after)
        moved = [field.name for field in columns if field.name in context.schema.partition_keys]
        if moved:
            raise InvalidArgument(
                f"`{moved[0]}` is a partition column of table `{context.name}`, whose rows stay where they are",
                hint=f"leave it as it is: the table has `{DATA_EVOLUTION_ENABLED.key}`",
            )
        return self._written(part, columns) if columns else None

    def _written(self, part: RowRange, columns: Mapping[DataField, pa.Array]) -> DataFile:
        layout = FileLayout(self.context.schema.id, tuple(columns), tracks_rows=True)
        writer = _one_file_writer(self.context, part.entry, layout, self.fileio, FileSource.APPEND)
        writer.write(pa.RecordBatch.from_arrays(list(columns.values()), names=[field.name for field in columns]))
        (file,) = writer.close()
        names = tuple(field.name for field in columns)
        known = file.value_stats_cols if file.value_stats_cols is not None else names
        return replace(file, first_row_id=part.first, write_cols=names, value_stats_cols=known)


def row_ranges(context: TableContext, live: Sequence[ManifestEntry]) -> list[RowRange]:
    """The ranges that make up a state, in the order of their ids."""
    found: list[RowRange] = []
    for place in dict.fromkeys((entry.partition, entry.bucket) for entry in live):
        entries = [entry for entry in live if (entry.partition, entry.bucket) == place]
        sections = stitched_sections([entry.file for entry in entries], context.name)
        found += [RowRange(entries[0], section) for section in sections]
    return sorted(found, key=lambda part: part.first)


def range_guard(
    context: TableContext, base: Snapshot | None, firsts: Collection[int]
) -> Callable[[Sequence[ManifestEntry]], None]:
    """Raises, when it is given the live files of a commit, if somebody has changed one of the ranges since `base`.

    Ranges are named by the ids of their first rows. Who has read rows to change or to delete them has seen old values.
    """
    parts = row_ranges(context, live_files(context.stores, base)) if firsts else []
    before = {part.first: _names(part.section.files) for part in parts if part.first in firsts}
    return lambda live: check_ranges(live, before, context.name)


def check_ranges(live: Sequence[ManifestEntry], before: Mapping[int, frozenset[str]], table: str) -> None:
    """Raises if the files of a range, named by the id of its first row, are not those from before."""
    now: dict[int, set[str]] = {first: set() for first in before}
    for entry in live:
        if entry.file.first_row_id in now:
            now[entry.file.first_row_id].add(entry.file.file_name)
    for first, names in before.items():
        if now[first] != names:
            raise CommitConflict(
                f"table `{table}`: rows from id {first} on were changed or compacted meanwhile",
                hint="do it again: nothing was changed",
            )


def files_by_range(files: Sequence[DataFile]) -> dict[int, frozenset[str]]:
    """Names of files by the id of their first row."""
    firsts = dict.fromkeys(first_row_id(file) for file in files)
    return {first: _names([file for file in files if file.first_row_id == first]) for first in firsts}


def joined_file(context: TableContext, entry: ManifestEntry, files: Sequence[DataFile], fileio: FileIO) -> DataFile:
    """One file in the place of those of neighbouring ranges."""
    sections = tuple(stitched_sections(files, context.name))
    layout = FileLayout(context.schema.id, context.schema.fields, tracks_rows=True)
    writer = _one_file_writer(context, entry, layout, fileio, FileSource.COMPACT)
    split = Split(entry.partition, entry.bucket, sections)
    for batch in SplitReader(context, context.schema.fields, use_threads=False).read_stored(split):
        writer.write(batch)
    (file,) = writer.close()
    return replace(
        file,
        first_row_id=min(first_row_id(old) for old in files),
        min_sequence_number=min(old.min_sequence_number for old in files),
        max_sequence_number=max(old.max_sequence_number for old in files),
    )


def moved_marks(context: TableContext, old: Sequence[DataFile], vectors: Vectors, joined: DataFile) -> Positions:
    """Which rows of a file that stands for others are gone: those that were marked in these."""
    first = first_row_id(joined)
    marks = [NO_POSITIONS]
    for section in stitched_sections(old, context.name):
        anchor = section.files[0]
        if anchor.file_name in vectors:
            marks.append(context.vector_store.read(vectors[anchor.file_name]) + (first_row_id(anchor) - first))
    return np.unique(np.concatenate(marks))


def _one_file_writer(
    context: TableContext, entry: ManifestEntry, layout: FileLayout, fileio: FileIO, source: FileSource
) -> RollingWriter:
    """A writer that never begins a second file: rows of a range are counted from its first."""
    rules = replace(write_rules(context), target_size_bytes=_UNLIMITED_BYTES, target_row_count=None, indexes=())
    prefix, names = context.new_data_file_prefix(), itertools.count()
    return RollingWriter(
        fileio,
        lambda name: context.data_file_path(entry.partition, entry.bucket, name),
        lambda: f"{prefix}-{next(names)}.{rules.extension}",
        layout,
        rules,
        context.clock,
        source=source,
    )


def _with(column: pa.Array, places: _Rows, values: pa.Array) -> pa.Array:
    """The column with other values in some places."""
    sources = np.arange(len(column))
    sources[places] = len(column) + np.arange(len(values))
    return pa.concat_arrays([column, values]).take(pa.array(sources))


def _names(files: Sequence[DataFile]) -> frozenset[str]:
    return frozenset(file.file_name for file in files)


__all__ = [
    "ColumnChanges",
    "RowRange",
    "check_ranges",
    "files_by_range",
    "joined_file",
    "moved_marks",
    "range_guard",
    "refuse_deletes",
    "row_ranges",
]
