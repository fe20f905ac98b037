"""Commits that compact and tell what changed fail at every single file operation, and are repeated.

Nothing may be told twice, and nothing may stay untold: whoever replays the changes has the table, before the repetition
(as of some commit) and after it. Sums show a row that came in twice.

In the default run operations and ways to fail take turns: processes die at one operation in five of those that leave
another disk, the other ways get one in eleven each. The nightly run fails every operation in every way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from tests.faults.fault_tables import (
    SCHEMA,
    Row,
    check_sound,
    check_untouched,
    copy_of,
    data,
    fresh_disk,
    in_turn,
    open_lake,
    rows_of,
    take_inventory,
    wipe,
)
from tests.faults.test_every_operation import MODES, OneThread, Prepared

from lakebed.errors import LakebedError, OutcomeUnknown
from lakebed.fileio.base import FileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.table.table import Table
from lakebed.testing.faulty_io import FaultMode, FaultyFileIO, SimulatedCrash
from lakebed.testing.model_arrow import changes_from_arrow
from lakebed.testing.replay import replayed

USER, IDENTIFIER = "job", 7
KEY = ("p", "id")
OWN: Sequence[Row] = [(1, key, 100 + key) for key in range(4)] + [(2, 9, 5)]
OTHERS: Sequence[Row] = [(1, 1, 1000), (1, 50, 1)]
NEXT: Sequence[Row] = [(1, 2, 7), (2, 9, 8), (3, 1, 1)]
BEFORE: Sequence[Sequence[Row]] = [[(1, key, key) for key in range(6)], [(1, 1, 21), (2, 3, 4)]]

ENGINES: Mapping[str, dict[str, str]] = {
    "deduplicate": {},
    "sum": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
}
PRODUCERS = ("input", "lookup", "full-compaction")
NORMALISED = "normalised input"


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here runs in one thread, and operations come in the same order every time."""
    for module in ("metadata.entries", "rewrite.bucket"):
        monkeypatch.setattr(f"lakebed.{module}.ThreadPoolExecutor", OneThread)


@dataclass(frozen=True)
class Case:
    """A table with a changelog; `meddling`: before which snapshot of the commit under test somebody else commits."""

    engine: str
    producer: str
    meddling: int = 0

    @property
    def name(self) -> str:
        return f"{self.engine}-{self.producer}" + (f"-meddled-{self.meddling}" if self.meddling else "")

    def create(self, disk: FileIO) -> None:
        options = {"bucket": "1", "file.format": "avro", "num-sorted-run.compaction-trigger": "2"}
        options |= {"changelog-producer": self.producer.removeprefix("normalised "), **ENGINES[self.engine]}
        if self.producer == NORMALISED:
            options["changelog-producer.input.normalize"] = "true"
        table = open_lake(disk).create_table("t", SCHEMA, primary_key=KEY, options=options)
        for rows in BEFORE:
            table.write(data(rows))

    def merged(self, commits: Iterable[Sequence[Row]]) -> list[Row]:
        """Rows after these commits."""
        found: dict[tuple[int, int], int] = {}
        for p, id_, value in (row for commit in commits for row in commit):
            found[p, id_] = value + (found.get((p, id_), 0) if self.engine == "sum" else 0)
        return sorted((*key, value) for key, value in found.items())

    def told(self, table: Table) -> list[Row]:
        """What the table's changes come to."""
        changes = changes_from_arrow(table.changes())
        if self.producer == "input":
            return sorted(tuple(row.values()) for _, row in changes)
        return sorted(tuple(row.values()) for row in replayed(changes, KEY).values())

    def to_be_told(self, commits: Sequence[Sequence[Row]]) -> list[Row]:
        """What they should come to after these commits."""
        return sorted(row for commit in commits for row in commit) if self.producer == "input" else self.merged(commits)


CASES = {
    case.name: case
    for case in [
        *(Case(engine, producer) for engine in ENGINES for producer in PRODUCERS),
        *(Case("sum", producer, number) for producer in PRODUCERS for number in (1, 2)),
        *(Case("deduplicate", NORMALISED, number) for number in (0, 1)),
    ]
}


def commit(table: Table, rows: Sequence[Row], identifier: int) -> None:
    """One commit of a job that may repeat it."""
    with table.writer(commit_user=USER, commit_identifier=identifier) as writer:
        writer.write(data(rows))
        writer.commit()


class MeddledFileIO(FaultyFileIO):
    """Lets somebody else commit just before the n-th snapshot is created through it."""

    def __init__(
        self, inner: FileIO, meddle: Callable[[], None], at: int, fail_at: int | None, mode: FaultMode
    ) -> None:
        super().__init__(inner, fail_at, mode)
        self._meddle = meddle
        self._left = at

    def create_exclusive(self, path: str, data: bytes) -> bool:
        if "/snapshot-" in path:
            self._left -= 1
            if not self._left:
                self._meddle()
        return super().create_exclusive(path, data)


