"""Where the time of day and fresh names come from.

Snapshots carry commit times and files carry random names, so a test that compares bytes, and a user who wants the
same input to give the same table twice, must be able to fix both. Code that needs the time, a pause or a new name
takes a `Clock` or an `IdSource` as an argument; only this file may ask the operating system.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
import uuid
from typing import Protocol

__all__ = ["Clock", "CountingIds", "FixedClock", "IdSource", "RandomIds", "SystemClock", "some_of"]


class Clock(Protocol):
    """Tells the time, and waits."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        ...

    def sleep_ms(self, duration_ms: int) -> None:
        """Return after that many milliseconds of this clock."""
        ...


class SystemClock:
    """The time of the machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep_ms(self, duration_ms: int) -> None:
        time.sleep(duration_ms / 1_000)


class FixedClock:
    """Starts at a given time and moves by `step_ms` each time it is asked; sleeping moves it and takes no time."""

    def __init__(self, start_ms: int, step_ms: int = 0) -> None:
        self._next_ms = start_ms
        self._step_ms = step_ms
        self._lock = threading.Lock()

    def now_ms(self) -> int:
        with self._lock:
            now_ms = self._next_ms
            self._next_ms += self._step_ms
            return now_ms

    def sleep_ms(self, duration_ms: int) -> None:
        with self._lock:
            self._next_ms += duration_ms


class IdSource(Protocol):
    """Gives a new UUID text every time; file names and commit users are made from them."""

    def new_id(self) -> str:
        """A UUID in its usual spelling, never given before by this source."""
        ...


class RandomIds:
    """Random UUIDs: safe among any number of writers."""

    def new_id(self) -> str:
        return str(uuid.uuid4())


class CountingIds:
    """UUIDs that count up from a number: the same names on every run. Two sources need ranges that do not meet."""

    def __init__(self, start: int = 0) -> None:
        self._numbers = itertools.count(start)

    def new_id(self) -> str:
        return str(uuid.UUID(int=next(self._numbers)))


def some_of(duration_ms: int) -> int:
    """A random part of a duration, so that many who begin together do not go on together."""
    return random.randrange(duration_ms) if duration_ms > 0 else 0
