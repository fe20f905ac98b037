"""New files of a local disk that are made durable together, instead of one after the other.

A disk confirms many files in the time of one if it is asked for all of them at once: a commit of eight small buckets
waits 60 ms for them one by one, and 2 ms this way. Whoever uses this promises to call `sync` before it tells anybody of
the files. Other kinds of storage make every file durable by themselves and are handed on as they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from lakebed.fileio.base import FileIO, OutputFile
from lakebed.fileio.local import LocalFileIO, LocalOutputFile, fresh_name
from lakebed.fileio.posix import sync_directory, sync_file, translated, write_new_file

__all__ = ["SyncLater"]

_MOST_AT_ONCE = 32
"""The disk joins requests that wait for it at the same time, so there should be many; more cost threads only."""


class SyncLater:
    """Stands in for a FileIO: passes everything on, except that new local files are durable only after `sync`."""

    def __init__(self, inner: FileIO) -> None:
        self._inner = inner
        self._paths: list[str] = []

    @staticmethod
    def of(inner: FileIO) -> tuple[FileIO, Callable[[], None]]:
        """The FileIO to write with, and what makes its files durable."""
        if not isinstance(inner, LocalFileIO):
            return inner, lambda: None
        later = SyncLater(inner)
        return cast(FileIO, later), later.sync

    def open_output(self, path: str) -> OutputFile:
        output = LocalOutputFile(path, sync=False)
        self._paths.append(path)
        return output

    def write_bytes(self, path: str, data: bytes) -> None:
        with translated("write", path), fresh_name(path):
            write_new_file(path, data, sync=False)
        self._paths.append(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def sync(self) -> None:
        """Makes all files so far durable, with their names. Those that are gone again do not count."""
        paths, self._paths = self._paths, []
        if not paths:
            return
        directories = dict.fromkeys(os.path.dirname(path) for path in paths)
        with ThreadPoolExecutor(min(_MOST_AT_ONCE, len(paths) + len(directories))) as pool:
            done = [pool.submit(_synced, sync_file, path) for path in paths]
            done += [pool.submit(_synced, sync_directory, path) for path in directories]
            for future in done:
                future.result()


def _synced(sync: Callable[[str], None], path: str) -> None:
    with translated("write", path):
        try:
            sync(path)
        except FileNotFoundError:
            return
