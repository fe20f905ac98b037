"""Worker of the Rust judge, on its Python binding. Runs inside the judge's own environment."""

from importlib.metadata import version

import pyarrow as pa
from protocol import read_table, serve, write_table
from pypaimon_rust.datafusion import PaimonCatalog, SQLContext

ROW_ID = "_ROW_ID"


def open_table(warehouse, database, table):
    return PaimonCatalog({"warehouse": warehouse}).get_table((database, table))


def create(warehouse, database, table, fields, primary_keys, partition_keys, options):
    """Through SQL, the only way in which the binding creates tables."""
    context = SQLContext()
    context.register_catalog("paimon", {"warehouse": warehouse})
    context.sql(f"CREATE SCHEMA IF NOT EXISTS paimon.{quoted(database)}")
    parts = [f"{quoted(field['name'])} {sql_type(field['type'])}" for field in fields]
    if primary_keys:
        parts.append(f"PRIMARY KEY ({', '.join(map(quoted, primary_keys))})")
    statement = f"CREATE TABLE paimon.{quoted(database)}.{quoted(table)} ({', '.join(parts)})"
    if partition_keys:
        statement += f" PARTITIONED BY ({', '.join(map(quoted, partition_keys))})"
    if options:
        settings = (f"{literal(key)} = {literal(value)}" for key, value in options.items())
        statement += f" WITH ({', '.join(settings)})"
    context.sql(statement)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def literal(text):
    return "'" + text.replace("'", "''") + "'"


def sql_type(kind):
    """The spelling of a type in this implementation's SQL, which differs from the text in schema files."""
    if isinstance(kind, str):
        return kind.replace("WITH LOCAL TIME ZONE", "WITH TIME ZONE")
    root, not_null, _ = kind["type"].partition(" NOT NULL")
    if root == "ARRAY":
        text = f"ARRAY<{sql_type(kind['element'])}>"
    elif root == "MAP":
        text = f"MAP({sql_type(kind['key'])}, {sql_type(kind['value'])})"
    elif root == "ROW":
        text = "STRUCT<" + ", ".join(f"{quoted(f['name'])} {sql_type(f['type'])}" for f in kind["fields"]) + ">"
    else:
        raise NotImplementedError(f"this implementation cannot create a {root} column")
    return text + not_null


def read(warehouse, database, table, columns, options, out, equal=None):
    builder = open_table(warehouse, database, table).new_read_builder(options)
    if columns is not None:
        builder.with_projection(columns)
    if equal is not None:
        (values,) = read_table(equal).to_pylist()
        conditions = [{"method": "equal", "field": name, "literals": [value]} for name, value in values.items()]
        builder.with_filter(conditions[0] if len(conditions) == 1 else {"method": "and", "children": conditions})
    rows = collect(builder, builder.new_scan())
    if columns is None and ROW_ID in rows.column_names:  # a row-tracking table shows its hidden row ids unasked
        rows = rows.drop_columns([ROW_ID])
    write_table(out, rows)


def read_changes(warehouse, database, table, after, until, mode, out):
    builder = open_table(warehouse, database, table).new_read_builder()
    builder.with_include_row_kind(True)
    write_table(out, collect(builder, builder.new_incremental_scan(after, until, mode)))


def collect(builder, scan):
    batches = builder.new_read().read(scan.plan().splits())
    rows = pa.Table.from_batches(batches) if batches else pa.table({})
    return rows.cast(pa.schema([field.with_type(exchangeable(field.type)) for field in rows.schema]))


def exchangeable(kind):
    """The type with the keys of all maps not null: a MULTISET comes with nullable ones, which Arrow files forbid."""
    if pa.types.is_map(kind):
        return pa.map_(exchangeable(kind.key_type), kind.item_field.with_type(exchangeable(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(exchangeable(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(exchangeable(field.type)) for field in kind])
    return kind


def append(warehouse, database, table, options, kinds, **files):
    if options:
        raise NotImplementedError("this implementation takes no options for one write")
    rows = read_table(files["in"])
    if kinds is not None:
        rows = rows.append_column(pa.field("_VALUE_KIND", pa.int8(), nullable=False), pa.array(kinds, pa.int8()))
    builder = open_table(warehouse, database, table).new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    try:
        for batch in rows.to_batches():
            write.write_arrow(batch)
        commit.commit(write.prepare_commit())
    finally:
        write.close()
        commit.close()


serve(
    {
        "version": lambda: {"implementation": "pypaimon-rust", "version": version("pypaimon-rust")},
        "create": create,
        "read": read,
        "read_changes": read_changes,
        "append": append,
    }
)
