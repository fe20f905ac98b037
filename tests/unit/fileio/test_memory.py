"""Files in memory: shared by name within the process, and never silently empty outside it."""

from __future__ import annotations

import os
import pickle

import pytest

from lakebed.errors import AlreadyExists, Unsupported
from lakebed.fileio import MemoryFileIO, open_fileio


def test_one_name_one_set_of_files() -> None:
    """Two handles of the same name see the same files; another name does not."""
    io, root = open_fileio("memory://test-shared/a")
    io.write_bytes(f"{root}/f", b"x")
    again, root_again = open_fileio("memory://test-shared/a/")
    assert root_again == root == "test-shared/a"
    assert again.read_bytes(f"{root}/f") == b"x"
    assert not MemoryFileIO("test-other").exists(f"{root}/f")


def test_pickle_within_the_process() -> None:
    """A pickled handle comes back as the same files."""
    io = MemoryFileIO("test-pickle")
    io.write_bytes("test-pickle/f", b"x")
    assert pickle.loads(pickle.dumps(io)).read_bytes("test-pickle/f") == b"x"


def test_pickle_into_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process is told that it can not see the files, instead of seeing none."""
    pickled = pickle.dumps(MemoryFileIO("test-pickle"))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(Unsupported, match="another process"):
        pickle.loads(pickled)


def test_directories_exist_on_their_own() -> None:
    """An empty directory exists and is listed, as on a disk."""
    io = MemoryFileIO("test-directories")
    io.make_directory("test-directories/a/b")
    assert io.exists("test-directories/a/b")
    assert [(status.name, status.is_directory) for status in io.list_directory("test-directories/a")] == [("b", True)]


def test_output_refuses_a_taken_name() -> None:
    """A data file never replaces another one."""
    io = MemoryFileIO("test-taken")
    io.overwrite("test-taken/f", b"x")
    with pytest.raises(AlreadyExists):
        io.open_output("test-taken/f")
