"""What the model of a table is made of: values and their order, records, columns, and the engines that fold records.

Kept apart from `model`, which is about commits. As there: no Arrow, no numpy, one row at a time.
"""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from lakebed.errors import InvalidSchema, NotFound
from lakebed.records import dataclass
from lakebed.types.logical import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, AtomicType, TypeRoot

Value = None | bool | int | float | Decimal | str | bytes
Row = dict[str, Value]
Change = tuple[str, Row]
"""A row kind (+I, -U, +U, -D) and a row."""

KINDS = ("+I", "-U", "+U", "-D")
RETRACTS = ("-U", "-D")


def order_of(value: Value) -> tuple[object, ...]:
    """A token that Python orders as keys are ordered; two values are the same key when their tokens are equal.

    Nulls come first, -0.0 before 0.0, NaN last and equal to itself. Python orders text by code points, which is the
    order of its UTF-8 bytes.
    """
    if value is None:
        return (0,)
    if isinstance(value, float):
        is_nan = math.isnan(value)
        return (1, is_nan, 0.0 if is_nan else value, 0.0 if is_nan else math.copysign(1.0, value))
    return (1, value)


# --- records and how they fold -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Record:
    """One row as it was written: cells by column id, each with the type its column had then.

    `number` counts arrivals: of two records the one with the greater number came later.
    """

    kind: str
    cells: Mapping[int, tuple[AtomicType, Value]]
    number: int

    @property
    def is_retract(self) -> bool:
        """Whether the record takes something away."""
        return self.kind in RETRACTS


class ModelEngine(ABC):
    """Folds the records of one key into one. One class for each merge engine."""

    @abstractmethod
    def merge(self, records: Sequence[Record], schema: ModelSchema) -> Record:
        """The key's record. `records` come oldest first and are two at least: a lone record is never touched.

        Values are taken as the schema has them. A record that retracts stands for a key that is not there.
        """


class Deduplicate(ModelEngine):
    """The newest record is the key's record, kind included."""

    def merge(self, records: Sequence[Record], schema: ModelSchema) -> Record:
        return records[-1]


@dataclass(frozen=True, slots=True)
class ModelOrder:
    """Which of a key's records is newer: user sequence columns (by id) first, then arrival, then adds over retracts."""

    sequence: tuple[int, ...] = ()
    descending: bool = False

    def oldest_first(self, records: Iterable[Record], cell: Callable[[Record, int], Value]) -> list[Record]:
        """The records in the order in which an engine takes them."""
        ordered = sorted(records, key=lambda record: (record.number, not record.is_retract))
        for column in reversed(self.sequence):
            # Nulls lose in either direction; equal values keep the order that they have.
            nulls = [record for record in ordered if cell(record, column) is None]
            others = [record for record in ordered if cell(record, column) is not None]
            others.sort(key=lambda record: order_of(cell(record, column)), reverse=self.descending)
            ordered = nulls + others
        return ordered


# --- columns -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelColumn:
    """A column; `id` outlives renames and is never given to another column. `default` replaces None when written."""

    id: int
    name: str
    type: AtomicType
    default: Value = None


@dataclass(frozen=True, slots=True)
class ModelSchema:
    """Columns in order."""

    columns: tuple[ModelColumn, ...]

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [column.name for column in self.columns]

    def column(self, name: str) -> ModelColumn:
        """The column of that name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise NotFound(f"the model has no column `{name}`", hint=f"its columns are {', '.join(self.names)}")

    def by_id(self, column_id: int) -> ModelColumn:
        """The column of that id."""
        return next(column for column in self.columns if column.id == column_id)

    def cell(self, record: Record, column_id: int) -> Value:
        """A record's value as the column's type in this schema; columns the record does not know are null."""
        if column_id not in record.cells:
            return None
        written_as, value = record.cells[column_id]
        return widened(value, written_as, self.by_id(column_id).type)

    def row(self, record: Record) -> Row:
        """The record as a row under this schema."""
        return {column.name: self.cell(record, column.id) for column in self.columns}


def ticks_per_second(data_type: AtomicType) -> int:
    """In which unit the ints of a timestamp column count."""
    precision = data_type.precision
    return 1 if precision == 0 else 1_000 if precision <= 3 else 1_000_000 if precision <= 6 else 1_000_000_000


def widened(value: Value, old: AtomicType, new: AtomicType) -> Value:
    """A value of a column whose type has been widened since. Other casts are not the model's business."""
    if value is None or replace(old, nullable=new.nullable) == new:
        return value
    if isinstance(value, int) and old.root in INTEGERS:
        if new.root in INTEGERS:
            return value
        if new.root in FLOATS:
            return as_float(float(value), new)
        if new.root is TypeRoot.DECIMAL:
            return Decimal(value)
    if isinstance(value, float) and new.root in FLOATS:
        return as_float(value, new)
    if isinstance(value, int) and old.root == new.root and old.root in TIMESTAMPS:
        return value * (ticks_per_second(new) // ticks_per_second(old))
    same_family = any({old.root, new.root} <= family for family in (STRINGS, BINARIES, {TypeRoot.DECIMAL}))
    if not same_family:
        raise InvalidSchema(f"the model does not cast {old} to {new}", hint="widen columns only")
    return value


def as_float(value: float, data_type: AtomicType) -> float:
    """A float in the precision of its column."""
    if data_type.root is TypeRoot.FLOAT:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    return value
