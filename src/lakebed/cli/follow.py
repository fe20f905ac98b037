"""`lakebed compact --follow`: compacts tables for as long as others write to them.

The first Ctrl-C, or SIGTERM, lets what is being merged be finished and committed; a second one ends at once, and the
unfinished files are taken back.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lakebed.cells import to_json
from lakebed.cli.command import OK
from lakebed.cli.interrupts import interruptible, measured
from lakebed.cli.output import Output
from lakebed.clock import SystemClock
from lakebed.metadata.snapshot import Snapshot
from lakebed.table.compact_follow import Follower, follow, follower_of, interval_argument

if TYPE_CHECKING:
    from lakebed.lake import Lake
    from lakebed.table.table import Table

_ALL = ".*"
_LISTING_SECONDS = 10.0
"""How long a new table of a database may go unnoticed."""


def table_names(lake: Lake, names: Sequence[str]) -> list[str]:
    """The tables that are named, `db.*` being all of a database."""
    found: list[str] = []
    for name in names:
        if name.endswith(_ALL):
            database = name.removesuffix(_ALL)
            found += [f"{database}.{table}" for table in lake.tables(database)]
        else:
            found.append(name)
    return list(dict.fromkeys(found))


def all_tables(lake: Lake) -> list[str]:
    """Every table of the lake."""
    return [f"{database}.{table}" for database in lake.databases() for table in lake.tables(database)]


def follow_tables(lake: Lake, given: argparse.Namespace, out: Output, filter_of: Callable[[Table], Any]) -> int:
    """Compacts the tables until it is interrupted."""
    interval_ms = interval_argument(given.interval)
    tables = _Tables(lake, given.tables, filter_of)
    tables.followers()  # what is wrong with the call is said before anything is followed
    with measured(given), interruptible() as stop:
        if out.is_terminal:
            print(f"following {', '.join(given.tables)}; Ctrl-C ends it", file=sys.stderr)  # noqa: T201
        follow(tables.followers, stop, interval_ms, lambda table, snapshot: _tell(out, table, snapshot), SystemClock())
    return OK


class _Tables:
    """The followers of all tables that are named, those of a database as it has them."""

    def __init__(self, lake: Lake, names: Sequence[str], filter_of: Callable[[Table], Any]) -> None:
        self._lake = lake
        self._names = names
        self._filter_of = filter_of
        self._followers: dict[str, Follower] = {}
        self._listed: float | None = None

    def followers(self) -> list[Follower]:
        now = time.monotonic()
        is_changing = any(name.endswith(_ALL) for name in self._names)
        if self._listed is None or (is_changing and now - self._listed > _LISTING_SECONDS):
            self._listed = now
            names = table_names(self._lake, self._names)
            self._followers = {
                name: self._followers[name] if name in self._followers else self._new(name) for name in names
            }
        return list(self._followers.values())

    def _new(self, name: str) -> Follower:
        table = self._lake.table(name)
        return follower_of(table, self._filter_of(table))


def _tell(out: Output, follower: Follower, snapshot: Snapshot) -> None:
    if out.form == "json":
        out.line(to_json({"table": follower.table, "snapshot": snapshot.id}))
    elif out.form == "csv":
        out.csv_lines([[follower.table, snapshot.id]])
    else:
        out.line(f"{follower.table}: compacted, snapshot {snapshot.id}")


__all__ = ["all_tables", "follow_tables", "table_names"]
