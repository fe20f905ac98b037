"""Files of a commit that fails go, unless readers may see them."""

import uuid

import pytest

from lakebed.commit.attempt import Attempt, Visibility
from lakebed.errors import AlreadyExists
from lakebed.fileio.memory import MemoryFileIO


def _names(fileio: MemoryFileIO) -> list[str]:
    return sorted(entry.name for entry in fileio.list_directory("/t"))


@pytest.fixture
def fileio() -> MemoryFileIO:
    """With a file that was there before."""
    made = MemoryFileIO(f"attempt-{uuid.uuid4()}")
    made.write_bytes("/t/old", b"")
    return made


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_takes_files_back(fileio: MemoryFileIO, error: type[BaseException]) -> None:
    """Those that were made with the attempt, and those that it was told of; nothing else."""
    undone: list[int] = []

    def work() -> None:
        with Attempt(fileio) as attempt:
            attempt.when_given_up(lambda: undone.append(1))
            attempt.fileio.write_bytes("/t/new", b"")
            attempt.note(["/t/elsewhere"])
            raise error

    fileio.write_bytes("/t/elsewhere", b"")
    with pytest.raises(error):
        work()
    assert _names(fileio) == ["old"]
    assert undone == [1]


def test_what_readers_may_see_stays(fileio: MemoryFileIO) -> None:
    """Whatever happens afterwards; also if it is given up twice."""
    attempt = Attempt(fileio)

    def work() -> None:
        with attempt:
            attempt.when_given_up(lambda: pytest.fail("nothing may be undone"))
            attempt.fileio.write_bytes("/t/new", b"")
            attempt.visibility.is_possible = True
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    attempt.give_up()
    assert _names(fileio) == ["new", "old"]


def test_visibility_is_shared(fileio: MemoryFileIO) -> None:
    """Data files and manifests of one snapshot stay or go together."""
    visibility = Visibility()
    data, metadata = Attempt(fileio, visibility), Attempt(fileio, visibility)
    data.fileio.write_bytes("/t/data", b"")
    metadata.fileio.write_bytes("/t/manifest", b"")
    visibility.is_possible = True
    data.give_up()
    metadata.give_up()
    assert _names(fileio) == ["data", "manifest", "old"]


def test_only_what_the_snapshot_names_is_kept(fileio: MemoryFileIO) -> None:
    """With a data file its index stays."""
    with Attempt(fileio) as attempt:
        for name in ("kept", "kept.index", "gone", "gone.index"):
            attempt.fileio.write_bytes(f"/t/{name}", b"")
        attempt.keep_only({"/t/kept"})
    assert _names(fileio) == ["kept", "kept.index", "old"]


def test_a_name_that_was_taken_is_not_ours(fileio: MemoryFileIO) -> None:
    """A file of somebody else survives an attempt that wanted the same name."""
    with pytest.raises(AlreadyExists), Attempt(fileio) as attempt:
        attempt.fileio.write_bytes("/t/old", b"")
    assert _names(fileio) == ["old"]
