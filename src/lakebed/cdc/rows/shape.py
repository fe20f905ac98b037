"""From the payload of a chunk to rows of the lake's table: columns in their places, types converted, columns added.

Plain data, made once for each description in a batch, and sent to Spark's workers as it is. Rows stay in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import OP_TS, UNCHANGED, Description, SourceName, payload_columns
from lakebed.cdc.rows.computed import ComputedColumn
from lakebed.cdc.rows.json_values import from_json, is_in_json
from lakebed.cdc.rows.metadata import MetadataColumn
from lakebed.cdc.rows.past_columns import PastColumn
from lakebed.errors import InvalidData
from lakebed.records import dataclass
from lakebed.schema.casts import cast_array, default_scalar, filled, is_castable
from lakebed.types.arrow import to_arrow_schema, to_arrow_type
from lakebed.types.logical import AtomicType, DataField, DataType, same_ignoring_nullability
from lakebed.types.row_kind import RowKind, is_retract

Kinds = npt.NDArray[np.int8]
Marks = Mapping[str, npt.NDArray[np.bool_]]
Places = npt.NDArray[np.int64]

_AS_DELETE_INSERT: Final = np.array([RowKind.INSERT, RowKind.DELETE, RowKind.INSERT, RowKind.DELETE], np.int8)


@dataclass(frozen=True, slots=True)
class ShapedRows:
    """Rows of the table with their kinds.

    `unchanged` marks values that the source did not send, by column. `state_of` is the row whose key had them before:
    the row itself, or the one in front of it if an update has changed the key.
    """

    rows: pa.RecordBatch
    kinds: Kinds
    unchanged: Marks
    state_of: Places
    filled: Marks = field(default_factory=dict)
    """Values of columns that the source did not have yet, marked where the past is kept: only a row that was still
    there when the column came has got the value."""

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.rows.num_rows)


@dataclass(frozen=True, slots=True)
class Cut:
    """A TRUNCATE in its place among the rows, with what the source tells of it."""

    source: SourceName
    facts: pa.RecordBatch
    filled: frozenset[str] = frozenset()
    """Columns that came later: see `ShapedRows.filled`."""

    @classmethod
    def of(cls, shape: RowShape, payload: pa.RecordBatch | None) -> Cut:
        """From the payload of its chunk."""
        source = shape.source
        if payload is None or not payload.num_rows:
            raise InvalidData(
                f"{source} was emptied, and the source does not tell when, which the past of its rows needs",
                hint="follow the table without keeping its past",
            )
        return cls(source, payload.slice(0, 1), shape.filled_names)

    @property
    def given(self) -> dict[str, pa.Array]:
        """What is told of it, by name."""
        return payload_columns(self.facts)

    @property
    def is_copy(self) -> bool:
        """Whether it stands for the beginning of a new copy, which is no change of the source."""
        return not self.facts.column(OP_TS)[0].value


@dataclass(frozen=True)
class RowShape:
    """How rows of one source table under one description become rows of the lake's table.

    `columns` are the source's columns behind the table's, `fills` the values of columns that came later than the rows:
    both by field id. `lenient`: values that a column can not hold become NULL.
    """

    source: SourceName
    description: Description
    table: str
    fields: tuple[DataField, ...]
    key: tuple[str, ...]
    columns: Mapping[int, str]
    fills: Mapping[int, str] = field(default_factory=dict)
    computed: Mapping[int, ComputedColumn] = field(default_factory=dict)
    metadata: Mapping[int, MetadataColumn | PastColumn] = field(default_factory=dict)
    lenient: bool = False
    lower_case: bool = False
    keeps_updates: bool = False
    """Whether an update is written as `-U`, `+U` instead of `-D`, `+I`."""
    needs_old_rows: bool = False
    """Whether the table's key has columns that are no key of the source: an update must come with its old row."""
    old_rows: bool | None = None
    """What becomes of old rows of updates where the past is kept: with True each update has one, with False none has,
    unless its key is another. None where they only make room for the new row."""

    def shaped(self, payload: pa.RecordBatch) -> ShapedRows:
        """The rows of a chunk."""
        kinds = np.asarray(payload.column(0).to_numpy(zero_copy_only=False)).astype(np.int8)
        given = payload_columns(payload)
        types = {column.name: column.type for column in self.description.columns}
        arrays = [self._column(each, given, types, payload) for each in self.fields]
        rows = pa.RecordBatch.from_arrays(arrays, schema=_nullable(to_arrow_schema(self.fields)))
        unchanged = {
            each.name: given[mark].fill_null(False).to_numpy(zero_copy_only=False)
            for each in self.fields
            if (mark := UNCHANGED + self._origin(each, types)) in given and mark not in types
        }
        self._check_old_rows(kinds)
        self._check_keys(rows, kinds)
        shaped = ShapedRows(
            rows,
            kinds,
            {name: mark for name, mark in unchanged.items() if mark.any()},
            state_rows(rows, kinds, self.key),
        )
        if self.old_rows is None:
            return shaped if self.keeps_updates else replace(shaped, kinds=_AS_DELETE_INSERT[kinds])
        marks = {each.name: np.ones(shaped.count, np.bool_) for each in self.fields if each.name in self.filled_names}
        shaped = replace(shaped, filled=marks)
        kept = (*self.key, *(column.name for column in self.metadata.values() if isinstance(column, PastColumn)))
        return _with_halves(shaped, kept) if self.old_rows else _without_halves(shaped)

    @property
    def filled_names(self) -> frozenset[str]:
        """Columns of the table that came later than the rows, and have a value for them."""
        return frozenset(each.name for each in self.fields if each.id in self.fills and each.id not in self.columns)

    def _origin(self, wanted: DataField, types: Mapping[str, DataType]) -> str:
        """The source's column behind one of the table, or behind what that is computed from; empty without one."""
        computed = self.computed.get(wanted.id)
        if computed is None:
            return self.columns.get(wanted.id, "")
        return computed.argument_in(tuple(types), lower_case=self.lower_case) or ""

    def _column(
        self, wanted: DataField, given: Mapping[str, pa.Array], types: Mapping[str, DataType], payload: pa.RecordBatch
    ) -> pa.Array:
        count, arrow = payload.num_rows, to_arrow_type(wanted.type)
        if wanted.id in self.metadata:
            return self.metadata[wanted.id].evaluate(self.source, payload.column(1), given)
        if wanted.id in self.computed:
            expected = {name: _typed(given[name], types[name]) for name in types if name in given}
            values = self.computed[wanted.id].evaluate(expected, types, count, wanted.type, lower_case=self.lower_case)
            return values if values.type == arrow else values.cast(arrow)
        name = self.columns.get(wanted.id)
        if name is None or name not in given:
            values = pa.nulls(count, arrow)
            text = self.fills.get(wanted.id)
            return values if text is None else filled(values, fill_value(wanted, text))
        values = _typed(given[name], types[name])
        try:
            if not self.description.typed and is_in_json(wanted.type, base64=self.description.base64):
                return from_json(values, wanted.type)
            return converted(values, types[name], wanted.type, lenient=self._bends(wanted))
        except InvalidData as error:
            raise InvalidData(
                f"column `{name}` of {self.source}, for column `{wanted.name}` of table `{self.table}`: "
                f"{error.message}",
                hint=error.hint,
            ) from error

    def _bends(self, wanted: DataField) -> bool:
        return self.lenient and wanted.name not in self.key

    def _check_old_rows(self, kinds: Kinds) -> None:
        """An update without its old row would leave that in another partition, or under another key."""
        if not self.needs_old_rows:
            return
        before = np.concatenate([[RowKind.INSERT], kinds[:-1]])
        if np.any((kinds == RowKind.UPDATE_AFTER) & (before != RowKind.UPDATE_BEFORE)):
            raise self._without_old_row(", ".join(self.key))

    def _check_keys(self, rows: pa.RecordBatch, kinds: Kinds) -> None:
        for name in self.key:
            column = rows.column(name)
            if column.null_count and np.any(is_retract(kinds) & ~column.is_valid().to_numpy(zero_copy_only=False)):
                raise self._without_old_row(name)

    def _without_old_row(self, key: str) -> InvalidData:
        return InvalidData(
            f"{self.source} sends changes without the old row, which table `{self.table}` needs for its key ({key})",
            hint="have the source send old rows in full (PostgreSQL: ALTER TABLE ... REPLICA IDENTITY FULL), or choose "
            "a primary key that the source has too",
        )


