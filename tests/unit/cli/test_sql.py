"""`lakebed sql`: where statements come from, and what becomes of their results."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.cli.shell import prompt
from lakebed.errors import InvalidArgument
from lakebed.lake import Lake

from .conftest import Run


class Result:
    """Looks like a DataFrame as far as the program is concerned."""

    def __init__(self, table: pa.Table) -> None:
        self.columns = table.column_names
        self._table = table

    def toArrow(self) -> pa.Table:  # noqa: N802
        """The rows."""
        return self._table


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that reached the lake, which answers with a number or with nothing."""
    statements: list[str] = []

    def sql(self: Lake, statement: str) -> Any:
        statements.append(statement)
        if statement.startswith("bad"):
            raise InvalidArgument("that is bad", hint="do better")
        if statement.startswith("use"):
            self.use(statement.split()[1])
        rows = {"n": [len(statements), None]} if statement.startswith("select") else {}
        return Result(pa.table(rows))

    monkeypatch.setattr(Lake, "sql", sql, raising=False)
    return statements


def test_a_statement(run: Run, asked: list[str]) -> None:
    """A result is printed in the format asked for; a statement without one prints nothing."""
    assert run("sql", "select 1", "--format", "json").json == [{"n": 1}, {"n": None}]
    assert run("sql", "select 1", "--limit", "1").lines == ["n", "2"]
    assert run("sql", "create table x").out == ""
    assert asked == ["select 1", "select 1", "create table x"]


def test_several_statements(run: Run, asked: list[str]) -> None:
    """Statements run one after another until one fails."""
    ran = run("sql", "select 1; bad; select 2", "--format", "csv")
    assert (ran.status, ran.lines) == (2, ["n", "1", '""'])
    assert "error: that is bad" in ran.err
    assert asked == ["select 1", "bad"]


def test_a_file(run: Run, asked: list[str], tmp_path: Path) -> None:
    """Statements of a file, with comments; a file that is not there, or no text, is named."""
    path = tmp_path / "all.sql"
    path.write_text("-- first\nselect 1;\nselect ';'\n")
    assert run("sql", "-f", str(path)).status == 0
    assert asked == ["-- first\nselect 1", "select ';'"]
    assert "there is no file" in run("sql", "-f", str(tmp_path / "nope.sql")).err
    path.write_bytes(b"\xff\xfe\xff")
    assert "can not be read" in run("sql", "-f", str(path)).err
    assert "both" in run("sql", "select 1", "-f", str(path)).err


@pytest.mark.parametrize("arguments", [(), ("-f", "-")])
def test_a_pipe(run: Run, asked: list[str], monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    """Without a statement they come from standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO("select 1; select 2"))
    assert run("sql", *arguments).status == 0
    assert asked == ["select 1", "select 2"]


def test_a_new_lake(run: Run, asked: list[str], tmp_path: Path) -> None:
    """SQL may begin in a lake that is not there yet."""
    assert run("--warehouse", str(tmp_path / "new"), "sql", "create table x").status == 0


def type_lines(monkeypatch: pytest.MonkeyPatch, *lines: str | type[BaseException]) -> list[str]:
    """Lets a person type these lines (or press Ctrl-C), then Ctrl-D; returns the prompts they will see."""
    prompts: list[str] = []
    waiting = iter(lines)

    def typed(shown: str = "") -> str:
        prompts.append(shown)
        line = next(waiting, EOFError)
        if isinstance(line, str):
            return line
        raise line

    monkeypatch.setattr("builtins.input", typed)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    return prompts


@pytest.fixture(autouse=True)
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for the history that is not the user's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return prompt.history_file()


def test_the_prompt(run: Run, asked: list[str], monkeypatch: pytest.MonkeyPatch, history: Path) -> None:
    """Statements may have several lines; errors do not end the conversation; the prompt names the database."""
    prompts = type_lines(monkeypatch, "select", "1;", "bad;", "use shop;", "select 2; select 3;", "exit")
    ran = run("sql", "--format", "csv")
    assert ran.status == 0
    assert asked == ["select\n1", "bad", "use shop", "select 2", "select 3"]
    assert prompts == ["default> ", "   ...> ", "default> ", "default> ", "shop> ", "shop> "]
    assert "error: that is bad\n  -> do better" in ran.err
    assert history.exists()
    assert history.stat().st_mode & 0o777 == 0o600


def test_the_history_holds_no_secret(
    run: Run, asked: list[str], monkeypatch: pytest.MonkeyPatch, history: Path
) -> None:
    """A password that was typed, in one line or among others, is not in the file that lasts; the rest is."""
    readline = pytest.importorskip("readline")
    lines = (
        "create table c (a int) with ('connector' = 'mysql-cdc', 'password' = 'hunter2', 'port' = '1');",
        "select 7;",
    )
    more = ("'properties.sasl.password' = 'hunter3',",)
    for line in (*lines, *more):  # what input() does where a person types
        readline.add_history(line)
    type_lines(monkeypatch, *lines)
    try:
        assert run("sql").status == 0
    finally:
        readline.clear_history()
    kept = history.read_text()
    assert "hunter" not in kept
    assert "'password' = '******', 'port' = '1')" in kept
    assert "select 7;" in kept
    assert asked[0].count("hunter2") == 1


def test_leaving_the_prompt(run: Run, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C forgets what was begun, Ctrl-D leaves."""
    prompts = type_lines(monkeypatch, "select", KeyboardInterrupt, "select 1;")
    assert run("sql").status == 0
    assert asked == ["select 1"]
    assert prompts == ["default> ", "   ...> ", "default> ", "default> "]


def test_what_nobody_foresaw(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure of any kind, and Ctrl-C in a statement, lead back to the prompt."""
    failures: list[type[BaseException]] = [RuntimeError, KeyboardInterrupt]

    def sql(self: Lake, statement: str) -> None:
        raise failures.pop(0)("no luck")

    monkeypatch.setattr(Lake, "sql", sql, raising=False)
    type_lines(monkeypatch, "one;", "two;")
    ran = run("sql")
    assert ran.status == 0
    assert "error: RuntimeError: no luck" in ran.err
    assert "stopped" in ran.err


def test_without_line_editing(run: Run, asked: list[str], monkeypatch: pytest.MonkeyPatch, history: Path) -> None:
    """Where lines can not be edited, there is no history either."""
    monkeypatch.setattr(prompt, "readline", None)
    type_lines(monkeypatch, "select 1;")
    assert run("sql").status == 0
    assert asked == ["select 1"]
    assert not history.exists()


def test_no_table_is_needed(lake: lakebed.Lake, run: Run) -> None:
    """Statements that need no Spark answer from the lake itself."""
    ran = run("sql", "SHOW DATABASES", "--format", "csv")
    assert (ran.status, ran.lines[1:]) == (0, ["default", "shop"]), ran.err


def test_a_file_in_the_place_of_a_statement(run: Run) -> None:
    """The name of a file without its option is answered with the option."""
    ran = run("sql", "nightly/orders.sql")
    assert (ran.status, ran.out) == (2, "")
    assert "-> write -f nightly/orders.sql" in ran.err
