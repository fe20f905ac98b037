"""INSERT INTO and INSERT OVERWRITE.

Rows of literals are put together here and written at once: no Spark is started, no job runs. So are rows of queries
that are proven to give the same in this process (`embedded_rows`). Anything else is a query of Spark's; if it reads
little, its rows are collected and written here as well, else a job writes them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokens import TokenType

from lakebed.errors import InvalidArgument, InvalidData, NotFound, Unsupported, did_you_mean
from lakebed.expressions.nodes import NotProven
from lakebed.options import WRITE_HIVE_STYLE_DYNAMIC_PARTITION_ENABLED, Options
from lakebed.records import dataclass
from lakebed.spark.errors import spark_errors
from lakebed.sql.change.embedded_rows import MOST_ROWS_HERE, leave_to_spark, may_run_embedded, rows_to_insert
from lakebed.sql.change.new_columns import SchemaMerge
from lakebed.sql.change.spark_finder import collected
from lakebed.sql.parse.query import read_query
from lakebed.sql.query.choose import choose
from lakebed.sql.query.plan import Planner
from lakebed.sql.query.references import open_target
from lakebed.sql.query.run import incoming_fields
from lakebed.sql.session import SqlLake
from lakebed.sql.settings import session_clock, write_settings
from lakebed.sql.statements import Insert, PlainRows, Sql, Target
from lakebed.sql.words.conversion import column_of, convert
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.literals import evaluate
from lakebed.sql.words.values import NotLiteral, Scalar, Value
from lakebed.table.table import Table
from lakebed.types.logical import DataField, TypeRoot, is_root

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def insert(lake: SqlLake, statement: Insert) -> None:
    """INSERT."""
    if statement.replace_where is not None:
        raise Unsupported(
            "INSERT ... REPLACE WHERE is not carried out in this version",
            hint="replace whole partitions with INSERT OVERWRITE t PARTITION (...), or use DELETE and INSERT",
        )
    table = open_target(lake, statement.target)
    fixed = _fixed_values(lake, statement, table)
    target, overwrite = _overwrite_of(lake, table, statement, fixed)
    literals = _literals(lake, statement, target, fixed)
    if literals is not None:
        target.write(literals, overwrite=overwrite)
        return
    source = statement.source if isinstance(statement.source, Sql) else read_query(Cursor(statement.source.text))
    source = _without_defaults(source) if isinstance(source.tree, exp.Values) else source
    rows = _rows_here(lake, statement, target, source, fixed)
    if rows is not None:
        target.write(rows, overwrite=overwrite)
        return
    planner = Planner.start(lake)
    frame = planner.frame(source)
    merge = SchemaMerge.of(lake, statement.target)
    if merge.adds and statement.by_name:
        merge.apply(target, incoming_fields(frame))
    assigned = _assigned(lake, statement, target, frame, fixed, may_lack=merge.adds)
    write_frame(target, assigned, overwrite, is_small=planner.is_small and planner.product_rows <= MOST_ROWS_HERE)


def _rows_here(
    lake: SqlLake, statement: Insert, table: Table, source: Sql, fixed: Mapping[str, Value]
) -> pa.Table | None:
    """The rows of a query as rows of the table, if that needs no Spark."""
    if not may_run_embedded(lake) or SchemaMerge.of(lake, statement.target).adds:
        return None
    fields = table.schema.fields

    def sources(names: list[str]) -> Sequence[int | None]:
        return columns_of(statement, fields, table.name, names, _partitions_last(lake, statement, table)).sources

    try:
        return rows_to_insert(lake, source, fields, sources, fixed, by_name=statement.by_name)
    except NotProven as unproven:
        leave_to_spark(unproven)
        return None


def insert_query(lake: SqlLake, name: str, query: Sql, columns: Sequence[str] | None = None) -> None:
    """Writes the rows of a query into a table, for CREATE TABLE AS."""
    insert(lake, Insert(Target(name), query, columns=None if columns is None else tuple(columns)))


def write_frame(table: Table, frame: DataFrame, overwrite: bool | Mapping[str, Any] | None, *, is_small: bool) -> None:
    """Writes a DataFrame: in this process if it is small, else as a job."""
    if not is_small:
        with spark_errors():
            table.write_spark(frame, overwrite=overwrite)
        return
    table.write(collected(frame, table.schema.fields), overwrite=overwrite)


# --- literals --------------------------------------------------------------------------------------------------------
def _literals(lake: SqlLake, statement: Insert, table: Table, fixed: Mapping[str, Value]) -> pa.Table | None:
    """The rows of `VALUES ...`, if they consist of literals that can be read here as what the columns hold."""
    try:
        rows = _rows(statement.source)
        return None if rows is None else _table_of(lake, statement, table, rows, fixed)
    except NotLiteral:
        return None


def _rows(source: Sql | PlainRows) -> list[list[Value]] | None:
    if isinstance(source, PlainRows):
        return source.rows
    tree = source.tree
    if not isinstance(tree, exp.Values) or tree.args.get("with_"):
        return None
    return [[_cell(cell) for cell in _cells(row)] for row in tree.expressions]


def _cells(row: exp.Expression) -> list[exp.Expression]:
    if isinstance(row, exp.Tuple):
        return list(row.expressions)
    return [row.this if isinstance(row, exp.Paren) else row]


def _cell(node: exp.Expression) -> Value:
    return None if _is_default(node) else evaluate(node)


def _is_default(node: exp.Expression) -> bool:
    """The word DEFAULT: columns put their default in place of NULL when rows are written."""
    is_word = isinstance(node, exp.Var) or (isinstance(node, exp.Column) and not node.table and not node.this.quoted)
    return is_word and node.name.upper() == "DEFAULT"


def _without_defaults(source: Sql) -> Sql:
    """The text with NULL for DEFAULT, which Spark knows only inside INSERT."""
    edits = {
        (token.start, token.end + 1): "NULL"
        for token in Cursor(source.text).tokens
        if token.text.upper() == "DEFAULT" and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
    }
    return Sql(source.spliced(edits), source.tree)


def _table_of(
    lake: SqlLake, statement: Insert, table: Table, rows: list[list[Value]], fixed: Mapping[str, Value]
) -> pa.Table:
    widths = {len(row) for row in rows}
    if len(widths) != 1:
        raise InvalidArgument("the rows of VALUES differ in length", hint="give each row the same number of values")
    if statement.by_name:
        raise InvalidArgument("VALUES has no names to go by", hint="leave BY NAME out, or insert from a SELECT")
    fields = table.schema.fields
    columns = columns_of(statement, fields, table.name, widths.pop(), _partitions_last(lake, statement, table))
    zone = session_clock(lake) if any(is_root(field.type, TypeRoot.TIMESTAMP_LTZ) for field in fields) else None
    arrays = [
        column_of(field, (_given(field.name, row, place, fixed) for row in rows), zone)
        for field, place in zip(columns.fields, columns.sources, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=[field.name for field in fields])


def _given(name: str, row: list[Value], place: int | None, fixed: Mapping[str, Value]) -> Value:
    return fixed.get(name) if place is None else row[place]


def _fixed_values(lake: SqlLake, statement: Insert, table: Table) -> dict[str, Value]:
    """Values of a PARTITION clause, by the table's own names."""
    fixed: dict[str, Value] = {}
    for name, sql in statement.partition.items():
        field = find_column(name, table.schema.fields, table.name)
        if field.name not in table.partition_by:
            raise InvalidArgument(
                f"`{field.name}` is not a partition column of table `{table.name}`",
                hint=f"the table is partitioned by ({', '.join(table.partition_by)})",
            )
        if sql is not None:
            fixed[field.name] = _fixed_value(lake, sql, field)
    return fixed


