"""What a server is and where it stands: flavour, current position, and when a position can be seen by new snapshots."""

from __future__ import annotations

import re
import time
from typing import Any, Final

from lakebed.cdc.sources.mysql.settings import rows
from lakebed.errors import NotFound, StorageError
from lakebed.metadata.source_position import MariaDbPosition, MySqlPosition
from lakebed.records import dataclass

_WAIT_S: Final = 60
_VERSION: Final = re.compile(r"(\d+)\.(\d+)")
_FILE_NUMBER: Final = re.compile(r"\.(\d+)$")


@dataclass(frozen=True, slots=True)
class Server:
    """A connection and which of the two servers it leads to."""

    connection: Any
    mariadb: bool
    version: str

    @classmethod
    def of(cls, connection: Any) -> Server:
        """Asks the server what it is."""
        version = str(value(connection, "SELECT VERSION()"))
        return cls(connection, "mariadb" in version.lower(), version)

    def position(self) -> MariaDbPosition | MySqlPosition:
        """Behind the last transaction of the binary log."""
        if self.mariadb:
            return MariaDbPosition.parse(str(value(self.connection, "SELECT @@GLOBAL.gtid_binlog_pos")))
        return MySqlPosition.parse(str(value(self.connection, "SELECT @@GLOBAL.gtid_executed")))

    def parse(self, text: str) -> MariaDbPosition | MySqlPosition:
        """A position from its text."""
        return MariaDbPosition.parse(text) if self.mariadb else MySqlPosition.parse(text)

    @property
    def orders_keys(self) -> bool:
        """Whether the server can tell the order of keys that are sent to it (JSON_TABLE)."""
        found = _VERSION.search(self.version)
        version = (int(found[1]), int(found[2])) if found else (0, 0)
        return version >= ((10, 6) if self.mariadb else (8, 0))

    def log_place(self) -> tuple[int, int]:
        """Number of the current log file and the place in it: ordered like the log."""
        row = rows(self.connection, "SHOW MASTER STATUS" if self._says_master() else "SHOW BINARY LOG STATUS")[0]
        return _place(str(row[0]), int(row[1]))

    def _says_master(self) -> bool:
        return self.mariadb or (int(self.version.split(".")[0]) < 9 and not self.version.startswith("8.4"))

    def start_snapshot(self, position: MariaDbPosition | MySqlPosition) -> None:
        """Begins a transaction that sees every transaction up to a position, and perhaps later ones.

        A transaction stands in the log before the engine lets others see it, so it is not enough that it is in the log.
        """
        deadline = time.monotonic() + _WAIT_S
        if not self.mariadb:
            # MySQL counts a transaction as executed once others see it.
            while not covers(self.position(), position):
                self._wait(deadline, position)
            execute(self.connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
            return
        if not covers(self.position(), position):
            raise NotFound(
                f"the server's binary log ends before {position}",
                hint="start again with a new checkpoint, or use the old server",
            )
        place = self.log_place()  # at or behind the position
        while True:
            execute(self.connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
            seen = dict(rows(self.connection, "SHOW STATUS LIKE 'binlog_snapshot_%'"))
            if _place(str(seen["Binlog_snapshot_file"]), int(seen["Binlog_snapshot_position"])) >= place:
                return
            execute(self.connection, "ROLLBACK")
            self._wait(deadline, position)

    def _wait(self, deadline: float, position: object) -> None:
        if time.monotonic() > deadline:
            raise StorageError(
                f"transactions up to {position} are in the binary log but can not be seen after {_WAIT_S} s",
                hint="is the server waiting for a semi-synchronous replica? try again then",
            )
        time.sleep(0.01)


def covers(position: MariaDbPosition | MySqlPosition, other: MariaDbPosition | MySqlPosition) -> bool:
    """Whether a position is at or past another of the same flavour."""
    if isinstance(position, MariaDbPosition) and isinstance(other, MariaDbPosition):
        return position.covers(other)
    return isinstance(position, MySqlPosition) and isinstance(other, MySqlPosition) and position.covers(other)


def _place(file: str, offset: int) -> tuple[int, int]:
    found = _FILE_NUMBER.search(file)
    return (int(found[1]) if found else 0), offset


def value(connection: Any, query: str) -> Any:
    """The one value of a query."""
    return rows(connection, query)[0][0]


def execute(connection: Any, statement: str) -> None:
    """Runs a statement."""
    rows(connection, statement)


def is_alive(connection: Any) -> bool:
    """Whether the server still answers on a connection; one that does not is closed."""
    try:
        connection.ping(reconnect=False)
    except (connection.Error, OSError):
        connection._force_close()
        return False
    return True


__all__ = ["Server", "covers", "execute", "is_alive", "rows", "value"]
