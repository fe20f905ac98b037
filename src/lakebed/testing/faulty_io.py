"""A file system that fails on demand, to prove that a table survives a failure at every single file operation.

Wrap a `FileIO`, run an action, and the n-th operation goes wrong:

| mode | the n-th operation |
|---|---|
| `error` | fails without having had any effect |
| `error-after-effect` | takes effect, and fails all the same (the answer got lost) |
| `unknown` | has no effect, and `create_exclusive` says that it does not know; other operations fail as in `error` |
| `short-write` | leaves half of what it should write, or deletes half of what it should delete, and fails |
| `crash` | as `short-write`, and the process is dead: every later operation raises `SimulatedCrash` |

Half a file stays behind only where a real one could: under fresh names (`write_bytes`, `open_output`). For
`create_exclusive` and `overwrite` it is a hidden temporary file; the target is never half.

`SimulatedCrash` is not an `Exception`, so `except Exception` cleanup does not run, as it would not in a process that is
killed. `finally` and `with` blocks do run; what they try on the file system raises again and has no effect. Afterwards,
look at the wrapped `FileIO` itself: it is the disk that the next process finds.

The loop that visits every operation:

    for n in range(1, count_operations(action) + 1):
        disk = MemoryFileIO(f"run-{n}")
        with contextlib.suppress(StorageError):
            action(FaultyFileIO(disk, fail_at=n, mode="error"))
        assert table_is_consistent(disk)
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Container, Iterator
from typing import Literal, TypeVar, get_args

import pyarrow as pa

from lakebed.errors import InvalidArgument, OutcomeUnknown, StorageError, did_you_mean
from lakebed.fileio.base import FileIO, FileStatus, OutputFile
from lakebed.fileio.memory import MemoryFileIO

__all__ = [
    "MUTATIONS",
    "FaultMode",
    "FaultyFileIO",
    "InjectedFault",
    "InjectedOutcomeUnknown",
    "SimulatedCrash",
    "count_operations",
]

FaultMode = Literal["error", "error-after-effect", "unknown", "short-write", "crash"]

# The operations that change files: give them as `only` to leave reads out of the count.
MUTATIONS = frozenset(
    {
        "open_output",
        "output.write",
        "output.close",
        "output.abort",
        "write_bytes",
        "overwrite",
        "create_exclusive",
        "make_directory",
        "delete",
        "delete_directory",
        "delete_empty_directory",
        "rename_directory",
    }
)

_Result = TypeVar("_Result")


class InjectedFault(StorageError):
    """The failure that was asked for."""


class InjectedOutcomeUnknown(InjectedFault, OutcomeUnknown):
    """The failure that was asked for, of a `create_exclusive` whose outcome its caller can not know."""


class SimulatedCrash(BaseException):
    """The process died here. Not an `Exception`: a dead process handles nothing."""


class FaultyFileIO:
    """Passes everything on to `inner`, keeps the list of operations, and makes the `fail_at`-th one fail (from 1).

    `only` restricts what is counted, and hence what can fail, to some methods; `ops` holds the counted operations.
    """

    def __init__(
        self,
        inner: FileIO,
        fail_at: int | None = None,
        mode: FaultMode = "error",
        *,
        only: Container[str] | None = None,
    ) -> None:
        if mode not in get_args(FaultMode):
            raise InvalidArgument(f"unknown fault mode `{mode}`", hint=did_you_mean(mode, get_args(FaultMode)))
        if fail_at is not None and fail_at < 1:
            raise InvalidArgument(f"fail_at is {fail_at}", hint="operations are counted from 1")
        self.inner = inner
        self.fail_at = fail_at
        self.mode: FaultMode = mode
        self.ops: list[tuple[str, str]] = []
        self.has_crashed = False
        self._only = only
        self._lock = threading.Lock()
        self._open_outputs: list[OutputFile] = []

    def read_bytes(self, path: str) -> bytes:
        return self._run("read_bytes", path, lambda: self.inner.read_bytes(path))

    def open_input(self, path: str) -> pa.NativeFile:
        return self._run("open_input", path, lambda: self.inner.open_input(path))

    def open_output(self, path: str) -> OutputFile:
        def begin() -> OutputFile:
            opened = self.inner.open_output(path)
            self._open_outputs.append(opened)
            return opened

        def begin_and_lose() -> None:
            begin().close()  # the name is there, the handle never reached the caller

        return _FaultyOutputFile(self, self._run("open_output", path, begin, begin_and_lose, begin_and_lose))

    def write_bytes(self, path: str, data: bytes) -> None:
        def half() -> None:
            self.inner.write_bytes(path, _half(data))

        self._run("write_bytes", path, lambda: self.inner.write_bytes(path, data), half)

    def overwrite(self, path: str, data: bytes) -> None:
        self._run("overwrite", path, lambda: self.inner.overwrite(path, data), lambda: self._leave(path, data))

    def create_exclusive(self, path: str, data: bytes) -> bool:
        def create() -> bool:
            return self.inner.create_exclusive(path, data)

        return self._run("create_exclusive", path, create, lambda: self._leave(path, data))

    def exists(self, path: str) -> bool:
        return self._run("exists", path, lambda: self.inner.exists(path))

    def size(self, path: str) -> int:
        return self._run("size", path, lambda: self.inner.size(path))

    def list_directory(self, path: str) -> list[FileStatus]:
        return self._run("list_directory", path, lambda: self.inner.list_directory(path))

    def list_recursive(self, path: str) -> Iterator[FileStatus]:
        return self._run("list_recursive", path, lambda: self.inner.list_recursive(path))

    def make_directory(self, path: str) -> None:
        self._run("make_directory", path, lambda: self.inner.make_directory(path))

    def delete(self, path: str) -> bool:
        return self._run("delete", path, lambda: self.inner.delete(path))

    def delete_directory(self, path: str) -> None:
        def half() -> None:
            files = list(self.inner.list_recursive(path))
            for status in files[: len(files) // 2]:
                self.inner.delete(status.path)

        self._run("delete_directory", path, lambda: self.inner.delete_directory(path), half)

    def delete_empty_directory(self, path: str) -> bool:
        return self._run("delete_empty_directory", path, lambda: self.inner.delete_empty_directory(path))

    def rename_directory(self, source: str, target: str) -> None:
        self._run("rename_directory", source, lambda: self.inner.rename_directory(source, target))

    def advisory_lock(self, directory: str) -> contextlib.AbstractContextManager[None]:
        # No file operation of its own, so nothing to count; after a crash nobody waits for anybody.
        return contextlib.nullcontext() if self.has_crashed else self.inner.advisory_lock(directory)

    def _run(
        self,
        method: str,
        path: str,
        effect: Callable[[], _Result],
        half: Callable[[], object] | None = None,
        lost: Callable[[], object] | None = None,
    ) -> _Result:
        """Carry an operation out, or fail it. `half` is its partial effect; `lost` its whole one without a receiver."""
        if not self._is_due(method, path):
            return effect()
        if self.mode == "error-after-effect":
            (lost or effect)()
        elif self.mode in ("short-write", "crash") and half is not None:
            half()
        if self.mode == "crash":
            self._die(method, path)
        raise self._fault(method, path)

    def _is_due(self, method: str, path: str) -> bool:
        """Count the operation; whether it is the one to fail."""
        with self._lock:
            if self.has_crashed:
                raise SimulatedCrash(f"{method} {path}: the process is dead already")
            if self._only is not None and method not in self._only:
                return False
            self.ops.append((method, path))
            return len(self.ops) == self.fail_at

    def _die(self, method: str, path: str) -> None:
        self.has_crashed = True
        for output in self._open_outputs:
            output.close()  # what was written so far stays, as a half file
        raise SimulatedCrash(f"{method} {path}: operation {self.fail_at}")

    def _fault(self, method: str, path: str) -> InjectedFault:
        is_unknown = method == "create_exclusive" and self.mode in ("unknown", "error-after-effect")
        kind = InjectedOutcomeUnknown if is_unknown else InjectedFault
        return kind(
            f"injected fault ({self.mode}) at operation {self.fail_at}: {method} {path}",
            hint="this failure was asked for by a test",
        )

    def _leave(self, path: str, data: bytes) -> None:
        """Leave half a temporary file beside a target that is only ever seen whole."""
        directory, separator, name = path.rpartition("/")
        self.inner.write_bytes(f"{directory}{separator}.{name}.{uuid.uuid4()}.tmp", _half(data))


class _FaultyOutputFile(OutputFile):
    """The file handle of `FaultyFileIO`: writing, closing and aborting are operations of their own."""

    def __init__(self, io: FaultyFileIO, inner: OutputFile) -> None:
        super().__init__(inner.path)
        self._io = io
        self._inner = inner

    def _append(self, data: memoryview) -> None:
        def half() -> None:
            self._inner.write(_half(data))
            self._inner.close()

        self._io._run("output.write", self.path, lambda: self._inner.write(data), half)

    def _complete(self) -> None:
        self._io._run("output.close", self.path, self._inner.close, self._inner.close)

    def _discard(self) -> None:
        # Once the inner file is closed it stays: half (short write, crash) or whole (the answer to close got lost).
        self._io._run("output.abort", self.path, self._inner.abort)


def _half(data: bytes | memoryview) -> bytes:
    return bytes(data[: len(data) // 2])


def count_operations(
    action: Callable[[FaultyFileIO], object], inner: FileIO | None = None, *, only: Container[str] | None = None
) -> int:
    """How many operations an action takes when nothing fails. It runs in fresh memory unless `inner` is given."""
    io = FaultyFileIO(inner if inner is not None else MemoryFileIO(f"count-{uuid.uuid4()}"), only=only)
    action(io)
    return len(io.ops)
