"""SHOW and DESCRIBE, with the columns that Spark shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.metadata.paths import escape
from lakebed.schema.table_schema import TableSchema
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.partition_specs import existing_partitions, matching_partitions, named_columns
from lakebed.sql.result import SmallResult
from lakebed.sql.session import SqlLake, connector_table, connector_tables, result
from lakebed.sql.statements import (
    Describe,
    DescribeDatabase,
    PartitionSpec,
    ShowCatalogs,
    ShowColumns,
    ShowCreateTable,
    ShowCurrent,
    ShowDatabases,
    ShowOptions,
    ShowPartitions,
    ShowTables,
    ShowTags,
)
from lakebed.sql.words.names import CATALOGS, quoted
from lakebed.table.table import Table
from lakebed.types.arrow import from_arrow_schema
from lakebed.types.logical import (
    MAX_LENGTH,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
)

_TEXT = pa.string()
_IDLE_ZEROS = re.compile(r"(?<=\d\d:\d\d:\d\d)\.0+$")
_DESCRIBED = {"col_name": _TEXT, "data_type": _TEXT, "comment": _TEXT}


def show_databases(lake: SqlLake, statement: ShowDatabases) -> SmallResult:
    """SHOW DATABASES."""
    return result(lake, {"namespace": _TEXT}, _each(like(lake.databases(), statement.like)))


def show_catalogs(lake: SqlLake, statement: ShowCatalogs) -> SmallResult:
    """SHOW CATALOGS."""
    return result(lake, {"catalog": _TEXT}, [(CATALOGS[0],)])


def show_current(lake: SqlLake, statement: ShowCurrent) -> SmallResult:
    """SHOW CURRENT DATABASE and the like."""
    if statement.what == "catalog":
        return result(lake, {"catalog": _TEXT}, [(CATALOGS[0],)])
    return result(lake, {"catalog": _TEXT, "namespace": _TEXT}, [(CATALOGS[0], lake.current_database)])


def show_tables(lake: SqlLake, statement: ShowTables) -> SmallResult:
    """SHOW TABLES."""
    database = statement.database or lake.current_database
    columns = {"namespace": _TEXT, "tableName": _TEXT, "isTemporary": pa.bool_()}
    others = {name for place, name in connector_tables(lake) if place == database}
    names = like(sorted({*lake.tables(database), *others}), statement.like)
    if not statement.extended:
        return result(lake, columns, [(database, name, name in others) for name in names])
    rows = [
        (database, name, False, _information(lake.table(f"{database}.{name}"), statement.partition))
        for name in names
        if name not in others
    ]
    return result(lake, {**columns, "information": _TEXT}, rows)


def _information(table: Table, spec: PartitionSpec | None) -> str:
    """A table, or one partition of it, line by line."""
    if spec is not None:
        rows: Sequence[tuple[str, ...]] = _partition_details(table, spec)
    else:
        rows = [("Namespace" if key == "Database" else key, value) for key, value, _ in _details(table) if value]
    return "\n".join(f"{row[0]}: {row[1]}" for row in rows)


def _partition_details(table: Table, spec: PartitionSpec) -> list[tuple[str, str, str]]:
    """What a partition, named in full, adds up to."""
    missing = [column for column in table.partition_by if column not in named_columns(table, spec)]
    if missing:
        raise InvalidArgument(
            f"PARTITION ({', '.join(spec)}) leaves out `{missing[0]}` of table `{table.name}`",
            hint=f"name all of ({', '.join(table.partition_by)})",
        )
    found = matching_partitions(table, spec)
    if not found:
        raise NotFound(f"table `{table.name}` has no such partition", hint="look at SHOW PARTITIONS")
    [item] = found
    parameters = {
        "recordCount": item.record_count,
        "fileCount": item.file_count,
        "fileSizeInBytes": item.size_bytes,
        "lastFileCreationTime": item.last_update_ms,
    }
    return [
        ("Partition Values", f"[{', '.join(f'{key}={value}' for key, value in item.values.items())}]", ""),
        ("Partition Parameters", f"{{{', '.join(f'{key}={value}' for key, value in parameters.items())}}}", ""),
        ("Partition Statistics", f"{item.record_count} rows, {item.size_bytes} bytes", ""),
    ]


def show_columns(lake: SqlLake, statement: ShowColumns) -> SmallResult:
    """SHOW COLUMNS."""
    names = lake.table(statement.name).columns
    fitting = like(names, statement.like)
    chosen = [name for name in names if (name in fitting) != statement.is_not]
    return result(lake, {"col_name": _TEXT}, _each(chosen))


def show_partitions(lake: SqlLake, statement: ShowPartitions) -> SmallResult:
    """SHOW PARTITIONS."""
    table = lake.table(statement.name)
    if statement.partition:
        found = matching_partitions(table, statement.partition)
    else:
        found = existing_partitions(table)
    return result(lake, {"partition": _TEXT}, [(_partition_shown(item.values),) for item in found])


def _partition_shown(values: Mapping[str, str | None]) -> str:
    """As Spark shows it: escaped as directories are, null by its own name, moments without idle zeros."""
    return "/".join(
        f"{escape(name)}={'null' if value is None else escape(_IDLE_ZEROS.sub('', value))}"
        for name, value in values.items()
    )


def show_tags(lake: SqlLake, statement: ShowTags) -> SmallResult:
    """SHOW TAGS."""
    return result(lake, {"tag": _TEXT}, _each(lake.table(statement.name).tags()))


def show_options(lake: SqlLake, statement: ShowOptions) -> SmallResult:
    """SHOW TBLPROPERTIES."""
    shown = _properties(lake.table(statement.name))
    key = statement.key
    if key is not None and key not in shown:
        raise NotFound(f"table `{statement.name}` has no option `{key}`", hint=did_you_mean(key, shown))
    pairs = shown.items() if key is None else [(key, shown[key])]
    return result(lake, {"key": _TEXT, "value": _TEXT}, sorted(pairs))


def describe(lake: SqlLake, statement: Describe) -> SmallResult:
    """DESCRIBE: columns, partition columns and, if asked for, the rest."""
    table = lake.table(statement.name)
    if statement.column is not None:
        return _describe_column(lake, table, statement.column)
    fields: Sequence[DataField] = table.schema.fields
    is_view = [field.name for field in fields] != table.arrow_schema.names
    rows = [_described(field) for field in (from_arrow_schema(table.arrow_schema) if is_view else fields)]
    if table.partition_by and not is_view:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += [_described(field) for name in table.partition_by for field in fields if field.name == name]
    if "$" not in statement.name:
        rows += _constraints(table)
    if statement.partition is not None:
        found = _partition_details(table, statement.partition)
        rows += [("", "", ""), ("# Detailed Partition Information", "", ""), *found]
    elif statement.extended:
        rows += _details(table)
    return result(lake, _DESCRIBED, rows)


def _describe_column(lake: SqlLake, table: Table, path: tuple[str, ...]) -> SmallResult:
    fields: Sequence[DataField] = table.schema.fields
    found = next((field for field in fields if field.name == path[0]), None)
    if found is None or len(path) > 1:
        name = ".".join(path)
        raise NotFound(
            f"table `{table.name}` has no column `{name}`", hint=did_you_mean(name, [field.name for field in fields])
        )
    rows = [("col_name", found.name), ("data_type", spark_name(found.type)), ("comment", found.description or "NULL")]
    return result(lake, {"info_name": _TEXT, "info_value": _TEXT}, rows)


def _described(field: DataField) -> tuple[str, str, str | None]:
    return field.name, spark_name(field.type), field.description


def _constraints(table: Table) -> list[tuple[str, str, str | None]]:
    """The keys and what may not be null, below the columns: those have no room for it in Spark's shape."""
    required = [field.name for field in table.schema.fields if not field.type.nullable]
    rows = [("PRIMARY KEY", ", ".join(table.primary_key), ""), ("NOT NULL", ", ".join(required), "")]
    told: list[tuple[str, str, str | None]] = [row for row in rows if row[1]]
    return [("# Constraints", "", ""), *told] if told else []


