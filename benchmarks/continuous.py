"""Continuous SQL from end to end: PostgreSQL, synced tables, a join and grouped sums that follow them.

    python -m benchmarks.continuous [--orders 500000] [--customers 20000] [--rate 2000] [--seconds 60]
                                    [--flink HOME] [--only-flink] [--small] [--json]

`fill` is the time from the start of the process until join and sums are equal to the same queries in the database; CPU
is that of all its processes, without the server's. `lag` is the time from a commit in the database until the snapshot
that shows it, under a steady load of changes in transactions of ten: of the synced table, of the join, of the sums.
`moved` changes the join key of 100,000 orders in one transaction, and counts the rows that are wrong afterwards.
`killed` is the time from `kill -9` of the process until changes come through again, and the longest lag of that time.

`--flink` is the directory of a Flink 1.20 with the connectors of Paimon and PostgreSQL in its `lib`; it runs the same
queries behind ours, not at the same time. At every rest both are compared with the database.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import lakebed
from benchmarks.flink_home import FlinkCluster
from benchmarks.views import cpu_seconds
from lakebed.testing.postgres_server import PostgresServer

SERVER_SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "16GB", "checkpoint_timeout": "1h"}
CITIES = 50
PROBE = 1_000_000_000
"""The order whose amount counts up: where it is seen, everything before it is."""
PROBE_CITY = "probe"
PER_TRANSACTION = 10
PROBES_PER_S = 5
PATIENCE_S = 600.0

WIDE = "SELECT o.id, o.amount, o.customer, c.name, c.city FROM {orders} AS o JOIN {customers} AS c ON o.customer = c.id"
SUMS = (
    "SELECT c.city, count(*) AS n, CAST(sum(o.amount) AS BIGINT) AS amount FROM {orders} AS o "
    "JOIN {customers} AS c ON o.customer = c.id GROUP BY c.city"
)

Rows = list[tuple[Any, ...]]


class Shop:
    """Orders and customers in a database, and what happens to them."""

    def __init__(self, server: PostgresServer, orders: int, customers: int) -> None:
        self.server, self.orders, self.customers = server, orders, customers
        self.commits: list[tuple[int, float]] = []
        """What the probe was set to, and when that was committed."""

    def fill(self) -> None:
        """The tables before anything follows them."""
        self.server.execute(
            "CREATE TABLE customers (id bigint PRIMARY KEY, name text, city text)",
            "CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint, amount bigint, note text)",
            "ALTER TABLE customers REPLICA IDENTITY FULL",
            "ALTER TABLE orders REPLICA IDENTITY FULL",
            f"INSERT INTO customers SELECT x, 'name ' || x, 'city ' || x % {CITIES} FROM "
            f"generate_series(1, {self.customers}) x",
            f"INSERT INTO customers VALUES (0, 'probe', '{PROBE_CITY}')",
            f"INSERT INTO orders SELECT x, 1 + x % {self.customers}, x % 1000, md5(x::text) FROM "
            f"generate_series(1, {self.orders}) x",
            f"INSERT INTO orders VALUES ({PROBE}, 0, 0, 'probe')",
            "VACUUM ANALYZE",
            "CHECKPOINT",
        )

    def ask(self, query: str) -> Rows:
        """Rows of a query over the database."""
        text = query.format(orders="orders", customers="customers")
        with self.server.connect() as connection:
            return [tuple(row) for row in connection.execute(text).fetchall()]

    def probe(self) -> None:
        """Counts up, and remembers when that was committed."""
        number = len(self.commits) + 1
        self.server.execute(f"UPDATE orders SET amount = {number} WHERE id = {PROBE}")
        self.commits.append((number, time.time()))

    def load(self, rate: int, until: float) -> None:
        """Changes at a rate, in transactions of ten: eight orders change, one goes, one comes."""
        step, due, last = PER_TRANSACTION / rate, time.time(), self.orders
        with self.server.connect() as connection:
            connection.autocommit = True
            while time.time() < until:
                first = 1 + (last * 7919) % self.orders
                last += 1
                connection.execute(
                    f"WITH a AS (UPDATE orders SET amount = amount + 1 WHERE id BETWEEN {first} AND {first + 7}), "
                    f"b AS (DELETE FROM orders WHERE id = {last - 200}) "
                    f"INSERT INTO orders VALUES ({last}, {1 + last % self.customers}, {last % 1000}, 'new')"
                )
                due += step
                time.sleep(max(0.0, due - time.time()))
        self.orders = max(self.orders, last)

    def move(self, rows: int) -> None:
        """Many orders get another customer in one transaction."""
        self.server.execute(f"UPDATE orders SET customer = 1 + (customer + 7) % {self.customers} WHERE id <= {rows}")


class Engine(Protocol):
    """Who follows the database."""

    name: str

    def start(self) -> None:
        """Begins, or goes on."""
        ...

    def kill(self) -> None:
        """Ends at once, as a machine does that loses its power."""
        ...

    def stop(self) -> None:
        """Ends."""
        ...

    @property
    def lake(self) -> lakebed.Lake:
        """Where its tables are."""
        ...

    def cpu(self) -> float:
        """CPU seconds of all its processes."""
        ...


class Ours:
    """`lakebed run` with a file of statements."""

    name = "lakebed"

    def __init__(self, place: Path, server: PostgresServer, interval: str) -> None:
        self._place, self._interval = place, interval
        self._process: subprocess.Popen[bytes] | None = None
        self.lake = lakebed.connect(place / "lake")
        options = (
            f"'connector' = 'postgres-cdc', 'hostname' = '127.0.0.1', 'port' = '{server.port}', "
            f"'username' = '{server.user}', 'password' = '{server.password}', 'database-name' = '{server.database}', "
            "'schema-name' = 'public', 'slot.name' = 'ours'"
        )
        self.file = place / "shop.sql"
        self.file.write_text(
            "CREATE TEMPORARY TABLE orders (id BIGINT, customer BIGINT, amount BIGINT, note STRING, "
            f"PRIMARY KEY (id) NOT ENFORCED) WITH ({options}, 'table-name' = 'orders');\n"
            "CREATE TEMPORARY TABLE customers (id BIGINT, name STRING, city STRING, PRIMARY KEY (id) NOT ENFORCED) "
            f"WITH ({options}, 'table-name' = 'customers');\n"
            f"CREATE MATERIALIZED TABLE wide AS {WIDE.format(orders='orders', customers='customers')};\n"
            f"CREATE MATERIALIZED TABLE sums AS {SUMS.format(orders='orders', customers='customers')};\n"
        )

    def start(self) -> None:
        """Begins, or goes on."""
        log = (self._place / "log").open("ab")
        words = ["--warehouse", str(self._place / "lake"), "run", str(self.file), "--interval", self._interval]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lakebed", *words], stdout=log, stderr=log, start_new_session=True
        )

    def kill(self) -> None:
        """Its whole group."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """As Ctrl-C does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()

    def cpu(self) -> float:
        """Of the process and those below it."""
        assert self._process is not None
        return cpu_seconds(self._process.pid)


