"""`--metrics` of commands that run for long."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from tests.patience import PATIENCE_S

import lakebed
from lakebed.cli.main import main

LONG = {
    "cdc": ["cdc", "files", "changes", "--once"],
    "run": ["run", "p.sql", "--once"],
    "compact": ["compact", "default.t", "--follow"],
    "refresh": ["refresh", "default.v", "--follow"],
    "ui": ["ui", "--no-browser"],
}


def test_a_command_shows_its_metrics_while_it_runs(tmp_path: Path) -> None:
    """It says where, a scrape shows what it has done, and its end is as it was."""
    table = lakebed.connect(tmp_path).create_table(
        "t", {"k": "INT"}, primary_key=["k"], options={"bucket": "1", "write-only": "true"}
    )
    for _ in range(6):
        table.write([{"k": 1}])
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "lakebed", "--warehouse", str(tmp_path)),
            *("compact", "t", "--follow", "--interval", "10 ms", "--metrics", "127.0.0.1:0"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as job:
        try:
            assert job.stdout is not None
            assert job.stderr is not None
            said = job.stderr.readline()
            assert said.startswith("metrics: http://127.0.0.1:"), said
            assert "compacted" in job.stdout.readline()
            wanted = 'lakebed_compaction_duration_seconds_count{table="default.t",outcome="done"} 1'
            end, text = time.monotonic() + PATIENCE_S, ""
            while wanted not in text and time.monotonic() < end:
                with urllib.request.urlopen(said.split()[1], timeout=PATIENCE_S) as answer:
                    text = answer.read().decode()
            assert wanted in text
        finally:
            job.send_signal(signal.SIGINT)
        _, err = job.communicate(timeout=PATIENCE_S)
    assert (job.returncode, err) == (0, "")


@pytest.mark.parametrize("command", LONG.values(), ids=list(LONG))
@pytest.mark.parametrize("given", ["argument", "environment"])
def test_a_port_in_use(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    given: str,
) -> None:
    """Each of them takes the address, as an argument or from the environment, and says what to do about the port."""
    monkeypatch.chdir(tmp_path)
    lake = lakebed.connect("warehouse")
    lake.create_table("t", {"id": [1]})
    lake.materialize("v", "SELECT id FROM t")
    Path("p.sql").write_text("CREATE TABLE s (id INT); INSERT INTO s SELECT id FROM t")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        if given == "environment":
            monkeypatch.setenv("LAKEBED_METRICS", address)
        assert main([*command, *(["--metrics", address] if given == "argument" else [])]) == 2
    said = capsys.readouterr().err
    assert f"metrics can not be shown at {address}: Address already in use" in said
    assert "127.0.0.1:0" in said


@pytest.mark.parametrize("command", ["compact", "refresh"])
def test_a_short_run_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Asked for, it is refused; what the environment says is for others."""
    monkeypatch.chdir(tmp_path)
    lake = lakebed.connect("warehouse")
    lake.create_table("t", {"id": [1]})
    lake.materialize("v", "SELECT id FROM t")
    assert main([command, "v", "--metrics", "127.0.0.1:0"]) == 2
    assert "--follow" in capsys.readouterr().err
    monkeypatch.setenv("LAKEBED_METRICS", "no address")
    assert main([command, "v"]) == 0
