"""From a real PostgreSQL into the lake: how fast, how late, at what cost.

    python -m benchmarks.cdc [--changes 2000000] [--copy-rows 5000000] [--lag-seconds 60] [--small] [--json]

One table of 12 columns, about 260 bytes a change, goes into a table of 8 buckets; server and lake share this machine.
`copy` is the initial copy. `backlog` are changes that wait in the log, one half in transactions of 10 (updates,
inserts, deletes), the other half in a single one, and are drained from end to end: from the start of the query until
the last of them is visible in the lake. The compaction that this makes due comes behind; `ended` is with it, and CPU
too. `server` is the time in which the server by itself decodes the same changes and sends them to nobody, before and
after; `debezium` is Debezium's engine in an environment of its own, which only receives and counts them, from its first
event to its last. `lag` is the time from a commit in the database until it is visible in the lake, under a steady load.
`memory` is the most that Python processes have at a time while a single transaction of many rows goes through: those
that take part, and all of them, with those that Spark keeps in readiness; Spark's JVM is told apart. CPU is that of all
our processes, and of Python among them. At every rest the lake is compared with the database.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.compat.judges.environments import JudgeUnavailable, is_at_hand

from benchmarks.peers import peer_python
from benchmarks.spark_peers import TICKS, Worker
from lakebed.testing.postgres_server import PostgresServer

TABLE = """CREATE TABLE t (id bigint PRIMARY KEY, a int, b int, c text, d text, e numeric(12, 2), f timestamptz,
  g timestamp, h bool, i double precision, j date, k varchar(40))"""
ROWS = """SELECT x, x % 1000, x % 77, md5(x::text), md5(x::text) || md5((x + 1)::text), x / 7.0, now(),
  now()::timestamp, x % 2 = 0, random(), current_date, 'item ' || x FROM generate_series({first}, {last}) x"""
TRANSACTION = 10
AT_WORK_S = 0.1
LOAD_PER_S, LOAD_TRANSACTIONS_PER_S = 5000, 100
SERVER_SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "16GB", "checkpoint_timeout": "1h"}
PEEK = (
    "SELECT count(*) FROM pg_logical_slot_peek_binary_changes(%s, NULL, NULL, 'proto_version', '1', "
    "'publication_names', 'lakebed')"
)


class Database:
    """The server, and what happens in its table."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self._last_id = 0

    def fill(self, rows: int) -> None:
        """The table before anything is followed."""
        self.server.execute(TABLE, f"INSERT INTO t {self._new(rows)}", "VACUUM ANALYZE t", "CHECKPOINT")

    def change(self, changes: int) -> None:
        """The backlog."""
        rounds, quarter = changes // 2 // TRANSACTION, changes // 4
        first = self._last_id + 1
        self._last_id += 3 * rounds
        self.server.execute(
            "SET synchronous_commit = off",
            f"DO $$ BEGIN FOR n IN 0..{rounds - 1} LOOP "
            "UPDATE t SET a = a + 1, f = now() WHERE id BETWEEN 10 * n + 1 AND 10 * n + 6; "
            "DELETE FROM t WHERE id = 10 * n + 7; "
            f"INSERT INTO t {ROWS.format(first=f'{first} + 3 * n', last=f'{first} + 3 * n + 2')}; "
            "COMMIT; END LOOP; END $$",
        )
        begin = changes // 2
        self.server.execute(
            f"DO $$ BEGIN UPDATE t SET b = b + 1, c = md5(c) WHERE id > {begin} AND id <= {begin + quarter}; "
            f"INSERT INTO t {self._new(quarter)}; END $$"
        )

    def insert_at_once(self, rows: int) -> None:
        """One transaction."""
        self.server.execute(f"INSERT INTO t {self._new(rows)}")

    def load(self, seconds: float) -> list[tuple[float, int]]:
        """A steady load; when each transaction was committed, and a position behind it."""
        commits = []
        each = LOAD_PER_S // LOAD_TRANSACTIONS_PER_S
        with self.server.connect() as connection:
            connection.execute("SET synchronous_commit = off")
            begin = time.time()
            for number in range(int(seconds * LOAD_TRANSACTIONS_PER_S)):
                time.sleep(max(0.0, begin + number / LOAD_TRANSACTIONS_PER_S - time.time()))
                half = each // 2
                with connection.transaction():
                    connection.execute(f"INSERT INTO t {self._new(each - half)}".encode())
                    connection.execute(
                        f"UPDATE t SET a = a + 1 WHERE id > {(number * half) % 1000} AND "
                        f"id <= {(number * half) % 1000 + half}".encode()
                    )
                row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
                commits.append((time.time(), int(row[0])))
        return commits

    def totals(self) -> list[int]:
        """What must be the same in the lake."""
        return [int(value) for value in self.server.query("SELECT count(*), sum(id), sum(a) FROM t")[0]]

    def decode_s(self) -> float:
        """Seconds in which the server decodes what waits."""
        begin = time.perf_counter()
        self.server.query(PEEK, "measure")
        return time.perf_counter() - begin

    def slot(self, name: str) -> None:
        """Makes a slot at this place of the log."""
        self.server.query("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", name)

    def _new(self, rows: int) -> str:
        first, self._last_id = self._last_id + 1, self._last_id + rows
        return ROWS.format(first=first, last=self._last_id)


