"""Random changes of a random table, with schema changes, crashes and replays: the lake equals the source."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cdc.batches import ChunkMaker, LocalBatch

import lakebed
from lakebed.cdc.envelope import COPY, Chunk, Description, SourceColumn
from lakebed.cdc.pipeline import Pipeline
from lakebed.cdc.routing import Routing
from lakebed.cdc.rules import SyncRules
from lakebed.cdc.schema.sync import FOLLOW, Policies

_TYPES = ("INT", "BIGINT", "STRING", "DECIMAL(10, 2)", "DOUBLE")
_WIDER = {"INT": "BIGINT", "DECIMAL(10, 2)": "DECIMAL(14, 4)"}


class Crash(Exception):
    """Stands for the death of the process."""


@dataclass
class Source:
    """A table of a database, and the chunks that its changes make."""

    random: random.Random
    sends_old_rows: bool
    makes: ChunkMaker = field(default_factory=ChunkMaker)
    columns: list[SourceColumn] = field(default_factory=list)
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    chunks: list[Chunk] = field(default_factory=list)
    waiting: list[tuple[Any, ...]] = field(default_factory=list)
    marks: dict[int, list[str]] = field(default_factory=dict)
    next_id: int = 10
    phase: str = "stream"
    told: str = ""

    def __post_init__(self) -> None:
        self.columns = [
            SourceColumn("id", "INT NOT NULL", id=1),  # type: ignore[arg-type]
            SourceColumn("a", "INT", id=2),  # type: ignore[arg-type]
            SourceColumn("b", "STRING NOT NULL", id=3),  # type: ignore[arg-type]
        ]

    @property
    def description(self) -> Description:
        return Description(tuple(self.columns), ("id",))

    def as_read_now(self, chunk: Chunk) -> Chunk:
        """The chunk as a source describes it that asks today's catalogue: ids of columns that are gone are unknown."""
        told = Description.from_text(chunk.columns)
        names = {column.name for column in self.columns}
        columns = tuple(column if column.name in names else replace(column, id=None) for column in told.columns)
        return replace(chunk, columns=replace(told, columns=columns).to_text())

    def value(self, column: SourceColumn) -> Any:
        text = str(column.type)
        if column.type.nullable and self.random.random() < 0.2:
            return None
        if text.startswith("DECIMAL"):
            from decimal import Decimal

            return Decimal(self.random.randrange(1000)).scaleb(-2)
        if text.startswith("STRING"):
            return f"s{self.random.randrange(100)}"
        return float(self.random.randrange(9)) if text == "DOUBLE" else self.random.randrange(100)

    def send(self, kind: str, row: dict[str, Any], unchanged: list[str] | None = None) -> None:
        if unchanged:
            self.marks[len(self.waiting)] = unchanged
        values = [None if column.name in (unchanged or ()) else row.get(column.name) for column in self.columns]
        self.waiting.append((kind, *values))

    def flush(self) -> None:
        if self.waiting:
            chunk = self.makes.rows(self.description, *self.waiting, phase=self.phase, unchanged=self.marks)
            self.chunks.append(chunk)
        self.waiting, self.marks = [], {}

    def settle(self) -> None:
        """What changed last may have been columns alone: a source tells that too, sooner or later."""
        if self.description.to_text() != self.told:
            self.chunks.append(self.makes.schema(self.description))
            self.told = self.description.to_text()

    def old(self, row: dict[str, Any]) -> dict[str, Any]:
        return row if self.sends_old_rows else {"id": row["id"]}

    def copy(self, count: int) -> None:
        self.phase = COPY
        for key in range(count):
            self.insert(key)
        self.flush()
        self.phase = "stream"

    def insert(self, key: int) -> None:
        row = {column.name: self.value(column) for column in self.columns} | {"id": key}
        self.rows[key] = row
        self.send("+I", row)

    def step(self) -> None:
        """One random change."""
        free = [key for key in range(12) if key not in self.rows]
        taken = list(self.rows)
        match self.random.choices(
            ["insert", "update", "delete", "key", "truncate", "add", "drop", "rename", "widen", "null", "cut"],
            [30, 40, 15, 8, 2, 3, 2, 2, 2, 1, 5],
        )[0]:
            case "insert" if free:
                self.insert(self.random.choice(free))
            case "update" if taken:
                self.update(self.random.choice(taken), None)
            case "key" if taken and free:
                self.update(self.random.choice(taken), self.random.choice(free))
            case "delete" if taken:
                self.send("-D", self.old(self.rows.pop(self.random.choice(taken))))
            case "truncate":
                self.flush()
                self.chunks.append(self.makes.truncate(self.description))
                self.rows.clear()
            case "add" | "drop" | "rename" | "widen" | "null" as kind:
                self.flush()
                getattr(self, kind)()
                if self.random.random() < 0.5:
                    self.chunks.append(self.makes.schema(self.description))
            case "cut":
                self.flush()

    def update(self, key: int, new_key: int | None) -> None:
        old = self.rows.pop(key)
        row = {column.name: self.value(column) for column in self.columns} | {"id": key if new_key is None else new_key}
        texts = [column.name for column in self.columns if str(column.type).startswith("STRING")]
        unchanged = [name for name in texts if self.random.random() < 0.4] if not self.sends_old_rows else []
        row |= {name: old[name] for name in unchanged}
        self.rows[row["id"]] = row
        if self.sends_old_rows:
            self.send("-U", old)
            self.send("+U", row)
        elif new_key is not None:
            self.send("-D", self.old(old))
            self.send("+I", row, unchanged)
        else:
            self.send("+U", row, unchanged)

    def add(self) -> None:
        text = self.random.choice(_TYPES)
        default = {"STRING": "dd", "DOUBLE": "1.5"}.get(text, "7") if self.random.random() < 0.6 else None
        self.next_id += 1
        column = SourceColumn(f"c{self.next_id}", text, None, default, self.next_id)  # type: ignore[arg-type]
        self.columns.append(column)
        for row in self.rows.values():
            row[column.name] = self._typed(default, text)

    @staticmethod
    def _typed(default: str | None, text: str) -> Any:
        from decimal import Decimal

        if default is None or text == "STRING":
            return default
        return float(default) if text == "DOUBLE" else Decimal(default) if text[0] == "D" else int(default)

    def drop(self) -> None:
        if len(self.columns) > 3:
            gone = self.columns.pop(self.random.randrange(3, len(self.columns)))
            for row in self.rows.values():
                del row[gone.name]

    def rename(self) -> None:
        if len(self.columns) > 3:
            place = self.random.randrange(3, len(self.columns))
            old = self.columns[place]
            self.next_id += 1
            name = f"r{self.next_id}"
            self.columns[place] = SourceColumn(name, old.type, None, old.default, old.id)
            for row in self.rows.values():
                row[name] = row.pop(old.name)

    def widen(self) -> None:
        for place, old in enumerate(self.columns[1:], 1):
            if str(old.type) in _WIDER:
                self.columns[place] = SourceColumn(old.name, _WIDER[str(old.type)], None, old.default, old.id)  # type: ignore[arg-type]
                return

    def null(self) -> None:
        old = self.columns[2]
        self.columns[2] = SourceColumn(old.name, "STRING", None, None, old.id)  # type: ignore[arg-type]


