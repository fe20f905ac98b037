"""Real servers of both kinds, one of each for all tests of a process; databases of their own for each test.

Every test that asks for `db` runs on MariaDB, and nightly on MySQL. Those marked `mysql` run on both by default;
`only_mariadb` and `only_mysql` say that there is nothing to see on the other. Statements are written as MariaDB spells
them; `Database.run` says them to MySQL in its own words.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from tests.patience import PATIENCE_S

from lakebed.cdc.envelope import Chunk, chunks_from_arrow
from lakebed.cdc.sources.mysql.columns import TableColumns
from lakebed.cdc.sources.mysql.log.reader import LogReader
from lakebed.cdc.sources.mysql.log.transactions import Piece, Rows
from lakebed.cdc.sources.mysql.server.catalog import read_tables
from lakebed.cdc.sources.mysql.server.changes import ChangeReader, TableChanges
from lakebed.cdc.sources.mysql.server.server import Server
from lakebed.cdc.sources.mysql.settings import ServerSettings, keep_password
from lakebed.metadata.source_position import MariaDbPosition, MySqlPosition
from lakebed.testing.mariadb_server import MariaDbServer
from lakebed.testing.mysql_server import MySqlServer
from lakebed.testing.sql_server import PASSWORD, USER, SqlServer

_NUMBERS = itertools.count(1)
_KINDS: dict[str, type[SqlServer]] = {"mariadb": MariaDbServer, "mysql": MySqlServer}
_RUNNING: dict[str, SqlServer] = {}
_SEQUENCE = re.compile(r"seq_(\d+)_to_(\d+)")
_REPLACED = re.compile(r"CREATE OR REPLACE (TABLE|USER) (\S+)")

Position = MariaDbPosition | MySqlPosition


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of a server run on both kinds, on MySQL mostly at night."""
    if "server_kind" not in metafunc.fixturenames:
        return
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    cases = [] if "only_mysql" in marks else [pytest.param("mariadb")]
    if "only_mariadb" not in marks:
        cases.append(pytest.param("mysql", marks=() if marks & {"mysql", "only_mysql"} else pytest.mark.nightly))
    metafunc.parametrize("server_kind", cases, indirect=True)


@pytest.fixture
def server_kind(request: pytest.FixtureRequest) -> str:
    """Which server: `mariadb` or `mysql`."""
    kind: str = request.param
    if (reason := _KINDS[kind].missing()) is not None:
        pytest.skip(reason)
    return kind


def make_server(kind: str, settings: list[str] | None = None, *, durable: bool = False) -> SqlServer:
    """A server of its own, not started yet."""
    own = ["--cte-max-recursion-depth=1000000"] if kind == "mysql" else []
    return _KINDS[kind]([*own, *(settings or [])], durable=durable)


@pytest.fixture(scope="session", autouse=True)
def _end_of_servers() -> Iterator[None]:
    yield
    for server in _RUNNING.values():
        server.remove()
    _RUNNING.clear()


@pytest.fixture
def server(server_kind: str) -> SqlServer:
    """A running server, the same for all tests."""
    if server_kind not in _RUNNING:
        _RUNNING[server_kind] = make_server(server_kind).start()
    return _RUNNING[server_kind]


@dataclass
class Database:
    """An empty database and ways to look at what the log says of it."""

    server: SqlServer
    name: str
    connection: Any
    settings: ServerSettings

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Runs statements in one session; the rows of the last."""
        rows: list[tuple[Any, ...]] = []
        with self.connection.cursor() as cursor:
            for statement in (words for each in statements for words in self._spelled(each)):
                cursor.execute(statement)
                rows = list(cursor.fetchall())
        return rows

    def _spelled(self, statement: str) -> list[str]:
        """A statement in the server's own words."""
        if self.server.mariadb:
            return [statement]
        statement = _SEQUENCE.sub(lambda found: numbers(int(found[1]), int(found[2])), statement)
        if (replaced := _REPLACED.match(statement)) is not None:
            kind, name = replaced[1], replaced[2]
            return [f"DROP {kind} IF EXISTS {name}", f"CREATE {kind} {name}{statement[replaced.end() :]}"]
        return [statement]

    def reconnect(self) -> None:
        """A new session, after the server's settings changed or the server started again."""
        self.connection._force_close()
        self.connection.connect()
        self.run(f"USE {self.name}", "SET SESSION time_zone = '+00:00'")

    def position(self) -> Position:
        """Where the log ends."""
        return Server.of(self.connection).position()

    def pieces(self, start: Position) -> list[Piece]:
        """Committed pieces of the log since a position."""
        reader = LogReader(self.settings, start, next(_NUMBERS) + 1000)
        try:
            return list(reader.read_to(self.position()))
        finally:
            reader.close()

    def purge_log(self) -> None:
        """Deletes all but the newest file of the log, which must not be in use for that."""
        for (thread,) in self.run("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"):
            with contextlib.suppress(Exception):
                self.run(f"KILL {thread}")
        newest = self.run("FLUSH BINARY LOGS", "SHOW BINARY LOGS")[-1][0]
        deadline = time.monotonic() + PATIENCE_S
        while self.run(f"PURGE BINARY LOGS TO '{newest}'", "SHOW BINARY LOGS")[0][0] != newest:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def catalog(self, database: str, table: str) -> TableColumns | None:
        """What the catalog says of a table."""
        return next(iter(read_tables(self.connection, [(database, table)], mariadb=self.server.mariadb)), None)

    def changes(self, start: Position, *modes: str, zone: str = "UTC") -> list[TableChanges]:
        """Changes of this database's tables since a position."""
        reader = ChangeReader(
            lambda database, _: database == self.name, self.catalog, modes, mariadb=self.server.mariadb, zone=zone
        )
        return [change for piece in self.pieces(start) if isinstance(piece, Rows) for change in reader.read(piece)]

    def events(self, start: Position, *columns: str) -> list[tuple[Any, ...]]:
        """Changes as tuples: their sign, then some columns."""
        signs = ("+I", "-U", "+U", "-D")
        found: list[tuple[Any, ...]] = []
        for change in self.changes(start):
            values = [change.columns[name].to_pylist() for name in columns]
            found += list(zip([signs[kind] for kind in change.kinds.tolist()], *values, strict=True))
        return found


@pytest.fixture
def db(server: SqlServer) -> Iterator[Database]:
    """An empty database, which the connection uses."""
    name = f"test{next(_NUMBERS)}"
    server.execute(f"CREATE DATABASE {name}")
    connection = server.connect(database=name, init_command="SET SESSION time_zone = '+00:00'")
    settings = ServerSettings("127.0.0.1", server.port, USER, keep_password(PASSWORD))
    yield Database(server, name, connection, settings)
    connection.close()
    server.execute(f"DROP DATABASE {name}")


def numbers(first: int, last: int) -> str:
    """A table with the column `seq`, in MySQL's words."""
    rows = f"SELECT {first} AS seq UNION ALL SELECT seq + 1 FROM counted WHERE seq < {last}"
    return f"(WITH RECURSIVE counted AS ({rows}) SELECT seq FROM counted) AS counted"


def chunks_of(batches: list[pa.RecordBatch]) -> list[Chunk]:
    """Envelope rows of what a task of a source gave."""
    return [chunk for batch in batches for chunk in chunks_from_arrow(batch)]
