"""Ctrl-C for commands that run until somebody has seen enough: what is under way is finished first."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from lakebed.table.compact_follow import Stop


@contextmanager
def interruptible() -> Iterator[Stop]:
    """Says to stop once a signal to end came; a second one interrupts."""
    came: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield Stop(lambda: bool(came))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
