"""Whether a PostgreSQL can be followed: asked before anything is created, answered with the command that repairs it.

All that stands against it is found in one go. What concerns the server ends the start; what concerns one table ends it
or leaves that table out, as `on_error` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lakebed.cdc.sources.postgres.names import quote_name, quote_table, quote_value
from lakebed.cdc.sources.postgres.server.catalog import Catalog, CatalogTable, Publication, describe
from lakebed.cdc.sources.postgres.server.slot import slot_state
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.errors import InvalidArgument, InvalidSchema, LakebedError, NotFound, Unsupported
from lakebed.records import dataclass

if TYPE_CHECKING:
    import psycopg

_OLDEST = 140_000
_OPERATIONS = frozenset({"insert", "update", "delete", "truncate"})


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that stands against following the server, or one table of it (`table`)."""

    error: LakebedError
    sql: str = ""
    """What repairs it, as a superuser or the owner may run it; a comment where no statement does."""
    table: CatalogTable | None = None
    is_by_choice: bool = False
    """Whether the settings say that such tables are left out."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a look at a server has found."""

    problems: tuple[Problem, ...]
    tables: tuple[CatalogTable, ...]
    """Tables that can be followed."""
    publication: Publication | None

    @property
    def left_out(self) -> dict[str, str]:
        """Tables that match and can not be followed, and why."""
        return {each.table.full_name: each.error.message for each in self.problems if each.table is not None}


def check_source(connection: psycopg.Connection[Any], settings: PostgresSettings) -> Findings:
    """What will be followed; raises if something stands against it that may not be passed over."""
    found = look_at(connection, settings)
    for problem in found.problems:
        if problem.table is None or (settings.on_error == "stop" and not problem.is_by_choice):
            raise problem.error
    return found


def look_at(connection: psycopg.Connection[Any], settings: PostgresSettings) -> Findings:
    """Everything that stands against following the server, and what can be followed."""
    catalog = Catalog(connection, settings)
    publication = catalog.publication()
    problems = [*_of_server(connection, settings), *_of_rights(connection, settings, publication)]
    matching = catalog.tables(publication)
    if not matching:
        problems.append(Problem(_no_table(settings)))
    if publication is not None:
        problems += _of_publication(settings, publication)
    good, faults = sorted_out(matching, settings)
    faults += faults_of(connection, settings, publication, good)
    bad = {problem.table.oid for problem in faults if problem.table is not None}
    good = [table for table in good if table.oid not in bad]
    if matching and not good and all(each.is_by_choice for each in faults):
        problems.append(Problem(_no_table(settings)))
    elif matching and not good and not problems:
        problems.append(Problem(faults[0].error))  # nothing is left to follow
    return Findings((*problems, *faults), tuple(good), publication)


def faults_of(
    connection: psycopg.Connection[Any],
    settings: PostgresSettings,
    publication: Publication | None,
    tables: Sequence[CatalogTable],
) -> list[Problem]:
    """Why some of these tables can not be read or published by this user."""
    found = _of_table_rights(connection, settings, tables)
    if publication is None:
        return found + _of_owners(connection, settings, tables)
    return found + _of_published(connection, settings, publication, tables)


def sorted_out(tables: Sequence[CatalogTable], settings: PostgresSettings) -> tuple[list[CatalogTable], list[Problem]]:
    """Tables whose rows the stream tells apart and whose types are known, and what is wrong with the others.

    Publishing a table without a key would make its updates fail at the source.
    """
    good, faults = [], []
    for table in tables:
        fault = _of_table(table, settings)
        if fault is None:
            good.append(table)
        else:
            faults.append(fault)
    return good, faults


def _of_table(table: CatalogTable, settings: PostgresSettings) -> Problem | None:
    name = quote_table(table.schema, table.name)
    sql = ""
    if table.identity == "n":
        problem = f"table `{table.full_name}` has REPLICA IDENTITY NOTHING: its deletes do not say which row"
        sql = hint = f"ALTER TABLE {name} REPLICA IDENTITY DEFAULT"
    elif not table.key:
        problem = f"table `{table.full_name}` has no primary key"
        hint = f"ALTER TABLE {name} ADD PRIMARY KEY (…)"
    else:
        try:
            describe(table, settings)
        except LakebedError as unknown:
            return Problem(unknown, f"-- {unknown.hint}", table)
        return None
    error = InvalidSchema(problem, hint=f'{hint}, leave it out with `excluding`, or set tables_without_key="skip"')
    return Problem(error, sql or f"-- choose the columns: {hint}", table, settings.tables_without_key == "skip")


