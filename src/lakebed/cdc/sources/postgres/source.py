"""A PostgreSQL as the pipeline knows it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakebed.cdc.envelope import COPY, STREAM, SourceName, SourceTable
from lakebed.cdc.routing import TablePatterns
from lakebed.cdc.sources.base import ChangeSource, SourceProgress, with_storage
from lakebed.cdc.sources.postgres.connect import session
from lakebed.cdc.sources.postgres.names import Offset, format_lsn, parse_lsn
from lakebed.cdc.sources.postgres.prepare import prepare
from lakebed.cdc.sources.postgres.server.catalog import Catalog, describe
from lakebed.cdc.sources.postgres.server.check import check_source, followable
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.state import SourceState
from lakebed.cdc.storage import PLAIN, Storage
from lakebed.errors import InvalidArgument

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource


class PostgresSource(ChangeSource):
    """Tables of a PostgreSQL database.

    `url` (`postgresql://user@host:5432/database`) or the parts `host`, `port`, `database`, `user`; the password in
    `password`, in the URL, in a libpq password file (`passfile`) or in an environment variable (`password_env`). On a
    cluster use one of the last two, which the executors find as well. All other arguments are `PostgresSettings`.
    """

    name = "postgres"
    place = "url"
    takes_patterns = True
    keeps_transactions = True
    shares_state = True
    metadata_columns = ("database_name", "schema_name", "table_name", "op_ts")

    def __init__(self, url: str | None = None, *, password: str | None = None, **settings: Any) -> None:
        self.settings = PostgresSettings.of(url, password, **settings)
        self._state: str | None = None
        self._storage = PLAIN
        self._copied_lsns: list[int] = []

    def follow_only(self, patterns: TablePatterns) -> None:
        """Tables that a sync leaves out are not published."""
        self.settings = replace(self.settings, only=patterns)

    def check(self) -> None:
        """Raises an error that names the repair if the database can not be followed. Creates nothing."""
        with session(self.settings) as connection:
            check_source(connection, self.settings)

    def tables(self) -> list[SourceTable]:
        """The tables that match and can be followed, as they are now."""
        settings = self.settings
        with session(settings) as connection:
            catalog = Catalog(connection, settings)
            found = followable(catalog.tables(catalog.publication()), settings)
            return [
                SourceTable(SourceName(settings.database, table.schema, table.name), describe(table, settings))
                for table in found
            ]

    def keep_state_in(self, directory: str, storage: Storage = PLAIN) -> None:
        """Where slot, plan and rows of the copy are written down: beside the checkpoint."""
        # Spark asks from other processes, whose working directory is not ours.
        self._storage = storage
        self._state = directory if "://" in directory or directory.startswith("file:") else os.path.abspath(directory)

    def prepare(self) -> None:
        """Makes publication and slot, and plans the copy; nothing if that was done for this checkpoint."""
        prepare(self.settings, self._opened_state())

    def data_source(self) -> type[DataSource]:
        """The Spark data source."""
        from lakebed.cdc.sources.postgres.spark_source import PostgresDataSource  # needs PySpark

        return with_storage(PostgresDataSource, self._storage)

    def reader_options(self) -> Mapping[str, str]:
        """Settings without secrets, and the state's place."""
        return {"settings": self.settings.to_text(), "state": self._required_state()}

    def settled_at(self, offset: str) -> str | None:
        """The position up to which the log was read, once that is past the snapshots of all parts of the copy.

        Changes that a part holds are passed over in the log. So a part is as of its own snapshot until the log is
        there, and as of the log from then on; transactions are not divided: they belong to the batch of their commit.
        """
        read = Offset.from_json(json.loads(offset))
        state = self._opened_state()
        if read.chunks < len(state.parts()):
            return None
        for index in range(len(self._copied_lsns), read.chunks):
            copied = state.copied(index)
            if copied is None:
                return None
            self._copied_lsns.append(copied.lsn)
        return format_lsn(read.lsn) if read.lsn >= max(self._copied_lsns, default=0) else None

    def progress(self, position: str | None) -> SourceProgress:
        """Phase, and how many bytes of log are not committed."""
        if position is None:
            return SourceProgress()
        offset = Offset.from_json(json.loads(position))
        parts = len(self._opened_state().parts()) if self._state is not None else 0
        with session(self.settings) as connection:
            row = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
            assert row is not None
        lag = max(parse_lsn(row[0]) - offset.lsn, 0)
        return SourceProgress(phase=COPY if offset.chunks < parts else STREAM, lag_bytes=lag)

    def _opened_state(self) -> SourceState:
        return SourceState(self._required_state(), self._storage)

    def _required_state(self) -> str:
        if self._state is None:
            raise InvalidArgument(
                "the source has no place for its state",
                hint="call keep_state_in(directory beside the checkpoint) first",
            )
        return self._state


__all__ = ["PostgresSource"]
