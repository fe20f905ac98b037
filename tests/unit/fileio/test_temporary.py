"""Files on local disk that go with their owner."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from lakebed.errors import StorageError
from lakebed.fileio.temporary import TemporaryFiles


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where temporary directories are made."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def _files() -> TemporaryFiles:
    return TemporaryFiles("lakebed-test-", "rows were kept", "keep fewer")


def test_a_directory_is_made_when_needed_and_removed_when_closed(place: Path) -> None:
    """Nothing is made before the first path; closing removes all, and new paths may follow."""
    files = _files()
    assert list(place.iterdir()) == []
    paths = [Path(files.new_path("arrow")) for _ in range(2)]
    assert len(set(paths)) == 2
    for path in paths:
        path.write_text("x")
    files.remove(str(paths[0]))
    files.remove(str(paths[0]))
    assert [path.exists() for path in paths] == [False, True]
    files.close()
    assert list(place.iterdir()) == []
    again = Path(files.new_path("arrow"))
    assert again.parent.is_dir()
    files.close()
    files.close()


def test_it_goes_with_its_owner(place: Path) -> None:
    """An owner that is forgotten leaves nothing behind."""
    files = _files()
    Path(files.new_path("arrow")).write_text("x")
    del files
    gc.collect()
    assert list(place.iterdir()) == []


def test_a_disk_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error says what was kept there, and what to do."""
    with (
        pytest.raises(StorageError, match=r"could not read f while rows were kept: full") as raised,
        _files().using("read", "f"),
    ):
        raise OSError("full")
    assert raised.value.hint == "make room there, choose another place with TMPDIR, or keep fewer"
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StorageError, match="could not make a directory in"):
        _files().new_path("arrow")