def _fixed_value(lake: SqlLake, sql: Sql, field: DataField) -> Value:
    try:
        return convert(_evaluated(lake, sql), field.type, explicit=True, place=f"column `{field.name}`")
    except NotLiteral as error:
        raise InvalidArgument(
            f"{sql.text} is no value of partition column `{field.name}` ({field.type})",
            hint="write a value of the column's type",
        ) from error


def _evaluated(lake: SqlLake, sql: Sql) -> Value:
    try:
        return evaluate(sql.tree)
    except NotLiteral:
        found = _computed(lake, read_query(Cursor(f"SELECT CAST(({sql.text}) AS STRING) AS found")))
        return None if found is None else Scalar(TypeRoot.VARCHAR, found)


def _computed(lake: SqlLake, query: Sql) -> str | None:
    """The one value of a query."""
    choice = choose(lake, query, "auto" if may_run_embedded(lake) else "spark")
    if choice.embedded is not None:
        found: str | None = choice.embedded.table().column(0)[0].as_py()
        return found
    with spark_errors():
        row = lake.spark.sql(query.text).first()
    return None if row is None else row[0]


# --- queries ---------------------------------------------------------------------------------------------------------
def _partitions_last(lake: SqlLake, statement: Insert, table: Table) -> tuple[str, ...]:
    """Columns of PARTITION (p, q) that rows have last, if statements are to be read as Hive reads them."""
    option = WRITE_HIVE_STYLE_DYNAMIC_PARTITION_ENABLED
    if not (write_settings(lake, statement.target.name)[option.key] or Options(table.options)[option]):
        return ()
    return _hive_order(statement, table.schema.fields, table.name, table.partition_by)


