"""`postgres-cdc` and `mysql-cdc`: from tables as SQL defines them to one source of changes that follows them all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from lakebed.cdc.envelope import SourceTable
from lakebed.cdc.sources import open_source
from lakebed.errors import InvalidArgument, InvalidSchema, NotFound, did_you_mean
from lakebed.sql.connectors.databases import MYSQL_CDC, POSTGRES_CDC, server_id
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.units import parse_duration

SOURCES: Final = {POSTGRES_CDC.name: "postgres", MYSQL_CDC.name: "mysql"}
"""The source of changes behind each connector."""
_OF_A_TABLE: Final = frozenset({"schema-name", "table-name"})
"""Options that are about one table; all others are about the server, and tables that are followed together share them.
So is `database-name` of a MySQL, whose log tells of all databases."""
_LANDING: Final = "landing."


def server_of(table: ConnectorTable) -> tuple[str, ...]:
    """What tables have in common that are followed together: the server, who logs in, and the slot."""
    is_postgres = table.connector == POSTGRES_CDC.name
    shared = ["hostname", "port", "username", *(["database-name", "slot.name"] if is_postgres else ["server-id"])]
    return (table.connector, *(table.option(name) or "" for name in shared))


def check_together(tables: Sequence[ConnectorTable]) -> None:
    """Raises if tables of one server do not say the same of it."""
    first = tables[0]
    own = _OF_A_TABLE | ({"database-name"} if first.connector == MYSQL_CDC.name else set())
    for other in tables[1:]:
        if other.database != first.database:
            raise InvalidArgument(
                f"tables `{first.full_name}` and `{other.full_name}` are of one server, but in two databases",
                hint="define them in one database, or give each a slot of its own",
            )
        for name in sorted({*first.options, *other.options} - own):
            if not name.startswith(_LANDING) and first.option(name) != other.option(name):
                raise InvalidArgument(
                    f"tables `{first.full_name}` and `{other.full_name}` are of one server, but differ in option "
                    f"`{name}`",
                    hint="give all tables of a server and slot the same options",
                )


def source_options(tables: Sequence[ConnectorTable], including: str) -> dict[str, Any]:
    """How the source is reached, and which of its tables it is to follow. A password is named, or goes to the source,
    which keeps it in a file that only its owner can read."""
    table = tables[0]
    options: dict[str, Any] = {
        "host": table.required("hostname"),
        "port": table.whole("port"),
        "user": table.required("username"),
        "including": including,
        "tables_without_key": "skip",  # those that are wanted are looked at one by one
        "copy": table.option("scan.startup.mode") == "initial",
    }
    variable = table.environment("password")
    options |= {"password": table.required("password")} if variable is None else {"password_env": variable}
    return options | (_postgres(table) if table.connector == POSTGRES_CDC.name else _mysql(tables))


def _postgres(table: ConnectorTable) -> dict[str, Any]:
    options: dict[str, Any] = {
        "database": table.required("database-name"),
        "slot": table.required("slot.name"),
        "publication": table.required("debezium.publication.name"),
        "schemas": ".*",
        "new_tables": False,
    }
    heartbeat = table.option("heartbeat.interval.ms") or table.option("heartbeat.interval")
    return options | ({} if heartbeat is None else {"heartbeat_ms": parse_duration(heartbeat)})


def _mysql(tables: Sequence[ConnectorTable]) -> dict[str, Any]:
    table = tables[0]
    options: dict[str, Any] = {
        "databases": "|".join(f"(?:{each.required('database-name')})" for each in tables),
        "zone": table.required("server-time-zone"),
    }
    given = table.option("server-id")
    if given is not None:
        options["replica_id"] = server_id(given)
    rows = table.whole("scan.incremental.snapshot.chunk.size")
    return options | ({} if rows is None else {"copy_chunk_rows": rows})


def followed(tables: Sequence[ConnectorTable]) -> dict[str, list[SourceTable]]:
    """The tables of the source that belong to each table, by its name; an error for what the source does not have."""
    found: dict[str, list[SourceTable]] = {}
    taken: dict[str, str] = {}
    there = _all_tables(tables)
    for table in tables:
        mine = [each for each in there if _is_of(table, each)]
        if not mine:
            known = [each.name.table for each in there]
            wanted = table.required("table-name")
            raise NotFound(
                f"table `{table.full_name}`: the source has no table `{wanted}` with a primary key",
                hint=did_you_mean(wanted, known) if known else "check `database-name`, `schema-name` and `table-name`",
            )
        for each in mine:
            _check_columns(table, each)
            if str(each.name) in taken:
                raise InvalidArgument(
                    f"tables `{taken[str(each.name)]}` and `{table.full_name}` both are {each.name} of the source",
                    hint="define one of them, and select from it twice",
                )
            taken[str(each.name)] = table.full_name
        found[table.name] = mine
    return found


def _all_tables(tables: Sequence[ConnectorTable]) -> list[SourceTable]:
    source = open_source(SOURCES[tables[0].connector], **source_options(tables, ".*"))
    try:
        return source.tables()
    finally:
        source.close()


def _is_of(table: ConnectorTable, source: SourceTable) -> bool:
    wanted = [
        (table.required("table-name"), source.name.table),
        (table.required("database-name"), source.name.database),
    ]
    if table.connector == POSTGRES_CDC.name:
        wanted.append((table.required("schema-name"), source.name.schema))
    return all(_fits(pattern, name) for pattern, name in wanted)


def _fits(pattern: str, name: str) -> bool:
    """Whether a name, or a regular expression, means a name."""
    if pattern == name:
        return True
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:
        return False


def _check_columns(table: ConnectorTable, source: SourceTable) -> None:
    names = source.description.names
    missing = [field.name for field in table.columns if field.name not in names]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        raise InvalidSchema(
            f"table `{table.full_name}`: {source.name} has no column {listed}", hint=did_you_mean(missing[0], names)
        )
