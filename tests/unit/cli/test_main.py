"""The program as a whole: finding commands, the lake and the format, and ending well."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from tests.patience import PATIENCE_S

import lakebed
from lakebed.cli import main as program
from lakebed.cli.main import COMMANDS
from lakebed.version import VERSION

from .conftest import Run

STARTING_BUDGET_S = 0.4

_ENDS = """
import atexit, sys
import lakebed.cli.main
from lakebed.cli import program

class Kept:
    def __del__(self):
        sys.stderr.write("taken apart")

def main():
    global kept
    kept = Kept()
    atexit.register(print, "tidied up")
    print("done", end=", ")
    {body}
    return 3

lakebed.cli.main.main = main
sys.exit(program())
"""
"""The program with another body; objects that the process holds say so if Python takes them apart."""


def _ended(body: str = "pass", stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _ENDS.format(body=body)]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False, env=buffered
    )


def test_the_end_is_not_waited_for() -> None:
    """What is to be done at the end is done, all is printed, and the process goes without being taken apart."""
    ended = _ended()
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "done, tidied up\n", "")


def test_an_error_that_nobody_expects_comes_out_at_the_end() -> None:
    """Python has its last word where the program has none."""
    ended = _ended("raise ZeroDivisionError('never')")
    assert ended.returncode == 1
    assert ended.stdout == "done, tidied up\n"
    assert "ZeroDivisionError: never" in ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_what_nobody_could_print_is_no_success() -> None:
    """Output that is lost at the very end is told by the status, as Python does."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        assert _ended(stdout=full.fileno()).returncode == 120


def test_help_lists_every_command(run: Run) -> None:
    """Without a command, or with --help, the commands are listed with what they do."""
    for arguments in ((), ("--help",)):
        ran = run(*arguments)
        assert (ran.status, ran.err) == (0, "")
        for name, (_, purpose) in COMMANDS.items():
            assert any(line.split() == [name, *purpose.split()] for line in ran.lines), name


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(run: Run, command: str) -> None:
    """`--help` behind a command tells its arguments and those of all commands."""
    ran = run(command, "--help")
    assert (ran.status, ran.err) == (0, "")
    assert f"usage: lakebed {command}" in ran.out
    assert "--warehouse" in ran.out
    assert "--format" in ran.out


def test_version(run: Run) -> None:
    """The version is printed and nothing else."""
    assert run("--version").out == f"lakebed {VERSION}\n"


def test_unknown_commands(run: Run) -> None:
    """A mistyped command is answered with the nearest one, on the error stream, with status 2."""
    ran = run("tabels")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.splitlines() == [
        "error: there is no command `tabels`",
        "  -> did you mean `tables`?; see `lakebed --help`",
    ]


@pytest.mark.parametrize("word", program._HABITS)
def test_words_that_people_try(run: Run, word: str) -> None:
    """A word of other programs is answered with the command to type, which exists."""
    assert word not in COMMANDS
    ran = run(word)
    assert ran.status == 2
    typed = ran.err.partition("-> type lakebed ")[2].split()[0].strip("`;,")
    assert typed in {*COMMANDS, "--help", "--version"}


