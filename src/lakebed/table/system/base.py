"""What a system table is: columns of fixed types over things the metadata knows of, such as snapshots or files.

A definition says where its rows come from and how each column is made of them. Reading makes the columns that a filter
needs first and the others for the rows that are left, so a question about few rows or columns costs little. Nothing
here knows a particular system table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import pyarrow as pa

from lakebed.definition.context import TableContext
from lakebed.definition.moments import resolve_snapshot
from lakebed.errors import NotFound, did_you_mean
from lakebed.metadata.entries import live_files
from lakebed.metadata.index_manifest import IndexEntry
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.records import dataclass
from lakebed.schema.table_schema import TableSchema
from lakebed.types import predicate as predicates
from lakebed.types.logical import DataField, parse_type, renumbered
from lakebed.types.predicate import Predicate
from lakebed.types.predicate_evaluate import evaluate

Row = TypeVar("Row")
Source = TypeVar("Source")


@dataclass(frozen=True)
class TableState:
    """A table at one moment: what its system tables are made from."""

    context: TableContext
    pinned: Snapshot | None = None

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that the handle is pinned to, its options name, or else the latest; None without any."""
        return self.pinned or resolve_snapshot(self.context.stores, self.context.options, self.context.name)

    @property
    def latest_schema(self) -> TableSchema:
        """The table's schema of now, wherever the handle looks from."""
        return self.context.schemas.latest() or self.context.schema

    @cached_property
    def files(self) -> list[ManifestEntry]:
        """All files of the snapshot, waiting ones included, by partition and bucket."""
        entries = live_files(self.context.stores, self.snapshot)
        return sorted(entries, key=lambda entry: (self.context.partition_directory(entry.partition), entry.bucket))

    @cached_property
    def index_files(self) -> list[IndexEntry]:
        """All index files of the snapshot."""
        if self.snapshot is None or self.snapshot.index_manifest is None:
            return []
        return self.context.stores.index_manifests.read(self.snapshot.index_manifest)


@dataclass(frozen=True)
class Column(Generic[Source, Row]):
    """One column: its name, its type as text, and its values for some of the rows of a source."""

    name: str
    type: str
    values: Callable[[Source, Sequence[Row]], Sequence[object]]


def each(name: str, data_type: str, value: Callable[[Any], object]) -> Column[Any, Any]:
    """A column whose value needs nothing but its row."""
    return Column(name, data_type, lambda _, rows: [value(row) for row in rows])


@dataclass(frozen=True)
class SystemTable(Generic[Source, Row]):
    """The definition of one system table."""

    name: str
    rows: Callable[[Source], Iterable[Row]]
    columns: tuple[Column[Source, Row], ...]

    @cached_property
    def schema(self) -> TableSchema:
        """The columns as a table's schema."""
        numbers = iter(range(1 << 20))
        fields = []
        for column in self.columns:
            number = next(numbers)
            fields.append(DataField(number, column.name, renumbered(parse_type(column.type), lambda: next(numbers))))
        return TableSchema(0, tuple(fields), next(numbers) - 1, (), (), {}, None, 0)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns as Arrow fields."""
        return self.schema.arrow_schema

    def read(self, source: Source, names: Sequence[str] | None, predicate: Predicate | None) -> pa.Table:
        """These columns (all) of the rows that match."""
        schema = self._projected(self.arrow_schema.names if names is None else names)
        rows = list(self.rows(source))
        if predicate is not None:
            needed = self._projected(sorted(predicates.columns(predicate)))
            mask = evaluate(predicate, self._batch(source, rows, needed))
            rows = [row for row, keep in zip(rows, mask.to_pylist(), strict=True) if keep]
        return pa.Table.from_batches([self._batch(source, rows, schema)])

    def _projected(self, names: Sequence[str]) -> pa.Schema:
        for name in names:
            if name not in self.arrow_schema.names:
                raise NotFound(
                    f"system table `{self.name}` has no column `{name}`",
                    hint=did_you_mean(name, self.arrow_schema.names),
                )
        return pa.schema([self.arrow_schema.field(name) for name in names])

    def _batch(self, source: Source, rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
        by_name = {column.name: column for column in self.columns}
        arrays = [pa.array(by_name[field.name].values(source, rows), field.type) for field in schema]
        # A batch without columns still has rows to filter: a struct array keeps their number.
        counted = pa.StructArray.from_arrays(arrays, fields=list(schema)) if arrays else pa.array([{}] * len(rows))
        return pa.RecordBatch.from_struct_array(counted)


__all__ = ["Column", "SystemTable", "TableState", "each"]
