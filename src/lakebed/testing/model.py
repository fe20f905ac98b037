"""What a table means, row by row: the oracle that the vectorised engine is tested against.

A `ModelTable` takes the same operations as a real table and keeps every record it was ever given in a plain list.
Reading looks at all records of a key, puts them in order and folds them. No Arrow, no numpy, no files, no buckets, no
cleverness: when engine and model disagree, the model is the one that can be checked by reading it.

Values are None, bool, int, float, Decimal, str and bytes. Days (DATE), milliseconds (TIME) and ticks of the column's
Arrow unit (TIMESTAMP, TIMESTAMP_LTZ) are ints, so that nanoseconds survive. `model_arrow` converts from and to Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

from lakebed.errors import InvalidData, NotFound
from lakebed.records import dataclass
from lakebed.testing.model_records import (
    KINDS,
    RETRACTS,
    Change,
    Deduplicate,
    ModelColumn,
    ModelEngine,
    ModelOrder,
    ModelSchema,
    Record,
    Row,
    Value,
    order_of,
    ticks_per_second,
    widened,
)
from lakebed.types.logical import AtomicType

Cells = dict[int, tuple[AtomicType, Value]]
"""A row on its way in: by column id, each cell with its type."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A snapshot: all live records, the ones it brought, and the schema readers of it see."""

    schema: ModelSchema
    live: tuple[Record, ...]
    brought: tuple[Record, ...]
    is_overwrite: bool
    hidden: frozenset[int]
    """Numbers of records that readers of it do not see yet."""


