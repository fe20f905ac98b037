"""A MySQL or MariaDB server as a source of changes: what the pipeline holds on the driver."""

from __future__ import annotations

import json
import os
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

from lakebed.cdc.envelope import COPY, STREAM, SourceName, SourceTable
from lakebed.cdc.routing import TablePatterns
from lakebed.cdc.sources.base import ChangeSource, SourceProgress, with_storage
from lakebed.cdc.sources.mysql.columns import TableColumns
from lakebed.cdc.sources.mysql.copy.state import CopyState
from lakebed.cdc.sources.mysql.server.check import bad_tables, check_server, check_tables
from lakebed.cdc.sources.mysql.server.follow import Follow
from lakebed.cdc.sources.mysql.server.mapping import source_table
from lakebed.cdc.sources.mysql.server.server import Server
from lakebed.cdc.sources.mysql.settings import ServerSettings, keep_password
from lakebed.cdc.sources.requests import CopyRequests
from lakebed.cdc.storage import PLAIN, Storage
from lakebed.errors import InvalidArgument, LakebedError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource

_PORT: Final = 3306
_SERVER: Final = ("host", "port", "user", "password_file", "password_env", "tls_ca")


class MySqlSource(ChangeSource):
    """A server, by URL (`mysql://user@host:3306/database`) or by its parts, and what is followed there (`Follow`).

    `database` is one database by its name, `databases` a pattern. A password given as text or in the URL is put into a
    file that only this user can read; on a cluster name one that the workers have, with `password_file`, or an
    environment variable with `password_env`.
    """

    name = "mysql"
    place = "url"
    takes_patterns = True
    keeps_transactions = True

    def __init__(
        self, url: str | None = None, *, password: str | None = None, database: str | None = None, **given: Any
    ) -> None:
        known = {*_SERVER, *Follow.__dataclass_fields__} - {"only", "tells_times"}
        for name in given:
            if name not in known:
                raise InvalidArgument(f"`{name}` is no setting of a MySQL source", hint=did_you_mean(name, known))
        server, url_password, url_database = _parse_url(url) if url is not None else ({}, None, None)
        server |= {name: given[name] for name in _SERVER if given.get(name) is not None}
        follow = {
            name: _typed(name, value) for name, value in given.items() if name not in _SERVER and value is not None
        }
        if (database := database or url_database) is not None:
            follow.setdefault("databases", re.escape(database))
        password = password if password is not None else url_password
        if password is not None:
            server["password_file"] = keep_password(password)
        settings = {"host": "127.0.0.1", "port": _PORT, "user": "root", **server}
        self.settings = ServerSettings(**{**settings, "port": _number("port", settings["port"])})
        self._state: str | None = None
        self._storage = PLAIN
        self._left_out: dict[str, str] = {}
        self.follow = Follow(**follow).with_replica_id(self.settings)

    @classmethod
    def reopened(cls, options: Mapping[str, str]) -> Self:
        """The source of a sync that was begun."""
        source = cls()
        source.settings, source.follow = ServerSettings.from_options(options), Follow.from_options(options)
        source._state = options.get("state")
        return source

    def take_password_from(self, variable: str) -> None:
        """The environment variable that holds the password here."""
        self.settings = replace(self.settings, password_env=variable)

    def keep_state_in(self, directory: str, storage: Storage = PLAIN) -> None:
        """A directory beside the checkpoint, for names of columns that the catalog may forget."""
        self._storage = storage
        self._state = directory if "://" in directory or directory.startswith("file:") else os.path.abspath(directory)

    def follow_only(self, patterns: TablePatterns) -> None:
        """Tables that a sync leaves out are not looked at."""
        self.follow = replace(self.follow, only=patterns)

    def tell_times(self, *, changes: bool) -> None:
        """Every change comes with its transaction, every copied row with the time at which it was read."""
        self.follow = replace(self.follow, tells_times=True)

    @property
    def origin(self) -> str:
        """The server."""
        return f"mysql://{self.settings.host}:{self.settings.port}"

    def check(self) -> None:
        """Raises an error that names the repair if the server, the user or a table can not be followed."""
        self._checked_tables()

    def probe(self) -> None:
        """Raises if the server does not let us in just now."""
        self.settings.connect().close()

    def tables(self) -> list[SourceTable]:
        """The tables that are followed now."""
        return [source_table(table, self.follow.type_mapping) for table in self._checked_tables()]

    def troubles(self) -> list[tuple[SourceName, LakebedError]]:
        """Tables that can not be followed now. The log does not bring their rows once they can: they are parked."""
        connection = self.settings.connect()
        try:
            found = bad_tables(Server.of(connection), self.follow)
        finally:
            connection.close()
        self._left_out = {str(table): fault.message for table, fault, is_skipped in found if is_skipped}
        return [
            (SourceName(table.database, "", table.table), fault)
            for table, fault, is_skipped in found
            if not is_skipped and self.follow.on_error != "stop"
        ]

    def left_out(self) -> dict[str, str]:
        """Tables that are skipped, and why."""
        return self._left_out

    def copy_anew(self, sources: Sequence[str]) -> None:
        """Asks for a new copy of tables, by their full names; the sync makes it once it runs."""
        if self._state is None:
            raise InvalidArgument("the source has no place for its state", hint="start it with a checkpoint first")
        names = [name.partition(".") for name in sources]
        CopyRequests(self._state, self._storage).ask([(database, table) for database, _, table in names])

    def data_source(self) -> type[DataSource]:
        """The Spark data source."""
        from lakebed.cdc.sources.mysql.spark_source import MySqlChanges

        return with_storage(MySqlChanges, self._storage)

    def reader_options(self) -> Mapping[str, str]:
        """Options of the Spark stream: the password is not among them."""
        state = {} if self._state is None else {"state": self._state}
        return {**self.settings.options(), **self.follow.options(), **state}

    def settled_at(self, offset: str) -> str | None:
        """The transactions that were read, once all tables are copied: parts are copied as of the stream's position."""
        body = json.loads(offset)
        return str(body["position"]) if CopyState.from_text(body["copy"]).is_done else None

    def progress(self, position: str | None) -> SourceProgress:
        """The phase, and whether the stream has reached the end of the log."""
        if position is None:
            return SourceProgress()
        try:
            body = json.loads(position)
            copy = CopyState.from_text(body["copy"])
            connection = self.settings.connect()
            try:
                latest = str(Server.of(connection).position())
            finally:
                connection.close()
        except (ValueError, KeyError, TypeError, LakebedError):
            return SourceProgress()
        return SourceProgress(STREAM if copy.is_done else COPY, 0 if latest == body["position"] else None)

    def __repr__(self) -> str:
        return f"<MySqlSource {self.settings}>"

    def _checked_tables(self) -> list[TableColumns]:
        connection = self.settings.connect()
        try:
            server = check_server(connection, self.settings)
            return check_tables(server, self.settings, self.follow)
        finally:
            connection.close()


