"""The prompt of `lakebed sql` as a person meets it, on a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakebed
from lakebed.cli.shell.completion import Completer
from lakebed.cli.statements import is_inside, split_statements

from .conftest import Run
from .terminal import Terminal
from .test_sql import type_lines


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a lake is with two tables in two databases."""
    lake = lakebed.connect(tmp_path / "lake")
    lake.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT, dt STRING, amount DECIMAL(10, 2),"
        " PRIMARY KEY (id, dt) NOT ENFORCED) COMMENT 'all of them' PARTITIONED BY (dt) WITH ('bucket' = '1');"
        "CREATE TABLE events (happened INT, what STRING)"
    )
    return tmp_path / "lake"


def test_the_first_minutes(place: Path) -> None:
    """Help, tables, columns and keys, what an INSERT did, a statement to run again, and the way out."""
    with Terminal("sql", lake=place) as terminal:
        terminal.until("default> ")
        terminal.type("help\n")
        assert "Tab completes" in terminal.until("default> ")
        terminal.type("\\d\n")
        assert "events" in terminal.until("default> ")
        terminal.type("\\c shop\n")
        terminal.until("shop> ")
        terminal.type("\\d orders\n")
        described = terminal.until("shop> ")
        assert "PRIMARY KEY" in described
        assert "NOT NULL" in described
        assert "id, dt" in described
        terminal.type("INSERT INTO orders VALUES (1, 'a', 1.5), (2, 'a', NULL);\n")
        assert "ok: 2 rows into shop.orders, snapshot 1" in terminal.until("shop> ")
        terminal.type("TRUNCATE TABLE orders;\n")
        assert "shop.orders is at snapshot 2" in terminal.until("shop> ")
        terminal.type("USE default;\n")
        assert "ok\n" in terminal.until("default> ")
        terminal.type("SHOW CREATE TABLE shop.orders;\n")
        created = terminal.until("default> ")
        assert "CREATE TABLE `shop`.`orders` (\n  `id` BIGINT NOT NULL,\n" in created
        assert "createtab_stmt" not in created
        terminal.type("\\nope\n")
        terminal.until("there is no command \\nope")
        terminal.type("DESCRIBE HISTORY shop.orders LIMIT 1;\n")
        terminal.until("--- row 1\nsnapshot_id              2\n")
        terminal.until("default> ")
        terminal.type("SELECT\nexit\n")
        terminal.until("what was begun is not run")
        assert terminal.ended() == 0
        assert "Traceback" not in terminal.screen


def test_tab_and_the_arrow_keys(place: Path) -> None:
    """Tab completes keywords and names, and what was typed comes back in the next session."""
    with Terminal("sql", lake=place) as terminal:
        terminal.until("default> ")
        terminal.type("SHOW CREATE TABLE shop\to\t;\n")
        terminal.until("CREATE TABLE `shop`.`orders`")
        terminal.until("default> ")
        terminal.type("describ\t ev\t;\n")
        terminal.until("happened")
        terminal.until("default> ")
        terminal.type("\x04")
        assert terminal.ended() == 0
    with Terminal("sql", lake=place) as terminal:
        terminal.until("default> ")
        terminal.type("\x1b[A\n")
        terminal.until("happened")
        terminal.until("default> ")
        terminal.type("quit;\n")
        assert terminal.ended() == 0


@pytest.mark.parametrize(
    ("word", "text", "choices"),
    [
        ("sel", "sel", ["select"]),
        ("SEL", "SEL", ["SELECT"]),
        ("ev", "SELECT * FROM ev", ["events"]),
        ("shop.", "SELECT * FROM shop.", ["shop.orders"]),
        ("am", "SELECT am FROM shop.orders", ["amount"]),
        ("o.a", "SELECT o.a FROM shop.orders AS o", ["o.amount"]),
        ("events$sn", "SELECT * FROM events$sn", ["events$snapshots"]),
        ("nosuch.", "SELECT nosuch.", []),
    ],
)
def test_what_is_offered(place: Path, word: str, text: str, choices: list[str]) -> None:
    """Keywords in the case that was begun, tables, columns of the tables that are named, system tables."""
    assert Completer(lakebed.connect(place), lambda: "").choices(word, text) == choices


def test_a_key_pressed_for_help_fails_never(place: Path) -> None:
    """Where nothing can be found out, nothing is offered."""
    lake = lakebed.connect(place)
    lake.use("shop")
    lakebed.connect(place).drop_database("shop", cascade=True)
    assert Completer(lake, lambda: "SELECT ")("or", 0) is None


def test_long_results_are_paged(place: Path, tmp_path: Path) -> None:
    """What is taller than the screen goes through $PAGER on a terminal; what is not, or is piped, does not."""
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho PAGED; cat\n")
    pager.chmod(0o755)
    values = ", ".join(f"({n}, 'x')" for n in range(40))
    lake = lakebed.connect(place)
    lake.sql(f"INSERT INTO events VALUES {values}")
    for _ in range(30):
        lake.sql("INSERT INTO events VALUES (1, 'y')")
    for lines, paged in ((24, True), (100, False)):
        with Terminal("snapshots", "events", lake=place, lines=lines, PAGER=str(pager)) as terminal:
            assert terminal.ended() == 0
            assert ("PAGED" in terminal.screen) is paged
            assert "APPEND" in terminal.screen


def test_short_commands(run: Run, monkeypatch: pytest.MonkeyPatch, lake: lakebed.Lake) -> None:
    """They stand for statements, alone or with a name."""
    asked: list[str] = []
    monkeypatch.setattr(lakebed.Lake, "sql", lambda self, statement: asked.append(statement))
    type_lines(
        monkeypatch, "\\d", "\\d t", "\\dt", "\\d+ t;", "\\l", "\\dv", "\\c db", "select", "\\d;", "help", "?", "exit;"
    )
    assert run("sql").status == 0
    assert asked == [
        *("SHOW TABLES", "DESCRIBE t", "SHOW TABLES", "DESCRIBE t", "SHOW DATABASES", "SHOW VIEWS", "USE db"),
        "select\n\\d",
    ]


def test_a_statement_set_is_one_statement() -> None:
    """It is carried out when END has come, and not before."""
    begun = "BEGIN STATEMENT SET;\nINSERT INTO a VALUES (1);\n"
    assert split_statements(f"x; {begun}") == (["x"], f" {begun}")
    assert split_statements(f"{begun}END; y;")[0] == [f"{begun}END", "y"]
    executed = "-- all\nexecute statement set begin insert into a values (1); insert into b values (2); end"
    assert split_statements(f"{executed};")[0] == [executed]


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("select 'a", True),
        ("select 'a'", False),
        ("select 'it''s", True),
        ("select '", True),
        ("select `a\n", True),
        ('select "a\\"', True),
        ("/* a", True),
        ("/*/", True),
        ("/* a */", False),
        ("-- a\n", False),
        ("", False),
    ],
)
def test_inside_quotes(text: str, inside: bool) -> None:
    """The word `exit` in a text that is being typed is part of it."""
    assert is_inside(text) is inside
