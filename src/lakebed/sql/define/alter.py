"""ALTER TABLE: each action as changes of the schema, or as a call of the table."""

from __future__ import annotations

from collections.abc import Iterator

from lakebed.calls import warn_caller
from lakebed.errors import InvalidArgument, InvalidOption, InvalidSchema, NotFound, Unsupported, did_you_mean
from lakebed.options import BUCKET
from lakebed.schema import changes as sc
from lakebed.schema.table_schema import TableSchema
from lakebed.schema.type_changes import type_changes
from lakebed.sql.define.defaults import default_text
from lakebed.sql.partition_specs import drop_partitions, named_columns
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import (
    Action,
    AddColumns,
    AddPartitions,
    AddPrimaryKey,
    AlterColumn,
    AlterTable,
    Column,
    CreateTag,
    DeleteTag,
    DropColumns,
    DropPartitions,
    DropPrimaryKey,
    Position,
    RedefineColumns,
    RenameColumn,
    RenameTable,
    RenameTag,
    SetComment,
    SetOptions,
    UnsetOptions,
)
from lakebed.table.table import Table
from lakebed.types.arrow import as_data_type

_KEY_OPTIONS = ("primary-key", "partition")


def alter_table(lake: SqlLake, statement: AlterTable) -> None:
    """ALTER TABLE."""
    if statement.if_exists and not lake.has_table(statement.name):
        return
    for action in statement.actions:
        _apply(lake, statement.name, action)


def _apply(lake: SqlLake, name: str, action: Action) -> None:
    match action:
        case RenameTable(new_name):
            lake.rename_table(name, _beside(name, new_name))
        case DropPartitions(partitions, if_exists):
            drop_partitions(lake.table(name), partitions, if_exists=if_exists)
        case AddPartitions(partitions):
            for spec in partitions:
                named_columns(lake.table(name), spec)
            warn_caller(f"table `{name}`: partitions come with their rows, so there is nothing to add")
        case CreateTag() | DeleteTag() | RenameTag():
            _alter_tag(lake.table(name), action)
        case _:
            table = lake.table(name)
            _check_bucket_stays(table, action)
            found = tuple(_schema_changes(table.schema, action, name))
            if found:
                table.alter(*found)


def _check_bucket_stays(table: Table, action: Action) -> None:
    """Taking `bucket` back would say nothing about the files that lie in buckets, whatever it is by itself."""
    if isinstance(action, UnsetOptions) and BUCKET.key in action.keys and table.latest_snapshot() is not None:
        raise InvalidOption(
            f"table `{table.name}`: option `{BUCKET.key}` can not be taken away once there are rows",
            hint="set it to another number, and rescale",
        )


def _beside(name: str, new_name: str) -> str:
    """A new name without a database stays in the old one's."""
    database, dot, _ = name.rpartition(".")
    return f"{database}{dot}{new_name}" if "." not in new_name else new_name


# --- tags ------------------------------------------------------------------------------------------------------------


def _alter_tag(table: Table, action: CreateTag | DeleteTag | RenameTag) -> None:
    match action:
        case RenameTag(tag, new_name):
            table.rename_tag(tag, new_name)
        case DeleteTag(tag, if_exists):
            delete_tags(table, tag, if_exists=if_exists)
        case CreateTag(tag, snapshot, retain, if_not_exists, creates, replaces):
            exists = tag in table.tags()
            if exists and if_not_exists:
                return
            if replaces and (exists or not creates):
                table.replace_tag(tag, snapshot, retain)
            else:
                table.create_tag(tag, snapshot, retain)