@dataclass
class Run:
    """One try of the commit under test on a disk of its own."""

    case: Case
    disk: MemoryFileIO
    others: list[Sequence[Row]] = field(default_factory=list)
    outcome: BaseException | None = None

    def meddle(self) -> None:
        open_lake(self.disk).table("t").write(data(OTHERS))
        self.others = [OTHERS]

    def perform(self, fail_at: int | None, mode: FaultMode) -> FaultyFileIO:
        """The commit, with a failure."""
        fileio = MeddledFileIO(self.disk, self.meddle, self.case.meddling, fail_at, mode)
        try:
            commit(open_lake(fileio).table("t"), OWN, IDENTIFIER)
        except (LakebedError, SimulatedCrash) as error:
            self.outcome = error
        return fileio

    def check(self, original: FileIO) -> None:
        """All that has to hold, whatever failed."""
        case, table = self.case, open_lake(self.disk).table("t")
        commits = [*BEFORE, *self.others]
        self._check_before(table, commits)
        commit(table, OWN, IDENTIFIER)
        self._check_now(table, [*commits, OWN], "after the repetition")
        commit(table, NEXT, IDENTIFIER + 1)
        self._check_now(table, [*commits, OWN, NEXT], "after the next commit")
        commit(open_lake(self.disk).table("t"), NEXT, IDENTIFIER + 1)
        self._check_now(table, [*commits, OWN, NEXT], "after repeating that one")
        if case.producer not in ("input", NORMALISED):
            assert not any(file.level == 0 for file in table.scan().files), "rows that no compaction has told of"
        check_sound(table)
        check_untouched(original, self.disk)

    def _check_before(self, table: Table, commits: Sequence[Sequence[Row]]) -> None:
        """Rows as the outcome says; what was told is the table as it was after some commit."""
        found, told, case = rows_of(table), self.case.told(table), self.case
        old, new = case.merged(commits), case.merged([*commits, OWN])
        if self.outcome is None:
            assert found == new
        elif isinstance(self.outcome, SimulatedCrash | OutcomeUnknown):
            assert found in (old, new)
        else:
            assert found == old
        if case.producer == "input":
            assert told == case.to_be_told([*commits, OWN] if found == new else commits)
        else:
            assert told in [case.merged(BEFORE), old, found]

    def _check_now(self, table: Table, commits: Sequence[Sequence[Row]], when: str) -> None:
        assert rows_of(table) == self.case.merged(commits), when
        assert self.case.told(table) == self.case.to_be_told(commits), f"told {when}"


@functools.cache
def prepared(name: str) -> Prepared:
    """The disk before the commit, and the operations it takes: two snapshots and a changelog."""
    disk = fresh_disk()
    CASES[name].create(disk)
    run = Run(CASES[name], copy_of(disk))
    ops = run.perform(None, "error").ops
    assert run.outcome is None
    made = [path for method, path in ops if method == "create_exclusive" and "/snapshot-" in path]
    assert len(made) >= 2, "the commit under test compacts"
    assert any("/changelog-" in path for _, path in ops), "the commit under test writes a changelog"
    assert not take_inventory(open_lake(run.disk).table("t")).orphans
    return Prepared(disk, tuple(ops))


def fail_at(name: str, numbers: Iterable[int], mode: FaultMode) -> None:
    """Fail these operations, one run each."""
    disk, ops = prepared(name)
    for number in numbers:
        run = Run(CASES[name], copy_of(disk))
        try:
            run.perform(number, mode)
            run.check(disk)
        except BaseException as error:
            error.add_note(f"{name}: operation {number} of {len(ops)}, {mode} in {ops[number - 1]}: {run.outcome!r}")
            raise
        wipe(run.disk)


@pytest.mark.parametrize("name", CASES)
def test_killed_anywhere(name: str) -> None:
    """The process dies at an operation; the next one repeats the commit, and no event is lost or doubled."""
    fail_at(name, in_turn(prepared(name).positions("crash"), 5, list(CASES).index(name)), "crash")


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "crash"])
@pytest.mark.parametrize("name", CASES)
def test_failed_here_and_there(name: str, mode: FaultMode) -> None:
    """An operation fails; rows and events are as the outcome says, and the repetition completes both."""
    turn = list(CASES).index(name) + MODES.index(mode)
    fail_at(name, in_turn(prepared(name).positions(mode), 11, turn), mode)


@pytest.mark.nightly
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_failed_anywhere(name: str, mode: FaultMode) -> None:
    """The same for every operation in every mode."""
    fail_at(name, range(1, len(prepared(name).ops) + 1), mode)