# --- what is measured ------------------------------------------------------------------------------------------------


def wrong_rows(engine: Engine, shop: Shop, name: str, query: str) -> int:
    """Rows of a table that are not as the database has them, or are missing."""
    if not engine.lake.has_table(name):
        return len(shop.ask(query))
    columns = {"wide": "id, amount, customer, name, city", "sums": "city, n, amount"}[name]
    ours = {tuple(row) for row in engine.lake.query(f"SELECT {columns} FROM {name}").fetchall()}
    theirs = set(shop.ask(query))
    return len(theirs - ours) + len(ours - theirs)


def wait_until_equal(engine: Engine, shop: Shop, *, patience_s: float = PATIENCE_S) -> tuple[float, dict[str, int]]:
    """How long that took, and what is wrong when patience is over or nothing changes any more."""
    began = time.time()
    while True:
        seen = _probe_at(engine, "sums")
        if seen is not None and seen >= len(shop.commits):
            wrong = {name: wrong_rows(engine, shop, name, query) for name, query in (("sums", SUMS), ("wide", WIDE))}
            if not any(wrong.values()):
                return time.time() - began, wrong
            if time.time() - began > patience_s:
                return time.time() - began, wrong
        elif time.time() - began > patience_s:
            return time.time() - began, {"sums": -1, "wide": -1}
        time.sleep(0.25)


def _probe_at(engine: Engine, name: str) -> int | None:
    """What the newest snapshot of a table shows of the probe."""
    lake = engine.lake
    if not lake.has_table(name) or lake.table(name).latest_snapshot() is None:
        return None
    rows = lake.query(_PROBES[name].format(name=name)).fetchall()
    return int(rows[0][0]) if rows else None


_PROBES = {
    "sums": f"SELECT amount FROM {{name}} WHERE city = '{PROBE_CITY}'",
    "wide": f"SELECT amount FROM {{name}} WHERE id = {PROBE}",
}


