"""Deletes, compactions and upserts of tables that mark rows fail at every single file operation.

The table shows the rows before or the rows after, as the outcome says, and never a row that is deleted or one twice;
nothing is left behind; and the same statement works afterwards. With somebody else's delete in between, too.
In the default run operations and ways to fail take turns; the nightly run fails every operation in every way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow.compute as pc
import pytest
from tests.faults.fault_tables import (
    SCHEMA,
    Row,
    check_sound,
    check_untouched,
    copy_of,
    data,
    fresh_disk,
    open_lake,
    rows_of,
    take_inventory,
    wipe,
)
from tests.faults.test_every_operation import MODES, MeddledFileIO, OneThread, Prepared

from lakebed.errors import CommitConflict, LakebedError, OutcomeUnknown
from lakebed.fileio.memory import MemoryFileIO
from lakebed.rewrite.rows_by_place import ReplaceRows
from lakebed.table.plans import plan_write
from lakebed.table.table import Table
from lakebed.testing.faulty_io import FaultMode, SimulatedCrash

Rows = list[Row]
BEFORE: Sequence[Sequence[Row]] = [[(1, key, key) for key in range(6)], [(1, key, key) for key in range(6, 10)]]
MARKING = {"deletion-vectors.enabled": "true", "file.format": "avro"}
IS_GONE = pc.field("id").isin([2, 3, 8])


@dataclass(frozen=True)
class Statement:
    """A table, what was done to it, and the statement under test with what it does to the rows."""

    run: Callable[[Table], object]
    applied: Callable[[Rows], Rows]
    options: Mapping[str, str]
    primary_key: Sequence[str] = ()
    marked: bool = False
    """Whether rows are deleted from the table before."""
    meddles: bool = False
    """Whether somebody else deletes a row just before the snapshot is published."""

    def create(self, disk: MemoryFileIO) -> None:
        table = open_lake(disk).create_table("t", SCHEMA, primary_key=self.primary_key, options=self.options)
        for rows in BEFORE:
            table.write(data(rows))
        if self.marked:
            table.delete_where(pc.field("id") == 4)

    def initial(self) -> Rows:
        return [row for rows in BEFORE for row in rows if not (self.marked and row[1] == 4)]


def _delete(table: Table) -> object:
    return table.delete_where(IS_GONE)


def _without(rows: Rows) -> Rows:
    return [row for row in rows if row[1] not in (2, 3, 8)]


def _compact(table: Table) -> object:
    return table.compact(full=True)


def _upsert(table: Table) -> object:
    return table.write(data([(1, 1, 100), (1, 99, 99)]))


def _upserted(rows: Rows) -> Rows:
    return sorted({row[:2]: row for row in [*rows, (1, 1, 100), (1, 99, 99)]}.values())


def _replace_columns(table: Table) -> object:
    context, _ = plan_write(table)
    old = table.to_arrow(columns=[*SCHEMA.names, "_ROW_ID"], filter=IS_GONE)
    changed = old.set_column(2, SCHEMA.field("v"), pc.add(old["id"], 100))
    added = None if table.to_arrow(filter=pc.field("id") == 99).num_rows else data([(1, 99, 99)])
    return ReplaceRows(context, table.latest_snapshot(), "UPDATE").commit({}, changed, added)


def _replaced(rows: Rows) -> Rows:
    changed = {(p, key, key + 100) if key in (2, 3, 8) else (p, key, v) for p, key, v in rows}
    return sorted({*changed, (1, 99, 99)})


def _same(rows: Rows) -> Rows:
    return rows


REWRITING = {"file.format": "avro"}
KEYED = MARKING | {"bucket": "1", "num-sorted-run.compaction-trigger": "9", "compaction.size-ratio": "0"}
EVOLVING = REWRITING | {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
STATEMENTS = {
    "delete by rewriting": Statement(_delete, _without, REWRITING),
    "delete by marking": Statement(_delete, _without, MARKING),
    "delete more by marking": Statement(_delete, _without, MARKING, marked=True),
    "delete by marking, overtaken": Statement(_delete, _without, MARKING, marked=True, meddles=True),
    "delete with ids": Statement(_delete, _without, REWRITING | {"row-tracking.enabled": "true"}),
    "compact": Statement(_compact, _same, MARKING, marked=True),
    "replace columns": Statement(_replace_columns, _replaced, EVOLVING),
    "compact columns": Statement(_compact, _same, EVOLVING),
    "upsert": Statement(_upsert, _upserted, KEYED, primary_key=["p", "id"]),
}


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here runs in one thread, and operations come in the same order every time."""
    for module in ("metadata.entries", "rewrite.bucket", "read.reader", "write.pieces", "rewrite.rows_by_place"):
        monkeypatch.setattr(f"lakebed.{module}.ThreadPoolExecutor", OneThread)