def _details(table: Table) -> list[tuple[str, str, str | None]]:
    database, _, name = table.name.partition(".")
    properties = ", ".join(f"{key}={value}" for key, value in sorted(_properties(table).items()))
    rows = [
        ("", "", ""),
        ("# Detailed Table Information", "", ""),
        ("Catalog", CATALOGS[0], ""),
        ("Database", database, ""),
        ("Table", name, ""),
        ("Comment", table.comment or "", ""),
        ("Location", table.location, ""),
        ("Provider", "paimon", ""),
        ("Table Properties", f"[{properties}]", ""),
    ]
    return [row for row in rows if row[0] != "Comment" or row[1]]


def describe_database(lake: SqlLake, statement: DescribeDatabase) -> SmallResult:
    """DESCRIBE DATABASE."""
    lake.tables(statement.name)  # says so if there is none
    rows = [("Catalog Name", CATALOGS[0]), ("Namespace Name", statement.name)]
    return result(lake, {"info_name": _TEXT, "info_value": _TEXT}, rows)


def show_create_table(lake: SqlLake, statement: ShowCreateTable) -> SmallResult:
    """SHOW CREATE TABLE: a statement that `sql` takes back."""
    other = connector_table(lake, statement.name)
    if other is not None:
        return result(lake, {"createtab_stmt": _TEXT}, [(_connector_text(other),)])
    table = lake.table(statement.name)
    return result(lake, {"createtab_stmt": _TEXT}, [(create_text(table.name, table.schema),)])


