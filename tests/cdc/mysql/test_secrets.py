"""Passwords of both servers are in nothing that is shown or kept, even with all logs and pages of Spark turned on."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.application import ROOT
from tests.cdc.mysql.conftest import Database
from tests.patience import PATIENCE_S

_SECRET = "Xyl0ph0ne/&%40:ß"
_WRONG = "Wr0ngPhr4se"


@pytest.fixture
def sources(database: Any, db: Database) -> Iterator[dict[str, dict[str, Any]]]:
    """A PostgreSQL and a MariaDB with a table each, and users whose password is no word that stands anywhere else."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    database.execute(f"CREATE ROLE keeper LOGIN SUPERUSER PASSWORD '{_SECRET}'")
    db.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    db.run(f"CREATE USER keeper IDENTIFIED BY '{_SECRET}'", "GRANT ALL ON *.* TO keeper")
    quoted = urllib.parse.quote(_SECRET, safe="")
    yield {
        "postgres": {"url": database.url.replace("shop:shop@", f"keeper:{quoted}@"), "slot": database.name},
        "mysql": {"url": f"mysql://keeper@127.0.0.1:{db.server.port}/{db.name}", "password": _SECRET},
    }
    database.execute("DROP PUBLICATION IF EXISTS lakebed", "DROP ROLE keeper")
    db.run("DROP USER keeper")


def _spellings(secret: str) -> set[bytes]:
    """A text as it may stand in files: plain, in JSON, in a URL, in HTML, in base64 wherever it begins there."""
    plain = secret.encode()
    found = {plain, json.dumps(secret)[1:-1].encode(), secret.encode("utf-16-le"), plain.hex().encode()}
    found |= {urllib.parse.quote(secret, safe=safe).encode() for safe in ("", "/", "/&:%")}
    found |= {secret.replace("&", "&amp;").encode(), secret.replace(":", "\\:").encode()}
    found |= {base64.b64encode(b"\0" * shift + plain)[4:-4] for shift in range(3)}
    return found


def _holders(place: Path, secret: str) -> list[str]:
    spellings = _spellings(secret)
    found = []
    for path in place.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            found += [f"{path.relative_to(place)}: {each!r}" for each in spellings if each in content]
    return found


@pytest.mark.spark
def test_no_password_is_shown_or_kept(sources: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    """Logs at their most talkative, event log, web pages, plans, progress, errors, checkpoints and the lake's files."""
    wrong = {
        "postgres": sources["postgres"] | {"password": _WRONG},
        "mysql": sources["mysql"] | {"password": _WRONG},
    }
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.cdc.secrets_worker", os.fspath(tmp_path)],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": os.fspath(tmp_path / "tmp"),
        },
        input=json.dumps({"syncs": sources, "wrong": wrong}),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    (tmp_path / "output").write_text(done.stdout + done.stderr)
    assert done.returncode == 0, done.stderr[-3000:]
    for place in ("spark.log", "python.log", "events/*", "explain-*", "checkpoint-postgres/offsets/0",
                  "checkpoint-mysql/offsets/0", "warehouse/**/snapshot-1", "progress-*", "error-*"):  # fmt: skip
        files = list(tmp_path.glob(place))
        assert files, place
        assert all(file.stat().st_size > 50 for file in files), place
    pages = [path.read_text() for path in tmp_path.glob("pages-*/*")]
    assert sum("sync mysql" in page for page in pages) >= 2
    assert "password-file" in (tmp_path / "python.log").read_text()  # options are in the log, as they were passed
    assert "keeper" in (tmp_path / "error-postgres").read_text()
    assert "keeper" in (tmp_path / "error-mysql").read_text()
    assert _holders(tmp_path, _SECRET) == []
    assert _holders(tmp_path, _WRONG) == []


def test_a_password_would_be_found(tmp_path: Path) -> None:
    """What looks for passwords finds them in each of the spellings that it knows."""
    for number, spelling in enumerate(_spellings(_SECRET)):
        (tmp_path / str(number)).write_bytes(b"something " + spelling + b" something")
    assert len({holder.partition(":")[0] for holder in _holders(tmp_path, _SECRET)}) == len(_spellings(_SECRET))
    (tmp_path / "0").write_bytes(base64.b64encode(f"user:{_SECRET}@host".encode()))
    assert any(holder.startswith("0:") for holder in _holders(tmp_path, _SECRET))