def _no_table(settings: PostgresSettings) -> LakebedError:
    return NotFound(
        f"no table of {settings.place} matches schemas `{settings.schemas}`, including `{settings.including}`"
        + (f", excluding `{settings.excluding}`" if settings.excluding else ""),
        hint="the patterns are regular expressions over `table` or `schema.table`; a table needs a primary key",
    )


def _of_server(connection: psycopg.Connection[Any], settings: PostgresSettings) -> Iterator[Problem]:
    info = connection.info
    if info.server_version < _OLDEST:
        yield Problem(
            Unsupported(
                f"{settings.place} is PostgreSQL {info.server_version // 10_000}",
                hint="PostgreSQL 14 or later is needed",
            )
        )
    encoding, level, in_recovery, slots, senders = _row(
        connection,
        "SELECT current_setting('server_encoding'), current_setting('wal_level'), pg_is_in_recovery(), "
        "current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots), "
        "current_setting('max_wal_senders')::int",
    )
    if encoding == "SQL_ASCII":
        yield Problem(
            Unsupported(
                f"database `{settings.database}` has the encoding SQL_ASCII, which does not say what its texts are",
                hint="move it to a database with ENCODING 'UTF8'",
            )
        )
    if in_recovery:
        yield Problem(Unsupported(f"{settings.place} is a standby", hint="name the primary server in `host`"))
    if level != "logical":
        yield Problem(
            InvalidArgument(
                f"{settings.place} has wal_level = {level}, which leaves out what changes are made of",
                hint="ALTER SYSTEM SET wal_level = logical, then restart the server",
            ),
            "ALTER SYSTEM SET wal_level = logical;  -- then restart the server",
        )
    if senders < 1:
        yield Problem(
            InvalidArgument(
                f"{settings.place} has max_wal_senders = 0",
                hint="ALTER SYSTEM SET max_wal_senders = 10, then restart the server",
            ),
            "ALTER SYSTEM SET max_wal_senders = 10;  -- then restart the server",
        )
    state = slot_state(connection, settings)
    if state is None and slots < 1:
        yield Problem(
            InvalidArgument(
                f"all replication slots of {settings.place} are taken",
                hint="drop one that nobody uses (SELECT * FROM pg_replication_slots WHERE NOT active), or "
                "ALTER SYSTEM SET max_replication_slots and restart the server",
            ),
            "ALTER SYSTEM SET max_replication_slots = 20;  -- then restart the server",
        )
    if state is not None and (state.plugin != "pgoutput" or state.database != settings.database):
        yield Problem(
            InvalidArgument(
                f"the replication slot `{settings.slot}` is there, of plugin {state.plugin} and database "
                f"{state.database}",
                hint="choose another name for `slot`",
            )
        )


def _of_rights(
    connection: psycopg.Connection[Any], settings: PostgresSettings, publication: Publication | None
) -> Iterator[Problem]:
    may_replicate, may_create = _row(
        connection,
        "SELECT (rolsuper OR rolreplication OR EXISTS (SELECT FROM pg_roles m WHERE m.rolname = 'rds_replication' "
        "AND pg_has_role(r.oid, m.oid, 'MEMBER'))), has_database_privilege(current_database(), 'CREATE') "
        "FROM pg_roles r WHERE rolname = current_user",
    )
    user = quote_name(settings.user)
    if not may_replicate:
        repair = f"ALTER ROLE {user} REPLICATION"
        error = InvalidArgument(f"user `{settings.user}` may not read the replication stream", hint=repair)
        yield Problem(error, f"{repair};")
    if publication is None and not may_create:
        repair = f"GRANT CREATE ON DATABASE {quote_name(settings.database)} TO {user}"
        yield Problem(
            InvalidArgument(
                f"user `{settings.user}` may not create the publication `{settings.publication}`",
                hint=f"{repair}, or let the owner run CREATE PUBLICATION {quote_name(settings.publication)} FOR "
                "TABLE … WITH (publish_via_partition_root = true)",
            ),
            f"{repair};",
        )