def create_text(name: str, schema: TableSchema) -> str:
    """The statement that makes such a table."""
    lines = [_column_text(field) for field in schema.fields]
    if schema.primary_keys:
        lines.append(f"PRIMARY KEY ({_names(schema.primary_keys)}) NOT ENFORCED")
    text = f"CREATE TABLE {'.'.join(map(quoted, name.split('.')))} (\n  " + ",\n  ".join(lines) + ")\n"
    if schema.comment:
        text += f"COMMENT {_literal(schema.comment)}\n"
    if schema.partition_keys:
        text += f"PARTITIONED BY ({_names(schema.partition_keys)})\n"
    options = ",\n".join(f"  {_literal(key)} = {_literal(value)}" for key, value in sorted(schema.options.items()))
    return text + (f"WITH (\n{options})\n" if options else "")


def _connector_text(table: ConnectorTable) -> str:
    """The statement that defines such a table of another system; in place of secrets stand stars."""
    columns = {field.name: field for field in table.columns}
    lines = [_connector_column(table, name, columns.get(name)) for name in table.order]
    if table.watermark is not None:
        lines.append(f"WATERMARK FOR {quoted(table.watermark[0])} AS {table.watermark[1]}")
    if table.primary_key:
        lines.append(f"PRIMARY KEY ({_names(table.primary_key)}) NOT ENFORCED")
    kind = "TEMPORARY TABLE" if table.is_temporary else "TABLE"
    text = f"CREATE {kind} {quoted(table.database)}.{quoted(table.name)} (\n  " + ",\n  ".join(lines) + ")\n"
    if table.comment:
        text += f"COMMENT {_literal(table.comment)}\n"
    options = ",\n".join(f"  {_literal(key)} = {_literal(value)}" for key, value in table.shown_options().items())
    return f"{text}WITH (\n{options})\n"


def _connector_column(table: ConnectorTable, name: str, field: DataField | None) -> str:
    if field is not None:
        return _column_text(field)
    if name in table.computed:
        return f"{quoted(name)} AS {table.computed[name]}"
    column = table.metadata[name]
    virtual = " VIRTUAL" if column.is_virtual else ""
    return f"{quoted(name)} {column.type} METADATA FROM {_literal(column.key)}{virtual}"


def _column_text(field: DataField) -> str:
    text = f"{quoted(field.name)} {field.type}"
    if field.default_value is not None:
        text += f" DEFAULT {_literal(field.default_value)}"
    return text + (f" COMMENT {_literal(field.description)}" if field.description else "")


def _properties(table: Table) -> dict[str, str]:
    """Options, keys among them as Paimon's Spark connector shows them."""
    keys = {"primary-key": ",".join(table.primary_key), "partition": ",".join(table.partition_by)}
    comment = {"comment": table.comment} if table.comment else {}
    return {**{key: text for key, text in keys.items() if text}, **comment, **table.options}


def _names(columns: Iterable[str]) -> str:
    return ", ".join(map(quoted, columns))


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _each(names: Iterable[str]) -> list[tuple[Any]]:
    return [(name,) for name in names]


def like(names: Iterable[str], pattern: str | None) -> list[str]:
    """Names that a pattern fits: `*` and `%` are anything, `_` of SQL one character, `|` separates patterns."""
    if pattern is None:
        return list(names)
    choices = [
        "".join(".*" if letter in "*%" else "." if letter == "?" else re.escape(letter) for letter in part)
        for part in pattern.strip().split("|")
    ]
    fits = re.compile("|".join(f"(?:{choice})" for choice in choices), re.IGNORECASE)
    return [name for name in names if fits.fullmatch(name)]


# --- How Spark spells types: `bigint`, `struct<a:int>`; for what DESCRIBE and SHOW CREATE TABLE show --------------


_NAMES = {
    TypeRoot.VARBINARY: "binary",
    TypeRoot.BINARY: "binary",
    TypeRoot.BLOB: "binary",
    TypeRoot.TIMESTAMP: "timestamp_ntz",
    TypeRoot.TIMESTAMP_LTZ: "timestamp",
}


def spark_name(data_type: DataType) -> str:
    """The type as Spark's DESCRIBE shows it."""
    match data_type:
        case ArrayType(element):
            return f"array<{spark_name(element)}>"
        case MultisetType(element):
            return f"map<{spark_name(element)},int>"
        case MapType(key, value):
            return f"map<{spark_name(key)},{spark_name(value)}>"
        case RowType(fields):
            return f"struct<{','.join(f'{member.name}:{spark_name(member.type)}' for member in fields)}>"
        case AtomicType(root=TypeRoot.VARCHAR, length=length) if length == MAX_LENGTH:
            return "string"
        case AtomicType(root=TypeRoot.VARCHAR | TypeRoot.CHAR as root, length=length):
            return f"{root.value.lower()}({length})"
        case AtomicType(root=TypeRoot.DECIMAL, precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case AtomicType(root=TypeRoot.TIME):
            return "time(6)"
        case AtomicType(root=root):
            return _NAMES.get(root, root.value.lower())
