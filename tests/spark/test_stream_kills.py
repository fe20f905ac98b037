"""Streaming applications die by SIGKILL, at random and at every phase of the sink: every row counts once all the same.

Before some restarts the last entry of Spark's log of finished batches is removed, so that a batch comes again that is
in the table; before others older snapshots expire, among them those of the query itself; before others files that
nothing refers to are removed. One death restarts all queries of the application.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.patience import PATIENCE_S
from tests.spark.stream_worker import KEYS, PHASES, QUERIES, ROWS, SETS, checkpoint_of, create
from tests.spark.streams import forget_last_batch

import lakebed
from lakebed.commit.replay import last_identifiers

ROOT = Path(__file__).parents[2]
PER_DEATH = len(QUERIES) * len(SETS)
_DEADLINE_S = PATIENCE_S
"""An application that has not died by then never will."""


def run_until_death(place: Path, phase: str, number: int, moment_s: float) -> str:
    """Runs the application until it dies at a phase or, without one, at a moment; what it said.

    Moments count from when it was ready, and those above zero from the first batch that it finished.
    """
    errors = place / "errors"
    arguments = [phase, str(number)] if phase else []
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "tests.spark.stream_worker", str(place), *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        ) as application,
    ):
        assert application.stdout is not None
        started, began = time.monotonic(), time.time()
        said = ""
        try:
            while not said.endswith("ready\n") and (line := application.stdout.readline()):
                said += line
            if phase:
                os.set_blocking(application.stdout.fileno(), False)
                while application.poll() is None and time.monotonic() - started < _DEADLINE_S:
                    time.sleep(0.02)
            else:
                while moment_s > 0 and not _has_finished_a_batch(place, began):
                    assert time.monotonic() - started < _DEADLINE_S, errors.read_text()[-3000:]
                    time.sleep(0.02)
                time.sleep(abs(moment_s))
        finally:
            if application.poll() is None:
                os.killpg(application.pid, signal.SIGKILL)
        said += application.stdout.read() or ""
        status = application.wait()
    assert status == -signal.SIGKILL, errors.read_text()[-3000:]
    return said


def _has_finished_a_batch(place: Path, since: float) -> bool:
    entries = (place / "checkpoints").glob("*/commits/[0-9]*")
    return any(entry.stat().st_mtime > since for entry in entries)


class Tables:
    """The tables of one set, seen by somebody who only reads them."""

    def __init__(self, place: Path, mark: str) -> None:
        self._place = place
        self._mark = mark
        lake = lakebed.connect(place / "warehouse")
        self.events, self.sums, self.wide = (lake.table(f"{name}_{mark}") for name in ("events", "sums", "wide"))
        options = {"consumer-id": "reader", "consumer.ignore-progress": "false"}
        self._stream = self.sums.follow(options=options)
        self._told: dict[object, object] = {}

    @property
    def all(self) -> list[lakebed.Table]:
        return [self.events, self.sums, self.wide]

    def batches(self, query: str) -> int:
        """How many batches of a query are in its table."""
        metadata = checkpoint_of(self._place, query, self._mark) / "metadata"
        if not metadata.exists():
            return 0
        table = getattr(self, QUERIES[query][0])
        snapshots = table._opened.context.stores.snapshots
        return last_identifiers(snapshots, snapshots.latest()).get(json.loads(metadata.read_text())["id"], 0)

    def finished(self, query: str) -> int:
        """How many batches Spark takes for finished."""
        commits = checkpoint_of(self._place, query, self._mark) / "commits"
        numbers = [int(entry.name) for entry in commits.iterdir() if entry.name.isdigit()] if commits.exists() else []
        return max(numbers, default=-1) + 1

    def check(self) -> None:
        """Each table holds the batches that it says it has: all of their rows, and each once."""
        for query in QUERIES:
            assert self.finished(query) <= self.batches(query)
        count = self.batches("events") * ROWS
        events = self.events.to_arrow().sort_by("n")
        assert events["n"].to_pylist() == list(range(count))
        assert events["k"].to_pylist() == [n % KEYS for n in range(count)]
        assert events["v"].to_pylist() == [n % 10 for n in range(count)]
        count = self.batches("sums") * ROWS
        numbers = {k: range(k, count, KEYS) for k in range(min(count, KEYS))}
        sums = {row["k"]: (row["v"], row["c"]) for row in self.sums.to_arrow().to_pylist()}
        assert sums == {k: (sum(n % 10 for n in own), len(own)) for k, own in numbers.items()}
        left, right = self._newest("left"), self._newest("right")
        for row in self.wide.to_arrow().to_pylist():
            assert (row["a"], row["ga"]) == left.get(row["k"], (None, None))
            assert (row["b"], row["gb"]) == right.get(row["k"], (None, None))
        assert self.wide.to_arrow().num_rows == len(left.keys() | right.keys())
        assert [finding for table in self.all for finding in table.check()] == []

    def _newest(self, query: str) -> dict[int, tuple[int, int]]:
        count = self.batches(query) * ROWS
        return {k: (own[-1] % 10, own[-1]) for k in range(min(count, KEYS)) for own in [range(k, count, KEYS)]}

    def hear(self) -> None:
        """Takes in what changed, as a reader of the stream that was away until now."""
        for changes in self._stream:
            for row in changes.to_pylist():
                kind, key = row.pop("rowkind"), row["k"]
                if kind in ("-U", "-D"):
                    assert self._told.pop(key) == row
                else:
                    assert key not in self._told
                    self._told[key] = row

    def check_told(self) -> None:
        """What was told adds up to the table."""
        self.sums.compact()  # an application that died may have left rows that nobody has told of yet
        self.hear()
        assert sorted(self._told) == sorted(self.sums.to_arrow()["k"].to_pylist())
        assert {row["k"]: row for row in self.sums.to_arrow().to_pylist()} == self._told


def disturb(place: Path, sets: list[Tables], chance: random.Random) -> None:
    """What may happen between two lives of an application."""
    for mark, query in ((mark, query) for mark in SETS for query in QUERIES):
        if chance.random() < 0.4 and any((checkpoint_of(place, query, mark) / "commits").glob("[0-9]*")):
            forget_last_batch(checkpoint_of(place, query, mark))
    tables = [table for each in sets for table in each.all]
    if chance.random() < 0.4:
        for table in tables:
            table.expire_snapshots(retain_max=1, retain_min=1)
    if chance.random() < 0.3:
        time.sleep(0.01)
        for table in tables:
            table.remove_orphan_files(older_than=time.time_ns() // 1_000_000 - 1)


def deaths(count: int, chance: random.Random, phases: Sequence[str]) -> Iterator[tuple[str, int, float]]:
    """Every phase in turn, then random moments with a phase now and then."""
    for turn in range(count):
        if turn >= len(phases) and turn % 5:
            yield "", 0, chance.uniform(-3.0, 4.0)
        else:
            yield phases[turn % len(phases)], chance.randint(1, 12), 0.0


def check_exactly_once(place: Path, restarts: int, seed: int, phases: Sequence[str] = tuple(PHASES)) -> None:
    """Kills and restarts so many queries, and looks at the tables after each death."""
    create(place)
    chance = random.Random(seed)
    sets = [Tables(place, mark) for mark in SETS]
    done = 0
    for phase, number, moment_s in deaths(-(-restarts // PER_DEATH), chance, phases):
        said = run_until_death(place, phase, number, moment_s)
        assert not phase or f"died as {phase}" in said, said
        done += PER_DEATH
        for each in sets:
            each.check()
            each.hear()
        disturb(place, sets, chance)
    assert done >= restarts
    for each in sets:
        assert each.batches("events") > 0
        each.check()
        each.check_told()


@pytest.mark.parametrize(
    ("restarts", "phases"),
    [
        pytest.param(8, ["manifests are written", "a batch is committed"], id="8"),
        pytest.param(100, list(PHASES), id="100", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.timeout(3600)
def test_every_row_counts_once(tmp_path: Path, restarts: int, phases: list[str]) -> None:
    """After all restarts: appends, sums and partial updates are exact, and the changelog replays to the table.

    The default run dies before a commit and after one; `test_stream_phases` dies at every phase.
    """
    check_exactly_once(tmp_path, restarts, 1, phases)


@pytest.mark.nightly
@pytest.mark.timeout(14400)
def test_every_row_counts_once_for_long(tmp_path: Path) -> None:
    """Five hundred restarts."""
    check_exactly_once(tmp_path, 500, int(time.time()))
