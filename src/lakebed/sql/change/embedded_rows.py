"""INSERT from a query without Spark, where what would be stored is certain to be the same.

Each column of the query must have the type of its column, or one that every value of it has room in: what Spark does
beyond that (text that spells a value, values that may not fit, padding) is left to Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.sql.query.choose import choose
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Sql
from lakebed.sql.words.conversion import column_of
from lakebed.sql.words.values import Value
from lakebed.types.logical import STRING, DataField, TypeRoot, is_root, with_nullable
from lakebed.types.transfer import transfer_schema


def may_run_embedded(lake: SqlLake) -> bool:
    """Whether a statement should try to do without Spark: not if a session is in use anyway."""
    return not lake.is_spark_started


class EmbeddedRows:
    """The rows of a query, as a table takes them."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    @property
    def names(self) -> list[str]:
        """Names of the query's columns."""
        return list(self._rows.schema.names)

    @staticmethod
    def of(lake: SqlLake, query: Sql, most_rows: int) -> EmbeddedRows | None:
        """The rows, if they can be computed here and are not more than that; None if not."""
        choice = choose(lake, query)
        if choice.embedded is None:
            return None
        batches, count = [], 0
        for batch in choice.embedded.batches():
            batches.append(batch)
            count += batch.num_rows
            if count > most_rows:
                return None
        return EmbeddedRows(pa.Table.from_batches(batches, schema=choice.embedded.schema))

    def fitted(
        self, fields: Sequence[DataField], sources: Sequence[int | None], fixed: Mapping[str, Value]
    ) -> pa.Table | None:
        """The rows with a table's columns: `sources` are the places of their values, or None for those that are fixed.

        None if a column has to be converted in a way that may change or refuse a value.
        """
        wanted = transfer_schema(fields)
        columns = []
        for field, place, target in zip(fields, sources, wanted, strict=True):
            if place is None:
                one = column_of(field, [fixed.get(field.name)], None)
                columns.append(pa.repeat(one[0], self._rows.num_rows))
                continue
            column = self._rows.column(place)
            if not _has_room(column.type, target.type, field):
                return None
            columns.append(column if column.type == target.type else column.cast(target.type))
        return pa.Table.from_arrays(columns, names=[field.name for field in fields])


def _has_room(given: pa.DataType, target: pa.DataType, field: DataField) -> bool:
    """Whether every value of a type goes into a column as it is."""
    plain = with_nullable(field.type, True)
    if is_root(plain, {TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ}):
        return bool(given == target) and "(6)" in str(plain)
    if given == kinds.STRING or target == kinds.STRING:
        return bool(given == target) and plain == STRING
    if target == kinds.BINARY or kinds.is_nested(target):
        return False
    if given == target or given == kinds.NULL:
        return True
    if kinds.is_integral(given) and kinds.is_integral(target):
        return kinds.INTEGRALS.index(given) <= kinds.INTEGRALS.index(target)
    return bool(target == kinds.DOUBLE) and given in (kinds.TINYINT, kinds.SMALLINT, kinds.INT, kinds.FLOAT)
