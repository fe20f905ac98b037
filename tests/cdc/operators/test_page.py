"""docs/postgres.md: every statement and every command of the page is run, or at least understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.operators.test_parked import Office

from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cli.cdc import CDC
from lakebed.cli.command import Parser
from lakebed.cli.main import main
from lakebed.errors import InvalidArgument

PAGE = (Path(__file__).parents[3] / "docs" / "postgres.md").read_text()
_COMMANDS = [line.strip() for line in PAGE.splitlines() if line.startswith("    lakebed cdc ")]
_IN_TEXT = re.findall(r"`(lakebed cdc [^`]*)`", PAGE)


def test_the_page_prepares_a_server(database: Any, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """Its statements, then its commands in order, on a sync that follows what they have prepared."""
    (script,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    database.execute("DROP ROLE IF EXISTS app", "CREATE TABLE orders (id int PRIMARY KEY, v numeric)")
    database.execute(*(line.partition("--")[0] for line in script.splitlines()))
    monkeypatch.setenv("SHOP_PASSWORD", "secret")
    url = re.sub("://.*@", "://app@", database.url)
    office = Office(database, tmp_path, url=url, password_env="SHOP_PASSWORD")
    database.execute("INSERT INTO orders VALUES (1, 1), (2, 1e30)")
    office.until_parked("orders")
    database.execute("UPDATE orders SET v = 2 WHERE id = 2")
    place = ["--warehouse", str(tmp_path / "warehouse")]
    codes = {}
    for command in _COMMANDS[1:]:
        words = shlex.split(command)[2:]
        if words[0] == "verify":
            office.catch_up("orders")
        words = [word.replace("postgresql://app@db.example/shop", url) for word in words]
        if "--database" in words:
            at = words.index("--database")
            words[at : at + 2] = ["--checkpoint", str(tmp_path / "cp")]
        codes[words[0]] = main([*place, "cdc", *words])
        said = capsys.readouterr()
        assert said.err == ""
    assert codes == {"check": 0, "status": 1, "resume": 0, "verify": 0}
    office.sync.stop()
    database.execute("DROP OWNED BY app", "DROP ROLE app", "ALTER SYSTEM RESET ALL")


@pytest.mark.parametrize("command", [*_COMMANDS, *_IN_TEXT])
def test_commands_are_understood(command: str) -> None:
    """Also those that stand within sentences."""
    words = shlex.split(command)[2:]
    parser = Parser("lakebed cdc", "")
    own = CDC.words[words[0]][0] if words[0] in CDC.words else CDC
    own.arguments(parser)
    parser.add_argument("--format")
    parser.parse_args(words[1:] if words[0] in CDC.words else words)


def test_what_libpq_takes_may_be_a_setting() -> None:
    """`--option sslmode=require` as well as in the URL; a slip is refused with the right word."""
    settings = PostgresSettings.of("postgresql://app@db/shop?connect_timeout=5", sslmode="require")
    assert dict(settings.ssl) == {"connect_timeout": "5", "sslmode": "require"}
    with pytest.raises(InvalidArgument, match="sslmod") as caught:
        PostgresSettings.of("postgresql://app@db/shop", sslmod="require")
    assert "`sslmode`" in caught.value.hint
