"""Several requests at once, where a store answers each after a while; one after the other where it answers at once.

A disk has the next file before a thread has begun. An object store takes as long for ten requests as for one, if they
do not wait for each other. Who may be asked several things at once says so by `answers_late`.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from typing import Any, TypeVar, cast

from lakebed.errors import AlreadyExists, LakebedError
from lakebed.fileio.base import FileIO, OutputFile

__all__ = ["PutLater", "ReadAhead", "answers_late", "ask_together", "delete_all"]

_Answer = TypeVar("_Answer")

_MOST_AT_ONCE = 32
"""Requests of one process that are under way because of this. Each holds a thread that waits, and what it carries."""
_THREADS = "lakebed-request"
_MOST_AHEAD = 16
"""Files that are asked for before somebody reads them."""


def answers_late(fileio: FileIO) -> bool:
    """Whether each answer takes a while, and many can be waited for at once."""
    return bool(getattr(fileio, "answers_late", False))


def ask_together(fileio: FileIO, questions: Iterable[Callable[[], _Answer]]) -> list[_Answer]:
    """The answers in their order; the first error among them, once all have come to an end."""
    asked = list(questions)
    if len(asked) < 2 or not answers_late(fileio) or threading.current_thread().name.startswith(_THREADS):
        return [ask() for ask in asked]  # a thread of ours must not wait for others of ours: all might
    others = [_submitted(ask) for ask in asked[1:]]
    try:
        first = asked[0]()  # this thread waits anyway, so there is always one that goes on
    except Exception:
        for future in others:
            future.exception()
        raise
    failures = [future.exception() for future in others]
    for failure in failures:
        if failure is not None:
            raise failure
    return [first, *(future.result() for future in others)]


def delete_all(fileio: FileIO, paths: Sequence[str]) -> None:
    """Delete files, many with each request where the store can. Those that are gone already do not count."""
    delete_many = getattr(fileio, "delete_many", None)
    if delete_many is not None:
        delete_many(paths)
        return
    for path in paths:
        fileio.delete(path)


class ReadAhead:
    """Stands in for a FileIO that answers late: files that will be read, in this order, are asked for beforehand.

    A few at a time, so that only a few wait in memory: the next is asked for when one was taken. For small files, which
    are read whole.
    """

    def __init__(self, inner: FileIO, paths: Iterable[str]) -> None:
        self._inner = inner
        self._later = deque(paths)
        self._asked: dict[str, Future[bytes]] = {}
        self._lock = threading.Lock()

    def read_bytes(self, path: str) -> bytes:
        with self._lock:
            asked = self._asked.pop(path, None)
            if asked is None and path in self._later:
                self._later.remove(path)  # somebody is ahead of the order
            while self._later and len(self._asked) < _MOST_AHEAD:
                following = self._later.popleft()
                self._asked[following] = _submitted(partial(self._inner.read_bytes, following))
        return self._inner.read_bytes(path) if asked is None else asked.result()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class PutLater:
    """Stands in for a FileIO that answers late: new files go up beside each other, and are all there after `sync`.

    Whoever uses this promises to call `sync` before it tells anybody of the files. Asked for a file that is still on
    its way, it waits for it.
    """

    def __init__(self, inner: FileIO) -> None:
        self._inner = inner
        self._on_their_way: dict[str, Future[None]] = {}
        self.taken: set[str] = set()
        """Names that somebody else had: these files are not ours."""

    @staticmethod
    def of(inner: FileIO) -> tuple[FileIO, Callable[[], None]]:
        """The FileIO to write with, and what waits for its files."""
        later = PutLater(inner)
        return cast(FileIO, later), later.sync

    def write_bytes(self, path: str, data: bytes) -> None:
        self._on_their_way[path] = _submitted(lambda: self._inner.write_bytes(path, data))

    def read_bytes(self, path: str) -> bytes:
        self._wait_for(path)
        return self._inner.read_bytes(path)

    def open_input(self, path: str) -> Any:
        self._wait_for(path)
        return self._inner.open_input(path)

    def open_output(self, path: str) -> OutputFile:
        return self._inner.open_output(path)

    def delete(self, path: str) -> bool:
        self._wait_for(path, may_fail=True)
        return self._inner.delete(path)

    def delete_many(self, paths: Sequence[str]) -> None:
        """Deletes files, once none of them is on its way any more."""
        for path in paths:
            self._wait_for(path, may_fail=True)
        delete_all(self._inner, paths)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def sync(self) -> None:
        """Waits for all files so far. Raises what became of the first that failed."""
        failure: BaseException | None = None
        while self._on_their_way:
            path, future = self._on_their_way.popitem()
            error = future.exception()
            if isinstance(error, AlreadyExists):
                self.taken.add(path)
            failure = error or failure
        if failure is not None:
            raise failure

    def _wait_for(self, path: str, *, may_fail: bool = False) -> None:
        future = self._on_their_way.get(path)
        if future is None:
            return
        error = future.exception()
        if isinstance(error, AlreadyExists):
            self.taken.add(path)
        if error is not None and not (may_fail and isinstance(error, LakebedError)):
            raise error


def _submitted(ask: Callable[[], _Answer]) -> Future[_Answer]:
    return _pool().submit(copy_context().run, ask)


@cache
def _pool() -> ThreadPoolExecutor:
    """One for the process; its threads begin when they are first needed. After a fork there is another."""
    os.register_at_fork(after_in_child=_pool.cache_clear)
    return ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix=_THREADS)
