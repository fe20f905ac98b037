"""Statements of Flink as they are written there, run for ever against a real server: at rest, all is equal."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lakebed
from lakebed import Lake
from lakebed.pipelines.pipeline import Pipeline

_PATIENCE_S = 240.0

_TARGETS = """
SET 'execution.runtime-mode' = 'streaming';
CREATE TABLE users (user_id BIGINT, username STRING, last_update TIMESTAMP(3), PRIMARY KEY (user_id) NOT ENFORCED)
  WITH ('sequence.field' = 'last_update', 'bucket' = '1');
INSERT INTO users SELECT id AS user_id, name AS username, update_time AS last_update FROM cdc_users;
CREATE TABLE order_wide (order_id BIGINT PRIMARY KEY NOT ENFORCED, user_name STRING, address STRING,
    sub_orders ARRAY<ROW<sub_order_id BIGINT, product_name STRING, price BIGINT>>)
  WITH ('merge-engine' = 'aggregation', 'fields.sub_orders.aggregate-function' = 'nested_update',
    'fields.sub_orders.nested-key' = 'sub_order_id', 'fields.sub_orders.ignore-retract' = 'true', 'bucket' = '2');
BEGIN STATEMENT SET;
INSERT INTO order_wide SELECT order_id, user_name, address,
    CAST(NULL AS ARRAY<ROW<sub_order_id BIGINT, product_name STRING, price BIGINT>>) FROM cdc_orders
  UNION ALL
  SELECT order_id, CAST(NULL AS STRING), CAST(NULL AS STRING), ARRAY[ROW(sub_order_id, product_name, price)]
  FROM cdc_sub_orders;
END;
CREATE MATERIALIZED TABLE sums AS
  SELECT o.user_name, count(*) AS n, sum(s.price) AS price
  FROM cdc_orders o JOIN cdc_sub_orders s ON o.order_id = s.order_id GROUP BY o.user_name;
