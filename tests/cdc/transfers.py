"""Transactions that move amounts between two tables: whoever sees one in part sees another total."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

import lakebed
from lakebed.errors import NotFound

ROWS, AMOUNT = 20, 1000
TOTAL = 2 * ROWS * AMOUNT
SUM = "SELECT sum(v) AS total FROM (SELECT v FROM accounts_a UNION ALL SELECT v FROM accounts_b) AS both_of_them"
JOINED = "SELECT sum(a.v + b.v) AS total FROM accounts_a AS a JOIN accounts_b AS b ON a.id = b.id"
PAIRS = "SELECT a.id, a.v AS va, b.v AS vb FROM accounts_a AS a JOIN accounts_b AS b ON a.id = b.id"
"""Materialized: rows of both tables side by side, over which a sum is the total again."""


def create(execute: Callable[[str], Any]) -> None:
    """Both tables, with their rows."""
    for name in ("accounts_a", "accounts_b"):
        execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v bigint NOT NULL)")
        execute(f"INSERT INTO {name} VALUES {', '.join(f'({i}, {AMOUNT})' for i in range(ROWS))}")


def transfer(run: Callable[[str], Any], rng: random.Random, begin: str = "BEGIN") -> None:
    """One transaction: from some rows of one table to rows of the other."""
    source, target = rng.sample(["accounts_a", "accounts_b"], 2)
    amount = rng.randint(1, 50)
    run(begin)
    run(f"UPDATE {source} SET v = v - {amount} WHERE id = {rng.randrange(ROWS)}")
    run(f"UPDATE {target} SET v = v + {amount} WHERE id = {rng.randrange(ROWS)}")
    run("COMMIT")


@contextmanager
def transferring(connect: Callable[[], Any], writers: int, pause_s: float) -> Iterator[Callable[[], int]]:
    """Writers that go on until the end; gives how many transactions they have made."""
    is_over = threading.Event()
    made = [0] * writers

    def write(place: int) -> None:
        rng = random.Random(place)
        with connect() as connection:
            while not is_over.wait(pause_s):
                try:
                    transfer(connection.execute, rng)
                    made[place] += 1
                except psycopg.errors.DeadlockDetected:  # with another writer: the transaction has not been
                    connection.execute("ROLLBACK")

    threads = [threading.Thread(target=write, args=[place]) for place in range(writers)]
    for thread in threads:
        thread.start()
    try:
        yield lambda: sum(made)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


class Watch:
    """Looks at both tables in every way there is, and keeps what totals it has seen."""

    def __init__(self, lake: lakebed.Lake, database: str) -> None:
        self.lake = lake
        lake.use(database)
        self.names = [f"{database}.accounts_{each}" for each in "ab"]
        self.consistent: list[int] = []
        self.newest: set[int] = set()
        self.cuts: set[tuple[int | None, ...]] = set()
        self.refreshes = 0

    def make_views(self) -> None:
        """Materialized tables over both tables, and over one of them."""
        for name, query in (("total", SUM), ("joined", JOINED), ("pairs", PAIRS)):
            self.lake.materialize(name, query, policy="incremental", if_not_exists=True)
        self.lake.materialize("of_pairs", "SELECT sum(va + vb) AS total FROM pairs", if_not_exists=True)

    def rows(self) -> list[Any]:
        """Of both tables, as of one moment; none before there is one."""
        try:
            found = self.lake.consistent(*self.names)
        except NotFound:
            return []
        return [sorted(found.query(f"SELECT * FROM {name}").fetchall()) for name in found]

    def look(self) -> None:
        """Once, in every way; at the tables as they are, too."""
        with suppress(NotFound):
            self.newest.add(self.lake.query(SUM).fetchall()[0][0])
        try:
            found = self.lake.consistent(*self.names)
        except NotFound:
            assert all(done.way == "none" for done in self.lake.refresh_all()) or self.rows()
            return
        assert found.position is not None
        self.cuts.add(tuple(found.snapshots.values()))
        self.consistent += [found.query(query).fetchall()[0][0] for query in (SUM, JOINED)]
        self.refreshes += sum(done.snapshot is not None for done in self.lake.refresh_all())

    def assert_right(self) -> None:
        """Every total that was seen, and that of every snapshot of every materialized table, is the same."""
        assert set(self.consistent) == {TOTAL}
        for name in ("total", "joined", "of_pairs"):
            view = self.lake.table(name)
            totals = {view.at(each.id).to_arrow(["total"]).column(0)[0].as_py() for each in view.snapshots()}
            assert totals == {TOTAL}, name


__all__ = ["JOINED", "SUM", "TOTAL", "Watch", "create", "transfer", "transferring"]
