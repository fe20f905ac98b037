"""Turns rows into new files of their buckets: what a writer does in place, and what each task of a Spark job does.

Rows are fitted to the schema, routed to partitions and buckets, and written as they come. What comes out are messages
for the one who commits; nothing is visible before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from lakebed.cleanup import AbortedOnFailure, on_failure
from lakebed.commit.message import CommitMessage
from lakebed.datafiles.rolling_writer import FileLayout, RollingWriter, WriteRules
from lakebed.definition.bucket_mode import WritePart
from lakebed.definition.changelog_rules import normalises_input
from lakebed.definition.context import TableContext, once_per_context
from lakebed.definition.file_rules import changelog_write_rules, waiting_rules, write_rules
from lakebed.definition.incoming import to_batches
from lakebed.definition.partition_spec import Overwrite
from lakebed.errors import InvalidArgument
from lakebed.fileio.base import FileIO
from lakebed.metadata.entries import Bucket
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    IGNORE_DELETE,
    IGNORE_UPDATE_BEFORE,
    LAKEBED_COUNT_FIELDS,
    ROWKIND_FIELD,
    SINK_ROLLING_POLICY_FILE_SIZE,
    WRITE_MERGE_SCHEMA,
)
from lakebed.schema.system_columns import TRACKING_FIELDS
from lakebed.types.row_kind import RowKind, is_retract, kinds_from_text
from lakebed.write.buffers import BucketWriters
from lakebed.write.clustering import clustering_of
from lakebed.write.conform import Conformer
from lakebed.write.placement import PlacementSetup, placement_of
from lakebed.write.placement.kept_keys import KeptPlace
from lakebed.write.placement.postponed import waiting_file_prefix
from lakebed.write.placement.table_keys import KnownKeys
from lakebed.write.route import grouped
from lakebed.write.sequence import BucketStates
from lakebed.write.told_input import InputNormaliser


class FileMaker(AbortedOnFailure):
    """Files of one commit, or of one task's part of it.

    `states` tells where sequence numbers stand, and is asked only if it matters; `prefixes` are how the names of data
    and changelog files begin. With `carries_ids` rows come with the ids they have, in the columns of row tracking.
    `part` is set where several makers share a commit of a table with dynamic buckets. Where buckets are postponed,
    `commit_user` is part of the names of files whose rows wait, and `bucket_counts` are those of partitions whose rows
    shall not. With `is_taught` somebody brings the keys that an index of all keys would be read for (`learn`); with
    `kept_keys` that index stays on this machine's disk.
    """

    def __init__(
        self,
        context: TableContext,
        *,
        row_kind: str | None,
        overwrite: Overwrite | None,
        states: Callable[[], BucketStates],
        fileio: FileIO,
        prefixes: tuple[str, str] | None = None,
        carries_ids: bool = False,
        part: WritePart | None = None,
        commit_user: str | None = None,
        bucket_counts: Mapping[bytes, int] | None = None,
        is_taught: bool = False,
        kept_keys: KeptPlace | None = None,
        clusters: bool = False,
    ) -> None:
        self._context = context
        self._part = part
        self._row_kind = row_kind
        self._overwrite = overwrite
        self._states = states
        self._base_snapshot_id = 0
        self._fileio = fileio
        _check_row_kind(context, row_kind)
        self._conformer = _conformer(context, row_kind, carries_ids)
        self._placement = placement_of(context)(
            PlacementSetup(
                context,
                fileio,
                self._noted_states,
                overwrite,
                part,
                bucket_counts or {},
                is_taught=is_taught,
                kept_keys=kept_keys,
            )
        )
        self._rules = _rolling_by_sink(context, write_rules(context))
        self._commit_user = commit_user
        self._layout = file_layout(context, carries_ids=carries_ids)
        clustering = clustering_of(context) if clusters and not carries_ids else None
        self._buckets = BucketWriters(
            context, self._new_writer, self._next_sequence_number, self._new_changelog_writer, clustering
        )
        self._counter = itertools.count()
        self._prefixes = prefixes
        self._prefix = self._placement.file_prefix(prefixes[0] if prefixes else context.new_data_file_prefix())

    def write(self, data: Any, give_up: Callable[[], None]) -> None:
        """Adds rows. A row that does not fit raises before any row of its batch is taken.

        `give_up` is called when some rows of a batch are taken and others are not: no commit can be right then.
        """
        for batch in to_batches(data):
            rows, kind_column = self._conformer.conform(batch)
            rows, kinds = self._with_kinds(rows, kind_column)
            self._take(rows, kinds, give_up)

    def learn(self, known: KnownKeys, row_count: int) -> None:
        """Takes note of where keys of the table lie, before any row of theirs comes."""
        self._placement.learn(known, row_count)

    def write_stored(self, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """Adds rows that come from a file of the table."""
        self._take(rows, kinds, lambda: None)

    def finish(self) -> list[CommitMessage]:
        """Writes what is left, and says what was made."""
        for rows, kinds in self._placement.kept_back():
            self.write_stored(rows, kinds)
        self._placement.finish()
        written = self._buckets.finish()
        indexes = self._placement.index_files(written.keys())
        base_id = self._placement.base_snapshot_id
        normaliser = self._normaliser()
        return [
            CommitMessage(
                *bucket,
                self._placement.total_buckets(bucket[0]),
                self._base_snapshot_id if base_id is None else base_id,
                files.data,
                files.changelog
                if normaliser is None
                else normaliser.told(bucket, files.changelog, self._states().snapshot),
                new_index_files=(indexes[bucket],) if bucket in indexes else (),
                recorded_files=() if normaliser is None else files.changelog,
            )
            for bucket, files in written.items()
        ]

    def remember(self, snapshot: Snapshot) -> None:
        """To be called once the messages are committed: the next write of this handle need not read again."""
        self._placement.remember(snapshot)

    def abort(self) -> None:
        """Gives up open files. Finished ones are the caller's to remove."""
        self._buckets.abort()
        self._placement.abort()

    # --- inside --------------------------------------------------------------------------------------------------

    def _noted_states(self) -> BucketStates:
        """Where numbers stand. A commit that was placed or numbered by it has to know what it starts from."""
        states = self._states()
        self._base_snapshot_id = states.snapshot_id
        return states

    def _take(self, rows: pa.RecordBatch, kinds: pa.Array, give_up: Callable[[], None]) -> None:
        if not rows.num_rows:
            return
        placed = self._placement.place(rows, kinds)
        groups = list(grouped(self._context, placed.rows, placed.kinds, placed.buckets, placed.partitions))
        if self._overwrite is not None:
            for routed in groups:
                self._overwrite.check(routed.partition)
        with on_failure(give_up):
            for routed in groups:
                self._buckets.take(routed)

    def _normaliser(self) -> InputNormaliser | None:
        """Tells what rows change if they are committed on top of the snapshot that their numbers continue from."""
        if self._overwrite is not None or not normalises_input(self._context.options):
            return None
        return InputNormaliser(self._context, self._fileio, f"{self._changelog_prefix}-told")

    @cached_property
    def _changelog_prefix(self) -> str:
        return self._prefixes[1] if self._prefixes else self._context.new_changelog_file_prefix()

    @cached_property
    def _waiting_prefix(self) -> str:
        return waiting_file_prefix(self._context, self._commit_user or self._context.ids.new_id())

    def _new_file_name(self) -> str:
        return f"{self._prefix}-{next(self._counter)}.{self._rules.extension}"

    def _with_kinds(self, rows: pa.RecordBatch, given: pa.Array | None) -> tuple[pa.RecordBatch, pa.Array]:
        """Kinds of all rows, and the rows that the table's options let through."""
        options = self._context.options
        kind_field = options[ROWKIND_FIELD]
        if kind_field is not None and self._context.has_key:
            kinds = kinds_from_text(rows.column(kind_field), kind_field)
        elif given is not None and self._row_kind is not None:
            kinds = kinds_from_text(given, self._row_kind)
        else:
            return rows, pa.array(np.zeros(rows.num_rows, dtype=np.int8))
        numbers = np.asarray(kinds)
        drop = np.zeros(len(numbers), dtype=np.bool_)
        if options[IGNORE_DELETE]:
            drop |= is_retract(numbers)
        if options[IGNORE_UPDATE_BEFORE]:
            drop |= numbers == RowKind.UPDATE_BEFORE
        if np.any(drop):
            keep = pa.array(~drop)
            rows, kinds = rows.filter(keep), kinds.filter(keep)
        self._context.merge_engine.check_written(rows, np.asarray(kinds))
        return rows, kinds

    def _next_sequence_number(self, bucket: Bucket) -> int:
        total = self._placement.total_buckets(bucket[0])
        if self._overwrite is not None or bucket[1] == POSTPONE_BUCKET or (total < 0 and not self._context.has_key):
            return 0
        states = self._noted_states()
        states.check_bucket_count(self._context.name, bucket[0], total)
        return states.next_sequence_number(*bucket)

    def _path_in(self, bucket: Bucket) -> Callable[[str], str]:
        return lambda name: self._context.data_file_path(*bucket, name)

    def _new_writer(self, bucket: Bucket) -> RollingWriter:
        if bucket[1] == POSTPONE_BUCKET:
            return self._new_waiting_writer(bucket)
        return RollingWriter(
            self._fileio,
            self._path_in(bucket),
            self._new_file_name,
            self._layout,
            self._rules,
            self._context.clock,
            first_sequence_number=0 if self._context.has_key else self._next_sequence_number(bucket),
        )

    def _new_waiting_writer(self, bucket: Bucket) -> RollingWriter:
        rules = waiting_rules(self._context)
        return RollingWriter(
            self._fileio,
            self._path_in(bucket),
            lambda: f"{self._waiting_prefix}-{next(self._counter)}.{rules.extension}",
            self._layout,
            rules,
            self._context.clock,
        )

    def _new_changelog_writer(self, bucket: Bucket) -> RollingWriter:
        rules = changelog_write_rules(self._context)
        return RollingWriter(
            self._fileio,
            self._path_in(bucket),
            lambda: f"{self._changelog_prefix}-{next(self._counter)}.{rules.extension}",
            self._layout,
            rules,
            self._context.clock,
        )


