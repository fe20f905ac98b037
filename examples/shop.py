"""The main job, end to end: a shop's PostgreSQL, while people work on it, becomes tables of a lake and what follows.

A real PostgreSQL starts, and a shop opens. One sync copies its tables into the lake and follows every change. Streams
take the changes of the lake's own tables further: into a wide table that two tables fill, and into totals that count
every change with its old value. In the middle of the day the shop adds a column. In the evening lake and database are
compared row by row.

Run it with `make demo`, or with a directory to keep the lake in: python examples/shop.py my_lake [--seconds 30]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table as Grid
from shop_database import Shop

import lakebed
import lakebed.cdc
from lakebed.testing.postgres_server import PostgresServer

CONSOLE = Console(highlight=False)
FOLLOWED = {
    "customers": "SELECT id, name, city, since, notes::text FROM customers ORDER BY id",
    "orders": "SELECT id, customer_id, status, total, version, placed_at, channel FROM orders ORDER BY id",
    "order_lines": "SELECT order_id, line, product, quantity, price FROM order_lines ORDER BY order_id, line",
    "shipments": "SELECT order_id, carrier, weight_kg, version FROM shipments ORDER BY order_id",
}
DERIVED = {
    "order_wide": "SELECT o.id, o.version, o.customer_id, o.status, o.total, s.version, s.carrier"
    " FROM orders o LEFT JOIN shipments s ON s.order_id = o.id ORDER BY o.id",
    "product_sales": "SELECT product, sum(quantity), sum(quantity * price) FROM order_lines GROUP BY 1 ORDER BY 1",
}
WIDE = """
CREATE TABLE shop.order_wide (
    id BIGINT PRIMARY KEY NOT ENFORCED, o_version INT, customer_id BIGINT, status STRING, total DECIMAL(12, 2),
    s_version INT, carrier STRING)
WITH ('bucket' = '2', 'merge-engine' = 'partial-update', 'changelog-producer' = 'lookup',
    'fields.o_version.sequence-group' = 'customer_id,status,total',
    'fields.s_version.sequence-group' = 'carrier',
    'partial-update.remove-record-on-sequence-group' = 'o_version')
"""
SALES = """
CREATE TABLE shop.product_sales (product STRING PRIMARY KEY NOT ENFORCED, units BIGINT, revenue DECIMAL(22, 2))
WITH ('bucket' = '1', 'merge-engine' = 'aggregation', 'changelog-producer' = 'lookup',
    'fields.units.aggregate-function' = 'sum', 'fields.revenue.aggregate-function' = 'sum')
