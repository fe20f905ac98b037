"""Tables whose buckets follow from an index of keys, written by Spark: every key in one place, whoever writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.spark import write
from lakebed.table.plans import plan_write
from lakebed.write.placement.table_keys import TableKeys

COLUMNS = {"id": "BIGINT NOT NULL", "p": "INT NOT NULL", "v": "INT"}
SMALL = {"dynamic-bucket.target-row-num": "20"}


def frame(spark: Any, start: int, stop: int, partition: str, value: int) -> Any:
    """Rows with these ids, in partitions by an expression."""
    return spark.range(start, stop, 1, 3).selectExpr("id", f"CAST({partition} AS INT) AS p", f"{value} AS v")


def places(table: lakebed.Table) -> dict[int, set[tuple[bytes, int]]]:
    """Where each key is, whatever reads show of it."""
    keys = TableKeys(plan_write(table)[0])
    found: dict[int, set[tuple[bytes, int]]] = {}
    for split in keys.splits(table.latest_snapshot()):
        for known in keys.in_split(split):
            for key in known.keys.to_pylist():
                found.setdefault(key, set()).add((split.partition, split.bucket))
    return found


def rows(table: lakebed.Table) -> dict[int, tuple[int, int]]:
    """Partition and value of each key."""
    found = table.to_arrow().to_pydict()
    assert len(set(found["id"])) == len(found["id"])
    return dict(zip(found["id"], zip(found["p"], found["v"], strict=True), strict=True))


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "first-row"])
def test_keys_move_between_partitions(
    spark: Any, lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """Several tasks share the keys, also in different numbers from write to write; no key is ever in two places."""
    table = lake.create_table(
        "t", COLUMNS, primary_key=["id"], partition_by=["p"], options={"merge-engine": engine, **SMALL}
    )
    wanted: dict[int, tuple[int, int]] = {}
    for number, (start, stop, tasks) in enumerate([(0, 200, 3), (100, 300, 2), (0, 300, 4), (290, 310, 1)]):
        monkeypatch.setattr(write, "parallelism", lambda spark, tasks=tasks: tasks)
        table.write_spark(frame(spark, start, stop, f"(id + {number}) % 3", number))
        for key in range(start, stop):
            old = wanted.get(key)
            new = ((key + number) % 3, number)
            if engine == "deduplicate" or old is None:
                wanted[key] = new
            elif engine == "partial-update":
                wanted[key] = (old[0], number)
        assert rows(table) == wanted
    assert all(len(found) == 1 for found in places(table).values())
    counts: dict[tuple[bytes, int], int] = {}
    for found in places(table).values():
        for place in found:
            counts[place] = counts.get(place, 0) + 1
    assert max(counts.values()) <= 40  # deletes of moved keys make room that only their own assigner knows of
    assert table.check() == []


@pytest.mark.parametrize("partitions", [[], ["p"]])
def test_the_format_writes_dynamic_buckets(spark: Any, lake: lakebed.Lake, partitions: list[str]) -> None:
    """`df.write.format("lakebed")` finds the buckets of keys: upserts and overwrites replace, no staged file stays."""
    key = ["id", *partitions]
    table = lake.create_table("t", COLUMNS, primary_key=key, partition_by=partitions, options=SMALL)
    for value, mode in ((1, "append"), (2, "append"), (3, "overwrite")):
        new = frame(spark, 0, 60 * value if value < 3 else 10, "id % 2", value)
        new.write.format("lakebed").mode(mode).save(table.location)
        found = rows(table)
        assert set(found.values()) == {(0, value), (1, value)}
        assert len(found) == (10 if value == 3 else 60 * value)
    assert not list(Path(table.location).rglob("*-u-*"))


def test_the_format_writes_across_partitions(spark: Any, lake: lakebed.Lake) -> None:
    """Keys that move to another partition leave the one where they were."""
    table = lake.create_table("t", COLUMNS, primary_key=["id"], partition_by=["p"], options=SMALL)
    for value in range(2):
        new = frame(spark, 0, 50, f"(id + {value}) % 2", value)
        new.write.format("lakebed").mode("append").save(table.location)
    assert rows(table) == {key: ((key + 1) % 2, 1) for key in range(50)}
    assert all(len(found) == 1 for found in places(table).values())


@pytest.mark.parametrize("tasks", [1, 8])
@pytest.mark.parametrize(("key", "bucket"), [(["id", "p"], "-1"), (["id"], "-1"), (["id"], "-2")])
def test_the_format_refuses_bulk_in_one_process(
    spark: Any, lake: lakebed.Lake, key: list[str], bucket: str, tasks: int
) -> None:
    """What one task has, or all together, is more than allowed: nothing is committed or left; the hint's ways work."""
    table = lake.create_table("t", COLUMNS, primary_key=key, partition_by=["p"], options={"bucket": bucket})
    few, many = frame(spark, 0, 10, "id % 2", 1), frame(spark, 0, 4000, "id % 2", 2).repartition(tasks)
    few.write.format("lakebed").mode("append").save(table.location)
    before = table.snapshots()
    limited = {"lakebed.one-process-write.max-size": "40 kb"}
    with pytest.raises(Exception, match=r"more than 40 kb of rows(.|\n)*write_spark"):
        many.write.format("lakebed").options(**limited).mode("append").save(table.location)
    assert table.snapshots() == before
    assert len([path for path in Path(table.location).rglob("data-*") if path.is_file()]) == 2
    few.write.format("lakebed").options(**limited).mode("append").save(table.location)
    table.with_options(limited).write_spark(many)
    assert len(rows(table)) == 4000


def test_the_format_lets_rows_wait(spark: Any, lake: lakebed.Lake) -> None:
    """Rows of postponed buckets wait, or go to their buckets at once, as the table wants it."""
    for name, waits in (("a", "true"), ("b", "false")):
        options = {"bucket": "-2", "postpone.batch-write-fixed-bucket": "false" if waits == "true" else "true"}
        table = lake.create_table(name, COLUMNS, primary_key=["id"], options=options)
        frame(spark, 0, 20, "0", 1).write.format("lakebed").mode("append").save(table.location)
        assert table.to_arrow().num_rows == (0 if waits == "true" else 20)
        table.compact(full=True)
        assert len(rows(table)) == 20
