"""DELETE: whole partitions are dropped, rows with a key are written as deleted, others are taken out of their files.

Where rows of a key add up to one, a row that says "deleted" means something else, or nothing: unless the table is set
to take it, its buckets are rewritten without the rows (`statement_rules`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from sqlglot import exp

from lakebed.definition.statement_rules import Statement, Way
from lakebed.metadata.entries import live_files
from lakebed.options import DELETE_FORCE_PRODUCE_CHANGELOG
from lakebed.sql.change.finder import Changed, Found
from lakebed.sql.change.target_rows import TargetRows, change_rows
from lakebed.sql.change.write_rows import ChangedRows
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Delete, Sql
from lakebed.sql.words.names import quoted
from lakebed.table.opened import opened_of
from lakebed.types.logical import DataField


def delete(lake: SqlLake, statement: Delete) -> None:
    """DELETE."""
    change_rows(lake, statement.target, statement.alias, lambda target: _delete(target, statement))


def _delete(target: TargetRows, statement: Delete) -> None:
    target.refuse_rows_of_others(Statement.DELETE)
    is_told = _is_set(target, DELETE_FORCE_PRODUCE_CHANGELOG.key)
    if not is_told and statement.where is None:
        if target.table.latest_snapshot() is not None:
            target.table.truncate()
        return
    if not is_told and statement.where is not None and _names_partitions_only(target, statement.where):
        _drop_partitions(target, statement.where)
        return
    way = target.rule(Statement.DELETE).way
    if way is Way.NOTHING:
        target.nothing_changed()
        return
    find = partial(_deleted_rows, statement.where)
    target.change(Statement.DELETE, find, is_unique=True, rewrites=way is Way.REWRITE)


def _deleted_rows(where: Sql | None, target: TargetRows) -> Found:
    places = ChangedRows.place_columns(target.pinned)
    view = target.view([where] if where else [], is_alone=True)
    condition = target.finder.text(where) if where else "TRUE"
    columns = [*map(target.stored_column, target.column_names), *map(target.column, places)]
    text = f"SELECT {', '.join(columns)} FROM {view} AS {quoted(target.alias)} WHERE {condition}"
    return target.finder.changed(text, Changed(target.table.schema.fields, frozenset(), places, "-D"))


def _is_set(target: TargetRows, option: str) -> bool:
    return str(target.table.options.get(option, "false")).lower() == "true"


# --- partitions ------------------------------------------------------------------------------------------------------


def _names_partitions_only(target: TargetRows, where: Sql) -> bool:
    keys = {name.lower() for name in target.table.partition_by}
    columns = list(where.tree.find_all(exp.Column))
    is_plain = not where.tree.find(exp.Query) and bool(columns)
    return is_plain and all(
        column.name.lower() in keys and column.table.lower() in ("", target.alias.lower()) for column in columns
    )


def _drop_partitions(target: TargetRows, where: Sql) -> None:
    table = target.table
    fields = table.schema.fields_of(table.partition_by)
    found = target.finder.matching(_partition_rows(target, fields), fields, target.alias, where)
    if found:
        table.drop_partitions(found)
    else:
        target.nothing_changed()


def _partition_rows(target: TargetRows, fields: Sequence[DataField]) -> pa.Table:
    """One row for each partition that has files."""
    from lakebed.types.transfer import transfer_schema

    context = opened_of(target.table).writable()
    found = {entry.partition for entry in live_files(context.stores, target.table.latest_snapshot())}
    values = [context.partition_values(partition) for partition in sorted(found)]
    schema = transfer_schema(fields)
    columns = [pa.array([row[field.name].as_py() for row in values], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)