@dataclass
class Run:
    """One try of a statement on a disk of its own."""

    statement: Statement
    disk: MemoryFileIO
    outcome: BaseException | None = None
    others_came: bool = False
    fileio: MeddledFileIO | None = field(default=None)

    def meddle(self) -> None:
        open_lake(self.disk).table("t").delete_where(pc.field("id") == 5)
        self.others_came = True

    def perform(self, fail_at: int | None, mode: FaultMode) -> MeddledFileIO:
        self.fileio = MeddledFileIO(self.disk, self.meddle if self.statement.meddles else None, fail_at, mode)
        try:
            self.statement.run(open_lake(self.fileio).table("t"))
        except (LakebedError, SimulatedCrash) as error:
            self.outcome = error
        return self.fileio

    def check(self, before: MemoryFileIO) -> None:
        statement = self.statement
        table = open_lake(self.disk).table("t")
        old = [row for row in statement.initial() if not (self.others_came and row[1] == 5)]
        new = statement.applied(old)
        found = self._shown(table)
        if self.outcome is None:
            assert found == sorted(new)
        elif isinstance(self.outcome, SimulatedCrash | OutcomeUnknown):
            assert found in (sorted(old), sorted(new))
        else:
            assert not isinstance(self.outcome, CommitConflict)
            assert found == sorted(old)
        check_sound(table)
        check_untouched(before, self.disk)
        statement.run(table)
        assert self._shown(table) == sorted(new)
        check_sound(table)

    def _shown(self, table: Table) -> Rows:
        """Upserts count when they are committed, whether or not the compaction behind them came through."""
        options = {"deletion-vectors.merge-on-read": "true"} if table.primary_key else {}
        return rows_of(table.with_options(options))

    def check_clean(self) -> None:
        assert self.fileio is not None
        if isinstance(self.outcome, SimulatedCrash | OutcomeUnknown):
            return
        if self.statement.primary_key and self.fileio.mode == "unknown":
            return  # the commit stands, and the compaction behind it can not tell whether it happened
        failed = self.fileio.ops[self.fileio.fail_at - 1] if self.fileio.fail_at else ("", "")
        undeleted = {failed[1]} if failed[0] in ("delete", "output.abort") else set()
        assert take_inventory(open_lake(self.disk).table("t")).orphans <= undeleted


@functools.cache
def prepared(name: str) -> Prepared:
    """Made once for each statement."""
    disk = fresh_disk()
    STATEMENTS[name].create(disk)
    run = Run(STATEMENTS[name], copy_of(disk))
    ops = run.perform(None, "error").ops
    assert run.outcome is None
    run.check_clean()
    run.check(disk)
    return Prepared(disk, tuple(ops))


def fail_at(name: str, numbers: Iterable[int], mode: FaultMode) -> None:
    """Fail these operations, one run each."""
    disk, ops = prepared(name)
    for number in numbers:
        run = Run(STATEMENTS[name], copy_of(disk))
        try:
            run.perform(number, mode)
            run.check_clean()
            run.check(disk)
        except BaseException as error:
            error.add_note(f"{name}: operation {number} of {len(ops)}, {mode} in {ops[number - 1]}: {run.outcome!r}")
            raise
        wipe(run.disk)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STATEMENTS)
def test_one_failure_anywhere(name: str, mode: FaultMode) -> None:
    """Rows before or rows after, as the outcome says; nothing left over; the statement works afterwards."""
    fail_at(name, prepared(name).some_positions(mode, list(STATEMENTS).index(name)), mode)


@pytest.mark.nightly
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STATEMENTS)
def test_one_failure_anywhere_without_shortcuts(name: str, mode: FaultMode) -> None:
    """The same for every operation in every mode."""
    fail_at(name, range(1, len(prepared(name).ops) + 1), mode)
