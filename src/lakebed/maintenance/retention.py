"""Which snapshots and changelogs have expired: rules from the table's options, and the one walk that applies them.

Pure: times and ids come in, ids go out. A snapshot's time is up when its *successor* is old enough, since until then
it was what the table showed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace

from lakebed.errors import InvalidArgument
from lakebed.options import (
    CHANGELOG_NUM_RETAINED_MAX,
    CHANGELOG_NUM_RETAINED_MIN,
    CHANGELOG_PRODUCER,
    CHANGELOG_TIME_RETAINED,
    CONSUMER_CHANGELOG_ONLY,
    SNAPSHOT_CLEAN_EMPTY_DIRECTORIES,
    SNAPSHOT_EXPIRE_LIMIT,
    SNAPSHOT_NUM_RETAINED_MAX,
    SNAPSHOT_NUM_RETAINED_MIN,
    SNAPSHOT_TIME_RETAINED,
    Options,
)
from lakebed.records import dataclass


@dataclass(frozen=True, slots=True)
class Retention:
    """What to keep: at least `retain_min`, at most `retain_max`, and what is younger than `older_than_ms`.

    No more than `max_deletes` go at once.
    """

    retain_min: int
    retain_max: int
    older_than_ms: int
    max_deletes: int

    def with_arguments(
        self,
        older_than_ms: int | None,
        retain_max: int | None,
        retain_min: int | None,
        max_deletes: int | None,
        option_key: str,
    ) -> Retention:
        """The same with other numbers, where given."""
        for name, value in (("retain_max", retain_max), ("retain_min", retain_min), ("max_deletes", max_deletes)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidArgument(f"{name} is {value!r}", hint="pass a whole number from 1, or leave it out")
        most = _or(retain_max, self.retain_max)
        least = _or(retain_min, min(self.retain_min, most))
        if least > most:
            raise InvalidArgument(
                f"retain_min is {least}, more than the {most} that may be kept",
                hint=f"lower retain_min, or raise retain_max or `{option_key}`",
            )
        return Retention(least, most, _or(older_than_ms, self.older_than_ms), _or(max_deletes, self.max_deletes))

    def first_kept(
        self, earliest: int, latest: int, time_ms: Callable[[int], int], held_from: Callable[[], int | None]
    ) -> int:
        """The oldest id to keep of those from `earliest` on; `latest` is the newest snapshot, which always stays.

        `held_from` is the first id that a consumer has yet to read; asked only if something would go.
        """
        return self._first_kept(earliest, latest, earliest + self.max_deletes, self._first_young(time_ms), held_from)

    def first_kept_at_last(
        self, earliest: int, latest: int, time_ms: Callable[[int], int], held_from: Callable[[], int | None]
    ) -> int:
        """As `first_kept`, however many may go at once: what is told, not what is done, so few times are looked at."""

        def young(start: int, end: int) -> int:
            ids = range(start, max(start, end))
            return start + bisect_left(ids, self.older_than_ms, key=lambda number: time_ms(number + 1))

        return self._first_kept(earliest, latest, latest, young, held_from)

    def _first_kept(
        self,
        earliest: int,
        latest: int,
        most: int,
        young: Callable[[int, int], int],
        held_from: Callable[[], int | None],
    ) -> int:
        end = min(latest - self.retain_min + 1, most)
        if end <= earliest:
            return earliest
        end = young(max(latest - self.retain_max + 1, earliest), end)
        held = held_from() if end > earliest else None
        return end if held is None else max(min(end, held), earliest)

    def _first_young(self, time_ms: Callable[[int], int]) -> Callable[[int, int], int]:
        """One after another: clocks of several writers may differ, and nothing goes before all before it did."""

        def young(start: int, end: int) -> int:
            return next((number for number in range(start, end) if time_ms(number + 1) >= self.older_than_ms), end)

        return young


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """Rules for snapshots and for changelogs. The latter count as long-lived only where they keep more."""

    snapshots: Retention
    changelogs: Retention
    is_decoupled: bool
    """Whether changelogs outlive their snapshots."""
    has_producer: bool
    """Whether changes lie in changelog files. If not, they are the files that each commit added."""
    consumers_hold_snapshots: bool
    cleans_directories: bool = False
    """Whether directories that became empty go too."""

    @staticmethod
    def of(options: Options, now_ms: int) -> RetentionRules:
        """The rules that the table's options set."""
        least, most = options[SNAPSHOT_NUM_RETAINED_MIN], options[SNAPSHOT_NUM_RETAINED_MAX]
        time_ms, limit = options[SNAPSHOT_TIME_RETAINED], options[SNAPSHOT_EXPIRE_LIMIT]
        log_least = _or(options[CHANGELOG_NUM_RETAINED_MIN], least)
        log_most = _or(options[CHANGELOG_NUM_RETAINED_MAX], most)
        log_time_ms = _or(options[CHANGELOG_TIME_RETAINED], time_ms)
        return RetentionRules(
            Retention(least, most, now_ms - time_ms, limit),
            Retention(log_least, log_most, now_ms - log_time_ms, limit),
            is_decoupled=log_least > least or log_most > most or log_time_ms > time_ms,
            has_producer=options[CHANGELOG_PRODUCER] != "none",
            consumers_hold_snapshots=not options[CONSUMER_CHANGELOG_ONLY],
            cleans_directories=options[SNAPSHOT_CLEAN_EMPTY_DIRECTORIES],
        )

    def with_arguments(
        self, older_than_ms: int | None, retain_max: int | None, retain_min: int | None, max_deletes: int | None
    ) -> RetentionRules:
        """The same with other rules for snapshots, where given. To keep at most a few is to need no more than these."""
        changed = self.snapshots.with_arguments(
            older_than_ms, retain_max, retain_min, max_deletes, SNAPSHOT_NUM_RETAINED_MAX.key
        )
        logs = replace(self.changelogs, max_deletes=changed.max_deletes)
        return replace(self, snapshots=changed, changelogs=logs)

    def for_changelogs(
        self, older_than_ms: int | None, retain_max: int | None, retain_min: int | None, max_deletes: int | None
    ) -> RetentionRules:
        """The same with other rules for changelogs, where given, and as if they were meant to outlive snapshots."""
        changed = self.changelogs.with_arguments(
            older_than_ms, retain_max, retain_min, max_deletes, CHANGELOG_NUM_RETAINED_MAX.key
        )
        return replace(self, changelogs=changed, is_decoupled=True)


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value
