"""The sink of streams dies by SIGKILL at each of its phases, without a JVM: every row counts once all the same.

`test_stream_kills` kills whole applications, which takes as long as Spark takes to start. What becomes of a batch is
decided by the sink, in the driver's Python: here that is all there is.
"""

from __future__ import annotations

import multiprocessing
import random
import signal
from pathlib import Path

import pytest
from tests.spark.phase_worker import work
from tests.spark.stream_worker import PHASES, SETS, create
from tests.spark.test_stream_kills import Tables, disturb

_context = multiprocessing.get_context("forkserver")
# Loaded once in the process that all others are forked off from; there is one, so this names what others need as well.
_context.set_forkserver_preload(
    ["pytest", "tests.faults.commit_worker", "tests.faults.upkeep_worker", "tests.spark.phase_worker"]
)


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=[pytest.mark.nightly, pytest.mark.timeout(3600)])])
def test_every_phase(tmp_path: Path, rounds: int) -> None:
    """Killed at every phase, early or late, with batches that come again: the tables hold each batch once."""
    create(tmp_path)
    chance = random.Random(rounds)
    sets = [Tables(tmp_path, mark) for mark in SETS]
    for phase in list(PHASES) * rounds:
        number = chance.randint(1, 8)
        process = _context.Process(target=work, args=(str(tmp_path), phase, number))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL, (phase, number)
        for each in sets:
            each.check()
            each.hear()
        disturb(tmp_path, sets, chance)
    for each in sets:
        assert each.batches("events") > 0
        each.check()
        each.check_told()
