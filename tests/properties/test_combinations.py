"""Random tables of all features at once under random histories of all statements, beside their meaning.

What other properties prove feature by feature is proven here for their combinations. A difference is printed as a short
program, and as a line for `python -m tests.properties.combinations --replay`. The same seeds are run each time; other
ones, and many more of them: `python -m tests.properties.combinations --seed 7`.
"""

from __future__ import annotations

import pytest
from tests.properties.combinations.configuration import Configuration
from tests.properties.combinations.machine import Operation
from tests.properties.combinations.runs import run_history
from tests.properties.combinations.shrink import replay

CHUNKS, HISTORIES, LENGTH = 3, 11, 18
LONG_CHUNKS, LONG_HISTORIES, LONG_LENGTH = 40, 50, 50
"""2,000 configurations, 100,000 operations."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_combinations(chunk: int) -> None:
    """33 tables and about 600 operations: every answer of every table is what its history means."""
    _run(range(chunk * HISTORIES, (chunk + 1) * HISTORIES), LENGTH)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("chunk", range(LONG_CHUNKS))
def test_combinations_for_a_night(chunk: int) -> None:
    """2,000 tables and 100,000 operations in all."""
    _run(range(1000 + chunk * LONG_HISTORIES, 1000 + (chunk + 1) * LONG_HISTORIES), LONG_LENGTH)


def test_a_row_that_is_left_out_makes_no_compaction_due() -> None:
    """A first row that came back uncompacted stays hidden: a later row of its key elsewhere is not written at all."""
    first, later = {"k": 1, "p": 1}, {"k": 1, "p": 2}
    configuration = Configuration.from_members(
        {
            "columns": {"k": "INT NOT NULL", "p": "INT NOT NULL"},
            "primary_key": ["k"],
            "partition_by": ["p"],
            "options": {"merge-engine": "first-row", "bucket": "-1", "changelog-producer": "lookup"},
        }
    )
    operations = [
        Operation("write", {"rows": [first]}),
        Operation("rollback_to", {"back": 1}),
        Operation("write", {"rows": [later]}),
        Operation("read", {"column": "k", "sign": "==", "value": 1}),
    ]
    assert replay(configuration, operations) is None


def test_a_branch_of_files_in_other_buckets_is_not_written_to() -> None:
    """A tag of a state that came back from before a rescale: its branch refuses rows, as the table did."""
    configuration = Configuration.from_members(
        {
            "columns": {"k": "INT NOT NULL", "v": "INT"},
            "primary_key": ["k"],
            "partition_by": [],
            "options": {"bucket": "2", "write-only": "true"},
        }
    )
    operations = [
        Operation("write", {"rows": [{"k": 1, "v": 1}]}),
        Operation("rescale", {"count": 1}),
        Operation("write", {"rows": [{"k": 2, "v": 2}]}),
        Operation("rollback_to_as_latest", {"back": 2}),
        Operation("tag", {}),
        Operation("truncate", {}),
        Operation("branch_off", {}),
        Operation("branch_write", {"rows": [{"k": 3, "v": 3}]}),
    ]
    assert replay(configuration, operations) is None


def _run(seeds: range, length: int) -> None:
    for seed in seeds:
        outcome = run_history(seed, length)
        assert outcome.finding is None, outcome.text()
