"""Ctrl-C at any moment: one line, no traceback, and the status that shells expect."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lakebed
from lakebed.cli.main import COMMANDS, main

from .terminal import Terminal

ARGUMENTS = {
    "sql": ("SHOW TABLES",),
    "tables": ("--long",),
    "diff": ("t", "0"),
    "tail": ("t",),
    "tag": ("list", "t"),
    "cdc": ("files", "/nowhere"),
    "options": (),
    "ui": ("--no-browser",),
    "check": (),
    "repair": (),
}
INTERRUPTED = 130
STATUSES = (INTERRUPTED, -signal.SIGINT)
"""The second, which shells show as the first: Python ends so if it was interrupted while it read its own source."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a lake is with a small table."""
    lakebed.connect(tmp_path / "lake").sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    return tmp_path / "lake"


@pytest.mark.parametrize("command", COMMANDS)
def test_while_a_command_starts(command: str, place: Path) -> None:
    """Whatever it imports or opens just then. Who is done already is done."""
    arguments = ARGUMENTS.get(command, ("t",))
    delay_s = (0.12, 0.4)[list(COMMANDS).index(command) % 2]
    process = subprocess.Popen(
        # Python's own first moments are not ours: they are over when the first line is written.
        [sys.executable, "-c", _STARTED, command, *arguments],
        env={**os.environ, "LAKEBED_WAREHOUSE": str(place)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(delay_s)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert "Traceback" not in errors
    if process.returncode == -signal.SIGINT:
        # Python's own last moments, when all is done and said, are not ours either.
        assert errors in ("", "stopped\n") or errors.startswith("error: ")
    elif process.returncode == INTERRUPTED:
        assert errors.splitlines()[-1] == "stopped"
        assert all(line.endswith(": starting") for line in errors.splitlines()[:-1])  # which a sync says at once
    else:
        assert process.returncode in (0, 1, 2)


_STARTED = "import sys; from lakebed.cli import program; print('begun', flush=True); sys.exit(program())"


def test_at_the_prompt(place: Path) -> None:
    """Ctrl-C clears the line or the statement, and the conversation goes on."""
    with Terminal("sql", lake=place) as terminal:
        terminal.until("default> ")
        terminal.type("SELECT nonsense")
        terminal.interrupt()
        terminal.until("default> ")
        terminal.type("SHOW\n")
        terminal.until("...> ")
        terminal.interrupt()
        terminal.until("default> ")
        terminal.type("SHOW TABLES;\n")
        terminal.until("isTemporary")
        terminal.until("default> ")
        terminal.type("\x04")
        assert terminal.ended() == 0
        assert "Traceback" not in terminal.screen


def test_a_followed_table_on_a_terminal(place: Path) -> None:
    """Ctrl-C is the usual end of `tail`, and leaves the shell's prompt a line of its own."""
    with Terminal("tail", "t", "--from-start", lake=place) as terminal:
        terminal.until("+I       1")
        terminal.interrupt()
        assert terminal.ended() == 0
        assert terminal.screen.endswith("\n")
        assert "Traceback" not in terminal.screen


def test_ctrl_c_as_duckdb_says_it(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the signal meets DuckDB before Python, it comes as an error of its own."""

    def interrupted(*_: object, **__: object) -> None:
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr(lakebed.Lake, "sql", interrupted)
    monkeypatch.setattr(lakebed.Lake, "query", interrupted)
    assert main(["--warehouse", str(place), "sql", "SELECT a FROM t"]) == INTERRUPTED
    assert capsys.readouterr().err == "stopped\n"
