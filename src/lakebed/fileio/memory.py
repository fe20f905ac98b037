"""Files that live in this process: for tests, examples and trying things out.

`memory://name/...` means the same files wherever the process says it, until the process ends; the first segment of a
path is that name. Behaves like a local disk (directories exist on their own, files appear when complete). It refuses
to be unpickled in another process, where it would silently be empty.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

import pyarrow as pa

from lakebed.errors import AlreadyExists, FileMissing, Unsupported
from lakebed.fileio.base import FileStatus, OutputFile

__all__ = ["MemoryFileIO"]


class _Store:
    """The files and directories behind one name. Paths have no trailing slash; the root directory is the empty path."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.files: dict[str, tuple[bytes, int]] = {}
        self.directories: dict[str, int] = {"": _now_ms()}

    def put(self, path: str, data: bytes) -> None:
        self.make_directory(_parent(path))
        self.files[path] = (data, _now_ms())

    def make_directory(self, path: str) -> None:
        while path not in self.directories:
            self.directories[path] = _now_ms()
            path = _parent(path)

    def below(self, path: str) -> tuple[list[str], list[str]]:
        """Paths of all files, and of all directories including `path` itself, under a directory."""
        prefix = f"{path}/" if path else ""
        files = [name for name in self.files if name.startswith(prefix)]
        directories = [name for name in self.directories if name == path or name.startswith(prefix)]
        return files, directories


_STORES: dict[str, _Store] = {}
_STORES_LOCK = threading.Lock()


class MemoryFileIO:
    """The files of one `memory://` name; instances of the same name share them."""

    def __init__(self, name: str) -> None:
        self.name = name
        with _STORES_LOCK:
            self._store = _STORES.setdefault(name, _Store())

    def __repr__(self) -> str:
        return f"MemoryFileIO({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryFileIO) and other.name == self.name

    def __hash__(self) -> int:
        return hash((MemoryFileIO, self.name))

    def __reduce__(self) -> tuple[object, ...]:
        return (_reconnect, (self.name, os.getpid()))

    def read_bytes(self, path: str) -> bytes:
        with self._store.lock:
            return self._file(path)[0]

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self.read_bytes(path))

    def open_output(self, path: str) -> OutputFile:
        if self._path(path) in self._store.files:
            raise _taken(path)
        return _MemoryOutputFile(self, path)

    def write_bytes(self, path: str, data: bytes) -> None:
        if not self.create_exclusive(path, data):
            raise _taken(path)

    def overwrite(self, path: str, data: bytes) -> None:
        with self._store.lock:
            self._store.put(self._path(path), bytes(data))

    def create_exclusive(self, path: str, data: bytes) -> bool:
        with self._store.lock:
            if self._path(path) in self._store.files:
                return False
            self._store.put(self._path(path), bytes(data))
            return True

    def exists(self, path: str) -> bool:
        with self._store.lock:
            return self._path(path) in self._store.files or self._path(path) in self._store.directories

    def size(self, path: str) -> int:
        with self._store.lock:
            return len(self._file(path)[0])

    def list_directory(self, path: str) -> list[FileStatus]:
        path = self._path(path)
        with self._store.lock:
            files, directories = self._store.below(path)
            children = [self._status(name) for name in files if _parent(name) == path]
            children += [self._status(name) for name in directories if name != path and _parent(name) == path]
        return sorted(children, key=lambda status: status.path)

    def list_recursive(self, path: str) -> Iterator[FileStatus]:
        with self._store.lock:
            found = [self._status(name) for name in sorted(self._store.below(self._path(path))[0])]
        return iter(found)

    def make_directory(self, path: str) -> None:
        with self._store.lock:
            self._store.make_directory(self._path(path))

    def delete(self, path: str) -> bool:
        with self._store.lock:
            return self._store.files.pop(self._path(path), None) is not None

    def delete_directory(self, path: str) -> None:
        with self._store.lock:
            files, directories = self._store.below(self._path(path))
            for name in files:
                del self._store.files[name]
            for name in directories:
                if name:
                    del self._store.directories[name]

    def delete_empty_directory(self, path: str) -> bool:
        path = self._path(path)
        with self._store.lock:
            files, directories = self._store.below(path)
            if path not in self._store.directories or files or len(directories) > 1:
                return False
            del self._store.directories[path]
            return True

    def rename_directory(self, source: str, target: str) -> None:
        source, target = self._path(source), self._path(target)
        with self._store.lock:
            if source not in self._store.directories:
                raise FileMissing(f"can not rename {source}: there is no such directory", hint="check the name")
            if self.exists(target):
                raise AlreadyExists(f"can not rename {source}: {target} is there already", hint="choose another name")
            files, directories = self._store.below(source)
            self._store.make_directory(_parent(target))
            for name in files:
                self._store.files[target + name[len(source) :]] = self._store.files.pop(name)
            for name in directories:
                self._store.directories[target + name[len(source) :]] = self._store.directories.pop(name)

    def advisory_lock(self, directory: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    @staticmethod
    def _path(path: str) -> str:
        return path.strip("/")

    def _file(self, path: str) -> tuple[bytes, int]:
        found = self._store.files.get(self._path(path))
        if found is None:
            raise FileMissing(
                f"can not read {path}: there is no such file in memory",
                hint="check the path; files in memory are gone when their process ends",
            )
        return found

    def _status(self, path: str) -> FileStatus:
        if path in self._store.files:
            data, modified_ms = self._store.files[path]
            return FileStatus(path, len(data), modified_ms, is_directory=False)
        return FileStatus(path, 0, self._store.directories[path], is_directory=True)


class _MemoryOutputFile(OutputFile):
    def __init__(self, io: MemoryFileIO, path: str) -> None:
        super().__init__(path)
        self._io = io
        self._content = bytearray()

    def _append(self, data: memoryview) -> None:
        self._content += data

    def _complete(self) -> None:
        self._io.write_bytes(self.path, bytes(self._content))

    def _discard(self) -> None:
        self._content.clear()


def _reconnect(name: str, process_id: int) -> MemoryFileIO:
    if process_id != os.getpid():
        raise Unsupported(
            f"memory://{name} belongs to another process and can not be reached from here",
            hint="use a directory or an object store when other processes (such as Spark workers) take part",
        )
    return MemoryFileIO(name)


def _taken(path: str) -> AlreadyExists:
    return AlreadyExists(
        f"can not write {path}: the file is there already",
        hint="new files need names of their own; it was left as it is",
    )


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
