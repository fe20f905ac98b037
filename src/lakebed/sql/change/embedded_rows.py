"""Rows of statements without Spark, where what would be stored is certain to be the same.

Whether it is, the types tell: only then is anything computed. Rows that are too many to be written by one process are
left to Spark, if it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec

import pyarrow as pa

from lakebed.embedded.engine import Embedded
from lakebed.errors import Unsupported
from lakebed.expressions.nodes import NotProven
from lakebed.sql.bind.scope import Bound
from lakebed.sql.change.store import projected, stored, values_of
from lakebed.sql.query.embedded import bound_text, planned
from lakebed.sql.query.pins import Pins
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Sql
from lakebed.sql.words.conversion import column_of
from lakebed.sql.words.values import Value
from lakebed.types.logical import DataField
from lakebed.types.transfer import to_precision

MOST_ROWS_HERE = 2_000_000
"""A statement that can not give more rows than this is carried out without a job that writes."""
_MOST_BYTES_HERE = 1 << 30
"""The same of their size in memory."""


def may_run_embedded(lake: SqlLake) -> bool:
    """Whether a statement should try to do without Spark: not if a session is in use anyway."""
    return not lake.is_spark_started


def check_engine() -> None:
    """Raises if there is no engine in this process."""
    if find_spec("duckdb") is None:
        raise NotProven("the statement", "duckdb is not installed")


def _has_spark() -> bool:
    """Whether Spark could be started."""
    return find_spec("pyspark") is not None


def leave_to_spark(unproven: NotProven) -> None:
    """Raises if there is no Spark for a statement that nobody else can carry out for this reason."""
    if not _has_spark():
        raise Unsupported(
            f"the statement needs Spark, which is not installed; {unproven}",
            hint=f'install it with: pip install "lakebed[spark]", or {unproven.instead}',
        ) from unproven


def rows_to_insert(
    lake: SqlLake,
    query: Sql,
    fields: Sequence[DataField],
    sources: Callable[[list[str]], Sequence[int | None]],
    fixed: Mapping[str, Value],
    *,
    by_name: bool,
) -> pa.Table:
    """The rows of a query with a table's columns. `sources`, told the names of the query's columns, says the places of
    their values, or None for those that are `fixed`. Members of rows go by name, or by place.
    """
    check_engine()
    bound = bound_text(lake, query.text, Pins())
    taken = as_stored(bound, fields, sources(list(bound.names)), by_name=by_name)
    return filled(collected_here(lake, taken, fields), fields, fixed)


def as_stored(bound: Bound, fields: Sequence[DataField], places: Sequence[int | None], *, by_name: bool) -> Bound:
    """A query whose columns are those of a table, as that stores them, as far as they have a place in the query."""
    relation, values = values_of(bound)
    given = [(field, place) for field, place in zip(fields, places, strict=True) if place is not None]
    taken = [stored(values[place], field, by_place=not by_name) for field, place in given]
    return projected(relation, taken, [field.name for field, _ in given])


def filled(rows: pa.Table, fields: Sequence[DataField], fixed: Mapping[str, Value]) -> pa.Table:
    """Rows of some columns of a table with all of them: others have a `fixed` value, or null."""
    columns = []
    for field in fields:
        if field.name in rows.column_names:
            columns.append(rows.column(field.name))
        else:
            one = column_of(field, [fixed.get(field.name)], None)
            columns.append(pa.repeat(one[0], rows.num_rows))
    return pa.Table.from_arrays(columns, names=[field.name for field in fields])


def collected_here(lake: SqlLake, bound: Bound, fields: Sequence[DataField]) -> pa.Table:
    """The rows of a query, with the precision of a table's columns."""
    return to_precision(_all_of(planned(lake, bound)), fields)


def _all_of(query: Embedded) -> pa.Table:
    batches, rows, size_bytes = [], 0, 0
    for batch in query.batches():
        batches.append(batch)
        rows += batch.num_rows
        size_bytes += batch.nbytes
        check_few(rows, size_bytes)
    return pa.Table.from_batches(batches, schema=query.schema)


def check_few(rows: int, size_bytes: int = 0) -> None:
    """Raises if so many rows are better written by jobs."""
    if (rows > MOST_ROWS_HERE or size_bytes > _MOST_BYTES_HERE) and _has_spark():
        raise NotProven(f"{rows} rows", "jobs write as many")
