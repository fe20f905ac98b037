"""What can be measured, and who listens. With nobody listening a measurement is a look at an empty list.

An instrument has a name, a unit and few labels whose values are few, too: names of tables, kinds of commits. Listeners
are told value and labels in the thread that measures, so they must be quick. One that raises is no reason to fail: that
is logged once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from types import TracebackType
from typing import Protocol, Self

from lakebed.errors import CommitConflict, OutcomeUnknown

_log = logging.getLogger(__name__)

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of what durations are counted by."""

DONE, NOTHING, CONFLICT, UNKNOWN, FAILED = "done", "nothing", "conflict", "unknown", "failed"
"""How something ended: with nothing to do, lost to others, as nobody knows, with any other error."""

_UNIT_ENDINGS = {"s": "_seconds", "By": "_bytes"}


class Instrument:
    """One family of numbers. `group` and `stem` are its name; `unit` is `s`, `By`, or what is counted: `{row}`."""

    __slots__ = ("group", "kind", "labels", "says", "stem", "unit")

    def __init__(self, kind: str, group: str, stem: str, unit: str, labels: tuple[str, ...], says: str) -> None:
        self.kind = kind
        self.group = group
        self.stem = stem
        self.unit = unit
        self.labels = labels
        self.says = says

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"

    @property
    def name(self) -> str:
        """As Prometheus writes names: with the unit at the end, and `_total` where it only grows."""
        ending = _UNIT_ENDINGS.get(self.unit, "")
        return f"lakebed_{self.group}_{self.stem}{ending}{'_total' if self.kind == COUNTER else ''}"

    @property
    def dotted_name(self) -> str:
        """As OpenTelemetry writes names: the unit stands beside it."""
        return f"lakebed.{self.group}.{self.stem}"

    def tell(self, value: float, *labels: str) -> None:
        """Adds to a counter, sets a gauge, or counts a value in a histogram. `labels` are in the instrument's order."""
        if _listeners:
            _told(self, value, labels)

    def timed(self, *labels: str) -> Timing:
        """Measures the time from now to the end of a block. The last label is left out: it says how that ended."""
        return _Timed(self, labels) if _listeners else _UNTIMED


Listener = Callable[[Instrument, float, tuple[str, ...]], None]
"""Is told of each measurement: the instrument, the value, and its labels in the order of `instrument.labels`."""


class Timing(Protocol):
    """A block whose duration may be measured."""

    def ended(self, outcome: str) -> None:
        """Says how the block ends, if not with an error: `done` unless somebody says otherwise."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class _Untimed:
    """Nobody listens."""

    __slots__ = ()

    def ended(self, outcome: str) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


_UNTIMED = _Untimed()


class _Timed:
    __slots__ = ("_began", "_instrument", "_labels", "_outcome")

    def __init__(self, instrument: Instrument, labels: tuple[str, ...]) -> None:
        self._instrument = instrument
        self._labels = labels
        self._outcome = DONE
        self._began = perf_counter()

    def ended(self, outcome: str) -> None:
        self._outcome = outcome

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        outcome = self._outcome if error is None else _outcome_of(error)
        self._instrument.tell(perf_counter() - self._began, *self._labels, outcome)


def _outcome_of(error: BaseException) -> str:
    if isinstance(error, CommitConflict):
        return CONFLICT
    if isinstance(error, OutcomeUnknown):
        return UNKNOWN
    return str(getattr(error, "outcome", FAILED))  # what is raised to begin anew is no failure, and says so


# --- Who listens -----------------------------------------------------------------------------------------------------


_listeners: list[Listener] = []
_failed: set[int] = set()
"""Listeners that have raised, by their ids."""
_of_thread = threading.local()


def is_heard() -> bool:
    """Whether anybody listens: to be asked before work that is done for a measurement only."""
    return bool(_listeners)


def add_listener(listener: Listener) -> None:
    """From now on it is told of everything, once however often it is added."""
    if listener not in _listeners:
        _listeners.append(listener)


def remove_listener(listener: Listener) -> None:
    """From now on it is told of nothing."""
    if listener in _listeners:
        _listeners.remove(listener)
        _failed.discard(id(listener))


@contextmanager
def unheard() -> Iterator[None]:
    """Nobody is told of what this thread does in the block: it is only tried out."""
    before = getattr(_of_thread, "is_telling", False)
    _of_thread.is_telling = True
    try:
        yield
    finally:
        _of_thread.is_telling = before


def _told(instrument: Instrument, value: float, labels: tuple[str, ...]) -> None:
    if getattr(_of_thread, "is_telling", False):
        return  # a listener uses a lake itself: told of that, it would never come to an end
    with unheard():
        for listener in tuple(_listeners):
            try:
                listener(instrument, value, labels)
            except Exception as error:  # noqa: BLE001 - what is measured must not fail because somebody listens
                if id(listener) not in _failed:
                    _failed.add(id(listener))
                    _log.warning("a listener of metrics failed, and may miss more: %s: %s", type(error).__name__, error)


__all__ = [
    "COUNTER",
    "DONE",
    "GAUGE",
    "HISTOGRAM",
    "NOTHING",
    "SECONDS",
    "Instrument",
    "Listener",
    "Timing",
    "add_listener",
    "is_heard",
    "remove_listener",
    "unheard",
]
