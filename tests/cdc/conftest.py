"""Real databases for tests of change capture: one server per version and run, a database of its own for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.sessions import open_session

from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.testing.postgres_server import PostgresServer, available_versions

VERSIONS = available_versions()
_COUNTER = itertools.count()
_SERVERS: dict[int, PostgresServer] = {}


@dataclass(frozen=True)
class Database:
    """A database of a running server."""

    server: PostgresServer
    name: str

    def connect(self) -> Any:
        """A connection that commits every statement."""
        return self.server.connect(self.name)

    def execute(self, *statements: str) -> None:
        """Runs statements, each in a transaction of its own."""
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    def query(self, statement: str, *arguments: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self.connect() as connection:
            return connection.execute(statement, arguments or None).fetchall()

    def settings(self, **given: Any) -> PostgresSettings:
        """Settings of a source that follows it; slots are named after the database, since servers share their names."""
        names = {"slot": self.name, "publication": "lakebed"}
        return PostgresSettings.of(self.server.url, **(names | {"database": self.name} | given))

    @property
    def url(self) -> str:
        """Its connection URL, with the password."""
        return self.server.url.rpartition("/")[0] + f"/{self.name}"


@pytest.fixture(scope="session", autouse=True)
def _stop_servers() -> Iterator[None]:
    yield
    for server in _SERVERS.values():
        server.close()
    _SERVERS.clear()


def _server(version: int) -> PostgresServer:
    if version not in _SERVERS:
        _SERVERS[version] = PostgresServer(version).start()
    return _SERVERS[version]


def _database(version: int) -> Iterator[Database]:
    server = _server(version)
    name = f"db{next(_COUNTER)}"
    with server.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield Database(server, name)
    with server.connect() as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        slots = connection.execute("SELECT slot_name FROM pg_replication_slots WHERE database = %s", [name]).fetchall()
        for (slot,) in slots:
            # Whoever held it may not be gone yet on a busy machine.
            connection.execute(
                "SELECT pg_terminate_backend(active_pid, 60000) FROM pg_replication_slots "
                "WHERE slot_name = %s AND active_pid IS NOT NULL",
                [slot],
            )
            connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database() -> Iterator[Database]:
    """An empty database of the newest version here."""
    if not VERSIONS:
        pytest.skip("no PostgreSQL is installed")
    yield from _database(VERSIONS[-1])


@pytest.fixture(params=VERSIONS or [None])
def any_database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """An empty database of each version here."""
    if request.param is None:
        pytest.skip("no PostgreSQL is installed")
    yield from _database(request.param)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A Spark session."""
    session = open_session()
    yield session
    session.stop()
