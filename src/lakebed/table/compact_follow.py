"""Compacts a table for as long as others write to it: a job beside writers that leave compaction to somebody else.

A round compacts what is due by the table's own rules, as soon as there is a new snapshot, and sees to what writers of
a `write-only` table leave undone: expiry of snapshots, consumers and partitions, tags. Appends never get in the way of
a compaction. Where another job changed the same files, only the work on their bucket is lost, and done again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from lakebed.clock import Clock
from lakebed.commit.replay import CommitIdentity
from lakebed.definition.changelog_rules import full_compaction_every
from lakebed.definition.context import TableContext
from lakebed.definition.elsewhere import Elsewhere, place_of_work
from lakebed.errors import CommitConflict, FileMissing, InvalidArgument, LakebedError, NotFound
from lakebed.maintenance.partitions import unexpired
from lakebed.maintenance.tidy_up import tidy_up
from lakebed.metadata.entries import Keep
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import COMMIT_USER_PREFIX
from lakebed.read.plan import FileSieve, partition_filter
from lakebed.records import dataclass
from lakebed.rewrite.bucket import Compactor
from lakebed.rewrite.clustering import keyless_compactor
from lakebed.table.opened import Holder, opened_of
from lakebed.units import MINUTE_MS, parse_duration
from lakebed.write.waiting_rows import WaitingRows

_log = logging.getLogger(__name__)

_ROUND_BYTES = 1 << 30
"""About so much is rewritten before it is committed: what is urgent must not wait for what is large."""
_IDLE_MS = MINUTE_MS
"""After so long a table is looked at although nothing was committed: some rules go by time."""
_STEP_MS = 100
_MOST_FAILURES = 10
"""So many rounds may fail in a row, with growing pauses, before the job gives up."""


@dataclass
class Follower:
    """Compacts one table, round by round. `latest` gives the table under its latest schema."""

    table: str
    latest: Callable[[], TableContext]
    keep: Keep | None = None
    keep_partitions: Keep | None = None
    run_pieces: Elsewhere | None = None
    is_over: bool = False
    """Whether the table is gone."""
    _user: str = ""
    _seen: int = 0
    """The last snapshot after which nothing was due."""
    _looked_ms: int = 0
    _counted: int = 0
    """The last snapshot that counts towards the next full compaction."""

    def step(self) -> Snapshot | None:
        """One round, if there is a new snapshot; None when nothing was due. Then the next new one is waited for."""
        context = self.latest()
        snapshots = context.stores.snapshots
        latest_id, now_ms = snapshots.latest_id() or 0, context.clock.now_ms()
        if latest_id == self._seen and now_ms - self._looked_ms < _IDLE_MS:
            return None
        if not self._user:
            self._user = (context.options[COMMIT_USER_PREFIX] or "") + context.ids.new_id()
        compacted = self._compacted(context)
        if compacted is None:
            self._seen, self._looked_ms = latest_id, now_ms
        tidy_up(context, goes_on=True)
        return compacted

    def _kept(self, context: TableContext) -> Keep | None:
        keep, lasting = self.keep, unexpired(context)
        if keep is None or lasting is None:
            return keep or lasting
        return lambda entries: keep(lasting(entries))

    def _compacted(self, context: TableContext) -> Snapshot | None:
        placed = WaitingRows(context, self.keep_partitions, self.run_pieces).place(CommitIdentity(self._user))
        keep = self._kept(context)
        if not context.has_key:
            joined = keyless_compactor(context, False, keep, self.run_pieces).run(CommitIdentity(self._user))
            return joined or placed
        latest_id = context.stores.snapshots.latest_id() or 0
        is_full = self._is_full_due(context, latest_id)
        compactor = Compactor(
            context, is_full, keep, self.run_pieces, gives_way=True, most_bytes=None if is_full else _ROUND_BYTES
        )
        compacted = compactor.run(CommitIdentity(self._user))
        if is_full:
            self._counted = latest_id
        return compacted or placed

    def _is_full_due(self, context: TableContext, latest_id: int) -> bool:
        """Whether as many commits came since the last full compaction as the table's options allow."""
        every = full_compaction_every(context.options)
        if latest_id < self._counted:  # rolled back
            self._counted = 0
        if every is None:
            return False
        since = 0
        for snapshot in context.stores.snapshots.newest_first(self._counted + 1):
            since += snapshot.commit_kind != CommitKind.COMPACT
            if since == every:
                return True
        return False