def state_rows(rows: pa.RecordBatch, kinds: Kinds, key: tuple[str, ...]) -> Places:
    """For each row the row whose key had its values before: the old row in front of it, where an update changed it.

    An update that changes the key is `-U`, `+U` or, where the source does not tell old rows, `-D`, `+I`. A `+U` alone
    changes no key. An insert that merely follows a delete is taken for such a pair too, but has all its values.
    """
    places = np.arange(len(kinds), dtype=np.int64)
    if len(kinds) < 2:
        return places
    follows = np.zeros(len(kinds), np.bool_)
    before, after = kinds[:-1], kinds[1:]
    follows[1:] = ((before == RowKind.UPDATE_BEFORE) & (after == RowKind.UPDATE_AFTER)) | (
        (before == RowKind.DELETE) & (after == RowKind.INSERT)
    )
    if not follows.any():
        return places
    differs = np.zeros(len(kinds), np.bool_)
    for name in key:
        column = rows.column(name)
        differs[1:] |= pc.fill_null(pc.not_equal(column[:-1], column[1:]), True).to_numpy(zero_copy_only=False)
    return places - (follows & differs)


def converted(values: pa.Array, source: DataType, target: DataType, *, lenient: bool = False) -> pa.Array:
    """Values of a source's column as values of the lake's. With `lenient`, those that do not fit become NULL."""
    if same_ignoring_nullability(source, target):
        return values
    arrow = to_arrow_type(target)
    if isinstance(source, AtomicType) and isinstance(target, AtomicType) and is_castable(source, target, explicit=True):
        return _cast_leniently(values, source, target) if lenient else cast_array(values, source, target)
    try:
        if is_castable(source, target, explicit=True):
            return cast_array(values, source, target)
        return values.cast(arrow)
    except (pa.ArrowException, InvalidData) as error:
        if lenient:
            return pa.nulls(len(values), arrow)
        raise InvalidData(
            f"{source} can not be written as {target}", hint="set `incompatible` to `ignore` or `string`"
        ) from error


