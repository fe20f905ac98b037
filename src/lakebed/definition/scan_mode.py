"""The modes of a scan by name, and the one that a table's options ask for.

A mode is chosen outright (`scan.mode`) or follows from the option that names a point. What it means for a read that
ends, and for a stream, is in `changes/scan_modes`.
"""

from __future__ import annotations

from typing import Any

from lakebed.definition.moments import to_millis
from lakebed.errors import InvalidArgument
from lakebed.options import (
    INCREMENTAL_BETWEEN,
    INCREMENTAL_BETWEEN_TIMESTAMP,
    INCREMENTAL_TO_AUTO_TAG,
    SCAN_CREATION_TIME_MILLIS,
    SCAN_FILE_CREATION_TIME_MILLIS,
    SCAN_MODE,
    SCAN_SNAPSHOT_ID,
    SCAN_TAG_NAME,
    SCAN_TIMESTAMP,
    SCAN_TIMESTAMP_MILLIS,
    SCAN_VERSION,
    SCAN_WATERMARK,
    Option,
    Options,
)

DEFAULT = "default"
LATEST_FULL = "latest-full"
FULL = "full"
LATEST = "latest"
COMPACTED_FULL = "compacted-full"
FROM_TIMESTAMP = "from-timestamp"
FROM_SNAPSHOT = "from-snapshot"
FROM_SNAPSHOT_FULL = "from-snapshot-full"
FROM_FILE_CREATION_TIME = "from-file-creation-time"
FROM_CREATION_TIMESTAMP = "from-creation-timestamp"
LATEST_DELTA = "latest-delta"
INCREMENTAL = "incremental"

OTHER_WORDS = {FULL: LATEST_FULL}
"""Words for modes that have a name already."""

POINTS: dict[str, tuple[Option[Any], ...]] = {
    FROM_TIMESTAMP: (SCAN_TIMESTAMP_MILLIS, SCAN_TIMESTAMP),
    FROM_SNAPSHOT: (SCAN_SNAPSHOT_ID, SCAN_TAG_NAME, SCAN_WATERMARK, SCAN_VERSION),
    FROM_SNAPSHOT_FULL: (SCAN_SNAPSHOT_ID,),
    FROM_FILE_CREATION_TIME: (SCAN_FILE_CREATION_TIME_MILLIS,),
    FROM_CREATION_TIMESTAMP: (SCAN_CREATION_TIME_MILLIS,),
    INCREMENTAL: (INCREMENTAL_BETWEEN, INCREMENTAL_BETWEEN_TIMESTAMP, INCREMENTAL_TO_AUTO_TAG),
}
"""Modes that start at a point, and the options of which one names it. The first of a mode wins by default."""


def scan_mode(options: Options, table: str) -> str:
    """The mode, never `default`. Raises if the point it starts at is missing, or another is named."""
    mode = options[SCAN_MODE]
    given = [option for option in dict.fromkeys(o for group in POINTS.values() for o in group) if options.has(option)]
    if len(given) > 1:
        raise InvalidArgument(
            f"table `{table}`: {' and '.join(f'`{option.key}`' for option in given)} each choose a snapshot",
            hint="set only one of them",
        )
    if mode == DEFAULT:
        return next((name for name, group in POINTS.items() if given and given[0] in group), LATEST_FULL)
    needed = POINTS.get(mode, ())
    if given and given[0] not in needed:
        raise InvalidArgument(
            f"table `{table}`: `{given[0].key}` does not go with `{SCAN_MODE.key}` = `{mode}`",
            hint="leave one of them out",
        )
    if needed and not given and mode != INCREMENTAL:
        names = " or ".join(f"`{option.key}`" for option in needed)
        raise InvalidArgument(
            f"table `{table}`: `{SCAN_MODE.key}` = `{mode}` does not say where to start", hint=f"set {names} as well"
        )
    return OTHER_WORDS.get(mode, mode)


def is_incremental(options: Options) -> bool:
    """Whether reads show changes instead of a state."""
    return options[SCAN_MODE] == INCREMENTAL or any(options.has(option) for option in POINTS[INCREMENTAL])


def timestamp_ms(options: Options) -> int:
    """The time that `from-timestamp` starts at."""
    millis = options[SCAN_TIMESTAMP_MILLIS]
    return int(millis) if millis is not None else to_millis(str(options[SCAN_TIMESTAMP]))
