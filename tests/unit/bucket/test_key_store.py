"""Keys and their places in a file on local disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakebed.bucket.key_store import KeyChanges, KeyStore
from lakebed.errors import StorageError


def keys(names: Sequence[str]) -> pa.Array:
    """Keys as bytes."""
    return pa.array([name.encode() for name in names], pa.binary())


def made(path: Path, names: Sequence[str], bucket: int = 1, written_s: int = 100) -> None:
    """A file with keys in a bucket of partition `a`."""
    store = KeyStore.create(str(path), "d")
    number, count = store.number(b"a"), len(names)
    where = np.full(count, number, np.int64), np.full(count, bucket, np.int64)
    store.add(keys(names), *where, np.full(count, written_s, np.int32))
    store.note_rows(number, bucket, count)
    store.stand_at("one")
    store.close()


def change(store: KeyStore, rows: Sequence[tuple[str, bytes, int, bool]], **how: bool) -> None:
    """Rows of keys, partitions, buckets and whether they are gone."""
    changes = KeyChanges(
        keys([row[0] for row in rows]),
        np.array([store.number(row[1]) for row in rows], np.int64),
        np.array([row[2] for row in rows], np.int64),
        np.array([row[3] for row in rows]),
        np.full(len(rows), 200, np.int32),
    )
    store.change(changes, **{"moves": True, "notes_time": False, **how})


def places(store: KeyStore, names: str = "uvwxyz", since_s: int | None = None) -> dict[str, tuple[bytes, int]]:
    """Where each of these keys is."""
    found = store.find(keys(names), since_s)
    return {
        names[row]: (store.partitions[partition], bucket)
        for row, partition, bucket in zip(found.rows, found.partitions, found.buckets, strict=True)
    }


def test_what_was_kept_is_found_by_others(tmp_path: Path) -> None:
    """Keys, counts and the state outlive the process; several may read at once."""
    made(tmp_path / "k", "xy")
    one, other = (KeyStore.open(str(tmp_path / "k"), "d", is_read_only=True) for _ in range(2))
    for store in (one, other):
        assert places(store) == {"x": (b"a", 1), "y": (b"a", 1)}
        assert (store.state, store.counts, store.partitions) == ("one", {(0, 1): 2}, [b"a"])
        store.close()


def test_changes_follow_keys(tmp_path: Path) -> None:
    """Keys move, go, come and stay; a delete counts only where its key is. Buckets are counted anew."""
    made(tmp_path / "k", "wxyz")
    store = KeyStore.open(str(tmp_path / "k"), "d", is_read_only=False)
    change(store, [("w", b"a", 1, True), ("w", b"b", 2, False), ("x", b"a", 1, True), ("y", b"c", 1, True)])
    change(store, [("z", b"a", 1, False), ("v", b"b", 2, False), ("u", b"b", 2, True)])
    expected = {"w": (b"b", 2), "y": (b"a", 1), "z": (b"a", 1), "v": (b"b", 2)}
    assert places(store) == expected
    store.stand_at("two")
    store.close()
    store = KeyStore.open(str(tmp_path / "k"), "d", is_read_only=True)
    assert (places(store), store.state, store.counts) == (expected, "two", {(0, 1): 2, (1, 2): 2})
    store.close()


def test_keys_that_do_not_move_stay(tmp_path: Path) -> None:
    """Where rows are merged a key is where its first row went, and is noted as written again."""
    made(tmp_path / "k", "xy")
    store = KeyStore.open(str(tmp_path / "k"), "d", is_read_only=False)
    change(store, [("x", b"b", 2, False), ("z", b"b", 2, False)], moves=False, notes_time=True)
    assert places(store) == {"x": (b"a", 1), "y": (b"a", 1), "z": (b"b", 2)}
    assert places(store, since_s=150) == {"x": (b"a", 1), "z": (b"b", 2)}
    assert store.counts == {(0, 1): 2, (1, 2): 1}
    store.forget(150)
    assert places(store) == {"x": (b"a", 1), "z": (b"b", 2)}
    store.close()


def test_what_is_not_stated_is_not_kept(tmp_path: Path) -> None:
    """A process that dies before the new state is reached leaves the old one."""
    made(tmp_path / "k", "x")
    store = KeyStore.open(str(tmp_path / "k"), "d", is_read_only=False)
    change(store, [("x", b"a", 1, True), ("y", b"a", 1, False)])
    store.close()
    store = KeyStore.open(str(tmp_path / "k"), "d", is_read_only=True)
    assert (places(store), store.state) == ({"x": (b"a", 1)}, "one")
    store.close()


def test_of_several_places_the_latest_counts(tmp_path: Path) -> None:
    """A key that was forgotten and came again may be there twice."""
    store = KeyStore.create(str(tmp_path / "k"), "d")
    where = np.array([store.number(b"a"), store.number(b"b")]), np.array([1, 2])
    store.add(keys("xx"), *where, np.array([200, 100], np.int32))
    assert places(store) == {"x": (b"a", 1)}
    store.close()


@pytest.mark.parametrize("body", [b"", b"not a store at all" * 1000])
def test_other_files_are_refused(tmp_path: Path, body: bytes) -> None:
    """A file that is no store, or one of another index, is told as a failure of storage."""
    (tmp_path / "other").write_bytes(body)
    with pytest.raises(StorageError):
        KeyStore.open(str(tmp_path / "other"), "d", is_read_only=True)
    made(tmp_path / "k", "x")
    with pytest.raises(StorageError, match="another index"):
        KeyStore.open(str(tmp_path / "k"), "e", is_read_only=True)
