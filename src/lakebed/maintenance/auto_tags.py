"""Which tags a table makes by itself: one for each period that is over, named after the period.

Pure: times go in, names and times come out. All times are wall-clock times of one zone.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lakebed.definition.context import TableContext
from lakebed.errors import AlreadyExists, InvalidOption
from lakebed.maintenance.tags import remove_tags, tag_snapshot
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    SINK_PROCESS_TIME_ZONE,
    SINK_WATERMARK_TIME_ZONE,
    TAG_AUTOMATIC_COMPLETION,
    TAG_AUTOMATIC_CREATION,
    TAG_BATCH_CUSTOMIZED_NAME,
    TAG_CREATION_DELAY,
    TAG_CREATION_PERIOD,
    TAG_CREATION_PERIOD_DURATION,
    TAG_NUM_RETAINED_MAX,
    TAG_PERIOD_FORMATTER,
    Options,
)
from lakebed.records import dataclass

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


# --- Tags that a table makes by itself after commits: by the clock, by the watermark, or one for each batch job ---


_LAST_MS = 253_370_764_800_000
"""The start of the year 9999: the watermark of a stream that has ended is later than any clock can show."""


def create_due_tags(context: TableContext, is_batch: bool) -> list[str]:
    """Makes the tags that are due, and deletes the oldest of too many; the names of the new ones."""
    match context.options[TAG_AUTOMATIC_CREATION]:
        case "none":
            return []
        case "batch":
            return _tag_batch(context) if is_batch else []
        case _:
            return _tag_periods(context)


def _tag_batch(context: TableContext) -> list[str]:
    latest = context.stores.snapshots.latest()
    if latest is None:
        return []
    moment = _wall_clock(latest.time_millis, _process_zone(context))
    name = context.options[TAG_BATCH_CUSTOMIZED_NAME] or f"batch-write-{moment:%Y-%m-%d}"
    if context.stores.tags.exists(name):
        remove_tags(context, [name])
    tag_snapshot(context, name, latest.id, None)
    _keep_newest(context, context.stores.tags.names())
    return [name]


def _tag_periods(context: TableContext) -> list[str]:
    stores, periods = context.stores, TagPeriods.of(context.options)
    known = {name: start for name in stores.tags.names() if (start := periods.start(name)) is not None}
    newest = max(known.values(), default=None)
    since = stores.tags.get(max(known, key=known.__getitem__)).snapshot.id if known else 0
    made: list[str] = []
    for snapshot_id in stores.snapshots.ids():
        snapshot = stores.snapshots.find(snapshot_id) if snapshot_id > since else None
        moment = None if snapshot is None else _moment(context, snapshot)
        if snapshot is None or moment is None:
            continue
        start = periods.due(moment, newest, context.options[TAG_AUTOMATIC_COMPLETION])
        if start is None:
            continue
        try:
            tag_snapshot(context, periods.name(start), snapshot.id, None)
            made.append(periods.name(start))
        except AlreadyExists:
            pass  # another writer was faster
        newest = start
    if made:
        _keep_newest(context, [name for name in stores.tags.names() if periods.start(name) is not None])
    return made


def _keep_newest(context: TableContext, names: list[str] | tuple[str, ...]) -> None:
    most = context.options[TAG_NUM_RETAINED_MAX]
    if most is None or len(names) <= most:
        return
    tags = [tag.name for tag in context.stores.tags.list() if tag.name in names]
    remove_tags(context, tags[: len(tags) - most])


def _moment(context: TableContext, snapshot: Snapshot) -> datetime | None:
    if context.options[TAG_AUTOMATIC_CREATION] == "process-time":
        return _wall_clock(snapshot.time_millis, _process_zone(context))
    if snapshot.watermark is None or snapshot.watermark < 0:
        return None
    return _wall_clock(snapshot.watermark, _zone(context.options[SINK_WATERMARK_TIME_ZONE]))


def _process_zone(context: TableContext) -> tzinfo | None:
    name = context.options[SINK_PROCESS_TIME_ZONE]
    return None if name is None else _zone(name)


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name.upper() == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidOption(f"there is no time zone `{name}`", hint="write it like `Europe/Berlin`") from error


def _wall_clock(time_ms: int, zone: tzinfo | None) -> datetime:
    """The time that a clock in the zone shows; of this machine without one."""
    return datetime.fromtimestamp(min(time_ms, _LAST_MS) / 1000, zone).replace(tzinfo=None)
