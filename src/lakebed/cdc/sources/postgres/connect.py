"""Connections to PostgreSQL, and what their failures mean.

Every session has the same settings, so that values have one spelling wherever they come from: the copy, a peek or the
replication stream. Errors are turned into ours here; their texts never hold a password.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.errors import AccessDenied, InvalidArgument, LakebedError, MissingDependency, NotFound, StorageError

if TYPE_CHECKING:
    import psycopg

_RETRY_S = 0.2
_SESSION = {
    "TimeZone": "UTC",
    "DateStyle": "ISO,YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    # A task that was killed must not hold the slot until its query ends by itself.
    "client_connection_check_interval": "1s",
}
"""Servers before 14 lack the last one; they are refused by `check`."""


def connect(
    settings: PostgresSettings, *, replication: bool = False, autocommit: bool = True, patient: bool = False
) -> psycopg.Connection[Any]:
    """A new connection. A patient one waits for a server that is just starting."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingDependency(
            "following a PostgreSQL needs psycopg, which is not installed",
            hint='install it with: pip install "lakebed[cdc]"',
        ) from error
    options = " ".join(f"-c {name}={value.replace(' ', '')}" for name, value in _SESSION.items())
    arguments = settings.connection_arguments() | {"options": options}
    if replication:
        arguments["replication"] = "database"
    deadline = time.monotonic() + (settings.wait_ms / 1000 if patient else 0)
    while True:
        try:
            return psycopg.connect(autocommit=autocommit, **arguments)
        except psycopg.OperationalError as error:
            if time.monotonic() > deadline or not _is_passing(error):
                _refused(settings, error)
            time.sleep(_RETRY_S)


@contextmanager
def session(
    settings: PostgresSettings, *, autocommit: bool = True, patient: bool = False
) -> Iterator[psycopg.Connection[Any]]:
    """A connection for one piece of work; what the server says against it comes out as an error of ours."""
    connection = connect(settings, autocommit=autocommit, patient=patient)  # says so if the package is missing

    import psycopg

    try:
        with connection:
            yield connection
    except psycopg.Error as error:
        raise translated(settings, error) from error


def translated(settings: PostgresSettings, error: psycopg.Error) -> LakebedError:
    """Our error for one of the server's."""
    state = error.sqlstate or ""
    text = first_line(error)
    place = settings.place
    if state == "42501":
        return InvalidArgument(
            f"{place}: {text}", hint=f'let its owner or a superuser give "{settings.user}" that right'
        )
    if state == "42704" or state.startswith("42P"):
        return NotFound(f"{place}: {text}", hint="check the names, and whether somebody dropped it")
    return StorageError(f"{place}: {text}", hint="see the server's log; the sync goes on where it was")


def first_line(error: BaseException) -> str:
    """What an error says, in one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _is_passing(error: BaseException) -> bool:
    """Whether it is worth trying again: the server is down or on its way up or down."""
    text = str(error).lower()
    return any(part in text for part in ("refused", "starting up", "shutting down", "recovery", "closed", "timeout"))


def _refused(settings: PostgresSettings, error: BaseException) -> NoReturn:
    text = first_line(error)
    place = settings.place
    lower = str(error).lower()
    if "password" in lower or "authentication" in lower or "pg_hba" in lower:
        raise AccessDenied(
            f"{place} does not let us in: {text}",
            hint="check user and password (passfile, or the environment variable that `password_env` names), "
            f'or ALTER ROLE "{settings.user}" PASSWORD …; and a line for this client in pg_hba.conf',
        ) from None
    if "does not exist" in lower:
        raise NotFound(f"{place}: {text}", hint="check `database` and `user`") from None
    raise StorageError(
        f"{place} can not be reached: {text}", hint="check `host` and `port`, and that the server is running"
    ) from None


__all__ = ["connect", "first_line", "session", "translated"]