class Measured:
    """What one step of the follower costs: wall seconds, and CPU seconds of its processes by kind."""

    def __init__(self, worker: Worker, database: Database, warehouse: Path) -> None:
        self._worker = worker
        self._database = database
        self._warehouse = warehouse

    def step(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Runs it, and compares the lake with the database."""
        before, begin = self.cpu_s(), time.time()
        batches = self._worker.step(do, **arguments)[0]
        ended = time.time() - begin
        visible = max(when for _, when in shown(self._warehouse)) - begin
        found = {"visible_s": visible, "ended_s": ended, "batches": batches, "cpu_s": _less(self.cpu_s(), before)}
        self.compare()
        return found

    def compare(self) -> None:
        """Ends the run if lake and database differ."""
        lake, database = self._worker.step("totals")[0], self._database.totals()
        if lake != database:
            raise SystemExit(f"the lake has {lake}, the database {database}")

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds so far: Python and JVM of ours, and the server's."""
        server = self._database.server._process
        ours = processes(self._worker.pid)
        theirs = processes(server.pid if server is not None else 0)
        java = [one for one in ours if one.is_java]
        return {
            "python": sum(one.own_s + one.ended_s for one in ours if not one.is_java)
            + sum(one.ended_s for one in java),
            "jvm": sum(one.own_s for one in java),
            "server": sum(one.own_s + one.ended_s for one in theirs),
        }


class Process:
    """A process at one moment: its CPU seconds, and those of its children that have ended."""

    def __init__(self, entry: Path) -> None:
        # The name of the program may hold anything, but it ends with the last bracket.
        head, _, tail = (entry / "stat").read_text().rpartition(")")
        fields = tail.split()
        self.pid, self.parent = int(entry.name), int(fields[1])
        self.is_java = head.endswith("(java")
        self.own_s = (int(fields[11]) + int(fields[12])) / TICKS
        self.ended_s = (int(fields[13]) + int(fields[14])) / TICKS

    def memory_mib(self) -> float:
        """What it has for itself, and its share of what it has together with others."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    return int(line.split()[1]) / 1024
        return 0.0


def processes(root: int) -> list[Process]:
    """A process and all below it."""
    known = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):  # ended meanwhile
                known.append(Process(entry))
    below = {root}
    while grown := {one.pid for one in known if one.parent in below and one.pid not in below}:
        below |= grown
    return [one for one in known if one.pid in below]


@contextlib.contextmanager
def peak_memory(root: int) -> Iterator[dict[str, float]]:
    """The most that processes below one have at a time, in MiB, until the block ends."""
    peak = {"at_work": 0.0, "python": 0.0, "jvm": 0.0}
    is_over = threading.Event()
    idle_s = {one.pid: one.own_s for one in processes(root)}

    def look() -> None:
        while True:
            sizes = [(one, one.memory_mib()) for one in processes(root)]
            for name, size in (
                ("at_work", sum(size for one, size in sizes if not one.is_java and _works(one, idle_s))),
                ("python", sum(size for one, size in sizes if not one.is_java)),
                ("jvm", sum(size for one, size in sizes if one.is_java)),
            ):
                peak[name] = max(peak[name], size)
            if is_over.wait(0.1):
                return

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peak
    finally:
        is_over.set()
        thread.join()


def _works(one: Process, idle_s: dict[int, float]) -> bool:
    """Whether a process has done more than to answer a question."""
    return one.own_s - idle_s.get(one.pid, 0.0) > AT_WORK_S


def _less(after: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    return {name: round(value - before[name], 2) for name, value in after.items()}


def shown(warehouse: Path) -> list[tuple[int, float]]:
    """Positions in the log that snapshots of the table have come to, and when."""
    seen = []
    for path in (warehouse / "default.db" / "t" / "snapshot").glob("snapshot-*"):
        body = json.loads(path.read_text())
        position = (body.get("properties") or {}).get("lakebed.cdc.position")
        if position is not None:
            high, _, low = json.loads(position)["lsn"].partition("/")
            seen.append(((int(high, 16) << 32) + int(low, 16), path.stat().st_mtime))
    return sorted(seen)


def lags(warehouse: Path, commits: list[tuple[float, int]]) -> list[float]:
    """Seconds from each commit until the first snapshot that has it."""
    seen = shown(warehouse)
    positions = np.array([position for position, _ in seen])
    # What is visible stays visible: a later snapshot may lie at the same position.
    times = np.array([moment for _, moment in seen])
    found = np.searchsorted(positions, [position for _, position in commits])
    return [float(times[place]) - when for place, (when, _) in zip(found, commits, strict=True) if place < len(times)]


def debezium(server: PostgresServer, home: Path, changes: int) -> dict[str, Any]:
    """What Debezium's engine takes to receive the changes."""
    properties = {
        "name": "engine",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "topic.prefix": "bench",
        "database.hostname": "127.0.0.1",
        "database.port": server.port,
        "database.user": server.user,
        "database.password": server.password,
        "database.dbname": server.database,
        "plugin.name": "pgoutput",
        "slot.name": "debezium",
        "publication.name": "lakebed",
        "publication.autocreate.mode": "disabled",
        "table.include.list": "public.t",
        "snapshot.mode": "no_data",
        "tombstones.on.delete": "false",
        "max.batch.size": 20_480,
        "max.queue.size": 81_920,
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
    }
    home.mkdir(exist_ok=True)
    worker = str(Path(__file__).with_name("cdc_debezium.py"))
    given = json.dumps({"changes": changes, "properties": properties})
    done = subprocess.run(
        [peer_python("debezium"), "-P", worker, given], capture_output=True, text=True, check=False, cwd=home
    )
    if done.returncode or not done.stdout:
        raise JudgeUnavailable(f"Debezium's engine failed: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    if found["events"] < changes:
        raise JudgeUnavailable(f"Debezium's engine gave {found['events']} of {changes} changes")
    return found


def measure(given: argparse.Namespace, home: Path) -> Iterator[dict[str, Any]]:
    """All parts, one after the other."""
    warehouse = home / "lake"
    warehouse.mkdir()
    with (
        PostgresServer(settings=SERVER_SETTINGS) as server,
        Worker("lakebed", warehouse, None, "cdc_worker.py") as worker,
    ):
        database = Database(server)
        database.fill(given.copy_rows)
        follower = Measured(worker, database, warehouse)
        copy = follower.step("once", url=server.url)
        yield {"part": "copy", "rows": given.copy_rows, **copy, "rows_per_s": given.copy_rows / copy["visible_s"]}

        for slot in ("measure", "debezium"):
            database.slot(slot)
        database.change(given.changes)
        before = follower.cpu_s()["server"]
        decode_s = [database.decode_s()]
        decode_cpu_s = follower.cpu_s()["server"] - before
        drained = follower.step("once", url=server.url)
        decode_s.append(database.decode_s())
        rate, server_rate = given.changes / drained["visible_s"], 2 * given.changes / sum(decode_s)
        yield {"part": "server", "wall_s": decode_s, "cpu_s": decode_cpu_s, "changes_per_s": server_rate}
        ours = drained["cpu_s"]["python"] + drained["cpu_s"]["jvm"]
        yield {
            "part": "backlog",
            "changes": given.changes,
            **drained,
            "changes_per_s": rate,
            "of_server": server_rate / rate,
            "cpu_us_per_change": ours / given.changes * 1e6,
            "python_us_per_change": drained["cpu_s"]["python"] / given.changes * 1e6,
        }
        if "debezium" not in given.leave_out:
            yield {"part": "debezium", **_peer(server, home, given, rate)}

        worker.step("follow", url=server.url)
        database.load(given.lag_seconds / 10)  # until everything is warm
        before = follower.cpu_s()
        commits = database.load(given.lag_seconds)
        spent = _less(follower.cpu_s(), before)
        while len(found := lags(warehouse, commits)) < len(commits):
            worker.step("check")
            time.sleep(0.1)
        batches = worker.step("stop")[0]
        follower.compare()
        p50, p99 = np.percentile(found, [50, 99])
        span = commits[-1][0] - commits[0][0]
        yield {
            "part": "lag",
            "changes_per_s": len(commits) * LOAD_PER_S / LOAD_TRANSACTIONS_PER_S / span,
            "p50_s": p50,
            "p99_s": p99,
            "cpu_s": spent,
            "cores": (spent["python"] + spent["jvm"]) / span,
            "batches": len(batches),
            "batch_ms": float(np.median([batch["triggerExecution"] for batch in batches])),
        }

        rows = given.changes // 2
        database.insert_at_once(rows)
        with peak_memory(worker.pid) as peak:
            large = follower.step("once", url=server.url)
        yield {"part": "memory", "rows": rows, **large, "peak_mib": peak}


def _peer(server: PostgresServer, home: Path, given: argparse.Namespace, rate: float) -> dict[str, Any]:
    if given.small and not is_at_hand("debezium"):
        return {"missing": "its environment has not been built yet"}
    try:
        found = debezium(server, home / "debezium", given.changes)
    except JudgeUnavailable as reason:
        return {"missing": str(reason)}
    peer = found["events"] / found["wall_s"]
    return {**found, "changes_per_s": peer, "ours_is_times": rate / peer}


def told(part: dict[str, Any]) -> str:
    """A part for people."""
    name = part["part"]
    if "missing" in part:
        return f"{name:9} is not measured: {part['missing']}"
    if name == "memory":
        peak = part["peak_mib"]
        return (
            f"memory    {part['rows']:,} rows in one transaction: Python {peak['at_work']:,.0f} MiB at most "
            f"({peak['python']:,.0f} with idle processes), JVM {peak['jvm']:,.0f} MiB, {part['visible_s']:.1f} s"
        )
    if name == "lag":
        return (
            f"lag       p50 {part['p50_s']:.2f} s  p99 {part['p99_s']:.2f} s at {part['changes_per_s']:,.0f} "
            f"changes/s, {part['cores']:.2f} cores of ours, batches of {part['batch_ms']:.0f} ms"
        )
    if name == "server":
        before, after = part["wall_s"]
        costs = f"{before:.1f} s before, {after:.1f} s after, CPU {part['cpu_s']:.1f} s"
        return f"server    {part['changes_per_s']:>9,.0f} changes/s by itself  ({costs})"
    if name == "debezium":
        return (
            f"debezium  {part['changes_per_s']:>9,.0f} changes/s received and counted, "
            f"{part['cpu_s'] / part['events'] * 1e6:.1f} us of CPU each; ours is {part['ours_is_times']:.1f} times that"
        )
    cpu = part["cpu_s"]
    costs = f"{part['visible_s']:.1f} s, ended after {part['ended_s']:.1f} s; CPU: Python {cpu['python']:.1f} s"
    costs += f", JVM {cpu['jvm']:.1f} s, server {cpu['server']:.1f} s"
    if name == "copy":
        return f"copy      {part['rows_per_s']:>9,.0f} rows/s  ({costs})"
    return (
        f"backlog   {part['changes_per_s']:>9,.0f} changes/s  ({costs}), {part['cpu_us_per_change']:.1f} us of CPU "
        f"each (Python {part['python_us_per_change']:.1f}); {part['of_server']:.2f} times what the server takes alone"
    )


def main() -> None:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--changes", type=int, default=2_000_000)
    parser.add_argument("--copy-rows", type=int, default=5_000_000)
    parser.add_argument("--lag-seconds", type=float, default=60)
    parser.add_argument("--leave-out", action="append", default=[], choices=["debezium"])
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    given = parser.parse_args()
    if given.small:
        given.changes, given.copy_rows, given.lag_seconds = 8_000, 10_000, 3
    with tempfile.TemporaryDirectory() as home:
        for part in measure(given, Path(home)):
            print(json.dumps({"benchmark": "cdc", **part}) if given.json else told(part), flush=True)


if __name__ == "__main__":
    main()
