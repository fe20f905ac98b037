"""Streams into tables whose keys move between partitions: whatever is restarted when, every key is there once."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from tests.sessions import IS_CONNECT

import lakebed
from lakebed.errors import CommitConflict
from lakebed.spark.stream import micro_batch as stream_write

Rows = list[tuple[int, int, int | None]]
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
}


class Model:
    """What the table must show: each key's partition and value."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.rows: dict[int, tuple[int, int | None]] = {}

    def take(self, rows: Rows) -> None:
        for part, key, value in rows:
            if key not in self.rows or self.engine == "deduplicate":
                self.rows[key] = (part, value)
                continue
            home, old = self.rows[key]
            if self.engine == "partial-update":
                self.rows[key] = (home, old if value is None else value)
            elif self.engine == "aggregation":
                self.rows[key] = (home, old if value is None else value + (old or 0))


def _drawn(chance: random.Random, count: int = 15) -> Rows:
    """Rows of keys that are each there once: within a batch Spark keeps no order."""
    keys = chance.sample(range(40), count)
    return [(chance.randrange(4), key, chance.choice([None, *range(1, 9)])) for key in keys]


def _compact(table: lakebed.Table) -> None:
    """A full compaction; that of the query's last batch may still be under way, and then one of the two gives way."""
    for _ in range(50):
        try:
            table.compact(full=True)
            return
        except CommitConflict:
            time.sleep(0.2)
    table.compact(full=True)


# Without Spark, tests/properties/test_cross_partition_model moves keys of all engines.
@pytest.mark.parametrize(
    "engine",
    [
        "deduplicate",
        pytest.param("partial-update", marks=pytest.mark.nightly),
        "aggregation",
        pytest.param("first-row", marks=pytest.mark.nightly),
    ],
)
def test_a_stream_that_is_restarted_midway(engine: str, spark: Any, lake: lakebed.Lake, tmp_path: Path) -> None:
    """Batches, restarts, a batch that comes twice, other writers in between: the table agrees with the model."""
    _run_a_stream(engine, spark, lake, tmp_path, [15])


@pytest.mark.parametrize(
    "engine",
    ["deduplicate", *(pytest.param(name, marks=pytest.mark.nightly) for name in ENGINES if name != "deduplicate")],
)
def test_large_batches_among_small_ones(
    engine: str, spark: Any, lake: lakebed.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same where some batches are shared by key among tasks, which keep the keys on their disks."""
    monkeypatch.setattr(stream_write, "_GATHERED_BYTES", 200)
    ways: list[tuple[int, bool]] = []
    told = stream_write.BatchWriter._told

    def noted(self: Any, batch: Any, placed: Any, *more: Any) -> Any:
        ways.append((placed.parts, placed.is_taught))
        return told(self, batch, placed, *more)

    monkeypatch.setattr(stream_write.BatchWriter, "_told", noted)
    _run_a_stream(engine, spark, lake, tmp_path, [30, 20, 3, 4, 25, 30])
    if IS_CONNECT:
        return  # batches are written by another process there, which nothing was set in
    shared = [is_taught for parts, is_taught in ways if parts > 1]
    assert any(parts == 0 for parts, _ in ways)
    assert {True, False} == set(shared)


def _run_a_stream(engine: str, spark: Any, lake: lakebed.Lake, tmp_path: Path, sizes: list[int]) -> None:
    table = lake.create_table(
        "t",
        {"p": "INT", "k": "INT NOT NULL", "v": "INT"},
        primary_key=["k"],
        partition_by=["p"],
        options={"bucket": "-1", "dynamic-bucket.target-row-num": "5", **ENGINES[engine]},
    )
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    source.mkdir()
    chance, model, batches = random.Random(engine), Model(engine), 0

    def deliver(count: int) -> None:
        nonlocal batches
        for _ in range(count):
            rows = _drawn(chance, sizes[batches % len(sizes)])
            text = "\n".join(json.dumps({"p": part, "k": key, "v": value}) for part, key, value in rows)
            file = source / f"b{batches:03}.json"
            file.write_text(text)
            os.utime(file, (1_700_000_000 + batches,) * 2)  # Spark takes files in the order of their times
            model.take(rows)
            batches += 1

    def drain() -> None:
        stream = spark.readStream.schema("p int, k int, v int").option("maxFilesPerTrigger", 1).json(str(source))
        table.write_stream(stream, checkpoint=checkpoint, trigger={"availableNow": True}).awaitTermination()

    def check() -> None:
        if engine == "first-row":
            _compact(table)
        shown = table.to_arrow().sort_by("k").to_pylist()
        wanted = [{"p": model.rows[key][0], "k": key, "v": model.rows[key][1]} for key in sorted(model.rows)]
        assert shown == wanted

    deliver(max(3, len(sizes)))
    drain()
    check()
    # Spark forgets that it delivered the last batch, and delivers it again: the query ended between the two logs.
    for entry in (checkpoint / "commits").iterdir():
        if entry.name.strip(".").startswith(str(batches - 1)):
            entry.unlink()
    deliver(2)
    drain()
    check()
    # Another process moves keys while the query is down.
    rows = _drawn(chance)
    frame = spark.createDataFrame(rows, "p int, k int, v int")
    lakebed.connect(tmp_path / "warehouse", spark=spark).table("t").write_spark(frame)
    model.take(rows)
    deliver(2)
    drain()
    _compact(table)
    check()
