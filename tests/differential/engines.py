"""One expression on both engines: what each gives, or that it fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.errors import PySparkException
from sqlglot import exp

from lakebed.expressions import kinds
from lakebed.expressions.nodes import Aggregation, Call, Column, Expression, NotProven
from lakebed.sql.bind.aggregates import bind_aggregate, bind_window
from lakebed.sql.bind.expressions import ExpressionBinder
from lakebed.sql.bind.syntax import verbatim
from lakebed.sql.words.spelling import to_spark

ZONE = "Europe/Berlin"
"""Of both sessions: one with a change of clocks."""


@dataclass(frozen=True)
class Answer:
    """Values in the order of the rows and their type, or the words of an error."""

    type: pa.DataType | None = None
    values: tuple[Any, ...] = ()
    error: str | None = None


class PlainScope:
    """Columns of one table; aggregates of all rows of a group."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._binder = ExpressionBinder(self)

    def bind(self, text: str) -> Expression:
        """The expression of a text."""
        tree = verbatim(f"SELECT {to_spark(text)}")
        return self._binder.bind(tree.expressions[0])

    def column(self, path: Sequence[str]) -> Expression:
        """A column, and members behind it."""
        field = self._schema.field(path[0])
        found: Expression = Column(type=field.type, nullable=field.nullable, id=kinds.quoted(field.name))
        for part in path[1:]:
            found = ExpressionBinder(self)._named_of(".", [found, _text(part)])
        return found

    def aggregate(self, node: exp.Expression) -> Expression:
        """In place."""
        return bind_aggregate(node, self._binder)

    def window(self, node: exp.Window) -> Expression:
        """In place."""
        return bind_window(node, self._binder)

    def subquery(self, node: exp.Expression) -> Expression:
        """None here."""
        raise NotProven(node.sql())


def _text(value: str) -> Expression:
    from lakebed.sql.bind.literals import text_constant

    return text_constant(value)


class Embedded:
    """DuckDB, told by the list."""

    def __init__(self, tables: dict[str, pa.Table]) -> None:
        self._connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        self._connection.execute(f"SET TimeZone = '{ZONE}'")
        for name, rows in tables.items():
            self._connection.register(name, rows)
        self._scopes = {name: PlainScope(rows.schema) for name, rows in tables.items()}
        self._known: set[str] = set()

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def answer(self, text: str, table: str, group: bool = False) -> Answer:
        """What the expression gives for each row, or each group."""
        found = self._scopes[table].bind(text)
        self._prepare(found)
        is_group = group and any(isinstance(each, Aggregation) and not each.over for each in found.walk())
        tail = "GROUP BY g ORDER BY g" if is_group else "ORDER BY id"
        try:
            rows = self._connection.sql(f"SELECT {found.spelled()} AS r FROM {table} {tail}").arrow()
            column = (rows.read_all() if isinstance(rows, pa.RecordBatchReader) else rows).column("r")
            return Answer(found.type, tuple(as_python(column.cast(found.type), found.type)))
        except (duckdb.Error, pa.ArrowInvalid) as error:
            return Answer(error=str(error))

    def _prepare(self, found: Expression) -> None:
        for part in found.walk():
            for needed in part.uses if isinstance(part, Call) else ():
                if needed.name not in self._known:
                    self._known.add(needed.name)
                    *given, result = needed.types
                    self._connection.create_function(
                        needed.name, needed.compute, given, result, type="arrow", null_handling="special"
                    )


def spark_answers(spark: Any, texts: Sequence[str], table: str, group: bool = False) -> list[Answer]:
    """What Spark gives for many expressions: all in one job, and one by one where some of them fail."""
    tail = "GROUP BY g ORDER BY g" if group else "ORDER BY id"
    try:
        columns = ", ".join(f"{text} AS r{n}" for n, text in enumerate(texts))
        rows = spark.sql(f"SELECT {columns} FROM {table} {tail}").toArrow()
        return [Answer(field.type, tuple(as_python(rows.column(n), field.type))) for n, field in enumerate(rows.schema)]
    except PySparkException as error:
        if len(texts) == 1:
            return [Answer(error=str(error).splitlines()[0])]
        middle = len(texts) // 2
        return [
            *spark_answers(spark, texts[:middle], table, group),
            *spark_answers(spark, texts[middle:], table, group),
        ]


def as_python(column: Any, kind: pa.DataType) -> Iterable[Any]:
    """Values that can be compared: NaN equals NaN, -0.0 is not 0.0, dates beyond Python's years are numbers."""
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    if pa.types.is_date(kind):
        return column.cast(pa.int32()).to_pylist()
    if pa.types.is_duration(kind):
        return column.cast(pa.int64()).to_pylist()
    return [_comparable(value) for value in column.to_pylist()]


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    if isinstance(value, tuple):
        return tuple(_comparable(each) for each in value)
    if isinstance(value, dict):
        return {key: _comparable(each) for key, each in value.items()}
    return value


def plain_type(kind: pa.DataType) -> str:
    """A type without what says nothing about its values: nullability and names of list elements."""
    if pa.types.is_large_string(kind):
        kind = pa.string()
    if pa.types.is_list(kind):
        return f"list<{plain_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{plain_type(kind.key_type)},{plain_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{each.name}:{plain_type(each.type)}' for each in kind)}>"
    if pa.types.is_timestamp(kind):
        return f"timestamp[{kind.unit}]{'' if kind.tz is None else ' zoned'}"
    return str(kind)
