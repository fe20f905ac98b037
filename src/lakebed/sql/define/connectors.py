"""Definitions of tables of other systems: made, described, and kept apart from the tables of the lake."""

from __future__ import annotations

from itertools import count
from typing import Any

import pyarrow as pa

from lakebed.errors import AlreadyExists, InvalidArgument, NotFound, Unsupported, did_you_mean
from lakebed.expressions.nodes import NotProven
from lakebed.sql import statements as st
from lakebed.sql.bind.queries import TableColumns
from lakebed.sql.connectors.reading import reading_text
from lakebed.sql.connectors.registry import checked
from lakebed.sql.connectors.table import ConnectorTable, MetadataField
from lakebed.sql.define.show import like, spark_name
from lakebed.sql.query.embedded import bound_text
from lakebed.sql.query.pins import Pins
from lakebed.sql.result import SmallResult
from lakebed.sql.session import SqlLake, connector_table, connector_tables, result
from lakebed.sql.words.names import quoted
from lakebed.types.arrow import as_data_type, from_arrow_type
from lakebed.types.logical import DataField, DataType, renumbered
from lakebed.types.transfer import transfer_schema

_TEXT = pa.string()
_FOR_TABLES_OF_THE_LAKE = (
    *(st.Truncate, st.Analyze, st.RefreshTable, st.AlterTable, st.ShowPartitions, st.ShowTags, st.ShowOptions),
    *(st.DescribeHistory, st.Restore, st.Vacuum, st.AlterMaterialized, st.RefreshMaterialized, st.DropMaterialized),
    *(st.ShowCreateMaterialized, st.Insert, st.Update, st.Delete, st.Merge),
)
"""Statements that need a table of the lake."""


def create(lake: SqlLake, statement: st.CreateConnectorTable) -> None:
    """CREATE [TEMPORARY] TABLE ... WITH ('connector' = '...'): remembered, checked as far as that needs no server."""
    database, dot, name = statement.name.rpartition(".")
    database = database if dot else lake.current_database
    if database not in lake.databases():
        raise NotFound(f"database `{database}` does not exist", hint=did_you_mean(database, lake.databases()))
    known = connector_table(lake, statement.name)
    hides = known is None and not statement.is_temporary and lake.has_table(statement.name)
    if (known is not None or hides) and statement.if_not_exists:
        return
    if known is not None and not statement.replace:
        raise AlreadyExists(
            f"table `{statement.name}` is defined already",
            hint=f"drop it: DROP TABLE {statement.name}, or write IF NOT EXISTS",
        )
    if hides:
        raise AlreadyExists(
            f"table `{statement.name}` of the lake has this name",
            hint="choose another name, or write CREATE TEMPORARY TABLE to hide it in this session",
        )
    table = checked(_defined(statement, database, name))
    _computed_types(lake, table)  # what is wrong with a value is said now
    connector_tables(lake)[database, name] = table


def _defined(statement: st.CreateConnectorTable, database: str, name: str) -> ConnectorTable:
    numbers = count()
    columns: list[DataField] = []
    computed: dict[str, str] = {}
    metadata: dict[str, MetadataField] = {}
    for column in statement.columns:
        if column.value is not None:
            computed[column.name] = column.value
            continue
        assert column.type is not None
        given = as_data_type(column.type, column.name)
        number = next(numbers)
        data_type = renumbered(given, lambda: next(numbers))
        if column.metadata is not None:
            metadata[column.name] = MetadataField(column.metadata, data_type, column.is_virtual)
        else:
            columns.append(DataField(number, column.name, data_type, column.comment))
    return ConnectorTable(
        database,
        name,
        tuple(columns),
        computed,
        metadata,
        tuple(column.name for column in statement.columns),
        statement.primary_key,
        statement.watermark,
        statement.options,
        comment=statement.comment,
        is_temporary=statement.is_temporary,
    )