def _cast_leniently(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Halves the values until those that fit are apart from those that do not."""
    try:
        return cast_array(values, source, target)
    except InvalidData:
        if len(values) == 1:
            return pa.nulls(1, to_arrow_type(target))
        half = len(values) // 2
        return pa.concat_arrays(
            [_cast_leniently(part, source, target) for part in (values.slice(0, half), values.slice(half))]
        )


def fill_value(wanted: DataField, text: str) -> pa.Scalar:
    """The value of a text as one of the column."""
    return default_scalar(DataField(wanted.id, wanted.name, wanted.type, default_value=text))


def _typed(values: pa.Array, data_type: DataType) -> pa.Array:
    arrow = to_arrow_type(data_type)
    return values if values.type == arrow else values.cast(arrow)


def _nullable(schema: pa.Schema) -> pa.Schema:
    """Retracts may come without values; whoever writes the rows checks the others."""
    return pa.schema([part.with_nullable(True).remove_metadata() for part in schema])


def concatenated(pieces: list[ShapedRows]) -> ShapedRows:
    """All rows one after the other."""
    if len(pieces) == 1:
        return pieces[0]
    starts = np.cumsum([0, *(piece.count for piece in pieces[:-1])])
    marks = _marks_together(pieces, [piece.unchanged for piece in pieces])
    filled = _marks_together(pieces, [piece.filled for piece in pieces])
    table = pa.Table.from_batches([piece.rows for piece in pieces]).combine_chunks()
    whole: Any = table.to_batches()[0] if table.num_rows else pieces[0].rows
    return ShapedRows(
        whole,
        np.concatenate([piece.kinds for piece in pieces]),
        marks,
        np.concatenate([piece.state_of + start for piece, start in zip(pieces, starts, strict=True)]),
        filled,
    )


def _marks_together(pieces: Sequence[ShapedRows], marks: Sequence[Marks]) -> Marks:
    names = sorted({name for some in marks for name in some})
    none = [np.zeros(piece.count, np.bool_) for piece in pieces]
    return {
        name: np.concatenate([some.get(name, empty) for some, empty in zip(marks, none, strict=True)]) for name in names
    }


def _without_halves(shaped: ShapedRows) -> ShapedRows:
    """The rows without old ones of updates that leave the key as it is: what is retracted then is really gone."""
    place = np.arange(shaped.count, dtype=np.int64)
    moved = np.zeros(shaped.count, np.bool_)
    moved[shaped.state_of[shaped.state_of != place]] = True
    keep = (shaped.kinds != RowKind.UPDATE_BEFORE) | moved
    return filtered(shaped, keep)


def _with_halves(shaped: ShapedRows, kept: Sequence[str]) -> ShapedRows:
    """The rows with an old one, which has its key alone, in front of each update that came without it.

    An update of the key is a delete and an insert, whatever the source calls it.
    """
    moved = np.flatnonzero(shaped.state_of != np.arange(shaped.count))
    if len(moved):
        kinds = shaped.kinds.copy()
        kinds[moved], kinds[shaped.state_of[moved]] = RowKind.INSERT, RowKind.DELETE
        shaped = replace(shaped, kinds=kinds)
    is_after = shaped.kinds == RowKind.UPDATE_AFTER
    has_before = np.zeros(shaped.count, np.bool_)
    has_before[1:] = shaped.kinds[:-1] == RowKind.UPDATE_BEFORE
    alone = is_after & ~has_before
    if not alone.any():
        return shaped
    times = 1 + alone.astype(np.int64)
    places = np.repeat(np.arange(shaped.count, dtype=np.int64), times)
    is_first = np.zeros(len(places), np.bool_)
    ends = np.cumsum(times) - 1
    is_first[ends[alone] - 1] = True
    rows = shaped.rows.take(pa.array(places))
    mask = pa.array(is_first)
    columns = {
        name: pc.if_else(mask, pa.scalar(None, column.type), column)
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
        if name not in kept
    }
    kinds = shaped.kinds[places]
    kinds[is_first] = RowKind.UPDATE_BEFORE
    marks = {name: mark[places] & ~is_first for name, mark in shaped.unchanged.items()}
    filled = {name: mark[places] for name, mark in shaped.filled.items()}
    return ShapedRows(with_columns(rows, columns), kinds, marks, ends[shaped.state_of][places], filled)


def filtered(shaped: ShapedRows, keep: npt.NDArray[np.bool_]) -> ShapedRows:
    """Some of the rows, in their order. Where the row before an update goes, the update stands for itself."""
    if keep.all():
        return shaped
    now = np.cumsum(keep) - 1
    state = np.where(keep[shaped.state_of], shaped.state_of, np.arange(shaped.count))
    marks = {name: mark[keep] for name, mark in shaped.unchanged.items() if mark[keep].any()}
    filled = {name: mark[keep] for name, mark in shaped.filled.items()}
    return ShapedRows(shaped.rows.filter(pa.array(keep)), shaped.kinds[keep], marks, now[state[keep]], filled)


def unfilled(shaped: ShapedRows, where: npt.NDArray[np.bool_]) -> ShapedRows:
    """The rows without values, at those places, that they had no column for."""
    columns = {}
    for name, mark in shaped.filled.items():
        if (mark & where).any():
            column = shaped.rows.column(name)
            columns[name] = pc.if_else(pa.array(mark & where), pa.scalar(None, column.type), column)
    return replace(shaped, rows=with_columns(shaped.rows, columns)) if columns else shaped


def with_columns(rows: pa.RecordBatch, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """The rows with other values in some columns."""
    arrays = [columns.get(name, column) for name, column in zip(rows.schema.names, rows.columns, strict=True)]
    arrays = [pa.concat_arrays(each.chunks) if isinstance(each, pa.ChunkedArray) else each for each in arrays]
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)


__all__ = [
    "Cut",
    "Kinds",
    "RowShape",
    "ShapedRows",
    "concatenated",
    "converted",
    "fill_value",
    "filtered",
    "state_rows",
    "unfilled",
    "with_columns",
]
