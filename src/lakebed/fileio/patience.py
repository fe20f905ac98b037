"""How long to ask a store that is away, and how often.

Stores are away for seconds (a failing host, a new version) and tell clients to slow down under load. A table that gives
up after two seconds ends streams that would only have had to wait. Waits double from the first, each shortened by
chance so that many clients do not come back at once, until the deadline.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from lakebed.records import dataclass
from lakebed.units import MINUTE_MS, SECOND_MS

__all__ = ["Patience"]


@dataclass(frozen=True, slots=True)
class Patience:
    """When a request that got no answer is repeated."""

    timeout_ms: int = 5 * MINUTE_MS
    """From the first request; none begins after it."""
    first_wait_ms: int = 100
    longest_wait_ms: int = 10 * SECOND_MS
    most_repeats: int | None = None
    """None for as many as fit."""

    def turns(self) -> Iterator[int]:
        """Numbers the turns from 0, and waits before each but the first. It ends when patience does."""
        started, turn = time.monotonic(), 0
        while True:
            yield turn
            turn += 1
            left_ms = self.timeout_ms - (time.monotonic() - started) * 1000
            if left_ms <= 0 or (self.most_repeats is not None and turn > self.most_repeats):
                return
            wait_ms = min(self.first_wait_ms * 2 ** min(turn - 1, 30), self.longest_wait_ms)
            time.sleep(min(wait_ms * random.uniform(0.5, 1.0), left_ms) / 1000)  # the last turn is at the deadline
