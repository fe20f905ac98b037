"""The machine's processes: whatever becomes of one of them, the run goes on and says so."""

from __future__ import annotations

import os
import time

from tests.properties.combinations.configuration import Configuration
from tests.properties.combinations.findings import Finding
from tests.properties.combinations.runs import Outcome
from tests.properties.combinations.workers import outcomes


def _history(seed: int, *given: object) -> Outcome:
    """Some histories die, some never come back, one finds something."""
    if seed == 1:
        os._exit(7)
    if seed == 2:
        time.sleep(600)
    finding = Finding("rows", "1, expected 2") if seed == 3 else None
    return Outcome(seed, Configuration({"k": "INT"}), finding=finding)


def _work(*seeds: int) -> list[tuple[int, int, bool, bool, bool]]:
    return [(seed, 5, False, False, False) for seed in seeds]


def test_every_history_has_an_outcome() -> None:
    """A process that dies and one that hangs are findings of their histories; findings of others arrive whole."""
    found = {o.seed: o.finding for o in outcomes(_work(0, 1, 2, 3, 4), 2, 600, run=_history, patience=5)}
    said = {seed: None if finding is None else finding.oracle for seed, finding in found.items()}
    assert said == {0: None, 1: "the process dies", 2: "the history hangs", 3: "rows", 4: None}
    assert found[3] is not None
    assert found[3].detail == "1, expected 2"
    assert "exit code 7" in str(found[1])


def test_the_time_that_was_given_is_kept() -> None:
    """A run ends when its time is over, whatever its processes do; those under way have no outcome."""
    began = time.monotonic()
    assert [outcome.seed for outcome in outcomes(_work(2, 2, 0), 2, 3, run=_history)] == []
    assert time.monotonic() - began < 60
