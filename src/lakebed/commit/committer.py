"""Publishes snapshots: one at a time, atomically, exactly once.

    read the latest snapshot → is this commit in already? → fit the changes to it → write manifests and lists
    → create snapshot-<n+1> exclusively → somebody else was faster: once more, on top of theirs

Only the exclusive creation decides. Everything written before it is unreferenced and taken back on failure; when it is
unknown whether the creation happened, nothing is deleted. The committer knows nothing of rows: whoever writes them
passes a `prepare` function that fits its changes to the newest state.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lakebed.clock import Clock
from lakebed.commit.manifest_merge import ManifestMergeRules, merge_manifests
from lakebed.commit.written_files import WrittenFiles
from lakebed.errors import CommitConflict, LakebedError, NotFound, OutcomeUnknown, StorageError
from lakebed.metadata.entries import all_metas
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.types.logical import DataType

_log = logging.getLogger(__name__)

LAST_IDENTIFIER_PREFIX = "lakebed.last-identifier."
"""Snapshot property that remembers a stream's last commit after the snapshot it made has expired."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What one snapshot changes. Changelog entries ride along; `index_manifest` None keeps the one that is there."""

    entries: Sequence[ManifestEntry]
    changelog: Sequence[ManifestEntry] = ()
    index_manifest: str | None = None


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


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    """Who commits, and which of its commits this is: a replay has the same identity."""

    user: str
    identifier: int = BATCH_COMMIT_IDENTIFIER
    token: str = field(default_factory=lambda: str(uuid.uuid4()), compare=False)
    """Becomes the snapshot's uuid: tells this very commit from all others."""

    @property
    def is_replayable(self) -> bool:
        """Batch commits share one identifier, so only within one call can they be told apart."""
        return self.identifier != BATCH_COMMIT_IDENTIFIER


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

    def is_committed(self, identity: CommitIdentity) -> bool:
        """Whether a snapshot of this user with this or a later identifier exists, or existed before it expired."""
        if not identity.is_replayable:
            return False
        latest = self.stores.snapshots.latest()
        if latest is None:
            return False
        remembered = (latest.properties or {}).get(LAST_IDENTIFIER_PREFIX + identity.user)
        if remembered is not None and int(remembered) >= identity.identifier:
            return True
        newest = self.stores.snapshots.newest_of_user(identity.user)
        return newest is not None and newest.commit_identifier >= identity.identifier

    def is_published(self, identity: CommitIdentity, after_id: int) -> bool:
        """Whether this very commit is among the snapshots after an id; an error when that can not be told."""
        newer = [snapshot_id for snapshot_id in self.stores.snapshots.ids() if snapshot_id > after_id]
        return any(self.stores.snapshots.get(snapshot_id).uuid == identity.token for snapshot_id in newer)

    def commit(
        self,
        kind: CommitKind,
        identity: CommitIdentity,
        schema_id: Callable[[], int],
        prepare: Prepare,
        *,
        watermark: int | None = None,
        operation: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Snapshot | None:
        """Publishes one snapshot; None when `prepare` found nothing to do."""
        started_ms = self.clock.now_ms()
        for attempt in range(self.rules.max_retries + 1):
            with self.stores.fileio.advisory_lock(self.stores.paths.snapshot_directory):
                latest = self.stores.snapshots.latest()
                changes = prepare(latest)
                if changes is None:
                    return None
                stamp = _Stamp(kind, identity, schema_id(), watermark, operation, dict(properties or {}))
                snapshot = self._attempt(latest, changes, stamp)
            if snapshot is not None:
                self._update_hint(snapshot)
                return snapshot
            if self.rules.timeout_ms is not None and self.clock.now_ms() - started_ms > self.rules.timeout_ms:
                break
            self.sleep(self._wait_seconds(attempt))
        raise CommitConflict(
            f"table `{self.table}`: other writers were faster {attempt + 1} times in a row",
            hint="commit again, or raise `commit.max-retries` and `commit.max-retry-wait`; nothing was changed",
        )

    def _wait_seconds(self, attempt: int) -> float:
        wait_ms = min(self.rules.min_retry_wait_ms * 2**attempt, self.rules.max_retry_wait_ms)
        return float(wait_ms / 1000 * (1 + random.random() / 5))

    def _attempt(self, latest: Snapshot | None, changes: Changes, stamp: _Stamp) -> Snapshot | None:
        """The published snapshot, or None when the id was taken by somebody else."""
        fileio, written = WrittenFiles.watch(self.stores.fileio)
        stores = MetadataStores.open(fileio, self.stores.paths, self.stores.compression)
        try:
            snapshot = self._build(stores, latest, changes, stamp)
        except BaseException:
            written.take_back()
            raise
        published: bool | None
        try:
            published = stores.snapshots.publish(snapshot)
        except OutcomeUnknown:
            published = self._read_back(snapshot)
            if published is None:
                raise
        except StorageError:
            # The store says that nothing was created; look all the same, since deleting on a false claim loses data.
            published = self._read_back(snapshot)
            if published is None:
                written.take_back()
                raise
        if not published:
            written.take_back()
            return None
        return snapshot

    def _read_back(self, snapshot: Snapshot) -> bool | None:
        """True: our snapshot is there. False: somebody else's. None: neither, or it can not be told."""
        try:
            found = self.stores.snapshots.get(snapshot.id)
        except NotFound:
            return None
        except LakebedError as error:
            raise OutcomeUnknown(
                f"table `{self.table}`: snapshot {snapshot.id} may or may not have been committed",
                hint=f"look whether snapshot {snapshot.id} is of commit user {snapshot.commit_user} before retrying",
            ) from error
        return found.uuid == snapshot.uuid

    def _build(self, stores: MetadataStores, latest: Snapshot | None, changes: Changes, stamp: _Stamp) -> Snapshot:
        merge = self.rules.manifests
        before = merge_manifests(stores, all_metas(stores, latest), self.partition_types, merge)
        base_name, base_size = stores.manifest_lists.write(before)
        delta = stores.manifests.write(list(changes.entries), self.partition_types, merge.target_size_bytes)
        delta_name, delta_size = stores.manifest_lists.write(delta)
        log_name, log_size = None, None
        if changes.changelog:
            log = stores.manifests.write(list(changes.changelog), self.partition_types, merge.target_size_bytes)
            log_name, log_size = stores.manifest_lists.write(log)
        delta_rows = sum(_signed_rows(entry) for entry in changes.entries)
        now_ms = self.clock.now_ms()
        return Snapshot(
            id=latest.id + 1 if latest else 1,
            schema_id=stamp.schema_id,
            base_manifest_list=base_name,
            base_manifest_list_size=base_size,
            delta_manifest_list=delta_name,
            delta_manifest_list_size=delta_size,
            changelog_manifest_list=log_name,
            changelog_manifest_list_size=log_size,
            index_manifest=changes.index_manifest or (latest.index_manifest if latest else None),
            commit_user=stamp.identity.user,
            commit_identifier=stamp.identity.identifier,
            commit_kind=stamp.kind,
            # Clocks of two machines differ; time travel needs times that never go back.
            time_millis=max(now_ms, latest.time_millis) if latest else now_ms,
            total_record_count=(latest.total_record_count if latest else 0) + delta_rows,
            delta_record_count=delta_rows,
            changelog_record_count=sum(entry.file.row_count for entry in changes.changelog),
            watermark=_later(latest.watermark if latest else None, stamp.watermark),
            statistics=latest.statistics if latest and latest.schema_id == stamp.schema_id else None,
            properties=_carried_properties(latest, stamp),
            next_row_id=latest.next_row_id if latest and latest.next_row_id is not None else 0,
            operation=stamp.operation,
            writer_version=self.writer_version,
            uuid=stamp.identity.token,
        )

    def _update_hint(self, snapshot: Snapshot) -> None:
        try:
            self.stores.snapshots.write_latest_hint(snapshot.id)
        except StorageError as error:
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


def _signed_rows(entry: ManifestEntry) -> int:
    return entry.file.row_count if entry.kind == EntryKind.ADD else -entry.file.row_count


def _later(previous: int | None, given: int | None) -> int | None:
    known = [watermark for watermark in (previous, given) if watermark is not None]
    return max(known) if known else None


def _carried_properties(latest: Snapshot | None, stamp: _Stamp) -> dict[str, str] | None:
    """Last identifiers of all streams travel from snapshot to snapshot, so that no expiry forgets them."""
    carried = {
        key: value
        for key, value in ((latest.properties if latest else None) or {}).items()
        if key.startswith(LAST_IDENTIFIER_PREFIX)
    }
    carried |= stamp.properties
    if stamp.identity.is_replayable:
        carried[LAST_IDENTIFIER_PREFIX + stamp.identity.user] = str(stamp.identity.identifier)
    return carried or None
