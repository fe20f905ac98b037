"""How long a sync goes on trying when what it needs is away: a server that restarts, a network, a full disk, a password
that is being changed.

A batch can be repeated at any point, so to start the query again from its checkpoint is always right. What would fail
the same way a second time is not tried again: it ends the sync with its reason.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import field
from typing import Final

from lakebed.errors import AccessDenied, FileMissing, InvalidArgument, StorageError
from lakebed.records import dataclass

_FOREVER: Final = "forever"
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(second|minute|hour|day)s?")


def span_seconds(text: str | None) -> float:
    """The seconds of a span such as "10 minutes"; 0 for None, without end for "forever"."""
    if text is None:
        return 0.0
    if text.strip().lower() == _FOREVER:
        return float("inf")
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidArgument(
            f"`{text}` is no span of time", hint='write it as "30 seconds", "10 minutes", "2 hours" or "forever"'
        )
    return float(found[1]) * _UNITS[found[2]]


def is_passing(error: BaseException) -> bool:
    """Whether what failed may well work the next time, with nothing changed here."""
    return isinstance(error, AccessDenied | StorageError) and not isinstance(error, FileMissing)


@dataclass(slots=True)
class Patience:
    """Decides whether and when to try again. Every success gives all of it back."""

    most_s: float
    clock: Callable[[], float] = time.monotonic
    since: float | None = None
    """When it began to fail; None while all is well."""
    again_at: float | None = None
    """When the next attempt is due; None if none is waited for."""
    why: str = ""
    _pause_s: float = field(default=_FIRST_PAUSE_S)

    def endures(self, error: BaseException) -> bool:
        """Told of a failure: whether there is to be another attempt, for which `again_at` is set then."""
        now = self.clock()
        since = now if self.since is None else self.since
        if not is_passing(error) or now - since >= self.most_s:
            return False
        self.since, self.why = since, str(getattr(error, "message", error))
        self.again_at = min(now + self._pause_s, since + self.most_s)
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return True

    def succeeded(self) -> None:
        """Told of a batch that is through."""
        self.since, self.again_at, self.why, self._pause_s = None, None, "", _FIRST_PAUSE_S


__all__ = ["Patience", "is_passing", "span_seconds"]
