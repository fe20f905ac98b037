"""Settings that contradict each other, found when they are made: at CREATE, and when ALTER sets one of them.

Tables that have them already, from another engine or from an earlier time, are read and written as before.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from lakebed.definition.scan_mode import INCREMENTAL, POINTS, scan_mode
from lakebed.errors import InvalidArgument, InvalidOption
from lakebed.options import (
    CHANGELOG_NUM_RETAINED_MAX,
    CHANGELOG_NUM_RETAINED_MIN,
    SCAN_MODE,
    SNAPSHOT_NUM_RETAINED_MAX,
    SNAPSHOT_NUM_RETAINED_MIN,
    Option,
    Options,
)

_POINTS = tuple(dict.fromkeys(option for group in POINTS.values() for option in group))


def check_new_settings(options: Options, table: str, changed: Collection[str] | None = None) -> None:
    """Raises on the first contradiction that one of the `changed` keys (any, if None) has a part in."""

    def concerns(*parts: Option[Any]) -> bool:
        return changed is None or any(key in changed for part in parts for key in (part.key, *part.aliases))

    if concerns(SCAN_MODE, *_POINTS):
        _check_scan(options, table)
    if concerns(SNAPSHOT_NUM_RETAINED_MIN, SNAPSHOT_NUM_RETAINED_MAX):
        _check_retained(table, SNAPSHOT_NUM_RETAINED_MIN.key, SNAPSHOT_NUM_RETAINED_MAX.key, *_snapshots(options))
    if concerns(CHANGELOG_NUM_RETAINED_MIN, CHANGELOG_NUM_RETAINED_MAX):
        _check_retained(table, CHANGELOG_NUM_RETAINED_MIN.key, CHANGELOG_NUM_RETAINED_MAX.key, *_changelogs(options))


def _check_scan(options: Options, table: str) -> None:
    try:
        mode = scan_mode(options, table)
    except InvalidArgument as error:
        raise InvalidOption(error.message, hint=error.hint) from error
    if mode == INCREMENTAL and not any(options.has(option) for option in POINTS[INCREMENTAL]):
        names = " or ".join(f"`{option.key}`" for option in POINTS[INCREMENTAL])
        raise InvalidOption(
            f"table `{table}`: `{SCAN_MODE.key}` = `{mode}` does not say between what", hint=f"set {names} as well"
        )


def _snapshots(options: Options) -> tuple[int, int]:
    return options[SNAPSHOT_NUM_RETAINED_MIN], options[SNAPSHOT_NUM_RETAINED_MAX]


def _changelogs(options: Options) -> tuple[int, int]:
    """Where nothing is said of changelogs, what is said of snapshots holds for them too."""
    least, most = _snapshots(options)
    own_least, own_most = options[CHANGELOG_NUM_RETAINED_MIN], options[CHANGELOG_NUM_RETAINED_MAX]
    return (least if own_least is None else own_least), (most if own_most is None else own_most)


def _check_retained(table: str, least_key: str, most_key: str, least: int, most: int) -> None:
    if least > most:
        raise InvalidOption(
            f"table `{table}`: `{least_key}` is {least}, more than `{most_key}` allows, which is {most}",
            hint=f"lower `{least_key}` too: it is what is kept however old it is",
        )


__all__ = ["check_new_settings"]
