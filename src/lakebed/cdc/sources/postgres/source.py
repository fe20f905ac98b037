"""A PostgreSQL as the pipeline knows it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from lakebed.cdc.envelope import COPY, STREAM, SourceName, SourceTable
from lakebed.cdc.routing import TablePatterns
from lakebed.cdc.sources.base import (
    ChangeSource,
    KeyRange,
    PlannedTable,
    SourceProblem,
    SourceProgress,
    SourceRows,
    with_storage,
)
from lakebed.cdc.sources.postgres.compare import is_past, key_ranges, rows_of
from lakebed.cdc.sources.postgres.connect import session
from lakebed.cdc.sources.postgres.copy.plan import table_sizes
from lakebed.cdc.sources.postgres.names import Offset, format_lsn, parse_lsn
from lakebed.cdc.sources.postgres.prepare import prepare
from lakebed.cdc.sources.postgres.server.catalog import describe
from lakebed.cdc.sources.postgres.server.check import check_source, look_at
from lakebed.cdc.sources.postgres.server.slot import drop_both, slot_facts
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.state import WAITING, SourceState
from lakebed.cdc.sources.requests import CopyRequests
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
        self._left_out: dict[str, str] = {}

    @classmethod
    def reopened(cls, options: Mapping[str, str]) -> Self:
        """The source of a sync that was begun."""
        source = cls()
        source.settings = PostgresSettings.from_text(options["settings"])
        source._state = options["state"]
        return source

    def take_password_from(self, variable: str) -> None:
        """The environment variable that holds the password here."""
        self.settings = replace(self.settings, password_env=variable)

    def problems(self) -> list[SourceProblem]:
        """All that stands against following it, each with the statement that repairs it. Creates nothing."""
        with session(self.settings) as connection:
            found = look_at(connection, self.settings)
        return [
            SourceProblem(each.error.message, each.error.hint, each.sql, each.table.full_name if each.table else "")
            for each in found.problems
        ]

    def planned(self) -> list[PlannedTable]:
        """What would be copied, by the server's own estimates."""
        with session(self.settings) as connection:
            tables = look_at(connection, self.settings).tables
            sizes = table_sizes(connection, [table.oid for table in tables])
        return [PlannedTable(table.full_name, *sizes.get(table.oid, (0, 0))) for table in tables]

    def facts(self) -> dict[str, int | str | bool | None]:
        """How much of its log the server keeps for the slot, and how much more it will."""
        with session(self.settings) as connection:
            return slot_facts(connection, self.settings)

    def key_ranges(self, table: str) -> Iterator[KeyRange]:
        """Ranges of a table's key that are compared one by one."""
        return key_ranges(self.settings, table)

    def rows_of(self, table: str, where: KeyRange | Sequence[Sequence[str | None]]) -> SourceRows:
        """Rows of a table: of a range, or with some keys."""
        return rows_of(self.settings, table, where)

    def is_past(self, position: str, wanted: str) -> bool:
        """Whether a position of the log is at or behind another."""
        return is_past(position, wanted)

    def let_go(self) -> list[str]:
        """Drops the slot and the publication; the server may then remove its log."""
        with session(self.settings) as connection:
            return drop_both(connection, self.settings)

    def follow_only(self, patterns: TablePatterns) -> None:
        """Tables that a sync leaves out are not published."""
        self.settings = replace(self.settings, only=patterns)

    def tell_times(self, *, changes: bool) -> None:
        """Every change comes with its transaction, every copied row with the time of its snapshot."""
        self.settings = replace(self.settings, tells_times=True)

    @property
    def origin(self) -> str:
        """The server."""
        return f"postgres://{self.settings.host}:{self.settings.port}"

    def check(self) -> None:
        """Raises an error that names the repair if the database can not be followed. Creates nothing."""
        with session(self.settings) as connection:
            check_source(connection, self.settings)

    def probe(self) -> None:
        """Raises if the server does not let us in just now."""
        with session(self.settings):
            pass

    def tables(self) -> list[SourceTable]:
        """The tables that match and can be followed, as they are now."""
        settings = self.settings
        with session(settings) as connection:
            found = check_source(connection, settings)
        self._left_out = found.left_out
        return [
            SourceTable(SourceName(settings.database, table.schema, table.name), describe(table, settings))
            for table in found.tables
        ]

    def left_out(self) -> dict[str, str]:
        """Tables that match and are not followed, and why: as of the start, and as seen while the stream runs."""
        seen = SourceState(self._state, self._storage).read(WAITING) if self._state is not None else None
        return self._left_out if seen is None else {name: str(why) for name, why in seen.items()}

    def copy_anew(self, sources: Sequence[str]) -> None:
        """Asks for a new copy of tables, by their full names; the sync makes it once it runs."""
        tables = [(name.split(".")[-2], name.split(".")[-1]) for name in sources]
        CopyRequests(self._required_state(), self._storage).ask(tables)

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
