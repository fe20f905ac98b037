"""Files that are made durable together: complete at once, durable when asked, and no promise broken."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from lakebed.errors import AlreadyExists, StorageError
from lakebed.fileio.local import LocalFileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.fileio.sync_later import SyncLater


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of what has been synced."""
    paths: list[str] = []
    real = os.fsync

    def spy(descriptor: int) -> None:
        paths.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    return paths


def test_files_and_their_directories_are_synced_once(tmp_path: Path, synced: list[str]) -> None:
    """Nothing is synced while files are written; `sync` covers all of them and each directory, and forgets them."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    fileio, sync = SyncLater.of(LocalFileIO())
    names = ["a/1", "a/2", "b/3"]
    fileio.write_bytes(str(tmp_path / "a/1"), b"x")
    for name in names[1:]:
        with fileio.open_output(str(tmp_path / name)) as output:
            output.write(b"yz")
    assert synced == []
    assert [fileio.read_bytes(str(tmp_path / name)) for name in names] == [b"x", b"yz", b"yz"]
    sync()
    assert sorted(synced) == sorted(str(tmp_path / name) for name in ["a", "b", *names])
    sync()
    assert len(synced) == 5


def test_a_name_that_is_taken_stays_taken(tmp_path: Path) -> None:
    """The file of somebody else is not touched."""
    fileio, _ = SyncLater.of(LocalFileIO())
    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(AlreadyExists):
        fileio.write_bytes(str(tmp_path / "f"), b"new")
    with pytest.raises(AlreadyExists):
        fileio.open_output(str(tmp_path / "f"))
    assert (tmp_path / "f").read_bytes() == b"old"


def test_a_disk_that_fails_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can not be made durable is an error that names the file, before anybody relies on it."""
    fileio, sync = SyncLater.of(LocalFileIO())
    fileio.write_bytes(str(tmp_path / "f"), b"x")

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match=str(tmp_path)):
        sync()


def test_what_was_removed_again_does_not_matter(tmp_path: Path) -> None:
    """A file that was given up before the end is not missed."""
    fileio, sync = SyncLater.of(LocalFileIO())
    fileio.write_bytes(str(tmp_path / "f"), b"x")
    fileio.delete(str(tmp_path / "f"))
    output = fileio.open_output(str(tmp_path / "g"))
    output.abort()
    sync()
    assert list(tmp_path.iterdir()) == []


def test_other_storage_is_handed_on() -> None:
    """What makes its files durable by itself needs nothing of this."""
    memory = MemoryFileIO("sync-later")
    fileio, sync = SyncLater.of(memory)
    assert fileio is memory
    sync()