@dataclass
class ModelTable:
    """A table as a list of commits. Snapshot n is the n-th commit, counted from 1.

    Keys, partitions and options are given as for a real table; they are kept by column id, so they follow renames.
    Without a primary key every record is a key of its own.
    """

    types: Mapping[str, AtomicType]
    primary_key: Sequence[str] = ()
    partition_by: Sequence[str] = ()
    engine: ModelEngine = field(default_factory=Deduplicate)
    sequence_fields: Sequence[str] = ()
    descending: bool = False
    ignore_delete: bool = False
    ignore_update_before: bool = False
    rowkind_field: str | None = None
    dynamic_overwrite: bool = True
    counted: Sequence[str] = ()
    """Columns in which 1 is written for every value and 0 for null."""
    hides_new: bool = False
    """Whether records show only after `compact`, as in first-row tables; those of an overwrite show at once."""

    def __post_init__(self) -> None:
        columns = [ModelColumn(i, name, data_type) for i, (name, data_type) in enumerate(self.types.items())]
        self.schema = ModelSchema(tuple(columns))
        self.commits: list[Commit] = []
        self._next_id = len(columns)
        self._next_number = 0
        self._key = self._ids(self.primary_key)
        self._partition = self._ids(self.partition_by)
        self.order = ModelOrder(self._ids(self.sequence_fields), self.descending)
        self.counted_ids = self._ids(self.counted)
        self._hidden: frozenset[int] = frozenset()
        self._rowkind = None if self.rowkind_field is None else self.schema.column(self.rowkind_field).id

    # --- reading ---

    @property
    def latest(self) -> int:
        """Id of the newest snapshot; 0 for none."""
        return len(self.commits)

    def rows(
        self,
        at: int | None = None,
        where: Callable[[Row], bool | None] | None = None,
        columns: Sequence[str] | None = None,
    ) -> list[Row]:
        """Visible rows in key order: now, or as of a snapshot under the schema it had."""
        schema = self.schema if at is None else self._commit(at).schema
        live = self._live(self.latest if at is None else at)
        hidden = self._hidden if at is None else self._commit(at).hidden
        live = tuple(record for record in live if record.number not in hidden)
        visible = [schema.row(record) for record in self.merged(live, schema) if not record.is_retract]
        chosen = [row for row in visible if where is None or where(row) is True]
        return [{name: row[name] for name in columns or schema.names} for row in chosen]

    def changes(self, since: int = 0, until: int | None = None) -> list[list[Change]]:
        """For each commit after `since` what it did to which key, kinds first; overwrites tell nothing.

        A real writer that fills its buffer several times before it commits tells a key's story in several steps;
        `folded` brings both to the same form.
        """
        commits = self.commits[since : self.latest if until is None else until]
        return [
            [] if commit.is_overwrite else self._told(self.merged(commit.brought, self.schema)) for commit in commits
        ]

    def folded(self, changes: Sequence[Change]) -> list[Change]:
        """The changes of one commit, in order of arrival, as one change per key. Names and types are today's."""
        records = [
            Record(kind, {column.id: (column.type, row[column.name]) for column in self.schema.columns}, number)
            for number, (kind, row) in enumerate(changes)
        ]
        return self._told(self.merged(records, self.schema))

    def merged(self, records: Iterable[Record], schema: ModelSchema) -> list[Record]:
        """One record per key, in key order."""
        by_key: dict[tuple[object, ...], list[Record]] = {}
        for record in records:
            key = self.key_of(record.cells) if self._key else (record.number,)
            by_key.setdefault(key, []).append(record)
        return [self._folded(by_key[key], schema) for key in sorted(by_key)]

    def _folded(self, records: list[Record], schema: ModelSchema) -> Record:
        if len(records) == 1:
            return records[0]
        return self.engine.merge(self.order.oldest_first(records, schema.cell), schema)

    def _told(self, records: Iterable[Record]) -> list[Change]:
        return [(record.kind, self.schema.row(record)) for record in records]

    # --- writing ---

    def write(self, rows: Sequence[Row], kinds: Sequence[str] | None = None) -> int | None:
        """Writes rows as one commit; its snapshot id, or None when nothing is left to write."""
        writer = self.writer()
        writer.write(rows, kinds)
        return writer.commit()

    def overwrite(
        self, rows: Sequence[Row], spec: Mapping[str, Value] | None = None, kinds: Sequence[str] | None = None
    ) -> int | None:
        """Replaces the partitions that agree with the spec ({}: all), or without one those of the new rows.

        Without partitions, or without `dynamic_overwrite`, no spec means the whole table too.
        """
        writer = self.writer(overwrite=True if spec is None else spec)
        writer.write(rows, kinds)
        return writer.commit()

    def writer(self, overwrite: bool | Mapping[str, Value] | None = None) -> ModelWriter:
        """One commit in the making, under the schema of now."""
        spec: Mapping[str, Value] | None = None
        if isinstance(overwrite, Mapping):
            spec = overwrite
        elif overwrite and not (self._partition and self.dynamic_overwrite):
            spec = {}
        replaced = None if spec is None else {self.schema.column(name).id: order_of(v) for name, v in spec.items()}
        return ModelWriter(self, self.schema, bool(overwrite) or spec is not None, replaced)

    def accept(self, schema: ModelSchema, row: Row, kind: str) -> tuple[str, Cells] | None:
        """A row as kind and cells: defaults, then the row kind column, then what the options drop (None)."""
        cells = {}
        for column in schema.columns:
            value = row[column.name]
            if value is None and not column.type.nullable:
                raise InvalidData(f"column `{column.name}` is NOT NULL", hint="give it a value")
            value = column.default if value is None else value
            cells[column.id] = (column.type, int(value is not None) if column.id in self.counted_ids else value)
        if self._rowkind is not None:
            kind = str(cells[self._rowkind][1])
        if kind not in KINDS:
            raise InvalidData(f"{kind!r} is no row kind", hint=f"use one of {', '.join(KINDS)}")
        if (self.ignore_delete and kind in RETRACTS) or (self.ignore_update_before and kind == "-U"):
            return None
        return kind, cells

    def publish(self, accepted: Sequence[tuple[str, Cells]], writer: ModelWriter) -> int | None:
        """Adds a commit on top of whatever is there now: of two writers, the one that commits later wins."""
        numbered = enumerate(accepted, self._next_number)
        brought = tuple(Record(kind, cells, number) for number, (kind, cells) in numbered)
        before = self._live(self.latest)
        kept = before
        if writer.is_overwrite:
            gone = self._replaced(before, brought, writer.spec)
            kept = tuple(record for record in before if self._partition_of(record) not in gone)
        if not brought and len(kept) == len(before):
            return None
        self._next_number += len(brought)
        if self.hides_new and not writer.is_overwrite:
            self._hidden |= {record.number for record in brought}
        self.commits.append(Commit(self.schema, kept + brought, brought, writer.is_overwrite, self._hidden))
        return self.latest

    def forget(self, snapshot: int | None) -> None:
        """Takes the newest commit back, for tables that saw no need to make it."""
        if snapshot is not None:
            assert snapshot == self.latest
            self.commits.pop()

    def compact(self) -> None:
        """Shows what is there; nothing else changes, and earlier snapshots stay as they are."""
        self._hidden = frozenset()

    def agrees(self, cells: Mapping[int, tuple[AtomicType, Value]], spec: Mapping[int, object]) -> bool:
        """Whether a record lies in a partition that a spec names."""
        return all(order_of(cells[column][1]) == wanted for column, wanted in spec.items())

    def _replaced(
        self, before: Sequence[Record], brought: Sequence[Record], spec: Mapping[int, object] | None
    ) -> set[tuple[object, ...]]:
        if spec is None:
            return {self._partition_of(record) for record in brought}
        return {self._partition_of(record) for record in before if self.agrees(record.cells, spec)}

    # --- altering ---

    def add_column(self, name: str, data_type: AtomicType, default: Value = None) -> None:
        """A new last column: null in old rows, whatever the default."""
        column = ModelColumn(self._next_id, name, data_type, default)
        self._next_id += 1
        self.schema = ModelSchema((*self.schema.columns, column))

    def drop_column(self, name: str) -> None:
        """Takes a column away; a later one of the same name does not see its values."""
        gone = self.schema.column(name)
        self.schema = ModelSchema(tuple(column for column in self.schema.columns if column is not gone))

    def rename_column(self, name: str, new_name: str) -> None:
        """Calls a column otherwise."""
        self._replace_column(name, lambda column: replace(column, name=new_name))

    def widen_column(self, name: str, data_type: AtomicType) -> None:
        """Gives a column a wider type."""
        self._replace_column(name, lambda column: replace(column, type=data_type))

    def _replace_column(self, name: str, change: Callable[[ModelColumn], ModelColumn]) -> None:
        old = self.schema.column(name)
        self.schema = ModelSchema(tuple(change(column) if column is old else column for column in self.schema.columns))

    # --- inside ---

    def _ids(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(self.schema.column(name).id for name in names)

    def _commit(self, snapshot: int) -> Commit:
        if not 1 <= snapshot <= self.latest:
            raise NotFound(f"the model has no snapshot {snapshot}", hint=f"its snapshots are 1 to {self.latest}")
        return self.commits[snapshot - 1]

    def history(self, cells: Mapping[int, tuple[AtomicType, Value]]) -> list[Record]:
        """All live records of the key that these cells have, in order of arrival."""
        key = self.key_of(cells)
        return [record for record in self._live(self.latest) if self.key_of(record.cells) == key]

    def _live(self, snapshot: int) -> tuple[Record, ...]:
        return self._commit(snapshot).live if snapshot else ()

    def key_of(self, cells: Mapping[int, tuple[AtomicType, Value]]) -> tuple[object, ...]:
        """Which key a record belongs to."""
        return tuple(order_of(cells[column][1]) for column in self._key)

    def _partition_of(self, record: Record) -> tuple[object, ...]:
        return tuple(order_of(record.cells[column][1]) for column in self._partition)


@dataclass
class ModelWriter:
    """Rows on their way into a model table. `spec` (of an overwrite): tokens of partition values by column id."""

    table: ModelTable
    schema: ModelSchema
    is_overwrite: bool
    spec: Mapping[int, object] | None

    def __post_init__(self) -> None:
        self.accepted: list[tuple[str, Cells]] = []

    def write(self, rows: Sequence[Row], kinds: Sequence[str] | None = None) -> None:
        """Takes rows, all of them or none."""
        given = kinds if kinds is not None else ["+I"] * len(rows)
        accepted = [self.table.accept(self.schema, row, kind) for row, kind in zip(rows, given, strict=True)]
        kept = [item for item in accepted if item is not None]
        if self.spec and not all(self.table.agrees(cells, self.spec) for _, cells in kept):
            raise InvalidData("a row lies outside of the partitions to overwrite", hint="leave it out")
        self.accepted += kept

    def commit(self) -> int | None:
        """Publishes the rows; the snapshot id, or None when nothing changes."""
        return self.table.publish(self.accepted, self)


__all__ = [
    "KINDS",
    "RETRACTS",
    "Change",
    "Commit",
    "Deduplicate",
    "ModelColumn",
    "ModelEngine",
    "ModelOrder",
    "ModelSchema",
    "ModelTable",
    "ModelWriter",
    "Record",
    "Row",
    "Value",
    "order_of",
    "ticks_per_second",
    "widened",
]
