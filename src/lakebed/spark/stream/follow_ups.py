"""What a commit makes due, done while Spark notes the batch as finished and plans the next.

At most one is under way: the next batch waits for it before it commits, so that a stream can not run away from its
compactions; and so does `t.compact()` of the same table (`rewrite/background`). The batch is committed already,
whatever becomes of this: the next one makes due again what was not done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from lakebed.rewrite import background

_log = logging.getLogger(__name__)


class FollowUps:
    """Runs one follow-up at a time, in a thread of its own that starts with the first. Copies share nothing.

    `table` is the directory of the table that all of them are for, if it is a single one.
    """

    def __init__(self, table: str | None = None) -> None:
        self._table = table
        self._pool: ThreadPoolExecutor | None = None
        self._running: Future[None] | None = None

    def __getstate__(self) -> dict[str, str | None]:
        return {"_table": self._table, "_pool": None, "_running": None}

    def run(self, *follow_ups: Callable[[], None]) -> None:
        """Begins them, one after the other, and comes back."""
        self.wait()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="lakebed-follow-up")
        self._running = background.begin(self._pool, lambda: _run_all(follow_ups), self._table)

    def wait(self) -> None:
        """Waits for the one under way. It has failed by itself: what it should have done is done next time."""
        running, self._running = self._running, None
        if running is None:
            return
        error = running.exception()
        if error is not None:
            _log.warning("what follows a commit was not finished: %s", error)


def _run_all(follow_ups: Sequence[Callable[[], None]]) -> None:
    for follow_up in follow_ups:
        follow_up()


__all__ = ["FollowUps"]
