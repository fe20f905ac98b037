"""Which way a refresh goes: from changes or from all rows, whichever is expected to be cheaper, where, and why.

A row that a change touches costs about twenty times as much as one that is only read: it is looked for in other tables,
before and after, and in the stored result. So changes are followed as long as what they touch is no more than a
twentieth of all rows. That is a guess, which past refreshes correct: each writes how long it took, and once everything
takes long enough to be measured, times decide. What a change touches is known for certain only on the way: one row of
a small table may belong to all rows of a large one. So rows are counted as they are found, and if they become too many
the rest is not looked for.

Changes that touch more rows than this process should hold are followed by tasks of Spark's, if the query falls into
parts. No row costs less there: a job has to begin, and what a part can not find by its key it reads in all parts. So
Spark is asked for what is large, and never for what is small.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import field, replace

from lakebed.commit.replay import VIEW_PREFIX
from lakebed.metadata.snapshot import Snapshot
from lakebed.records import dataclass

_COST_OF_A_CHANGE = 20
_COST_OF_A_SCAN = 0.5
"""Of a row that is read to find others by it; a refresh of everything does more with each."""
_WORTH_MEASURING = 0.2
"""Seconds below which times are noise, and rows decide."""
_FIXED = 0.1
"""Seconds that following changes takes, however few they are."""
_FIXED_OF_TASKS = 3.0
"""The same for tasks of Spark's."""
_KEPT = 4
"""Refreshes from changes whose times are kept."""
_FORGOTTEN = 0.8
"""What is left of a time whenever the other way is gone: a slow start is not held against changes for ever."""
_MEASURES = f"{VIEW_PREFIX}measures"


@dataclass(frozen=True, slots=True)
class Measure:
    """How many rows a refresh looked at or touched, and how long that took, without its commit."""

    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Past:
    """What the last refreshes took: the last one of everything, and some from changes."""

    full: Measure | None = None
    incremental: tuple[Measure, ...] = ()
    fan_out: float = 1.0
    """How many rows a changed one has touched."""
    tasks: tuple[Measure, ...] = ()
    """What some from changes took as jobs of Spark's."""

    @staticmethod
    def of(snapshot: Snapshot | None) -> Past:
        """As a snapshot tells."""
        text = (snapshot.properties or {}).get(_MEASURES) if snapshot is not None else None
        if text is None:
            return Past()
        try:
            members = json.loads(text)
            full = members.get("full")
            here, tasks = (tuple(Measure(*each) for each in members.get(way, ())) for way in ("incremental", "tasks"))
            return Past(None if full is None else Measure(*full), here, float(members.get("fan-out", 1.0)), tasks)
        except (ValueError, TypeError):  # a hint, which nothing depends on
            return Past()

    def to_properties(self) -> Mapping[str, str]:
        """For the snapshot that a refresh makes."""
        members: dict[str, object] = {"fan-out": round(self.fan_out, 2)}
        if self.full is not None:
            members["full"] = [self.full.rows, round(self.full.seconds, 3)]
        for way, known in (("incremental", self.incremental), ("tasks", self.tasks)):
            if known or way == "incremental":
                members[way] = [[each.rows, round(each.seconds, 3)] for each in known]
        return {_MEASURES: json.dumps(members)}

    def with_full(self, measure: Measure) -> Past:
        """After a refresh of everything."""
        here, tasks = (
            tuple(replace(each, seconds=each.seconds * _FORGOTTEN) for each in known)
            for known in (self.incremental, self.tasks)
        )
        return replace(self, full=measure, incremental=here, tasks=tasks)

    def with_changes(self, changed: int, measure: Measure) -> Past:
        """After one from changes."""
        return replace(self, incremental=_with(self.incremental, measure), fan_out=_fan_out(changed, measure))

    def with_tasks(self, changed: int, measure: Measure) -> Past:
        """After one from changes by tasks of Spark's."""
        return replace(self, tasks=_with(self.tasks, measure), fan_out=_fan_out(changed, measure))


def _with(known: tuple[Measure, ...], measure: Measure) -> tuple[Measure, ...]:
    """The last of each size."""
    others = [each for each in known if not measure.rows / 2 < each.rows < measure.rows * 2]
    return tuple(sorted([*others[-_KEPT + 1 :], measure], key=lambda each: each.rows))


