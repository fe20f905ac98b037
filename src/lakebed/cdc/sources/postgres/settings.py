"""How a PostgreSQL is reached and what is followed there: plain data that goes to the workers without its password.

The password is never a field that is sent, shown or pickled. Workers find it where libpq looks: in a password file or
in an environment variable that the settings name. A password that was typed into a URL is put into a private file.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import tempfile
import urllib.parse
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any, Self

from lakebed.cdc.envelope import SourceName
from lakebed.cdc.routing import TablePatterns, spellings
from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.records import dataclass

_NAME_BYTES = 63
_SLOT = re.compile(r"[a-z0-9_]{1,63}")
_MIB = 1 << 20
_MODES = ("auto", "peek", "replication")
_POLICIES = {
    "tables_without_key": ("fail", "skip"),
    "unsupported_types": ("fail", "string"),
    "values_that_do_not_fit": ("fail", "null"),
    "unbounded_numeric": ("decimal", "string", "round"),
    "on_error": ("stop", "park", "dead-letter"),
    "mode": _MODES,
}
_LIFE_SIGNS = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
"""A network that was cut says nothing: without these a connection over it would be waited for, for hours."""
_URL_OPTIONS = {"sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "passfile", "application_name"}


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """All that a task has to know. Regular expressions match the whole of `schema.table`, as in Paimon's jobs."""

    host: str = "localhost"
    port: int = 5432
    database: str = "postgres"
    user: str = "postgres"
    passfile: str | None = None
    password_env: str | None = None
    ssl: tuple[tuple[str, str], ...] = ()
    slot: str = "lakebed"
    publication: str = "lakebed"
    schemas: str = "public"
    including: str = ".*"
    excluding: str = ""
    only: TablePatterns = field(default_factory=TablePatterns)
    mode: str = "auto"
    tables_without_key: str = "fail"
    unsupported_types: str = "fail"
    values_that_do_not_fit: str = "fail"
    unbounded_numeric: str = "decimal"
    on_error: str = "stop"
    type_mapping: tuple[str, ...] = ()
    new_tables: bool = True
    adopt_slot: bool = False
    copy: bool = True
    copy_chunk_bytes: int = 64 * _MIB
    copy_chunks_per_batch: int = 8
    max_wal_bytes_per_batch: int = 256 * _MIB
    heartbeat_ms: int = 10_000
    discovery_ms: int = 10_000
    wait_ms: int = 60_000
    tells_times: bool = False

    def __post_init__(self) -> None:
        for name, choices in _POLICIES.items():
            value = getattr(self, name)
            if value not in choices:
                raise InvalidArgument(f"`{name}` is `{value}`", hint=did_you_mean(value, choices))
        for name in ("copy_chunk_bytes", "copy_chunks_per_batch", "max_wal_bytes_per_batch", "wait_ms"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"`{name}` is {getattr(self, name)}", hint="give a number above 0")
        for name in ("schemas", "including", "excluding"):
            _check_pattern(name, getattr(self, name))
        if not _SLOT.fullmatch(self.slot):
            raise InvalidArgument(
                f"`{self.slot}` is no name for a replication slot",
                hint="use 1 to 63 of the characters a-z, 0-9 and _ in `slot`",
            )
        check_name("publication", self.publication)
        check_name("database", self.database)
        check_name("user", self.user)

    # --- texts ------------------------------------------------------------------------------------------------------

    @classmethod
    def of(cls, url: str | None = None, password: str | None = None, **given: Any) -> Self:
        """Settings from a URL, or from parts, or both: parts win. A password ends up in a private file."""
        known = set(cls.__dataclass_fields__) - {"only", "tells_times"} | _URL_OPTIONS
        for name in given:
            if name not in known:
                raise InvalidArgument(f"`{name}` is no setting of a PostgreSQL source", hint=did_you_mean(name, known))
        parts: dict[str, Any] = {}
        if url is not None:
            parts, url_password = _parse_url(url)
            password = password if password is not None else url_password
        # As in the URL: what libpq takes may be said as a setting, too.
        network = {name: str(given.pop(name)) for name in _URL_OPTIONS - {"passfile"} if given.get(name) is not None}
        if network:
            parts["ssl"] = tuple(sorted({**dict(parts.get("ssl", ())), **network}.items()))
        parts |= {name: _plain(value) for name, value in given.items() if value is not None}
        settings = cls(**parts)
        return settings if password is None else replace(settings, passfile=_private_passfile(settings, password))

    def to_text(self) -> str:
        """JSON for Spark's options: no secret is in it."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Inverse of `to_text`."""
        body = json.loads(text)
        body["ssl"] = tuple((str(key), str(value)) for key, value in body["ssl"])
        body["type_mapping"] = tuple(body["type_mapping"])
        body["only"] = TablePatterns(**body["only"])
        return cls(**body)

    # --- use --------------------------------------------------------------------------------------------------------

    def connection_arguments(self) -> dict[str, Any]:
        """Arguments of `psycopg.connect`. This is the one place where the password is looked up."""
        arguments: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "dbname": self.database,
            "user": self.user,
            "connect_timeout": 10,
            "client_encoding": "utf8",
            "application_name": f"lakebed {self.slot}",
            **_LIFE_SIGNS,
            **dict(self.ssl),
        }
        if self.passfile is not None:
            arguments["passfile"] = self.passfile
        if self.password_env is not None:
            if self.password_env not in os.environ:
                raise NotFound(
                    f"environment variable `{self.password_env}`, which should hold the password, is not set",
                    hint="set it for the driver and, on a cluster, for the executors",
                )
            arguments["password"] = os.environ[self.password_env]
        return arguments

    def matches(self, schema: str, table: str) -> bool:
        """Whether a table is one of those to follow. Excluding wins."""
        source = SourceName(self.database, schema, table)
        if not re.fullmatch(self.schemas, schema) or not self.only.follow(source):
            return False
        names = spellings(source)
        if self.excluding and any(re.fullmatch(self.excluding, name) for name in names):
            return False
        return any(re.fullmatch(self.including, name) for name in names)

    @property
    def place(self) -> str:
        """The server as errors name it."""
        return f"{self.user}@{self.host}:{self.port}/{self.database}"


