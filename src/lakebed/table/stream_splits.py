"""What a reader of changes reads of a snapshot, in pieces that can be read anywhere: its whole state, or its changes.

Changes are told by changelog files if the table has a producer, else by the rows a commit added. Rows are never
compared here: what stands in the files is what is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import groupby

import pyarrow as pa

from lakebed.errors import Unsupported
from lakebed.merge.aggregation import Aggregation
from lakebed.merge.first_row import FirstRow
from lakebed.metadata.data_file import creation_time_to_epoch
from lakebed.metadata.entries import changelog_entries, delta_entries, live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import (
    CHANGELOG_PRODUCER,
    MERGE_ENGINE,
    STREAMING_READ_APPEND_OVERWRITE,
    STREAMING_READ_OVERWRITE,
)
from lakebed.schema import system_columns
from lakebed.table.context import TableContext, num_levels
from lakebed.table.producers import FULL_COMPACTION, LOOKUP, NONE, producer
from lakebed.table.read import SplitReader
from lakebed.table.scan import FileSieve, splits_of
from lakebed.table.shown_defaults import with_defaults
from lakebed.table.splits import BucketFiles, Split, SplitRules, append_splits
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.key_value import VALUE_KIND
from lakebed.types.logical import DataField
from lakebed.types.row_kind import kinds_to_text

ROWKIND = "rowkind"
_UNLIMITED = SplitRules(1 << 62, 0)


class Telling(StrEnum):
    """How rows of a split are told."""

    AS_STORED = "as stored"
    """One after the other as they stand in the files, with their kinds."""
    AS_INSERTS = "as inserts"
    """Merged, and everything that is visible is `+I`."""
    AS_DELETES = "as deletes"
    """Merged, and everything that was visible is `-D`."""


@dataclass(frozen=True, slots=True)
class ChangeSplit:
    """Files of one bucket, and how their rows are told."""

    split: Split
    telling: Telling


def refuse_unmergeable(context: TableContext) -> None:
    """Raises if rows as they were written say nothing of the rows of the table."""
    if context.has_key and context.options[MERGE_ENGINE] == Aggregation.name and producer(context.options) == NONE:
        raise _needs_producer(context, "what is written are parts of its rows", "lookup` or `full-compaction")


def refuse_unfollowable(context: TableContext) -> None:
    """As `refuse_unmergeable`; besides, rows that lose against the first one must not reach who follows the table."""
    refuse_unmergeable(context)
    if context.is_first_row and producer(context.options) == NONE:
        raise _needs_producer(context, f"merge engine `{FirstRow.name}` drops rows only after they are written", LOOKUP)


def _needs_producer(context: TableContext, why: str, what: str) -> Unsupported:
    return Unsupported(
        f"table `{context.name}` has merge engine `{context.options[MERGE_ENGINE]}` and no changelog producer: {why}, "
        "so there are no changes to read",
        hint=f"set `{CHANGELOG_PRODUCER.key}` to `{what}`; it tells of what is written from then on",
    )


def state_splits(context: TableContext, snapshot: Snapshot, created_since_ms: int | None = None) -> list[ChangeSplit]:
    """The whole state of a snapshot as far as no changelog will tell of it later."""
    lowest = _lowest_told_level(context)
    entries = [
        entry
        for entry in live_files(context.stores, snapshot, keep_entries=FileSieve(context, None).keep_entries)
        if entry.file.level >= lowest
    ]
    if created_since_ms is not None:
        entries = created_since(entries, created_since_ms)
    return _in_order(context, _merged(context, entries, Telling.AS_INSERTS))


def created_since(entries: Iterable[ManifestEntry], time_ms: int) -> list[ManifestEntry]:
    """Files that were written at that time or later, and those of which it is not known."""
    return [
        entry
        for entry in entries
        if entry.file.creation_time_ms is None or creation_time_to_epoch(entry.file.creation_time_ms) >= time_ms
    ]


def change_splits(context: TableContext, snapshot: Snapshot) -> list[ChangeSplit]:
    """What a snapshot changed. Compactions change nothing; overwrites are told if the table's options ask for it."""
    is_overwrite = snapshot.commit_kind == CommitKind.OVERWRITE
    if is_overwrite and context.has_key and context.options[STREAMING_READ_OVERWRITE]:
        return _in_order(context, _replaced(context, snapshot))
    if producer(context.options) != NONE:
        entries = changelog_entries(context.stores, snapshot)
    elif snapshot.commit_kind == CommitKind.APPEND or (
        is_overwrite and not context.has_key and context.options[STREAMING_READ_APPEND_OVERWRITE]
    ):
        entries = [entry for entry in delta_entries(context.stores, snapshot) if entry.kind == EntryKind.ADD]
    else:
        return []
    return _in_order(context, (ChangeSplit(split, Telling.AS_STORED) for e in entries for split in _alone(e)))