@once_per_context
def _conformer(context: TableContext, row_kind: str | None, carries_ids: bool) -> Conformer:
    counting = frozenset(context.options[LAKEBED_COUNT_FIELDS])
    fields = (*context.schema.fields, *TRACKING_FIELDS) if carries_ids else context.schema.fields
    merges = context.options[WRITE_MERGE_SCHEMA]
    return Conformer(context.name, fields, extra=row_kind, counting=counting, completes=merges)


@once_per_context
def file_layout(context: TableContext, *, carries_ids: bool = False) -> FileLayout:
    """What new files of a table look like inside. `carries_ids`: rows come with the ids they have."""
    key = context.key_fields if context.has_key else ()
    return FileLayout(context.schema.id, context.schema.fields, key, context.tracks_rows, carries_ids)


def _rolling_by_sink(context: TableContext, rules: WriteRules) -> WriteRules:
    """The rules with the size of files that this write asks for."""
    size_bytes = context.options[SINK_ROLLING_POLICY_FILE_SIZE]
    return rules if size_bytes is None else replace(rules, target_size_bytes=size_bytes)


def _check_row_kind(context: TableContext, row_kind: str | None) -> None:
    if row_kind is None:
        return
    if not context.has_key:
        raise InvalidArgument(
            f"table `{context.name}` has no primary key, so its rows have no kinds",
            hint="write without row_kind, or create the table with a primary key",
        )
    if row_kind in context.schema.field_names:
        raise InvalidArgument(
            f"row_kind names column `{row_kind}` of table `{context.name}` itself",
            hint="use a column that is not in the table, or set the option `rowkind.field`",
        )
