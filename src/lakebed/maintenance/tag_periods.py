"""Which tags a table makes by itself: one for each period that is over, named after the period.

Pure: times go in, names and times come out. All times are wall-clock times of one zone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakebed.errors import InvalidOption
from lakebed.options import (
    TAG_CREATION_DELAY,
    TAG_CREATION_PERIOD,
    TAG_CREATION_PERIOD_DURATION,
    TAG_PERIOD_FORMATTER,
    Options,
)

_EPOCH = datetime(1970, 1, 1)
_HOURS = {
    "with_dashes": (r"\d{4}-\d{2}-\d{2} \d{2}", "%Y-%m-%d %H"),
    "without_dashes": (r"\d{8} \d{2}", "%Y%m%d %H"),
    "without_dashes_and_spaces": (r"\d{10}", "%Y%m%d%H"),
}
_DAYS = {"with_dashes": (r"\d{4}-\d{2}-\d{2}", "%Y-%m-%d")}
_DAYS_WITHOUT = (r"\d{8}", "%Y%m%d")


@dataclass(frozen=True, slots=True)
class TagPeriods:
    """Periods of one length, how long after their end a tag may be made, and how they are spelled."""

    length: timedelta
    delay: timedelta
    pattern: str
    spelling: str

    @staticmethod
    def of(options: Options) -> TagPeriods:
        """The periods that the table's options set."""
        delay = timedelta(milliseconds=options[TAG_CREATION_DELAY])
        duration_ms, formatter = options[TAG_CREATION_PERIOD_DURATION], options[TAG_PERIOD_FORMATTER]
        match options[TAG_CREATION_PERIOD]:
            case _ if duration_ms is not None:
                periods = TagPeriods(timedelta(milliseconds=duration_ms), delay, r"\d{12}", "%Y%m%d%H%M")
            case "hourly":
                periods = TagPeriods(timedelta(hours=1), delay, *_HOURS[formatter])
            case "two-hours":
                periods = TagPeriods(timedelta(hours=2), delay, *_HOURS["with_dashes"])
            case _:
                periods = TagPeriods(timedelta(days=1), delay, *_DAYS.get(formatter, _DAYS_WITHOUT))
        if periods.length <= delay:
            raise InvalidOption(
                f"`{TAG_CREATION_DELAY.key}` is {delay}, not shorter than the period of {periods.length}",
                hint="wait for less than a period",
            )
        return periods

    def name(self, start: datetime) -> str:
        """The name of the tag for the period that starts then."""
        return start.strftime(self.spelling)

    def start(self, name: str) -> datetime | None:
        """When the period of a tag starts; None for a tag that somebody else named."""
        if re.fullmatch(self.pattern, name, re.ASCII) is None:
            return None
        try:
            return datetime.strptime(name, self.spelling)
        except ValueError:
            return None

    def complete_before(self, time: datetime) -> datetime:
        """The start of the last period that was over at that time."""
        return time - (time - _EPOCH) % self.length - self.length

    def due(self, time: datetime, newest: datetime | None, fills_gaps: bool) -> datetime | None:
        """The period to tag with a snapshot of that time, when `newest` is the last that has a tag; None for none.

        Without any tag yet the last complete period gets one at once. `fills_gaps` tags the period after the newest
        first, so that periods without a snapshot get a tag of their own.
        """
        if newest is None:
            return self.complete_before(time)
        following = newest + self.length
        if time - self.delay < following + self.length:
            return None
        return following if fills_gaps else self.complete_before(time)
