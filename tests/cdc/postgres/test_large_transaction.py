"""A transaction of a million rows passes in pieces: memory stays bounded in the task and in the planning process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.postgres.following import Follower

from lakebed.cdc.sources.postgres.names import Offset
from lakebed.cdc.sources.postgres.state import SourceState

ROOT = Path(__file__).parents[3]
ROWS = 1_000_000
READ = """
import json, sys
from lakebed.cdc.envelope import decode_rows
from lakebed.cdc.sources.postgres.names import Offset
from lakebed.cdc.sources.postgres.planner import StreamPlanner, read_piece
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.state import SourceState
settings, state = PostgresSettings.from_text(sys.argv[1]), SourceState(sys.argv[2])
planner, rows = StreamPlanner(settings, state), 0
for piece in planner.pieces(Offset.from_json(json.loads(sys.argv[3])), Offset.from_json(json.loads(sys.argv[4]))):
    for batch in read_piece(settings, state, piece):
        for payload in batch.column("payload").to_pylist():
            rows += decode_rows(payload).num_rows
planner.stop()
with open("/proc/self/status") as status:
    peak_kib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(rows, peak_kib // 1024)
"""


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mode", ["peek", "replication"])
def test_a_million_rows_in_one_transaction(database: Any, tmp_path: Path, mode: str) -> None:
    """Reading it takes less than 1 GiB, in either way."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, a text, b text, c numeric(12, 2), d timestamptz)")
    settings = database.settings(mode=mode, wait_ms=600_000)
    follower = Follower(settings, tmp_path)
    start = follower.planner.initial()
    database.execute(
        "INSERT INTO t SELECT i, md5(i::text), repeat(md5(i::text), 4), i / 7.0, now() "
        f"FROM generate_series(1, {ROWS}) i"
    )
    (end,) = database.query("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn")
    offsets = [json.dumps(offset.to_json()) for offset in (Offset(1, start.lsn), Offset(1, int(end[0])))]
    _pretend_copied(follower.state, start.lsn)
    follower.planner.stop()
    shown = subprocess.run(
        [sys.executable, "-c", READ, settings.to_text(), str(tmp_path / "state"), *offsets],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"},
    ).stdout.split()
    assert int(shown[0]) == ROWS
    assert int(shown[1]) < 1024, shown


def _pretend_copied(state: SourceState, lsn: int) -> None:
    """The table was empty when it was copied."""
    state.store(0, "1:1:", lsn, iter(()))
