"""One look at what changes of a table: its newest schema and its newest snapshot, instead of one for each question.

Whoever plans a read or a commit asks several times which schema and which snapshot are the newest. On a disk that is
nothing; on an object store each question is a request. Within a glance the store is asked once, for both at the same
time, by listing: the list tells by the objects' versions whether what was read before is still what is there.

    with one_glance(fileio, schema_directory, snapshot_directory):
        schemas.latest(), snapshots.latest(), ...      # two requests, beside each other

A glance is as good as having asked a moment ago, which is all that anybody can know: what counts is decided by
exclusive creation. It is forgotten with the first own change of what it shows, and after a second.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lakebed.errors import FileMissing
from lakebed.fileio.base import FileIO, FileStatus
from lakebed.fileio.together import answers_late, ask_together

__all__ = ["forget_glances", "listed", "newest_number", "no_glance", "one_glance", "version_of"]

_LONGEST_SECONDS = 1.0
_NUMBERED = "snapshot-"


class _Glance:
    """What two directories hold, once somebody has asked."""

    def __init__(self, fileio: FileIO, schemas: str, snapshots: str) -> None:
        self._fileio = fileio
        self._schemas = schemas
        self._snapshots = snapshots
        self._seen_at: float | None = None
        self._found: dict[str, dict[str, FileStatus]] = {}
        self._shows_all = False

    def covers(self, fileio: FileIO, directory: str) -> bool:
        return directory in (self._schemas, self._snapshots) and _identity(fileio) is _identity(self._fileio)

    def found(self, directory: str) -> dict[str, FileStatus]:
        """By name: all schemas, or the newest snapshots."""
        now = time.monotonic()
        if self._seen_at is None or now - self._seen_at > _LONGEST_SECONDS:
            self._look()
            self._seen_at = now
        return self._found[directory]

    def everything_in(self, directory: str) -> list[FileStatus] | None:
        """All files of a directory; None if only some are known."""
        if directory != self._schemas:
            return None
        return sorted(self.found(directory).values(), key=lambda status: status.path)

    def newest(self) -> int | None:
        """The number of the newest snapshot; None if that can not be told from what was listed."""
        numbers = _numbers(self.found(self._snapshots))
        known = _newest_known(self._fileio).get(self._snapshots)
        # Names sort as text: 9 comes after 10. What was listed has all numbers from the known one on, up to the next
        # one with more digits; and without the known one nobody can say what else is missing.
        if numbers and (self._shows_all or (known in numbers and _digits(max(numbers)) == _digits(max(numbers) + 1))):
            _newest_known(self._fileio)[self._snapshots] = max(numbers)
            return max(numbers)
        _newest_known(self._fileio).pop(self._snapshots, None)
        return None

    def forget(self) -> None:
        self._seen_at = None

    def _look(self) -> None:
        schemas, snapshots = ask_together(self._fileio, [self._list_schemas, self._list_snapshots])
        self._found = {
            self._schemas: {status.name: status for status in schemas},
            self._snapshots: {status.name: status for status in snapshots},
        }

    def _list_schemas(self) -> list[FileStatus]:
        return _direct(self._fileio).list_now(self._schemas)  # type: ignore[attr-defined, no-any-return]

    def _list_snapshots(self) -> list[FileStatus]:
        store = _direct(self._fileio)
        known = _newest_known(store)
        if self._snapshots not in known:
            hint = _hint(store, f"{self._snapshots}/LATEST")  # past the glance, which waits for this
            if hint is not None:
                known[self._snapshots] = hint
        after = _before(known.get(self._snapshots, 0))
        self._shows_all = after is None
        return store.list_now(self._snapshots, after)  # type: ignore[attr-defined, no-any-return]


_NOW: ContextVar[tuple[_Glance, ...]] = ContextVar("what was seen of tables a moment ago", default=())
_IS_USED: ContextVar[bool] = ContextVar("whether that counts", default=True)


@contextmanager
def one_glance(
    fileio: FileIO, schema_directory: str, snapshot_directory: str, *, afresh: bool = False
) -> Iterator[None]:
    """Until the end of the block, questions after the newest schema and snapshot share one look.

    It is that of the block around it, if there is one; not with `afresh`.
    """
    if not answers_late(fileio) or (not afresh and _glance_at(fileio, snapshot_directory) is not None):
        yield
        return
    token = _NOW.set((_Glance(fileio, schema_directory, snapshot_directory), *_NOW.get()))
    try:
        yield
    finally:
        _NOW.reset(token)


@contextmanager
def no_glance() -> Iterator[None]:
    """Until the end of the block every question is asked: of what has to be known now, not a moment ago."""
    token = _IS_USED.set(False)
    try:
        yield
    finally:
        _IS_USED.reset(token)


def newest_number(fileio: FileIO, directory: str) -> int | None:
    """The newest snapshot that a glance shows; None if there is no glance, or it does not tell."""
    glance = _glance_at(fileio, directory)
    return None if glance is None else glance.newest()


def listed(fileio: FileIO, directory: str) -> list[FileStatus] | None:
    """All files of a directory, if a glance shows them."""
    glance = _glance_at(fileio, directory)
    return None if glance is None else glance.everything_in(directory)


def version_of(fileio: FileIO, path: str) -> str:
    """The version of a file that a glance shows; empty if none does."""
    directory, _, name = path.rpartition("/")
    glance = _glance_at(fileio, directory)
    found = glance.found(directory).get(name) if glance is not None else None
    return found.version if found is not None else ""


def forget_glances(fileio: FileIO, path: str) -> None:
    """To be called when a file was changed, or is not what a glance said: the next question looks again."""
    directory = path.rpartition("/")[0]
    for glance in _NOW.get():
        if glance.covers(fileio, directory):
            glance.forget()


def _glance_at(fileio: FileIO, directory: str) -> _Glance | None:
    glances = _NOW.get() if _IS_USED.get() else ()
    return next((glance for glance in glances if glance.covers(fileio, directory)), None)


def _identity(fileio: FileIO) -> object:
    """What stays the same whatever stands in for a store."""
    return _direct(fileio)


def _direct(fileio: FileIO) -> FileIO:
    """The store itself, past what notes or delays files that are written."""
    return getattr(fileio, "itself", fileio)


def _newest_known(fileio: FileIO) -> dict[str, int]:
    known: dict[str, int] = _direct(fileio).newest_known  # type: ignore[attr-defined]
    return known


def _hint(store: FileIO, path: str) -> int | None:
    try:
        text = store.read_now(path)[0].strip()  # type: ignore[attr-defined]
    except FileMissing:
        return None
    return int(text) if text.isdigit() and len(text) < 20 else None


def _numbers(names: dict[str, FileStatus]) -> list[int]:
    texts = (name.removeprefix(_NUMBERED) for name in names if name.startswith(_NUMBERED))
    return [int(text) for text in texts if text.isascii() and text.isdigit()]


def _digits(number: int) -> int:
    return len(str(number))


def _before(number: int) -> str | None:
    """A name that sorts before those of this snapshot, the one before it and all later ones; None if none does."""
    earlier = max(number - 1, 0)
    if earlier < 10 or _digits(earlier) != _digits(number + 1):
        return None
    return f"{_NUMBERED}{str(earlier)[:-1]}-"
