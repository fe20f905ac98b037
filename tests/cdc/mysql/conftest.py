"""One MariaDB for all tests of a process; databases of their own for each test."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from lakebed.cdc.envelope import Chunk, chunks_from_arrow
from lakebed.cdc.sources.mysql.catalog import read_tables
from lakebed.cdc.sources.mysql.changes import ChangeReader, TableChanges
from lakebed.cdc.sources.mysql.columns import TableColumns
from lakebed.cdc.sources.mysql.log_reader import LogReader
from lakebed.cdc.sources.mysql.position import MariaDbPosition
from lakebed.cdc.sources.mysql.server import Server
from lakebed.cdc.sources.mysql.settings import ServerSettings, keep_password
from lakebed.cdc.sources.mysql.transactions import Piece, Rows
from lakebed.testing.mariadb_server import PASSWORD, USER, MariaDbServer, mariadb_missing

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDbServer]:
    """A running server."""
    reason = mariadb_missing()
    if reason is not None:
        pytest.skip(reason)
    with MariaDbServer() as server:
        yield server


@dataclass
class Database:
    """An empty database and ways to look at what the log says of it."""

    server: MariaDbServer
    name: str
    connection: Any
    settings: ServerSettings

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Runs statements in one session; the rows of the last."""
        rows: list[tuple[Any, ...]] = []
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = list(cursor.fetchall())
        return rows

    def reconnect(self) -> None:
        """A new session, after the server's settings changed or the server started again."""
        self.connection._force_close()
        self.connection.connect()
        self.run(f"USE {self.name}", "SET SESSION time_zone = '+00:00'")

    def position(self) -> MariaDbPosition:
        """Where the log ends."""
        position = Server.of(self.connection).position()
        assert isinstance(position, MariaDbPosition)
        return position

    def pieces(self, start: MariaDbPosition) -> list[Piece]:
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
        deadline = time.monotonic() + 30
        while self.run(f"PURGE BINARY LOGS TO '{newest}'", "SHOW BINARY LOGS")[0][0] != newest:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def catalog(self, database: str, table: str) -> TableColumns | None:
        """What the catalog says of a table."""
        return next(iter(read_tables(self.connection, [(database, table)], mariadb=True)), None)

    def changes(self, start: MariaDbPosition, *modes: str, zone: str = "UTC") -> list[TableChanges]:
        """Changes of this database's tables since a position."""
        reader = ChangeReader(lambda database, _: database == self.name, self.catalog, modes, mariadb=True, zone=zone)
        return [change for piece in self.pieces(start) if isinstance(piece, Rows) for change in reader.read(piece)]

    def events(self, start: MariaDbPosition, *columns: str) -> list[tuple[Any, ...]]:
        """Changes as tuples: their sign, then some columns."""
        signs = ("+I", "-U", "+U", "-D")
        found: list[tuple[Any, ...]] = []
        for change in self.changes(start):
            values = [change.columns[name].to_pylist() for name in columns]
            found += list(zip([signs[kind] for kind in change.kinds.tolist()], *values, strict=True))
        return found


@pytest.fixture
def db(mariadb: MariaDbServer) -> Iterator[Database]:
    """An empty database, which the connection uses."""
    name = f"test{next(_NUMBERS)}"
    mariadb.execute(f"CREATE DATABASE {name}")
    connection = mariadb.connect(database=name, init_command="SET SESSION time_zone = '+00:00'")
    settings = ServerSettings("127.0.0.1", mariadb.port, USER, keep_password(PASSWORD))
    yield Database(mariadb, name, connection, settings)
    connection.close()
    mariadb.execute(f"DROP DATABASE {name}")


def chunks_of(batches: list[pa.RecordBatch]) -> list[Chunk]:
    """Envelope rows of what a task of a source gave."""
    return [chunk for batch in batches for chunk in chunks_from_arrow(batch)]
