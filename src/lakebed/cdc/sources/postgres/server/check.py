"""Whether a PostgreSQL can be followed: asked before anything is created, answered with the command that repairs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lakebed.cdc.sources.postgres.names import quote_name, quote_table
from lakebed.cdc.sources.postgres.server.catalog import Catalog, CatalogTable, Publication, describe
from lakebed.cdc.sources.postgres.server.slot import slot_state
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.errors import InvalidArgument, InvalidSchema, NotFound, Unsupported

if TYPE_CHECKING:
    import psycopg

_OLDEST = 140_000
_OPERATIONS = frozenset({"insert", "update", "delete", "truncate"})


def check_source(connection: psycopg.Connection[Any], settings: PostgresSettings) -> list[CatalogTable]:
    """The tables that will be followed; raises if something stands against it."""
    catalog = Catalog(connection, settings)
    _check_server(connection, settings)
    publication = catalog.publication()
    _check_rights(connection, settings, publication)
    tables = followable(catalog.tables(publication), settings)
    if not tables:
        raise NotFound(
            f"no table of {settings.place} matches schemas `{settings.schemas}`, including `{settings.including}`"
            + (f", excluding `{settings.excluding}`" if settings.excluding else ""),
            hint="the patterns are regular expressions over `table` or `schema.table`; a table needs a primary key",
        )
    for table in tables:
        describe(table, settings)
    _check_table_rights(connection, settings, tables)
    if publication is None:
        _check_owned(connection, settings, tables)
    else:
        _check_publication(connection, settings, publication, tables)
    return tables


def followable(tables: Sequence[CatalogTable], settings: PostgresSettings) -> list[CatalogTable]:
    """Tables whose rows the stream tells apart. Publishing another would make its updates fail at the source."""
    found = []
    for table in tables:
        name = quote_table(table.schema, table.name)
        if table.identity == "n":
            problem = f"table `{table.full_name}` has REPLICA IDENTITY NOTHING: its deletes do not say which row"
            hint = f"ALTER TABLE {name} REPLICA IDENTITY DEFAULT"
        elif not table.key:
            problem = f"table `{table.full_name}` has no primary key"
            hint = f"ALTER TABLE {name} ADD PRIMARY KEY (…)"
        else:
            found.append(table)
            continue
        if settings.tables_without_key == "fail":
            raise InvalidSchema(
                problem, hint=f'{hint}, leave it out with `excluding`, or set tables_without_key="skip"'
            )
    return found


def _check_server(connection: psycopg.Connection[Any], settings: PostgresSettings) -> None:
    info = connection.info
    if info.server_version < _OLDEST:
        raise Unsupported(
            f"{settings.place} is PostgreSQL {info.server_version // 10_000}", hint="PostgreSQL 14 or later is needed"
        )
    encoding, level, in_recovery, slots, senders = _row(
        connection,
        "SELECT current_setting('server_encoding'), current_setting('wal_level'), pg_is_in_recovery(), "
        "current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots), "
        "current_setting('max_wal_senders')::int",
    )
    if encoding == "SQL_ASCII":
        raise Unsupported(
            f"database `{settings.database}` has the encoding SQL_ASCII, which does not say what its texts are",
            hint="move it to a database with ENCODING 'UTF8'",
        )
    if in_recovery:
        raise Unsupported(f"{settings.place} is a standby", hint="name the primary server in `host`")
    if level != "logical":
        raise InvalidArgument(
            f"{settings.place} has wal_level = {level}, which leaves out what changes are made of",
            hint="ALTER SYSTEM SET wal_level = logical, then restart the server",
        )
    if senders < 1:
        raise InvalidArgument(
            f"{settings.place} has max_wal_senders = 0",
            hint="ALTER SYSTEM SET max_wal_senders = 10, then restart the server",
        )
    state = slot_state(connection, settings)
    if state is None and slots < 1:
        raise InvalidArgument(
            f"all replication slots of {settings.place} are taken",
            hint="drop one that nobody uses (SELECT * FROM pg_replication_slots WHERE NOT active), or "
            "ALTER SYSTEM SET max_replication_slots and restart the server",
        )
    if state is not None and (state.plugin != "pgoutput" or state.database != settings.database):
        raise InvalidArgument(
            f"the replication slot `{settings.slot}` is there, of plugin {state.plugin} and database {state.database}",
            hint="choose another name for `slot`",
        )


def _check_rights(
    connection: psycopg.Connection[Any], settings: PostgresSettings, publication: Publication | None
) -> None:
    may_replicate, may_create = _row(
        connection,
        "SELECT (rolsuper OR rolreplication OR EXISTS (SELECT FROM pg_roles m WHERE m.rolname = 'rds_replication' "
        "AND pg_has_role(r.oid, m.oid, 'MEMBER'))), has_database_privilege(current_database(), 'CREATE') "
        "FROM pg_roles r WHERE rolname = current_user",
    )
    user = quote_name(settings.user)
    if not may_replicate:
        raise InvalidArgument(
            f"user `{settings.user}` may not read the replication stream", hint=f"ALTER ROLE {user} REPLICATION"
        )
    if publication is None and not may_create:
        raise InvalidArgument(
            f"user `{settings.user}` may not create the publication `{settings.publication}`",
            hint=f"GRANT CREATE ON DATABASE {quote_name(settings.database)} TO {user}, or let the owner run "
            f"CREATE PUBLICATION {quote_name(settings.publication)} FOR TABLE … "
            "WITH (publish_via_partition_root = true)",
        )


def _check_table_rights(
    connection: psycopg.Connection[Any], settings: PostgresSettings, tables: Sequence[CatalogTable]
) -> None:
    rows = connection.execute(
        "SELECT c.oid::bigint, has_schema_privilege(c.relnamespace, 'USAGE'), has_table_privilege(c.oid, 'SELECT') "
        "FROM pg_class c WHERE c.oid = ANY(%s::oid[])",
        [[table.oid for table in tables]],
    ).fetchall()
    rights = {oid: (usage, select) for oid, usage, select in rows}
    user = quote_name(settings.user)
    for table in tables:
        may_use, may_select = rights.get(table.oid, (True, True))
        if not may_use:
            raise InvalidArgument(
                f"user `{settings.user}` may not look into schema `{table.schema}`",
                hint=f"GRANT USAGE ON SCHEMA {quote_name(table.schema)} TO {user}",
            )
        if not may_select:
            raise InvalidArgument(
                f"user `{settings.user}` may not read table `{table.full_name}`",
                hint=f"GRANT SELECT ON {quote_table(table.schema, table.name)} TO {user}",
            )


def _check_owned(
    connection: psycopg.Connection[Any], settings: PostgresSettings, tables: Sequence[CatalogTable]
) -> None:
    rows = connection.execute(
        "SELECT oid::bigint FROM pg_class WHERE oid = ANY(%s::oid[]) AND NOT pg_has_role(relowner, 'USAGE')",
        [[table.oid for table in tables]],
    ).fetchall()
    foreign = {oid for (oid,) in rows}
    for table in tables:
        if table.oid in foreign:
            name = quote_table(table.schema, table.name)
            raise InvalidArgument(
                f"user `{settings.user}` does not own table `{table.full_name}`, so can not publish it",
                hint=f"ALTER TABLE {name} OWNER TO {quote_name(settings.user)}, or let its owner publish it in "
                f"{quote_name(settings.publication)}",
            )


def _check_publication(
    connection: psycopg.Connection[Any],
    settings: PostgresSettings,
    publication: Publication,
    tables: Sequence[CatalogTable],
) -> None:
    name = quote_name(settings.publication)
    if publication.operations != _OPERATIONS:
        missing = ", ".join(sorted(_OPERATIONS - publication.operations))
        raise InvalidArgument(
            f"publication `{settings.publication}` leaves out: {missing}",
            hint=f"ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate')",
        )
    absent = []
    for table in tables:
        if (table.schema, table.name) in publication.filtered:
            raise Unsupported(
                f"publication `{settings.publication}` sends only a part of table `{table.full_name}`",
                hint=f"ALTER PUBLICATION {name} SET TABLE … without WHERE and without a list of columns",
            )
        if not publication.is_for_all and (table.schema, table.name) not in publication.tables:
            absent.append(table)
    _check_owned(connection, settings, absent)  # those will be added


def _row(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row


__all__ = ["check_source", "followable"]
