"""Worker of the pypaimon judge. Runs inside the judge's own environment."""

from importlib.metadata import version

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
        "append": append,
    }
)