def _of_table_rights(
    connection: psycopg.Connection[Any], settings: PostgresSettings, tables: Sequence[CatalogTable]
) -> list[Problem]:
    rows = connection.execute(
        "SELECT c.oid::bigint, has_schema_privilege(c.relnamespace, 'USAGE'), has_table_privilege(c.oid, 'SELECT') "
        "FROM pg_class c WHERE c.oid = ANY(%s::oid[])",
        [[table.oid for table in tables]],
    ).fetchall()
    rights = {oid: (usage, select) for oid, usage, select in rows}
    user = quote_name(settings.user)
    found = []
    for table in tables:
        may_use, may_select = rights.get(table.oid, (True, True))
        if not may_use:
            repair = f"GRANT USAGE ON SCHEMA {quote_name(table.schema)} TO {user}"
            said = f"user `{settings.user}` may not look into schema `{table.schema}`"
            found.append(Problem(InvalidArgument(said, hint=repair), f"{repair};", table))
        if not may_select:
            repair = f"GRANT SELECT ON {quote_table(table.schema, table.name)} TO {user}"
            said = f"user `{settings.user}` may not read table `{table.full_name}`"
            found.append(Problem(InvalidArgument(said, hint=repair), f"{repair};", table))
    return found


def _of_owners(
    connection: psycopg.Connection[Any], settings: PostgresSettings, tables: Sequence[CatalogTable]
) -> list[Problem]:
    rows = connection.execute(
        "SELECT oid::bigint FROM pg_class WHERE oid = ANY(%s::oid[]) AND NOT pg_has_role(relowner, 'USAGE')",
        [[table.oid for table in tables]],
    ).fetchall()
    foreign = {oid for (oid,) in rows}
    found = []
    publication = quote_name(settings.publication)
    for table in tables:
        if table.oid in foreign:
            name = quote_table(table.schema, table.name)
            error = InvalidArgument(
                f"user `{settings.user}` does not own table `{table.full_name}`, so can not publish it",
                hint=f"ALTER TABLE {name} OWNER TO {quote_name(settings.user)}, or let its owner publish it in "
                f"{publication}",
            )
            found.append(Problem(error, _published(settings, table), table))
    return found


def _of_publication(settings: PostgresSettings, publication: Publication) -> Iterator[Problem]:
    if publication.operations != _OPERATIONS:
        missing = ", ".join(sorted(_OPERATIONS - publication.operations))
        repair = (
            f"ALTER PUBLICATION {quote_name(settings.publication)} SET (publish = 'insert, update, delete, truncate')"
        )
        error = InvalidArgument(f"publication `{settings.publication}` leaves out: {missing}", hint=repair)
        yield Problem(error, f"{repair};")


def _of_published(
    connection: psycopg.Connection[Any],
    settings: PostgresSettings,
    publication: Publication,
    tables: Sequence[CatalogTable],
) -> list[Problem]:
    name = quote_name(settings.publication)
    found, absent = [], []
    for table in tables:
        if (table.schema, table.name) in publication.filtered:
            error = Unsupported(
                f"publication `{settings.publication}` sends only a part of table `{table.full_name}`",
                hint=f"ALTER PUBLICATION {name} SET TABLE … without WHERE and without a list of columns",
            )
            quoted = quote_table(table.schema, table.name)
            repair = f"ALTER PUBLICATION {name} DROP TABLE {quoted}; ALTER PUBLICATION {name} ADD TABLE {quoted};"
            found.append(Problem(error, repair, table))
        elif not publication.is_for_all and (table.schema, table.name) not in publication.tables:
            absent.append(table)
    if not absent:
        return found
    owner, is_ours = _row(
        connection,
        "SELECT pg_get_userbyid(pubowner), pg_has_role(pubowner, 'USAGE') FROM pg_publication WHERE pubname = "
        + quote_value(settings.publication),
    )
    if is_ours:
        return found + _of_owners(connection, settings, absent)  # those will be added
    return found + [
        Problem(
            InvalidArgument(
                f"table `{table.full_name}` is not in the publication `{settings.publication}`, which belongs to "
                f"`{owner}`",
                hint=f"let `{owner}` run {_published(settings, table).removesuffix(';')}",
            ),
            _published(settings, table),
            table,
        )
        for table in absent
    ]


def _published(settings: PostgresSettings, table: CatalogTable) -> str:
    name = quote_table(table.schema, table.name)
    return f"ALTER PUBLICATION {quote_name(settings.publication)} ADD TABLE ONLY {name};"


def _row(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row


__all__ = ["Findings", "Problem", "check_source", "faults_of", "look_at", "sorted_out"]
