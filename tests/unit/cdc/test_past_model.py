"""Random changes of a random table, with its past kept in all three ways: it is what a fold over the changes gives."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.cdc.batches import LocalBatch
from tests.unit.cdc.test_pipeline_model import Crash, Source

import lakebed
from lakebed.cdc.envelope import CHANGED_AT, COPY, LOG_POSITION, NUMBER, TRANSACTION, TRUNCATE, cut_payload, moments
from lakebed.cdc.pipeline import Pipeline
from lakebed.cdc.routing import PatternValue, Routing
from lakebed.cdc.rows.keeping import MARK, Keeping
from lakebed.cdc.rules import SyncRules
from lakebed.cdc.schema.sync import FOLLOW, Policies

Facts = tuple[int, str | None, str | None, int | None]
"""Time in microseconds, transaction, position, number of the change."""


@dataclass
class Version:
    """A version of a row, as a plain fold makes it."""

    row: dict[str, Any]
    number: int
    begin: int
    end: int | None = None


@dataclass
class PastSource(Source):
    """A table whose changes come in transactions, and everything that it ever was."""

    facts: list[Facts] = field(default_factory=list)
    clock: int = 1_700_000_000_000_000
    transaction: int = 0
    number: int = 0
    events: dict[int, list[tuple[dict[str, Any] | None, Facts]]] = field(default_factory=dict)
    """By key: rows, and None for deletes."""
    deleted: dict[int, tuple[dict[str, Any], int]] = field(default_factory=dict)
    log: list[tuple[str, dict[str, Any], Facts]] = field(default_factory=list)
    """Changes: what was done, and the row."""

    def now(self) -> Facts:
        if self.phase == COPY:
            return self.clock, None, None, None
        return self.clock, str(self.transaction), f"0/{self.transaction:X}", self.number

    def begin(self) -> None:
        """A new transaction; clocks stand still, go on, and go back now and then."""
        self.transaction += 1
        self.number = 0
        self.clock += self.random.choice([0, 0, 1, 1_000, 5_000_000, -3_000_000])

    def step(self) -> None:
        if self.random.random() < 0.6:
            self.begin()
        before = dict(self.rows)
        count = len(self.chunks)
        self.number += 1
        super().step()
        if any(chunk.kind == TRUNCATE for chunk in self.chunks[count:]):
            self.truncated(before)
            return
        for key, row in before.items():
            if self.rows.get(key) is not row and key not in self.rows:
                self.gone(key, row)
        for key, row in self.rows.items():
            if before.get(key) is not row:
                self.came(key, row, before.get(key))

    def came(self, key: int, row: dict[str, Any], old: dict[str, Any] | None) -> None:
        facts = self.now()
        self.events.setdefault(key, []).append((row, facts))
        self.deleted.pop(key, None)
        if self.phase != COPY:
            if old is not None:
                self.log.append(("-U", dict(old), facts))
            self.log.append(("+I" if old is None else "+U", dict(row), facts))

    def gone(self, key: int, row: dict[str, Any]) -> None:
        facts = self.now()
        self.events.setdefault(key, []).append((None, facts))
        self.deleted[key] = (dict(row), facts[0])
        self.log.append(("-D", dict(row), facts))

    def truncated(self, rows: dict[int, dict[str, Any]]) -> None:
        for key, row in rows.items():
            self.gone(key, row)
        at, name, position, number = self.now()
        told = {
            CHANGED_AT: moments(np.array([at])),
            TRANSACTION: pa.array([name]),
            LOG_POSITION: pa.array([position]),
            NUMBER: pa.array([number], pa.int64()),
        }
        self.begin()
        place = max(index for index, chunk in enumerate(self.chunks) if chunk.kind == TRUNCATE)
        time = pa.array([at // 1000], pa.int64()).cast(pa.timestamp("ms", tz="UTC"))
        self.chunks[place] = replace(self.chunks[place], payload=cut_payload(time, told))

    def insert(self, key: int) -> None:
        super().insert(key)
        if self.phase == COPY:
            self.came(key, self.rows[key], None)

    def send(self, kind: str, row: dict[str, Any], unchanged: list[str] | None = None) -> None:
        super().send(kind, row, unchanged)
        self.facts.append(self.now())

    def flush(self) -> None:
        if self.waiting:
            times, transactions, positions, numbers = zip(*self.facts, strict=True)
            about = {
                CHANGED_AT: moments(np.array(times)),
                TRANSACTION: pa.array(transactions, pa.string()),
                LOG_POSITION: pa.array(positions, pa.string()),
                NUMBER: pa.array(numbers, pa.int64()),
            }
            self.chunks.append(
                self.makes.rows(
                    self.description, *self.waiting, phase=self.phase, unchanged=self.marks, about=about, op_ts_ms=5
                )
            )
        self.waiting, self.marks, self.facts = [], {}, []

    def rename(self) -> None:
        before = [column.name for column in self.columns]
        super().rename()
        for old, column in zip(before, self.columns, strict=True):
            if old != column.name:
                for row in self.former():
                    if old in row:
                        row[column.name] = row.pop(old)

    def former(self) -> list[dict[str, Any]]:
        """Every row that is not in the table any more."""
        present = {id(row) for row in self.rows.values()}
        rows = [row for events in self.events.values() for row, _ in events if row is not None]
        rows += [row for row, _ in self.deleted.values()]
        rows += [row for _, row, _ in self.log]
        return list({id(row): row for row in rows if id(row) not in present}.values())

    def versions(self, key: int) -> list[Version]:
        """The fold: of each transaction the last change of the key, at times that do not go back."""
        events = self.events[key]
        counted = [
            event
            for event, later in zip(events, [*events[1:], (None, (0, "", None, None))], strict=True)
            if event[1][1] is None or event[1][1] != later[1][1]
        ]
        found: list[Version] = []
        moment = 0
        is_open = False
        for row, facts in counted:
            if row is None and not is_open:
                continue
            moment = max(moment, facts[0])
            if is_open:
                found[-1].end = moment
            if row is not None:
                found.append(Version(row, len(found) + 1, moment))
            is_open = row is not None
        return found


def _micros(column: str, row: dict[str, Any]) -> int | None:
    value = row[column]
    return None if value is None else round(value.timestamp() * 1_000_000)


def _shown(row: dict[str, Any], names: list[str]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in names)


def _differences(lake: Any, source: PastSource, *, marks: bool) -> None:
    names = [column.name for column in source.columns]
    history = lake.table("lk.orders_history").to_arrow().to_pylist()
    mine = Counter(
        (
            _shown(row, names),
            row["row_version"],
            _micros("valid_from", row),
            _micros("valid_to", row),
            row["is_current"],
        )
        for row in history
    )
    wanted = Counter(
        (_shown(each.row, names), each.number, each.begin, each.end, each.end is None)
        for key in source.events
        for each in source.versions(key)
    )
    assert mine == wanted, ("history", mine - wanted, wanted - mine)
    changes = lake.table("lk.orders_changes").to_arrow().to_pylist()
    told = Counter(
        (
            row["op"],
            _shown(row, names),
            _micros("changed_at", row),
            row["transaction_id"],
            row["position"],
            row["change_number"],
        )
        for row in changes
    )
    expected = Counter((op, _shown(row, names), *facts) for op, row, facts in source.log)
    assert told == expected, ("changes", told - expected, expected - told)
    state = lake.table("lk.orders").to_arrow().to_pylist()
    if marks:
        live = {row["id"]: _shown(row, names) for row in state if row["deleted_at"] is None}
        gone = {row["id"]: (_shown(row, names), _micros("deleted_at", row)) for row in state if row["deleted_at"]}
        assert gone == {key: (_shown(row, names), at) for key, (row, at) in source.deleted.items()}, "marks"
    else:
        live = {row["id"]: _shown(row, names) for row in state}
    assert live == {key: _shown(row, names) for key, row in source.rows.items()}, "state"


def _run(tmp_path: Path, seed: int, *, steps: int, here_bytes: int) -> None:
    rng = random.Random(seed)
    source = PastSource(rng, sends_old_rows=rng.random() < 0.5)
    marks = rng.random() < 0.5
    conf = {"snapshot.num-retained.min": "1000", "changelog-producer": rng.choice(["none", "lookup"])}
    if rng.random() < 0.6:
        conf["bucket"] = str(rng.choice([1, 3]))
    if rng.random() < 0.5:
        conf["cdc.update-as"] = "update"
    keeping = Keeping(MARK if marks else "apply", audit=".*", audit_by_day=rng.random() < 0.5, history=".*")
    conf_of = (PatternValue(".*", conf),)
    rules = SyncRules(Routing("lk"), Policies(FOLLOW, FOLLOW), table_conf=conf_of, keeping=keeping)
    lake = lakebed.connect(tmp_path / f"warehouse-{seed}")
    crash_at: list[int] = []
    steps_left = [0]

    def on_step(_: str) -> None:
        if crash_at:
            steps_left[0] += 1
            if steps_left[0] >= crash_at[0]:
                raise Crash

    def pipeline() -> Pipeline:
        return Pipeline(lake, rules, "unused", source="test", here_bytes=here_bytes, on_step=on_step)

    running = pipeline()
    source.copy(rng.randrange(1, 6))
    source.begin()
    for identifier in range(1, steps + 1):
        source.begin()  # batches end where transactions do
        for _ in range(rng.randrange(12)):
            source.step()
        source.flush()
        source.settle()
        chunks, source.chunks = source.chunks, []
        batch = LocalBatch(chunks, inline=rng.random() < 0.5)
        while rng.random() < 0.4:
            crash_at[:], steps_left[0] = [rng.randrange(1, 18)], 0
            try:
                running.apply(batch, "user", identifier, None)
            except Crash:
                running = pipeline()
        crash_at.clear()
        running.apply(batch, "user", identifier, f"position {identifier}")
        running.close()
        _differences(lake, source, marks=marks)
        for name in ("orders", "orders_history", "orders_changes"):
            assert not lake.table(f"lk.{name}").check()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("here_bytes", [1 << 30, -1], ids=["here", "in-tasks"])
def test_the_past_is_the_fold_of_the_changes(tmp_path: Path, seed: int, here_bytes: int) -> None:
    """After every batch, crashed and repeated at random steps, versions, changes and marks are those of the model."""
    _run(tmp_path, seed, steps=8, here_bytes=here_bytes)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 300))
def test_the_past_is_the_fold_of_the_changes_for_long(tmp_path: Path, seed: int) -> None:
    """The same with many more seeds."""
    _run(tmp_path, seed, steps=15, here_bytes=-1 if seed % 2 else 1 << 30)
