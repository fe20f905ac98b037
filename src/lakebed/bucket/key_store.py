"""A map from keys to places on local disk, for indexes that are too large for memory: one DuckDB file.

It holds what it was told at a stated time (`state`), and changes from one such state to the next all at once, so that
a process that dies in between leaves the old one. Keys are found with joins over whole columns, compared byte by byte.
What the states mean, and whether a file may be trusted, is not decided here. Any failure of the file is a StorageError.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.errors import MissingDependency, StorageError
from lakebed.records import dataclass

Numbers = npt.NDArray[np.int64]

_LAYOUT = "1"
_MEMORY = "128MB"
"""What one store may take; larger joins and sorts go to disk beside it."""

_BUCKET_BITS = 16
_BUCKET_MASK = (1 << _BUCKET_BITS) - 1


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """Which of the keys asked for are known, as positions, and where they are."""

    rows: Numbers
    partitions: Numbers
    buckets: Numbers


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """Keys that were written, each once at a place: those that are `gone` from it, and those that are there now."""

    keys: pa.Array
    partitions: Numbers
    buckets: Numbers
    is_gone: npt.NDArray[np.bool_]
    written_s: npt.NDArray[np.int32]

    @property
    def places(self) -> Numbers:
        """Partition and bucket in one number."""
        return _packed(self.partitions, self.buckets)


class KeyStore:
    """An open file. Partitions have numbers in the order in which they are named (`partitions`).

    Everything that is added or changed becomes part of the file with `stand_at`, or not at all.
    """

    def __init__(self, connection: Any, path: str) -> None:
        self._connection = connection
        self._path = path
        self.state = ""
        self.partitions: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self.counts: dict[tuple[int, int], int] = {}
        """Rows in the buckets of partitions, as far as they have been told of."""

    @staticmethod
    def create(path: str, description: str) -> KeyStore:
        """A new file. `description` is what it must be opened with."""
        store = KeyStore(_connect(path, is_read_only=False), path)
        with store._guarded():
            for statement in _TABLES:
                store._connection.execute(statement)
            store._connection.execute("INSERT INTO description VALUES (?)", [f"{_LAYOUT} {description}"])
            store._connection.execute("BEGIN")
        return store

    @staticmethod
    def open(path: str, description: str, *, is_read_only: bool) -> KeyStore:
        """A file as it was left. Many processes may read it, or one may change it."""
        store = KeyStore(_connect(path, is_read_only=is_read_only), path)
        try:
            with store._guarded():
                found = store._connection.execute("SELECT text FROM description").fetchall()
                if found != [(f"{_LAYOUT} {description}",)]:
                    raise StorageError(f"key store {path} is of another index", hint="make it anew")
                store._load()
                if not is_read_only:
                    store._connection.execute("BEGIN")
        except StorageError:
            store.close()
            raise
        return store

    def number(self, partition: bytes) -> int:
        """The number of a partition."""
        if partition not in self._numbers:
            self._numbers[partition] = len(self.partitions)
            self.partitions.append(partition)
        return self._numbers[partition]

    def find(self, keys: pa.Array, written_since_s: int | None = None) -> FoundKeys:
        """Where keys are that were written since then. Of several places of one key the latest counts."""
        asked = _asked(keys)
        limit = "" if written_since_s is None else f"AND k.written >= {int(written_since_s)}"
        with self._registered(asked):
            query = f"SELECT a.row, k.place, k.written FROM keys k JOIN given a ON {_SAME} {limit}"
            found = self._connection.sql(query).to_arrow_table()
        rows, places, written = (np.asarray(found.column(name)) for name in ("row", "place", "written"))
        order = np.lexsort((places, written, rows))
        last = order[np.append(rows[order][1:] != rows[order][:-1], True)] if len(order) else order
        return FoundKeys(rows[last], places[last] >> _BUCKET_BITS, places[last] & _BUCKET_MASK)

    def add(self, keys: pa.Array, partitions: Numbers, buckets: Numbers, written_s: npt.NDArray[np.int32]) -> None:
        """Adds keys that are not there."""
        columns = [keys.cast(pa.binary()), pa.array(_packed(partitions, buckets)), pa.array(written_s)]
        with self._registered(pa.table(columns, names=["key", "place", "written"])):
            self._connection.execute("INSERT INTO keys SELECT key, place, written FROM given")

    def change(self, changes: KeyChanges, *, moves: bool, notes_time: bool) -> None:
        """Follows rows that were written. A known key is taken to its new place if it `moves`, or else stays.

        With `notes_time` keys that stay are noted as written anew. Counts of rows follow the keys.
        """
        with self._registered(_asked(changes.keys)):
            query = f"SELECT a.row, k.place, k.rowid AS id FROM keys k JOIN given a ON {_SAME}"
            found = self._connection.sql(query).to_arrow_table()
        rows, old, ids = (np.asarray(found.column(name)) for name in ("row", "place", "id"))
        places, is_gone = changes.places, changes.is_gone
        stays = ~is_gone[rows]
        leaves = is_gone[rows] & (old == places[rows]) & ~np.isin(ids, ids[stays])
        comes = stays & (old != places[rows]) & moves
        written = stays & notes_time | comes
        # Written anew rather than updated: that costs a third.
        self._delete(ids[leaves | written])
        is_new = ~is_gone
        is_new[rows[~written]] = False
        if not moves:
            places = places.copy()
            places[rows[stays]] = old[stays]
        new = np.flatnonzero(is_new)
        keys = changes.keys.take(pa.array(new))
        self.add(keys, places[new] >> _BUCKET_BITS, places[new] & _BUCKET_MASK, changes.written_s[new])
        is_unknown = is_new.copy()
        is_unknown[rows] = False
        self._count(np.concatenate([places[is_unknown], places[rows[comes]]]), 1)
        self._count(np.concatenate([old[leaves], old[comes]]), -1)

    def forget(self, written_before_s: int) -> None:
        """Removes keys that were not written since then."""
        with self._guarded():
            self._connection.execute("DELETE FROM keys WHERE written < ?", [written_before_s])

    def note_rows(self, partition: int, bucket: int, row_count: int) -> None:
        """Counts rows of a bucket that are there beside those of keys that are changed here."""
        self.counts[partition, bucket] = self.counts.get((partition, bucket), 0) + row_count

    def stand_at(self, state: str) -> None:
        """Makes all that was added and changed part of the file, which stands for this state from now on."""
        self.state = state
        places = list(self.counts)
        counts = {
            "place": _packed(
                np.array([place[0] for place in places], np.int64), np.array([place[1] for place in places], np.int64)
            ),
            "row_count": pa.array(list(self.counts.values()), pa.int64()),
        }
        with self._registered(pa.table(counts)):
            self._connection.execute("DELETE FROM counts")
            self._connection.execute("INSERT INTO counts SELECT place, row_count FROM given")
        named = {
            "number": pa.array(range(len(self.partitions)), pa.int64()),
            "name": pa.array(self.partitions, pa.binary()),
        }
        with self._registered(pa.table(named)):
            self._connection.execute("DELETE FROM partitions")
            self._connection.execute("INSERT INTO partitions SELECT number, name FROM given")
        with self._guarded():
            self._connection.execute("DELETE FROM state")
            self._connection.execute("INSERT INTO state VALUES (?)", [state])
            self._connection.execute("COMMIT")
            self._connection.execute("BEGIN")

    def close(self) -> None:
        """Gives up what was not made part of the file."""
        import duckdb

        with contextlib.suppress(duckdb.Error):
            self._connection.rollback()
        with contextlib.suppress(duckdb.Error):
            self._connection.close()

    # --- inside --------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        fetch = self._connection.execute
        (self.state,) = fetch("SELECT text FROM state").fetchone() or ("",)
        self.partitions = [name for (name,) in fetch("SELECT name FROM partitions ORDER BY number").fetchall()]
        self._numbers = {name: number for number, name in enumerate(self.partitions)}
        for place, row_count in fetch("SELECT place, row_count FROM counts").fetchall():
            self.counts[place >> _BUCKET_BITS, place & _BUCKET_MASK] = row_count

    def _delete(self, ids: Numbers) -> None:
        if len(ids):
            with self._registered(pa.table({"id": ids})):
                self._connection.execute("DELETE FROM keys USING given g WHERE keys.rowid = g.id")

    def _count(self, places: Numbers, weight: int) -> None:
        found, counts = np.unique(places, return_counts=True)
        for place, count in zip(found.tolist(), counts.tolist(), strict=True):
            self.note_rows(place >> _BUCKET_BITS, place & _BUCKET_MASK, weight * count)

    @contextlib.contextmanager
    def _registered(self, table: pa.Table) -> Iterator[None]:
        """Rows that statements know as `given`."""
        with self._guarded():
            self._connection.register("given", table)
            try:
                yield
            finally:
                self._connection.unregister("given")

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            raise StorageError(f"key store {self._path}: {error}", hint=_HINT) from error


_HINT = "remove the file: it is made anew from the table. Make room on the disk if it is full"
_SAME = "k.key = a.key"
_TABLES = (
    "CREATE TABLE description (text VARCHAR)",
    "CREATE TABLE state (text VARCHAR)",
    "CREATE TABLE partitions (number BIGINT, name BLOB)",
    "CREATE TABLE counts (place BIGINT, row_count BIGINT)",
    "CREATE TABLE keys (key BLOB, place BIGINT, written INTEGER)",
)


def _connect(path: str, *, is_read_only: bool) -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise MissingDependency("keys are kept on disk with DuckDB", hint="pip install 'lakebed[spark]'") from error
    settings: Mapping[str, str] = {"threads": "1", "memory_limit": _MEMORY, "preserve_insertion_order": "false"}
    try:
        return duckdb.connect(path, read_only=is_read_only, config=dict(settings))
    except (duckdb.Error, RuntimeError) as error:
        raise StorageError(f"key store {path} can not be opened: {error}", hint=_HINT) from error


def _asked(keys: pa.Array) -> pa.Table:
    return pa.table({"key": keys.cast(pa.binary()), "row": pa.array(np.arange(len(keys), dtype=np.int64))})


def _packed(partitions: Numbers, buckets: Numbers) -> Numbers:
    return partitions << _BUCKET_BITS | buckets


__all__ = ["FoundKeys", "KeyChanges", "KeyStore"]
