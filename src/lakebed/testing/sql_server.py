"""A server of the MySQL family as tests need it: its own data directory, 127.0.0.1, a free port, a log to follow.

What MariaDB and MySQL have in common: a process, a home that is thrown away, a user with all rights. How their data
directories are made and with which settings they start stands in `mariadb_server` and `mysql_server`. No service, no
configuration of the machine is touched. Nothing of the product imports it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from lakebed.errors import MissingDependency, StorageError
from lakebed.testing.ports import free_port
from lakebed.testing.unprivileged import new_home

USER = "lakebed"
PASSWORD = "s3cret/lake'bed"
"""A user with all rights, who logs in over TCP. The password would show where somebody forgets to hide or quote it."""

_START_SECONDS = 60


def _reasons(said: str) -> str:
    """What a program says went wrong, of all that it says."""
    return "\n".join(line for line in said.splitlines() if "ERROR" in line.upper()) or said[:1000]


class SqlServer(ABC):
    """A server process and its data. `with Server() as server:` starts it and takes everything away after."""

    title: ClassVar[str]
    """What the server is called."""
    mariadb: ClassVar[bool]
    """Which of the two it is."""

    def __init__(self, settings: Sequence[str] = (), *, durable: bool = False) -> None:
        if (reason := self.missing()) is not None:
            raise MissingDependency(f"a {self.title} server can not be started", hint=reason)
        self.settings = tuple(settings)
        self.durable = durable
        self.port = free_port()
        self.home = new_home(f"lakebed-{self.title.lower()}-")
        self.process: subprocess.Popen[bytes] | None = None
        self._account: str | None = None

    @classmethod
    @abstractmethod
    def missing(cls) -> str | None:
        """Why no server can be started here, or None."""

    @abstractmethod
    def _make_data_command(self) -> list[str]:
        """The command that makes the data directory."""

    @abstractmethod
    def _command(self) -> list[str]:
        """The command that runs the server, with settings that only this kind of server knows."""

    @property
    def data(self) -> Path:
        """The data directory; binary logs lie there too."""
        return self.home / "data"

    @property
    def log(self) -> Path:
        """What the server has to say."""
        return self.home / "server.log"

    def start(self, *more_settings: str) -> Self:
        """Starts the server, on its old data if there are any, and waits until it answers."""
        if not self.data.exists():
            self._install()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self._command(), *self._common_settings(), *self.settings, *more_settings],
                stdout=log,
                stderr=log,
                user=self._account,
                cwd=self.home,
            )
        self._wait_until_it_answers()
        return self

    def stop(self) -> None:
        """An orderly end."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """`kill -9`: what is not in the logs by now is lost."""
        self._end(signal.SIGKILL)

    def restart(self, *more_settings: str) -> Self:
        """Stop and start."""
        self.stop()
        return self.start(*more_settings)

    def remove(self) -> None:
        """Ends the server and deletes its data."""
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def connect(self, **arguments: Any) -> Any:
        """A connection of PyMySQL with all rights; each statement commits at once unless told otherwise."""
        import pymysql

        settings: dict[str, Any] = {
            "host": "127.0.0.1",
            "port": self.port,
            "user": USER,
            "password": PASSWORD,
            "autocommit": True,
            "charset": "utf8mb4",
        }
        return pymysql.connect(**{**settings, **arguments})

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Runs statements in a connection of their own; the rows of the last one."""
        connection = self.connect()
        try:
            rows: list[tuple[Any, ...]] = []
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                    rows = list(cursor.fetchall())
            return rows
        finally:
            connection.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _install(self) -> None:
        said = self._make_data()
        if said is not None:
            shutil.rmtree(self.data, ignore_errors=True)  # a busy machine may let it fail once
            said = self._make_data()
        if said is not None:
            raise StorageError(
                f"the data directory of {self.title} could not be made: {_reasons(said)}",
                hint=f"look whether {self.home} can be written",
            )
        start = self.home / "start.sql"
        quoted = PASSWORD.replace("\\", "\\\\").replace("'", "''")
        start.write_text(
            "SET sql_log_bin = 0;\n"  # nobody asked for these changes: they are none to follow
            f"CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{quoted}';\n"
            f"GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'%' WITH GRANT OPTION;\n"
        )
        os.chmod(start, 0o644)

    def _make_data(self) -> str | None:
        """What the program says if it fails."""
        done = subprocess.run(
            self._make_data_command(),
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            user=self._account,
            cwd=self.home,
        )
        return done.stdout.decode(errors="replace") if done.returncode != 0 else None

    def _common_settings(self) -> list[str]:
        sync = "1" if self.durable else "0"
        return [
            f"--datadir={self.data}",
            f"--socket={self.home}/s",
            f"--pid-file={self.home}/pid",
            "--bind-address=127.0.0.1",
            f"--port={self.port}",
            f"--init-file={self.home}/start.sql",
            "--skip-name-resolve",
            "--server-id=1",
            "--log-bin=binlog",
            "--binlog-row-image=FULL",
            "--binlog-row-metadata=FULL",
            "--max-connections=100",
            f"--sync-binlog={sync}",
            f"--innodb-flush-log-at-trx-commit={sync}",
            "--innodb-buffer-pool-size=64M",
            "--character-set-server=utf8mb4",
            "--innodb-lock-wait-timeout=5",
            "--innodb-use-native-aio=OFF",  # of which a machine has little to give to many servers
            "--performance-schema=OFF",
        ]

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self.process is None or self.process.poll() is not None:
                break
            try:
                self.connect(connect_timeout=2).close()
            except OSError:
                time.sleep(0.05)
            except Exception as error:
                if "OperationalError" not in type(error).__name__:
                    raise
                time.sleep(0.05)
            else:
                return
        told = self.log.read_text(errors="replace")[-1000:] if self.log.exists() else ""
        self.kill()
        raise StorageError(f"{self.title} does not answer on port {self.port}: {told}", hint=f"read {self.log}")

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(timeout=60)
        self.process = None


__all__ = ["PASSWORD", "USER", "SqlServer"]
