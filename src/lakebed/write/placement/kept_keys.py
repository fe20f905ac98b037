"""Keeps the keys of one share of a table on local disk between the micro-batches of a query: where each of them lies.

What is kept is a copy of the table at one snapshot, and never more than that: keys that a batch places are not noted
here, but found in the table once they are committed. So attempts that fail, run twice or come too late do no harm. A
copy that is behind reads the keys of the commits since (`table_keys`); one that is missing, damaged, in use elsewhere
or can not follow is made anew. Copies lie in a directory that a cluster's worker removes with the application, if it
names one, else below the system's temporary one (`TMPDIR` moves it), each under a name of its own that is never used
again, and those that nobody has used for a day are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lakebed.bucket.key_store import FoundKeys, KeyChanges, KeyStore
from lakebed.cleanup import on_failure
from lakebed.clock import RandomIds, SystemClock
from lakebed.definition.bucket_mode import WritePart
from lakebed.definition.context import TableContext
from lakebed.errors import LakebedError, NotFound, StorageError
from lakebed.merge.deduplicate import Deduplicate
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import MERGE_ENGINE
from lakebed.records import dataclass
from lakebed.write.placement.table_keys import KnownKeys, TableKeys, WrittenKeys, appended_since, is_worth_following

_ENDING = ".keys"
_UNFINISHED = ".unfinished"
_UNUSED_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class KeptPlace:
    """Where the copies of one query's table are: `scope` is a name of the query that no other has."""

    scope: str

    def directory(self, context: TableContext) -> str:
        """The directory of all shares."""
        named = f"{self.scope}\n{context.paths.root}\n{context.paths.branch}"
        return os.path.join(_root(), hashlib.sha256(named.encode()).hexdigest()[:32])

    def remove(self, context: TableContext) -> None:
        """Removes what lies on this machine. Tasks that still use it go on with what they have open."""
        shutil.rmtree(self.directory(context), ignore_errors=True)


def can_keep() -> bool:
    """Whether there is what copies are kept with."""
    return importlib.util.find_spec("duckdb") is not None


