"""Random tables under random histories with UPDATE, DELETE, MERGE and INSERT OVERWRITE as SQL among all the rest.

The machine is that of `tests/properties/combinations`; a difference is printed as a short program, and as a line for
`python -m tests.properties.combinations --spark --replay`.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.mutants.statements import STATEMENTS
from tests.properties.combinations.runs import run_history
from tests.properties.combinations.shrink import replay

HISTORIES, LENGTH = 8, 14
LONG_CHUNKS, LONG_HISTORIES, LONG_LENGTH = 20, 25, 30


@pytest.mark.parametrize("name", STATEMENTS)
def test_sound_code_has_no_finding(name: str, spark: Any) -> None:
    """The histories that catch mutants of statements find nothing where there is none."""
    assert replay(*STATEMENTS[name], spark) is None


def test_combinations(spark: Any) -> None:
    """Eight tables and about 110 operations: every answer of every table is what its history means."""
    _run(range(HISTORIES), LENGTH, spark)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("chunk", range(LONG_CHUNKS))
def test_combinations_for_a_night(chunk: int, spark: Any) -> None:
    """500 tables and 15,000 operations in all."""
    _run(range(1000 + chunk * LONG_HISTORIES, 1000 + (chunk + 1) * LONG_HISTORIES), LONG_LENGTH, spark)


def _run(seeds: range, length: int, spark: Any) -> None:
    for seed in seeds:
        outcome = run_history(seed, length, spark=spark)
        assert outcome.finding is None, outcome.text()
