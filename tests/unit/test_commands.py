"""`python -m lakebed`: what it prints and how it ends."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.__main__ import main
from lakebed.lsm import checker


def _lake(path: Path) -> None:
    lake = lakebed.connect(path)
    for name in ("t", "u"):
        table = lake.create_table(name, {"k": "BIGINT NOT NULL"}, primary_key=["k"], options={"bucket": 2})
        table.write(pa.table({"k": [1, 2, 3]}))


def test_check_of_sound_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without names all tables are checked; the status is 0."""
    _lake(tmp_path)
    assert main(["check", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == ["default.t: all is well", "default.u: all is well"]


def test_check_of_a_broken_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding is printed with table and bucket; the status is 1."""
    _lake(tmp_path)
    monkeypatch.setattr(checker, "_shared_names", lambda files: ["two files are one"])
    assert main(["check", str(tmp_path), "u"]) == 1
    assert capsys.readouterr().out.splitlines()[0] == "u: bucket-0: two files are one"


def test_check_of_a_table_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error says what to do; the status is 2."""
    _lake(tmp_path)
    assert main(["check", str(tmp_path), "v"]) == 2
    assert "valid choices: `t`, `u`" in capsys.readouterr().err
