"""Work on tables that goes on after the call that began it has come back: what the commits of streams make due.

Whoever is about to do the same work, or to remove what nobody refers to, waits for it first: otherwise a table that is
compacted right after its stream has ended would meet that stream's last compaction. It is known in this process only;
others are kept apart by their commits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait

_lock = threading.Lock()
_under_way: dict[Future[None], str | None] = {}
_of_thread = threading.local()


def begin(pool: Executor, work: Callable[[], None], table: str | None) -> Future[None]:
    """Begins work in a thread of the pool. `table` is the directory of its table; None stands for any of them."""
    with _lock:
        begun = pool.submit(_in_background, work)
        _under_way[begun] = table
    begun.add_done_callback(_forget)
    return begun


def wait_for(table: str) -> None:
    """Waits for what is under way for a table, whatever comes of it. Work in the background waits for nothing."""
    if getattr(_of_thread, "is_background", False):
        return
    with _lock:
        found = [work for work, of in _under_way.items() if of in (table, None)]
    wait(found)


def _in_background(work: Callable[[], None]) -> None:
    _of_thread.is_background = True
    work()


def _forget(work: Future[None]) -> None:
    with _lock:
        _under_way.pop(work, None)


__all__ = ["begin", "wait_for"]
