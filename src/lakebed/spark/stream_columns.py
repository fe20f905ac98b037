"""The columns of a streaming DataFrame: those of the table, what happened to each row, and which commit it came from.

Who does not ask what happened gets the rows that came, without those that went.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as st

from lakebed.errors import InvalidArgument, InvalidData, did_you_mean
from lakebed.options import READ_CHANGE_FEED, READ_CHANGELOG, Options
from lakebed.schema.system_columns import ROW_KIND
from lakebed.schema.table_schema import TableSchema
from lakebed.spark.stream_batches import Piece
from lakebed.spark.stream_evolution import fitted
from lakebed.spark.types import arrow_type, spark_schema, spark_type
from lakebed.table.context import TableContext
from lakebed.table.views import AUDIT_LOG
from lakebed.types.logical import DataField
from lakebed.types.row_kind import TEXTS

ROWKIND = ROW_KIND.name
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"

_FEED = {
    CHANGE_TYPE: st.StringType(),
    COMMIT_VERSION: st.LongType(),
    COMMIT_TIMESTAMP: st.TimestampType(),
}
_CHANGE_TYPES = ("insert", "update_preimage", "update_postimage", "delete")
"""In the order of the row kinds."""


def shows_kinds(context: TableContext) -> bool:
    """Whether a stream of the table says what happened to each row, in a column `rowkind` in front."""
    return context.view == AUDIT_LOG or context.options[READ_CHANGELOG]


def stream_schema(context: TableContext, fields: Sequence[DataField]) -> st.StructType:
    """The schema of a stream of these columns of a table. Any may come to be null: the table may lose the column."""
    columns = [st.StructField(part.name, part.dataType, True, part.metadata) for part in spark_schema(fields).fields]
    schema = with_feed(st.StructType(columns), context.options)
    return with_kinds(schema) if shows_kinds(context) else schema


def with_kinds(schema: st.StructType) -> st.StructType:
    """The schema with the kinds of the rows in front."""
    if ROWKIND in schema.names:
        return schema
    return st.StructType([st.StructField(ROWKIND, st.StringType(), False), *schema.fields])


def with_feed(schema: st.StructType, options: Options) -> st.StructType:
    """The schema with the columns behind that `read.change-feed` asks for."""
    if not options[READ_CHANGE_FEED]:
        return schema
    taken = set(schema.names) & set(_FEED)
    if taken:
        raise InvalidArgument(
            f"column `{min(taken)}` would be there twice: in the table, and by `{READ_CHANGE_FEED.key}`",
            hint=f"leave `{READ_CHANGE_FEED.key}` out, or rename the column",
        )
    return st.StructType([*schema.fields, *(st.StructField(name, kind, False) for name, kind in _FEED.items())])


def is_told(name: str, options: Options) -> bool:
    """Whether a column of a stream is not the table's, but tells of its changes."""
    return name == ROWKIND or (name in _FEED and options[READ_CHANGE_FEED])


def fits(schema: TableSchema, wanted: st.StructType, options: Options) -> bool:
    """Whether a version of the table's schema has all columns that a DataFrame was made with, of the same types."""
    return not _misfits(schema, wanted, options)


def check_fits(schema: TableSchema, wanted: st.StructType, options: Options, table: str) -> None:
    """Raises if a column is asked for that the table has not, or not of that type."""
    for field in _misfits(schema, wanted, options):
        if field.name not in schema.field_names:
            raise InvalidArgument(
                f"table `{table}` has no column `{field.name}`", hint=did_you_mean(field.name, schema.field_names)
            )
        found = spark_type(schema.field(field.name).type, field.name)
        raise InvalidArgument(
            f"column `{field.name}` of table `{table}` is {found.simpleString()}, not {field.dataType.simpleString()}",
            hint="leave its type to the table, and cast it in the query",
        )


def _misfits(schema: TableSchema, wanted: st.StructType, options: Options) -> list[st.StructField]:
    return [
        field
        for field in wanted.fields
        if not is_told(field.name, options)
        and (
            field.name not in schema.field_names
            or spark_type(schema.field(field.name).type, field.name).simpleString() != field.dataType.simpleString()
        )
    ]


@dataclass(frozen=True)
class StreamColumns:
    """How rows of a table become rows of a DataFrame of this schema."""

    wanted: st.StructType
    options: Options
    keeps_retracts: bool
    """Whether rows that went are shown as well."""

    @staticmethod
    def of(context: TableContext, wanted: st.StructType) -> StreamColumns:
        """Kinds are kept if there is a column that tells them."""
        tells = any(is_told(name, context.options) for name in (ROWKIND, CHANGE_TYPE) if name in wanted.names)
        return StreamColumns(wanted, context.options, tells or shows_kinds(context))

    @property
    def table_columns(self) -> tuple[str, ...]:
        """Columns of the table that are needed."""
        return tuple(name for name in self.wanted.names if not is_told(name, self.options))

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow shape that Spark expects."""
        return pa.schema(
            [pa.field(part.name, arrow_type(part.dataType, part.name), part.nullable) for part in self.wanted.fields]
        )

    def shaped(self, rows: pa.RecordBatch, piece: Piece) -> pa.RecordBatch:
        """Rows of a piece, kind in front, as the DataFrame shows them."""
        if not self.keeps_retracts:
            came = pc.starts_with(rows.column(ROWKIND), "+")
            rows = rows if came.true_count == rows.num_rows else rows.filter(came)
        columns = [fitted(self._column(field.name, rows, piece), field) for field in self.arrow_schema]
        for field, column in zip(self.arrow_schema, columns, strict=True):
            if not field.nullable and column.null_count:
                raise InvalidData(
                    f"column `{field.name}` was NOT NULL when the stream began, and holds null in snapshot "
                    f"{piece.snapshot_id}",
                    hint="the column was dropped or may be null by now: make the DataFrame anew and start the query "
                    "again with its checkpoint",
                )
        return pa.RecordBatch.from_arrays(columns, schema=self.arrow_schema)

    def _column(self, name: str, rows: pa.RecordBatch, piece: Piece) -> pa.Array:
        if not is_told(name, self.options) or name == ROWKIND:
            return rows.column(name)
        if name == CHANGE_TYPE:
            return pa.array(_CHANGE_TYPES).take(pc.index_in(rows.column(ROWKIND), value_set=pa.array(TEXTS)))
        if name == COMMIT_VERSION:
            return pa.repeat(pa.scalar(piece.snapshot_id, pa.int64()), rows.num_rows)
        return pa.repeat(pa.scalar(piece.time_ms * 1000, pa.timestamp("us", tz="UTC")), rows.num_rows)


__all__ = [
    "CHANGE_TYPE",
    "COMMIT_TIMESTAMP",
    "COMMIT_VERSION",
    "ROWKIND",
    "StreamColumns",
    "check_fits",
    "fits",
    "shows_kinds",
    "stream_schema",
    "with_feed",
    "with_kinds",
]
