"""`lakebed compact --follow`: a process beside writers, which ends cleanly when it is told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from tests.patience import PATIENCE_S

import lakebed

from .conftest import Run

OPTIONS = {"write-only": "true", "num-sorted-run.compaction-trigger": "3", "bucket": "1"}


def _new(lake: lakebed.Lake, name: str) -> lakebed.Table:
    return lake.create_table(name, {"k": "INT NOT NULL"}, primary_key=["k"], options=OPTIONS)


def _write(table: lakebed.Table, count: int) -> None:
    for _ in range(count):
        table.write(pa.table({"k": pa.array([1, 2], pa.int32())}))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_follows_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    """The tables of a database are compacted as they are written to; a signal ends it well."""
    lake = lakebed.connect(tmp_path)
    lake.create_database("shop")
    first = _new(lake, "shop.a")
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "lakebed", "--warehouse", str(tmp_path), "--format", "json"),
            *("compact", "shop.*", "--follow", "--interval", "10 ms"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as job:
        try:
            assert job.stdout is not None
            for _ in range(2):
                _write(first, 4)
                told = json.loads(job.stdout.readline())
                assert told["table"] == "shop.a"
                _wait_for(lambda: len(first.scan().files) <= 3)
        finally:
            job.send_signal(number)
        out, err = job.communicate(timeout=PATIENCE_S)
    assert (job.returncode, err) == (0, ""), out
    assert first.to_arrow().num_rows == 2


def _wait_for(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_all_tables_of_a_database(run: Run, lake: lakebed.Lake) -> None:
    """`db.*` names them all, also without --follow."""
    ran = run("compact", "shop.*", "--full", "--format", "json")
    assert {done["table"] for done in ran.json} == {f"shop.{name}" for name in lake.tables("shop")}


def test_refused_together(run: Run) -> None:
    """--follow goes by the table's rules; an interval that is none is told."""
    assert "--full" in run("compact", "shop.orders", "--follow", "--full").err
    assert "soon" in run("compact", "shop.orders", "--follow", "--interval", "soon").err
    assert "nope" in run("compact", "shop.nope", "--follow").err
