"""Writes of Spark that cluster: tasks get stretches of the order, and sort them."""

from __future__ import annotations

from typing import Any

import pytest

import lakebed

SIZE = 250_000


def _read_files(table: lakebed.Table, where: list[Any] | None) -> int:
    return sum(len(split.files) for split in table.scan(filter=where).splits)


def _frame(spark: Any, size: int) -> Any:
    """Rows in no order, in several partitions; each column has every value once."""
    return spark.range(0, size, 1, 4).selectExpr(
        f"pmod(id * 7919, {size}) AS a", f"CAST(pmod(id * 104729, {size}) AS STRING) AS s", "id % 3 = 0 AS p"
    )


@pytest.mark.parametrize(("columns", "most"), [("a", 2), ("a,s", 8)])
def test_a_frame_is_sorted_across_tasks(columns: str, most: int, spark: Any, lake: lakebed.Lake) -> None:
    """Files of all tasks follow each other: a filter reads few of them, and no row is lost or doubled."""
    options = {"clustering.columns": columns, "target-file-row-num": "10000", "write-only": "true"}
    table = lake.create_table("t", {"a": "BIGINT", "s": "STRING", "p": "BOOLEAN"}, options=options)
    table.write_spark(_frame(spark, SIZE))
    files = _read_files(table, None)
    assert files >= SIZE // 10_000
    assert _read_files(table, [("a", "=", 123_456)]) <= most
    numbers = table.to_arrow(columns=["a"]).column("a").to_pylist()
    assert sorted(numbers) == list(range(SIZE))
    assert table.to_arrow(filter=[("a", "=", 123_456)]).num_rows == 1


def test_statements_cluster(spark: Any, lake: lakebed.Lake) -> None:
    """INSERT INTO and INSERT OVERWRITE sort each partition; few rows go to one task."""
    lake.sql(
        "CREATE TABLE t (a BIGINT, s STRING, p BOOLEAN) PARTITIONED BY (p) WITH "
        "('clustering.columns' = 'a', 'target-file-row-num' = '500', 'write-only' = 'true')"
    )
    _frame(spark, 3000).createOrReplaceTempView("rows_of_clustering")
    for statement in ("INSERT INTO", "INSERT OVERWRITE"):
        lake.sql(f"{statement} t SELECT a, s, p FROM rows_of_clustering")
        table = lake.table("t")
        assert table.to_arrow().num_rows == 3000
        assert _read_files(table, [("p", "=", True)]) == 2
        assert _read_files(table, [("p", "=", False)]) == 4
        assert _read_files(table, [("p", "=", False), ("a", "=", 1000)]) == 1


def test_an_empty_frame(spark: Any, lake: lakebed.Lake) -> None:
    """Nothing is learned of nothing."""
    table = lake.create_table("t", {"a": "BIGINT"}, options={"clustering.columns": "a"})
    table.write_spark(spark.range(0).selectExpr("id AS a"))
    assert table.to_arrow().num_rows == 0
