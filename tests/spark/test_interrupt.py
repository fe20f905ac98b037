"""Ctrl-C while Spark starts and while it works: one line, nothing left running, and the prompt goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.sessions import IS_CONNECT
from tests.thinning import by_day
from tests.unit.cli.terminal import Terminal

import lakebed

pytestmark = pytest.mark.skipif(IS_CONNECT, reason="starts drivers of its own")
LONG = "SELECT max(a.id % 7 + t.a) FROM range(1000000000000) a JOIN t ON a.id % 3 = t.a"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a lake is with a small table."""
    lakebed.connect(tmp_path / "lake").sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    return tmp_path / "lake"


@pytest.mark.parametrize("delay_s", by_day([2.0, 4.0, 15.0], 4.0))
def test_a_statement_is_stopped(place: Path, delay_s: float) -> None:
    """The pipes of the program are closed soon after: no JVM is left that holds them."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lakebed", "sql", LONG],
        env={**os.environ, "LAKEBED_WAREHOUSE": str(place)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(delay_s)
    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=120)
    assert (out, errors) == ("", "stopped\n")
    assert process.returncode in (130, -signal.SIGINT)


def test_the_prompt_goes_on(place: Path) -> None:
    """A statement that is stopped leads back to the prompt, where Spark still works."""
    with Terminal("sql", lake=place) as terminal:
        terminal.until("default> ")
        terminal.type("SELECT count(*) + 41 FROM range(1);\n")
        terminal.until("42")
        terminal.until("default> ")
        terminal.type(f"{LONG};\n")
        time.sleep(4)
        terminal.type("\x03")
        terminal.until("stopped")
        terminal.until("default> ")
        terminal.type("SELECT count(*) + 76 FROM range(1);\n")
        terminal.until("77")
        terminal.until("default> ")
        terminal.type("exit\n")
        assert terminal.ended() == 0
        assert "Traceback" not in terminal.screen
        assert "Exception" not in terminal.screen