"""
_COLUMNS = {
    "users": "id BIGINT, name STRING, update_time TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED",
    "orders": "order_id BIGINT, user_name STRING, address STRING, PRIMARY KEY (order_id) NOT ENFORCED",
    "sub_orders": "order_id BIGINT, sub_order_id BIGINT, product_name STRING, price BIGINT, "
    "PRIMARY KEY (order_id, sub_order_id) NOT ENFORCED",
}


def statements(connector: str, options: dict[str, str]) -> str:
    """The file of a pipeline: sources of one server, and what is made of them."""
    spelled = {key: value.replace("'", "''") for key, value in options.items()}
    shared = ", ".join(f"'{key}' = '{value}'" for key, value in spelled.items())
    sources = [
        f"CREATE TEMPORARY TABLE cdc_{name} ({columns}) WITH ('connector' = '{connector}', {shared}, "
        f"'table-name' = '{name}');"
        for name, columns in _COLUMNS.items()
    ]
    return "\n".join([*sources, _TARGETS])


def prepare(execute: Callable[[str], Any]) -> None:
    """The tables of the source, with rows to copy."""
    execute("CREATE TABLE users (id bigint primary key, name varchar(100), update_time timestamp(3))")
    execute("CREATE TABLE orders (order_id bigint primary key, user_name varchar(100), address varchar(100))")
    execute(
        "CREATE TABLE sub_orders (order_id bigint, sub_order_id bigint, product_name varchar(100), price bigint, "
        "primary key (order_id, sub_order_id))"
    )
    for n in range(30):
        execute(f"INSERT INTO users VALUES ({n}, 'u{n}', '2024-01-01 00:00:00')")
        execute(f"INSERT INTO orders VALUES ({n}, 'u{n % 5}', 'a{n}')")
        execute(f"INSERT INTO sub_orders VALUES ({n}, 1, 'p{n}', {n})")


def change(execute: Callable[[str], Any], pick: random.Random, moment: list[int]) -> None:
    """A few rows come, change and go. Times of users only grow: the table keeps the row with the latest."""
    for _ in range(pick.randrange(1, 12)):
        moment[0] += 1
        at = f"2024-01-01 {moment[0] // 3600 % 24:02}:{moment[0] // 60 % 60:02}:{moment[0] % 60:02}"
        number, part = pick.randrange(40), pick.randrange(3)
        deed = pick.choice(["user", "order", "sub order", "sub order", "new"])
        if deed == "user":
            execute(f"UPDATE users SET name = 'v{moment[0]}', update_time = '{at}' WHERE id = {number}")
            execute(f"DELETE FROM users WHERE id = {pick.randrange(20, 60)}")
        elif deed == "order":
            name = f"u{pick.randrange(5)}"
            execute(f"UPDATE orders SET address = 'b{moment[0]}', user_name = '{name}' WHERE order_id = {number}")
        elif deed == "sub order":
            execute(
                f"UPDATE sub_orders SET price = {pick.randrange(100)} WHERE order_id = {number} AND sub_order_id = 1"
            )
        else:
            execute(f"INSERT INTO users VALUES ({moment[0] + 1000}, 'w', '{at}')")
            execute(f"INSERT INTO sub_orders VALUES ({number}, {moment[0] + 10}, 'q{moment[0]}', {part})")


Query = Callable[[str], list[tuple[Any, ...]]]


def differences(lake: Lake, query: Query) -> str | None:
    """The first thing that is not as in the database; None if all is."""
    if not all(lake.has_table(name) for name in ("users", "order_wide", "sums")):
        return "tables are missing"
    for name, here, there in (
        ("users", "SELECT * FROM users", "SELECT id, name, update_time FROM users"),
        (
            "sums",
            "SELECT user_name, n, CAST(price AS BIGINT) FROM sums",
            "SELECT o.user_name, count(*), sum(s.price) FROM orders o JOIN sub_orders s ON o.order_id = s.order_id "
            "GROUP BY o.user_name",
        ),
        (
            "parts",
            "SELECT order_id, s.sub_order_id, s.product_name, s.price FROM order_wide LATERAL VIEW explode(sub_orders) "
            "e AS s",
            "SELECT order_id, sub_order_id, product_name, price FROM sub_orders",
        ),
        (
            "addresses",
            "SELECT order_id, user_name, address FROM order_wide WHERE address IS NOT NULL",
            "SELECT order_id, user_name, address FROM orders",
        ),
    ):
        ours = sorted(tuple(row) for row in lake.query(here).fetchall())
        theirs = sorted(tuple(int(v) if i and isinstance(v, int) else v for i, v in enumerate(r)) for r in query(there))
        if [tuple(map(str, row)) for row in ours] != [tuple(map(str, row)) for row in theirs]:
            return f"{name}: {set(ours) ^ set(theirs)}"
    return None


def wait_until_equal(lake: Lake, query: Query, is_well: Callable[[], Any] = lambda: None) -> None:
    """Waits for the lake to be as the database is."""
    end = time.monotonic() + _PATIENCE_S
    while (found := differences(lake, query)) is not None:
        is_well()
        assert time.monotonic() < end, found
        time.sleep(0.2)


def follow(place: Path, text: str, execute: Callable[[str], Any], query: Query, spark: Any) -> None:
    """Copied, followed, stopped and gone on with: the tables of the lake are what the statements say."""
    lake = lakebed.connect(place / "lake", spark=spark)
    pick, moment = random.Random(3), [0]
    for _ in range(2):
        with Pipeline(lake, "shop").sql(text).start(interval=0.2) as run:
            for _ in range(2):
                change(execute, pick, moment)
                wait_until_equal(lake, query, lambda run=run: _no_failure(run))  # type: ignore[misc]
        change(execute, pick, moment)  # while it does not run
    caught = Pipeline(lake, "shop").sql(text).run(once=True)
    assert all(state.error is None for state in caught.states.values())
    assert differences(lake, query) is None
    again = Pipeline(lake, "shop").sql(text).run(once=True)
    assert {name: state.steps for name, state in again.states.items()} == dict.fromkeys(again.states, 0)


def _no_failure(run: Any) -> None:
    failed = {name: state.error for name, state in run.states.items() if state.error is not None}
    assert not failed, failed


def lose_and_double_nothing(place: Path, text: str, execute: Callable[[str], Any], query: Query) -> None:
    """Kills a pipeline again and again, and looks at the end."""
    file = place / "shop.sql"
    file.write_text(text)
    lake = lakebed.connect(place / "lake")
    pick, moment = random.Random(5), [0]
    for _ in range(int(os.environ.get("LAKEBED_TEST_KILLS", "50"))):
        process = _started(place, file)
        end = time.monotonic() + pick.uniform(5, 30)
        while time.monotonic() < end and process.poll() is None:
            change(execute, pick, moment)
            time.sleep(pick.uniform(0, 0.5))
        assert process.poll() is None, "it ended by itself"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    process = _started(place, file)
    try:
        wait_until_equal(lake, query, lambda: process.poll() is None)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _started(place: Path, file: Path) -> subprocess.Popen[bytes]:
    log = (place / "log").open("ab")
    return subprocess.Popen(
        [sys.executable, "-m", "lakebed", "--warehouse", str(place / "lake"), "run", str(file), "--interval", "200 ms"],
        stdout=log,
        stderr=log,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
