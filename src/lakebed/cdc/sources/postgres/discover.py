"""What happens to tables while a stream runs and no row says so: new tables, new columns, rewritten tables.

The log describes a table only with its next change. The catalogue is looked at now and then instead: tables that match
and are new are published and copied; descriptions that changed are passed on; a table whose rows were rewritten with
values that the log does not hold (a computed default, another type) is copied again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from lakebed.cdc.envelope import Description, SourceName
from lakebed.cdc.sources.postgres.connect import translated
from lakebed.cdc.sources.postgres.copy.plan import plan_copy
from lakebed.cdc.sources.postgres.names import parse_lsn
from lakebed.cdc.sources.postgres.server.catalog import FAMILY, Catalog, CatalogTable, Publication, describe
from lakebed.cdc.sources.postgres.server.check import Problem, faults_of, sorted_out
from lakebed.cdc.sources.postgres.server.columns import SEEN, remembered
from lakebed.cdc.sources.postgres.server.slot import publish_more, wait_for_open_transactions
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.state import WAITING, CopyPart, SourceState
from lakebed.cdc.sources.postgres.stream_read import SchemaNotice
from lakebed.errors import StorageError, Unsupported
from lakebed.records import dataclass
from lakebed.types.logical import same_ignoring_nullability

if TYPE_CHECKING:
    import psycopg

_PATIENCE_MS = 2000
"""So long a look waits for open transactions. What has to wait longer is left to a later look: the stream goes on."""

_STORAGE = FAMILY + (
    "SELECT f.root::bigint, string_agg(c.relfilenode::text, ',' ORDER BY c.oid) "
    "FROM family f JOIN pg_class c ON c.oid = f.member GROUP BY f.root"
)


@dataclass(slots=True)
class Discovery:
    """Looks around in the catalogue. `notices` wait for the stream to be past the moment at which they were seen."""

    settings: PostgresSettings
    state: SourceState
    notices: list[SchemaNotice] = field(default_factory=list)
    _told: dict[int, tuple[SourceName, str]] = field(default_factory=dict)
    _rewritten: dict[int, int] = field(default_factory=dict)
    """Tables to be copied again, and where the log was when that was seen."""
    _moved: dict[tuple[int, str, str], int] = field(default_factory=dict)
    """Tables that have the name that another one had, and where the log was when that was seen."""

    def look(self, connection: psycopg.Connection[Any], read_lsn: int) -> None:
        """Looks once. `read_lsn` is how far the stream is."""
        catalog = Catalog(connection, self.settings)
        publication = catalog.publication()
        good, faults = sorted_out(catalog.tables(publication), self.settings)
        tables = {table.oid: table for table in good}
        row = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        assert row is not None
        now = parse_lsn(row[0])
        storage = dict(connection.execute(_STORAGE, [list(tables)]).fetchall())
        known = self.state.tables()
        names, owners = _last(known)
        new = [
            table
            for oid, table in tables.items()
            if names.get(oid) != (table.schema, table.name) or owners[table.schema, table.name] != oid
        ]
        if not self.settings.new_tables:
            new = [table for table in new if table.oid in names]  # only the name is new
        new = self._arrived(new, tables, now, read_lsn)
        if new:
            faults += faults_of(connection, self.settings, publication, new)
            bad = {fault.table.oid for fault in faults if fault.table is not None}
            faults += self._added(connection, publication, [table for table in new if table.oid not in bad])
        self._compare(tables, storage, now)
        self._copy_again(connection, tables, storage, read_lsn)
        self._copy_anew(connection, good)
        self._tell(faults)

    def _added(
        self, connection: psycopg.Connection[Any], publication: Publication | None, new: list[CatalogTable]
    ) -> list[Problem]:
        """Adds tables; what stands against it just now, which is tried again with the next look.

        A table that comes must not stop those that are there, whatever is wrong with it.
        """
        import psycopg

        try:
            if new:
                self._add(connection, publication, new)
        except StorageError as error:
            return [Problem(error, table=table) for table in new]
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:
            return [Problem(translated(self.settings, error), table=table) for table in new]
        return []

    def _copy_anew(self, connection: psycopg.Connection[Any], good: Sequence[CatalogTable]) -> None:
        """Plans new copies of tables that somebody asks for. One that is not as it should be is told of, and waits."""
        by_name = {(table.schema, table.name): table for table in good}
        for request, names in self.state.requests.all().items():
            if request not in self.state.planned():
                if any(name not in by_name for name in names):
                    continue
                tables = [by_name[name] for name in names]
                parts = plan_copy(connection, self.settings, tables, len(self.state.parts()))
                self.state.plan([replace(parts[0], takes_place=True), *parts[1:]], request)
            self.state.requests.forget(request)

    def _tell(self, faults: Sequence[Problem]) -> None:
        waiting = {
            each.table.full_name: f"{each.error.message} -> {each.error.hint}"
            for each in faults
            if each.table is not None and not each.is_by_choice
        }
        if waiting != (self.state.read(WAITING) or {}):
            self.state.replace(WAITING, waiting)

    def waits_for(self, read_lsn: int) -> bool:
        """Whether a look now would plan something that had to wait for the stream to get here."""
        return any(lsn <= read_lsn for lsn in (*self._rewritten.values(), *self._moved.values()))

    def due(self, end: int) -> tuple[SchemaNotice, ...]:
        """Notices that a batch up to `end` may carry."""
        return tuple(notice for notice in self.notices if notice.lsn <= end)

    def told(self, notices: Collection[SchemaNotice]) -> None:
        """A batch with these notices is committed."""
        self.notices = [notice for notice in self.notices if notice not in notices]

    def _arrived(
        self, new: list[CatalogTable], tables: Mapping[int, CatalogTable], now: int, read_lsn: int
    ) -> list[CatalogTable]:
        """Without tables whose name another one, which is still there, has in the part of the log that is not read yet.

        Changes of that other table would be made to the rows of the new one.
        """
        known = self.state.tables()
        names = {(schema, name) for oid, schema, name in known if oid in tables}
        moved = [(table.oid, table.schema, table.name) for table in new if (table.schema, table.name) in names]
        seen = {key: self._moved.get(key, now) for key in moved}
        self._moved = {key: lsn for key, lsn in seen.items() if lsn > read_lsn}
        return [table for table in new if (table.oid, table.schema, table.name) not in self._moved]

    def _add(
        self, connection: psycopg.Connection[Any], publication: Publication | None, new: list[CatalogTable]
    ) -> None:
        is_for_all = publication is not None and publication.is_for_all
        if publication is not None:
            missing = [table for table in new if (table.schema, table.name) not in publication.tables]
            if missing and not is_for_all:
                publish_more(connection, self.settings, missing)
        wait_for_open_transactions(connection, replace(self.settings, wait_ms=_PATIENCE_MS))
        known = self.state.tables()
        oids, names = {oid for oid, _, _ in known}, {(schema, name) for _, schema, name in known}
        parts: list[CopyPart] = []
        for table in new:
            # A table under another name, and one of a publication of all tables, was streamed before: its changes
            # must not be held back. One that has the name of a table that was dropped takes its place.
            first = len(self.state.parts()) + len(parts)
            is_again, takes_place = is_for_all or table.oid in oids, (table.schema, table.name) in names
            planned = plan_copy(connection, self.settings, [table], first, is_again)
            parts += [replace(planned[0], takes_place=takes_place), *planned[1:]]
        self.state.plan(parts)
        # What was seen of a table whose name another has now is of no use to anybody.
        replaced = {(part.schema, part.table) for part in parts if part.takes_place}
        self.notices = [each for each in self.notices if (each.name.schema, each.name.table) not in replaced]

    def _compare(self, tables: Mapping[int, CatalogTable], storage: Mapping[int, str], now: int) -> None:
        seen = self.state.read(SEEN) or {}
        is_changed = False
        for oid, table in tables.items():
            try:
                text = describe(table, self.settings).to_text()
            except Unsupported:
                continue  # its next row says so
            name = SourceName(self.settings.database, table.schema, table.name)
            if self._told.get(oid) != (name, text):
                self._told[oid] = (name, text)
                self.notices.append(SchemaNotice(now, name, text))
            before = seen.get(str(oid))
            if before is None or (before["columns"] != text and not _is_rewritten(before, text, storage[oid])):
                seen[str(oid)] = remembered(before, text, storage[oid], table.dropped)
                is_changed = True
            elif before["columns"] != text:
                self._rewritten.setdefault(oid, now)
        if is_changed:
            self.state.replace(SEEN, seen)

    def _copy_again(
        self,
        connection: psycopg.Connection[Any],
        tables: Mapping[int, CatalogTable],
        storage: Mapping[int, str],
        read_lsn: int,
    ) -> None:
        """Plans copies of rewritten tables, once the stream is past all rows in the old form."""
        for oid in [oid for oid in self._rewritten if oid not in tables]:
            del self._rewritten[oid]
        due = [oid for oid, lsn in self._rewritten.items() if lsn <= read_lsn]
        if not due:
            return
        again = [tables[oid] for oid in due]
        self.state.plan(plan_copy(connection, self.settings, again, len(self.state.parts()), is_again=True))
        seen = self.state.read(SEEN) or {}
        for oid in due:
            del self._rewritten[oid]
            text = describe(tables[oid], self.settings).to_text()
            seen[str(oid)] = remembered(seen.get(str(oid)), text, storage[oid], tables[oid].dropped)
        self.state.replace(SEEN, seen)


def _last(known: Sequence[tuple[int, str, str]]) -> tuple[dict[int, tuple[str, str]], dict[tuple[str, str], int]]:
    """Under which name each table was copied last, and which table was the last under each name."""
    return (
        {oid: (schema, name) for oid, schema, name in known},
        {(schema, name): oid for oid, schema, name in known},
    )


def _is_rewritten(before: Mapping[str, str], text: str, storage: str) -> bool:
    """Whether rows have other values than before that no change told: new files, and a column that could be why."""
    if before["storage"] == storage:
        return False
    old = {column.id: column for column in Description.from_text(before["columns"]).columns}
    return any(
        (column.id not in old and column.default is None)
        or (column.id in old and not same_ignoring_nullability(old[column.id].type, column.type))
        for column in Description.from_text(text).columns
    )


__all__ = ["Discovery"]
