"""The expiries that are made to fail at every single file operation, and what has to hold afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.unit.maintenance.expiring_tables import Workshop, changed, ids, needed, present, rows, shown, stores_of

from lakebed.errors import FileMissing
from lakebed.fileio.base import FileIO
from lakebed.schema.changes import RemoveOption
from lakebed.table.table import Table

_LONGER = {"changelog__num_retained__min": 1, "changelog__num_retained__max": 5, "snapshot__num_retained__max": 2}


@dataclass(frozen=True)
class ExpiryScenario:
    """A table whose options say that something has expired, and how expiry comes about."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    is_keyed: bool = True
    tag: int | None = 2
    by_commit: bool = False
    """Whether a commit brings the expiry about, rather than a call."""
    leftover: bool = False
    """Whether changelogs outlived their snapshots until now."""

    def create(self, fileio: FileIO) -> None:
        """The table, with commits that add, replace, compact and overwrite."""
        table = Workshop(fileio).create(
            self.is_keyed, snapshot__num_retained__min=1, manifest__merge_min_count=2, write_only="true", **self.options
        )
        for number in range(5):
            table.write(rows((0, number), (number + 1, number)))
            if self.is_keyed and number in (1, 3):
                _compact(table)
            if number == 2:
                table.write(rows((50, 50)), overwrite=True)
            if table.latest_snapshot().id == self.tag:  # type: ignore[union-attr]
                table.create_tag("t", self.tag)
        if self.leftover:
            table.expire_snapshots(retain_max=3)
            keys = [key.replace("__", ".").replace("_", "-") for key in _LONGER if key.startswith("changelog")]
            table.alter(*(RemoveOption(key) for key in keys))

    def expire(self, fileio: FileIO) -> None:
        """The expiry under test."""
        table = Workshop(fileio).lake.table("t")
        if self.by_commit:
            table.with_options({"write-only": "false", "num-sorted-run.compaction-trigger": "9"}).write(rows((70, 70)))
        else:
            table.expire_snapshots()


def _compact(table: Table) -> None:
    """A compaction that expires nothing."""
    keep = {"snapshot.num-retained.max": 1000, "snapshot.num-retained.min": 1000, "changelog.num-retained.max": 1000}
    table.with_options(keep).compact(full=True)


_TWO = {"snapshot__num_retained__max": 2}
SCENARIOS = {
    scenario.name: scenario
    for scenario in [
        ExpiryScenario("keyed", _TWO),
        ExpiryScenario("append", _TWO, is_keyed=False),
        ExpiryScenario("no-tag", _TWO, tag=None),
        ExpiryScenario("input", {**_TWO, "changelog_producer": "input"}),
        ExpiryScenario("lookup", {**_TWO, "changelog_producer": "lookup"}),
        ExpiryScenario("longer-changelogs", _LONGER),
        ExpiryScenario("longer-changelogs-append", _LONGER, is_keyed=False, tag=None),
        ExpiryScenario("longer-changelogs-input", {**_LONGER, "changelog_producer": "input"}),
        ExpiryScenario("leftover-changelogs", _LONGER, leftover=True),
        ExpiryScenario("leftover-changelogs-input", {**_LONGER, "changelog_producer": "input"}, leftover=True),
        ExpiryScenario("after-a-commit", _TWO, by_commit=True),
        ExpiryScenario("after-a-commit-longer-changelogs", _LONGER, by_commit=True),
    ]
}


@dataclass
class Expected:
    """What was to be seen before, and what has to be left afterwards."""

    states: dict[int, list[Any]]
    told: dict[int, list[Any]]
    tag: list[Any] | None
    snapshots: list[int] = field(default_factory=list)
    changelogs: list[int] = field(default_factory=list)

    @staticmethod
    def of(fileio: FileIO) -> Expected:
        """Everything that can be read now."""
        table = Workshop(fileio).lake.table("t")
        readable = [*stores_of(table).changelogs.ids(), *ids(table)]
        return Expected(
            {number: shown(table.at(snapshot=number)) for number in ids(table)},
            {number: changed(table, number - 1, number) for number in readable},
            shown(table.at(tag="t")) if table.tags() else None,
        )

    def check(self, fileio: FileIO) -> None:
        """What has to hold at any moment: all that stays is readable, and of the rest all but the oldest."""
        table = Workshop(fileio).lake.table("t")
        there = ids(table)
        assert there == list(range(there[0], there[-1] + 1))
        assert set(self.snapshots) <= set(there)
        for number in there:
            if number in self.states:
                _same(
                    lambda n=number: shown(table.at(snapshot=n)),
                    self.states[number],
                    number == there[0] < self.snapshots[0],
                )  # type: ignore[misc]
        logs = [number for number in stores_of(table).changelogs.ids() if number not in there]
        for number in (*logs, *there):
            if number in self.told:
                first = (logs or there)[0]
                may_be_gone = number == first and number not in (*self.changelogs, *self.snapshots)
                _same(lambda n=number: changed(table, n - 1, n), self.told[number], may_be_gone)  # type: ignore[misc]
        assert set(self.changelogs) <= {*logs, *there}
        if self.tag is not None:
            assert shown(table.at(tag="t")) == self.tag
        assert table.check() == []

    def check_done(self, fileio: FileIO, scenario: ExpiryScenario, may_leave: bool = False) -> None:
        """What has to hold when an expiry went through: all that is due is gone, and nothing is left over."""
        self.check(fileio)
        table = Workshop(fileio).lake.table("t")
        assert ids(table)[0] == self.snapshots[0]
        assert stores_of(table).changelogs.ids() == self.changelogs
        if may_leave:
            assert needed(table) <= present(table)
        elif "longer" not in scenario.name or "input" in scenario.name:
            assert present(table) == needed(table)


def _same(read: Callable[[], list[Any]], expected: list[Any], may_be_gone: bool) -> None:
    try:
        found = read()
    except FileMissing:
        assert may_be_gone
    else:
        assert found == expected