def follower_of(table: Holder, where: Any = None, *, on_spark: bool | None = None) -> Follower:
    """Compacts a table round by round, for those who follow several at once. Arguments are those of `Table.compact`."""
    opened = opened_of(table)
    context = opened.writable()
    sieve = FileSieve(context, partition_filter(context, where))
    run_pieces = place_of_work(context, on_spark)
    return Follower(context.name, opened.folded, sieve.keep_entries, sieve.keep_partitions, run_pieces)


@dataclass(frozen=True, slots=True)
class Stop:
    """Whether a job shall end: an event, a function that says so, or never."""

    asked: Callable[[], bool]

    @staticmethod
    def of(given: threading.Event | Callable[[], bool] | None) -> Stop:
        """From what a caller hands over."""
        if given is None:
            return Stop(lambda: False)
        if isinstance(given, threading.Event):
            return Stop(given.is_set)
        if not callable(given):
            raise InvalidArgument(f"stop is {given!r}", hint="pass a threading.Event, or a function that gives a bool")
        return Stop(given)

    def wait(self, pause_ms: int, clock: Clock) -> None:
        """Waits so long, or until it is to stop.

        In short steps, and not for an event: a signal that sets it while it is waited for could lock itself out.
        """
        end_ms = clock.now_ms() + pause_ms
        while not self.asked() and (rest_ms := end_ms - clock.now_ms()) > 0:
            clock.sleep_ms(min(rest_ms, _STEP_MS))


def interval_argument(interval: str | float) -> int:
    """Milliseconds between two looks, from `1 s` or a number of seconds."""
    if isinstance(interval, str):
        return max(1, parse_duration(interval))
    if isinstance(interval, bool) or not isinstance(interval, int | float) or not interval > 0:
        raise InvalidArgument(f"interval is {interval!r}", hint='pass a duration such as "1 s", or seconds')
    return max(1, int(interval * 1000))


Report = Callable[[Follower, Snapshot], None]
"""Is told of each snapshot with compacted files."""


def follow(
    followers: Callable[[], Sequence[Follower]], stop: Stop, interval_ms: int, report: Report, clock: Clock
) -> int:
    """Lets all followers do their rounds until it is to stop, or none is left; how many compactions there were.

    What is under way is finished before it ends.
    """
    count = failures = 0
    while not stop.asked() and any(not follower.is_over for follower in followers()):
        pause_ms = interval_ms
        for follower in followers():
            if follower.is_over or stop.asked():
                continue
            try:
                snapshot = follower.step()
            except (CommitConflict, FileMissing) as error:
                # Others were faster, or expired what was being read: the next round begins with what is there now.
                _log.info("table %s: compaction begins again: %s", follower.table, error.message)
            except NotFound as error:
                _log.warning("table %s: not compacted any more: %s", follower.table, error.message)
                follower.is_over = True
            except LakebedError as error:
                failures += 1
                if failures >= _MOST_FAILURES:
                    raise
                _log.warning("table %s: compaction failed, and begins again: %s", follower.table, error.message)
                pause_ms = min(interval_ms << failures, MINUTE_MS)
            else:
                failures = 0
                if snapshot is not None:
                    count, pause_ms = count + 1, 0
                    report(follower, snapshot)
        if pause_ms:
            stop.wait(pause_ms, clock)
    return count


__all__ = ["Follower", "Report", "Stop", "follow", "follower_of", "interval_argument"]
