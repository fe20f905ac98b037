"""`lakebed cdc`: arguments, and what it shows."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import Any

import pytest

from lakebed.cdc.arguments import keeping_of
from lakebed.cdc.progress import SyncProgress, TableProgress
from lakebed.cdc.rows.keeping import Keeping
from lakebed.cdc.storage import PLAIN
from lakebed.cli import cdc
from lakebed.cli.cdc_progress import drawn, headline, summary
from lakebed.cli.command import Parser
from lakebed.cli.hints import for_command_line

from .conftest import Run


def parsed(*arguments: str) -> argparse.Namespace:
    parser = Parser("lakebed cdc", "")
    cdc.CDC.arguments(parser)
    return parser.parse_args(arguments)


def test_settings_of_the_source_come_from_pairs() -> None:
    """Numbers, truth values and lists are read as such; names may be written with hyphens."""
    given = parsed("kafka", "h:9", "--option", "topics=a,b", "--option", "messages-per-batch=5", "--option", "x=true")
    assert cdc.source_options(given) == {
        "bootstrap_servers": "h:9",
        "topics": ["a", "b"],
        "messages_per_batch": 5,
        "x": True,
    }
    given = parsed("postgres", "postgresql://u@h/d", "--password-env", "PW")
    assert cdc.source_options(given) == {"url": "postgresql://u@h/d", "password_env": "PW"}


def test_what_is_kept_of_the_past_is_said_as_in_python() -> None:
    """A word alone is every table, with a pattern it is some; what is left out is the default."""
    assert keeping_of(cdc._past(parsed("postgres", "postgresql://u@h/d"))) == Keeping()
    words = ["--deletes", "mark", "--deleted-column", "gone_at", "--history", "--audit", "orders|lines"]
    given = parsed("postgres", "postgresql://u@h/d", *words, "--audit-by-day", "--history-prefix", "h_")
    assert keeping_of(cdc._past(given)) == Keeping("mark", "gone_at", "orders|lines", True, ".*", "h_")


def test_a_check_says_what_can_not_be_kept(run: Run, tmp_path: Path) -> None:
    """Before anything is made, with the way out in the words of the command line."""
    ran = run("cdc", "check", "files", str(tmp_path), "--audit")
    assert ran.status == 1
    assert "a sync of files can not keep an audit" in ran.out
    assert "leave out --audit; --history and --deletes need the time of a change alone" in ran.out
    assert run("cdc", "check", "files", str(tmp_path), "--history").status == 0


def test_options_of_tables_may_have_a_pattern() -> None:
    """Options for all tables, and for some."""
    assert cdc._table_conf(["bucket=4", "orders|lines:bucket=8"]) == {"bucket": "4", "orders|lines": {"bucket": "8"}}


def test_what_is_no_pair_is_not_repeated(run: Run, tmp_path: Path) -> None:
    """A secret that was typed in the wrong place does not show."""
    ran = run("cdc", "files", str(tmp_path), "--option", "hunter2")
    assert ran.status == 2
    assert "--option" in ran.err
    assert "hunter2" not in ran.err + ran.out


@pytest.mark.parametrize("typed", [("--password", "hunter2"), ("--password=hunter2",), ("--password",)])
def test_passwords_are_refused_without_being_repeated(run: Run, typed: tuple[str, ...]) -> None:
    """Whoever types a password is told where it belongs, and it does not show."""
    ran = run("cdc", "postgres", "postgresql://app@db.example/shop", *typed)
    assert ran.status == 2
    assert "--password-env NAME" in ran.err
    assert "hunter2" not in ran.err + ran.out


@pytest.mark.parametrize(
    "place",
    ["postgresql://app:hunter2@db.example/shop", "MySQL://a:hunter2@h:1/s", "postgresql://h/s?user=a&password=hunter2"],
)
@pytest.mark.parametrize("word", [(), ("check",)])
def test_passwords_in_addresses_are_refused_alike(run: Run, word: tuple[str, ...], place: str) -> None:
    """An address with a password is not repeated either; one without is taken."""
    ran = run("cdc", *word, "postgres", place)
    assert ran.status == 2
    assert "--password-env NAME" in ran.err
    assert "hunter2" not in ran.err + ran.out
    for fine in ("postgresql://app@h:1/s?x=a@b", "db.example:9092", "hdfs://a,b:90/c", "a@b:c"):
        assert cdc._without_password(fine) == fine


@pytest.mark.parametrize(("typed", "name"), [("postgresql", "postgres"), ("pg", "postgres"), ("mariadb", "mysql")])
def test_other_names_of_sources(run: Run, typed: str, name: str) -> None:
    """A source by the name that people give it is answered with the word to type."""
    ran = run("cdc", typed, "anywhere")
    assert (ran.status, ran.out) == (2, "")
    assert f"-> type lakebed cdc {name}" in ran.err


@pytest.mark.parametrize(
    ("source", "place", "package"),
    [
        ("postgres", "postgresql://app@127.0.0.1:1/shop", "psycopg"),
        ("mysql", "mysql://app@127.0.0.1:1/shop", "pymysql"),
    ],
)
def test_a_missing_driver_names_the_extra(
    run: Run, source: str, place: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the package that speaks to the server, the error says what to install."""
    monkeypatch.setitem(sys.modules, package, None)
    ran = run("cdc", source, place, "--once")
    assert ran.status == 2
    assert 'install it with: pip install "lakebed[cdc]"' in ran.err


