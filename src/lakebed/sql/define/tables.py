"""Making, dropping and emptying of databases and tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import count
from typing import Any

from lakebed.calls import warn_caller
from lakebed.cleanup import on_failure
from lakebed.errors import AlreadyExists, InvalidArgument, NotFound, Unsupported, did_you_mean
from lakebed.options import VIEW_OPTIONS
from lakebed.sql.define.defaults import default_text
from lakebed.sql.partition_specs import clear_partitions
from lakebed.sql.session import SqlLake, connector_table, connector_tables
from lakebed.sql.statements import (
    Analyze,
    Column,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropTable,
    Truncate,
    UseCatalog,
    UseDatabase,
)
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.names import CATALOGS
from lakebed.types.arrow import as_data_type, from_arrow_schema
from lakebed.types.logical import DataField, renumbered

_CONNECTOR, _PAIMON = "connector", "paimon"
# --- databases -------------------------------------------------------------------------------------------------------


def create_database(lake: SqlLake, statement: CreateDatabase) -> None:
    """CREATE DATABASE."""
    if statement.properties or statement.comment:
        raise Unsupported(
            f"database `{statement.name}`: databases have no comment and no properties here",
            hint="a database is a directory; leave COMMENT and the properties out",
        )
    lake.create_database(statement.name, if_not_exists=statement.if_not_exists)


def drop_database(lake: SqlLake, statement: DropDatabase) -> None:
    """DROP DATABASE."""
    lake.drop_database(statement.name, cascade=statement.cascade, if_exists=statement.if_exists)
    for database, name in list(connector_tables(lake)):
        if database == statement.name:
            del connector_tables(lake)[database, name]


def use_database(lake: SqlLake, statement: UseDatabase) -> None:
    """USE."""
    lake.use(statement.name)


def use_catalog(lake: SqlLake, statement: UseCatalog) -> None:
    """USE CATALOG: there is one."""
    if statement.name.lower() not in CATALOGS:
        raise NotFound(
            f"catalog `{statement.name}` is not here",
            hint=f"the lake is the only catalog, called `{CATALOGS[0]}`; connect to another lake by its path",
        )


# --- tables ----------------------------------------------------------------------------------------------------------


def create_table(lake: SqlLake, statement: CreateTable) -> None:
    """CREATE TABLE and REPLACE TABLE, from columns, from another table or from a query."""
    exists = lake.has_table(statement.name)
    if exists and statement.if_not_exists:
        return
    other = connector_table(lake, statement.name)
    if other is not None and not other.is_temporary:
        raise AlreadyExists(
            f"`{other.full_name}` is defined as a table of connector `{other.connector}`",
            hint=f"choose another name, or type DROP TABLE {statement.name} first",
        )
    if exists and not statement.replace:
        raise AlreadyExists(
            f"table `{statement.name}` exists already", hint="drop it, or write IF NOT EXISTS or CREATE OR REPLACE"
        )
    _check_keys_once(statement)
    if statement.must_exist and not exists:
        raise NotFound(f"table `{statement.name}` does not exist", hint="write CREATE OR REPLACE TABLE")
    if statement.query is not None:
        _create_from_query(lake, statement, exists)
        return
    arguments = _like(lake, statement) if statement.like else _defined(statement)
    if not exists:
        lake.create_table(statement.name, **arguments, if_not_exists=statement.if_not_exists)
        return
    if lake.replace_table(statement.name, **arguments):
        return
    # What is wrong with the new table is said before the old one goes.
    scratch = _free_name(lake, statement.name, "replacing")
    lake.create_table(scratch, **arguments)
    _swap(lake, statement.name, scratch)


def _check_keys_once(statement: CreateTable) -> None:
    """Keys are given by their clause or as an option, not both."""
    for clause, option, given in (
        ("PRIMARY KEY", "primary-key", statement.primary_key),
        ("PARTITIONED BY", "partition", statement.partition_by),
    ):
        if given and option in statement.options:
            raise InvalidArgument(
                f"table `{statement.name}` has {clause} and option `{option}`", hint=f"leave the option `{option}` out"
            )


def _defined(statement: CreateTable) -> dict[str, Any]:
    if not statement.columns:
        raise InvalidArgument(f"table `{statement.name}` has no columns", hint="list them, or add AS SELECT ...")
    return {
        "schema": fields_of(statement.columns),
        "primary_key": statement.primary_key,
        "partition_by": statement.partition_by,
        "options": _own_options(statement),
        # What Flink stores for no comment.
        "comment": "" if statement.is_flink and statement.comment is None else statement.comment,
    }


def _own_options(statement: CreateTable) -> dict[str, str]:
    """The options without Flink's `connector`, which says that the table is one of Paimon."""
    connector = statement.options.get(_CONNECTOR, _PAIMON)
    if connector != _PAIMON:
        raise Unsupported(
            f"table `{statement.name}` is of connector `{connector}`: tables of the lake are Paimon tables",
            hint="write the connector in quotes: 'connector' = '...'",
        )
    own = next((key for key in statement.options if key in VIEW_OPTIONS), None)
    if own is not None:
        raise InvalidArgument(
            f"table `{statement.name}`: option `{own}` is not set by hand", hint="use CREATE MATERIALIZED TABLE"
        )
    return {key: value for key, value in statement.options.items() if key != _CONNECTOR}


def _without_query(options: Mapping[str, str]) -> dict[str, str]:
    """A table like a materialized one is an ordinary one with the same columns."""
    return {key: value for key, value in options.items() if key not in VIEW_OPTIONS}


