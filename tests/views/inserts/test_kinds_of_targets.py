"""Streaming INSERTs into tables of every kind: buckets, deletion vectors, partitions, changelogs."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from tests.thinning import thinned
from tests.views.histories import History
from tests.views.inserts.targets import insert, other_rows

_KINDS: dict[str, dict[str, str]] = {
    "dynamic buckets": {"bucket": "-1"},
    "several buckets": {"bucket": "3"},
    "waiting rows": {"bucket": "-2"},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "left to others": {"write-only": "true"},
    "lookup": {"changelog-producer": "lookup"},
    "lookup, left to others": {"changelog-producer": "lookup", "write-only": "true"},
    "full compaction": {"changelog-producer": "full-compaction"},
    "input": {"changelog-producer": "input"},
    "normalised": {"changelog-producer": "input", "changelog-producer.input.normalize": "true"},
}
_QUERY = (
    "SELECT o.note, o.id, c.name, o.amount FROM orders o JOIN customers c ON o.cust = c.cid WHERE o.note IS NOT NULL"
)
_SUMS = "SELECT note, coalesce(amount, 0), 1 FROM orders WHERE note IS NOT NULL"


def _live(history: History, name: str, query: str, shown: str, expected: str, *, compacts: bool) -> None:
    each = insert(history.lake, name, query)
    for turn in range(4):
        done = each.step()
        if compacts:
            history.lake.table(name).compact(full=True)
        wrong = other_rows(history.lake, shown, expected)
        assert wrong is None, f"round {turn}, {done}: {wrong}"
        history.happen()


@pytest.mark.parametrize(
    ("kind", "partitions"),
    thinned(itertools.product(_KINDS, [[], ["note"]]), lambda kind, partitions: [kind, *partitions]),
)
def test_a_table_with_the_rows_of_a_query(tmp_path: Path, kind: str, partitions: list[str]) -> None:
    """Whatever the table is, it has the rows of the query; one that moves to another partition leaves the old one."""
    history = History(str(tmp_path), "lookup", seed=8)
    history.fill()
    columns = {"note": "STRING NOT NULL", "id": "BIGINT NOT NULL", "name": "STRING", "amount": "INT"}
    options = {"bucket": "1", **_KINDS[kind]}
    history.lake.create_table("t", columns, primary_key=["note", "id"], partition_by=partitions, options=options)
    _live(history, "t", _QUERY, "t", _QUERY, compacts=kind == "waiting rows")


def test_a_key_across_partitions(tmp_path: Path) -> None:
    """A row whose key has no partition in it is moved by the table itself."""
    history = History(str(tmp_path), "lookup", seed=9)
    history.fill()
    columns = {"note": "STRING", "id": "BIGINT NOT NULL", "name": "STRING", "amount": "INT"}
    options = {"bucket": "-1"}
    history.lake.create_table("t", columns, primary_key=["id"], partition_by=["note"], options=options)
    _live(history, "t", _QUERY, "t", _QUERY, compacts=False)


@pytest.mark.parametrize("kind", ["dynamic buckets", "waiting rows", "deletion vectors", "left to others", "lookup"])
def test_a_table_that_adds_up(tmp_path: Path, kind: str) -> None:
    """Sums are those of the query's rows, wherever and whenever rows of a key come together."""
    history = History(str(tmp_path), "lookup", seed=10)
    history.fill()
    options = {"bucket": "1", "merge-engine": "aggregation", "fields.default-aggregate-function": "sum", **_KINDS[kind]}
    columns = {"k": "STRING NOT NULL", "total": "BIGINT", "n": "BIGINT"}
    history.lake.create_table("t", columns, primary_key=["k"], options=options)
    sums = f"SELECT k, sum(v) AS v, sum(n) AS n FROM ({_SUMS}) AS q(k, v, n) GROUP BY k"
    shown = "(SELECT * FROM t WHERE n <> 0)"
    _live(history, "t", _SUMS, shown, sums, compacts=kind == "waiting rows")


@pytest.mark.parametrize("options", [{}, {"bucket": "2", "bucket-key": "oid"}, {"write-only": "true"}])
def test_a_table_without_a_key(tmp_path: Path, options: dict[str, str]) -> None:
    """It gets every row once, also in partitions."""
    history = History(str(tmp_path), "lookup", seed=12)
    history.fill()
    columns = {"oid": "BIGINT", "kind": "STRING", "qty": "INT"}
    history.lake.create_table("t", columns, partition_by=["kind"], options=options)
    query = "SELECT oid, kind, qty FROM events WHERE kind IS NOT NULL"
    _live(history, "t", query, "t", query, compacts=False)
