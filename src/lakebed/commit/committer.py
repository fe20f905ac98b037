"""Publishes snapshots: one at a time, atomically, exactly once.

    read the latest snapshot → is this commit in already? → fit the changes to it → write manifests and lists
    → create snapshot-<n+1> exclusively → somebody else was faster: once more, on top of theirs

Only the exclusive creation decides. Everything written before it is unreferenced and taken back on failure; when it is
unknown whether the creation happened, nothing is deleted. The committer knows nothing of rows: whoever writes them
passes a `prepare` function that fits its changes to the newest state.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace

from lakebed.clock import Clock, some_of
from lakebed.commit.attempt import Attempt, Visibility
from lakebed.commit.manifest_merge import ManifestMergeRules, adds_again, merge_manifests
from lakebed.commit.replay import (
    LAST_IDENTIFIER_PREFIX,
    CommitIdentity,
    carried_properties,
    is_replay,
    last_identifiers,
    with_number,
)
from lakebed.commit.row_ids import RowIdRules, number_rows
from lakebed.commit.sequence_state import MAX_SEQUENCE_NUMBER, next_kept_number
from lakebed.errors import CommitConflict, CorruptFile, FileMissing, LakebedError, NotFound, OutcomeUnknown
from lakebed.fileio.base import FileIO
from lakebed.fileio.glance import no_glance, one_glance
from lakebed.fileio.together import answers_late, ask_together
from lakebed.metadata.entries import all_metas, base_metas, read_manifests
from lakebed.metadata.index_manifest import IndexEntry
from lakebed.metadata.manifest import EntryKind, ManifestEntry, live_entries
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.metrics.families import COMMIT_ATTEMPTS, COMMIT_DURATION, COMMIT_RETRIES
from lakebed.metrics.instruments import NOTHING
from lakebed.records import dataclass
from lakebed.types.logical import DataType

__all__ = ["Changes", "CommitIdentity", "CommitRules", "Committed", "Committer", "Prepare", "heard_commits"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Changes:
    """What one snapshot changes. Changelog entries ride along.

    `index_entries` are all index files from then on (see `index_changes`); None keeps those that are there, and so
    does `statistics`. `rewrites_manifests`: the state before is written anew, so that no manifest deletes anything.
    `restated` are all live files of the state before with something else said of them; `next_row_id` is the first id
    that is free then, if some were taken by that. `rows_of`: the snapshot whose rows are there again.
    """

    entries: Sequence[ManifestEntry]
    changelog: Sequence[ManifestEntry] = ()
    index_entries: Sequence[IndexEntry] | None = None
    statistics: str | None = None
    rewrites_manifests: bool = False
    restated: Sequence[ManifestEntry] | None = None
    next_row_id: int | None = None
    rows_of: Snapshot | None = None


Prepare = Callable[[Snapshot | None], Changes | None]
"""Fits the changes to the latest snapshot; None means that there is nothing left to do. May run several times."""


@dataclass(frozen=True, slots=True)
class CommitRules:
    """Retries and manifest sizes, from the table's options."""

    manifests: ManifestMergeRules
    max_retries: int = 10
    timeout_ms: int | None = None
    min_retry_wait_ms: int = 10
    max_retry_wait_ms: int = 10_000
    row_ids: RowIdRules | None = None
    """How rows are numbered; None for tables whose rows have no ids."""
    keeps_sequence_number: bool = False
    """Whether every snapshot says what the highest sequence number is."""


