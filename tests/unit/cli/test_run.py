"""`lakebed run` over files as editors of all systems write them."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.conftest import Run

from lakebed import Lake


def test_a_file_of_another_system(lake: Lake, run: Run, tmp_path: Path) -> None:
    """A mark of the encoding and Windows line ends are no part of the statements."""
    text = "CREATE TABLE kept (e STRING);\r\n-- it's; so\r\nINSERT INTO kept SELECT e\r\nFROM events;\r\n"
    (tmp_path / "p.sql").write_bytes(b"\xef\xbb\xbf" + text.encode())
    done = run("run", str(tmp_path / "p.sql"), "--once")
    assert done.status == 0, done
    assert lake["kept"].count() == 2
