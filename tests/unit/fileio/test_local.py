"""The local file system: durability, exclusive creation between processes, and what errors turn into."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.patience import PATIENCE_S

from lakebed.errors import FileMissing, InvalidArgument, OutcomeUnknown, StorageError, Unsupported
from lakebed.fileio import LocalFileIO, posix
from lakebed.fileio import local as local_module

IO = LocalFileIO()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the system calls that durability rests on, in the order they are made, with what they act on."""
    made: list[str] = []

    def spy(name: str, describe: Callable[..., str]) -> None:
        real = getattr(os, name)

        def wrapper(*arguments: object) -> object:
            made.append(f"{name} {describe(*arguments)}")
            return real(*arguments)

        monkeypatch.setattr(os, name, wrapper)

    def open_file(descriptor: int) -> str:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        return "directory " + path.name if path.is_dir() else kind(str(path))

    def kind(path: str) -> str:
        return "temporary" if path.endswith(".tmp") else os.path.basename(path)

    spy("fsync", open_file)
    spy("link", lambda source, target: f"{kind(source)} {kind(target)}")
    spy("replace", lambda source, target: f"{kind(source)} {kind(target)}")
    spy("mkdir", kind)
    spy("unlink", kind)
    return made


linux_only = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="reads descriptors' names from /proc")


@linux_only
def test_create_exclusive_syncs_in_order(tmp_path: Path, calls: list[str]) -> None:
    """The bytes are on disk before the name is given, and the name is on disk before success is reported."""
    assert IO.create_exclusive(f"{tmp_path}/snapshot-1", b"x")
    assert calls == [
        "fsync temporary",
        "link temporary snapshot-1",
        "unlink temporary",
        f"fsync directory {tmp_path.name}",
    ]


@linux_only
def test_write_bytes_syncs_file_and_directories(tmp_path: Path, calls: list[str]) -> None:
    """A new file, its name, and the directories made for it are all on disk."""
    IO.write_bytes(f"{tmp_path}/a/b/m", b"x")
    assert calls == [
        "mkdir a",
        f"fsync directory {tmp_path.name}",
        "mkdir b",
        "fsync directory a",
        "fsync m",
        "fsync directory b",
    ]


@linux_only
def test_output_syncs_file_and_directory(tmp_path: Path, calls: list[str]) -> None:
    """A data file and its name are on disk when its with block ends, and not before it is complete."""
    with IO.open_output(f"{tmp_path}/data") as output:
        output.write(b"x")
        assert calls == []
    assert calls == ["fsync data", f"fsync directory {tmp_path.name}"]


@linux_only
def test_overwrite_syncs_before_it_replaces(tmp_path: Path, calls: list[str]) -> None:
    """A replaced file never becomes visible before its bytes are on disk."""
    IO.overwrite(f"{tmp_path}/LATEST", b"1")
    assert calls == ["fsync temporary", "replace temporary LATEST", f"fsync directory {tmp_path.name}"]


def _race(root: str, writer: int, rounds: int, start: object, won: object) -> None:
    for number in range(rounds):
        start.wait()  # type: ignore[attr-defined]
        if LocalFileIO().create_exclusive(f"{root}/snapshot-{number}", f"{writer} ".encode() * 3000):
            won.put((number, writer))  # type: ignore[attr-defined]


def test_create_exclusive_has_one_winner_among_processes(tmp_path: Path) -> None:
    """Of eight processes that race for each name exactly one wins; its bytes are there whole; no temporaries stay."""
    rounds = 20
    context = multiprocessing.get_context("spawn")
    start, won = context.Barrier(8), context.Queue()
    racers = [context.Process(target=_race, args=(str(tmp_path), n, rounds, start, won)) for n in range(8)]
    for racer in racers:
        racer.start()
    winners = sorted(won.get(timeout=PATIENCE_S) for _ in range(rounds))
    for racer in racers:
        racer.join(PATIENCE_S)
        assert racer.exitcode == 0
    assert won.empty()
    assert [number for number, _ in winners] == list(range(rounds))
    for number, writer in winners:
        assert (tmp_path / f"snapshot-{number}").read_bytes() == f"{writer} ".encode() * 3000
    assert len(os.listdir(tmp_path)) == rounds


def failing(error_number: int, *, after: Callable[..., object] | None = None) -> Callable[..., None]:
    """A system call that fails, having taken effect or not."""

    def call(*arguments: object) -> None:
        if after is not None:
            after(*arguments)
        raise OSError(error_number, os.strerror(error_number))

    return call