def delete_tags(table: Table, names: str, *, if_exists: bool = False) -> None:
    """Deletes the tags of a list with commas."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if if_exists:
        known = set(table.tags())
        wanted = [name for name in wanted if name in known]
    if wanted:
        table.delete_tag(*wanted)


# --- schemas ---------------------------------------------------------------------------------------------------------


def _schema_changes(schema: TableSchema, action: Action, table: str) -> Iterator[sc.SchemaChange]:
    match action:
        case SetOptions(options):
            yield from (_set_option(schema, key, value) for key, value in options.items())
        case UnsetOptions(keys, if_exists):
            yield from _unset(schema, keys, if_exists, table)
        case SetComment(comment):
            yield sc.UpdateComment(comment)
        case AddColumns(columns):
            yield from map(_added, columns)
        case DropColumns(paths, if_exists):
            known = [field.name for field in schema.fields]
            yield from (sc.DropColumn(path) for path in paths if not if_exists or path[0] in known)
        case RenameColumn(path, new_name):
            yield sc.RenameColumn(path, new_name)
        case RedefineColumns(columns, new_name, keeps_nullability):
            for column in columns:
                yield from _redefined(schema, column, new_name, keeps_nullability)
        case AlterColumn():
            yield from _altered(schema, action)
        case DropPrimaryKey():
            yield sc.DropPrimaryKey()
        case AddPrimaryKey(columns):
            yield _set_option(schema, "primary-key", ",".join(columns))
        case _:
            raise Unsupported(f"table `{table}`: {type(action).__name__} can not be done", hint="write the rows anew")


def _set_option(schema: TableSchema, key: str, value: str) -> sc.SchemaChange:
    if key == "comment":
        return sc.UpdateComment(value)
    keys = {"primary-key": schema.primary_keys, "partition": schema.partition_keys}.get(key)
    if keys:
        raise InvalidSchema(
            f"option `{key}`: the table has ({', '.join(keys)}), which does not change",
            hint="copy the rows to a new table with other keys",
        )
    return sc.SetOption(key, value)


def _unset(schema: TableSchema, keys: tuple[str, ...], if_exists: bool, table: str) -> Iterator[sc.SchemaChange]:
    for key in keys:
        if key in _KEY_OPTIONS:
            raise InvalidSchema(
                f"table `{table}`: option `{key}` can not be taken away", hint="copy the rows to a new table instead"
            )
        if key == "comment":
            yield sc.UpdateComment(None)
        elif key in schema.options:
            yield sc.RemoveOption(key)
        elif not if_exists:
            raise NotFound(f"table `{table}` has no option `{key}`", hint=did_you_mean(key, schema.options))


def _added(column: Column) -> sc.AddColumn:
    name = ".".join(column.path)
    if column.default is not None:
        raise Unsupported(
            f"column `{name}` can not be added with a DEFAULT: rows written before would not have it",
            hint=f"add it without, then ALTER COLUMN {name} SET DEFAULT ...",
        )
    return sc.AddColumn(column.path, as_data_type(column.type, name), column.comment, None, _position(column.position))


def _redefined(
    schema: TableSchema, column: Column, new_name: str | None, keeps_nullability: bool
) -> Iterator[sc.SchemaChange]:
    path, name = column.path, ".".join(column.path)
    yield from type_changes(schema, path, as_data_type(column.type, name), keeps_nullability)
    if column.comment is not None:
        yield sc.UpdateColumnComment(path, column.comment)
    if column.default is not None:
        yield sc.UpdateColumnDefault(path, default_text(column.default, name))
    if column.position is not None:
        yield sc.UpdateColumnPosition(path, _moved(schema, path, column.position))
    if new_name is not None and new_name != path[-1]:
        yield sc.RenameColumn(path, new_name)


def _altered(schema: TableSchema, action: AlterColumn) -> Iterator[sc.SchemaChange]:
    path, name = action.path, ".".join(action.path)
    if action.type is not None:
        yield from type_changes(schema, path, as_data_type(action.type, name), keeps_nullability=True)
    if action.nullable is not None:
        yield sc.UpdateColumnNullability(path, action.nullable)
    if action.comment is not None:
        yield sc.UpdateColumnComment(path, action.comment)
    if action.position is not None:
        yield sc.UpdateColumnPosition(path, _moved(schema, path, action.position))
    if action.default is not None:
        yield sc.UpdateColumnDefault(path, default_text(action.default, name))
    if action.drops_default:
        yield sc.UpdateColumnDefault(path, None)


def _moved(schema: TableSchema, path: tuple[str, ...], position: Position) -> sc.Position:
    if position.after is None and path == (schema.fields[0].name,):
        raise InvalidArgument(f"column `{path[0]}` is the first already", hint="move another column")
    return sc.After(position.after) if position.after is not None else sc.First()


def _position(position: Position | None) -> sc.Position | None:
    if position is None:
        return None
    return sc.First() if position.after is None else sc.After(position.after)
