"""Columns of the stream and their numbers in the catalogue."""

from __future__ import annotations

import random

import pytest

from lakebed.cdc.sources.postgres.server.columns import Form, column_numbers


@pytest.mark.parametrize(
    ("columns", "today", "gone", "former", "expected"),
    [
        ([("id", "INT"), ("a", "INT"), ("b", "INT")], {1: "id", 2: "b", 3: "a"}, [], {}, [1, 2, 3]),
        ([("id", "INT"), ("a", "INT")], {1: "id", 2: "x", 3: "a"}, [], {}, [1, 2]),
        ([("id", "INT"), ("v", "INT"), ("w", "INT")], {1: "id", 3: "w", 4: "v"}, [2], {}, [1, 2, 3]),
        ([("id", "INT"), ("w", "INT"), ("v", "INT")], {1: "id", 3: "w", 4: "v"}, [2], {}, [1, 3, 4]),
        ([("id", "INT"), ("old", "INT")], {1: "id", 3: "new"}, [2], {2: [("other", "TEXT")]}, [1, 3]),
        ([("id", "INT"), ("old", "INT")], {1: "id", 3: "new"}, [2], {2: [("old", "INT")]}, [1, 2]),
        ([("id", "INT")], {1: "id", 2: "a", 3: "b"}, [], {}, [1]),
        ([("id", "INT"), ("a", "INT")], {1: "id"}, [], {}, None),
    ],
    ids=["exchanged", "older", "dropped and added before", "and after", "renamed", "dropped", "first", "impossible"],
)
def test_numbers(
    columns: list[Form],
    today: dict[int, str],
    gone: list[int],
    former: dict[int, list[Form]],
    expected: list[int] | None,
) -> None:
    """Renamed columns are recognised by their place; dropped ones by what is known of them."""
    assert column_numbers(columns, {n: (name, "INT") for n, name in today.items()}, gone, former) == expected


@pytest.mark.parametrize("seed", range(200))
def test_a_table_in_which_nothing_was_dropped_is_always_understood(seed: int) -> None:
    """Whatever was renamed and given other types since, an older shape is the first of today's columns."""
    rng = random.Random(seed)
    today = {n + 1: (rng.choice("abcdef") + str(n), rng.choice(["INT", "TEXT"])) for n in range(rng.randint(1, 6))}
    count = rng.randint(1, len(today))
    then = [(rng.choice("abcdef") + str(rng.randrange(6)), rng.choice(["INT", "TEXT"])) for _ in range(count)]
    assert column_numbers(then, today, [], {}) == list(today)[:count]
