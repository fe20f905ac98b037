"""Where the events of a read of changes come from: files as they are stored, or the merged rows of a state.

Events are batches of `_VALUE_KIND`, `_SEQUENCE_NUMBER` if it is among the fields, and table columns. What was appended
to a table without a key has been inserted. Differences of two states are a third source, in `diff`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Protocol

import numpy as np
import pyarrow as pa

from lakebed.definition.context import TableContext
from lakebed.definition.row_rules import lowest_level_counts
from lakebed.definition.shown_defaults import with_defaults
from lakebed.lsm.merge_runs import merge_levels, merge_runs
from lakebed.lsm.sections import Section, SortedRun
from lakebed.merge.levels import with_level
from lakebed.metadata.manifest import ManifestEntry
from lakebed.read.keyed_reader import ReaderFor
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split, needs_merge
from lakebed.records import dataclass
from lakebed.schema import system_columns
from lakebed.types import key_value
from lakebed.types.key_value import KIND_FIELD, SEQUENCE_NUMBER, VALUE_KIND
from lakebed.types.logical import DataField
from lakebed.types.predicate import Predicate
from lakebed.types.row_kind import RowKind, is_retract

_GATHERED_ROWS = 8192
_GATHERED_FILES = 1024


class EventSource(Protocol):
    """Something to read events from."""

    @property
    def splits(self) -> tuple[Split, ...]:
        """The files that will be opened."""

    def read(self) -> Iterator[pa.RecordBatch]:
        """The events, in order."""

    def pieces(self, keeps_buckets: bool) -> Sequence[EventSource]:
        """The same events in pieces, in order, each of which can be read anywhere.

        With `keeps_buckets`, files of a bucket that follow one another are in one piece: changes are told by several
        rows, which may lie in two files.
        """


@dataclass(frozen=True)
class JoinedEvents:
    """Pieces one after the other."""

    sources: Sequence[EventSource]

    @property
    def splits(self) -> tuple[Split, ...]:
        """See `EventSource.splits`."""
        return tuple(split for source in self.sources for split in source.splits)

    def read(self) -> Iterator[pa.RecordBatch]:
        """See `EventSource.read`."""
        for source in self.sources:
            yield from source.read()

    def pieces(self, keeps_buckets: bool) -> Sequence[EventSource]:
        """See `EventSource.pieces`."""
        return [piece for source in self.sources for piece in source.pieces(keeps_buckets)]


@dataclass(frozen=True)
class StoredEvents:
    """Rows of files one after the other, as they were written. `fields` may include the sequence number."""

    context: TableContext
    entries: Sequence[ManifestEntry]
    fields: tuple[DataField, ...]

    @property
    def splits(self) -> tuple[Split, ...]:
        """See `EventSource.splits`."""
        return tuple(
            Split(entry.partition, entry.bucket, (Section((SortedRun((entry.file,)),)),)) for entry in self.entries
        )

    def read(self) -> Iterator[pa.RecordBatch]:
        """See `EventSource.read`."""
        return stored_events(self.context, self.splits, self.fields)

    def pieces(self, keeps_buckets: bool) -> Sequence[EventSource]:
        """See `EventSource.pieces`."""
        groups: Iterable[Sequence[ManifestEntry]] = ([entry] for entry in self.entries)
        if keeps_buckets:
            by_bucket = groupby(self.entries, key=lambda entry: (entry.partition, entry.bucket))
            groups = (list(entries) for _, entries in by_bucket)
        return [replace(self, entries=entries) for entries in groups]


def stored_events(
    context: TableContext, splits: Iterable[Split], fields: tuple[DataField, ...]
) -> Iterator[pa.RecordBatch]:
    """Rows of splits file by file, as they were written; those of small files come together."""
    reader = SplitReader(context, (system_columns.VALUE_KIND, *fields) if context.has_key else fields)
    for batch in _gathered(batch for split in splits for batch in reader.read_stored(split)):
        rows = with_defaults(batch, context.shown_defaults)
        yield rows if context.has_key else of_kind(rows, RowKind.INSERT)


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order, small batches joined: what is done to each costs the same for one row and many.

    A thousand small files are joined at most, so that what is read of the first does not wait for ever.
    """
    few: list[pa.RecordBatch] = []
    row_count = 0
    for batch in batches:
        if few and (row_count + batch.num_rows > _GATHERED_ROWS or len(few) == _GATHERED_FILES):
            yield _joined(few)
            few, row_count = [], 0
        few.append(batch)
        row_count += batch.num_rows
    if few:
        yield _joined(few)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