def _computed_types(lake: SqlLake, table: ConnectorTable) -> dict[str, DataType]:
    """Types of computed columns, as far as this process can tell; a value that names no column is an error."""
    if not table.computed:
        return {}
    fields = [
        *table.columns,
        *(DataField(number, name, column.type) for number, (name, column) in enumerate(table.metadata.items())),
    ]
    source = TableColumns(None, (), tuple(transfer_schema(fields)))
    stand_in = "columns of the source"
    try:
        bound = bound_text(lake, reading_text(table, quoted(stand_in)), Pins(), {stand_in: source})
    except NotProven:
        return {}
    given = zip(bound.names, bound.relation.columns, strict=True)
    return {name: from_arrow_type(each.type, name) for name, each in given if name in table.computed}


def refuse_as_table(lake: SqlLake, statement: Any) -> None:
    """Raises for a statement about a table of another system that is only for tables of the lake."""
    if type(statement) not in _FOR_TABLES_OF_THE_LAKE:
        return
    is_change = isinstance(statement, st.Insert | st.Update | st.Delete | st.Merge)
    name: str = statement.target.name if is_change else statement.name
    table = connector_table(lake, name)
    if table is None:
        return
    if isinstance(statement, st.Insert):
        raise Unsupported(
            f"`{table.full_name}` is a table of connector `{table.connector}`, which a pipeline writes to",
            hint="SET 'execution.runtime-mode' = 'streaming' first, or write the INSERT into a file, and type: lakebed "
            "run FILE; or leave INSERT out to see the rows",
        )
    raise InvalidArgument(
        f"`{table.full_name}` is a table of connector `{table.connector}`, not of the lake",
        hint=f"DESCRIBE {name}, SHOW CREATE TABLE {name}, SELECT and DROP TABLE {name} are what there is"
        + (f"; DROP TEMPORARY TABLE {name} uncovers that of the lake" if lake.has_table(name) else ""),
    )


def describe(lake: SqlLake, table: ConnectorTable, statement: st.Describe | st.ShowColumns) -> SmallResult:
    """DESCRIBE and SHOW COLUMNS."""
    if isinstance(statement, st.ShowColumns):
        fitting = like(table.order, statement.like)
        chosen = [name for name in table.order if (name in fitting) != statement.is_not]
        return result(lake, {"col_name": _TEXT}, [(name,) for name in chosen])
    columns = {field.name: field for field in table.columns}
    types = _computed_types(lake, table)
    rows: list[tuple[str, str, str | None]] = []
    for name in table.order:
        if name in columns:
            rows.append((name, spark_name(columns[name].type), columns[name].description))
        elif name in table.metadata:
            column = table.metadata[name]
            rows.append((name, spark_name(column.type), f"METADATA FROM '{column.key}'"))
        else:
            rows.append((name, spark_name(types[name]) if name in types else "", f"AS {table.computed[name]}"))
    if statement.column is not None:
        found = next((row for row in rows if row[0] == statement.column[0]), None)
        if found is None or len(statement.column) > 1:
            asked = ".".join(statement.column)
            raise NotFound(f"table `{table.full_name}` has no column `{asked}`", hint=did_you_mean(asked, table.order))
        shown = zip(("col_name", "data_type", "comment"), (found[0], found[1], found[2] or "NULL"), strict=True)
        return result(lake, {"info_name": _TEXT, "info_value": _TEXT}, list(shown))
    if table.primary_key:
        rows += [("# Constraints", "", ""), ("PRIMARY KEY", ", ".join(table.primary_key), "")]
    if table.watermark is not None:
        rows += [("WATERMARK", f"{table.watermark[0]} AS {table.watermark[1]}", "")]
    if statement.extended:
        rows += [("", "", ""), ("# Detailed Table Information", "", ""), ("Database", table.database, "")]
        rows += [("Table", table.name, ""), ("Connector", table.connector, "")]
        rows += [("Options", ", ".join(f"{key}={value}" for key, value in table.shown_options().items()), "")]
    return result(lake, {"col_name": _TEXT, "data_type": _TEXT, "comment": _TEXT}, rows)
