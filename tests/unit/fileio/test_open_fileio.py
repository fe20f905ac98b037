"""Choosing a file system by URL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakebed.errors import InvalidArgument, MissingDependency
from lakebed.fileio import FILE_SYSTEMS, LocalFileIO, open_fileio


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("FILE:///a/b", "/a/b"),
        ("/a/dt=x%3Ay", "/a/dt=x%3Ay"),
        ("file:///a/dt=x%3Ay", "/a/dt=x%3Ay"),
        ("/a/c:/b", "/a/c:/b"),
    ],
)
def test_local_paths(url: str, path: str) -> None:
    """Plain paths and file URLs are local, and percent signs are part of the name."""
    assert open_fileio(url) == (LocalFileIO(), path)


def test_relative_and_home_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths are made absolute when opened, so changing the working directory later does no harm."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert open_fileio("lake")[1] == os.path.join(os.getcwd(), "lake")
    assert open_fileio("~/lake")[1] == "/home/somebody/lake"
    assert open_fileio(tmp_path / "x")[1] == f"{tmp_path}/x"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("memroy://x", "did you mean `memory`?"),
        ("hdfs://host/x", "valid choices"),
        ("", "empty"),
        ("memory://", "memory://name"),
        ("s3:///x", "s3://bucket/path"),
        ("file://elsewhere/x", "elsewhere"),
    ],
)
def test_refused_urls(url: str, words: str) -> None:
    """URLs that lead nowhere are refused with the form to write instead."""
    with pytest.raises(InvalidArgument) as raised:
        open_fileio(url)
    assert words in str(raised.value)


def test_registry_can_be_extended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheme added to the registry is used."""
    monkeypatch.setitem(FILE_SYSTEMS, "mine", lambda url, options: (LocalFileIO(), options["root"]))
    assert open_fileio("mine://x", {"root": "/r"})[1] == "/r"


def test_object_stores_need_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the client library the error names the extra to install."""
    monkeypatch.delitem(sys.modules, "lakebed.fileio.object_store", raising=False)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingDependency, match=r'pip install "lakebed\[object-store\]"'):
        open_fileio("s3://bucket/x")


def test_importing_does_not_load_the_client() -> None:
    """Opening a local table does not pay for the object-store client."""
    code = "import sys, lakebed.fileio as f; f.open_fileio('/x'); sys.exit('obstore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
