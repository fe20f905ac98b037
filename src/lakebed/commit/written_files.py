"""Remembers which files a commit attempt wrote, so that a failed attempt can take them back."""

from __future__ import annotations

import logging
from typing import Any, cast

from lakebed.errors import StorageError
from lakebed.fileio.base import FileIO

_log = logging.getLogger(__name__)


class WrittenFiles:
    """Stands in for a FileIO: passes everything on and notes each new file before it is written."""

    def __init__(self, inner: FileIO) -> None:
        self._inner = inner
        self._paths: list[str] = []

    @staticmethod
    def watch(inner: FileIO) -> tuple[FileIO, WrittenFiles]:
        """The FileIO to hand on, and the watcher behind it."""
        watcher = WrittenFiles(inner)
        return cast(FileIO, watcher), watcher

    def write_bytes(self, path: str, data: bytes) -> None:
        self._paths.append(path)
        self._inner.write_bytes(path, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def take_back(self) -> None:
        """Deletes what was written. What can not be deleted is left for orphan cleaning: nothing refers to it."""
        for path in self._paths:
            try:
                self._inner.delete(path)
            except StorageError as error:
                _log.warning("left an unreferenced file behind: %s (%s)", path, error.message)
        self._paths = []
