"""Statements that change the same rows at the same time: the outcome is that of one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import lakebed
from lakebed.errors import CommitConflict
from lakebed.spark import read
from lakebed.sql.change import target_rows
from lakebed.write.commit import WriteCommit

SUMS = "'merge-engine' = 'aggregation', 'fields.n.aggregate-function' = 'sum'"


def filled(lake: lakebed.Lake, options: str = "") -> lakebed.Table:
    """Three rows of two buckets."""
    more = f", {options}" if options else ""
    lake.sql(f"CREATE TABLE t (k INT NOT NULL, n INT) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '2'{more})")
    lake.sql("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
    return lake.table("t")


def values(table: lakebed.Table) -> dict[int, int]:
    """Values by key."""
    rows = table.to_arrow().to_pydict()
    return dict(zip(rows["k"], rows["n"], strict=True))


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], list[int]]:
    """Has something happen between the reading and the first commit of the next statement; counts its commits."""

    def install(happens: Callable[[], object]) -> list[int]:
        commit, counted, own = WriteCommit.run, [0], threading.get_ident()

        def run(self: WriteCommit, messages: Any) -> Any:
            if threading.get_ident() == own and self._read is not None:
                counted[0] += 1
                if counted[0] == 1:
                    other = threading.Thread(target=happens)
                    other.start()
                    other.join()
            return commit(self, messages)

        monkeypatch.setattr(WriteCommit, "run", run)
        return counted

    return install


@pytest.mark.parametrize("way", ["here", "job"])
def test_no_update_is_lost(
    lake: lakebed.Lake,
    meanwhile: Callable[[Callable[[], object]], list[int]],
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    """An UPDATE during which another one changes the same row begins anew, and counts on from it."""
    if way == "job":
        monkeypatch.setattr(read, "LOCAL_ROWS", 0)
    table = filled(lake)
    counted = meanwhile(lambda: lake.sql("UPDATE t SET n = n + 10 WHERE k = 2"))
    lake.sql("UPDATE t SET n = n + 1 WHERE k <= 2")
    assert values(table) == {1: 1, 2: 11, 3: 0}
    assert counted == [2]


def test_other_rows_are_not_in_the_way(
    lake: lakebed.Lake, meanwhile: Callable[[Callable[[], object]], list[int]]
) -> None:
    """Writes of other keys of the same bucket, and compactions, cost no second try."""
    table = filled(lake)

    def others() -> None:
        lake.sql("INSERT INTO t VALUES (0, 5), (3, 5), (4, 5)")
        table.compact(full=True)

    counted = meanwhile(others)
    lake.sql(
        "MERGE INTO t USING (SELECT 1 AS k UNION SELECT 9) AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET n = n + 1 WHEN NOT MATCHED THEN INSERT VALUES (s.k, 9)"
    )
    assert values(table) == {0: 5, 1: 1, 2: 0, 3: 5, 4: 5, 9: 9}
    assert counted == [1]


def test_merges_that_add_the_same_key(
    lake: lakebed.Lake, meanwhile: Callable[[Callable[[], object]], list[int]]
) -> None:
    """Of two MERGE that find a key missing the second one finds it there."""
    table = filled(lake)
    statement = (
        "MERGE INTO t USING (SELECT 7 AS k) AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET n = n + 1 WHEN NOT MATCHED THEN INSERT VALUES (s.k, 1)"
    )
    meanwhile(lambda: lake.sql(statement))
    lake.sql(statement)
    assert values(table)[7] == 2


def test_a_delete_that_rewrites_the_table_loses_no_row(
    lake: lakebed.Lake, meanwhile: Callable[[Callable[[], object]], list[int]]
) -> None:
    """Rows that come in while an aggregation table is rewritten are there afterwards."""
    table = filled(lake, SUMS)
    table.compact(full=True)

    def others() -> None:
        lake.sql("INSERT INTO t VALUES (2, 5), (4, 5)")
        table.compact(full=True)

    counted = meanwhile(others)
    lake.sql("DELETE FROM t WHERE n = 0")
    assert values(table) == {2: 5, 4: 5}
    assert counted == [2]


def test_a_statement_that_never_gets_through_says_so(lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some tries the conflict is told, and nothing of the statement is there."""
    table = filled(lake)
    monkeypatch.setattr(target_rows, "_MOST_ATTEMPTS", 2)
    commit, own = WriteCommit.run, threading.get_ident()

    def run(self: WriteCommit, messages: Any) -> Any:
        if self._read is not None:
            with table.writer() as writer:
                writer.write(table.to_arrow().slice(0, 3))
        return commit(self, messages)

    monkeypatch.setattr(WriteCommit, "run", run)
    with pytest.raises(CommitConflict, match="same keys"):
        lake.sql("UPDATE t SET n = 1")
    assert threading.get_ident() == own
    assert set(values(table).values()) == {0}


def test_two_threads_count(lake: lakebed.Lake) -> None:
    """Two threads that add to one row as fast as they can: every addition counts."""
    table = filled(lake)

    def add() -> None:
        for _ in range(5):
            lake.sql("UPDATE t SET n = n + 1 WHERE k = 1")

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values(table)[1] == 10