@dataclass(frozen=True, slots=True)
class Committer:
    """Commits to one table."""

    table: str
    stores: MetadataStores
    partition_types: Sequence[DataType]
    rules: CommitRules
    clock: Clock
    writer_version: str
    sleep: Callable[[float], None] = field(default=time.sleep)
    scatter: Callable[[int], int] = field(default=some_of)
    """How much of a time is waited beyond it, at most."""

    def is_committed(self, identity: CommitIdentity) -> bool:
        """Whether a snapshot of this user with this or a later identifier exists, or existed before it expired."""
        return identity.is_replayable and is_replay(self.stores.snapshots, self._latest(), identity)

    def commit(
        self,
        kind: CommitKind,
        identity: CommitIdentity,
        schema_id: Callable[[], int],
        prepare: Prepare,
        *,
        attempt: Attempt | None = None,
        watermark: int | None = None,
        operation: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Snapshot | None:
        """Publishes one snapshot; None when `prepare` found nothing to do.

        An error other than `OutcomeUnknown` means that nothing was published. After any exception, also one that is
        not an error, `attempt` knows whether its files may be deleted. They are made durable before they are named.
        """
        attempt = attempt or Attempt(self.stores.fileio)
        started_ms = self.clock.now_ms()
        label = kind.value.lower()
        with COMMIT_DURATION.timed(self.table, label) as timing:
            for turn in range(self.rules.max_retries + 1):
                COMMIT_ATTEMPTS.tell(1, self.table, label)
                lock = self.stores.fileio.advisory_lock(self.stores.paths.snapshot_directory)
                with lock, one_glance(*self._what_changes, afresh=True):
                    latest = self._latest()
                    try:
                        # INVARIANT: changes are fitted to the very snapshot they are published on, anew in every
                        # turn. Fitted to an older one they would number rows below newer ones of their keys, and lose
                        # them, delete what others have replaced, or bring in a second time what is in already.
                        changes = prepare(latest)
                        if changes is None:
                            timing.ended(NOTHING)
                            return None
                        stamp = _Stamp(kind, identity, schema_id(), watermark, operation, dict(properties or {}))
                        with no_glance():
                            snapshot = self._published(latest, changes, stamp, attempt)
                    except FileMissing:
                        if not self._is_outdated(latest):
                            raise
                        snapshot = None  # expired under our hands: others were faster
                if snapshot is not None:
                    if not answers_late(self.stores.fileio):
                        self._update_hint(snapshot.id)
                    _tell(self.table, snapshot, changes.entries if changes else ())
                    return snapshot
                COMMIT_RETRIES.tell(1, self.table, label)
                if self.rules.timeout_ms is not None and self.clock.now_ms() - started_ms > self.rules.timeout_ms:
                    break
                self.sleep(self._wait_seconds(turn))
            raise CommitConflict(
                f"table `{self.table}`: other writers were faster {turn + 1} times in a row",
                hint="commit again, or raise `commit.max-retries` and `commit.max-retry-wait`; nothing was changed",
            )

    def _latest(self) -> Snapshot | None:
        """The newest snapshot. A table that had snapshots and shows none is damaged: starting at 1 would hide it."""
        snapshots = self.stores.snapshots
        latest = snapshots.latest()
        if latest is None and self.stores.fileio.exists(self.stores.paths.latest_hint):
            latest = snapshots.latest()  # the first commit of all may have come in between
            if latest is None:
                raise CorruptFile(
                    f"table `{self.table}`: {self.stores.paths.latest_hint} is there, but no snapshot is",
                    hint="restore the snapshot files; if the table shall be empty, drop it and create it again",
                )
        return latest

    def _is_outdated(self, latest: Snapshot | None) -> bool:
        with no_glance():
            return self.stores.snapshots.latest_id() != (latest.id if latest else None)

    def _wait_seconds(self, turn: int) -> float:
        wait_us: int = min(self.rules.min_retry_wait_ms * 2**turn, self.rules.max_retry_wait_ms) * 1000
        return (wait_us + self.scatter(wait_us // 5)) / 1_000_000

    def _published(self, latest: Snapshot | None, changes: Changes, stamp: _Stamp, attempt: Attempt) -> Snapshot | None:
        """The published snapshot, or None when the id was taken by somebody else."""
        given, visibility = self.stores, attempt.visibility
        with Attempt(given.fileio, visibility, puts_together=True) as metadata:
            stores = MetadataStores.open(metadata.fileio, given.paths, given.compression, given.manifest_cache)
            snapshot = self._build(stores, latest, changes, stamp)
            # INVARIANT: a snapshot names only what survives a power failure, or the table would be unreadable after it.
            attempt.make_durable()
            metadata.make_durable()
            # INVARIANT: said before the store is asked. Interrupted from here on, nobody knows whether readers see the
            # files, so they stay; what is taken back is only what was read back as not there.
            visibility.is_possible = True
            visibility.is_possible = self._publish(snapshot, visibility) and self._stands(latest, snapshot, changes)
            if visibility.is_possible:
                return snapshot
            metadata.give_up()
            return None

    def _publish(self, snapshot: Snapshot, visibility: Visibility) -> bool:
        """Whether the snapshot is there now; the file decides, whatever the store says."""
        try:
            # A store may repeat a request whose answer got lost, and find the name taken by ourselves.
            return self.stores.snapshots.publish(snapshot) or self._read_back(snapshot) is True
        except LakebedError as error:
            found = self._read_back(snapshot)
            if found is None:
                visibility.is_possible = isinstance(error, OutcomeUnknown)
                raise
            return found

    def _read_back(self, snapshot: Snapshot) -> bool | None:
        """True: our snapshot is there. False: somebody else's. None: neither."""
        try:
            return self.stores.snapshots.get(snapshot.id).uuid == snapshot.uuid
        except NotFound:
            return None
        except LakebedError as error:
            raise self._in_doubt(snapshot) from error

    @property
    def _what_changes(self) -> tuple[FileIO, str, str]:
        paths = self.stores.paths
        return self.stores.fileio, paths.schema_directory, paths.snapshot_directory

    def _stands(self, latest: Snapshot | None, snapshot: Snapshot, changes: Changes) -> bool:
        """As `_is_in_line`; where answers are late the hint is updated meanwhile, and put right if it does not stand.

        The hint names a snapshot that is there, or was a moment ago, as it may whenever one is taken back.
        """
        if not answers_late(self.stores.fileio):
            return self._is_in_line(latest, snapshot, changes)
        stands, _ = ask_together(
            self.stores.fileio,
            [lambda: self._is_in_line(latest, snapshot, changes), lambda: self._update_hint(snapshot.id)],
        )
        newest = None if stands else max(self.stores.snapshots.ids(), default=None)
        if newest is not None:
            self._update_hint(newest)
        return bool(stands)

    def _is_in_line(self, latest: Snapshot | None, snapshot: Snapshot, changes: Changes) -> bool:
        """Whether the published snapshot continues the table's history; taken back if not."""
        try:
            if _is_in_line(self.stores, latest, snapshot, changes.entries):
                return True
            self.stores.snapshots.delete(snapshot.id)
            return False
        except LakebedError as error:
            raise self._in_doubt(snapshot) from error

    def _in_doubt(self, snapshot: Snapshot) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"table `{self.table}`: snapshot {snapshot.id} may or may not have been committed",
            hint=f"look whether snapshot {snapshot.id} is of commit user {snapshot.commit_user} before retrying",
        )

    def _build(self, stores: MetadataStores, latest: Snapshot | None, changes: Changes, stamp: _Stamp) -> Snapshot:
        merge, metas = self.rules.manifests, all_metas(stores, latest)
        if changes.rewrites_manifests or adds_again(stores, metas, changes.entries):
            merge = replace(merge, full_threshold_bytes=0)
        if changes.restated is not None:
            before = stores.manifests.write(list(changes.restated), self.partition_types, merge.target_size_bytes)
        else:
            before = merge_manifests(stores, metas, self.partition_types, merge)
        base_name, base_size = stores.manifest_lists.write(before)
        snapshot_id = latest.id + 1 if latest else 1
        entries, next_row_id = list(changes.entries), (latest.next_row_id or 0) if latest else 0
        # INVARIANT: the counter never goes back. An id that is given twice makes two rows one to whoever changes rows
        # by their ids.
        next_row_id = max(next_row_id, changes.next_row_id or 0)
        if self.rules.row_ids is not None:
            entries, next_row_id = number_rows(entries, next_row_id, snapshot_id, self.rules.row_ids)
        delta = stores.manifests.write(entries, self.partition_types, merge.target_size_bytes)
        delta_name, delta_size = stores.manifest_lists.write(delta)
        log_name, log_size = None, None
        if changes.changelog:
            log = stores.manifests.write(list(changes.changelog), self.partition_types, merge.target_size_bytes)
            log_name, log_size = stores.manifest_lists.write(log)
        delta_rows = sum(_signed_rows(entry) for entry in changes.entries)
        now_ms = self.clock.now_ms()
        return Snapshot(
            id=snapshot_id,
            schema_id=stamp.schema_id,
            base_manifest_list=base_name,
            base_manifest_list_size=base_size,
            delta_manifest_list=delta_name,
            delta_manifest_list_size=delta_size,
            changelog_manifest_list=log_name,
            changelog_manifest_list_size=log_size,
            index_manifest=_index_manifest(stores, latest, changes),
            commit_user=stamp.identity.user,
            commit_identifier=stamp.identity.identifier,
            commit_kind=stamp.kind,
            # Clocks of two machines differ; time travel needs times that never go back.
            time_millis=max(now_ms, latest.time_millis) if latest else now_ms,
            total_record_count=(latest.total_record_count if latest else 0) + delta_rows,
            delta_record_count=delta_rows,
            # None without a changelog, as other implementations have it: 0 would be one that tells nothing.
            changelog_record_count=sum(e.file.row_count for e in changes.changelog) if changes.changelog else None,
            watermark=_later(latest.watermark if latest else None, stamp.watermark),
            statistics=changes.statistics or _statistics(latest, stamp),
            properties=self._carried_properties(latest, stamp, changes.rows_of) | self._kept_number(latest, entries)
            or None,
            next_row_id=next_row_id,
            operation=stamp.operation,
            writer_version=self.writer_version,
            uuid=stamp.identity.token,
        )

    def _carried_properties(self, latest: Snapshot | None, stamp: _Stamp, rows_of: Snapshot | None) -> dict[str, str]:
        """Last identifiers of all streams travel from snapshot to snapshot.

        INVARIANT: no expiry makes a table forget them. A stream that repeats a batch after that would write it twice.
        """
        last = last_identifiers(self.stores.snapshots, latest)
        if stamp.identity.is_replayable:
            with_number(last, stamp.identity)
        carried = {LAST_IDENTIFIER_PREFIX + user: str(identifier) for user, identifier in last.items()}
        return {**carried_properties(self.stores.snapshots, latest, rows_of), **stamp.properties, **carried}

    def _kept_number(self, latest: Snapshot | None, entries: Sequence[ManifestEntry]) -> dict[str, str]:
        if not self.rules.keeps_sequence_number:
            return {}
        number = next_kept_number(self.stores, latest, entries)
        return {} if number is None else {MAX_SEQUENCE_NUMBER: str(number)}

    def _update_hint(self, snapshot_id: int) -> None:
        try:
            self.stores.snapshots.write_latest_hint(snapshot_id)
        except LakebedError as error:
            # Readers find the newest snapshot without the hint; the commit stands.
            _log.warning("table %s: the LATEST hint was not updated: %s", self.table, error.message)


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What a snapshot says about its commit."""

    kind: CommitKind
    identity: CommitIdentity
    schema_id: int
    watermark: int | None
    operation: str | None
    properties: dict[str, str]


def _is_in_line(
    stores: MetadataStores, base: Snapshot | None, published: Snapshot, entries: Sequence[ManifestEntry]
) -> bool:
    """Whether later snapshots, if there are any, build on the published one, which made these changes to its base.

    INVARIANT: a published snapshot has its place in the table's history. Ids are handed out by exclusive creation, and
    expiry frees them again. A committer that was held up for long can thus find the id after its base free because that
    snapshot came and went: what it publishes there is no successor of anything, and nobody would ever see its rows.
    Expiry removes the oldest first, so a base that is still there proves that the id after it had never been used.
    """
    if base is not None:
        now = stores.snapshots.find(base.id)
        if now is not None:
            return now == base  # another one in its place: a branch took over
    ids = stores.snapshots.ids()
    later = [snapshot_id for snapshot_id in ids if snapshot_id > published.id]
    if not later:
        # Expiry takes the oldest first. If an older one is there and our base is not, a rollback took it away.
        return base is None or not any(snapshot_id < base.id for snapshot_id in ids)
    if later[0] != published.id + 1:
        return False  # the one after it has expired, hence so had the one in whose place it stands
    successor = stores.snapshots.get(later[0])
    before = {entry.identity for entry in live_entries(read_manifests(stores, base_metas(stores, successor)))}
    return all((entry.identity in before) == (entry.kind == EntryKind.ADD) for entry in entries)


# --- Who wants to say what was done ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Committed:
    """One commit: the table, its snapshot, and how many rows lie in the files that it added."""

    table: str
    snapshot: Snapshot
    added_rows: int


_HEARD: ContextVar[list[Committed] | None] = ContextVar("commits that somebody listens to", default=None)


@contextmanager
def heard_commits() -> Iterator[list[Committed]]:
    """The commits of this thread until the end of the block, for a program that tells people what it did."""
    heard: list[Committed] = []
    token = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(token)


def _tell(table: str, snapshot: Snapshot, entries: Sequence[ManifestEntry]) -> None:
    heard = _HEARD.get()
    if heard is not None:
        added = sum(entry.file.row_count for entry in entries if entry.kind == EntryKind.ADD)
        heard.append(Committed(table, snapshot, added))


def _statistics(latest: Snapshot | None, stamp: _Stamp) -> str | None:
    return latest.statistics if latest and latest.schema_id == stamp.schema_id else None


def _index_manifest(stores: MetadataStores, latest: Snapshot | None, changes: Changes) -> str | None:
    if changes.index_entries is None:
        return latest.index_manifest if latest else None
    return stores.index_manifests.write(changes.index_entries) if changes.index_entries else None


def _signed_rows(entry: ManifestEntry) -> int:
    return entry.file.row_count if entry.kind == EntryKind.ADD else -entry.file.row_count


def _later(previous: int | None, given: int | None) -> int | None:
    known = [watermark for watermark in (previous, given) if watermark is not None]
    return max(known) if known else None