@pytest.mark.parametrize("action", ["mysql_sync_table", "mysql-sync-database", "MYSQL_SYNC_DATABASE"])
def test_paimons_actions_for_flink(run: Run, action: str) -> None:
    """They are one command here."""
    assert "-> type lakebed cdc mysql PLACE;" in run(action).err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("sql", "-e", "SELECT 1"), "type lakebed sql 'SELECT ...'"),
        (("cdc", "postgres", "x", "--tables", "orders"), "type --including PATTERN"),
        (("expire", "events", "--keep", "1"), "type --retain-max N"),
        (("expire", "events", "--retain_max", "1"), "type --retain-max;"),
        (("tables", "--nope"), "see `lakebed tables --help`"),
        (("sql", "-w", "x", "SELECT 1"), "type --warehouse PATH;"),
        (("-w", "x", "tables"), "type --warehouse PATH;"),
        (("snapshots", "events", "--json"), "type --format json;"),
        (("-V",), "type lakebed --version;"),
    ],
)
def test_options_that_people_try(run: Run, arguments: tuple[str, ...], hint: str) -> None:
    """An option of other programs, or a mistyped one, is answered with what to type."""
    ran = run(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert f"-> {hint}" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("tables", "--nope"),
        ("describe",),
        ("tables", "--format", "xml"),
        ("--format", "xml", "tables"),
        ("tag", "remove", "events"),
        ("tables", "--form", "json"),
        ("files", "events", "--snapshot", "1", "--tag", "x"),
        ("snapshots", "events", "--limit", "-1"),
    ],
)
def test_wrong_arguments(run: Run, arguments: tuple[str, ...]) -> None:
    """Wrong arguments are said on the error stream with a next step, and nothing runs."""
    ran = run(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert "\n  -> " in ran.err


def test_errors_of_the_lake(run: Run) -> None:
    """An error of lakebed is its message and its hint."""
    ran = run("describe", "shop.order")
    assert (ran.status, ran.out) == (2, "")
    assert "error: table `shop.order` does not exist" in ran.err
    assert "did you mean `orders`?" in ran.err


def test_hints_are_for_a_terminal(run: Run) -> None:
    """The words of Python for what to do next become those of SQL and of options."""
    assert "-> create it with CREATE TABLE" in run("describe", "nosuch").err


@pytest.mark.filterwarnings("always")
def test_a_warning_is_a_sentence(run: Run) -> None:
    """It is one line, without a place in the source."""
    ran = run("sql", "SET 'sql-client.execution.result-mode' = 'table'")
    assert ran.err == "warning: `sql-client.execution.result-mode` is a setting of Flink and has no effect here\n"


def test_errors_of_ours(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw is still a sentence; the traceback is there for those who ask for it."""

    def fail(*_: object) -> None:
        raise RuntimeError("no such luck\nand a long plan")

    monkeypatch.setattr(program, "import_module", fail)
    ran = run("tables")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.splitlines() == [
        "error: RuntimeError: no such luck",
        "  -> set LAKEBED_DEBUG=1 to see where this comes from",
    ]
    monkeypatch.setenv("LAKEBED_DEBUG", "1")
    assert "Traceback" in run("tables").err


def test_interrupting(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends a command with one line, and with the status that shells expect."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(lakebed, "connect", interrupt)
    ran = run("describe", "events")
    assert (ran.status, ran.out, ran.err) == (130, "", "stopped\n")


def test_common_options_stand_anywhere(run: Run, lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """--warehouse and --format work before the command and behind it; the nearer one counts."""
    path = os.environ["LAKEBED_WAREHOUSE"]
    monkeypatch.delenv("LAKEBED_WAREHOUSE")
    expected = [{"database": "default", "table": "events"}, {"database": "shop", "table": "orders"}]
    assert run("--warehouse", path, "--format", "json", "tables").json == expected
    assert run("tables", "--format", "json", "--warehouse", path).json == expected
    assert run("--warehouse", "/nowhere", "--format", "csv", "tables", "--warehouse", path).lines[0] == "database,table"


def test_a_lake_that_is_not_there(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A mistyped path is no empty lake; without one it is ./warehouse."""
    monkeypatch.delenv("LAKEBED_WAREHOUSE")
    monkeypatch.chdir(tmp_path)
    for command in (["tables"], ["describe", "t"], ["check"]):
        ran = run(*command)
        assert ran.status == 2
        assert "there is no lake at ./warehouse" in ran.err
        assert "--warehouse" in ran.err
    lakebed.connect(tmp_path / "warehouse").create_table("t", {"a": "INT"})
    assert run("tables", "--format", "csv").lines == ["database,table", "default,t"]


def _as_a_program(*arguments: str, lake: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lakebed", *arguments],
        env={**os.environ, "LAKEBED_WAREHOUSE": str(lake)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_as_a_program(tmp_path: Path) -> None:
    """`python -m lakebed` is the same program: output, errors and status."""
    lakebed.connect(tmp_path).create_table("t", {"a": "INT"})
    done = _as_a_program("tables", "--format", "json", lake=tmp_path)
    assert (done.returncode, json.loads(done.stdout)) == (0, [{"database": "default", "table": "t"}])
    assert _as_a_program("describe", "x", lake=tmp_path).returncode == 2


def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    """`lakebed … | head -1` ends without complaints."""
    lakebed.connect(tmp_path).create_table("t", {"a": "INT"})
    command = f'"{sys.executable}" -m lakebed --warehouse "{tmp_path}" options | head -1'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("option")
    assert done.stderr == ""


def test_listing_starts_quickly(tmp_path: Path) -> None:
    """`lakebed tables` loads little, and takes little more than the start of Python and Arrow."""
    lakebed.connect(tmp_path).create_table("t", {"a": "INT"})
    code = (
        "import sys, time\nfrom lakebed.cli.main import main\n"
        f"main(['--warehouse', {str(tmp_path)!r}, 'tables'])\n"
        "heavy = {'rich', 'lakebed.table.table', 'sqlglot', 'pyspark'} & set(sys.modules)\n"
        "print(time.process_time(), sorted(heavy))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()[-1]
        for _ in range(3)
    ]
    assert all(run.endswith("[]") for run in runs)
    # The fastest of three, and CPU rather than wall time: a busy machine slows single runs down.
    assert min(float(run.split()[0]) for run in runs) < STARTING_BUDGET_S


def test_a_query_loads_nothing_that_changes_tables(tmp_path: Path) -> None:
    """What writes, rewrites, cleans and explains tables is half of the source: a query starts without it."""
    lakebed.connect(tmp_path).create_table("t", {"a": "INT"})
    code = (
        "import sys\nfrom lakebed.cli.main import main\n"
        f"main(['--warehouse', {str(tmp_path)!r}, 'sql', 'SELECT count(*) FROM t'])\n"
        "rooms = ('rewrite', 'maintenance', 'explain', 'write.placement', 'lsm.compaction', 'views', 'cdc')\n"
        "heavy = tuple(f'lakebed.{room}' for room in rooms)\n"
        "print([name for name in sys.modules if name.startswith(heavy)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_ctrl_c_ends_tail(tmp_path: Path) -> None:
    """A followed table is left by Ctrl-C at once, without a traceback, with status 0."""
    lakebed.connect(tmp_path).create_table("t", {"a": "INT"})
    process = subprocess.Popen(
        [sys.executable, "-m", "lakebed", "--warehouse", str(tmp_path), "tail", "t", "--interval", "50 ms"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines: list[str] = []
    began = time.monotonic()
    while not lines and time.monotonic() - began < PATIENCE_S:
        # Written again and again until the program, which starts in its own time, has seen one.
        lakebed.connect(tmp_path).table("t").write(pa.table({"a": pa.array([1], pa.int32())}))
        time.sleep(0.3)
        ready, _, _ = select.select([process.stdout], [], [], 0)
        lines = [process.stdout.readline().rstrip(), process.stdout.readline().rstrip()] if ready else []
    process.send_signal(2)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert lines[:2] == ["rowkind  a", "+I       1"]
    assert (process.returncode, errors) == (0, "")
