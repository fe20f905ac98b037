"""A Spark driver that does one kind of work over and over, until somebody kills it.

    python -m tests.spark.driver_worker WAREHOUSE WORK

It says `ready` once Spark is warm, then a line for each round.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import lakebed
from lakebed.table.table import Table

ROWS = 400
COLUMNS = {"id": "INT NOT NULL", "p": "INT NOT NULL", "v": "BIGINT"}
OPTIONS = {"bucket": "2", "num-sorted-run.compaction-trigger": "3", "snapshot.num-retained.min": "5"}


def create(lake: lakebed.Lake) -> Table:
    """A table in which every row has the same value, whatever was done so far."""
    table = lake.create_table("t", COLUMNS, primary_key=["id", "p"], partition_by=["p"], options=OPTIONS)
    lake.sql(_insert("INTO", 0))
    table.create_tag("first")
    return table


def _insert(verb: str, value: int) -> str:
    rows = f"SELECT cast(id as int) AS id, cast(id % 2 as int) AS p, cast({value} as bigint) AS v FROM range({ROWS})"
    return f"INSERT {verb} t {rows}"


def insert_overwrite(lake: lakebed.Lake, number: int) -> None:
    """Replaces everything."""
    lake.sql(_insert("OVERWRITE", number))


def merge_into(lake: lakebed.Lake, number: int) -> None:
    """Changes every row."""
    lake.sql(
        "MERGE INTO t USING (SELECT id, p, v FROM t) AS s ON t.id = s.id AND t.p = s.p "
        "WHEN MATCHED THEN UPDATE SET v = s.v + 1"
    )


def compact(lake: lakebed.Lake, number: int) -> None:
    """Rewrites files; rows stay as they are."""
    lake.sql(_insert("INTO", number))
    lake.sql("CALL sys.compact(table => 't')")


def expire(lake: lakebed.Lake, number: int) -> None:
    """Removes snapshots and files."""
    lake.sql(_insert("INTO", number))
    lake.sql("CALL sys.expire_snapshots(table => 't', retain_max => 2, retain_min => 1)")


def remove_orphans(lake: lakebed.Lake, number: int) -> None:
    """Leaves files that nothing refers to, and removes them."""
    lake.sql(_insert("OVERWRITE", number))
    clean(lake)


def clean(lake: lakebed.Lake) -> None:
    """Removes what nothing refers to, however young it is."""
    time.sleep(0.01)
    lake.table("t").remove_orphan_files(older_than=time.time_ns() // 1_000_000 - 1)


def everything(lake: lakebed.Lake, number: int) -> None:
    """One after the other."""
    KINDS[number % len(KINDS)](lake, number)


KINDS: list[Callable[[lakebed.Lake, int], None]] = [insert_overwrite, merge_into, compact, expire, remove_orphans]
WORK = {work.__name__: work for work in (*KINDS, everything)}


def main(warehouse: str, work: str) -> None:
    """Works for ever."""
    lake = lakebed.connect(warehouse)
    lake.sql("SELECT count(*) FROM t").collect()
    print("ready", flush=True)
    number = 0
    while True:
        number += 1
        WORK[work](lake, number)
        print(number, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
