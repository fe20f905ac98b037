"""Brings rows that wait for a bucket to their buckets, which is when readers begin to see them.

Waiting files are read in the order in which they were committed, and their rows go the way of all rows: sorted, merged,
numbered after what is in the bucket. So whoever writes to the buckets of a partition directly places first what waits
there: its rows are newer. Waiting files out, new files in is one commit. What comes after it is an ordinary compaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from lakebed.commit.attempt import Attempt
from lakebed.commit.committer import Changes
from lakebed.commit.conflict import check_conflicts
from lakebed.commit.message import CommitMessage
from lakebed.commit.replay import CommitIdentity
from lakebed.commit.sequence_state import stamped
from lakebed.definition.context import TableContext
from lakebed.definition.elsewhere import Elsewhere
from lakebed.definition.file_rules import committer_for
from lakebed.definition.row_rules import vectors_at
from lakebed.definition.shown_defaults import stored_part
from lakebed.errors import CommitConflict, Unsupported
from lakebed.fileio.base import FileIO
from lakebed.fileio.scratch import ScratchFileIO
from lakebed.lsm.sections import Section, SortedRun
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import Keep, in_buckets, live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.manifest_list import ManifestMeta
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import BUCKET, POSTPONE_MERGE_ON_READ, Options
from lakebed.read.plan import FileSieve, ScanPlan, splits_of
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.schema.system_columns import VALUE_KIND
from lakebed.types.predicate import Predicate
from lakebed.write.files import FileMaker
from lakebed.write.pieces import PieceWork
from lakebed.write.placement.postponed import first_count
from lakebed.write.sequence import BucketStates


@dataclass(frozen=True)
class WaitingRows:
    """The waiting rows of a table, also of one that does not postpone any more.

    `keep` chooses among its live entries; all by default. `counts` are the numbers of buckets of partitions that have
    no files in buckets yet, if somebody has chosen them already; `fixed_count` is that of all such partitions.
    """

    context: TableContext
    keep: Keep | None = None
    run_pieces: Elsewhere | None = None
    counts: Mapping[bytes, int] = field(default_factory=dict)
    fixed_count: int | None = None

    def place(self, identity: CommitIdentity) -> Snapshot | None:
        """Brings them to their buckets in one snapshot; None when no row waits."""
        latest = self.context.stores.snapshots.latest()
        # Read after the snapshot, so that it knows every column of its files.
        return replace(self, context=self.context.under_latest_schema())._place(identity, latest)

    def files(self, snapshot: Snapshot | None) -> dict[bytes, list[DataFile]]:
        """Waiting files by partition, in the order in which they are to be read: that of their commits."""

        def keep(entries: list[ManifestEntry]) -> list[ManifestEntry]:
            waiting = [entry for entry in entries if entry.bucket == POSTPONE_BUCKET]
            return waiting if self.keep is None else self.keep(waiting)

        found: dict[bytes, list[DataFile]] = defaultdict(list)
        for entry in live_files(self.context.stores, snapshot, keep_metas=_with_waiting, keep_entries=keep):
            found[entry.partition].append(entry.file)
        return dict(found)

    def write(self, waiting: dict[bytes, list[DataFile]], states: BucketStates, fileio: FileIO) -> list[CommitMessage]:
        """Writes the rows of waiting files to new files of their buckets."""
        counts = {
            partition: states.bucket_count(partition)
            or self.counts.get(partition, self.fixed_count)
            or first_count(
                self.context.options, sum(file.row_count for file in files), sum(file.size_bytes for file in files)
            )
            for partition, files in waiting.items()
        }
        reader = SplitReader(self.context, (VALUE_KIND, *self.context.schema.fields))
        with FileMaker(
            self.context,
            row_kind=None,
            overwrite=None,
            states=lambda: states,
            fileio=fileio,
            bucket_counts=counts,
        ) as maker:
            for partition, files in waiting.items():
                sections = tuple(Section((SortedRun((file,)),)) for file in files)
                for batch in reader.read_stored(Split(partition, POSTPONE_BUCKET, sections)):
                    maker.write_stored(batch.drop_columns([VALUE_KIND.name]), batch.column(VALUE_KIND.name))
            return maker.finish()

    # --- inside --------------------------------------------------------------------------------------------------

    def _place(self, identity: CommitIdentity, latest: Snapshot | None) -> Snapshot | None:
        waiting = self.files(latest)
        if not waiting:
            return None
        if not self.context.bucket_mode.postpones:
            # The table postponed them once. They go where the other rows of their partition are.
            return self._postponing()._place(identity, latest)
        with Attempt(self.context.fileio) as attempt:
            states = BucketStates.load(self.context.stores, latest)
            gone = [
                CommitMessage(
                    partition, POSTPONE_BUCKET, POSTPONE_BUCKET, states.snapshot_id, compact_before=tuple(files)
                )
                for partition, files in waiting.items()
            ]
            size_bytes = sum(file.size_bytes for files in waiting.values() for file in files)

            counts, fixed_count = dict(self.counts), self.fixed_count

            def write(context: TableContext, item: tuple[bytes, list[DataFile]], fileio: FileIO) -> list[CommitMessage]:
                rows = WaitingRows(context, counts=counts, fixed_count=fixed_count)
                return rows.write(dict([item]), states, fileio)

            work = PieceWork(self.context, attempt, self.run_pieces)
            made = work.run(list(waiting.items()), size_bytes, write)
            messages = [*gone, *map(_as_compaction, made)]
            return self._commit(messages, states, identity, attempt)

    def _postponing(self) -> WaitingRows:
        options = self.context.options
        postponed = Options({**options.raw, BUCKET.key: str(POSTPONE_BUCKET)})
        context = self.context.with_schema(self.context.schema, postponed)
        return replace(self, context=context, fixed_count=options[BUCKET])

    def _commit(
        self, messages: Sequence[CommitMessage], states: BucketStates, identity: CommitIdentity, attempt: Attempt
    ) -> Snapshot | None:
        touched = {(message.partition, message.bucket) for message in messages}
        delta = [
            entry
            for message in messages
            for entry in (
                *message.entries(EntryKind.DELETE, message.compact_before),
                *message.entries(EntryKind.ADD, message.compact_after),
            )
        ]
        log = [entry for message in messages for entry in message.entries(EntryKind.ADD, message.compact_changelog)]

        def prepare(latest: Snapshot | None) -> Changes:
            self._check_same_buckets(states, states.advanced_to(self.context.stores, latest), messages)
            live = live_files(self.context.stores, latest, keep_entries=in_buckets(touched))
            check_conflicts(live, delta, table=self.context.name, key_bounds=None, may_change_bucket_count=False)
            if self.context.orders_by_snapshot:
                return Changes(stamped(delta, latest.id + 1 if latest else 1), log)
            return Changes(delta, log)

        return committer_for(self.context).commit(
            CommitKind.COMPACT,
            identity,
            lambda: self.context.schema.id,
            prepare,
            attempt=attempt,
            operation="COMPACT",
        )

    def _check_same_buckets(self, before: BucketStates, now: BucketStates, messages: Sequence[CommitMessage]) -> None:
        """Whether rows that came to a bucket meanwhile are newer or older than those that waited can not be told."""
        for message in messages:
            bucket = (message.partition, message.bucket)
            if message.bucket != POSTPONE_BUCKET and (
                now.next_sequence_number(*bucket) != before.next_sequence_number(*bucket)
                or now.bucket_count(message.partition) != before.bucket_count(message.partition)
            ):
                raise CommitConflict(
                    f"table `{self.context.name}`: another job wrote to bucket {message.bucket} while rows that wait "
                    "for their buckets were being brought there",
                    hint="compact again; nothing was changed",
                )


def _with_waiting(metas: list[ManifestMeta]) -> list[ManifestMeta]:
    """Manifests that may tell of waiting files; most tables have none, and few of their manifests are opened."""
    return [meta for meta in metas if meta.min_bucket is None or meta.min_bucket <= POSTPONE_BUCKET]


def _as_compaction(message: CommitMessage) -> CommitMessage:
    return replace(
        message,
        new_files=(),
        changelog_files=(),
        compact_after=message.new_files,
        compact_changelog=message.changelog_files,
    )


# ------------------------------------------------------------------------------------------------------------------
# Reads that show rows which still wait for their bucket (`postpone.merge-on-read`), as if they had just been placed.
#
# They are placed, in files on this machine that no table ever refers to; from there on it is a read like any other.


def place_waiting_rows(context: TableContext) -> None:
    """Brings all rows that wait for their bucket there."""
    if context.has_key:
        WaitingRows(context).place(CommitIdentity(context.ids.new_id()))


def plan_with_waiting(
    context: TableContext, snapshot: Snapshot | None, predicate: Predicate | None
) -> tuple[TableContext, ScanPlan]:
    """The plan of such a read, and the context in which its files are found."""
    if context.lowest_visible_level > 0:
        raise Unsupported(
            f"table `{context.name}`: `{POSTPONE_MERGE_ON_READ.key}` does not go with a merge engine or deletion "
            "vectors that show rows after compaction only",
            hint="compact the table, or read it without the option",
        )
    sieve = FileSieve(context, stored_part(predicate, context.schema, context.shown_defaults))
    context = replace(context, fileio=ScratchFileIO.over(context.fileio))
    rows = WaitingRows(context, sieve.keep_partitions)
    messages = rows.write(rows.files(snapshot), BucketStates.load(context.stores, snapshot), context.fileio)
    placed = [entry for message in messages for entry in message.entries(EntryKind.ADD, message.new_files)]
    entries = live_files(context.stores, snapshot, keep_metas=sieve.keep_metas, keep_entries=sieve.keep_entries)
    live = sieve.keep_live([*entries, *sieve.keep_entries(placed)])
    return context, ScanPlan(snapshot, tuple(splits_of(context, live, sieve, vectors_at(context, snapshot))))