def _fan_out(changed: int, measure: Measure) -> float:
    return max(1.0, measure.rows / max(1, changed))


@dataclass(frozen=True, slots=True)
class Estimate:
    """Rows that changed, rows that a refresh of everything reads and compares, and what is known of the past."""

    changed: int
    everything: int
    scanned: int = 0
    """Rows that are read to find others by what is not their key."""
    touched: int | None = None
    """Rows that were found to belong to the changes so far; None before they are looked for."""
    past: Past = field(default_factory=Past)
    most_here: int | None = None
    """Rows that this process may follow; None for any number."""
    parts: int = 0
    """How many tasks of Spark's follow the changes; 0 if this process does."""
    shared_by: str = ""
    """What they share rows by."""
    why_here: str = ""
    """Why they can not."""

    @property
    def is_too_large_here(self) -> bool:
        """Whether so many rows are touched that tasks of Spark's have to follow the changes, if they can."""
        most = self.most_here
        return most is not None and self._expected > most and not self.parts and not self.why_here

    @property
    def way_told(self) -> str:
        """Who follows the changes, in words, if the choice is not the estimate's."""
        return f"{self.changed:,} changed rows{self._where}"

    @property
    def _where(self) -> str:
        if self.why_here:
            return f"; not by Spark: {self.why_here}"
        if not self.parts:
            return ""
        rows = f"{round(self._expected):,} rows are more than {self.most_here:,}"
        return f"; by Spark: {rows}, in {self.parts} parts by {self.shared_by}"

    @property
    def follows_changes(self) -> bool:
        """Whether following changes is expected to be cheaper."""
        times = self._times()
        return self._units <= self.everything if times is None else times[0] <= times[1]

    @property
    def reason(self) -> str:
        """In words."""
        follows = self.follows_changes
        return f"{self._compared(follows)}{self._where if follows else ''}"

    def _compared(self, follows: bool) -> str:
        touching = (
            f", which touch {self.touched:,}," if self.touched is not None and self.touched > self.changed else ""
        )
        times = self._times()
        if times is not None:
            return f"{self.changed:,} changed rows{touching} take about {times[0]:.1f} s, everything {times[1]:.1f} s"
        if not follows and not touching and self.changed * _COST_OF_A_CHANGE <= self.everything:
            return f"{self.changed:,} changed rows need {self.scanned:,} others to be read, of {self.everything:,}"
        return f"{self.changed:,} changed{touching} of {self.everything:,} rows are {'few' if follows else 'many'}"

    @property
    def _expected(self) -> float:
        """Rows that the changes touch."""
        return max(self.touched or 0, self.changed * (self.past.fan_out if self.touched is None else 1))

    @property
    def _units(self) -> float:
        """Following changes, counted in rows that are only read."""
        return self._expected * _COST_OF_A_CHANGE + self.scanned * max(1, self.parts) * _COST_OF_A_SCAN

    def _times(self) -> tuple[float, float] | None:
        """Seconds that changes and everything are expected to take; None if too little is known."""
        full = self.past.full
        if full is None:
            return None
        rate = full.seconds / max(1, full.rows)
        everything = rate * self.everything
        if everything < _WORTH_MEASURING:
            return None
        return self._seconds(rate), everything

    def _seconds(self, rate: float) -> float:
        """Between two refreshes from changes what lies between them; beyond them in proportion."""
        rows, known = self._expected, self.past.tasks if self.parts else self.past.incremental
        fixed = _FIXED_OF_TASKS if self.parts else _FIXED
        if not known:
            return fixed + rate * self._units
        below = [each for each in known if each.rows <= rows]
        above = [each for each in known if each.rows > rows]
        if not below:
            return above[0].seconds
        last = below[-1]
        if not above:
            return last.seconds + max(0.0, last.seconds - fixed) * (rows - last.rows) / max(1, last.rows)
        step = (rows - last.rows) / (above[0].rows - last.rows)
        return last.seconds + step * (above[0].seconds - last.seconds)


class Stopwatch:
    """Seconds that work takes: those of the processor, or of the clock if those are less: others work here."""

    def __init__(self) -> None:
        self._began = (time.process_time(), time.perf_counter())

    def seconds(self) -> float:
        """Since it was made."""
        return min(time.process_time() - self._began[0], time.perf_counter() - self._began[1])


__all__ = ["Estimate", "Measure", "Past", "Stopwatch"]
