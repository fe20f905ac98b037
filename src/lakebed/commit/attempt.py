"""One attempt at a commit: the files made for it, and the one rule of what becomes of them.

    with Attempt(context.fileio) as attempt:
        messages = make(attempt.fileio)                       # every file is noted before it is written
        snapshot = committer.commit(..., attempt=attempt)     # files are durable before a snapshot names them
        attempt.keep_only(paths_of(messages))                 # what no snapshot names goes

INVARIANT: a file that a snapshot may name is never deleted. From just before the snapshot is published until it is
known that it was not, nobody can tell whether readers see the files. Deleting one then loses rows for good, leaving one
costs disk space until orphans are cleaned. So leaving the block by any exception, Ctrl-C included, removes the files
only if the snapshot can not be there. No other place takes files of a commit back.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, cast

from lakebed.errors import AlreadyExists, StorageError
from lakebed.fileio.base import FileIO, OutputFile
from lakebed.fileio.sync_later import SyncLater
from lakebed.fileio.together import PutLater, answers_late
from lakebed.metadata.data_file import INDEX_SUFFIX
from lakebed.records import dataclass

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Visibility:
    """Whether readers may see what is committed. Shared by all that is made for one snapshot."""

    is_possible: bool = False
    """From just before publication until it is known to have failed."""


class Attempt:
    """Notes the files of one commit. Use it in a `with` block, or call `give_up` in every other way out."""

    def __init__(self, fileio: FileIO, visibility: Visibility | None = None, *, puts_together: bool = False) -> None:
        later = PutLater.of if puts_together and answers_late(fileio) else SyncLater.of
        self._files = WrittenFiles(*later(fileio))
        self._visibility = visibility or Visibility()
        self._undo: list[Callable[[], None]] = []

    @property
    def fileio(self) -> FileIO:
        """What files are made with. They may be lost in a power failure until `make_durable`."""
        return cast(FileIO, self._files)

    @property
    def visibility(self) -> Visibility:
        """Whether the files may be part of the table, for the committer, which alone knows."""
        return self._visibility

    def note(self, paths: Iterable[str]) -> None:
        """Takes charge of files that others have made for this commit."""
        self._files.note(paths)

    def make_durable(self) -> None:
        """Waits until all files so far would survive a power failure. The committer sees to it in any case."""
        self._files.make_durable()

    def when_given_up(self, undo: Callable[[], None]) -> None:
        """What else has to be done if nothing comes of it; never called once readers may see the files."""
        self._undo.append(undo)

    def keep_only(self, paths: Collection[str]) -> None:
        """To be called when it is over: files that the snapshot does not name, if there is one, are removed."""
        self._files.take_back(keep=paths)

    def give_up(self) -> None:
        """Removes everything, unless readers may see it."""
        undo, self._undo = self._undo, []
        if self._visibility.is_possible:
            return
        self._files.take_back()
        for action in undo:
            action()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self.give_up()


class WrittenFiles:
    """Stands in for a FileIO: passes everything on and notes each new file before it is written."""

    def __init__(self, inner: FileIO, sync: Callable[[], None] = lambda: None) -> None:
        self._inner = inner
        self._sync = sync
        self._paths: list[str] = []

    def make_durable(self) -> None:
        """Waits until all files so far are there, and would survive a power failure."""
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
            if path.removesuffix(INDEX_SUFFIX) in keep or path in self._others_files:
                continue
            try:
                self._inner.delete(path)
            except StorageError as error:
                _log.warning("left an unreferenced file behind: %s (%s)", path, error.message)

    @property
    def _others_files(self) -> Container[str]:
        """Files that were found to be somebody else's only when they were put."""
        return getattr(self._inner, "taken", ())

    @contextlib.contextmanager
    def _noted(self, path: str) -> Iterator[None]:
        self._paths.append(path)
        try:
            yield
        except AlreadyExists:
            self._paths.remove(path)  # somebody else's file, perhaps in use
            raise


__all__ = ["Attempt", "Visibility", "WrittenFiles"]
