"""Remembers which files were written, for `commit/attempt`: they are taken back, or made durable at once."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

from lakebed.errors import AlreadyExists, StorageError
from lakebed.fileio.base import FileIO, OutputFile
from lakebed.metadata.data_file import INDEX_SUFFIX

_log = logging.getLogger(__name__)


class WrittenFiles:
    """Stands in for a FileIO: passes everything on and notes each new file before it is written."""

    def __init__(self, inner: FileIO, sync: Callable[[], None] = lambda: None) -> None:
        self._inner = inner
        self._sync = sync
        self._paths: list[str] = []

    def make_durable(self) -> None:
        """Waits until all files so far would survive a power failure."""
        self._sync()

    def open_output(self, path: str) -> OutputFile:
        with self._noted(path):
            return self._inner.open_output(path)

    def write_bytes(self, path: str, data: bytes) -> None:
        with self._noted(path):
            self._inner.write_bytes(path, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def note(self, paths: Iterable[str]) -> None:
        """Takes charge of files that others have written for the same commit."""
        known = set(self._paths)
        self._paths += [path for path in paths if path not in known]

    def take_back(self, keep: Container[str] = ()) -> None:
        """Deletes what was written. What can not be deleted is left for orphan cleaning: nothing refers to it.

        With a data file its indexes are kept.
        """
        paths, self._paths = self._paths, []
        for path in paths:
            if path.removesuffix(INDEX_SUFFIX) in keep:
                continue
            try:
                self._inner.delete(path)
            except StorageError as error:
                _log.warning("left an unreferenced file behind: %s (%s)", path, error.message)

    @contextlib.contextmanager
    def _noted(self, path: str) -> Iterator[None]:
        self._paths.append(path)
        try:
            yield
        except AlreadyExists:
            self._paths.remove(path)  # somebody else's file, perhaps in use
            raise
