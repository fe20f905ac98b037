"""Numbers about what a program does with lakes: for Prometheus, for OpenTelemetry, or to look at.

    with lakebed.metrics.serve("127.0.0.1:9464") as endpoint:      # Prometheus scrapes endpoint.url
        ...
    lakebed.metrics.use_opentelemetry()                             # into the MeterProvider of the program
    lakebed.metrics.start(); ...; lakebed.metrics.snapshot()        # to look at

Nothing is counted before one of these is called, and that costs nothing. All lakes of a process are counted together.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from lakebed.cleanup import on_failure
from lakebed.errors import InvalidArgument
from lakebed.metrics.instruments import Instrument, Listener, add_listener, remove_listener

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

    from lakebed.metrics.board import Board
    from lakebed.metrics.endpoint import Endpoint

_lock = threading.Lock()
_boards: list[Board] = []
"""The one that counts, if any does."""
_bridges: dict[int, tuple[object, Listener]] = {}
"""Listeners for OpenTelemetry, by the ids of the providers that they record with, which are kept for that."""


def start() -> None:
    """Begins to count, in memory, from nothing; does nothing if that has begun already."""
    _started()


def stop() -> None:
    """Ends counting, and forgets what was counted. Listeners of your own, and OpenTelemetry, are told on."""
    with _lock:
        while _boards:
            remove_listener(_boards.pop())


def snapshot() -> dict[str, list[dict[str, Any]]]:
    """What was counted since `start`: for each family its numbers, with their labels.

    A counter and a gauge have a `value`, a histogram a `count` and a `sum`.
    """
    if not _boards:
        raise InvalidArgument("nothing is counted yet", hint="call lakebed.metrics.start() before the work")
    return _boards[0].plain()


def serve(address: str = "127.0.0.1:9464") -> Endpoint:
    """Begins to count, and shows it to Prometheus at `http://<address>/metrics`, from a thread of its own.

    Port 0 takes one that is free. The result has the `url`, and ends with `stop()` or its `with` block; counting goes
    on. Nobody is asked for a password: an address that others reach shows them the names of tables.
    """
    from lakebed.metrics.endpoint import Endpoint
    from lakebed.metrics.prometheus import exposition

    was_counting = bool(_boards)
    board = _started()
    with on_failure(lambda: None if was_counting else stop()):
        return Endpoint(address, lambda: exposition(board))


def use_opentelemetry(provider: MeterProvider | None = None) -> None:
    """Records with OpenTelemetry from now on: with the given MeterProvider, or the one that the program has set.

    Needs the extra `otel`; the SDK and its exporters are yours.
    """
    from lakebed.metrics.bridge import Bridge

    with _lock:
        if id(provider) not in _bridges:
            bridge = Bridge(provider)
            _bridges[id(provider)] = provider, bridge
            add_listener(bridge)


def listen(listener: Listener) -> None:
    """Has a function told of each measurement: the instrument, the value, and its labels.

    It is called in the thread that measures, so it should be quick. What it raises is logged once and changes nothing.
    """
    add_listener(listener)


def unlisten(listener: Listener) -> None:
    """Ends what `listen` began."""
    remove_listener(listener)


def _started() -> Board:
    from lakebed.metrics.board import Board

    with _lock:
        if not _boards:
            _boards.append(Board())
            add_listener(_boards[0])
        return _boards[0]


__all__ = [
    "Instrument",
    "Listener",
    "listen",
    "serve",
    "snapshot",
    "start",
    "stop",
    "unlisten",
    "use_opentelemetry",
]