def test_lost_answer_of_a_successful_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that took effect although it reported a failure is recognised as ours, whatever it reported."""
    for number, code in enumerate((errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EEXIST)):
        with monkeypatch.context() as patch:
            patch.setattr(os, "link", failing(code, after=os.link))
            assert IO.create_exclusive(f"{tmp_path}/snapshot-{number}", b"same") is True
    assert sorted(os.listdir(tmp_path)) == [f"snapshot-{n}" for n in range(4)]


def test_failed_link_and_a_foreign_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an unclear failure, a file with other content means that somebody else won."""

    def somebody_else(source: str, target: str) -> None:
        Path(target).write_bytes(b"theirs")

    monkeypatch.setattr(os, "link", failing(errno.EIO, after=somebody_else))
    assert IO.create_exclusive(f"{tmp_path}/snapshot-1", b"ours") is False
    assert os.listdir(tmp_path) == ["snapshot-1"]


def test_equal_content_of_somebody_else_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the name is plainly taken, the file's identity decides, so equal bytes do not make two winners."""

    def somebody_else(source: str, target: str) -> None:
        Path(target).write_bytes(b"same")

    monkeypatch.setattr(os, "link", failing(errno.EEXIST, after=somebody_else))
    assert IO.create_exclusive(f"{tmp_path}/schema-0", b"same") is False


def test_unclear_failure_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an unclear failure and with no file to look at, the outcome is unknown, and no temporary file stays."""
    monkeypatch.setattr(os, "link", failing(errno.EIO))
    with pytest.raises(OutcomeUnknown, match="snapshot-1") as raised:
        IO.create_exclusive(f"{tmp_path}/snapshot-1", b"x")
    assert "delete nothing" in raised.value.hint
    assert os.listdir(tmp_path) == []


def test_clear_failure_is_no_unknown_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk at link time is an ordinary failure: nothing was created."""
    monkeypatch.setattr(os, "link", failing(errno.ENOSPC))
    with pytest.raises(StorageError, match="disk is full") as raised:
        IO.create_exclusive(f"{tmp_path}/snapshot-1", b"x")
    assert not isinstance(raised.value, OutcomeUnknown)
    assert os.listdir(tmp_path) == []


def test_unconfirmed_directory_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk does not confirm the new name, the file stays and the outcome is unknown."""
    monkeypatch.setattr(local_module, "sync_directory", failing(errno.EIO))
    with pytest.raises(OutcomeUnknown, match="did not confirm"):
        IO.create_exclusive(f"{tmp_path}/snapshot-1", b"x")
    assert os.listdir(tmp_path) == ["snapshot-1"]


def test_directories_that_can_not_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Network file systems that have no directory sync (EINVAL) work all the same."""
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EINVAL, "no directory sync here")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    assert IO.create_exclusive(f"{tmp_path}/snapshot-1", b"x")


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP])
def test_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Where link(2) does not exist, renaming without replacing creates just as exclusively."""
    monkeypatch.setattr(os, "link", failing(code))
    assert IO.create_exclusive(f"{tmp_path}/snapshot-1", b"first") is True
    monkeypatch.setattr(os.path, "lexists", lambda path: False)  # as if both writers had looked at the same time
    assert IO.create_exclusive(f"{tmp_path}/snapshot-1", b"second") is False
    assert (tmp_path / "snapshot-1").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["snapshot-1"]


def test_without_any_exclusive_create(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With neither hard links nor rename without replace, committing is refused rather than made unsafe."""
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    monkeypatch.setattr(local_module, "rename_if_absent", failing(errno.EINVAL))
    with pytest.raises(Unsupported, match="hard links"):
        IO.create_exclusive(f"{tmp_path}/snapshot-1", b"x")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EDQUOT, "quota"),
        (errno.EACCES, "permission denied"),
        (errno.EROFS, "read-only"),
        (errno.EMFILE, "too many open files"),
        (errno.EIO, "check the disk"),
    ],
)
def test_hints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, hint: str) -> None:
    """Each common failure names the path and its own next step, and leaves no file behind."""
    monkeypatch.setattr(os, "fsync", failing(code))
    for write in (IO.write_bytes, IO.overwrite, IO.create_exclusive):
        with pytest.raises(StorageError) as raised:
            write(f"{tmp_path}/some-file", b"x")
        assert "some-file" in raised.value.message
        assert hint in raised.value.hint
    with pytest.raises(StorageError) as raised, IO.open_output(f"{tmp_path}/some-file") as output:
        output.write(b"x")
    assert hint in raised.value.hint
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_reaches_the_caller_of_a_parquet_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error inside a pyarrow writer comes out as ours, not as pyarrow's."""
    output = IO.open_output(f"{tmp_path}/data")
    real = output._file  # type: ignore[attr-defined]
    output._file = open("/dev/full", "wb", buffering=0)  # type: ignore[attr-defined]  # noqa: SIM115
    with pytest.raises(StorageError, match="disk is full"):
        output.stream.write(b"x" * 100)
    output.abort()
    real.close()
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_directory_is_not_empty(tmp_path: Path) -> None:
    """A directory that may not be read is an error, never an empty listing."""
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(StorageError, match="permission"):
        IO.list_directory(f"{tmp_path}/closed")