def test_a_refused_password_is_explained_in_options() -> None:
    """The hint of a server that lets nobody in names the options of the command line."""
    said = for_command_line("check user and password (passfile, or the environment variable that `password_env` names)")
    assert said.endswith("(--option passfile=FILE, or the environment variable that --password-env names)")


def test_topics_are_asked_for_as_options(run: Run) -> None:
    """What a Kafka source lacks is said in the words of the command line."""
    ran = run("cdc", "kafka", "localhost:9092")
    assert ran.status == 2
    assert "--option topics=a,b or --option topic_pattern=PATTERN" in ran.err


def test_a_source_that_is_not_there_ends_with_a_sentence(run: Run, tmp_path: Path) -> None:
    """Nothing is made, and nothing of Spark is started."""
    pytest.importorskip("pyspark")
    ran = run("cdc", "files", str(tmp_path / "nothing"), "--once")
    assert ran.status == 2
    assert "does not exist" in ran.err


@pytest.mark.parametrize("wrong", [("--rename", "often"), ("--case", "upper"), ("--truncate", "x")])
def test_wrong_choices_are_refused(run: Run, wrong: tuple[str, str]) -> None:
    """Choices are checked before anything is opened."""
    assert run("cdc", "files", "/tmp", *wrong).status == 2


def test_progress_is_drawn_with_rates_and_lags() -> None:
    """The busiest table comes first, the whole stands above."""
    from rich.console import Console

    tables = (TableProgress("lk.a", 5, 1, "copy"), TableProgress("lk.b", 5000, 2, "stream", 1, 1.25))
    progress = SyncProgress("stream", 3, 5005, 100.4, 2048, 1.25, None, tables, {"lk.x": "no key"})
    assert headline(progress) == "stream · 5,005 changes · 100/s · 2.0 KB behind · 1.2 s behind"
    out = io.StringIO()
    Console(file=out, width=100).print(drawn(progress))
    lines = [line.split() for line in out.getvalue().splitlines() if "lk." in line]
    assert [line[0] for line in lines] == ["lk.b", "lk.a"]
    assert summary(progress).splitlines()[1] == "not followed: lk.x: no key"


def test_metrics_are_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With --format json each look is a line, and so is the end."""
    from lakebed.cli.output import Output

    class Ended:
        progress = SyncProgress("stream", 1, 2)
        looks = 0

        def wait(self, timeout_seconds: float) -> bool:
            self.looks += 1
            return self.looks > 1

    run: Any = Ended()
    assert cdc._watch(run, str(tmp_path), PLAIN, Output("json")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all('"rows": 2' in line for line in lines)
