"""The failing file system: what each mode leaves behind, and that every operation can be made to fail."""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.errors import InvalidArgument, OutcomeUnknown, StorageError
from lakebed.fileio import FileIO, LocalFileIO, MemoryFileIO
from lakebed.testing.faulty_io import MUTATIONS, FaultyFileIO, InjectedFault, SimulatedCrash, count_operations

ROOT = "t"


@pytest.fixture(params=["memory", "local"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FileIO, str]:
    """A file system to put faults in front of."""
    if request.param == "local":
        return LocalFileIO(), str(tmp_path)
    return MemoryFileIO(str(uuid.uuid4())), ROOT


def contents(io: FileIO, root: str) -> dict[str, bytes]:
    """All files, with the random part of temporary names cut out."""
    found = {}
    for status in io.list_recursive(root):
        name = status.path.removeprefix(f"{root}/")
        found[f".{name.split('.')[1]}.tmp" if name.startswith(".") else name] = io.read_bytes(status.path)
    return found


def commit(io: FileIO, root: str = ROOT) -> None:
    """A commit in small: data, manifest, publication, hint."""
    with io.open_output(f"{root}/data") as output:
        output.write(b"rows")
        output.write(b"more")
    io.write_bytes(f"{root}/manifest", b"list")
    io.create_exclusive(f"{root}/snapshot-1", b"snap")
    io.overwrite(f"{root}/LATEST", b"12")


def test_operations_are_recorded(disk: tuple[FileIO, str]) -> None:
    """Without a fault everything passes through and is listed in order."""
    inner, root = disk
    io = FaultyFileIO(inner)
    assert isinstance(io, FileIO)
    commit(io, root)
    assert io.ops == [
        ("open_output", f"{root}/data"),
        ("output.write", f"{root}/data"),
        ("output.write", f"{root}/data"),
        ("output.close", f"{root}/data"),
        ("write_bytes", f"{root}/manifest"),
        ("create_exclusive", f"{root}/snapshot-1"),
        ("overwrite", f"{root}/LATEST"),
    ]
    assert contents(inner, root) == {
        "data": b"rowsmore",
        "manifest": b"list",
        "snapshot-1": b"snap",
        "LATEST": b"12",
    }


EXPECTED_LEFT = {
    # mode -> what is on disk after operations 1 to 7 failed, one at a time
    "error": [
        {},
        {},
        {},
        {},
        {"data": b"rowsmore"},
        {"data": b"rowsmore", "manifest": b"list"},
        {"data": b"rowsmore", "manifest": b"list", "snapshot-1": b"snap"},
    ],
    "error-after-effect": [
        {"data": b""},
        {},
        {},
        {"data": b"rowsmore"},
        {"data": b"rowsmore", "manifest": b"list"},
        {"data": b"rowsmore", "manifest": b"list", "snapshot-1": b"snap"},
        {"data": b"rowsmore", "manifest": b"list", "snapshot-1": b"snap", "LATEST": b"12"},
    ],
    "short-write": [
        {"data": b""},
        {"data": b"ro"},
        {"data": b"rowsmo"},
        {"data": b"rowsmore"},
        {"data": b"rowsmore", "manifest": b"li"},
        {"data": b"rowsmore", "manifest": b"list", ".snapshot-1.tmp": b"sn"},
        {"data": b"rowsmore", "manifest": b"list", "snapshot-1": b"snap", ".LATEST.tmp": b"1"},
    ],
}
EXPECTED_LEFT["unknown"] = EXPECTED_LEFT["error"]
EXPECTED_LEFT["crash"] = EXPECTED_LEFT["short-write"]


@pytest.mark.parametrize("mode", EXPECTED_LEFT)
def test_what_each_fault_leaves_behind(disk: tuple[FileIO, str], mode: str) -> None:
    """At every operation of a commit, each mode leaves exactly what a failure of that kind can leave."""
    inner, root = disk
    for number, expected in enumerate(EXPECTED_LEFT[mode], start=1):
        io = FaultyFileIO(inner, fail_at=number, mode=mode)  # type: ignore[arg-type]
        with pytest.raises(SimulatedCrash if mode == "crash" else InjectedFault):
            commit(io, root)
        assert contents(inner, root) == expected, f"operation {number}"
        inner.delete_directory(root)


def test_outcome_of_create_exclusive() -> None:
    """A publication whose outcome its caller can not know says so, whether or not it took place."""
    for mode, took_place in (("error-after-effect", True), ("unknown", False)):
        inner = MemoryFileIO(str(uuid.uuid4()))
        io = FaultyFileIO(inner, fail_at=1, mode=mode)  # type: ignore[arg-type]
        with pytest.raises(OutcomeUnknown):
            io.create_exclusive("t/snapshot-1", b"x")
        assert inner.exists("t/snapshot-1") is took_place
    io = FaultyFileIO(MemoryFileIO(str(uuid.uuid4())), fail_at=1, mode="error")
    with pytest.raises(StorageError) as raised:
        io.create_exclusive("t/snapshot-1", b"x")
    assert not isinstance(raised.value, OutcomeUnknown)


def test_only_one_operation_fails() -> None:
    """After the fault the file system works again, so that retries and clean-up can be tested."""
    io = FaultyFileIO(MemoryFileIO(str(uuid.uuid4())), fail_at=2)
    io.write_bytes("t/a", b"x")
    with pytest.raises(InjectedFault, match="operation 2: write_bytes t/b"):
        io.write_bytes("t/b", b"x")
    io.write_bytes("t/b", b"x")
    assert len(io.ops) == 3


def test_crash_is_final() -> None:
    """After a crash, neither `except Exception` nor `finally` can repair anything, and nothing is recorded any more."""
    inner = MemoryFileIO(str(uuid.uuid4()))
    io = FaultyFileIO(inner, fail_at=3, mode="crash")

    def commit_with_cleanup() -> None:
        try:
            io.write_bytes("t/a", b"xx")
            io.write_bytes("t/b", b"xx")
            io.write_bytes("t/c", b"xx")
        except Exception:  # noqa: BLE001 - the point of the test
            io.delete("t/a")
        finally:
            io.delete("t/b")

    with pytest.raises(SimulatedCrash):
        commit_with_cleanup()
    assert io.has_crashed
    assert len(io.ops) == 3
    assert contents(inner, "t") == {"a": b"xx", "b": b"xx", "c": b"x"}
    with pytest.raises(SimulatedCrash):
        io.read_bytes("t/a")


def test_crash_leaves_open_files_half_written(disk: tuple[FileIO, str]) -> None:
    """A file that was open when the process died elsewhere stays with what was written so far."""
    inner, root = disk

    def die_while_writing() -> None:
        io = FaultyFileIO(inner, fail_at=3, mode="crash")
        with io.open_output(f"{root}/data") as output:
            output.write(b"rows")
            io.read_bytes(f"{root}/other")

    with pytest.raises(SimulatedCrash):
        die_while_writing()
    assert contents(inner, root) == {"data": b"rows"}


def test_faults_inside_pyarrow_writers(disk: tuple[FileIO, str]) -> None:
    """Faults on the stream of a Parquet writer come out unchanged, at each of its writes and on closing."""
    inner, root = disk
    table = pa.table({"a": [1, 2, 3]})

    def write(io: FileIO) -> None:
        with io.open_output(f"{root}/data.parquet") as output:
            pq.write_table(table, output.stream)

    total = count_operations(write)
    assert total >= 4
    for number in range(1, total + 1):
        for mode, error in (("error", InjectedFault), ("crash", SimulatedCrash)):
            with pytest.raises(error):
                write(FaultyFileIO(inner, fail_at=number, mode=mode))  # type: ignore[arg-type]
            if mode == "error":
                assert not inner.exists(f"{root}/data.parquet")
            inner.delete_directory(root)


def test_half_deleted_directory() -> None:
    """A deletion that fails half-way leaves the other half."""
    inner = MemoryFileIO(str(uuid.uuid4()))
    for name in "abcd":
        inner.write_bytes(f"t/{name}", b"x")
    with pytest.raises(InjectedFault):
        FaultyFileIO(inner, fail_at=1, mode="short-write").delete_directory("t")
    assert sorted(contents(inner, "t")) == ["c", "d"]


def test_every_method_can_fail() -> None:
    """Each method of the interface is an operation that can be made to fail, before any effect."""
    calls = {
        "read_bytes": ("t/a",),
        "open_input": ("t/a",),
        "open_output": ("t/new",),
        "write_bytes": ("t/new", b"x"),
        "overwrite": ("t/a", b"y"),
        "create_exclusive": ("t/new", b"x"),
        "exists": ("t/a",),
        "size": ("t/a",),
        "list_directory": ("t",),
        "list_recursive": ("t",),
        "make_directory": ("u",),
        "delete": ("t/a",),
        "delete_directory": ("t",),
        "delete_empty_directory": ("t",),
        "rename_directory": ("t", "u"),
    }
    # The lock is politeness without effect on files: it never fails.
    assert set(calls) == {name for name in vars(FileIO) if not name.startswith("_")} - {"advisory_lock"}
    inner = MemoryFileIO(str(uuid.uuid4()))
    inner.write_bytes("t/a", b"x")
    for name, arguments in calls.items():
        io = FaultyFileIO(inner, fail_at=1)
        with pytest.raises(InjectedFault):
            getattr(io, name)(*arguments)
        assert io.ops == [(name, arguments[0])]
        assert contents(inner, "t") == {"a": b"x"}
        assert not inner.exists("u")


def test_counting() -> None:
    """count_operations counts all operations, or those asked for."""

    def action(io: FileIO) -> None:
        commit(io)
        io.read_bytes(f"{ROOT}/LATEST")

    assert count_operations(action) == 8
    assert count_operations(action, only=MUTATIONS) == 7
    assert count_operations(action, only={"create_exclusive"}) == 1
    io = FaultyFileIO(MemoryFileIO(str(uuid.uuid4())), fail_at=1, only={"create_exclusive"})
    with contextlib.suppress(InjectedFault):
        action(io)
    assert io.ops == [("create_exclusive", f"{ROOT}/snapshot-1")]


def test_refused_arguments() -> None:
    """A misspelt mode or a count from zero is refused."""
    inner = MemoryFileIO(str(uuid.uuid4()))
    with pytest.raises(InvalidArgument, match="did you mean `crash`"):
        FaultyFileIO(inner, fail_at=1, mode="crush")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="from 1"):
        FaultyFileIO(inner, fail_at=0)