def test_failing_listing_is_not_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing that fails half-way down a tree raises instead of leaving files out."""
    IO.write_bytes(f"{tmp_path}/a/b/f", b"x")
    real = os.scandir

    def scandir(path: str) -> object:
        if path.endswith("b"):
            raise OSError(errno.EIO, "bad sector")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(StorageError, match="bad sector"):
        list(IO.list_recursive(str(tmp_path)))


def test_parent_is_a_file(tmp_path: Path) -> None:
    """Writing below a file is refused with a hint, and is not mistaken for a name being taken."""
    IO.write_bytes(f"{tmp_path}/f", b"x")
    with pytest.raises(StorageError, match="not a directory"):
        IO.write_bytes(f"{tmp_path}/f/g", b"x")
    with pytest.raises(InvalidArgument, match="null"):
        IO.write_bytes(f"{tmp_path}/a\0b", b"x")


def test_links_are_not_followed_out_of_the_tree(tmp_path: Path) -> None:
    """A link to a directory is neither descended into nor emptied."""
    IO.write_bytes(f"{tmp_path}/elsewhere/f", b"x")
    IO.write_bytes(f"{tmp_path}/table/g", b"x")
    os.symlink(tmp_path, tmp_path / "table" / "loop")
    assert [status.name for status in IO.list_recursive(f"{tmp_path}/table")] == ["g"]
    IO.delete_directory(f"{tmp_path}/table")
    assert sorted(os.listdir(tmp_path)) == ["elsewhere"]


def test_rename_never_replaces_an_empty_directory(tmp_path: Path) -> None:
    """rename(2) would replace an empty directory silently; a database without tables is one."""
    IO.write_bytes(f"{tmp_path}/a.db/t", b"x")
    IO.make_directory(f"{tmp_path}/b.db")
    with pytest.raises(local_module.AlreadyExists):
        IO.rename_directory(f"{tmp_path}/a.db", f"{tmp_path}/b.db")
    assert sorted(os.listdir(tmp_path)) == ["a.db", "b.db"]


def test_rename_into_itself(tmp_path: Path) -> None:
    """An impossible rename is an error and leaves nothing new behind."""
    IO.write_bytes(f"{tmp_path}/a/f", b"x")
    with pytest.raises(StorageError):
        IO.rename_directory(f"{tmp_path}/a", f"{tmp_path}/a/b")
    assert os.listdir(tmp_path / "a") == ["f"]


def test_pickle(tmp_path: Path) -> None:
    """The local file system travels to other processes."""
    assert pickle.loads(pickle.dumps(IO)) == IO


def test_deletion_by_two_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that somebody else deletes first do not stop a directory from being deleted."""
    for name in "abc":
        IO.write_bytes(f"{tmp_path}/t/{name}", b"x")
    real, removed = os.unlink, []

    def unlink(path: str, *, dir_fd: int | None = None) -> None:
        real(path, dir_fd=dir_fd)
        if not removed:
            removed.append(path)
            raise FileNotFoundError(errno.ENOENT, "somebody else was faster", path)

    monkeypatch.setattr(os, "unlink", unlink)
    IO.delete_directory(f"{tmp_path}/t")
    assert os.listdir(tmp_path) == []


def test_missing_file_names_the_next_step() -> None:
    """FileMissing says what to check."""
    error = posix.storage_error("read", "/t/f", FileNotFoundError(errno.ENOENT, "no"))
    assert isinstance(error, FileMissing)
    assert "read the table again" in error.hint
