"""Where the server is and how to log in, in a form that may be shown: the password itself is never part of it.

Readers run in Spark's workers, and Spark shows a source's options in plans and logs. So what travels is the name of an
environment variable or of a file; the password is looked up where a connection is opened, and nowhere else.
"""

from __future__ import annotations

import atexit
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from lakebed.errors import AccessDenied, InvalidOption, MissingDependency, StorageError
from lakebed.records import dataclass

_CONNECT_SECONDS: Final = 10
_READ_SECONDS: Final = 600
_PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How to reach a MySQL or MariaDB server."""

    host: str
    port: int
    user: str
    password_file: str | None = None
    password_env: str | None = None
    tls_ca: str | None = None

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"

    def password(self) -> str:
        """The password, from where it lies. Do not keep it."""
        if self.password_env is not None:
            value = os.environ.get(self.password_env)
            if value is None:
                raise InvalidOption(
                    f"the environment variable `{self.password_env}` for the password of {self} is not set",
                    hint="set it where the driver and Spark's workers run, or name a file with `password_file`",
                )
            return value
        if self.password_file is not None:
            try:
                return Path(self.password_file).read_text(encoding="utf-8").rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidOption(
                    f"the password of {self} can not be read from the file {self.password_file}",
                    hint="the file holds the password alone, in UTF-8, on every machine that runs Spark's workers",
                ) from error
        return ""

    def connect(self, **more: Any) -> Any:
        """A connection of PyMySQL in UTC and utf8mb4. Errors name the server and the user, never the password."""
        pymysql = _pymysql()
        arguments: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password().encode(),  # of a text PyMySQL would make Latin-1
            "charset": "utf8mb4",
            "connect_timeout": _CONNECT_SECONDS,
            "read_timeout": _READ_SECONDS,
            "autocommit": True,
            "init_command": "SET SESSION time_zone = '+00:00'",
        }
        if self.tls_ca is not None:
            arguments["ssl"] = {"ca": self.tls_ca}
        try:
            return pymysql.connect(**{**arguments, **more})
        except (pymysql.MySQLError, RuntimeError) as error:
            raise _not_connected(self, error) from None  # the cause's frames hold the password

    def connect_patiently(self, **more: Any) -> Any:
        """A connection to a server that may be starting anew: what is under way need not end for that."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return self.connect(**more)
            except StorageError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def options(self) -> dict[str, str]:
        """The settings as options of a Spark reader."""
        values = {
            "host": self.host,
            "port": str(self.port),
            "user": self.user,
            "password-file": self.password_file,
            "password-env": self.password_env,
            "tls-ca": self.tls_ca,
        }
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """Inverse of `options`."""
        try:
            return cls(
                options["host"],
                int(options["port"]),
                options["user"],
                options.get("password-file"),
                options.get("password-env"),
                options.get("tls-ca"),
            )
        except (KeyError, ValueError) as error:
            raise InvalidOption(
                f"options of a MySQL source are missing or wrong: {error}", hint="needed: host, port and user"
            ) from error


@contextmanager
def answering(connection: Any) -> Iterator[None]:
    """What the server says within this; PyMySQL's own errors are told as ours, so that who waits for it goes on."""
    try:
        yield
    except (connection.Error, OSError) as error:
        raise StorageError(
            f"the server refuses or gave up a query: {error.args[-1] if error.args else error}",
            hint="try again; if it stays so, look into the server's error log",
        ) from error


def rows(connection: Any, query: str, values: tuple[Any, ...] | None = None) -> list[tuple[Any, ...]]:
    """All rows of a small query."""
    with answering(connection), connection.cursor() as cursor:
        cursor.execute(query, values)
        return list(cursor.fetchall())


def _pymysql() -> Any:
    try:
        import pymysql
    except ImportError as error:
        raise MissingDependency(
            "following a MySQL needs PyMySQL, which is not installed",
            hint='install it with: pip install "lakebed[cdc]"',
        ) from error
    return pymysql


def _not_connected(settings: ServerSettings, error: Exception) -> Exception:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else None
    if code in (1044, 1045, 1698):
        return AccessDenied(
            f"the server refuses to log in {settings} (error {code})",
            hint=f"check user and password; ALTER USER '{settings.user}'@'%' IDENTIFIED BY '…' sets a new one",
        )
    if isinstance(error, RuntimeError):
        return MissingDependency(
            f"{settings}: the way this user logs in needs another package: {error}",
            hint="pip install cryptography, or use TLS (`tls_ca`)",
        )
    reason = str(error.args[-1]) if error.args else type(error).__name__
    return StorageError(
        f"no connection to the server {settings}: {reason}",
        hint="check host and port, that the server runs, and that it listens there (bind-address)",
    )


def keep_password(password: str) -> str:
    """Puts a password into a file that only this user can read, and names it. It ends with the process."""
    handle, path = tempfile.mkstemp(prefix="lakebed-", suffix=".secret")  # mkstemp makes it with mode 0600
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(password)
    atexit.register(_forget_password, path)
    return path


def _forget_password(path: str) -> None:
    """Deletes a file of `keep_password`."""
    with suppress(FileNotFoundError):
        os.unlink(path)


__all__ = ["ServerSettings", "answering", "keep_password", "rows"]
