"""Servers start for root too where nobody else may look: in a clone below root's own home, with a private `TMPDIR`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.testing import mysql_server, unprivileged
from lakebed.testing.mariadb_server import MariaDbServer, mariadb_missing
from lakebed.testing.mysql_server import MySqlServer, mysql_missing
from lakebed.testing.postgres_server import PostgresServer, find_binaries

_IS_ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not _IS_ROOT, reason="only root starts servers as another user")


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that only its owner may enter, which is also where this process stands."""
    place = tmp_path / "closed"
    place.mkdir(mode=0o700)
    monkeypatch.chdir(place)
    unprivileged.reachable.cache_clear()
    yield place
    unprivileged.reachable.cache_clear()


def _installation(place: Path) -> Path:
    """A program that needs a file beside it, both for its owner alone."""
    installation = place / "server"
    (installation / "bin").mkdir(parents=True)
    (installation / "words").write_text("echo 1.0\n")
    (installation / "words").chmod(0o600)
    (installation / "bin" / "serve").write_text('#!/bin/sh\n. "$(dirname "$0")/../words"\n')
    (installation / "bin" / "serve").chmod(0o700)
    return place


def _reachable(root: Path) -> Path:
    return unprivileged.reachable(root, ("server",), ("server/bin/serve",))


def test_programs_that_can_be_run_are_not_copied(closed: Path) -> None:
    """The system's are taken as they are, and so are all if the server runs as who asks."""
    assert unprivileged.reachable(Path("/usr"), ("bin",), ("bin/env",)) == Path("/usr")
    if not _IS_ROOT:
        assert _reachable(_installation(closed)) == closed


@as_root
def test_programs_that_are_out_of_reach_are_copied_once(closed: Path) -> None:
    """The other user runs the copy with what lies beside it; a second server takes the same one."""
    copy = _reachable(_installation(closed))
    assert copy != closed
    command = [copy / "server" / "bin" / "serve"]
    said = subprocess.run(command, capture_output=True, check=True, cwd="/", **unprivileged.run_as())
    assert said.stdout == b"1.0\n"
    assert _reachable(closed) == copy


@as_root
def test_a_copy_goes_with_the_process_that_made_it(closed: Path) -> None:
    """And not with a child that was forked from it."""
    text = (
        "import os, sys, pathlib\n"
        "from lakebed.testing.unprivileged import reachable\n"
        "copy = reachable(pathlib.Path(sys.argv[1]), ('server',), ('server/bin/serve',))\n"
        "child = os.fork()\n"
        "if child == 0: sys.exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print(copy, copy.exists())\n"
    )
    command = [sys.executable, "-c", text, str(_installation(closed))]
    path, exists = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert exists == "True"
    assert not Path(path).exists()


@as_root
def test_a_temporary_directory_of_root_alone_is_not_used(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server is given lies where its user can reach it."""
    monkeypatch.setattr("tempfile.tempdir", str(closed))
    home = unprivileged.new_home("lakebed-")
    try:
        assert closed not in home.parents
    finally:
        home.rmdir()


@as_root
def test_postgres_in_a_closed_place(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL starts from an installation that only root may enter, with a `TMPDIR` that only root may enter."""
    binaries = find_binaries()
    if binaries.parents[1].name == "postgresql":
        pytest.skip("the system's PostgreSQL finds its files in other places of the system")
    package = binaries.parents[1]
    for each in package.parent.glob(f"{package.name}*"):
        shutil.copytree(each, closed / each.name, symlinks=True)
    moved = closed / binaries.relative_to(package.parent)
    monkeypatch.setattr("lakebed.testing.postgres_server.find_binaries", lambda _: moved)
    monkeypatch.setattr("tempfile.tempdir", str(closed))
    with PostgresServer() as server:
        assert closed not in server.binaries.parents
        assert server.query("SELECT 1") == [(1,)]
        server.restart()
        assert server.query("SELECT 1") == [(1,)]


@as_root
@pytest.mark.skipif(mariadb_missing() is not None, reason=str(mariadb_missing()))
def test_mariadb_in_a_closed_place(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MariaDB starts in a directory that only root may enter, with a `TMPDIR` that only root may enter."""
    monkeypatch.setattr("tempfile.tempdir", str(closed))
    with MariaDbServer() as server:
        assert server.execute("SELECT 1") == [(1,)]


@as_root
@pytest.mark.skipif(mysql_missing() is not None, reason=str(mysql_missing()))
def test_mysql_in_a_closed_place(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MySQL, which takes root for its user, starts from files that only root may read."""
    monkeypatch.setattr("tempfile.tempdir", str(closed))
    if mysql_server._UNPACKED.exists():
        (closed / "mysql").symlink_to(mysql_server._UNPACKED.resolve())
        monkeypatch.setattr(mysql_server, "_UNPACKED", closed / "mysql")
    with MySqlServer() as server:
        assert server.execute("SELECT 1") == [(1,)]
