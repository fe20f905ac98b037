"""What a reader of changes reads of a snapshot, in pieces that can be read anywhere: its whole state, or its changes.

Changes are told by changelog files if the table has a producer, else by the rows a commit added. Rows are never
compared here: what stands in the files is what is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cached_property
from itertools import groupby

import numpy as np
import pyarrow as pa

from lakebed.changes.events import of_kind, stored_events
from lakebed.changes.views import ROWKIND_FIELD, kind_first
from lakebed.definition.changelog_rules import FULL_COMPACTION, LOOKUP, NONE, producer
from lakebed.definition.context import TableContext, num_levels
from lakebed.definition.row_rules import vectors_at
from lakebed.definition.shown_defaults import stored_part
from lakebed.errors import FileMissing, Unsupported
from lakebed.lsm.sections import Section
from lakebed.merge.aggregation import Aggregation
from lakebed.merge.first_row import FirstRow
from lakebed.metadata.deletion_vector import Vectors
from lakebed.metadata.entries import changelog_entries, created_since, delta_entries, live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import (
    CHANGELOG_PRODUCER,
    MERGE_ENGINE,
    STREAMING_READ_APPEND_OVERWRITE,
    STREAMING_READ_OVERWRITE,
    Options,
)
from lakebed.read.plan import FileSieve, splits_of
from lakebed.read.reader import SplitReader
from lakebed.read.scan_options import in_followed_partitions
from lakebed.read.splits import BucketFiles, Split, SplitRules, append_splits
from lakebed.records import dataclass
from lakebed.types import key_value
from lakebed.types import predicate as predicates
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.binary_row import encode_rows
from lakebed.types.logical import DataField
from lakebed.types.predicate import Predicate
from lakebed.types.predicate_evaluate import evaluate
from lakebed.types.row_kind import RowKind, is_retract

_UNLIMITED = SplitRules(1 << 62, 0)


class Telling(StrEnum):
    """How rows of a split are told."""

    AS_STORED = "as stored"
    """One after the other as they stand in the files, with their kinds."""
    AS_INSERTS = "as inserts"
    """Merged, and everything that is visible is `+I`."""
    AS_DELETES = "as deletes"
    """Merged, and everything that was visible is `-D`."""
    AS_STORED_LEAVING = "as stored, keys that leave"
    """As they stand in the files, but only rows of keys whose last one takes away."""
    AS_STORED_STAYING = "as stored, keys that stay"
    """Only rows of the other keys."""


_KINDS = {Telling.AS_INSERTS: RowKind.INSERT, Telling.AS_DELETES: RowKind.DELETE}


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


def state_splits(
    context: TableContext,
    snapshot: Snapshot,
    created_since_ms: int | None = None,
    predicate: Predicate | None = None,
) -> list[ChangeSplit]:
    """The whole state of a snapshot as far as no changelog will tell of it later, and as far as it may match."""
    context = as_told_in(context, snapshot)
    lowest, sieve = lowest_level_told(context), sieve_of(context, predicate)
    entries = [
        entry
        for entry in live_files(context.stores, snapshot, keep_metas=sieve.keep_metas, keep_entries=sieve.keep_entries)
        if entry.file.level >= lowest
    ]
    if created_since_ms is not None:
        entries = created_since(entries, created_since_ms)
    vectors = vectors_at(context, snapshot)
    merged = _merged(context, sieve.keep_live(entries), Telling.AS_INSERTS, vectors, sieve)
    return _in_order(context, merged) + _waiting(context, snapshot, sieve)


def _waiting(context: TableContext, snapshot: Snapshot, sieve: FileSieve) -> list[ChangeSplit]:
    """Rows that wait for their bucket, as they were written: without a changelog nobody will tell of them later.

    INVARIANT: in the order of their commits, in which they will be placed; clocks of writers may say another.
    """
    if producer(context.options) != NONE or not context.bucket_mode.postpones:
        return []

    def keep(entries: list[ManifestEntry]) -> list[ManifestEntry]:
        return sieve.keep_partitions([entry for entry in entries if entry.bucket == POSTPONE_BUCKET])

    entries = live_files(context.stores, snapshot, keep_metas=sieve.keep_metas, keep_entries=keep)
    return _in_order(context, (ChangeSplit(split, Telling.AS_STORED) for e in entries for split in _alone(e)))


def change_splits(
    context: TableContext, snapshot: Snapshot, predicate: Predicate | None = None, sieve: FileSieve | None = None
) -> list[ChangeSplit]:
    """What a snapshot changed. Compactions change nothing; overwrites are told if the table's options ask for it.

    Who asks for many snapshots makes the `sieve_of` them once.
    """
    context = as_told_in(context, snapshot)
    sieve = sieve or sieve_of(context, predicate)
    is_overwrite = snapshot.commit_kind == CommitKind.OVERWRITE
    if is_overwrite and context.has_key and context.options[STREAMING_READ_OVERWRITE]:
        # All that was in a partition goes first: a new number of buckets may bring a key to another one.
        replaced = _in_order(context, _replaced(context, snapshot, sieve))
        gone_first = {Telling.AS_DELETES: 0, Telling.AS_INSERTS: 1}
        return sorted(
            replaced,
            key=lambda item: (context.partition_directory(item.split.partition), gone_first[item.telling]),
        )
    # A state that came back from before there was a producer is told of by files too.
    if producer(context.options) != NONE or snapshot.changelog_manifest_list is not None:
        entries = _told_entries(context, snapshot, sieve)
    elif snapshot.commit_kind == CommitKind.APPEND or (
        is_overwrite and not context.has_key and context.options[STREAMING_READ_APPEND_OVERWRITE]
    ):
        changed = delta_entries(context.stores, snapshot, sieve.keep_partitions)
        entries = [entry for entry in changed if entry.kind == EntryKind.ADD]
    else:
        return []
    if stored_part(predicate, context.schema, context.shown_defaults) is not None:
        # No row of theirs hides one of another file, so each is judged alone.
        kept = sieve.may_hold_matches([entry.file for entry in entries])
        entries = [entry for entry, keep in zip(entries, kept.tolist(), strict=True) if keep]
    if context.bucket_mode.crosses_partitions:
        return _leaving_first(context, entries)
    return _in_order(context, (ChangeSplit(split, Telling.AS_STORED) for e in entries for split in _alone(e)))


def _told_entries(context: TableContext, snapshot: Snapshot, sieve: FileSieve) -> list[ManifestEntry]:
    """Changelog files of a snapshot. One that came back from a tag, or that a branch began with, may have none left."""
    try:
        return changelog_entries(context.stores, snapshot, sieve.keep_partitions)
    except FileMissing as error:
        if snapshot.id != context.stores.snapshots.earliest_id():
            raise
        raise FileMissing(
            f"table `{context.name}`: the changes of snapshot {snapshot.id} have expired; a tag brought its state back",
            hint=f"begin with the state of snapshot {snapshot.id}, or with the changes after it",
        ) from error


def _leaving_first(context: TableContext, entries: Iterable[ManifestEntry]) -> list[ChangeSplit]:
    """Keys may move between partitions in one commit: where they leave is told before where they come to.

    Bucket by bucket, all files together: the last row of a key may be in any of them.
    """
    buckets: dict[tuple[bytes, int], list[Section]] = {}
    for entry in entries:
        sections = buckets.setdefault((entry.partition, entry.bucket), [])
        sections += [section for split in _alone(entry) for section in split.sections]
    splits = [Split(*bucket, tuple(sections)) for bucket, sections in buckets.items()]
    tellings = (Telling.AS_STORED_LEAVING, Telling.AS_STORED_STAYING)
    return [part for telling in tellings for part in _in_order(context, (ChangeSplit(s, telling) for s in splits))]


def as_told_in(context: TableContext, snapshot: Snapshot) -> TableContext:
    """The table as it told its changes when the snapshot was made: the producer may have changed since."""
    if snapshot.schema_id == context.schema.id:
        return context
    then = producer(Options(context.schemas.get(snapshot.schema_id).options))
    meant = context.as_meant_in(snapshot)
    if producer(meant.options) == then:
        return meant
    return meant.with_schema(meant.schema, Options({**meant.options.raw, CHANGELOG_PRODUCER.key: then}))


def sieve_of(context: TableContext, predicate: Predicate | None = None) -> FileSieve:
    """Drops the partitions that are not to be followed, and what can not match a filter of rows."""
    parts = (in_followed_partitions(context), stored_part(predicate, context.schema, context.shown_defaults))
    given = [part for part in parts if part is not None]
    return FileSieve(context, predicates.conjunction(given) if given else None)


def lowest_level_told(context: TableContext) -> int:
    """Rows below this level will be told by the compaction that lifts them, so a first plan leaves them out."""
    if not context.has_key:
        return 0
    made_by = producer(context.options)
    if made_by == FULL_COMPACTION:
        return num_levels(context.options) - 1
    return 1 if made_by == LOOKUP else context.lowest_told_level


def _replaced(context: TableContext, snapshot: Snapshot, sieve: FileSieve) -> Iterator[ChangeSplit]:
    """What was there before an overwrite, then what is there now."""
    # Rows that wait for their bucket are not part of what is there.
    entries = delta_entries(context.stores, snapshot, sieve.keep_entries)
    gone = [entry for entry in entries if entry.kind == EntryKind.DELETE]
    new = [entry for entry in entries if entry.kind == EntryKind.ADD]
    before = context.stores.snapshots.get(snapshot.id - 1) if context.masks_old_rows else None
    # Entries that delete may have no statistics to judge them by.
    everything = FileSieve(context, None)
    yield from _merged(context, gone, Telling.AS_DELETES, vectors_at(context, before), everything)
    yield from _merged(context, new, Telling.AS_INSERTS, vectors_at(context, snapshot), everything)


def _merged(
    context: TableContext, entries: list[ManifestEntry], telling: Telling, vectors: Vectors, sieve: FileSieve
) -> Iterator[ChangeSplit]:
    for split in splits_of(context, entries, sieve, vectors):
        yield ChangeSplit(split, telling)


def _alone(entry: ManifestEntry) -> list[Split]:
    return append_splits(BucketFiles(entry.partition, entry.bucket, entry.total_buckets, (entry.file,)), _UNLIMITED)


def _in_order(context: TableContext, splits: Iterable[ChangeSplit]) -> list[ChangeSplit]:
    """By partition and bucket; within a bucket as they come, which is the order in which things happened."""
    return sorted(splits, key=lambda item: (context.partition_directory(item.split.partition), item.split.bucket))


@dataclass(frozen=True)
class ChangeReader:
    """Reads such pieces, with the kind of each row in front. `predicate` is about events: kinds and all columns."""

    context: TableContext
    fields: tuple[DataField, ...]
    predicate: Predicate | None = None

    @cached_property
    def schema(self) -> pa.Schema:
        """Schema of the batches that come out."""
        return pa.schema([ROWKIND_FIELD, *to_arrow_schema(self.fields)])

    def read_all(self, splits: Iterable[ChangeSplit]) -> pa.Table:
        """Rows of all these, in order. What is merged is read by as many threads as the table's options allow."""
        batches: list[pa.RecordBatch] = []
        for telling, group in groupby(splits, key=lambda item: item.telling):
            if telling is Telling.AS_STORED:
                batches += self._told(stored_events(self.context, (item.split for item in group), self._needed))
            elif telling not in _KINDS:
                batches += [batch for item in group for batch in self.read(item)]
            else:
                merged = self._merged_reader(keeps_everything=True).read_all([item.split for item in group])
                batches += self._told(of_kind(rows, _KINDS[telling]) for rows in merged)
        return pa.Table.from_batches(batches, schema=self.schema)

    def read(self, split: ChangeSplit) -> Iterator[pa.RecordBatch]:
        """Rows of one piece; no empty batches."""
        if split.telling is Telling.AS_STORED:
            return self._told(stored_events(self.context, [split.split], self._needed))
        if split.telling not in _KINDS:
            return self._told(self._of_some_keys(split))
        merged = self._merged_reader().read(split.split)
        return self._told(of_kind(rows, _KINDS[split.telling]) for rows in merged)

    def _of_some_keys(self, split: ChangeSplit) -> Iterator[pa.RecordBatch]:
        """Rows of the keys that leave, or of those that stay. Keys of one bucket's commit are held in memory."""
        context = self.context
        kinds, keys = [], []
        for batch in stored_events(context, [split.split], context.key_fields):
            kinds.append(key_value.kinds(batch))
            columns = [batch.column(field.name) for field in context.key_fields]
            keys.append(encode_rows(columns, context.key_types, arity_prefix=False))
        if not keys:
            return
        codes = np.asarray(pa.concat_arrays(keys).dictionary_encode().indices)
        last = np.empty(int(codes.max()) + 1 if len(codes) else 0, dtype=np.int64)
        last[codes] = np.arange(len(codes))
        leaves = is_retract(np.concatenate(kinds))[last][codes]
        wanted = leaves if split.telling is Telling.AS_STORED_LEAVING else ~leaves
        start = 0
        for batch in stored_events(context, [split.split], self._needed):
            yield batch.filter(pa.array(wanted[start : start + batch.num_rows]))
            start += batch.num_rows

    @cached_property
    def _needed(self) -> tuple[DataField, ...]:
        """Asked for, plus what the filter looks at."""
        looked_at = predicates.columns(self.predicate) if self.predicate else frozenset()
        besides = looked_at - {field.name for field in self.fields}
        return self.fields + tuple(field for field in self.context.schema.fields if field.name in besides)

    def _merged_reader(self, *, keeps_everything: bool = False) -> SplitReader:
        part = about_rows(self.context, self.predicate)
        return SplitReader(self.context, self._needed, part, keeps_everything=keeps_everything)

    def _told(self, events: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in map(kind_first, events):
            rows = batch if self.predicate is None else batch.filter(evaluate(self.predicate, batch))
            if rows.num_rows:
                columns = [rows.column(name) for name in self.schema.names]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def about_rows(context: TableContext, predicate: Predicate | None) -> Predicate | None:
    """What a filter of events says of the rows of the table, whatever happened to them."""
    return None if predicate is None else predicates.project_onto(predicate, frozenset(context.schema.field_names))
