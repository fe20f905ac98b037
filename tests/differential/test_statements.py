"""UPDATE, DELETE and MERGE change the same and say the same with and without a Spark session."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.differential.statements import random_statement, random_table

import lakebed
from lakebed.errors import LakebedError, Unsupported

_DEFAULT, _NIGHTLY, _STATEMENTS = 6, 150, 3


def _state(lake: lakebed.Lake) -> tuple[Any, ...]:
    table = lake.table("t")
    kinds = [snapshot.commit_kind for snapshot in table.snapshots()]
    rows = sorted(map(str, table.to_arrow().to_pylist()))
    return rows, _told(table), kinds


def _told(table: lakebed.Table) -> Counter[str] | None:
    if not table.snapshots():
        return Counter()
    try:
        return Counter(map(str, table.changes(since=0).to_pylist()))
    except Unsupported:
        return None  # there are no changes of parts of rows


def _outcome(lake: lakebed.Lake, statement: str) -> tuple[str, str] | None:
    try:
        lake.sql(statement)
    except LakebedError as error:
        return type(error).__name__, error.message
    return None


def _seeds() -> Iterator[Any]:
    for seed in range(_NIGHTLY):
        yield pytest.param(seed, marks=() if seed < _DEFAULT else pytest.mark.nightly)


@pytest.mark.parametrize("seed", list(_seeds()))
def test_random_statements_do_the_same(tmp_path: Path, spark: Any, seed: int) -> None:
    """Rows, changes, kinds of commits and errors are those of Spark, statement after statement."""
    draw = random.Random(seed)
    made = random_table(draw)
    made.make(lakebed.connect(tmp_path / "alone"))
    beside = lakebed.connect(tmp_path / "beside", spark)
    made.make(beside)
    for _ in range(_STATEMENTS):
        statement = random_statement(draw, made)
        alone = lakebed.connect(tmp_path / "alone")
        outcomes = _outcome(alone, statement), _outcome(beside, statement)
        assert _state(alone) == _state(beside), f"{made.text}\n{statement}\n{outcomes}"
        kind = [None if each is None else each[0] for each in outcomes]
        assert kind[0] == kind[1], f"{made.text}\n{statement}\n{outcomes}"
