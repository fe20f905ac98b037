"""Writers that commit again and again (`write-mode` = `stream`): when, and as which commit of theirs.

Rows wait for their commit no longer than `sink.rolling-policy.rollover-interval`, looked at whenever rows come, but not
more often than every `sink.rolling-policy.check-interval`. Without an interval every call is a commit.
"""

from __future__ import annotations

from lakebed.clock import Clock
from lakebed.commit.replay import CommitIdentity, last_identifiers
from lakebed.options import (
    SINK_ROLLING_POLICY_CHECK_INTERVAL,
    SINK_ROLLING_POLICY_ROLLOVER_INTERVAL,
    WRITE_MODE,
    Options,
)
from lakebed.table.context import TableContext

STREAM = "stream"


def is_stream(options: Options) -> bool:
    """Whether a writer is asked to commit again and again."""
    return options[WRITE_MODE] == STREAM


def next_identity(context: TableContext, user: str) -> CommitIdentity:
    """The commit after all that this user has made."""
    snapshots = context.stores.snapshots
    return CommitIdentity(user, last_identifiers(snapshots, snapshots.latest()).get(user, 0) + 1)


class CommitTimer:
    """Tells when the rows written so far have waited long enough."""

    def __init__(self, options: Options, clock: Clock) -> None:
        self._longest_ms = options[SINK_ROLLING_POLICY_ROLLOVER_INTERVAL]
        self._check_ms = options[SINK_ROLLING_POLICY_CHECK_INTERVAL] or 0
        self._clock = clock
        self._since_ms: int | None = None
        self._checked_ms: int | None = None

    def is_due(self) -> bool:
        """To be asked when rows have come: whether to commit them, and all before them."""
        if self._longest_ms is None:
            return True
        now_ms = self._clock.now_ms()
        if self._since_ms is None:
            self._since_ms = self._checked_ms = now_ms
        if self._checked_ms is not None and now_ms - self._checked_ms < self._check_ms:
            return False
        self._checked_ms = now_ms
        return now_ms - self._since_ms >= self._longest_ms

    def restart(self) -> None:
        """To be called when everything is committed."""
        self._since_ms = None


__all__ = ["CommitTimer", "is_stream", "next_identity"]
