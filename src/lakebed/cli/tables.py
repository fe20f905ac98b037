"""`lakebed tables` and `lakebed describe`: what there is, and what it looks like."""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lakebed.catalog.listing import database_names, table_names
from lakebed.cells import seconds_text, text
from lakebed.cli.command import OK, Command, Parser
from lakebed.cli.lakes import check_warehouse, open_lake, open_table
from lakebed.cli.output import Output
from lakebed.cli.sessions import storage_of
from lakebed.errors import NotFound, did_you_mean
from lakebed.fileio import open_fileio
from lakebed.units import size_text

if TYPE_CHECKING:
    from lakebed.lake import Lake
    from lakebed.metadata.snapshot import Snapshot
    from lakebed.table.table import Table

# --- tables ----------------------------------------------------------------------------------------------------------

_SHOWN_LONG = {
    "database": "database",
    "table": "table",
    "primary_key": "key",
    "partitioned": "partitioned",
    "record_count": "records",
    "file_count": "files",
    "size_bytes": "size",
    "last_file_time": "last file",
}
_LONG = list(_SHOWN_LONG)


def _tables_arguments(parser: Parser) -> None:
    parser.add_argument("database", nargs="?", help="list this database only")
    parser.add_argument("--long", action="store_true", help="also say how large the tables are; reads their metadata")


def _tables(given: argparse.Namespace, out: Output) -> int:
    check_warehouse(given.warehouse)
    fileio, root = open_fileio(given.warehouse, storage_of(given))
    databases = database_names(fileio, root)
    if given.database is not None and given.database not in databases:
        raise NotFound(f"database `{given.database}` does not exist", hint=did_you_mean(given.database, databases))
    chosen = databases if given.database is None else [given.database]
    if given.long:
        rows = [row for row in _long_rows(open_lake(given)) if row[0] in chosen]
        out.rows(_LONG, rows, shown=_SHOWN_LONG, shows={"size_bytes": size_text, "last_file_time": seconds_text})
    else:
        names = [(database, table) for database in chosen for table in table_names(fileio, root, database)]
        out.rows(["database", "table"], names)
    return OK


def _long_rows(lake: Lake) -> Iterator[list[Any]]:
    for row in lake.table("sys.tables").to_arrow().to_pylist():
        newest_ms = row["last_file_creation_time"]
        yield [
            row["database_name"],
            row["table_name"],
            row["primary_key"],
            row["partitioned"],
            row["record_count"] or 0,
            row["file_count"] or 0,
            row["file_size_in_bytes"] or 0,
            None if newest_ms is None else dt.datetime.fromtimestamp(newest_ms / 1000),
        ]


TABLES = Command(_tables_arguments, _tables)

# --- describe --------------------------------------------------------------------------------------------------------


def _describe_arguments(parser: Parser) -> None:
    parser.add_argument("table", help="a name such as db.t")


def _describe(given: argparse.Namespace, out: Output) -> int:
    table = open_table(given)
    columns = [
        {
            "id": field.id,
            "name": field.name,
            "type": str(field.type),
            "nullable": field.type.nullable,
            "comment": field.description,
            "default": field.default_value,
        }
        for field in table.schema.fields
    ]
    if out.form == "table":
        _print_description(table, columns, out)
    elif out.form == "csv":
        out.rows(list(columns[0]), [list(column.values()) for column in columns])
    else:
        out.record(_description(table, columns), "")
    return OK


def _description(table: Table, columns: list[dict[str, Any]]) -> dict[str, Any]:
    latest = table.latest_snapshot()
    return {
        "name": table.name,
        "location": table.location,
        "comment": table.comment,
        "primary_key": list(table.primary_key),
        "partition_by": list(table.partition_by),
        "schema_id": table.schema.id,
        "columns": columns,
        "options": table.options,
        "snapshot": latest
        and {
            "id": latest.id,
            "commit_kind": str(latest.commit_kind),
            "commit_time": dt.datetime.fromtimestamp(latest.time_millis / 1000),
            "record_count": latest.total_record_count,
        },
        "row_count": _row_count(table, latest),
    }


def _print_description(table: Table, columns: list[dict[str, Any]], out: Output) -> None:
    for name, value in _facts(table):
        out.line(f"{name:<13} {value}")
    _gap(out)
    used = [name for name in ("name", "type", "default", "comment") if any(column[name] for column in columns)]
    out.rows(used, [[column[name] for name in used] for column in columns])
    if table.options:
        _gap(out)
        out.rows(["option", "value"], sorted(table.options.items()))


def _gap(out: Output) -> None:
    if not out.is_terminal:  # a drawn table keeps its distance by itself
        out.line("")


def _facts(table: Table) -> Iterator[tuple[str, str]]:
    yield "table", table.name
    if table.comment:
        yield "comment", text(table.comment)
    yield "location", table.location
    if table.primary_key:
        yield "primary key", ", ".join(table.primary_key)
    if table.partition_by:
        yield "partitions by", ", ".join(table.partition_by)
    latest = table.latest_snapshot()
    if latest is None:
        yield "snapshot", "none yet"
    else:
        when = seconds_text(dt.datetime.fromtimestamp(latest.time_millis / 1000))
        yield "snapshot", f"{latest.id} of {when}"
        rows = _row_count(table, latest)
        yield "rows", str(rows) if rows is not None else f"at most {latest.total_record_count}, not all merged yet"


_COUNTED = 5_000_000
"""Records that are read, keys alone, to say how many rows they are; more would take longer than a look should."""


def _row_count(table: Table, latest: Snapshot | None) -> int | None:
    """How many rows the table shows. Records are more: each update of a row is one until they are merged."""
    if latest is None:
        return 0
    if latest.total_record_count > _COUNTED:
        return None
    column = (table.primary_key or table.arrow_schema.names)[0]
    return sum(int(batch.num_rows) for batch in table.to_batches([column]))


DESCRIBE = Command(_describe_arguments, _describe)

__all__ = ["DESCRIBE", "TABLES"]