"""
PASSWORD_VARIABLE = "LAKEBED_DEMO_PASSWORD"


def say(text: str) -> None:
    """One step."""
    CONSOLE.print(f"\n[bold]{text}[/bold]")


class Streams:
    """Everything that runs on Spark: the sync, and the queries that follow the tables which it keeps."""

    def __init__(self, lake: lakebed.Lake, server: PostgresServer, folder: Path) -> None:
        self._lake = lake
        self._folder = folder
        options = {
            "host": "127.0.0.1",
            "port": server.port,
            "database": server.database,
            "user": server.user,
            "password_env": PASSWORD_VARIABLE,
            "slot": "lakebed_demo",
            "publication": "lakebed_demo",
        }
        self.run = lakebed.cdc.sync(
            lake,
            "postgres",
            "shop",
            source_options=options,
            checkpoint=folder / "sync",
            trigger="1 second",
            table_conf={"bucket": "2", "changelog-producer": "lookup"},
        )
        self.queries: list[Any] = []

    def follow(self) -> None:
        """The tables that are fed by the changes of others."""
        self._lake.sql(WIDE)
        self._lake.sql(SALES)
        kept = "rowkind <> '-U'"  # the wide table orders by version, so that old rows say nothing to it
        orders = self._lake.table("shop.orders").read_stream().where(kept)
        order_columns = (
            "rowkind, id, version AS o_version, customer_id, status, total, NULL AS s_version, NULL AS carrier"
        )
        self._into("order_wide", orders.selectExpr(*order_columns.split(", ")), "orders")
        shipments = self._lake.table("shop.shipments").read_stream().where(kept)
        shipment_columns = (
            "rowkind, order_id AS id, NULL AS o_version, NULL AS customer_id, NULL AS status, NULL AS total, "
            "version AS s_version, carrier"
        )
        self._into("order_wide", shipments.selectExpr(*shipment_columns.split(", ")), "shipments")
        lines = self._lake.table("shop.order_lines").read_stream()
        sales = ["rowkind", "product", "CAST(quantity AS BIGINT) AS units", "quantity * price AS revenue"]
        self._into("product_sales", lines.selectExpr(*sales), "lines")

    def _into(self, table: str, changes: Any, name: str) -> None:
        place = self._folder / f"{table}-{name}"
        self.queries.append(
            self._lake.table(f"shop.{table}").write_stream(changes, checkpoint=place, trigger="2 seconds")
        )

    def check(self) -> None:
        """Raises what made one of them stop."""
        self.run.check()
        for query in self.queries:
            if not query.isActive and query.exception() is not None:
                raise query.exception()

    def stop(self) -> None:
        """Ends all of them."""
        for query in self.queries:
            query.stop()
        self.run.stop()


def rows_of(lake: lakebed.Lake, table: str, count: int) -> list[tuple[Any, ...]]:
    """All rows of a table of the lake, in the order of its key, which is in front."""
    columns = lake.table(f"shop.{table}").to_arrow().to_pydict()
    return sorted(zip(*list(columns.values())[:count], strict=True))


def differences(lake: lakebed.Lake, server: PostgresServer, tables: dict[str, str]) -> dict[str, int]:
    """Rows that are in one of lake and database but not in the other, by table."""
    found = {}
    for table, query in tables.items():
        there = server.query(query)
        here = rows_of(lake, table, len(there[0]) if there else 0)
        found[table] = len(set(there) ^ set(here)) if there else len(here)
    return found


def until(what: str, is_so: Callable[[], bool], streams: Streams, seconds: float = 600) -> None:
    """Waits, and gives up with a word on what for: late, as other programs may keep the machine busy."""
    end = time.monotonic() + seconds
    while not is_so():
        streams.check()
        if time.monotonic() > end:
            raise SystemExit(f"gave up after {seconds:.0f} s: {what}")
        time.sleep(0.5)


def picture(streams: Streams, shop: Shop, lake: lakebed.Lake) -> Grid:
    """The moment, as a table."""
    now = streams.run.progress
    behind = f"{now.lag_bytes:,} bytes of log behind" if now.lag_bytes is not None else ""
    grid = Grid(title=f"{now.phase}: {shop.transactions:,} transactions, {behind}", title_justify="left")
    for name in ("table", "changes", "commits", "lag", "columns changed"):
        grid.add_column(name, justify="left" if name == "table" else "right")
    for each in now.tables:
        lag = "" if each.lag_seconds is None else f"{each.lag_seconds:.1f} s"
        grid.add_row(each.table, f"{each.rows:,}", str(each.commits), lag, str(each.schema_changes or ""))
    for name in DERIVED:
        snapshot = lake.table(f"shop.{name}").latest_snapshot()
        rows = "" if snapshot is None else f"{snapshot.total_record_count or 0:,}"
        grid.add_row(f"shop.{name}", rows, str(0 if snapshot is None else snapshot.id), "", "")
    return grid


@contextlib.contextmanager
def people_at_work(shop: Shop, pause_seconds: float) -> Iterator[None]:
    """Transactions, one after the other, in a thread of their own."""
    closing, wrong = threading.Event(), []

    def work() -> None:
        try:
            while not closing.wait(pause_seconds):
                shop.work()
        except Exception as error:  # noqa: BLE001 - raised where the people are waited for
            wrong.append(error)

    thread = threading.Thread(target=work, name="people at work")
    thread.start()
    try:
        yield
    finally:
        closing.set()
        thread.join()
    if wrong:
        raise wrong[0]


def watch(seconds: float, streams: Streams, shop: Shop, lake: lakebed.Lake) -> None:
    """Shows how it goes: as a picture that changes on a terminal, as a line now and then elsewhere."""
    end = time.monotonic() + seconds
    if not CONSOLE.is_terminal:
        while time.monotonic() < end:
            time.sleep(min(5, max(0, end - time.monotonic())))
            streams.check()
            now = streams.run.progress
            CONSOLE.print(f"   {shop.transactions:,} transactions, {now.rows:,} changes in the lake ({now.phase})")
        return
    with Live(console=CONSOLE, auto_refresh=False) as live:
        while time.monotonic() < end:
            streams.check()
            live.update(picture(streams, shop, lake), refresh=True)
            time.sleep(0.5)


def day(folder: Path, seconds: float) -> None:
    """From the first customer to the accounts in the evening."""
    began = time.monotonic()
    say("1. A PostgreSQL of our own, and a shop in it")
    with PostgresServer() as server, server.connect() as connection:
        os.environ[PASSWORD_VARIABLE] = server.password
        shop = Shop(connection)
        shop.open_doors()
        rows = (
            server.query("SELECT count(*) FROM orders")[0][0] + server.query("SELECT count(*) FROM order_lines")[0][0]
        )
        CONSOLE.print(
            f"   PostgreSQL {server.query('SHOW server_version')[0][0]}, {rows:,} orders and lines to begin with"
        )

        say("2. Spark starts, and the database flows into the lake while people go on working")
        lake = lakebed.connect(folder / "lake")
        streams = Streams(lake, server, folder)
        try:
            with people_at_work(shop, 0.01):
                until("the first copy", lambda: len(streams.run.progress.tables) >= 3, streams)
                streams.follow()
                watch(seconds / 2, streams, shop, lake)
                say("3. ALTER TABLE orders ADD COLUMN channel: the lake follows, nothing stops")
            shop.add_channel()
            with people_at_work(shop, 0.01):
                watch(seconds / 2, streams, shop, lake)
            say("4. Evening: what the lake has against what the database has, row by row")
            everything = {**FOLLOWED, **DERIVED}
            until("lake and database equal", lambda: not any(differences(lake, server, everything).values()), streams)
            for table, query in everything.items():
                CONSOLE.print(f"   shop.{table}: {len(server.query(query)):,} rows, equal")
        finally:
            streams.stop()
        evening(lake)
    CONSOLE.print(f"   {shop.transactions:,} transactions; {time.monotonic() - began:.0f} s in all")


def evening(lake: lakebed.Lake) -> None:
    """A look at what is there now."""
    say("5. Every change of the totals, with its old value, for jobs downstream")
    told = lake.table("shop.product_sales").changes()
    for row in told.slice(max(0, told.num_rows - 4)).to_pylist():
        CONSOLE.print("   " + "  ".join(str(value) for value in row.values()))
    say("6. The same lake in SQL")
    top = lake.sql(
        "SELECT status, count(*) AS orders, sum(total) AS total FROM shop.order_wide GROUP BY status ORDER BY 1"
    )
    for row in top.collect():
        CONSOLE.print(f"   {row['status']:<8} {row['orders']:>6} {row['total']:>14,}")


def browser_command(folder: str) -> str:
    """What to type to see the lake in a browser, from where this was started."""
    program = Path(sys.executable).with_name("lakebed")
    words = [_typed(str(program))] if program.exists() else [_typed(sys.executable), "-m", "lakebed"]
    return shlex.join([*words, "--warehouse", f"{folder}/lake", "ui"])


def _typed(path: str) -> str:
    """A path as short as it can be typed here."""
    absolute = Path(path).absolute()
    return str(absolute.relative_to(Path.cwd())) if absolute.is_relative_to(Path.cwd()) else str(absolute)


def main() -> None:
    """Runs it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", nargs="?", help="where to keep the lake; without it, nothing is kept")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long people work")
    where = "show metrics to Prometheus there, such as at 127.0.0.1:9464; default: $LAKEBED_METRICS"
    parser.add_argument("--metrics", default=os.environ.get("LAKEBED_METRICS"), metavar="HOST:PORT", help=where)
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        if arguments.metrics:
            endpoint = stack.enter_context(lakebed.metrics.serve(arguments.metrics))
            CONSOLE.print(f"metrics: {endpoint.url}")
        folder = arguments.folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="lakebed-shop-"))
        day(Path(folder), arguments.seconds)
    say("What next")
    if arguments.folder:
        CONSOLE.print("   Look at the lake in a browser:", browser_command(arguments.folder), soft_wrap=True)
    else:
        again = shlex.join([_typed(sys.executable), _typed(__file__), "my_lake"])
        CONSOLE.print("   This demo cleans up behind itself. To keep the lake:", again, soft_wrap=True)
        CONSOLE.print("   and to look at it in a browser:", browser_command("my_lake"), soft_wrap=True)
    CONSOLE.print("   Your own database: lakebed cdc postgres --help; the tables: examples/tour.py")


if __name__ == "__main__":
    sys.exit(main())