def _lowest_told_level(context: TableContext) -> int:
    """Rows below this level will be told by the compaction that lifts them, so a first plan leaves them out."""
    if not context.has_key:
        return 0
    made_by = producer(context.options)
    if made_by == FULL_COMPACTION:
        return num_levels(context.options) - 1
    return 1 if made_by == LOOKUP else context.lowest_visible_level


def _replaced(context: TableContext, snapshot: Snapshot) -> Iterator[ChangeSplit]:
    """What was there before an overwrite, then what is there now."""
    entries = delta_entries(context.stores, snapshot)
    gone = [entry for entry in entries if entry.kind == EntryKind.DELETE]
    new = [entry for entry in entries if entry.kind == EntryKind.ADD]
    yield from _merged(context, gone, Telling.AS_DELETES)
    yield from _merged(context, new, Telling.AS_INSERTS)


def _merged(context: TableContext, entries: list[ManifestEntry], telling: Telling) -> Iterator[ChangeSplit]:
    for split in splits_of(context, entries, FileSieve(context, None)):
        yield ChangeSplit(split, telling)


def _alone(entry: ManifestEntry) -> list[Split]:
    return append_splits(BucketFiles(entry.partition, entry.bucket, entry.total_buckets, (entry.file,)), _UNLIMITED)


def _in_order(context: TableContext, splits: Iterable[ChangeSplit]) -> list[ChangeSplit]:
    """By partition and bucket; within a bucket as they come, which is the order in which things happened."""
    return sorted(splits, key=lambda item: (context.partition_directory(item.split.partition), item.split.bucket))


@dataclass(frozen=True)
class ChangeReader:
    """Reads such pieces, with the kind of each row in front."""

    context: TableContext
    fields: tuple[DataField, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """Schema of the batches that come out."""
        return pa.schema([pa.field(ROWKIND, pa.string(), nullable=False), *to_arrow_schema(self.fields)])

    def read_all(self, splits: Iterable[ChangeSplit]) -> pa.Table:
        """Rows of all these, in order. What is merged is read by as many threads as the table's options allow."""
        batches: list[pa.RecordBatch] = []
        for telling, group in groupby(splits, key=lambda item: item.telling):
            if telling is Telling.AS_STORED:
                batches += [batch for item in group for batch in self.read(item)]
            else:
                reader = SplitReader(self.context, self.fields, keeps_everything=True)
                batches += [self._all(telling, rows) for rows in reader.read_all([item.split for item in group])]
        return pa.Table.from_batches(batches, schema=self.schema)

    def read(self, split: ChangeSplit) -> Iterator[pa.RecordBatch]:
        """Rows of one piece; no empty batches."""
        if split.telling is not Telling.AS_STORED:
            for batch in SplitReader(self.context, self.fields).read(split.split):
                yield self._all(split.telling, batch)
            return
        has_key = self.context.has_key
        stored = (system_columns.VALUE_KIND, *self.fields) if has_key else self.fields
        for batch in SplitReader(self.context, stored).read_stored(split.split):
            rows = with_defaults(batch, self.context.shown_defaults)
            kinds = kinds_to_text(rows.column(VALUE_KIND)) if has_key else pa.repeat("+I", rows.num_rows)
            if rows.num_rows:
                yield self._told(kinds, rows)

    def _all(self, telling: Telling, rows: pa.RecordBatch) -> pa.RecordBatch:
        return self._told(pa.repeat("+I" if telling is Telling.AS_INSERTS else "-D", rows.num_rows), rows)

    def _told(self, kinds: pa.Array, rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = [rows.column(field.name) for field in self.fields]
        return pa.RecordBatch.from_arrays([kinds, *columns], schema=self.schema)
