"""Random tables of all features at once under random histories of all statements, beside their meaning.

What other properties prove feature by feature is proven here for their combinations. A difference is printed as a short
program, and as a line for `python -m tests.properties.combinations --replay`. The same seeds are run each time; other
ones, and many more of them: `python -m tests.properties.combinations --seed 7`.
"""

from __future__ import annotations

import pytest
from tests.properties.combinations.runs import run_history

CHUNKS, HISTORIES, LENGTH = 6, 11, 18
LONG_CHUNKS, LONG_HISTORIES, LONG_LENGTH = 40, 50, 50
"""2,000 configurations, 100,000 operations."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_combinations(chunk: int) -> None:
    """66 tables and about 1,200 operations: every answer of every table is what its history means."""
    _run(range(chunk * HISTORIES, (chunk + 1) * HISTORIES), LENGTH)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("chunk", range(LONG_CHUNKS))
def test_combinations_for_a_night(chunk: int) -> None:
    """2,000 tables and 100,000 operations in all."""
    _run(range(1000 + chunk * LONG_HISTORIES, 1000 + (chunk + 1) * LONG_HISTORIES), LONG_LENGTH)


def _run(seeds: range, length: int) -> None:
    for seed in seeds:
        outcome = run_history(seed, length)
        assert outcome.finding is None, outcome.text()
