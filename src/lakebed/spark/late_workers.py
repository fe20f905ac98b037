"""Jobs and queries that Spark has given up because a Python worker did not answer in time: they are tried again.

Spark's waits are fixed, so a busy machine fails what nothing is wrong with. Whatever we have Spark do may be repeated:
files bear the name of the attempt that made them, commits the batch they are for, and a query goes on from its
checkpoint. So it is repeated, a few times and with growing pauses; then an error of ours says what to do.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from lakebed.spark.errors import is_worker_late, lacks_lakebed, machine_broke, worker_late

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

_log = logging.getLogger(__name__)

_ATTEMPTS = 6
_FIRST_PAUSE_S = 1.0
_BUSY = "a Python worker did not answer Spark in time, the machine is busy"
_NOT_RUNNING = ("Initializing", "Terminated", "Stopped")
"""What the state of a query begins with until the workers of its sources are there, and when it ends."""
_OPENING_S = 120.0
"""A query that takes longer to open its sources than all of Spark's waits is left to itself."""
_LOOK_S = 0.01
_MOST_LOOK_S = 0.25

_LATELY_S = 3600.0
_repeated_at: list[float] = []
"""When something was last repeated."""

_Result = TypeVar("_Result")


def until_workers_come(action: Callable[[], _Result], pause: Callable[[float], None] = time.sleep) -> _Result:
    """What an action gives that Spark may repeat; it is repeated if Spark did not wait for a worker."""
    pause_s = _FIRST_PAUSE_S
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return action()
        except Exception as error:
            if not is_worker_late(error):
                known = lacks_lakebed(error) or machine_broke(error)
                if known is None:
                    raise
                raise known from error
            if attempt == _ATTEMPTS:
                raise worker_late() from None  # Spark searches long texts for signs of a stop, and fails over it
        _repeated_at[:] = [time.monotonic()]
        _log.warning("%s: trying again in %.0f s (attempt %d of %d)", _BUSY, pause_s, attempt + 1, _ATTEMPTS)
        pause(pause_s)
        pause_s *= 2
    raise AssertionError("unreachable")


def repeated_lately() -> bool:
    """Whether this process has had Spark do something twice within the hour: the first time may have left files."""
    return bool(_repeated_at) and time.monotonic() - _repeated_at[0] < _LATELY_S


def started(writer: Any, pause: Callable[[float], None] = time.sleep) -> StreamingQuery:
    """A query that has begun, with the workers of its sources. What else is wrong with it, it tells itself."""

    def start() -> StreamingQuery:
        query: StreamingQuery = writer.start()
        error = _failure_to_open(query, pause)
        if error is not None and is_worker_late(error):
            raise error
        return query

    return until_workers_come(start, pause)


def _failure_to_open(query: StreamingQuery, pause: Callable[[float], None]) -> Exception | None:
    look_s, end = _LOOK_S, time.monotonic() + _OPENING_S
    while query.isActive and time.monotonic() < end:
        if not str(query.status["message"]).startswith(_NOT_RUNNING):
            return None
        pause(look_s)
        look_s = min(look_s * 1.5, _MOST_LOOK_S)
    return None if query.isActive else query.exception()


__all__ = ["repeated_lately", "started", "until_workers_come"]
