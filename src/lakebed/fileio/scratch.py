"""A file system with a layer of local files on top: what is written stays on this machine and goes with the layer.

For reads that need files which shall never be part of a table. Only new files can be written; all else happens below.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import weakref
from typing import Any, NoReturn, cast

import pyarrow as pa

from lakebed.errors import Unsupported
from lakebed.fileio.base import FileIO, OutputFile
from lakebed.fileio.local import LocalFileIO


class ScratchFileIO:
    """Stands in for a FileIO: files written through it are seen through it, and by nobody else."""

    def __init__(self, inner: FileIO) -> None:
        self._inner = inner
        self._local = LocalFileIO()
        self._directory = tempfile.mkdtemp(prefix="lakebed-scratch-")
        self._names = itertools.count()
        self._paths: dict[str, str] = {}
        weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)

    @staticmethod
    def over(inner: FileIO) -> FileIO:
        """A new layer on top of a file system."""
        return cast(FileIO, ScratchFileIO(inner))

    def open_output(self, path: str) -> OutputFile:
        return self._local.open_output(self._new(path))

    def write_bytes(self, path: str, data: bytes) -> None:
        self._local.write_bytes(self._new(path), data)

    def open_input(self, path: str) -> pa.NativeFile:
        own = self._paths.get(path)
        return self._inner.open_input(path) if own is None else self._local.open_input(own)

    def read_bytes(self, path: str) -> bytes:
        own = self._paths.get(path)
        return self._inner.read_bytes(path) if own is None else self._local.read_bytes(own)

    def size(self, path: str) -> int:
        own = self._paths.get(path)
        return self._inner.size(path) if own is None else self._local.size(own)

    def delete(self, path: str) -> bool:
        own = self._paths.pop(path, None)
        return own is not None and self._local.delete(own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __reduce__(self) -> NoReturn:
        raise Unsupported(
            "files that exist on this machine only can not be read from another one",
            hint="read fewer rows at a time, or compact the table so that no such files are needed",
        )

    def _new(self, path: str) -> str:
        self._paths[path] = own = f"{self._directory}/{next(self._names)}"
        return own