def check_name(what: str, name: str) -> None:
    """Refuses names that PostgreSQL would cut off or can not have."""
    if not name or "\0" in name or len(name.encode()) > _NAME_BYTES:
        raise InvalidArgument(
            f"`{name[:80]}` is no name for a {what}",
            hint=f"use 1 to {_NAME_BYTES} bytes: PostgreSQL would cut off the rest",
        )


def _check_pattern(name: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidArgument(
            f"`{name}` is no regular expression: {error}", hint="escape special characters with a backslash"
        ) from error


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _parse_url(url: str) -> tuple[dict[str, Any], str | None]:
    try:
        parsed = urllib.parse.urlsplit(url)
        port = parsed.port
    except ValueError:
        # The text is not repeated: a URL that is not understood may hold a password anywhere.
        raise InvalidArgument(
            "the URL of the PostgreSQL is not understood", hint="write it as postgresql://user@host:5432/database"
        ) from None
    if parsed.scheme not in ("postgresql", "postgres"):
        raise InvalidArgument(
            f"`{parsed.scheme}` is no scheme of a PostgreSQL URL",
            hint="write it as postgresql://user@host:5432/database",
        )
    parts: dict[str, Any] = {}
    if parsed.hostname:
        parts["host"] = urllib.parse.unquote(parsed.hostname)
    if port:
        parts["port"] = port
    if parsed.username:
        parts["user"] = urllib.parse.unquote(parsed.username)
    if parsed.path.strip("/"):
        parts["database"] = urllib.parse.unquote(parsed.path[1:])
    options = dict(urllib.parse.parse_qsl(parsed.query))
    for name in options:
        if name not in _URL_OPTIONS:
            raise InvalidArgument(f"`{name}` is no option of the URL", hint=did_you_mean(name, _URL_OPTIONS))
    parts["passfile"] = options.pop("passfile", None)
    parts["ssl"] = tuple(sorted(options.items()))
    return parts, urllib.parse.unquote(parsed.password) if parsed.password is not None else None


def _private_passfile(settings: PostgresSettings, password: str) -> str:
    """A file in libpq's form that only this user can read; removed when the process ends."""

    def escaped(part: str) -> str:
        return part.replace("\\", "\\\\").replace(":", "\\:")

    if "\n" in password or "\r" in password or "\0" in password:
        raise InvalidArgument(
            "the password has a line break in it, which a password file can not hold",
            hint="put it into an environment variable and name that in `password_env`",
        )
    handle, path = tempfile.mkstemp(prefix="lakebed-", suffix=".pgpass")  # readable by its owner only
    line = ":".join(["*", "*", escaped(settings.database), escaped(settings.user), escaped(password)])
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        # Replication connections look for the database `replication` in old servers' clients; ours name the real one.
        file.write(line + "\n")
    atexit.register(_remove, path)
    return path


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        Path(path).unlink()


__all__ = ["PostgresSettings", "check_name"]
