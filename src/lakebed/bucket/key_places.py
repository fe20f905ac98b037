"""Where each key of a table lies, for tables whose keys do not tell their partition: a map from keys to places.

Hashes are searched with whole arrays, and keys of equal hash compared byte by byte, so the answer is exact. A key costs
14 bytes of memory; its own bytes go to local disk once they are many, and are mapped into memory from there.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.bucket.hashing import Hashes

Entries = npt.NDArray[np.int64]
"""Numbers of keys in the map."""

UNKNOWN = -1

_LEAST_RECENT = 1 << 16
_RECENT_SHARE = 8
_BLOCK_BYTES = 64 << 20
_MOST_SMALL_BLOCKS = 32


class KeyPlaces:
    """A growing map. Entry i has the partition `partitions[i]` and the bucket `buckets[i]`, which may be changed."""

    def __init__(self) -> None:
        self._keys = _KeyBytes()
        self._main = _SortedHashes()
        self._recent = _SortedHashes()
        self._partitions = _Growing(np.empty(0, np.int32))
        self._buckets = _Growing(np.empty(0, np.int16))

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def partitions(self) -> npt.NDArray[Any]:
        """The number of each entry's partition."""
        return self._partitions.values

    @property
    def buckets(self) -> npt.NDArray[Any]:
        """Each entry's bucket."""
        return self._buckets.values

    def find(self, hashes: Hashes, keys: pa.Array) -> Entries:
        """The entry of each key, or UNKNOWN; `keys` are the keys as bytes."""
        found = np.full(len(hashes), UNKNOWN, dtype=np.int64)
        for level in (self._main, self._recent):
            places, rows = level.first(hashes)
            while len(rows):
                entries = level.entries[places].astype(np.int64)
                is_same = self._keys.equal(entries, keys, rows)
                found[rows[is_same]] = entries[is_same]
                places, rows = level.next(places[~is_same], rows[~is_same], hashes)
        return found

    def add(
        self, hashes: Hashes, keys: pa.Array, partitions: npt.NDArray[np.int64], buckets: npt.NDArray[np.int64]
    ) -> None:
        """Adds keys, distinct and all of them unknown so far; their entries follow the last one."""
        entries = np.arange(len(self), len(self) + len(hashes), dtype=np.uint32)
        order = np.argsort(hashes, kind="stable")
        self._recent.insert(hashes[order], entries[order])
        self._keys.add(keys)
        self._partitions.extend(partitions)
        self._buckets.extend(buckets)
        if len(self._recent.hashes) > max(_LEAST_RECENT, len(self._main.hashes) // _RECENT_SHARE):
            self._main.insert(self._recent.hashes, self._recent.entries)
            self._recent = _SortedHashes()


class _SortedHashes:
    """Hashes in ascending order, several of the same among them, and the entries they stand for."""

    def __init__(self) -> None:
        self.hashes: Hashes = np.empty(0, np.int32)
        self.entries: npt.NDArray[np.uint32] = np.empty(0, np.uint32)

    def first(self, hashes: Hashes) -> tuple[Entries, Entries]:
        """The first place of each hash that is here, and which of the asked ones these are."""
        places = np.searchsorted(self.hashes, hashes)
        return self._those_here(places, np.arange(len(hashes)), hashes)

    def next(self, places: Entries, rows: Entries, hashes: Hashes) -> tuple[Entries, Entries]:
        """The places after these, as far as they are of the same hash."""
        return self._those_here(places + 1, rows, hashes)

    def _those_here(self, places: Entries, rows: Entries, hashes: Hashes) -> tuple[Entries, Entries]:
        if not len(self.hashes):
            return places[:0], rows[:0]
        is_here = self.hashes[np.minimum(places, len(self.hashes) - 1)] == hashes[rows]
        is_here &= places < len(self.hashes)
        return places[is_here], rows[is_here]

    def insert(self, hashes: Hashes, entries: npt.NDArray[np.uint32]) -> None:
        places = np.searchsorted(self.hashes, hashes, side="right")
        self.hashes = np.insert(self.hashes, places, hashes)
        self.entries = np.insert(self.entries, places, entries)


class _Growing:
    """A numpy array to which values are appended."""

    def __init__(self, empty: npt.NDArray[Any]) -> None:
        self._store = empty
        self._count = 0

    @property
    def values(self) -> npt.NDArray[Any]:
        return self._store[: self._count]

    def extend(self, values: npt.NDArray[np.int64]) -> None:
        needed = self._count + len(values)
        if needed > len(self._store):
            grown = np.empty(max(needed, len(self._store) * 5 // 4, 1024), dtype=self._store.dtype)
            grown[: self._count] = self._store[: self._count]
            self._store = grown
        self._store[self._count : needed] = values
        self._count = needed


class _KeyBytes:
    """The bytes of all keys, in blocks: large ones on local disk, small ones in memory until they make a large one."""

    def __init__(self) -> None:
        self._blocks: list[pa.Array] = []
        self._starts: list[int] = [0]
        self._small = 0
        self._names = itertools.count()
        self._directory: str | None = None

    def __len__(self) -> int:
        return self._starts[-1]

    def add(self, keys: pa.Array) -> None:
        if not len(keys):
            return
        self._blocks.append(keys)
        self._starts.append(len(self) + len(keys))
        self._small += 1
        small = self._blocks[-self._small :]
        is_large = sum(block.nbytes for block in small) >= _BLOCK_BYTES
        if not is_large and self._small < _MOST_SMALL_BLOCKS:
            return
        joined = pa.concat_arrays(small)
        self._blocks[-self._small :] = [self._mapped(joined) if is_large else joined]
        self._starts[-self._small - 1 :] = [self._starts[-self._small - 1], self._starts[-1]]
        self._small = 0 if is_large else 1

    def equal(self, entries: Entries, keys: pa.Array, rows: Entries) -> npt.NDArray[np.bool_]:
        """Whether the keys of these entries are those in these rows of `keys`."""
        is_same = np.zeros(len(entries), dtype=np.bool_)
        block_of = np.searchsorted(self._starts, entries, side="right") - 1
        for number in np.unique(block_of).tolist():
            mine = np.flatnonzero(block_of == number)
            stored = self._blocks[number].take(pa.array(entries[mine] - self._starts[number]))
            is_same[mine] = pc.equal(stored, keys.take(pa.array(rows[mine]))).to_numpy(zero_copy_only=False)
        return is_same

    def _mapped(self, keys: pa.Array) -> pa.Array:
        if self._directory is None:
            self._directory = tempfile.mkdtemp(prefix="lakebed-keys-")
            weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        path = os.path.join(self._directory, str(next(self._names)))
        batch = pa.record_batch([keys], names=["key"])
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        with pa.memory_map(path) as source:
            return pa.ipc.open_file(source).get_batch(0).column(0)
