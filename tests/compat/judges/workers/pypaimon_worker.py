"""Worker of the pypaimon judge. Runs inside the judge's own environment."""

from importlib.metadata import version

import pyarrow as pa
from protocol import read_table, serve, write_table
from pypaimon import CatalogFactory, Schema
from pypaimon.schema.data_types import DataField


def open_table(warehouse, database, table, options):
    found = CatalogFactory.create({"warehouse": warehouse}).get_table(f"{database}.{table}")
    return found.copy(options) if options else found


def create(warehouse, database, table, fields, primary_keys, partition_keys, options):
    catalog = CatalogFactory.create({"warehouse": warehouse})
    catalog.create_database(database, True)
    columns = [DataField.from_dict(field) for field in fields]
    catalog.create_table(f"{database}.{table}", Schema(columns, partition_keys, primary_keys, options), False)


def read(warehouse, database, table, columns, options, out, equal=None):
    builder = open_table(warehouse, database, table, options).new_read_builder()
    if columns is not None:
        builder = builder.with_projection(columns)
    if equal is not None:
        predicates = builder.new_predicate_builder()
        conditions = [
            predicates.is_null(name) if value is None else predicates.equal(name, value)
            for name, value in read_table(equal).to_pylist()[0].items()
        ]
        builder = builder.with_filter(predicates.and_predicates(conditions))
    write_table(out, builder.new_read().to_arrow(builder.new_scan().plan().splits()))


def read_changes(warehouse, database, table, after, until, out):
    """Changelog files of each snapshot, through the streaming scan: the only reader of them, and it never ends."""
    found = open_table(warehouse, database, table, {})
    builder = found.new_stream_read_builder().with_include_row_kind(True)
    scan, read = builder.new_streaming_scan(), builder.new_read()
    snapshots = [found.snapshot_manager().get_snapshot_by_id(number) for number in range(after + 1, until + 1)]
    parts = [
        read.to_arrow(scan._create_follow_up_plan(snapshot).splits())
        for snapshot in snapshots
        if scan.follow_up_scanner.should_scan(snapshot)
    ]
    rows = pa.concat_tables(parts) if parts else pa.table({"rowkind": pa.array([], pa.string())})
    write_table(out, rows.rename_columns(["rowkind" if name == "_row_kind" else name for name in rows.column_names]))


def append(warehouse, database, table, options, kinds, **files):
    if kinds is not None:
        raise NotImplementedError("pypaimon takes row kinds only from the table's rowkind.field column")
    builder = open_table(warehouse, database, table, options).new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    try:
        write.write_arrow(read_table(files["in"]))
        commit.commit(write.prepare_commit())
    finally:
        write.close()
        commit.close()


serve(
    {
        "version": lambda: {"implementation": "pypaimon", "version": version("pypaimon")},
        "create": create,
        "read": read,
        "read_changes": read_changes,
        "append": append,
    }
)