def lags(engine: Engine, shop: Shop, since: float) -> dict[str, list[float]]:
    """For each probe that was committed since a moment: seconds until a snapshot showed it, by table."""
    found: dict[str, list[float]] = {}
    commits = [(number, moment) for number, moment in shop.commits if moment >= since]
    for name in _PROBES:
        table = engine.lake.table(name)
        steps = [(each.id, each.time_millis / 1000) for each in table.snapshots() if each.time_millis / 1000 >= since]
        shown = []
        for number, moment in steps:
            at = f"{name} /*+ OPTIONS('scan.snapshot-id' = '{number}') */"
            rows = engine.lake.query(_PROBES[name].format(name=at)).fetchall()
            shown.append((int(rows[0][0]) if rows else 0, moment))
        seconds, place = [], 0
        for number, moment in commits:
            while place < len(shown) and shown[place][0] < number:
                place += 1
            if place == len(shown):
                break
            seconds.append(shown[place][1] - moment)
        found[name] = seconds
    return found


def quantiles(values: list[float]) -> dict[str, float]:
    """The middle, the 99th of a hundred, and the worst."""
    if not values:
        return {}
    ordered = sorted(values)
    return {
        "p50": round(ordered[len(ordered) // 2], 2),
        "p99": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], 2),
        "max": round(ordered[-1], 2),
        "probes": len(ordered),
    }


@contextmanager
def under_load(shop: Shop, rate: int, seconds: float) -> Iterator[None]:
    """Changes and probes go on meanwhile, at least for some seconds."""
    until = time.time() + seconds
    over = threading.Event()

    def probes() -> None:
        while not over.is_set():
            shop.probe()
            over.wait(1 / PROBES_PER_S)

    threads = [threading.Thread(target=shop.load, args=(rate, until)), threading.Thread(target=probes)]
    for each in threads:
        each.start()
    yield
    threads[0].join()
    over.set()
    threads[1].join()


def measure(engine: Engine, shop: Shop, rate: int, seconds: float, moved: int, say: Callable[..., None]) -> None:
    """All of it."""
    shop.probe()
    began = time.time()
    engine.start()
    _, wrong = wait_until_equal(engine, shop)
    say(engine.name, "fill", seconds=round(time.time() - began, 1), cpu=round(engine.cpu(), 1), wrong=wrong)
    cpu, began = engine.cpu(), time.time()
    with under_load(shop, rate, seconds):
        pass
    cores = round((engine.cpu() - cpu) / (time.time() - began), 2)
    took, wrong = wait_until_equal(engine, shop)
    for name, found in lags(engine, shop, began + 2).items():
        say(engine.name, f"lag of {name}", **quantiles(found), cores=cores, wrong=wrong[name])
    shop.move(moved)
    shop.probe()
    took, wrong = wait_until_equal(engine, shop, patience_s=90)
    say(engine.name, "moved", rows=moved, seconds=round(took, 1), wrong=wrong)
    with under_load(shop, rate, seconds):
        time.sleep(5)
        killed = time.time()
        engine.kill()
        engine.start()
    took, wrong = wait_until_equal(engine, shop)
    firsts = [each.time_millis / 1000 for each in engine.lake.table("sums").snapshots()]
    first = min((each for each in firsts if each > killed + 0.5), default=killed)
    worst = {name: max(found, default=0.0) for name, found in lags(engine, shop, killed - 1).items()}
    say(engine.name, "killed", first=round(first - killed, 1), worst=round(max(worst.values()), 1), wrong=wrong)
    engine.stop()


def main() -> None:
    """Measures ours, and Flink if it is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=500_000)
    parser.add_argument("--customers", type=int, default=20_000)
    parser.add_argument("--rate", type=int, default=2_000, help="changes a second")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--moved", type=int, default=100_000)
    parser.add_argument("--interval", default="200 ms")
    parser.add_argument("--flink", type=Path, help="the directory of a Flink with the connectors that it needs")
    parser.add_argument("--only-flink", action="store_true")
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.small:
        given.orders, given.customers, given.rate, given.seconds, given.moved = 5_000, 500, 200, 8, 1_000

    def say(who: str, what: str, **figures: Any) -> None:
        line = json.dumps({"benchmark": "continuous", "engine": who, "measure": what, **figures})
        told = ", ".join(f"{key} {value}" for key, value in figures.items())
        print(line if given.json else f"{who:<8} {what:<12} {told}", flush=True)

    def run(make: Callable[[Path, PostgresServer], Engine]) -> None:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
            server = PostgresServer(settings=SERVER_SETTINGS).start()
            try:
                shop = Shop(server, given.orders, given.customers)
                shop.fill()
                measure(make(Path(place), server), shop, given.rate, given.seconds, given.moved, say)
            finally:
                server.close()

    if not given.only_flink:
        run(lambda place, server: Ours(place, server, given.interval))
    if given.flink is not None:
        run(lambda place, server: FlinkCluster(given.flink, place, server, WIDE, SUMS))


if __name__ == "__main__":
    main()
