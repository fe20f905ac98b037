"""Who commits what, and whether it is in the table already: what makes a repeated commit harmless.

A stream numbers its commits. Each snapshot of ours names the last number of every stream so far, so that neither the
expiry of a stream's own snapshots nor a commit of another engine on top makes the table forget them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from lakebed.clock import RandomIds
from lakebed.errors import CorruptFile
from lakebed.metadata.operation import is_ours
from lakebed.metadata.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot, SnapshotStore
from lakebed.records import dataclass

LAST_IDENTIFIER_PREFIX = "lakebed.last-identifier."
"""Snapshot property that remembers a stream's last commit after the snapshot it made has expired."""
VIEW_PREFIX = "lakebed.view."
"""Snapshot properties of a materialized table: which state of its sources the rows belong to."""
INSERT_PREFIX = "lakebed.insert."
"""Snapshot properties of a table that streaming INSERTs write: how far each of them is."""
SYNC_PREFIX = "lakebed.cdc."
"""How properties of snapshots that a sync makes begin."""
SYNC_POSITION = "lakebed.cdc.position"
"""Snapshot property: the offset up to which the source was read."""
_INSERT_CUT = ".cut"
"""How the one of them ends that says what was sent; nothing, if it is empty."""


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    """Who commits, and which of its commits this is: a replay has the same identity."""

    user: str
    identifier: int = BATCH_COMMIT_IDENTIFIER
    token: str = field(default_factory=RandomIds().new_id, compare=False)
    """Becomes the snapshot's uuid: tells this very commit from all others."""

    @property
    def is_replayable(self) -> bool:
        """Batch commits share one identifier, so only within one call can they be told apart."""
        return self.identifier != BATCH_COMMIT_IDENTIFIER


def is_replay(snapshots: SnapshotStore, latest: Snapshot | None, identity: CommitIdentity) -> bool:
    """Whether this commit, or a later one of the same stream, is part of the state at `latest`."""
    if not identity.is_replayable:
        return False
    # INVARIANT: a stream commits its numbers in order, so what is not above the last is in. A writer that skipped a
    # number and came back to it would have these rows dropped here as a replay.
    last = last_identifiers(snapshots, latest).get(identity.user)
    return last is not None and last >= identity.identifier


def last_identifiers(snapshots: SnapshotStore, latest: Snapshot | None) -> dict[str, int]:
    """The last commit identifier of every stream as of `latest`."""
    found: dict[str, int] = {}
    for snapshot in _back_from(snapshots, latest):
        here = dict(_remembered(snapshot))
        if snapshot.commit_identifier != BATCH_COMMIT_IDENTIFIER:
            with_number(here, CommitIdentity(snapshot.commit_user, snapshot.commit_identifier))
        for user, identifier in here.items():
            found.setdefault(user, identifier)
        # INVARIANT: newest first, and the first that names a stream counts: after a rollback an older number is right.
        if is_ours(snapshot.writer_version):  # ours carry the properties on, those of others need not
            break  # it remembers everything before it
    return found


def with_number(last: dict[str, int], identity: CommitIdentity) -> None:
    """Notes one more commit of a stream among the last of all.

    INVARIANT: the compaction after a commit has the commit's number, and may come after later ones. The last number
    does not go back with it, or these would count as not made, and be made again when the stream repeats them.
    """
    last[identity.user] = max(last.get(identity.user, identity.identifier), identity.identifier)


def carried_properties(
    snapshots: SnapshotStore, latest: Snapshot | None, rows_of: Snapshot | None = None
) -> dict[str, str]:
    """Properties that are handed on to the next snapshot: what is true of the rows stays so while they are rewritten.

    With `rows_of` the rows are those of that earlier snapshot again, and so is the state of the tables that they were
    computed from.

    INVARIANT: a compaction hands them on, and expiry may then take the snapshot that said them first. A materialized
    table that forgot which changes it has seen would see them twice, or never. Rows of a sync are as of the position
    of its last batch, whatever else was committed on top.
    """
    handed_on = _beginning_with(SYNC_PREFIX, latest) | _beginning_with(VIEW_PREFIX, rows_of or latest)
    return handed_on | insert_properties(snapshots, latest)


def insert_properties(snapshots: SnapshotStore, latest: Snapshot | None) -> dict[str, str]:
    """How far streaming INSERTs are as of `latest`. Others write the table too, so their commits change nothing of it.

    INVARIANT: a commit of another engine, which hands nothing on, is looked through to the last one of ours. An INSERT
    that forgot how far it is would send all its rows once more.
    """
    for snapshot in _back_from(snapshots, latest):
        found = _beginning_with(INSERT_PREFIX, snapshot)
        if found or is_ours(snapshot.writer_version):
            return found
    return {}


def ended_inserts(snapshots: SnapshotStore, latest: Snapshot | None) -> dict[str, str]:
    """What a snapshot says with which a table begins anew: streaming INSERTs have sent nothing to it yet."""
    known = insert_properties(snapshots, latest)
    return {key: "" for key in known if key.endswith(_INSERT_CUT)}


def _beginning_with(prefix: str, snapshot: Snapshot | None) -> dict[str, str]:
    given = (snapshot.properties or {}) if snapshot is not None else {}
    return {key: value for key, value in given.items() if key.startswith(prefix)}


def _back_from(snapshots: SnapshotStore, latest: Snapshot | None) -> Iterator[Snapshot]:
    if latest is None:
        return
    yield latest
    for snapshot in snapshots.newest_first():
        if snapshot.id < latest.id:
            yield snapshot


def _remembered(snapshot: Snapshot) -> Iterator[tuple[str, int]]:
    for key, value in (snapshot.properties or {}).items():
        if not key.startswith(LAST_IDENTIFIER_PREFIX):
            continue
        try:
            yield key.removeprefix(LAST_IDENTIFIER_PREFIX), int(value)
        except ValueError as error:
            raise CorruptFile(
                f"snapshot {snapshot.id}: property `{key}` is `{value}`, not a commit identifier",
                hint="restore the snapshot file, or roll the table back: without it replays can not be recognised",
            ) from error
