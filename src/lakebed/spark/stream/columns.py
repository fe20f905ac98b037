"""The columns of a streaming DataFrame: those of the table, what happened to each row, and which commit it came from.

Who does not ask what happened gets the rows that came, without those that went.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as st

from lakebed.changes.splits import ChangeSplit
from lakebed.changes.stream import StreamScan
from lakebed.definition.context import AUDIT_LOG, TableContext
from lakebed.errors import InvalidArgument, InvalidData, did_you_mean
from lakebed.options import READ_CHANGE_FEED, READ_CHANGELOG, Options
from lakebed.records import dataclass
from lakebed.schema.system_columns import ROW_KIND
from lakebed.schema.table_schema import TableSchema
from lakebed.spark.stream.batches import Piece
from lakebed.spark.types import arrow_type, spark_schema, spark_type
from lakebed.types.logical import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    same_ignoring_nullability,
)
from lakebed.types.row_kind import TEXTS

_ROWKIND = ROW_KIND.name
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
    if _ROWKIND in schema.names:
        return schema
    return st.StructType([st.StructField(_ROWKIND, st.StringType(), False), *schema.fields])


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
    return name == _ROWKIND or (name in _FEED and options[READ_CHANGE_FEED])


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
        tells = any(is_told(name, context.options) for name in (_ROWKIND, CHANGE_TYPE) if name in wanted.names)
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
            came = pc.starts_with(rows.column(_ROWKIND), "+")
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
        if not is_told(name, self.options) or name == _ROWKIND:
            return rows.column(name)
        if name == CHANGE_TYPE:
            return pa.array(_CHANGE_TYPES).take(pc.index_in(rows.column(_ROWKIND), value_set=pa.array(TEXTS)))
        if name == COMMIT_VERSION:
            return pa.repeat(pa.scalar(piece.snapshot_id, pa.int64()), rows.num_rows)
        return pa.repeat(pa.scalar(piece.time_ms * 1000, pa.timestamp("us", tz="UTC")), rows.num_rows)


# --- Rows of newer files for a stream that began before the table's columns changed -------------------------------
#
# Columns are matched by their ids, so added ones are left out, dropped ones are null and renamed ones go on. A column
# whose type changed is read as the newer type and must fit into the old one: a read under the old schema would cut
# values short, which is right for rows that are older than the change and wrong for those that are newer.


_ANEW = "make the DataFrame anew and start the query again with its checkpoint: it goes on with the columns of today"


class EvolvingScan:
    """Reads pieces of one table for one projection, whatever versions of the schema their files have."""

    def __init__(self, scan: StreamScan, columns: tuple[str, ...]) -> None:
        self._scan = scan
        self._columns = columns
        self._scans: dict[int, StreamScan] = {}

    def read(self, split: ChangeSplit) -> Iterator[pa.RecordBatch]:
        """Rows of a piece; columns that have changed since are of their newer types."""
        newest = max(file.schema_id for file in split.split.files)
        if newest <= self._scan.context.schema.id:
            return self._scan.read_split(split)
        if newest not in self._scans:
            self._scans[newest] = self._with_types_of(self._scan.context.schemas.get(newest))
        return self._scans[newest].read_split(split)

    def _with_types_of(self, newer: TableSchema) -> StreamScan:
        context = self._scan.context
        types = {field.id: field.type for field in newer.fields}
        fields = []
        for field in context.schema.fields:
            new = types.get(field.id, field.type)
            if isinstance(new, AtomicType) and isinstance(field.type, AtomicType):
                fields.append(replace(field, type=new))
                continue
            if not _has_same_leaves(field.type, new):
                raise InvalidData(
                    f"column `{field.name}` of table `{context.name}` was {field.type} when the stream began, and is "
                    f"{new} now",
                    hint=_ANEW,
                )
            fields.append(field)
        schema = replace(context.schema, fields=tuple(fields))
        return StreamScan(context.with_schema(schema, context.options), self._columns)


def _has_same_leaves(old: DataType, new: DataType) -> bool:
    """Whether no value inside is of another type: members may come and go."""
    match old, new:
        case RowType(), RowType():
            types = {member.id: member.type for member in new.fields}
            return all(_has_same_leaves(member.type, types.get(member.id, member.type)) for member in old.fields)
        case ArrayType(), ArrayType():
            return _has_same_leaves(old.element, new.element)
        case MultisetType(), MultisetType():
            return _has_same_leaves(old.element, new.element)
        case MapType(), MapType():
            return _has_same_leaves(old.key, new.key) and _has_same_leaves(old.value, new.value)
    return same_ignoring_nullability(old, new)


def fitted(column: pa.Array, field: pa.Field) -> pa.Array:
    """A column in the type that Spark expects. Spark's times are coarser; any other difference must lose nothing."""
    if column.type == field.type:
        return column
    is_coarser = any(kind(column.type) and kind(field.type) for kind in (pa.types.is_timestamp, pa.types.is_time))
    if is_coarser or pa.types.is_nested(field.type):
        return column.cast(field.type, safe=False)
    try:
        cast = column.cast(field.type)
        is_exact = _is_same(cast.cast(column.type), column)
    except pa.ArrowException:
        is_exact = False
    if not is_exact:
        raise InvalidData(
            f"column `{field.name}` was {field.type} when the stream began, and holds {column.type} values now that do "
            "not fit",
            hint=_ANEW,
        )
    return cast


def _is_same(back: pa.Array, column: pa.Array) -> bool:
    same = pc.equal(back, column)
    if pa.types.is_floating(column.type):
        same = pc.or_(same, pc.is_nan(column))
    return bool(pc.all(same, min_count=0).as_py())


__all__ = [
    "CHANGE_TYPE",
    "COMMIT_TIMESTAMP",
    "COMMIT_VERSION",
    "EvolvingScan",
    "StreamColumns",
    "check_fits",
    "fits",
    "fitted",
    "shows_kinds",
    "stream_schema",
    "with_feed",
    "with_kinds",
]
