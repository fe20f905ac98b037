"""What operators do with a sync from outside of it: look, pause, copy tables anew, let go of everything.

All of it goes through files beside the checkpoint and through the source's server, so it works from any process that
reaches both, whether the sync runs or not.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, Final

from lakebed.cdc.checkpoint import SyncRecord, checkpoints_below, is_paused, is_worked_on, unpause
from lakebed.cdc.parked import ParkedTable, read_parked
from lakebed.cdc.progress import ProgressFile, SyncProgress
from lakebed.cdc.sources import ChangeSource, source_class
from lakebed.cdc.storage import PLAIN, Storage
from lakebed.errors import InvalidArgument, LakebedError, NotFound, did_you_mean
from lakebed.metadata.sync_note import SyncedTable, SyncNoteStore
from lakebed.records import dataclass

CHECKPOINTS: Final = "_cdc"
"""Directory of the lake for checkpoints that nobody has named."""


def find_sync(
    warehouse: str, checkpoint: str | None = None, database: str | None = None, storage: Storage = PLAIN
) -> SyncRecord:
    """The sync of a checkpoint; or the only one of the lake, or into a database of it."""
    if checkpoint is not None:
        return SyncRecord.read(checkpoint, storage)
    found = syncs_of(warehouse, storage)
    mine = [each for each in found if database is None or each.database == database]
    if len(mine) == 1:
        return mine[0]
    if not mine:
        raise NotFound(f"no sync has its checkpoint in {warehouse}", hint="name the directory with --checkpoint PATH")
    raise InvalidArgument(
        f"there are {len(mine)} syncs: {', '.join(each.checkpoint for each in mine)}",
        hint="name one with --checkpoint PATH, or with --database NAME",
    )


def syncs_of(warehouse: str, storage: Storage = PLAIN) -> list[SyncRecord]:
    """Syncs that have their checkpoints in a lake."""
    directory = f"{warehouse.rstrip('/')}/{CHECKPOINTS}"
    return [SyncRecord.read(each, storage) for each in checkpoints_below(directory, storage)]


def source_of(sync: SyncRecord, password_env: str | None = None, storage: Storage = PLAIN) -> ChangeSource:
    """The source of a sync. Where its password came from another variable, that may be named."""
    source = source_class(sync.source).reopened(sync.options)
    source.keep_state_in(f"{sync.checkpoint.rstrip('/')}/source-state", storage)
    if password_env is not None:
        source.take_password_from(password_env)
    return source


@dataclass(frozen=True, slots=True)
class SyncStatus:
    """How a sync is, seen from outside."""

    sync: SyncRecord
    state: str
    """`running`, `paused`, `waiting` for its source, or `stopped`."""
    progress: SyncProgress
    parked: dict[str, ParkedTable]
    left_out: dict[str, str]
    """Tables that match and are not followed, and why."""
    facts: dict[str, int | str | bool | None]
    trouble: str
    """What the source said when it was asked; empty if it answered."""

    @property
    def is_well(self) -> bool:
        """Whether nobody need look."""
        is_kept = self.facts.get("slot_status", "reserved") in ("reserved", "extended")
        return self.state == "running" and not self.parked and not self.trouble and is_kept

    def to_json(self) -> dict[str, Any]:
        """Plain data, for monitoring."""
        return {
            "checkpoint": self.sync.checkpoint,
            "source": self.sync.source,
            "database": self.sync.database,
            "state": self.state,
            "is_well": self.is_well,
            "trouble": self.trouble,
            **{key: value for key, value in self.progress.to_json().items() if key not in ("parked", "trouble")},
            "parked": {name: asdict(each) for name, each in self.parked.items()},
            "skipped": {**self.progress.skipped, **self.left_out},
            **self.facts,
        }


def status_of(sync: SyncRecord, password_env: str | None = None, storage: Storage = PLAIN) -> SyncStatus:
    """How a sync is now."""
    told = noted_status(sync, storage)
    try:
        source = source_of(sync, password_env, storage)
        left_out, facts = source.left_out(), source.facts()
        ahead = source.progress(told.progress.position)
    except LakebedError as error:
        return replace(told, trouble=error.message)
    progress = told.progress.at(ahead.phase, ahead.lag_bytes)
    return replace(told, progress=progress, left_out=left_out, facts=facts)


def noted_status(sync: SyncRecord, storage: Storage = PLAIN) -> SyncStatus:
    """The same without asking its source: what the sync itself has noted."""
    progress = ProgressFile(sync.checkpoint, storage).read()
    trouble = ""
    is_running = is_worked_on(sync.checkpoint)
    state = "running" if is_running or (is_running is None and progress.batches) else "stopped"
    if is_paused(sync.checkpoint, storage):
        state = "paused"
    elif state == "running" and progress.trouble:
        state, trouble = "waiting", progress.trouble
    return SyncStatus(sync, state, progress, read_parked(sync.checkpoint, storage), {}, {}, trouble)


def copy_anew(
    warehouse: str, sync: SyncRecord, table: str, password_env: str | None = None, storage: Storage = PLAIN
) -> tuple[str, ...]:
    """Asks the sync for a new copy of a table of the lake, parked or not; the tables of the source that are copied."""
    known = synced_tables(warehouse, sync, storage)
    name = table if "." in table else f"{sync.database}.{table}"
    sources = known.get(name)
    if not sources:
        raise NotFound(f"the sync has no table `{name}`", hint=did_you_mean(name, known))
    source_of(sync, password_env, storage).copy_anew(sources)
    return sources


def synced_tables(warehouse: str, sync: SyncRecord, storage: Storage = PLAIN) -> dict[str, tuple[str, ...]]:
    """Tables of the lake that a sync writes, or that it has parked, and what they hold."""
    fileio, root = storage.open(warehouse)
    found: dict[str, SyncedTable] = {}
    for note in SyncNoteStore(fileio, f"{root}/{sync.database}.db").all():
        if note.source == sync.source:
            found |= note.tables
    tables = {f"{sync.database}.{name}": each.sources for name, each in found.items()}
    for name, parked in read_parked(sync.checkpoint, storage).items():
        tables[name] = tuple(sorted({*tables.get(name, ()), *parked.sources}))
    return tables


def let_go(sync: SyncRecord, password_env: str | None = None, storage: Storage = PLAIN) -> list[str]:
    """Ends a sync for good: what was made at the source goes, and the checkpoint. The tables of the lake stay."""
    if is_worked_on(sync.checkpoint):
        raise InvalidArgument(
            f"a sync works on the checkpoint {sync.checkpoint}", hint="stop it first, then drop what it has made"
        )
    done = source_of(sync, password_env, storage).let_go()
    unpause(sync.checkpoint, storage)
    fileio, root = storage.open(sync.checkpoint)
    fileio.delete_directory(root)
    return [*done, f"checkpoint {sync.checkpoint} removed"]


__all__ = ["CHECKPOINTS", "SyncStatus", "copy_anew", "find_sync", "let_go", "source_of", "status_of", "synced_tables"]
