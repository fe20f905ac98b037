"""What the engine asks of a file system: the `FileIO` protocol, and the file handle it writes data files through.

Every byte of a table goes through this interface, so local disks, memory and object stores are interchangeable and a
test can put a failing one in between. Two promises carry the whole table format:

* a file written under a fresh name is *complete and durable* before the call that wrote it returns, so a snapshot that
  names it can be published right after;
* `create_exclusive` shows a file whole or not at all, to exactly one of any number of racing writers.

Nothing here knows what the files mean. Paths are plain strings joined with `/`, in the form the implementation
understands; whoever lays out a table decides on the names. Only errors of `lakebed.errors` come out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

import pyarrow as pa

from lakebed.cleanup import on_failure
from lakebed.errors import InvalidArgument
from lakebed.records import dataclass

__all__ = ["FileIO", "FileStatus", "OutputFile"]


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One entry of a directory listing."""

    path: str
    size_bytes: int
    modified_ms: int
    is_directory: bool
    version: str = ""
    """What changes with the content, where a store tells it; empty where it does not."""

    @property
    def name(self) -> str:
        """The last segment of the path."""
        return self.path.rsplit("/", 1)[-1]


@runtime_checkable
class FileIO(Protocol):
    """A file system. Implementations are thread-safe, and picklable unless their files live in this process only."""

    def read_bytes(self, path: str) -> bytes:
        """The whole content of a file; `FileMissing` when there is no such file."""
        ...

    def open_input(self, path: str) -> pa.NativeFile:
        """A random-access reader for Parquet and ORC readers; `FileMissing` when there is no such file."""
        ...

    def open_output(self, path: str) -> OutputFile:
        """Begin a new file under a fresh name. Complete and durable when its `with` block ends, gone if it raises."""
        ...

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a new immutable file under a fresh name, durably; `AlreadyExists` when the name is taken."""
        ...

    def overwrite(self, path: str, data: bytes) -> None:
        """Put `data` in place of whatever is there: readers see the old or the new content, never a mixture."""
        ...

    def create_exclusive(self, path: str, data: bytes) -> bool:
        """Publish a file only if the name is free. This is what makes a commit atomic.

        True: our file is there, whole and durable. False: somebody else's file is there and was not touched.
        `OutcomeUnknown`: it can not be told; read the file back and compare before doing anything else.
        Any other error: our file is not there.

        `data` should identify its writer (a snapshot holds a commit user and identifier): where a store can not say
        whose file it found after a failed request, a file with exactly our bytes counts as ours.
        """
        ...

    def exists(self, path: str) -> bool:
        """Whether a file or a directory is there."""
        ...

    def size(self, path: str) -> int:
        """A file's size in bytes; `FileMissing` when there is no such file."""
        ...

    def list_directory(self, path: str) -> list[FileStatus]:
        """Direct children, ordered by name; empty when there is no such directory.

        Everything is listed, hidden temporary files too. A directory that can not be read is an error, never an empty
        list: callers decide by absence what to delete.
        """
        ...

    def list_recursive(self, path: str) -> Iterator[FileStatus]:
        """All files below a directory, at any depth; directories themselves are left out."""
        ...

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents, if missing. Object stores have no directories: nothing happens there."""
        ...

    def delete(self, path: str) -> bool:
        """Delete a file. False when there was no such file."""
        ...

    def delete_directory(self, path: str) -> None:
        """Delete a directory with all it holds; no error when there is none."""
        ...

    def delete_empty_directory(self, path: str) -> bool:
        """Delete a directory if it holds nothing. False when it holds something or is not there: no error."""
        ...

    def rename_directory(self, source: str, target: str) -> None:
        """Move a directory; `AlreadyExists` when the target is there, `FileMissing` when the source is not."""
        ...

    def advisory_lock(self, directory: str) -> AbstractContextManager[None]:
        """Queue up with other writers of a directory, where the file system has a way to; otherwise do nothing.

        Only politeness: it saves writers from taking each other's turn. Nothing may rely on it for correctness.
        """
        ...


class OutputFile(ABC):
    """A new file being written. Use it in a `with` block, or end it with exactly one of `close` and `abort`.

    Writers of pyarrow take `stream`; everything else calls `write`. Closing `stream`, or losing the last reference to
    it, does not complete the file: a half-written file must never look finished because an exception unwound.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._size_bytes = 0
        self._is_open = True
        self._stream: pa.NativeFile | None = None

    # What an implementation supplies.

    @abstractmethod
    def _append(self, data: memoryview) -> None:
        """Take further bytes."""

    @abstractmethod
    def _complete(self) -> None:
        """Make the file whole, visible and durable. Called at most once; `_discard` follows if it raises."""

    @abstractmethod
    def _discard(self) -> None:
        """Remove what was written and let go of resources. Called at most once, possibly after `_complete` failed."""

    # What callers use.

    @property
    def size_bytes(self) -> int:
        """Bytes written so far; the file's size once closed."""
        return self._size_bytes

    @property
    def closed(self) -> bool:
        """Whether the file was completed or aborted."""
        return not self._is_open

    @property
    def stream(self) -> pa.NativeFile:
        """The same file for pyarrow's writers."""
        if self._stream is None:
            self._stream = pa.PythonFile(_ArrowSink(self), mode="w")
        return self._stream

    def write(self, data: Any) -> int:
        """Append any bytes-like object; the number of bytes taken."""
        if not self._is_open:
            raise InvalidArgument(f"{self.path}: write after close", hint="open another output file")
        view = memoryview(data)
        if view.format != "B" or view.ndim != 1:
            view = view.cast("B")
        self._append(view)
        self._size_bytes += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        """The position of the next byte: `size_bytes`, under the name file objects have it."""
        return self._size_bytes

    def flush(self) -> None:  # noqa: B027 - not meant to be overridden
        """Do nothing: only `close` makes promises. Here because writers call it on file objects."""

    def close(self) -> None:
        """Complete the file; removed again if that fails. A second call does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        with on_failure(self._discard):
            self._complete()

    def abort(self) -> None:
        """Give the file up and remove it. Does nothing after `close`."""
        if self._is_open:
            self._is_open = False
            self._discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abort()


class _ArrowSink:
    """The file object pyarrow holds: it forwards bytes, and ignores that pyarrow closes it."""

    def __init__(self, output: OutputFile) -> None:
        self._output = output
        self.closed = False

    def write(self, data: Any) -> int:
        return self._output.write(data)

    def tell(self) -> int:
        return self._output.tell()

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
