"""Whether a server can be followed: settings, rights, tables. Every complaint names the statement that repairs it.

Nothing is created or changed here, on the server or in the lake.
"""

from __future__ import annotations

from typing import Any, Final

from lakebed.cdc.sources.mysql.columns import Column, TableColumns
from lakebed.cdc.sources.mysql.server.catalog import read_tables, table_names
from lakebed.cdc.sources.mysql.server.follow import Follow
from lakebed.cdc.sources.mysql.server.mapping import describe
from lakebed.cdc.sources.mysql.server.server import Server, rows
from lakebed.cdc.sources.mysql.settings import ServerSettings
from lakebed.cdc.sources.mysql.values.charsets import is_readable
from lakebed.errors import InvalidOption, InvalidSchema, LakebedError, NotFound, Unsupported

_UNREADABLE: Final = ("uuid", "inet4", "inet6", "vector")
_ENGINES: Final = ("INNODB", "ROCKSDB", "XTRADB")
_RIGHTS: Final = {
    "REPLICATION SLAVE": ("REPLICATION SLAVE", "REPLICATION REPLICA"),
    "REPLICATION CLIENT": ("REPLICATION CLIENT", "BINLOG MONITOR", "SUPER"),
}


def check_server(connection: Any, settings: ServerSettings) -> Server:
    """The server, if its binary log can be followed by this user."""
    server = Server.of(connection)
    variables = {str(name).lower(): str(value) for name, value in rows(connection, "SHOW GLOBAL VARIABLES")}
    if variables.get("log_bin", "OFF").upper() not in ("ON", "1"):
        raise InvalidOption(
            f"the server {settings} writes no binary log",
            hint="write log_bin=binlog and server_id=1 into the section [mysqld] of its configuration and restart it",
        )
    for name, wanted, statement in _wanted(server.mariadb):
        found = variables.get(name, "MISSING").upper()
        if found != wanted:
            raise InvalidOption(
                f"the server {settings} has {name}={found}, and changes can only be followed with {name}={wanted}",
                hint=f"{statement}; write {name}={wanted} into its configuration, and let clients connect anew: "
                "sessions keep the old setting",
            )
    _check_rights(connection, settings)
    return server


def _wanted(mariadb: bool) -> list[tuple[str, str, str]]:
    wanted = [
        ("binlog_format", "ROW", "SET GLOBAL binlog_format = 'ROW'"),
        ("binlog_row_image", "FULL", "SET GLOBAL binlog_row_image = 'FULL'"),
        ("binlog_row_metadata", "FULL", "SET GLOBAL binlog_row_metadata = 'FULL'"),
    ]
    if not mariadb:
        wanted.append(("gtid_mode", "ON", "SET PERSIST enforce_gtid_consistency = ON and gtid_mode = ON, step by step"))
    return wanted


def _check_rights(connection: Any, settings: ServerSettings) -> None:
    granted = " ".join(
        str(row[0]).upper() for row in rows(connection, "SHOW GRANTS") if "ON *.*" in str(row[0]).upper()
    )
    if "ALL PRIVILEGES" in granted:
        return
    missing = [right for right, names in _RIGHTS.items() if not any(name in granted for name in names)]
    if missing:
        raise Unsupported(
            f"{settings} may not read the binary log: it lacks {' and '.join(missing)}",
            hint=f"GRANT {', '.join(_RIGHTS)} ON *.* TO '{settings.user}'@'%'",
        )


def check_tables(server: Server, settings: ServerSettings, follow: Follow) -> list[TableColumns]:
    """The tables that are followed, all of which can be; those that can not and may be skipped are left out."""
    names = [name for name in table_names(server.connection) if follow.matches(*name)]
    if not names:
        raise NotFound(
            f"the server {settings} has no table that matches database `{follow.databases}` and table "
            f"`{follow.including}`",
            hint=f"check the patterns, and GRANT SELECT ON db.* TO '{settings.user}'@'%': tables without that right "
            "are not seen",
        )
    good: list[TableColumns] = []
    for table in read_tables(server.connection, names, mariadb=server.mariadb):
        fault = table_fault(table, follow)
        if fault is None:
            good.append(table)
        elif not _may_be_skipped(table, follow) and follow.on_error == "stop":
            raise fault
    return good


def bad_tables(server: Server, follow: Follow) -> list[tuple[TableColumns, LakebedError, bool]]:
    """Tables that match and can not be followed, why, and whether they are skipped because the settings say so."""
    names = [name for name in table_names(server.connection) if follow.matches(*name)]
    return [
        (table, fault, _may_be_skipped(table, follow))
        for table in read_tables(server.connection, names, mariadb=server.mariadb)
        if (fault := table_fault(table, follow)) is not None
    ]


def _may_be_skipped(table: TableColumns, follow: Follow) -> bool:
    return follow.unsupported_types == "skip" if table.primary_key else follow.tables_without_key == "skip"


def table_fault(table: TableColumns, follow: Follow) -> LakebedError | None:
    """Why a table can not be followed, if it can not."""
    if not table.primary_key:
        return InvalidSchema(
            f"table {table} has no primary key, so its rows can not be told apart",
            hint=f"ALTER TABLE {table} ADD PRIMARY KEY (…), leave it out with `excluding`, or skip such tables with "
            "tables_without_key='skip'",
        )
    if table.engine is not None and table.engine.upper() not in _ENGINES:
        return Unsupported(
            f"table {table} is stored by the engine {table.engine}, which has no transactions to copy it in",
            hint=f"ALTER TABLE {table} ENGINE = InnoDB, or leave it out with `excluding`",
        )
    if table.is_versioned:
        return Unsupported(
            f"table {table} keeps its history by itself (WITH SYSTEM VERSIONING), which can not be followed",
            hint=f"ALTER TABLE {table} DROP SYSTEM VERSIONING, or leave it out with `excluding`",
        )
    if table.cascades and follow.cascades == "fail":
        return Unsupported(
            f"rows of {table} change by the foreign key `{table.cascades[0]}` (CASCADE or SET NULL) on their own, and "
            "the binary log does not tell such changes",
            hint="make it ON DELETE RESTRICT ON UPDATE RESTRICT and let the application or a trigger change the rows; "
            "cascades='ignore' follows the table all the same, and such changes are missed",
        )
    for column in table.columns:
        reason = _column_fault(column)
        if reason is not None:
            return Unsupported(
                f"column `{column.name}` of {table} {reason[0]}",
                hint=f"{reason[1].format(table=table, column=column.name)}, or leave the table out with `excluding`",
            )
    try:
        describe(table, follow.type_mapping)
    except LakebedError as error:
        return error
    return None


def _column_fault(column: Column) -> tuple[str, str] | None:
    if column.kind in _UNREADABLE:
        return f"has the type {column.kind}, which the binary log does not tell from bytes", (
            "ALTER TABLE {table} MODIFY `{column}` CHAR(45)"
        )
    if column.kind.startswith("compressed"):
        return "is stored compressed, which can not be read from the binary log", (
            "ALTER TABLE {table} MODIFY `{column}` … without COMPRESSED"
        )
    if column.charset is not None and not is_readable(column.charset):
        return f"has the character set {column.charset}, which can not be read", (
            "ALTER TABLE {table} MODIFY `{column}` … CHARACTER SET utf8mb4"
        )
    return None


__all__ = ["bad_tables", "check_server", "check_tables", "table_fault"]
