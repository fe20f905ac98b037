"""A tour of Lakebed in one minute: upserts, time travel, schema evolution, changes, filters, SQL on Spark.

Run it with `make demo`, or with a directory to keep the tables in: python examples/tour.py my_warehouse
"""

from __future__ import annotations

import sys
import tempfile
import time

import pyarrow as pa
import pyarrow.compute as pc

import lakebed


def say(text: str) -> None:
    """One step of the tour."""
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")


def show(table: pa.Table) -> None:
    """A small table, aligned."""
    columns = [[name, *("" if v is None else str(v) for v in table[name].to_pylist())] for name in table.column_names]
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        print("   " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def tour(warehouse: str) -> None:
    """The steps, each checked as it goes."""
    lake = lakebed.connect(warehouse)

    say("1. A primary-key table: the newest row of a key wins")
    orders = lake.create_table(
        "orders",
        {"id": "BIGINT NOT NULL", "customer": "STRING", "state": "STRING", "amount": "DECIMAL(10, 2)"},
        primary_key=["id"],
        options={"bucket": "4"},
    )
    first = pa.table(
        {
            "id": [1, 2, 3],
            "customer": ["Ada", "Ben", "Cleo"],
            "state": ["new", "new", "new"],
            "amount": pa.array(["19.90", "5.00", "120.00"]).cast(pa.decimal128(10, 2)),
        }
    )
    orders.write(first)
    changes = pa.table(
        {
            "id": [1, 3],
            "customer": ["Ada", "Cleo"],
            "state": ["paid", "cancelled"],
            "amount": pa.array(["19.90", "120.00"]).cast(pa.decimal128(10, 2)),
            "op": ["+U", "-D"],
        }
    )
    orders.write(changes, row_kind="op")
    now = orders.to_arrow().sort_by("id")
    show(now)
    assert now["id"].to_pylist() == [1, 2]
    assert now["state"].to_pylist() == ["paid", "new"]

    say("2. Time travel: the same table before the second commit")
    before = orders.at(snapshot=1).to_arrow().sort_by("id")
    show(before)
    assert before.num_rows == 3

    say("3. What changed since then, row by row")
    changed = orders.changes(since=1).sort_by("id")
    show(changed)
    assert changed["rowkind"].to_pylist() == ["+U", "-D"]

    say("4. The schema grows; old files are not touched")
    orders.alter(
        lakebed.AddColumn("note", "STRING"),
        lakebed.RenameColumn("state", "status"),
        lakebed.UpdateColumnType("amount", "DECIMAL(14, 2)"),
    )
    evolved = orders.to_arrow().sort_by("id")
    show(evolved)
    assert evolved.column_names == ["id", "customer", "status", "amount", "note"]

    say("5. Two million events into a partitioned table, and a filter that opens one file of many")
    events = lake.create_table(
        "events", {"day": "DATE", "id": "BIGINT", "value": "DOUBLE"}, partition_by=["day"], comment="append only"
    )
    count = 2_000_000
    ids = pa.array(range(count), pa.int64())
    days = pc.cast(pc.add(pc.divide(ids, 100_000), 20_000), pa.int32()).cast(pa.date32())
    began = time.perf_counter()
    events.write(pa.table({"day": days, "id": ids, "value": pc.cast(ids, pa.float64())}))
    written = time.perf_counter()
    wanted = (pc.field("id") >= 1_234_500) & (pc.field("id") < 1_234_510)
    found = events.to_arrow(columns=["id", "day"], filter=wanted)
    print(f"   wrote {count:,} rows in {written - began:.2f} s")
    print(f"   found {found.num_rows} of them in {(time.perf_counter() - written) * 1000:.0f} ms,", end=" ")
    print(f"opening {len(events.scan(wanted).files)} of {len(events.scan().files)} files")
    assert found.num_rows == 10
    assert len(events.scan(wanted).files) == 1

    say("6. A mistake is refused before anything is written, and says what to do")
    try:
        orders.write(pa.table({"id": [None], "customer": ["Eve"], "status": ["new"], "amount": [None], "note": [None]}))
    except lakebed.errors.InvalidData as error:
        print("   " + str(error).replace("\n", "\n   "))
    else:
        raise AssertionError("a null key was taken")

    say("7. Paimon's SQL, in Flink's or Spark's spelling; Spark starts now, because this needs it")
    lake.sql("""
        CREATE TABLE totals (customer STRING PRIMARY KEY NOT ENFORCED, orders BIGINT, spent DECIMAL(14, 2)) WITH (
            'merge-engine' = 'aggregation',
            'fields.orders.aggregate-function' = 'sum',
            'fields.spent.aggregate-function' = 'sum',
            'changelog-producer' = 'lookup')""")
    began = time.perf_counter()
    lake.sql("INSERT INTO totals SELECT customer, 1, amount FROM orders")
    lake.sql("INSERT INTO totals VALUES ('Ada', 1, 30.10)")
    lake.sql("UPDATE orders SET status = 'sent' WHERE status = 'paid'")
    totals = lake.sql(
        "SELECT t.*, o.status FROM totals t JOIN orders o ON t.customer = o.customer ORDER BY 1"
    ).toArrow()
    print(f"   start of Spark, three statements and a join: {time.perf_counter() - began:.0f} s")
    show(totals)
    assert totals["spent"].to_pylist()[0] == 50
    assert totals["status"].to_pylist() == ["sent", "new"]

    say("8. Every change of the totals, with its old value, for jobs downstream")
    told = lake.table("totals").changes(since=0)
    show(told)
    assert told["rowkind"].to_pylist()[-2:] == ["-U", "+U"]

    say("Any Paimon reader opens these tables: Flink, Spark, Trino, Doris, StarRocks, pypaimon.")
    print(f"   They lie in {warehouse}" if len(sys.argv) > 1 else "   (This tour cleans up behind itself.)")
    print("   Next: README.md, docs/reference/sql.md, examples/paimon_sql.py, and the command lakebed --help.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        tour(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory(prefix="lakebed-tour-") as folder:
            tour(folder)
