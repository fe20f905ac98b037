"""Streaming INSERTs under random histories: after every step the table is what a plain model says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.thinning import by_day
from tests.views.grammar import Grammar
from tests.views.histories import PRODUCERS, History
from tests.views.inserts.targets import as_text, counting_table, insert, other_counts, other_rows, table_like
from tests.views.queries import FOLLOWED

from lakebed.errors import LakebedError, Unsupported
from lakebed.views.insert import StreamingInsert

KEYED: dict[str, tuple[str, list[str]]] = {
    "all rows": ("SELECT * FROM orders", ["id"]),
    "filter": ("SELECT id, amount + 1 AS more FROM orders WHERE amount > 2", ["id"]),
    "inner join": ("SELECT o.id, c.name, o.price FROM orders o JOIN customers c ON o.cust = c.cid", ["id"]),
    "left join": ("SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.cust = c.cid", ["id"]),
    "anti join": ("SELECT * FROM customers c LEFT ANTI JOIN orders o ON o.cust = c.cid", ["cid"]),
    "key of two": ("SELECT b, a, v FROM stock WHERE v > 1", ["a", "b"]),
    "wider key": ("SELECT id, note, amount FROM orders WHERE note IS NOT NULL", ["note", "id"]),
    "three tables": (
        "SELECT o.id, s.b, c.region, s.v FROM orders o JOIN customers c ON o.cust = c.cid JOIN stock s ON s.a = c.cid",
        ["id", "b"],
    ),
    "sums": (
        "SELECT cust, count(*) AS n, sum(amount) AS total, avg(price) AS mean, max(day) AS last FROM orders "
        "WHERE cust IS NOT NULL GROUP BY cust",
        ["cust"],
    ),
    "having": (
        "SELECT cust, sum(amount) AS total FROM orders WHERE cust IS NOT NULL GROUP BY cust HAVING sum(amount) > 3",
        ["cust"],
    ),
    "fractions": (
        "SELECT cust, sum(ratio) AS r, count(*) AS n FROM orders WHERE cust IS NOT NULL GROUP BY cust",
        ["cust"],
    ),
    "nested groups": (
        "SELECT n, count(*) AS customers FROM (SELECT cust, count(*) AS n FROM orders GROUP BY cust) GROUP BY n",
        ["n"],
    ),
    "distinct": ("SELECT DISTINCT note FROM orders WHERE note IS NOT NULL", ["note"]),
    "top rows": (
        "SELECT id, cust, amount FROM orders "
        "QUALIFY row_number() OVER (PARTITION BY cust ORDER BY amount DESC, id) < 3",
        ["id"],
    ),
    "of appends": ("SELECT kind, sum(qty) AS total FROM events WHERE kind IS NOT NULL GROUP BY kind", ["kind"]),
}
"""Queries, and columns that tell their rows apart."""


def _lived(history: History, rounds: int, made: dict[StreamingInsert, tuple[str, str]], judge: object) -> Counter[str]:
    ways: Counter[str] = Counter()
    for turn in range(rounds):
        for each, (name, query) in made.items():
            if turn and turn + 1 < rounds and history.random.random() < 0.25:
                continue  # a step that is skipped
            done = each.step()
            ways[done.way] += 1
            wrong = judge(history.lake, name, query)  # type: ignore[operator]
            assert wrong is None, f"round {turn}, {done}\n{query}\n{wrong}"
            assert each.step().way == "none"
        history.happen()
    return ways


def _keyed(history: History, rounds: int, **options: str) -> Counter[str]:
    history.fill()
    made = {}
    for number, (query, key) in enumerate(KEYED.values()):
        table_like(history.lake, f"t{number}", query, key, **options)
        made[insert(history.lake, f"t{number}", query)] = (f"t{number}", query)
    return _lived(history, rounds, made, other_rows)


def _counted(history: History, rounds: int, queries: list[str]) -> Counter[str]:
    """Whatever a query gives, in tables that add up what they are sent."""
    history.fill()
    made: dict[StreamingInsert, tuple[str, str]] = {}
    refused = 0
    for query in queries:
        name = f"c{len(made)}"
        try:
            texts = as_text(history.lake, query)
            history.lake.query(texts, engine="duckdb").arrow()
        except LakebedError:
            continue
        counting_table(history.lake, name)
        each = insert(history.lake, name, texts)
        try:
            each.check()
        except Unsupported:
            refused += 1
            history.lake.drop_table(name)
            continue
        made[each] = (name, texts)
    ways = _lived(history, rounds, made, other_counts)
    ways["refused"] = refused
    return ways


@pytest.mark.parametrize("producer", by_day(PRODUCERS, "none", "lookup"))
def test_a_table_with_the_key_of_the_query_has_its_rows(tmp_path: Path, producer: str) -> None:
    """With merge engine `deduplicate` the table is what the query gives of the tables, after every step."""
    ways = _keyed(History(str(tmp_path), producer, seed=5), 3)
    assert ways["incremental"] > len(KEYED)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("producer", PRODUCERS)
def test_a_table_with_the_key_of_the_query_has_its_rows_for_long(tmp_path: Path, producer: str, seed: int) -> None:
    """The same for many histories, and with a changelog of what comes in."""
    _keyed(History(str(tmp_path), producer, seed=50 + seed), 6, **PRODUCERS[["none", "input", "lookup"][seed % 3]])


@pytest.mark.parametrize("part", by_day(range(3), 0))
def test_what_is_taken_back_was_sent(tmp_path: Path, part: int) -> None:
    """In a table that adds up, rows of any query are there as often as the query gives them, and never less than 0."""
    chosen = list(FOLLOWED.values())[part::6]
    ways = _counted(History(str(tmp_path), list(PRODUCERS)[part], seed=part), 3, chosen)
    assert ways["incremental"] > ways["refused"]


@pytest.mark.parametrize("seed", by_day(range(2), 0))
def test_random_queries(tmp_path: Path, seed: int) -> None:
    """The same for queries that nobody thought of."""
    grammar = Grammar(seed)
    ways = _counted(History(str(tmp_path), list(PRODUCERS)[3 + seed], seed), 2, [grammar.query() for _ in range(8)])
    assert ways["incremental"] > ways["refused"]


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2000, 2100))
def test_random_queries_for_long(tmp_path: Path, seed: int) -> None:
    """The same for a thousand queries."""
    grammar = Grammar(seed)
    producer = list(PRODUCERS)[seed % len(PRODUCERS)]
    _counted(History(str(tmp_path), producer, seed), 5, [grammar.query() for _ in range(10)])