def _like(lake: SqlLake, statement: CreateTable) -> dict[str, Any]:
    source, leaves = lake.table(statement.like or "").schema, statement.like_leaves
    return {
        "schema": [*source.fields, *fields_of(statement.columns)],
        "primary_key": statement.primary_key or (() if "CONSTRAINTS" in leaves else source.primary_keys),
        "partition_by": statement.partition_by or (() if "PARTITIONS" in leaves else source.partition_keys),
        "options": {
            **({} if "OPTIONS" in leaves else _without_query(source.options)),
            **_own_options(statement),
        },
        "comment": statement.comment if statement.comment is not None else source.comment,
    }


def _create_from_query(lake: SqlLake, statement: CreateTable, exists: bool) -> None:
    """The query is carried out while the old table is still there: it may read from it."""
    from lakebed.sql.change.insert import insert_query  # needs Spark: only when it is used
    from lakebed.sql.parse.query import read_query
    from lakebed.sql.query.run import schema_of
    from lakebed.sql.words.names import quoted

    assert statement.query is not None
    schema = schema_of(lake, statement.query)
    arguments: dict[str, Any] = {
        "schema": from_arrow_schema(schema),
        "primary_key": statement.primary_key,
        "partition_by": statement.partition_by,
        "options": _own_options(statement),
        "comment": statement.comment,
    }
    if not exists:
        lake.create_table(statement.name, **arguments)
        with on_failure(lambda: lake.drop_table(statement.name, if_exists=True)):
            insert_query(lake, statement.name, statement.query, list(schema.names))
        return
    _refuse_losing_its_own_history(lake, statement)
    scratch = _free_name(lake, statement.name, "replacing")
    lake.create_table(scratch, **arguments)
    with on_failure(lambda: lake.drop_table(scratch, if_exists=True)):
        insert_query(lake, scratch, statement.query, list(schema.names))
        is_replaced = lake.replace_table(statement.name, **arguments)
    if not is_replaced:
        _swap(lake, statement.name, scratch)
        return

    def say_where_rows_are() -> None:
        error = sys.exception()
        assert error is not None
        error.add_note(f"the new rows are in table `{scratch}`: insert them into `{statement.name}`, and drop it")

    with on_failure(say_where_rows_are):
        parts = ".".join(quoted(part) for part in scratch.split("."))
        insert_query(lake, statement.name, read_query(Cursor(f"SELECT * FROM {parts}")))
    lake.drop_table(scratch)


def _refuse_losing_its_own_history(lake: SqlLake, statement: CreateTable) -> None:
    """A table that is partitioned otherwise begins anew; not if the query that fills it reads what would be lost."""
    from lakebed.sql.query.references import references

    assert statement.query is not None
    old = lake.table(statement.name)
    names = {reference.table.name for reference in references(lake, statement.query)}
    given = statement.options.get("partition", "").split(",")
    partition_by = statement.partition_by or tuple(name.strip() for name in given if name.strip())
    if partition_by != old.partition_by and old.name in names:
        raise Unsupported(
            f"table `{statement.name}` can not be replaced by rows of its own and partitioned otherwise at once",
            hint="write PARTITIONED BY as the table has it, or fill another table and rename it",
        )


def _swap(lake: SqlLake, name: str, scratch: str) -> None:
    """Puts the new table in place of the old, which goes last: a crash leaves both, under other names at worst."""
    warn_caller(f"table `{name}` is partitioned otherwise than before: its old snapshots are gone")
    old = _free_name(lake, name, "replaced")
    lake.rename_table(name, old)
    lake.rename_table(scratch, name)
    lake.drop_table(old)


def _free_name(lake: SqlLake, name: str, what: str) -> str:
    return next(text for number in count() if not lake.has_table(text := f"{name}__{what}_{number}"))


def fields_of(columns: tuple[Column, ...]) -> list[DataField]:
    """The columns as a schema has them."""
    numbers = count()
    fields = []
    for column in columns:
        name = ".".join(column.path)
        if len(column.path) > 1:
            raise InvalidArgument(f"column name `{name}` has a dot", hint="quote it, or define a ROW column")
        default = None if column.default is None else default_text(column.default, name)
        number = next(numbers)
        data_type = renumbered(as_data_type(column.type, name), lambda: next(numbers))
        fields.append(DataField(number, name, data_type, column.comment, default_value=default))
    return fields


def drop_table(lake: SqlLake, statement: DropTable) -> None:
    """DROP TABLE. A temporary table of another system hides one of the lake, which is not dropped in its place."""
    other = connector_table(lake, statement.name)
    if other is not None:
        if other.is_temporary and not statement.is_temporary and lake.has_table(statement.name):
            raise InvalidArgument(
                f"a temporary table hides table `{other.full_name}` of the lake",
                hint=f"type DROP TEMPORARY TABLE {statement.name} first",
            )
        del connector_tables(lake)[other.database, other.name]
        return
    if statement.is_temporary:
        if statement.if_exists:
            return
        known = [name for database, name in connector_tables(lake) if database == lake.current_database]
        raise NotFound(f"there is no temporary table `{statement.name}`", hint=did_you_mean(statement.name, known))
    lake.drop_table(statement.name, if_exists=statement.if_exists)


def truncate(lake: SqlLake, statement: Truncate) -> None:
    """TRUNCATE TABLE: all rows, or those of the partitions with the given values."""
    table = lake.table(statement.name)
    if statement.partition is None:
        table.truncate()
        return
    clear_partitions(table, [statement.partition])


def analyze(lake: SqlLake, statement: Analyze) -> None:
    """ANALYZE TABLE."""
    columns = statement.columns
    lake.table(statement.name).analyze(True if columns is None else columns or False)
