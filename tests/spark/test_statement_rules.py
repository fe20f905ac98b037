"""Statements on tables whose engine folds rows, or whose reads hide some: no row is lost, none is counted twice."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.test_sql_changes import rows, way
from tests.unit.write.test_told_replacements import replayed

import lakebed
from lakebed.errors import InvalidArgument, LakebedError

__all__ = ["way"]

HIDING: dict[str, str] = {
    "first-row, write-only": "'merge-engine' = 'first-row', 'bucket' = '1', 'write-only' = 'true'",
    "vectors, write-only": "'bucket' = '1', 'deletion-vectors.enabled' = 'true', 'write-only' = 'true'",
    "sums, vectors": "'merge-engine' = 'aggregation', 'fields.v.aggregate-function' = 'sum', 'bucket' = '1', "
    "'deletion-vectors.enabled' = 'true', 'write-only' = 'true'",
    "waiting": "'bucket' = '-2', 'postpone.batch-write-fixed-bucket' = 'false'",
    "waiting sums": "'bucket' = '-2', 'postpone.batch-write-fixed-bucket' = 'false', 'merge-engine' = 'aggregation', "
    "'fields.v.aggregate-function' = 'sum'",
}
PARTIAL = "'merge-engine' = 'partial-update', 'bucket' = '1'"
GROUPS = f"{PARTIAL}, 'fields.g.sequence-group' = 'a,n', 'fields.n.aggregate-function' = 'sum'"


def create(lake: lakebed.Lake, columns: str, options: str) -> lakebed.Table:
    """A table with the key `k`."""
    lake.sql(f"CREATE TABLE t ({columns}, PRIMARY KEY (k) NOT ENFORCED) WITH ({options})")
    return lake.table("t")


def write(table: lakebed.Table, *values: tuple[int, int]) -> None:
    """One commit without Spark."""
    keys, numbers = zip(*values, strict=True)
    table.write(pa.table({"k": pa.array(keys, pa.int32()), "v": pa.array(numbers, pa.int32())}))


@pytest.mark.parametrize("kind", HIDING)
def test_delete_keeps_what_reads_hide(lake: lakebed.Lake, kind: str, way: str) -> None:
    """Rows of other keys that no read shows yet are there after a DELETE, or it says what to do first."""
    table = create(lake, "k INT, v INT", HIDING[kind])
    write(table, (1, 1), (2, 2))
    table.compact(full=True)
    write(table, (3, 3), (4, 4))
    if kind in ("first-row, write-only", "sums, vectors"):  # their rows are rewritten
        with pytest.raises(InvalidArgument, match="compact"):
            lake.sql("DELETE FROM t WHERE k = 1")
        table.compact(full=True)
    lake.sql("DELETE FROM t WHERE k = 1")
    table.compact(full=True)
    assert rows(lake) == [(2, 2), (3, 3), (4, 4)]


@pytest.mark.parametrize("kind", ["vectors, write-only", "waiting"])
def test_changes_see_newer_versions_that_reads_hide(lake: lakebed.Lake, kind: str) -> None:
    """UPDATE, MERGE and DELETE work on the newest stored version of a row, not on the one that a read shows."""
    table = create(lake, "k INT, v INT", HIDING[kind])
    write(table, (1, 1), (2, 2), (3, 3))
    table.compact(full=True)
    write(table, (1, 10), (2, 20), (3, 30))
    lake.sql("UPDATE t SET v = v + 1 WHERE k = 1")
    lake.sql(
        "MERGE INTO t USING (SELECT 2 AS k) AS s ON t.k = s.k WHEN MATCHED AND t.v = 20 THEN UPDATE SET v = t.v + 2"
    )
    lake.sql("DELETE FROM t WHERE v = 3")
    table.compact(full=True)
    assert rows(lake) == [(1, 11), (2, 22), (3, 30)]


def test_updates_leave_sums_alone(lake: lakebed.Lake, way: str) -> None:
    """What an UPDATE or MERGE does not set stays as it is, also where rows that are added would add up."""
    create(lake, "k INT, g INT, a STRING, n INT, b STRING", GROUPS)
    lake.sql("INSERT INTO t VALUES (1, 1, 'x', 5, 'y'); INSERT INTO t VALUES (1, 2, 'x', 6, 'y'), (2, 1, 'q', 1, 'z')")
    for _ in range(2):
        lake.sql("UPDATE t SET b = 'new' WHERE k = 1")
        lake.sql("MERGE INTO t USING (SELECT 1 AS k, 'm' AS a) AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET a = s.a")
    assert rows(lake) == [(1, 2, "m", 11, "new"), (2, 1, "q", 1, "z")]
    lake.sql("UPDATE t SET n = 3 WHERE k = 1")
    assert rows(lake)[0] == (1, 2, "m", 3, "new")


def test_a_group_without_an_order_takes_a_value(lake: lakebed.Lake) -> None:
    """A column whose group has no order yet can be set."""
    create(lake, "k INT, g INT, a STRING", f"{PARTIAL}, 'fields.g.sequence-group' = 'a'")
    lake.sql("INSERT INTO t VALUES (1, NULL, NULL); INSERT INTO t VALUES (1, NULL, NULL)")
    lake.sql("UPDATE t SET a = 'set' WHERE k = 1")
    assert rows(lake) == [(1, None, "set")]


def test_null_is_a_value_for_update(lake: lakebed.Lake) -> None:
    """SET to NULL takes effect where rows that are added would leave the old value, also from an expression."""
    create(lake, "k INT, v INT, w INT", PARTIAL)
    lake.sql("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)")
    lake.sql("UPDATE t SET v = NULL WHERE k = 1")
    lake.sql("UPDATE t SET v = NULLIF(v, 2), w = 5 WHERE k = 2")
    assert rows(lake) == [(1, None, 1), (2, None, 5)]


@pytest.mark.parametrize("options", [PARTIAL, GROUPS], ids=["partial", "groups"])
def test_merge_deletes_rows(lake: lakebed.Lake, options: str) -> None:
    """MERGE ... DELETE removes the row, and the table can be read and compacted afterwards."""
    table = create(lake, "k INT, g INT, a STRING, n INT", options)
    lake.sql("INSERT INTO t VALUES (1, 1, 'x', 5), (2, 1, 'y', 6)")
    lake.sql("MERGE INTO t USING (SELECT 1 AS k) AS s ON t.k = s.k WHEN MATCHED THEN DELETE")
    table.compact(full=True)
    assert rows(lake) == [(2, 1, "y", 6)]
    lake.sql("INSERT INTO t VALUES (1, 1, 'z', 7)")
    assert rows(lake) == [(1, 1, "z", 7), (2, 1, "y", 6)]


def test_an_older_sequence_may_be_set(lake: lakebed.Lake) -> None:
    """An UPDATE that lowers the column by which rows are ordered takes effect; later rows are compared with it."""
    create(lake, "k INT, v INT, s INT", "'bucket' = '1', 'sequence.field' = 's'")
    lake.sql("INSERT INTO t VALUES (1, 1, 10)")
    lake.sql("UPDATE t SET v = 2, s = 5 WHERE k = 1")
    assert rows(lake) == [(1, 2, 5)]
    lake.sql("INSERT INTO t VALUES (1, 3, 4); INSERT INTO t VALUES (1, 4, 6)")
    assert rows(lake) == [(1, 4, 6)]


def test_deletes_that_are_ignored_say_so(lake: lakebed.Lake, caplog: pytest.LogCaptureFixture) -> None:
    """Where a table ignores deletes, DELETE and MERGE ... DELETE change nothing and a warning tells why."""
    create(lake, "k INT, v INT", "'bucket' = '1', 'ignore-delete' = 'true'")
    lake.sql("INSERT INTO t VALUES (1, 1)")
    for statement in (
        "DELETE FROM t WHERE k = 1",
        "MERGE INTO t USING (SELECT 1 AS k) AS s ON t.k = s.k WHEN MATCHED THEN DELETE",
    ):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            lake.sql(statement)
        assert "ignore-delete" in caplog.text
        assert rows(lake) == [(1, 1)]


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_rewrites_are_told(lake: lakebed.Lake, producer: str) -> None:
    """A reader of the changelog has the table after every statement, however it was carried out."""
    lake.sql(
        "CREATE TABLE t (p INT, k INT, v INT, PRIMARY KEY (p, k) NOT ENFORCED) PARTITIONED BY (p) "
        f"WITH ({PARTIAL}, 'changelog-producer' = '{producer}')"
    )
    lake.sql("INSERT INTO t VALUES (1, 1, 1), (1, 2, 2), (2, 1, 1)")

    def agree() -> list[tuple[Any, ...]]:
        found = sorted(tuple(row.values()) for row in lake.table("t").to_arrow().to_pylist())
        assert replayed(lake.table("t")) == found
        return found

    lake.sql("UPDATE t SET v = v + 1 WHERE p = 1")
    agree()
    lake.sql("DELETE FROM t WHERE k = 2")
    agree()
    lake.sql("INSERT OVERWRITE t PARTITION (p = 1) VALUES (3, 3)")
    assert agree() == [(1, 3, 3), (2, 1, 1)]


def test_a_refused_update_does_not_compact(lake: lakebed.Lake) -> None:
    """What can be refused at once is refused before the rows are settled for the rewrite: no snapshot is made."""
    create(lake, "k INT, g INT, a INT, n INT", GROUPS)
    lake.sql("INSERT INTO t VALUES (1, 1, 1, 1)")
    with pytest.raises(InvalidArgument, match="primary key"):
        lake.sql("UPDATE t SET k = 2, a = 3")
    assert [snapshot.id for snapshot in lake.table("t").snapshots()] == [1]


DEFAULTED = {
    "deduplicate": "'bucket' = '1'",
    "partial": PARTIAL,
    "sums": f"{PARTIAL}, 'fields.g.sequence-group' = 'n', 'fields.n.aggregate-function' = 'sum'",
    "no key": "",
    "no key, vectors": "'deletion-vectors.enabled' = 'true'",
}


@pytest.mark.parametrize("kind", DEFAULTED)
def test_a_null_that_is_shown_as_a_default_stays_null(lake: lakebed.Lake, kind: str, way: str) -> None:
    """UPDATE, MERGE and DELETE see the default in place of null, and leave null where they set nothing."""
    shown = {"n": "7", "s": "none", "t": "2024-01-01 00:00:00"}
    defaults = ", ".join(f"'fields.{name}.default-value' = '{value}'" for name, value in shown.items())
    key = "" if kind.startswith("no key") else ", PRIMARY KEY (k) NOT ENFORCED"
    options = ", ".join(part for part in (DEFAULTED[kind], defaults) if part)
    lake.sql(f"CREATE TABLE t (k INT, g INT, n INT, s CHAR(5), t TIMESTAMP(6), b STRING{key}) WITH ({options})")
    lake.sql(
        "INSERT INTO t VALUES (1, 1, NULL, NULL, NULL, 'x'), (2, 1, NULL, NULL, NULL, 'x'), (3, 1, 5, 'a', NULL, 'x')"
    )
    lake.sql("UPDATE t SET b = CONCAT('u', n) WHERE n = 7 AND s = 'none' AND k = 1 AND YEAR(t) = 2024")
    lake.sql(
        "MERGE INTO t USING (SELECT 2 AS k) AS s ON t.k = s.k WHEN MATCHED AND t.n = 7 THEN UPDATE SET b = 'm' "
        "WHEN NOT MATCHED BY SOURCE AND t.n = 5 AND t.s = 'a' THEN DELETE"
    )
    assert [(row[0], row[2], row[5]) for row in rows(lake)] == [(1, 7, "u7"), (2, 7, "m")]
    lake.sql("ALTER TABLE t SET ('fields.n.default-value' = '8')")
    assert [row[2] for row in rows(lake)] == [8, 8]
    if key:
        lake.sql("INSERT INTO t VALUES (1, 2, 3, NULL, NULL, NULL)")
        assert rows(lake)[0][2] == 3


KINDS = "'bucket' = '1', 'rowkind.field' = 'kind'"


def test_kinds_that_a_statement_sets_count(lake: lakebed.Lake, way: str) -> None:
    """Where a column says the kinds of rows, UPDATE and MERGE that set it write rows of these kinds."""
    create(lake, "k INT, v INT, kind STRING", KINDS)
    lake.sql("INSERT INTO t VALUES (1, 1, '+I'), (2, 2, '+I'), (3, 3, '+I'), (4, 4, '+I')")
    lake.sql("UPDATE t SET kind = CASE WHEN k = 1 THEN '-D' ELSE '+I' END, v = v + 1 WHERE k <= 2")
    assert [row[:2] for row in rows(lake)] == [(2, 3), (3, 3), (4, 4)]
    changes = "SELECT * FROM VALUES (3, 30, '-D'), (4, 40, '+I'), (5, 50, '-D'), (6, 60, '+I') AS c (k, v, kind)"
    lake.sql(
        f"MERGE INTO t USING ({changes}) AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert [row[:2] for row in rows(lake)] == [(2, 3), (4, 40), (6, 60)]
    lake.sql("MERGE INTO t USING (SELECT 4 AS k) AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 5")
    assert rows(lake)[1] == (4, 5, "+U")


@pytest.mark.parametrize("value", ["NULL", "'gone'"])
def test_kinds_that_are_none(lake: lakebed.Lake, value: str) -> None:
    """A statement that sets the kinds of rows to something else is refused, and names the column."""
    table = create(lake, "k INT, v INT, kind STRING", KINDS)
    lake.sql("INSERT INTO t VALUES (1, 1, '+I')")
    before = table.latest_snapshot()
    with pytest.raises(LakebedError, match="kind"):
        lake.sql(f"UPDATE t SET kind = {value}")
    assert table.latest_snapshot() == before


UNSETTLED = {
    "groups": ("k INT, g INT, v INT", f"{PARTIAL}, 'fields.g.sequence-group' = 'v'", ("UPDATE", "MERGE", "DELETE")),
    "sums, vectors": (
        "k INT, g INT, v INT",
        "'merge-engine' = 'aggregation', 'fields.v.aggregate-function' = 'sum', 'bucket' = '1', "
        "'deletion-vectors.enabled' = 'true', 'num-sorted-run.compaction-trigger' = '9'",
        ("DELETE",),
    ),
    "first row": ("k INT, g INT, v INT", "'merge-engine' = 'first-row', 'bucket' = '1'", ("DELETE",)),
    "waiting": (
        "k INT, g INT, v INT",
        "'bucket' = '-2', 'postpone.batch-write-fixed-bucket' = 'false'",
        ("UPDATE", "MERGE", "DELETE"),
    ),
    "waiting first rows": (
        "k INT, g INT, v INT",
        "'merge-engine' = 'first-row', 'bucket' = '-2', 'postpone.batch-write-fixed-bucket' = 'false'",
        ("DELETE",),
    ),
}
VAIN = {
    "UPDATE": "UPDATE t SET v = 3 WHERE v = 77",
    "MERGE": "MERGE INTO t USING (SELECT 7 AS k) AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 3",
    "DELETE": "DELETE FROM t WHERE v = 77",
}
WRONG = {
    "UPDATE": ["UPDATE t SET v = nowhere", "UPDATE t SET v = k / 0", "UPDATE t SET k = 3"],
    "MERGE": [
        "MERGE INTO t USING (SELECT 1 AS k UNION ALL SELECT 1) AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 3",
        "MERGE INTO t USING (SELECT 1 AS k) AS s ON t.k = s.nowhere WHEN MATCHED THEN UPDATE SET v = 3",
    ],
    "DELETE": ["DELETE FROM t WHERE nowhere = 1", "DELETE FROM t WHERE k / 0 = 1"],
}


@pytest.mark.parametrize("kind", UNSETTLED)
def test_statements_in_vain_leave_no_snapshot(lake: lakebed.Lake, kind: str) -> None:
    """A statement that fails, or finds nothing, has not compacted or placed rows; one that finds a hidden row has."""
    columns, options, statements = UNSETTLED[kind]
    table = create(lake, columns, f"{options}, 'write-only' = 'true'")
    for value in (5, 6):
        data = {"k": [1, value], "g": [value, 1], "v": [value, value]}
        table.write(pa.table({name: pa.array(values, pa.int32()) for name, values in data.items()}))
    lake.sql("ALTER TABLE t SET ('write-only' = 'false')")
    before = table.latest_snapshot()
    for name in statements:
        lake.sql(VAIN[name])
        for text in WRONG[name]:
            with pytest.raises(LakebedError):
                lake.sql(text)
        assert table.latest_snapshot() == before, name
    lake.sql("DELETE FROM t WHERE k = 6")
    table.compact(full=True)
    assert [row[0] for row in rows(lake)] == [1, 5]


def test_a_value_that_does_not_fit_leaves_no_snapshot(lake: lakebed.Lake) -> None:
    """NULL for a column that has none is refused before anything is compacted for the statement."""
    table = create(lake, "k INT, g INT, v INT NOT NULL", f"{PARTIAL}, 'fields.g.sequence-group' = 'v'")
    lake.sql("INSERT INTO t VALUES (1, 1, 1); INSERT INTO t VALUES (1, 2, 2)")
    before = table.latest_snapshot()
    with pytest.raises(LakebedError, match="`v`"):
        lake.sql("UPDATE t SET v = NULLIF(k, 1)")
    assert table.latest_snapshot() == before


def test_merge_counts_new_rows_and_sets_old_ones(lake: lakebed.Lake, way: str) -> None:
    """A row that MERGE inserts is counted as one of INSERT is; one that it updates holds the number it is given."""
    counting = "'fields.g.sequence-group' = 'n', 'fields.n.aggregate-function' = 'count'"
    create(lake, "k INT, g INT, n BIGINT", f"{PARTIAL}, {counting}")
    lake.sql("INSERT INTO t VALUES (1, 1, 70), (2, 1, 70)")
    lake.sql(
        "MERGE INTO t USING (SELECT * FROM VALUES (1, 9), (3, 9), (4, NULL) AS s(k, n)) AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (k, g, n) VALUES (s.k, 1, s.n)"
    )
    assert rows(lake) == [(1, 1, 9), (2, 1, 1), (3, 1, 1), (4, 1, 0)]
