"""Consumers."""

from __future__ import annotations

import pytest

from lakebed.errors import CorruptFile, InvalidArgument
from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.consumer import ConsumerStore
from lakebed.metadata.paths import TablePaths


@pytest.fixture
def store(fileio: MemoryFileIO, paths: TablePaths) -> ConsumerStore:
    """Consumers of an empty table."""
    return ConsumerStore(fileio, paths)


def test_progress_is_kept(store: ConsumerStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """Recording overwrites, forward and backward; a deleted consumer is unknown."""
    assert store.next_snapshot("c") is None
    store.record("c", 5)
    assert fileio.read_bytes(paths.consumer_file("c")) == b'{"nextSnapshot": 5, "lakebedCrc32": "6a7da02925cf8f9f"}'
    store.record("c", 3)
    assert store.next_snapshot("c") == 3
    assert store.delete("c")
    assert not store.delete("c")


def test_what_was_read_last_is_kept_beside(store: ConsumerStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """The list of the last snapshot is a member of its own, which goes when progress is recorded without it."""
    assert store.last_list("c") is None
    store.record("c", 5, "manifest-list-a-1")
    assert (store.next_snapshot("c"), store.last_list("c")) == (5, "manifest-list-a-1")
    store.record("c", 5)
    assert (store.next_snapshot("c"), store.last_list("c")) == (5, None)


def test_the_slowest_consumer_counts(store: ConsumerStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """Expiration asks for the oldest snapshot anybody still needs."""
    assert store.min_next_snapshot() is None
    store.record("b", 7)
    store.record("a", 9)
    fileio.write_bytes(f"{paths.consumer_directory}/.tmp", b"x")
    assert [(consumer.id, consumer.next_snapshot) for consumer in store.list()] == [("a", 9), ("b", 7)]
    assert all(consumer.modified_ms > 0 for consumer in store.list())
    assert store.min_next_snapshot() == 7


def test_a_damaged_consumer_stops_expiration(store: ConsumerStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """Whoever can not read what a consumer needs must not delete anything."""
    fileio.write_bytes(paths.consumer_file("c"), b'{"next": 1}')
    with pytest.raises(CorruptFile, match="consumer-c"):
        store.min_next_snapshot()


def test_ids_begin_at_one(store: ConsumerStore) -> None:
    """Progress before the first snapshot is a mistake."""
    with pytest.raises(InvalidArgument, match="consumer `c`"):
        store.record("c", 0)
