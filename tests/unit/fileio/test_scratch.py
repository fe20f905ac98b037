"""The layer of local files on top of another file system."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path
from uuid import uuid4

import pytest

from lakebed.errors import Unsupported
from lakebed.fileio.memory import MemoryFileIO
from lakebed.fileio.scratch import ScratchFileIO


def test_what_is_written_stays_in_the_layer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files below are read through the layer; files of the layer are seen through it only, and go with it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    below = MemoryFileIO(f"scratch-{uuid4()}")
    below.write_bytes("a/old", b"old")
    layer = ScratchFileIO.over(below)
    layer.write_bytes("a/new", b"new")
    with layer.open_output("a/other") as output:
        output.write(b"other")
    assert layer.read_bytes("a/old") == b"old"
    assert layer.read_bytes("a/new") == b"new"
    with layer.open_input("a/other") as source:
        assert source.read() == b"other"
    with layer.open_input("a/old") as source:
        assert source.read() == b"old"
    assert (layer.size("a/old"), layer.size("a/other")) == (3, 5)
    assert [status.name for status in layer.list_directory("a")] == ["old"]
    assert not below.exists("a/new")
    assert layer.delete("a/new")
    assert not layer.delete("a/old")
    assert below.exists("a/old")
    del layer, output
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_layer_does_not_travel() -> None:
    """Another process would not find the files."""
    layer = ScratchFileIO.over(MemoryFileIO(f"scratch-{uuid4()}"))
    with pytest.raises(Unsupported, match="this machine only"):
        pickle.dumps(layer)
