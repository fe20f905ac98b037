"""What stands beside a checkpoint for operators: who works on it, how its sync was begun, whether it is to pause.

The lock is one of the operating system, so that it ends with the process that holds it, however that ends. It is there
for checkpoints on a file system; on a store, Spark itself refuses the second of two queries when it commits a batch.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final
from weakref import WeakValueDictionary

from lakebed.cdc.storage import PLAIN, Storage
from lakebed.clock import SystemClock
from lakebed.errors import AlreadyExists, FileMissing, NotFound
from lakebed.records import dataclass

_LOCK: Final = "lakebed-lock"
_RECORD: Final = "lakebed-sync.json"
_PAUSE: Final = "lakebed-paused"


class CheckpointLock:
    """Held by the one process that works on a checkpoint."""

    _held: ClassVar[WeakValueDictionary[str, CheckpointLock]] = WeakValueDictionary()

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle
        self.is_used: Callable[[], bool] = lambda: True
        """Whether who took it still works; if not, this process may take it again."""

    @classmethod
    def take(cls, checkpoint: str) -> CheckpointLock | None:
        """The lock, or an error that names who has it; None where there are no locks."""
        directory = _local(checkpoint)
        if directory is None:
            return None
        directory.mkdir(parents=True, exist_ok=True)
        path = (directory / _LOCK).resolve()
        mine = cls._held.get(str(path))
        if mine is not None and not mine.is_used():
            mine.release()
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(handle, 1000, 0).decode(errors="replace").strip()
            os.close(handle)
            raise AlreadyExists(
                f"another sync works on the checkpoint {checkpoint}: {holder or 'it does not say which'}",
                hint="stop that one, or give this one a checkpoint and a slot of its own",
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        lock = cls(handle)
        cls._held[str(path)] = lock
        return lock

    def release(self) -> None:
        """Lets go of it."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(OSError):
                os.close(handle)

    def __del__(self) -> None:
        self.release()


def is_worked_on(checkpoint: str) -> bool | None:
    """Whether a process works on a checkpoint now; None where nobody can tell."""
    directory = _local(checkpoint)
    if directory is None:
        return None
    if not (directory / _LOCK).exists():
        return False
    handle = os.open(directory / _LOCK, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _local(checkpoint: str) -> Path | None:
    if "://" in checkpoint and not checkpoint.startswith("file:"):
        return None
    return Path(checkpoint.removeprefix("file://").removeprefix("file:"))


# --- how the sync was begun ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SyncRecord:
    """How a sync was begun: enough to find its source again. No secrets: those are named, not written down."""

    checkpoint: str
    source: str
    database: str
    options: dict[str, str]
    started_ms: int

    def write(self, storage: Storage = PLAIN) -> None:
        """Puts it in the place of what an earlier start has written."""
        fileio, root = storage.open(self.checkpoint)
        fileio.make_directory(root)
        body: dict[str, Any] = {
            "source": self.source,
            "database": self.database,
            "options": self.options,
            "started_ms": self.started_ms,
        }
        fileio.overwrite(f"{root}/{_RECORD}", json.dumps(body, ensure_ascii=False, indent=2).encode())

    @staticmethod
    def now(checkpoint: str, source: str, database: str, options: dict[str, str]) -> SyncRecord:
        """That of a sync that begins."""
        return SyncRecord(checkpoint, source, database, options, SystemClock().now_ms())

    @staticmethod
    def read(checkpoint: str, storage: Storage = PLAIN) -> SyncRecord:
        """That of a checkpoint."""
        fileio, root = storage.open(checkpoint)
        try:
            body = json.loads(fileio.read_bytes(f"{root}/{_RECORD}"))
        except FileMissing:
            raise NotFound(
                f"{checkpoint} is no checkpoint of a sync", hint="name the directory that the sync was started with"
            ) from None
        return SyncRecord(checkpoint, body["source"], body["database"], body["options"], body["started_ms"])


def checkpoints_below(directory: str, storage: Storage = PLAIN) -> list[str]:
    """Checkpoints of syncs that lie in a directory."""
    fileio, root = storage.open(directory)
    prefix = directory.rstrip("/")
    return [
        f"{prefix}/{entry.name}"
        for entry in fileio.list_directory(root)
        if fileio.exists(f"{root}/{entry.name}/{_RECORD}")
    ]


# --- whether it is to pause ---------------------------------------------------------------------------------------


def is_paused(checkpoint: str, storage: Storage = PLAIN) -> bool:
    """Whether somebody has asked the sync to pause."""
    fileio, root = storage.open(checkpoint)
    return fileio.exists(f"{root}/{_PAUSE}")


def pause(checkpoint: str, storage: Storage = PLAIN) -> None:
    """Asks the sync to pause: it lets go of the source until `unpause`."""
    fileio, root = storage.open(checkpoint)
    fileio.overwrite(f"{root}/{_PAUSE}", b"")


def unpause(checkpoint: str, storage: Storage = PLAIN) -> None:
    """Lets the sync go on."""
    fileio, root = storage.open(checkpoint)
    fileio.delete(f"{root}/{_PAUSE}")


__all__ = ["CheckpointLock", "SyncRecord", "checkpoints_below", "is_paused", "is_worked_on", "pause", "unpause"]
