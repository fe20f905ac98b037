"""Paimon's SQL as its users type it, with the rows that it gives: merge engines, sequence groups, changelogs, row ids.

Statements are in Flink's spelling; Spark's works as well. Every example is checked as it runs:

    python examples/paimon_sql.py
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from typing import Any

import lakebed


@dataclass(frozen=True)
class Example:
    """Statements, and queries with the rows they must give, in any order."""

    title: str
    statements: list[str | tuple[str, list[tuple[Any, ...]]]]
    changes: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    """What a stream sees of a table."""


def _log(producer: str) -> list[str | tuple[str, list[tuple[Any, ...]]]]:
    return [
        f"""CREATE TABLE user_log (
                user_id INT PRIMARY KEY NOT ENFORCED,
                name STRING,
                update_time TIMESTAMP(3)
            ) WITH (
                'bucket' = '1',
                'sequence.field' = 'update_time',
                'changelog-producer' = '{producer}',
                'changelog-producer.row-deduplicate' = '{str(producer == "lookup").lower()}'
            )""",
        "INSERT INTO user_log VALUES (1, 'Alice', '2023-10-01 12:00:00')",
        ("SELECT user_id, name FROM user_log", [(1, "Alice")]),
        "INSERT INTO user_log VALUES (1, 'Bob', '2023-10-01 12:05:00')",
        ("SELECT user_id, name FROM user_log", [(1, "Bob")]),
        "INSERT INTO user_log VALUES (1, 'Charlie', '2023-10-01 12:03:00')",
        ("SELECT user_id, name FROM user_log", [(1, "Bob")]),
    ]


EXAMPLES = {
    "N-04": Example(
        "A row that comes late loses against a newer one, and no change is told of it",
        _log("lookup"),
        {"user_log": [("+I", 1, "Alice"), ("-U", 1, "Alice"), ("+U", 1, "Bob")]},
    ),
    "N-04-input": Example(
        "With the producer `input` a stream sees the rows as they came",
        _log("input"),
        {"user_log": [("+I", 1, "Alice"), ("+I", 1, "Bob"), ("+I", 1, "Charlie")]},
    ),
    "N-16": Example(
        "The order of arrival does not matter, the sequence field does; texts become timestamps",
        [
            """CREATE TABLE my_table (
                id INT PRIMARY KEY NOT ENFORCED, name STRING, update_time TIMESTAMP(3)
            ) WITH ('sequence.field' = 'update_time', 'changelog-producer' = 'input', 'bucket' = '4')""",
            "INSERT INTO my_table VALUES (1, 'Alice', '2023-10-01 12:00:00')",
            "INSERT INTO my_table VALUES (1, 'Bob', '2023-10-01 12:05:00')",
            ("SELECT id, name FROM my_table", [(1, "Bob")]),
            "CREATE TABLE reversed LIKE my_table",
            "INSERT INTO reversed VALUES (1, 'Bob', '2023-10-01 12:05:00')",
            "INSERT INTO reversed VALUES (1, 'Alice', '2023-10-01 12:00:00')",
            ("SELECT id, name FROM reversed", [(1, "Bob")]),
        ],
    ),
    "N-26": Example(
        "Rows have ids that stay with them",
        [
            "CREATE TABLE t (id INT, data STRING) WITH ('row-tracking.enabled' = 'true')",
            "INSERT INTO t VALUES (11, 'a'), (22, 'b')",
            ("SELECT id, data, _ROW_ID, _SEQUENCE_NUMBER FROM t", [(11, "a", 0, 1), (22, "b", 1, 1)]),
        ],
    ),
    "N-39": Example(
        "partial-update: columns come one by one, nulls overwrite nothing",
        [
            """CREATE TABLE goods (
                id INT, price DOUBLE, stock INT, about STRING, PRIMARY KEY (id) NOT ENFORCED
            ) WITH ('merge-engine' = 'partial-update')""",
            "INSERT INTO goods VALUES (1, 23.0, 10, CAST(NULL AS STRING))",
            "INSERT INTO goods VALUES (1, CAST(NULL AS DOUBLE), CAST(NULL AS INT), 'This is a book')",
            "INSERT INTO goods VALUES (1, 25.2, CAST(NULL AS INT), CAST(NULL AS STRING))",
            ("SELECT * FROM goods", [(1, 25.2, 10, "This is a book")]),
        ],
    ),
    "N-42": Example(
        "Sequence groups: each group of columns has its own order",
        [
            """CREATE TABLE T (
                k INT, a INT, b INT, g_1 INT, c INT, d INT, g_2 INT, PRIMARY KEY (k) NOT ENFORCED
            ) WITH (
                'merge-engine' = 'partial-update',
                'fields.g_1.sequence-group' = 'a,b',
                'fields.g_2.sequence-group' = 'c,d'
            )""",
            "INSERT INTO T VALUES (1, 1, 1, 1, 1, 1, 1)",
            "INSERT INTO T VALUES (1, 2, 2, 2, 2, 2, CAST(NULL AS INT))",
            ("SELECT * FROM T", [(1, 2, 2, 2, 1, 1, 1)]),
            "INSERT INTO T VALUES (1, 3, 3, 1, 3, 3, 3)",
            ("SELECT * FROM T", [(1, 2, 2, 2, 3, 3, 3)]),
        ],
    ),
    "N-43": Example(
        "Aggregate functions inside sequence groups",
        [
            """CREATE TABLE T (k INT, a INT, b INT, c INT, d INT, PRIMARY KEY (k) NOT ENFORCED) WITH (
                'merge-engine' = 'partial-update',
                'fields.a.sequence-group' = 'b',
                'fields.b.aggregate-function' = 'first_value',
                'fields.c.sequence-group' = 'd',
                'fields.d.aggregate-function' = 'sum'
            )""",
            "INSERT INTO T VALUES (1, 1, 1, CAST(NULL AS INT), CAST(NULL AS INT))",
            ("SELECT * FROM T", [(1, 1, 1, None, None)]),
            "INSERT INTO T VALUES (1, CAST(NULL AS INT), CAST(NULL AS INT), 1, 1)",
            ("SELECT * FROM T", [(1, 1, 1, 1, 1)]),
            "INSERT INTO T VALUES (1, 2, 2, CAST(NULL AS INT), CAST(NULL AS INT))",
            ("SELECT * FROM T", [(1, 2, 1, 1, 1)]),
            "INSERT INTO T VALUES (1, CAST(NULL AS INT), CAST(NULL AS INT), 2, 2)",
            ("SELECT * FROM T", [(1, 2, 1, 2, 3)]),
        ],
    ),
    "N-44": Example(
        "A default value for what was never written",
        [
            """CREATE TABLE T (k INT, a INT, b INT, c INT, PRIMARY KEY (k) NOT ENFORCED)
                WITH ('merge-engine' = 'partial-update', 'fields.b.default-value' = '0')""",
            "INSERT INTO T VALUES (1, 1, CAST(NULL AS INT), CAST(NULL AS INT))",
            "INSERT INTO T VALUES (1, CAST(NULL AS INT), CAST(NULL AS INT), 1)",
            ("SELECT * FROM T", [(1, 1, 0, 1)]),
        ],
    ),
    "N-45": Example(
        "aggregation: one function for each column",
        [
            """CREATE TABLE MyTable (
                product_id BIGINT, price DOUBLE, sales BIGINT, PRIMARY KEY (product_id) NOT ENFORCED
            ) WITH (
                'merge-engine' = 'aggregation',
                'fields.price.aggregate-function' = 'max',
                'fields.sales.aggregate-function' = 'sum'
            )""",
            "INSERT INTO MyTable VALUES (1, 23.0, 15)",
            "INSERT INTO MyTable VALUES (1, 30.2, 20)",
            ("SELECT * FROM MyTable", [(1, 30.2, 35)]),
        ],
    ),
    "N-46": Example(
        "Functions under their old and new names, and a count that adds up",
        [
            """CREATE TABLE T (
                k INT, f INT, n BIGINT, l STRING, o BOOLEAN, PRIMARY KEY (k) NOT ENFORCED
            ) WITH (
                'merge-engine' = 'aggregation',
                'fields.f.aggregate-function' = 'first_not_null_value',
                'fields.n.aggregate-function' = 'count',
                'fields.l.aggregate-function' = 'listagg',
                'fields.o.aggregate-function' = 'bool_or'
            )""",
            "INSERT INTO T VALUES (1, CAST(NULL AS INT), 7, 'a', false)",
            "INSERT INTO T VALUES (1, 5, 7, 'b', true)",
            "INSERT INTO T VALUES (1, 6, CAST(NULL AS BIGINT), 'c', false)",
            ("SELECT * FROM T", [(1, 5, 2, "a,b,c", True)]),
        ],
    ),
    "N-47": Example(
        "nested_update: rows of one table inside the rows of another",
        [
            "CREATE TABLE orders (order_id BIGINT PRIMARY KEY NOT ENFORCED, user_name STRING, address STRING)",
            """CREATE TABLE sub_orders (
                order_id BIGINT, sub_order_id INT, product_name STRING, price BIGINT,
                PRIMARY KEY (order_id, sub_order_id) NOT ENFORCED
            )""",
            """CREATE TABLE order_wide (
                order_id BIGINT PRIMARY KEY NOT ENFORCED,
                user_name STRING,
                address STRING,
                sub_orders ARRAY<ROW<sub_order_id BIGINT, product_name STRING, price BIGINT>>
            ) WITH (
                'merge-engine' = 'aggregation',
                'fields.sub_orders.aggregate-function' = 'nested_update',
                'fields.sub_orders.nested-key' = 'sub_order_id'
            )""",
            "INSERT INTO orders VALUES (1, 'user1', 'shanghai')",
            "INSERT INTO sub_orders VALUES (1, 1, 'iphone', 799), (1, 2, 'ipad', 699)",
            """INSERT INTO order_wide
                SELECT order_id, user_name, address,
                    CAST(NULL AS ARRAY<ROW<sub_order_id BIGINT, product_name STRING, price BIGINT>>) FROM orders
                UNION ALL
                SELECT order_id, CAST(NULL AS STRING), CAST(NULL AS STRING),
                    ARRAY[ROW(sub_order_id, product_name, price)] FROM sub_orders""",
            (
                """SELECT order_id, user_name, address, s.sub_order_id, s.product_name, s.price
                    FROM order_wide, UNNEST(sub_orders) AS s(sub_order_id, product_name, price)""",
                [(1, "user1", "shanghai", 1, "iphone", 799), (1, "user1", "shanghai", 2, "ipad", 699)],
            ),
        ],
    ),
    "N-48": Example(
        "Retraction: `sum` takes values back, `max` is told to keep what it has",
        [
            """CREATE TABLE T (k INT, total INT, top INT, op STRING, PRIMARY KEY (k) NOT ENFORCED) WITH (
                'merge-engine' = 'aggregation',
                'rowkind.field' = 'op',
                'fields.total.aggregate-function' = 'sum',
                'fields.top.aggregate-function' = 'max',
                'fields.top.ignore-retract' = 'true'
            )""",
            "INSERT INTO T VALUES (1, 5, 5, '+I')",
            "INSERT INTO T VALUES (1, 2, 9, '-D')",
            ("SELECT k, total, top FROM T", [(1, 3, 5)]),
        ],
    ),
    "N-49": Example(
        "first-row: the first row of a key stays, and a stream sees inserts only",
        [
            """CREATE TABLE T (k INT PRIMARY KEY NOT ENFORCED, v STRING)
                WITH ('merge-engine' = 'first-row', 'changelog-producer' = 'lookup')""",
            "INSERT INTO T VALUES (1, 'first')",
            "INSERT INTO T VALUES (1, 'second'), (2, 'other')",
            ("SELECT * FROM T", [(1, "first"), (2, "other")]),
        ],
        {"T": [("+I", 1, "first"), ("+I", 2, "other")]},
    ),
}


def run(example: Example, lake: lakebed.Lake) -> None:
    """Carries out an example, and checks it."""
    for step in example.statements:
        statement, rows = (step, None) if isinstance(step, str) else step
        found = lake.sql(statement).collect()
        if rows is not None:
            assert sorted(map(tuple, found), key=repr) == sorted(rows, key=repr), f"{statement}\ngives {found}"
    for name, events in example.changes.items():
        seen = [tuple(row.values())[: len(events[0])] for row in lake.table(name).changes().to_pylist()]
        assert seen == events, f"the changes of {name} are {seen}"


def main() -> None:
    """All examples, each in a lake of its own."""
    with tempfile.TemporaryDirectory() as home:
        for name, example in EXAMPLES.items():
            run(example, lakebed.connect(f"{home}/{name}"))
            print(f"{name:11} {example.title}")
    print(f"\n{len(EXAMPLES)} examples, all as they should be")


if __name__ == "__main__":
    main()