def _assigned(
    lake: SqlLake,
    statement: Insert,
    table: Table,
    frame: DataFrame,
    fixed: Mapping[str, Value],
    *,
    may_lack: bool,
) -> DataFrame:
    """The rows of a query as rows of the table."""
    from lakebed.spark.store_assignment import assigned

    columns: InsertColumns = columns_of(
        statement, table.schema.fields, table.name, frame.columns, _partitions_last(lake, statement, table)
    )
    constants = {name: _constant(value) for name, value in fixed.items()}
    with spark_errors():
        return assigned(
            frame,
            table.name,
            columns.fields,
            columns.sources,
            constants,
            by_name=statement.by_name,
            may_lack=may_lack,
        )


def _constant(value: Value) -> Any:
    if value is None or isinstance(value, Scalar):
        return None if value is None else value.value
    raise InvalidData("a partition value is no single value", hint="write a number, text or date")


# --- Which value of an INSERT goes into which column: by position, by a list of names, or by the names of the query


@dataclass(frozen=True, slots=True)
class InsertColumns:
    """For each column of the table, in its order: the place of its value in the rows given, or None."""

    fields: tuple[DataField, ...]
    sources: tuple[int | None, ...]


def find_column(name: str, fields: Sequence[DataField], table: str) -> DataField:
    """The column of that name, in any case."""
    found = [field for field in fields if field.name == name]
    found = found or [field for field in fields if field.name.lower() == name.lower()]
    if not found:
        known = [field.name for field in fields]
        raise NotFound(f"table `{table}` has no column `{name}`", hint=did_you_mean(name, known))
    return found[0]


def columns_of(
    statement: Insert,
    fields: tuple[DataField, ...],
    table: str,
    given: Sequence[str] | int,
    partitions_last: Sequence[str] = (),
) -> InsertColumns:
    """The columns of a statement whose rows have these names, or so many values.

    `partitions_last` are columns that come after all others, as in Hive, unless the names say that they do not.
    """
    fixed = {find_column(name, fields, table).name for name, value in statement.partition.items() if value is not None}
    if statement.by_name and not isinstance(given, int):
        return _by_name(fields, fixed, list(given), table)
    count = given if isinstance(given, int) else len(given)
    named = _named(statement, fields, fixed, table)
    if partitions_last and not _are_names(named, given):
        named = [*(name for name in named if name not in partitions_last), *partitions_last]
    if len(named) != count:
        raise InvalidData(
            f"table `{table}`: each row has {count} values for {len(named)} columns ({', '.join(named)})",
            hint="give one value for each column, or list the columns: INSERT INTO t (a, b) ...",
        )
    places = {name: index for index, name in enumerate(named)}
    return InsertColumns(fields, tuple(places.get(field.name) for field in fields))