class KeptKeys:
    """The keys of one writer's share at one snapshot. With `is_taught` somebody brings them (`learn`) first."""

    def __init__(
        self, context: TableContext, place: KeptPlace, part: WritePart, snapshot: Snapshot | None, *, is_taught: bool
    ) -> None:
        self._context = context
        self._part = part
        self._keys = TableKeys(context)
        self._snapshot = snapshot
        self._directory = os.path.join(place.directory(context), f"{part.number}-of-{part.count}")
        self._built: tuple[KeyStore, str] | None = None
        self._opened: KeyStore | None = None
        with _on_disk(self._directory):
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            _remove_unused(os.path.dirname(os.path.dirname(self._directory)))
            if is_taught:
                self._built = self._new_store()

    def learn(self, known: KnownKeys, row_count: int) -> None:
        """Takes note of where keys lie, and of how many rows their bucket has."""
        assert self._built is not None
        self._add(self._built[0], known, row_count)

    def find(self, keys: pa.Array) -> FoundKeys:
        """Where keys are. Partitions have the numbers of `partitions`."""
        with _on_disk(self._directory):
            try:
                return self._find(keys)
            except StorageError:
                # What can be opened may still be damaged inside.
                self.close()
                self._drop_all()
                return self._find(keys)

    @property
    def partitions(self) -> list[bytes]:
        """Partitions by their numbers."""
        return self._store.partitions

    def counts(self) -> dict[tuple[int, int], int]:
        """Rows in the buckets of partitions."""
        return self._store.counts

    def finish(self) -> None:
        """Keeps what was brought even if no row came that asks for it."""
        if self._built is not None:
            with _on_disk(self._directory):
                self._opened = self._published(*self._built)
        self.close()

    def close(self) -> None:
        """Gives up what is not finished."""
        if self._built is not None:
            store, path = self._built
            store.close()
            _remove_files(path)
        if self._opened is not None:
            self._opened.close()
        self._built = self._opened = None

    # --- inside --------------------------------------------------------------------------------------------------

    def _find(self, keys: pa.Array) -> FoundKeys:
        return self._store.find(keys, self._limit_s())

    @property
    def _store(self) -> KeyStore:
        if self._opened is None and self._built is not None:
            self._opened = self._published(*self._built)
        if self._opened is None:
            self._opened = self._usable() or self._read_anew()
        return self._opened

    def _usable(self) -> KeyStore | None:
        """A copy that stands at the snapshot, or can be brought there."""
        for path in self._paths():
            with contextlib.suppress(StorageError):
                if self._has_followed(path):
                    os.utime(path)
                    return KeyStore.open(path, self._keys.description, is_read_only=True)
        return None

    def _has_followed(self, path: str) -> bool:
        wanted, description = _state_of(self._snapshot), self._keys.description
        try:
            store = KeyStore.open(path, description, is_read_only=False)
        except StorageError:
            # Another attempt at this task may be reading what it has brought here.
            store = KeyStore.open(path, description, is_read_only=True)
            store.close()
            return store.state == wanted
        try:
            if store.state == wanted:
                return True
            appends = self._appends_since(store.state)
            if appends is None:
                return False
            for written in self._keys.written(appends, self._part):
                self._follow(store, written)
            limit_s = self._limit_s()
            if limit_s is not None:
                store.forget(limit_s)
            store.stand_at(wanted)
            return True
        except LakebedError:
            return False  # of the table: its snapshot was expired meanwhile; or of the copy
        finally:
            store.close()

    def _appends_since(self, state: str) -> list[Snapshot] | None:
        stores = self._context.stores
        try:
            told = json.loads(state)
            before = None if told is None else stores.snapshots.get(int(told["id"]))
        except (NotFound, ValueError, KeyError, TypeError):
            return None
        if _state_of(before) != state:
            return None
        appends = appended_since(stores, before, self._snapshot)
        return appends if appends is not None and is_worth_following(appends, self._snapshot) else None

    def _follow(self, store: KeyStore, written: list[WrittenKeys]) -> None:
        """Takes note of what one commit did. Where a key went and where it came from are told by different buckets."""
        if not written:
            return
        sizes = [len(each.known.keys) for each in written]
        changes = KeyChanges(
            pa.concat_arrays([each.known.keys for each in written]),
            np.repeat(np.array([store.number(each.known.partition) for each in written], np.int64), sizes),
            np.repeat(np.array([each.known.bucket for each in written], np.int64), sizes),
            np.concatenate([each.is_gone for each in written]),
            np.repeat(np.array([each.known.written_ms // 1000 for each in written], np.int32), sizes),
        )
        moves = self._context.options[MERGE_ENGINE] == Deduplicate.name
        store.change(changes, moves=moves, notes_time=self._limit_s() is not None)

    def _read_anew(self) -> KeyStore:
        """A copy of what the table's files say."""
        store, path = self._new_store()

        def forget() -> None:
            store.close()
            _remove_files(path)

        with on_failure(forget):
            for known in self._keys.stored(self._snapshot, one_by_one=True):
                self._add(store, known.of_part(self._part), len(known.keys))
        return self._published(store, path)

    def _add(self, store: KeyStore, known: KnownKeys, row_count: int) -> None:
        number, count = store.number(known.partition), len(known.keys)
        if row_count:
            store.note_rows(number, known.bucket, row_count)
        if count:
            store.add(
                known.keys,
                np.full(count, number, np.int64),
                np.full(count, known.bucket, np.int64),
                np.full(count, known.written_ms // 1000, np.int32),
            )

    def _new_store(self) -> tuple[KeyStore, str]:
        path = os.path.join(self._directory, f"{RandomIds().new_id()}{_ENDING}{_UNFINISHED}")
        return KeyStore.create(path, self._keys.description), path

    def _published(self, store: KeyStore, path: str) -> KeyStore:
        """Gives a finished copy its name, and removes older ones, which are behind it."""
        self._built = None
        store.stand_at(_state_of(self._snapshot))
        store.close()
        old = self._paths()
        finished = path.removesuffix(_UNFINISHED)
        os.rename(path, finished)
        opened = KeyStore.open(finished, self._keys.description, is_read_only=True)
        for each in old:
            _remove_files(each)
        return opened

    def _paths(self) -> list[str]:
        """Finished copies, the one that was used last first."""
        with os.scandir(self._directory) as entries:
            found = [(entry.stat().st_mtime, entry.path) for entry in entries if entry.name.endswith(_ENDING)]
        return [path for _, path in sorted(found, reverse=True)]

    def _drop_all(self) -> None:
        for path in self._paths():
            _remove_files(path)

    def _limit_s(self) -> int | None:
        limit_ms = self._keys.forgotten_before_ms()
        # Times are kept in whole seconds, cut off: a key is rather kept for a second too long.
        return None if limit_ms is None else limit_ms // 1000


def _state_of(snapshot: Snapshot | None) -> str:
    return json.dumps(None if snapshot is None else snapshot.to_members(), sort_keys=True)


def _root() -> str:
    """A directory that nobody else may write to: what lies in it is believed."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    path = os.path.join(_base(), f"lakebed-kept-keys-{user}")
    os.makedirs(path, mode=0o700, exist_ok=True)
    found = os.lstat(path)
    if hasattr(os, "getuid") and (found.st_uid != user or found.st_mode & 0o022 or os.path.islink(path)):
        raise StorageError(
            f"directory {path} is not this user's own, so keys of tables can not be kept in it",
            hint="remove it, or choose another place with TMPDIR",
        )
    return path


def _base() -> str:
    """Where Spark keeps what goes with the application, on workers that say where that is; else where the system does.

    A standalone worker and YARN name such directories to executors, and remove them whatever becomes of the driver.
    """
    for name, separator in (("SPARK_EXECUTOR_DIRS", os.pathsep), ("LOCAL_DIRS", ",")):
        first = os.environ.get(name, "").split(separator)[0]
        if first and os.path.isdir(first) and os.access(first, os.W_OK):
            return first
    return tempfile.gettempdir()


@contextlib.contextmanager
def _on_disk(directory: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"could not keep keys of a table in {directory}: {error}",
            hint="make room there, or choose another place with TMPDIR",
        ) from error


def _remove_files(path: str) -> None:
    for each in (path, f"{path}.wal"):
        with contextlib.suppress(OSError):
            os.unlink(each)
    shutil.rmtree(f"{path}.tmp", ignore_errors=True)


def _remove_unused(root: str) -> None:
    """Removes copies of queries that are long over, and what crashed tasks left unfinished."""
    limit_s = SystemClock().now_ms() / 1000 - _UNUSED_S
    for directory, _, names in os.walk(root, topdown=False):
        with contextlib.suppress(OSError):
            for path in (os.path.join(directory, name) for name in names):
                if os.path.getmtime(path) < limit_s:
                    _remove_files(path)
            if directory != root and os.path.getmtime(directory) < limit_s:
                os.rmdir(directory)  # which fails as long as there is something in it


__all__ = ["KeptKeys", "KeptPlace", "can_keep"]
