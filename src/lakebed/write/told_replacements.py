"""What a commit that replaces files tells of it, in tables whose changelog is complete.

Compactions of such tables tell what they change. A commit that puts other files in the place of some changes rows
without one: an overwrite, a dropped partition, another number of buckets, an old state that comes back. Those who
follow the table have been told the rows from a certain level on, so such a commit tells how these rows differ before
and after it. What lies below that level is told by the compaction that lifts it, as always.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial

from lakebed.changes.diff import Difference, StateDiff, StateFiles
from lakebed.changes.splits import lowest_level_told
from lakebed.commit.attempt import Attempt
from lakebed.commit.committer import Changes, CommitIdentity
from lakebed.commit.index_changes import current_entries
from lakebed.commit.message import CommitMessage
from lakebed.datafiles.rolling_writer import FileLayout, RollingWriter
from lakebed.definition.changelog_rules import tells_everything, told_events
from lakebed.definition.context import TableContext
from lakebed.definition.elsewhere import Elsewhere
from lakebed.definition.file_rules import changelog_write_rules, committer_for, latest_schema_id
from lakebed.definition.folded import is_meant_otherwise
from lakebed.definition.views import is_view
from lakebed.errors import FileMissing
from lakebed.fileio.base import FileIO
from lakebed.metadata.entries import live_files
from lakebed.metadata.index_manifest import IndexEntry
from lakebed.metadata.manifest import EntryKind, ManifestEntry, live_entries
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.records import dataclass
from lakebed.write.pieces import PieceWork


@dataclass(frozen=True)
class ToldReplacements:
    """Writes changelog files of one commit. `attempt` takes note of them."""

    context: TableContext
    attempt: Attempt
    run_pieces: Elsewhere | None = None
    known: dict[Hashable, list[ManifestEntry]] = field(default_factory=dict, compare=False, repr=False)
    """What was told already, by what it is told of: a commit that others came before tells the same again, mostly."""

    @property
    def is_needed(self) -> bool:
        """Whether the table has a changelog that would be wrong without."""
        return tells_everything(self.context.options) or is_view(self.context)

    def entries(
        self,
        latest: Snapshot | None,
        delta: Sequence[ManifestEntry],
        indexes: Sequence[IndexEntry] | None,
        meant: TableContext | None = None,
    ) -> list[ManifestEntry]:
        """The changelog of a change of the latest state; `indexes` are all index files after it, None if the same.

        `meant` is the table as rows are merged after it, if not as the table's options say now.
        """
        context, options = self.context, self.context.options
        if not self.is_needed:
            return []
        current = current_entries(context.stores, latest)
        # Rows may be marked, or their marks taken back, in files that stay.
        marked = set() if indexes is None else set(current) ^ set(indexes)
        partitions = {entry.partition for entry in delta} | {entry.partition for entry in marked}
        if not partitions:
            return []

        def keep(entries: list[ManifestEntry]) -> list[ManifestEntry]:
            return [entry for entry in entries if entry.partition in partitions]

        before = live_files(context.stores, latest, keep_entries=keep)
        after = live_entries([*before, *delta])
        diff = StateDiff(
            context,
            self._told(before, current, context.as_meant_in(latest)),
            self._told(after, current if indexes is None else indexes, meant or context),
            rules=replace(told_events(options), skips_unchanged=True),
        )
        told_of = (diff.before.described, diff.after.described, latest.schema_id if latest is not None else None)
        if told_of not in self.known:
            counts = {entry.partition: entry.total_buckets for entry in (*before, *after)}
            self.known[told_of] = self._written_entries(diff, counts, latest)
        return self.known[told_of]

    def _written_entries(
        self, diff: StateDiff, counts: Mapping[bytes, int], latest: Snapshot | None
    ) -> list[ManifestEntry]:
        together = _by_bucket(diff.compared_together())
        size_bytes = sum(
            file.size_bytes for parts in together for part in parts for file in (*part.before, *part.after)
        )
        base = latest.id if latest is not None else 0
        work = PieceWork(self.context, self.attempt, self.run_pieces)
        messages = work.run(together, size_bytes, partial(_events_written, diff=_without_files(diff), base=base))
        return [
            replace(entry, total_buckets=counts[entry.partition])
            for message in messages
            for entry in message.entries(EntryKind.ADD, message.changelog_files)
        ]

    def beforehand(self, prepare: Callable[[Snapshot | None], object]) -> None:
        """Prepares a commit once before its turn: two states are compared while nobody else has to wait for it."""
        with suppress(FileMissing):  # expired under our hands; when it is its turn, the commit sees to that
            prepare(self.context.stores.snapshots.latest())

    def _told(self, entries: Sequence[ManifestEntry], indexes: Sequence[IndexEntry], meant: TableContext) -> StateFiles:
        lowest = lowest_level_told(meant)
        told = [entry for entry in entries if entry.bucket >= 0 and entry.file.level >= lowest]
        return StateFiles(told, self.context.vector_store.places(indexes), meant)


def commit_telling(
    context: TableContext,
    identity: CommitIdentity,
    prepare: Callable[[Snapshot | None], Changes | None],
    *,
    operation: str | None,
    meant_in: Snapshot | None = None,
) -> Snapshot | None:
    """Commits a change of files that no row was written for, as an overwrite, with what it tells.

    `meant_in` is a snapshot whose rows they are: if the table's options give rows another meaning now, the new snapshot
    says that its rows are meant as those are.
    """
    attempt = Attempt(context.fileio)
    telling = ToldReplacements(context, attempt)
    meant = context.as_meant_in(meant_in)
    told: list[ManifestEntry] = []

    def schema_id() -> int:
        latest = latest_schema_id(context)
        return latest if meant_in is None or not is_meant_otherwise(context, meant_in) else meant_in.schema_id

    def prepare_telling(latest: Snapshot | None) -> Changes | None:
        nonlocal told
        changes = prepare(latest)
        if changes is None:
            return None
        told = telling.entries(latest, changes.entries, changes.index_entries, meant)
        return replace(changes, changelog=told)

    with attempt:
        if telling.is_needed:
            telling.beforehand(prepare_telling)
        snapshot = committer_for(context).commit(
            CommitKind.OVERWRITE, identity, schema_id, prepare_telling, attempt=attempt, operation=operation
        )
        attempt.keep_only(changelog_paths(context, told) if snapshot is not None else set())
        return snapshot


def changelog_paths(context: TableContext, entries: Sequence[ManifestEntry]) -> set[str]:
    """Where the files of such a changelog lie."""
    return {context.data_file_path(entry.partition, entry.bucket, entry.file.file_name) for entry in entries}


def _by_bucket(groups: Sequence[Sequence[Difference]]) -> list[list[Difference]]:
    """The same groups, with those of one bucket together: their events go to one file."""
    found: dict[tuple[bytes, int], list[Difference]] = {}
    for parts in groups:
        found.setdefault((parts[0].partition, parts[0].bucket), []).extend(parts)
    return list(found.values())


def _without_files(diff: StateDiff) -> StateDiff:
    """The same without the lists of all files, for who gets the differences one by one."""
    return replace(diff, before=replace(diff.before, entries=()), after=replace(diff.after, entries=()))


def _events_written(
    context: TableContext, parts: Sequence[Difference], fileio: FileIO, *, diff: StateDiff, base: int
) -> list[CommitMessage]:
    """The events of one group of differences in files of its first bucket. May run in a task."""
    partition, bucket = parts[0].partition, parts[0].bucket
    rules, prefix, counter = changelog_write_rules(context), context.new_changelog_file_prefix(), itertools.count()
    with RollingWriter(
        fileio,
        lambda name: context.data_file_path(partition, bucket, name),
        lambda: f"{prefix}-{next(counter)}.{rules.extension}",
        FileLayout(context.schema.id, context.schema.fields, context.key_fields),
        rules,
        context.clock,
    ) as writer:
        for events in replace(diff, context=context).events_of(parts):
            writer.write(events)
        files = tuple(writer.close())
    return [CommitMessage(partition, bucket, 0, base, changelog_files=files)] if files else []


__all__ = ["ToldReplacements", "changelog_paths", "commit_telling"]
