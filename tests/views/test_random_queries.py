"""Materialized tables of queries that nobody thought of, under random histories."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.thinning import by_day
from tests.views.grammar import Grammar
from tests.views.histories import PRODUCERS, History
from tests.views.judging import difference, folded

from lakebed.errors import LakebedError


def lived(path: Path, seed: int, queries: int, rounds: int, engine: str = "auto") -> Counter[str]:
    """Lets a history of a seed happen to so many queries; counts which ways refreshes went."""
    producer = list(PRODUCERS)[seed % len(PRODUCERS)]
    history = History(str(path), producer, seed)
    lake, ways = history.lake, Counter[str]()
    history.fill()
    grammar, made = Grammar(seed), dict[str, str]()
    while len(made) < queries:
        name, query = f"v{len(made)}", grammar.query()
        try:
            lake.query(query, engine="duckdb").arrow()
        except LakebedError:
            ways["refused"] += 1
            continue
        lake.materialize(name, query, policy="incremental")
        made[name] = query
    for _ in range(rounds):
        history.happen()
        for name, query in made.items():
            done = lake.refresh(name)
            ways[done.way] += 1
            wrong = difference(lake, name, query, engine)
            assert wrong is None, f"seed {seed}, {done}\n{query}\n{wrong}"
            assert "failed" not in done.reason, f"seed {seed}, {done}\n{query}"
            assert "does not fit" not in done.reason, f"seed {seed}, {done}\n{query}"
    for name, query in made.items():
        wrong = folded(lake, name)
        assert wrong is None, f"seed {seed}\n{query}\n{wrong}"
    return ways


@pytest.mark.parametrize("seed", by_day(range(3), 0))
def test_random_queries(tmp_path: Path, seed: int) -> None:
    """Whatever the query, a refreshed table is what a computation from scratch gives, and most of it is followed."""
    ways = lived(tmp_path, seed, queries=6, rounds=2)
    assert ways["incremental"] > ways["full"]


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_random_queries_for_long(tmp_path: Path, seed: int) -> None:
    """The same for two thousand queries."""
    lived(tmp_path, seed, queries=10, rounds=5)
