"""Servers for tests say what a machine lacks, with the package that brings it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakebed.errors import MissingDependency
from lakebed.testing import mariadb_server, mysql_server
from lakebed.testing.mariadb_server import MariaDbServer, mariadb_missing
from lakebed.testing.mysql_server import MySqlServer, mysql_missing

_PROGRAMS = ("mariadbd", "mariadb-install-db", "my_print_defaults")


def _with_programs(place: Path, monkeypatch: pytest.MonkeyPatch, *programs: str) -> None:
    """A machine that has these programs and no others."""
    for name in programs:
        (place / name).write_text("#!/bin/sh\n")
        (place / name).chmod(0o755)
    monkeypatch.setattr(mariadb_server, "_PLACES", (os.fspath(place),))
    monkeypatch.setattr(mysql_server, "_PLACES", (os.fspath(place),))


@pytest.mark.parametrize(
    ("programs", "packages"),
    [
        ((), "mariadb-server-core mariadb-client-core"),
        (("mariadbd", "mariadb-install-db"), "mariadb-client-core"),
        (("my_print_defaults",), "mariadb-server-core"),
    ],
)
def test_packages_that_mariadb_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: tuple[str, ...], packages: str
) -> None:
    """A server that is there but can not be started names what is missing, not only one that is not there."""
    _with_programs(tmp_path, monkeypatch, *programs)
    reason = mariadb_missing()
    assert reason is not None
    assert reason.endswith(f"apt-get install -y --no-install-recommends {packages}")
    assert all((name in reason) != (name in programs) for name in _PROGRAMS)
    with pytest.raises(MissingDependency, match=packages):
        MariaDbServer()


def test_a_machine_that_has_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is missing where all programs are."""
    _with_programs(tmp_path, monkeypatch, *_PROGRAMS)
    assert mariadb_missing() is None


def test_mysql_is_not_what_answers_to_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MariaDB installs a `mysqld`, too: it is not taken for MySQL; and without any, the way to get one is named."""
    monkeypatch.setattr(mysql_server, "_UNPACKED", tmp_path / "none")
    _with_programs(tmp_path, monkeypatch)
    assert ".ci/fetch-mysql" in str(mysql_missing())
    with pytest.raises(MissingDependency, match="fetch-mysql"):
        MySqlServer()
    for said, is_mysql in (("Ver 10.11.19-MariaDB for debian", False), ("Ver 9.7.4 for Linux", True)):
        (tmp_path / "mysqld").write_text(f"#!/bin/sh\necho '{said}'\n")
        (tmp_path / "mysqld").chmod(0o755)
        assert (mysql_missing() is None) is is_mysql
