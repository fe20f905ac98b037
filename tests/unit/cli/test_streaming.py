"""`lakebed sql` in streaming mode: as a process that runs until Ctrl-C, and at the prompt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.patience import PATIENCE_S

import lakebed

from .conftest import Run
from .terminal import Terminal

MODE = "SET 'execution.runtime-mode' = 'streaming'; SET 'execution.checkpointing.interval' = '50 ms';"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a lake is with orders and a table for their sums."""
    lakebed.connect(tmp_path / "lake").sql(
        "CREATE TABLE orders (id BIGINT, city STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1', "
        "'changelog-producer' = 'lookup'); INSERT INTO orders VALUES (1, 'Oslo'), (2, 'Bergen');"
        "CREATE TABLE sums (city STRING, n BIGINT, PRIMARY KEY (city) NOT ENFORCED) WITH ('bucket' = '1')"
    )
    return tmp_path / "lake"


@contextmanager
def _begun(place: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "lakebed", "sql", *arguments],
        env={**os.environ, "LAKEBED_WAREHOUSE": str(place)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _lines_until(process: subprocess.Popen[str], part: str) -> list[str]:
    assert process.stdout is not None
    found = []
    for line in process.stdout:
        found.append(line.rstrip("\n"))
        if part in line:
            return found
    raise AssertionError(f"{part} was not printed: {found}")


def _interrupted(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """How it ends after Ctrl-C: its status, and what it prints from then on."""
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in errors
    return process.returncode, out, errors


def test_a_select_until_it_is_interrupted(place: Path) -> None:
    """Lines of text without a terminal, what each row does in front; Ctrl-C ends it with one line."""
    with _begun(place, f"{MODE} SELECT city, count(*) AS n FROM orders GROUP BY city") as process:
        lines = _lines_until(process, "Bergen")
        lines += _lines_until(process, "Oslo") if not any("Oslo" in line for line in lines) else []
        assert "op  city    n" in lines
        assert "+I  Oslo    1" in lines
        lakebed.connect(place).sql("INSERT INTO orders VALUES (3, 'Oslo')")
        assert _lines_until(process, "+U")[-2:] == ["-U  Oslo    1", "+U  Oslo    2"]
        assert _interrupted(process) == (0, "", "ended after 4 rows\n")


def test_what_comes_behind_a_select_is_not_run(place: Path) -> None:
    """Ctrl-C ends the whole script, with the status of one that was stopped; rows as JSON have their kinds."""
    text = f"{MODE} SELECT city FROM orders; DROP TABLE orders"
    with _begun(place, text, "--format", "json") as process:
        lines = _lines_until(process, "Bergen")
        assert json.loads(lines[-1]) == {"op": "+I", "city": "Bergen"}
        assert _interrupted(process) == (130, "", "ended after 2 rows\nstopped\n")
    assert lakebed.connect(place).has_table("orders")


def test_inserts_of_a_file_run_until_ctrl_c(place: Path, tmp_path: Path) -> None:
    """One line says that they run here; each step is a line; at the end it is said how each fared."""
    (tmp_path / "job.sql").write_text(f"{MODE}\nINSERT INTO sums SELECT city, count(*) FROM orders GROUP BY city;\n")
    with _begun(place, "-f", str(tmp_path / "job.sql")) as process:
        assert "2 inserted" in _lines_until(process, "2 inserted")[-1]
        lakebed.connect(place).sql("INSERT INTO orders VALUES (3, 'Oslo')")
        _lines_until(process, "1 updated")
        status, out, errors = _interrupted(process)
    assert (status, errors) == (0, "1 job: there is no cluster to hand it to, so it runs here; Ctrl-C ends it\n")
    assert "2 steps, 2 inserted, 1 updated, 0 deleted" in out
    rows = lakebed.connect(place).query("SELECT * FROM sums ORDER BY city").fetchall()
    assert [tuple(row) for row in rows] == [("Bergen", 1), ("Oslo", 2)]


def test_what_ends_by_itself_ends_the_command(place: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A LIMIT, also that of the command; an INSERT whose source has ended; a statement that fails behind one."""
    monkeypatch.setenv("LAKEBED_WAREHOUSE", str(place))
    source = (
        "CREATE TEMPORARY TABLE gen (id BIGINT) WITH ('connector' = 'datagen', 'fields.id.kind' = 'sequence', "
        "'fields.id.start' = '1', 'fields.id.end' = '20')"
    )
    assert run("sql", f"{MODE} {source}; SELECT id FROM gen LIMIT 3").lines[-3:] == ["+I  1", "+I  2", "+I  3"]
    assert run("sql", f"{MODE} SELECT id FROM orders", "--limit", "1").lines[-1] == "+I  1"
    filled = run("sql", f"{MODE} {source}; CREATE TABLE copy (id BIGINT); INSERT INTO copy SELECT id FROM gen")
    assert filled.status == 0
    assert "20 inserted" in filled.lines[-1]
    failed = run("sql", f"{MODE} INSERT INTO sums SELECT city, count(*) FROM orders GROUP BY city; DELETE FROM orders")
    assert failed.status == 2
    assert "error: DELETE is not for streaming mode\n  -> SET 'execution.runtime-mode' = 'batch' first" in failed.err


def test_at_the_prompt(place: Path) -> None:
    """Jobs run behind the prompt, a SELECT in front of it; failures are said, and leaving ends the jobs."""
    with Terminal("sql", lake=place) as terminal:
        terminal.until("default> ")
        terminal.type(f"{MODE}\n")
        terminal.until("50 ms")
        terminal.type("INSERT INTO sums SELECT city, count(*) FROM orders GROUP BY city;\n")
        terminal.until("RUNNING")
        terminal.type("SELECT n, city FROM sums;\n")
        terminal.until("rows as they come; Ctrl-C ends it")
        terminal.until("+I  1  Oslo")
        lakebed.connect(place).sql("INSERT INTO orders VALUES (3, 'Oslo')")
        terminal.until("-U  1  Oslo")
        terminal.until("+U  2  Oslo")
        terminal.type("\x03")
        terminal.until("ended after 4 rows")
        terminal.until("default> ")
        terminal.type("SHOW JOBS;\n")
        terminal.until("INSERT INTO default.sums")
        terminal.until("default> ")
        lakebed.connect(place).sql("DROP TABLE sums; INSERT INTO orders VALUES (4, 'Oslo')")
        while "fails: table `default.sums`" not in terminal.screen:
            terminal.type("USE default;\n")
            terminal.until("default> ")
        terminal.type("exit\n")
        terminal.until("ending default.sums-")
        assert terminal.ended() == 0
        assert "Traceback" not in terminal.screen