@dataclass(frozen=True)
class StateEvents:
    """What a state holds: merged rows with the kinds they were written with, those that take away among them.

    Of keys that are gone compaction drops the last trace sooner or later; until then they are here.
    """

    context: TableContext
    splits: tuple[Split, ...]
    fields: tuple[DataField, ...]
    predicate: Predicate | None = None

    def read(self) -> Iterator[pa.RecordBatch]:
        """See `EventSource.read`."""
        if not self.context.has_key:
            reader = SplitReader(self.context, self.fields, self.predicate)
            for split in self.splits:
                for batch in reader.read(split):
                    yield of_kind(batch, RowKind.INSERT)
            return
        columns = tuple(field for field in self.fields if field is not system_columns.SEQUENCE_NUMBER)
        merged = MergedRows(self.context, columns)
        for split in self.splits:
            for section in split.sections:
                for batch in merged.with_retracts(split, section):
                    has_numbers = system_columns.SEQUENCE_NUMBER in self.fields
                    yield batch if has_numbers else batch.drop_columns([SEQUENCE_NUMBER])

    def pieces(self, keeps_buckets: bool) -> Sequence[EventSource]:
        """See `EventSource.pieces`. A state has one row of each key."""
        return [replace(self, splits=(split,)) for split in self.splits]


@dataclass(frozen=True)
class MergedRows:
    """Merged rows of a primary-key table in key order, with the system columns that plain reads leave out."""

    context: TableContext
    columns: tuple[DataField, ...]
    reader_for: ReaderFor = SplitReader
    """Makes the reader of files, which may leave out rows of some keys."""

    def of(self, split: Split, section: Section) -> Iterator[pa.RecordBatch]:
        """Visible rows of a section in key-value shape."""
        for batch in self.with_retracts(split, section):
            retracts = is_retract(key_value.kinds(batch))
            yield batch.filter(pa.array(~retracts)) if np.any(retracts) else batch

    def with_retracts(self, split: Split, section: Section) -> Iterator[pa.RecordBatch]:
        """The same, with rows that stand for keys that are gone."""
        for batch in self._merged(split, section):
            yield with_defaults(batch, self.context.shown_defaults)

    def _merged(self, split: Split, section: Section) -> Iterator[pa.RecordBatch]:
        context = self.context
        if not needs_merge(section):
            yield from self._run(split, section.runs[0])
        elif lowest_level_counts(context):
            levelled = [self._levelled(split, run) for run in section.runs]
            yield from merge_levels(levelled, context.merge_order, context.reading_engine)
        else:
            runs = [self._run(split, run) for run in section.runs]
            yield from merge_runs(runs, context.merge_order, context.reading_engine)

    def _run(self, split: Split, run: SortedRun) -> Iterator[pa.RecordBatch]:
        order = self.context.merge_order
        names = {field.name for field in self.columns}
        besides = self.context.merge_engine.needed_columns(frozenset(names)) | {*order.key, *order.sequence_fields}
        more = tuple(field for field in self.context.schema.fields if field.name in besides - names)
        fields = (system_columns.SEQUENCE_NUMBER, system_columns.VALUE_KIND, *self.columns, *more)
        yield from self.reader_for(self.context, fields).read_stored(split.with_sections((Section((run,)),)))

    def _levelled(self, split: Split, run: SortedRun) -> Iterator[pa.RecordBatch]:
        for file in run.files:
            for batch in self._run(split, SortedRun((file,))):
                yield with_level(batch, file.level)


def of_kind(rows: pa.RecordBatch, kind: RowKind) -> pa.RecordBatch:
    """The rows as events of one kind."""
    kinds = pa.repeat(pa.scalar(int(kind), pa.int8()), rows.num_rows)
    if VALUE_KIND in rows.schema.names:
        return rows.set_column(rows.schema.get_field_index(VALUE_KIND), KIND_FIELD, kinds)
    return pa.RecordBatch.from_arrays([kinds, *rows.columns], schema=pa.schema([KIND_FIELD, *rows.schema]))


__all__ = [
    "EventSource",
    "JoinedEvents",
    "MergedRows",
    "StateEvents",
    "StoredEvents",
    "of_kind",
    "stored_events",
]
