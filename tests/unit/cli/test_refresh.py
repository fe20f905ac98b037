"""`lakebed refresh`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lakebed
from lakebed.cli.main import main


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A lake with a table, a view of it that is named last, and a view of that one."""
    lake = lakebed.connect(str(tmp_path))
    lake.create_table("t", {"id": "INT NOT NULL", "g": "INT"}, primary_key=["id"], options={"bucket": "1"})
    lake["t"].write([{"id": 1, "g": 1}])
    lake.materialize("z", "SELECT g, count(*) AS n FROM t GROUP BY g", policy="incremental")
    lake.materialize("a", "SELECT sum(n) AS n FROM z", policy="incremental")
    lake.materialize("held", "SELECT id FROM t", policy="incremental")
    lake.alter_materialized("held", suspended=True)
    lake["t"].write([{"id": 2, "g": 2}])
    return str(tmp_path)


def test_refresh_of_a_database(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables that others read come first, what is suspended stays as it is, and each says which way it went."""
    assert main(["--warehouse", place, "--format", "json", "refresh", "default.*"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert [(each["table"], each["way"]) for each in done] == [
        ("default.z", "incremental"),
        ("default.a", "incremental"),
    ]
    lake = lakebed.connect(place)
    assert lake.query("SELECT n FROM a").fetchall() == [(2,)]
    assert lake["held"].count() == 1


def test_refresh_of_one(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A table that is named is refreshed even if it is suspended, and an ordinary one is refused."""
    assert main(["--warehouse", place, "refresh", "held", "--full"]) == 0
    assert "default.held: full (it was asked for); 1 inserted" in capsys.readouterr().out
    assert main(["--warehouse", place, "refresh", "t"]) == 2
    assert "ordinary table" in capsys.readouterr().err