def _lake_rows(table: Any, source: Source) -> dict[int, dict[str, Any]]:
    names = [column.name for column in source.columns]
    return {row["id"]: {name: row[name] for name in names} for row in table.to_arrow().to_pylist()}


def _replayed(table: Any, names: list[str]) -> dict[int, dict[str, Any]]:
    state: dict[int, dict[str, Any]] = {}
    for row in table.changes().to_pylist():
        if row["rowkind"] in ("-U", "-D"):
            assert row["id"] in state, "a key is taken away that was not there"
            del state[row["id"]]
        else:
            state[row["id"]] = {name: row[name] for name in names}
    return state


def _run(tmp_path: Path, seed: int, *, steps: int, here_bytes: int) -> None:
    rng = random.Random(seed)
    source = Source(rng, sends_old_rows=rng.random() < 0.5)
    conf = {"bucket": str(rng.choice([-1, 1, 3])), "snapshot.num-retained.min": "1000"}
    conf["changelog-producer"] = rng.choice(["none", "input", "lookup"])
    if rng.random() < 0.5:
        conf["cdc.update-as"] = "update"
    from lakebed.cdc.routing import PatternValue

    rules = SyncRules(Routing("lk"), Policies(FOLLOW, FOLLOW), table_conf=(PatternValue(".*", conf),))
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

    forgets = rng.random() < 0.5
    running = pipeline()
    source.copy(rng.randrange(6))
    for identifier in range(1, steps + 1):
        for _ in range(rng.randrange(12)):
            source.step()
        source.flush()
        source.settle()
        chunks, source.chunks = source.chunks, []
        if forgets:
            chunks = [source.as_read_now(chunk) for chunk in chunks]
        batch = LocalBatch(chunks, inline=rng.random() < 0.5)
        while rng.random() < 0.4:
            crash_at[:], steps_left[0] = [rng.randrange(1, 7)], 0
            try:
                running.apply(batch, "user", identifier, None)
            except Crash:
                running = pipeline()
        crash_at.clear()
        running.apply(batch, "user", identifier, f"position {identifier}")
        running.close()
        if not lake.databases() or "lk" not in lake.databases() or not lake.has_table("lk.orders"):
            continue
        table = lake.table("lk.orders")
        assert _lake_rows(table, source) == source.rows, (seed, identifier)
        assert not table.check()
    if conf["changelog-producer"] != "none" and lake.has_table("lk.orders"):
        table = lake.table("lk.orders")
        if conf["changelog-producer"] == "lookup" or source.sends_old_rows or conf["changelog-producer"] == "input":
            _replayed(table, ["id"])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("here_bytes", [1 << 30, -1], ids=["here", "in-tasks"])
def test_the_lake_equals_the_source(tmp_path: Path, seed: int, here_bytes: int) -> None:
    """After every batch, crashed and repeated at random steps, the table holds what the source holds."""
    _run(tmp_path, seed, steps=8, here_bytes=here_bytes)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 300))
def test_the_lake_equals_the_source_for_long(tmp_path: Path, seed: int) -> None:
    """The same with many more seeds."""
    _run(tmp_path, seed, steps=15, here_bytes=-1 if seed % 2 else 1 << 30)
