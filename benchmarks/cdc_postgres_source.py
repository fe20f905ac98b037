"""How fast changes of a real PostgreSQL are read and decoded, against the server's own decoding in the same run.

    python -m benchmarks.cdc_postgres_source [--changes 500000] [--small] [--json]

Rows of 12 columns, about 260 bytes a change, in one transaction and in transactions of 10. `server` is the server's
time to decode its log (changes are counted there and sent to nobody). `client` is CPU time of this process: fetching
through SQL, decoding to columns of text, casting to the lake's types and packing into the envelope; `stream` receives
through a replication connection instead. `copy` is the initial copy. `peak` is the memory of a process that reads the
whole transaction, beside what it had before.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lakebed.cdc.sources.postgres.names import Offset
from lakebed.cdc.sources.postgres.planner import StreamPlanner, read_piece
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.state import SourceState
from lakebed.testing.postgres_server import PostgresServer

TABLE = """CREATE TABLE t (id bigint PRIMARY KEY, a int, b int, c text, d text, e numeric(12, 2), f timestamptz,
  g timestamp, h bool, i double precision, j date, k varchar(40))"""
ROWS = """SELECT x, x % 1000, x % 77, md5(x::text), md5(x::text) || md5((x + 1)::text), x / 7.0, now(),
  now()::timestamp, x % 2 = 0, random(), current_date, 'item ' || x FROM generate_series({first}, {last}) x"""
READ = """
import sys
from lakebed.cdc.sources.postgres.planner import LogPiece, read_piece
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.state import SourceState
def peak_mib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
settings, state = PostgresSettings.from_text(sys.argv[1]), SourceState(sys.argv[2])
before = peak_mib()
for batch in read_piece(settings, state, LogPiece(int(sys.argv[3]), int(sys.argv[4]), None, {}, ())):
    pass
print(before, peak_mib())
"""


def flush_lsn(server: PostgresServer) -> int:
    """Where the server's log ends."""
    return int(server.query("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn")[0][0])


def read(settings: PostgresSettings, state: SourceState, start: Offset, end: Offset) -> dict[str, float]:
    """CPU and wall seconds of reading a batch."""
    planner = StreamPlanner(settings, state)
    wall, cpu, size = time.perf_counter(), time.process_time(), 0
    for piece in planner.pieces(start, end):
        for batch in read_piece(settings, state, piece):
            size += batch.nbytes
    found = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu, "mib": size / 2**20}
    planner.stop()
    return found


def measure(changes: int) -> dict[str, Any]:
    """All measurements."""
    with PostgresServer() as server, tempfile.TemporaryDirectory() as home:
        result: dict[str, Any] = {"changes": changes, "version": server.query("SHOW server_version")[0][0]}
        server.execute(TABLE, f"INSERT INTO t {ROWS.format(first=-changes, last=-1)}", "ANALYZE t")
        settings = PostgresSettings.of(server.url, mode="peek")
        state = SourceState(f"{home}/state")
        planner = StreamPlanner(settings, state)
        start = planner.initial()
        parts = len(state.parts())
        result["copy"] = read(settings, state, start, Offset(parts, start.lsn)) | {"parts": parts}
        planner.stop()
        for name in ("one", "small"):
            begin = flush_lsn(server)
            if name == "one":
                server.execute(f"INSERT INTO t {ROWS.format(first=1, last=changes)}")
            else:
                server.execute(
                    f"DO $$ BEGIN FOR n IN 0..{changes // 10 - 1} LOOP UPDATE t SET a = a + 1 "
                    "WHERE id BETWEEN 10 * n + 1 AND 10 * n + 10; COMMIT; END LOOP; END $$",
                )
            end = flush_lsn(server)
            wall = time.perf_counter()
            server.query(
                "SELECT count(*) FROM pg_logical_slot_peek_binary_changes(%s, NULL, NULL, 'proto_version', '1', "
                "'publication_names', 'lakebed')",
                settings.slot,
            )
            server_s = time.perf_counter() - wall
            found = read(settings, state, Offset(parts, begin), Offset(parts, end))
            kept = PostgresSettings.of(server.url, mode="replication")
            stream = read(kept, SourceState(f"{home}/state"), Offset(parts, begin), Offset(parts, end))
            result[name] = {"server_s": server_s, "client": found, "stream": stream}
            if name == "one":
                arguments = [settings.to_text(), str(Path(home) / "state"), str(begin), str(end)]
                shown = subprocess.run(
                    [sys.executable, "-c", READ, *arguments], capture_output=True, text=True, check=True
                )
                before, peak = map(float, shown.stdout.split())
                result[name]["peak_mib"] = {"before": before, "peak": peak}
            server.query("SELECT pg_replication_slot_advance(%s, pg_current_wal_flush_lsn())", settings.slot)
        return result


def main() -> None:
    """Runs and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=500_000)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    result = measure(20_000 if given.small else given.changes)
    if given.json:
        print(json.dumps(result))
        return
    changes = result["changes"]
    print(f"PostgreSQL {result['version']}, {changes:,} changes")
    copy = result["copy"]
    rate, wall = changes / copy["cpu_s"], changes / copy["wall_s"]
    print(f"copy    {rate:>12,.0f} rows/s of client CPU  {wall:>12,.0f} rows/s wall")
    for name in ("one", "small"):
        found = result[name]
        print(f"{name:7} {changes / found['server_s']:>12,.0f} changes/s by the server itself")
        for way in ("client", "stream"):
            rate, wall = changes / found[way]["cpu_s"], changes / found[way]["wall_s"]
            print(f"  {way:6}{rate:>12,.0f} changes/s of client CPU  {wall:>12,.0f} changes/s wall")
    memory = result["one"]["peak_mib"]
    print(f"peak    {memory['peak']:.0f} MiB, {memory['before']:.0f} MiB before")


if __name__ == "__main__":
    main()
