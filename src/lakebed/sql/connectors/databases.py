"""`postgres-cdc` and `mysql-cdc`: tables of databases whose changes are followed. Options have Flink CDC's names."""

from __future__ import annotations

from lakebed.errors import InvalidOption
from lakebed.sql.connectors.definition import ConnectorDefinition
from lakebed.sql.connectors.options import DURATION, TRUTH, WHOLE, ConnectorOption, refused
from lakebed.sql.connectors.table import ConnectorTable

_COPY = "leave it out: the copy is always made in chunks, without locks, while changes are followed"
_DEBEZIUM = "leave it out: no Debezium runs here"
_JDBC = "leave it out: no JDBC driver is used"
_MODES = ("initial", "latest-offset")

_SHARED = (
    ConnectorOption("hostname", "the server", is_required=True),
    ConnectorOption("username", "who logs in", is_required=True),
    ConnectorOption("password", "its password; `${env:NAME}` reads it from the environment", is_required=True),
    ConnectorOption("database-name", "the database", is_required=True),
    ConnectorOption("table-name", "the table, or a regular expression that fits several", is_required=True),
    ConnectorOption(
        "scan.startup.mode", "copy the table first, or follow changes from now on", default="initial", choices=_MODES
    ),
    ConnectorOption("scan.incremental.snapshot.enabled", "the copy is always incremental", TRUTH, choices=("true",)),
    ConnectorOption("landing.*", "an option of the table of the lake that the changes land in"),
    refused("scan.incremental.snapshot.*", _COPY),
    refused("scan.snapshot.fetch.size", _COPY),
    refused("scan.startup.*", "use `scan.startup.mode` = `initial` or `latest-offset`"),
    refused("scan.newly-added-table.enabled", "leave it out: tables that fit `table-name` are found while it runs"),
    refused("connect.*", "leave it out: a connection is tried for a minute"),
    refused("connection.pool.size", "leave it out: one connection is enough"),
    refused("jdbc.properties.*", _JDBC),
    refused("debezium.*", _DEBEZIUM),
    refused("chunk-meta.group.size", _COPY),
    refused("chunk-key.*", _COPY),
)

_POSTGRES = (
    ConnectorOption("port", "its port", WHOLE, default="5432"),
    ConnectorOption("schema-name", "the schema, or a regular expression", default="public"),
    ConnectorOption("slot.name", "the replication slot; tables of one slot are followed together", is_required=True),
    ConnectorOption("decoding.plugin.name", "`pgoutput`", default="pgoutput", choices=("pgoutput",)),
    ConnectorOption("debezium.publication.name", "the publication", default="lakebed"),
    ConnectorOption("debezium.publication.autocreate.mode", "`filtered`", choices=("filtered",)),
    ConnectorOption("changelog-mode", "`all`", choices=("all",)),
    ConnectorOption("heartbeat.interval.ms", "how often an idle slot is moved on", DURATION),
    ConnectorOption("heartbeat.interval", "the same", DURATION),
)

_MYSQL = (
    ConnectorOption("port", "its port", WHOLE, default="3306"),
    ConnectorOption("server-id", "the number under which the server knows this reader, or a range of them"),
    ConnectorOption("server-time-zone", "the zone in which TIMESTAMP columns are shown", default="UTC"),
    ConnectorOption("scan.incremental.snapshot.chunk.size", "rows of a chunk of the copy", WHOLE),
    refused("heartbeat.interval", "leave it out: a binary log needs no heartbeat"),
)


def _check_server_id(table: ConnectorTable) -> None:
    given = table.options.get("server-id")
    if given is not None and "$" not in given and server_id(given) is None:
        raise InvalidOption(
            f"table `{table.full_name}`: option `server-id` is `{given}`", hint="give a number such as 5400, or a range"
        )


def server_id(text: str) -> int | None:
    """The number, or the first of a range `5400-5408`; None if it is neither."""
    first = text.partition("-")[0].strip()
    return int(first) if first.isdigit() and 0 < int(first) < 1 << 32 else None


# What is named comes before what a pattern refuses.
POSTGRES_CDC = ConnectorDefinition(
    "postgres-cdc",
    "a table of a PostgreSQL, followed through a replication slot",
    (*_POSTGRES, *_SHARED),
    is_source=True,
    metadata=("database_name", "schema_name", "table_name", "op_ts"),
)
MYSQL_CDC = ConnectorDefinition(
    "mysql-cdc",
    "a table of a MySQL or MariaDB, followed through its binary log",
    (*_MYSQL, *_SHARED),
    is_source=True,
    metadata=("database_name", "table_name", "op_ts"),
    check=_check_server_id,
)