def _typed(name: str, value: Any) -> Any:
    """A setting from a command line is a text; numbers and truths are made of it."""
    default = Follow.__dataclass_fields__[name].default
    if isinstance(default, bool):
        texts = {"true": True, "false": False}
        if str(value).lower() not in texts:
            raise InvalidArgument(f"`{name}` is `{value}`", hint="give true or false")
        return texts[str(value).lower()]
    return _number(name, value) if isinstance(default, int) else value


def _number(name: str, value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"`{name}` is `{value}`", hint="give a whole number") from error


def _parse_url(url: str) -> tuple[dict[str, Any], str | None, str | None]:
    """Parts of the server, password and database of a URL."""
    try:
        parsed = urllib.parse.urlsplit(url)
        port = parsed.port
    except ValueError:
        parsed, port = urllib.parse.urlsplit(""), None
    if parsed.scheme not in ("mysql", "mariadb"):
        # The text is not repeated: a URL that is not understood may hold a password anywhere.
        raise InvalidArgument(
            "the URL of the MySQL server is not understood", hint="write it as mysql://user@host:3306/database"
        )
    parts: dict[str, Any] = {"host": parsed.hostname, "port": port, "user": parsed.username}
    server = {
        name: urllib.parse.unquote(value) if isinstance(value, str) else value
        for name, value in parts.items()
        if value is not None
    }
    password = urllib.parse.unquote(parsed.password) if parsed.password is not None else None
    return server, password, urllib.parse.unquote(parsed.path.strip("/")) or None


__all__ = ["MySqlSource"]