def _named(statement: Insert, fields: tuple[DataField, ...], fixed: set[str], table: str) -> list[str]:
    if statement.columns is None:
        return [field.name for field in fields if field.name not in fixed]
    return named_columns(statement.columns, fields, table, fixed)


def _are_names(named: list[str], given: Sequence[str] | int) -> bool:
    return not isinstance(given, int) and [name.lower() for name in given] == [name.lower() for name in named]


def _hive_order(
    statement: Insert, fields: Sequence[DataField], table: str, partition_by: Sequence[str]
) -> tuple[str, ...]:
    """Partition columns that Hive's order has last: those whose values the rows bring."""
    if statement.by_name or statement.columns is not None:
        return ()
    dynamic = {find_column(name, fields, table).name for name, value in statement.partition.items() if value is None}
    return tuple(name for name in partition_by if name in dynamic)


def named_columns(
    names: Sequence[str], fields: Sequence[DataField], table: str, fixed: Collection[str] = ()
) -> list[str]:
    """The columns of a list, by the table's own names; each may be given once, in the list or as a `fixed` value."""
    named = [find_column(name, fields, table).name for name in names]
    twice = {name for name in named if named.count(name) > 1} | (set(named) & set(fixed))
    if twice:
        raise InvalidArgument(f"column `{min(twice)}` of table `{table}` is given twice", hint="name each column once")
    return named


def _by_name(fields: tuple[DataField, ...], fixed: set[str], given: list[str], table: str) -> InsertColumns:
    lowered = [name.lower() for name in given]
    twice = {name for name in lowered if lowered.count(name) > 1}
    if twice:
        raise InvalidData(f"the query has column `{min(twice)}` twice", hint="give each column a name of its own")
    known = {field.name.lower() for field in fields if field.name not in fixed}
    extra = [name for name in given if name.lower() not in known]
    if extra:
        raise InvalidData(
            f"the query has column `{extra[0]}`, which table `{table}` has not",
            hint="leave it out, or set `write.merge-schema` to have it added to the table",
        )
    places = {name: index for index, name in enumerate(lowered)}
    return InsertColumns(fields, tuple(places.get(field.name.lower()) for field in fields))


# --- What INSERT OVERWRITE replaces -------------------------------------------------------------------------------
#
# A PARTITION clause names it, unless Spark's `partitionOverwriteMode` is `dynamic`: then, and where nothing is named,
# it is the partitions of the new rows. If the session says `static`, an overwrite that names no partition value
# replaces the whole table, as Spark does; if it says nothing, `dynamic-partition-overwrite` of the table decides, as
# in Flink.


_MODE = "spark.sql.sources.partitionOverwriteMode"
_DYNAMIC = "dynamic-partition-overwrite"


def _overwrite_of(
    lake: SqlLake, table: Table, statement: Insert, fixed: Mapping[str, Value]
) -> tuple[Table, bool | dict[str, Any] | None]:
    """The table to write to, and the `overwrite` argument of the write."""
    if not statement.overwrite:
        return table, None
    if not table.partition_by:
        return table, {}
    mode = _session_mode(lake)
    if mode == "dynamic":
        return table.with_options({_DYNAMIC: "true"}), True
    if fixed:
        return table, {name: _spec_value(value) for name, value in fixed.items()}
    # BY NAME is Spark's, where an overwrite without partitions means the whole table.
    return table, {} if statement.by_name or mode == "static" else True


def _session_mode(lake: SqlLake) -> str | None:
    """What the session says about it; None if nobody has set it, though Spark has a default."""
    if not lake.is_spark_started:
        return None
    said = {key.lower(): value for key, value in lake.spark.conf.getAll.items()}.get(_MODE.lower())
    return None if said is None else str(said).lower()


def _spec_value(value: Value) -> Any:
    if not isinstance(value, Scalar):
        return None
    given = value.value
    if isinstance(given, bool):
        return "true" if given else "false"
    return str(given) if isinstance(given, dt.date | Decimal | int | float) else given
