"""A process that inserts rows of sources is killed again and again: each row is in its target once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from tests.faults.row_insert_worker import ROWS, TARGETS, inserts, main

import lakebed

_ROOT = Path(__file__).parents[2]
_KILLS = 3


def test_killed_inserts_count_each_row_once(tmp_path: Path) -> None:
    """Kills fall between reading, writing, committing and what follows; the next process goes on from what is there."""
    chance = random.Random(11)
    files = tmp_path / "files"
    files.mkdir()
    for number in range(6):
        rows = range(number * ROWS // 6, (number + 1) * ROWS // 6)
        (files / f"{number}.csv").write_text("".join(f"{each + 1},x{each}\n" for each in rows))
    lake = lakebed.connect(tmp_path / "warehouse")
    lake.sql("CREATE TABLE made (id BIGINT, v STRING); CREATE TABLE files (id BIGINT, v STRING)")
    steps = 0
    for _ in range(_KILLS):
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.row_insert_worker", str(tmp_path / "warehouse"), str(files)],
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": f"{_ROOT / 'src'}{os.pathsep}{_ROOT}"},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert worker.stdout is not None
        for _ in range(chance.randint(1, 9)):
            steps += bool(worker.stdout.readline())
        time.sleep(chance.random() * 0.03)
        worker.kill()
        worker.wait()
        worker.stdout.close()
    assert steps
    assert 0 < lakebed.connect(tmp_path / "warehouse").table("made").count() < ROWS
    main(str(tmp_path / "warehouse"), str(files))
    again = lakebed.connect(tmp_path / "warehouse")
    inserts(again, files)
    for target, source in TARGETS.items():
        wanted = again.query(f"SELECT * FROM {source} ORDER BY id").fetchall()
        assert len(wanted) == ROWS
        assert again.query(f"SELECT * FROM {target} ORDER BY id").fetchall() == wanted
