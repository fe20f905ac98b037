"""Tables as DuckDB reads them: files that hold what the table shows by DuckDB itself, the rest through our merge.

All parts belong to one plan of one snapshot. Columns have the types that Spark would give them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa

from lakebed.embedded.overlay import NewerRows
from lakebed.expressions import kinds
from lakebed.fileio.local import LocalFileIO
from lakebed.metadata.data_file import DataFile
from lakebed.read.as_stored import is_as_stored, key_to_compare, overlaid, shows_what_is_stored
from lakebed.read.plan import ScanPlan
from lakebed.read.reader import SplitReader, projected_fields
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.types import predicate as predicates
from lakebed.types.logical import ArrayType, AtomicType, DataField, DataType, MapType, RowType, TypeRoot
from lakebed.types.predicate import Predicate, conjunction
from lakebed.types.predicate_evaluate import evaluate
from lakebed.types.transfer import to_transfer, transfer_schema

_SMALL_BYTES = 1 << 20
_SMALL_ROWS = 50_000
"""What is read at once: up to so many bytes of files, and rows in them."""


_STREAMED_BYTES = 64 << 20
"""Rows of files up to so many bytes are handed over as they are planned: what DuckDB would push down saves less than it
costs to load what takes it."""


class Connection(Protocol):
    """What is used of a connection of DuckDB's."""

    def register(self, name: str, rows: Any) -> Any:
        """Gives rows a name."""
        ...

    def execute(self, text: str) -> Any:
        """Runs a statement."""
        ...


@dataclass(frozen=True)
class TableParts:
    """A planned read as parts for DuckDB: paths of files, and rows of ours."""

    fields: tuple[DataField, ...]
    paths: tuple[str, ...]
    merged: tuple[MergedRows, ...]
    old_paths: tuple[str, ...] = ()
    """Files whose rows are shown unless `newer` has others of the same keys."""
    newer: NewerRows | None = None
    is_small: bool = False
    """Whether the rows are so few that reading them at once is quicker than telling DuckDB how."""

    def define(self, connection: Connection, view: str) -> None:
        """Makes a view of that name which shows the rows."""
        if self.is_small:
            connection.register(view, pa.Table.from_batches(*self._rows()))
            return
        selects = []
        if self.paths:
            selects.append(_stored(self.paths, self.fields))
        chosen = ", ".join(kinds.quoted(field.name) for field in self.fields) or "1 AS nothing"
        if self.newer is not None:
            selects += self._overlaid(connection, f"{view}_newer", self.newer, chosen)
        for number, rows in enumerate(self.merged):
            part = f"{view}_{number}"
            connection.register(part, scanned(rows, rows.size_bytes))
            selects.append(f"SELECT {chosen} FROM {part}")
        if not selects:
            connection.register(f"{view}_0", transfer_schema(self.fields).empty_table())
            selects.append(f"SELECT * FROM {view}_0")
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS {' UNION ALL '.join(selects)}")

    def _overlaid(self, connection: Connection, part: str, newer: NewerRows, chosen: str) -> list[str]:
        """Old rows whose keys have no newer one, and the newer ones that are there."""
        rows = newer.kept()
        connection.register(part, scanned(newer, newer.size_bytes) if rows is None else rows)
        there = f"SELECT {chosen} FROM {part} WHERE NOT {kinds.quoted(newer.gone)}"
        if not self.old_paths:  # an index says that none of them has a row that matches
            return [there]
        pairs = [
            (kinds.quoted(field.name), "IS NOT DISTINCT FROM" if field.type.nullable else "=") for field in newer.key
        ]
        same = " AND ".join(f"o.{name} {equals} n.{name}" for name, equals in pairs)
        old = f"SELECT o.* FROM ({_stored(self.old_paths, newer.fields)}) AS o ANTI JOIN {part} AS n ON {same}"
        return [f"SELECT {chosen} FROM ({old})", there]

    def _rows(self) -> tuple[list[pa.RecordBatch], pa.Schema]:
        schema = transfer_schema(self.fields)
        return [batch for rows in self.merged for batch in rows.to_reader()], schema


def _stored(paths: Sequence[str], fields: Sequence[DataField]) -> str:
    """A SELECT of columns as they stand in files."""
    schema = transfer_schema(fields)
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    chosen = ", ".join(
        f"CAST({name} AS {kinds.duckdb_name(field.type)}) AS {name}"
        for name, field in ((kinds.quoted(field.name), field) for field in schema)
    )
    options = "hive_partitioning = false, union_by_name = false"
    return f"SELECT {chosen or '1 AS nothing'} FROM read_parquet([{listed}], {options})"


def parts_of(reader: SplitReader, plan: ScanPlan, threads: int) -> TableParts:
    """The parts of a planned read; what has to be merged in as many as there are threads."""
    files = plan.files
    if sum(file.size_bytes for file in files) <= _SMALL_BYTES and sum(file.row_count for file in files) <= _SMALL_ROWS:
        return TableParts(reader.fields, (), (MergedRows(reader, plan.splits),), is_small=True)
    paths: list[str] = []
    old_paths: list[str] = []
    rest: list[Split] = []
    newer: list[Split] = []
    may_be_native = isinstance(reader.context.fileio, LocalFileIO) and shows_what_is_stored(reader)
    may_be_native = may_be_native and all(_is_native_type(field.type) for field in reader.needed)
    may_be_overlaid = may_be_native and all(_is_native_type(field.type) for field in key_to_compare(reader.context))
    for split in plan.splits:
        ours, over = [], []
        for section in split.sections:
            is_native = may_be_native and is_as_stored(reader, split, section)
            apart = overlaid(reader, split, section) if may_be_overlaid else None
            if is_native and not any(file.file_name in split.vectors for file in section.files):
                paths += _paths(reader, split, section.files)
            elif apart is not None:
                old_paths += _paths(reader, split, apart.base.files)
                over.append(apart.newer)
            else:
                ours.append(section)
        rest += [split.with_sections(tuple(ours))] if ours else []
        newer += [split.with_sections(tuple(over))] if over else []
    return TableParts(
        reader.fields,
        tuple(paths),
        tuple(MergedRows(reader, group) for group in _grouped(rest, threads)),
        tuple(old_paths),
        NewerRows(reader, tuple(newer)) if newer else None,
    )


def _paths(reader: SplitReader, split: Split, files: Sequence[DataFile]) -> list[str]:
    """Where the files are that may hold matching rows."""
    return [
        reader.context.data_file_path(split.partition, split.bucket, file.file_name)
        for file in files
        if not reader.is_excluded(split, file)
    ]


def threads_here() -> int:
    """Cores that this process may use."""
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _grouped(splits: Sequence[Split], groups: int) -> list[tuple[Split, ...]]:
    """Splits in groups of about the same size, in their order."""
    total = sum(split.size_bytes for split in splits)
    if not splits or total < 4 << 20:
        return [tuple(splits)] if splits else []
    found: list[list[Split]] = [[] for _ in range(groups)]
    before = 0
    for split in splits:
        found[min(groups - 1, (before + split.size_bytes // 2) * groups // total)].append(split)
        before += split.size_bytes
    return [tuple(group) for group in found if group]


@dataclass(frozen=True)
class MergedRows:
    """Rows of splits, with Spark's types, read anew for every scan."""

    reader: SplitReader
    splits: tuple[Split, ...]

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns that the query needs."""
        return transfer_schema(self.reader.fields)

    @property
    def hidden_schema(self) -> pa.Schema:
        """None: what is needed is named."""
        return pa.schema([])

    def to_reader(self, columns: Sequence[str] | None = None, filter: Any = None) -> pa.RecordBatchReader:  # noqa: A002
        """Matching rows as a stream of batches."""
        context = self.reader.context
        names = list(self.arrow_schema.names if columns is None else columns)
        condition: Predicate | None = filter
        used = predicates.columns(condition) if condition is not None else frozenset()
        if condition is None or self._means_the_same(used):
            pushed = [each for each in (self.reader.predicate, condition) if each is not None]
            late = None
        else:
            pushed = [self.reader.predicate] if self.reader.predicate is not None else []
            late = condition
        read = [*names, *(name for name in used if name not in names)] if late is not None else names
        reader = replace(
            self.reader,
            fields=projected_fields(context, read) if read else self.reader.fields[:1],
            predicate=conjunction(pushed) if pushed else None,
        )
        schema = transfer_schema(reader.fields)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in reader.read_each(self.splits):
                rows = to_transfer(batch, schema)
                if late is not None:
                    rows = rows.filter(evaluate(late, rows))
                yield rows.select(names)

        return pa.RecordBatchReader.from_batches(pa.schema([schema.field(name) for name in names]), batches())

    @property
    def size_bytes(self) -> int:
        """Bytes of the files."""
        return sum(split.size_bytes for split in self.splits)

    def _means_the_same(self, columns: frozenset[str]) -> bool:
        """Whether stored values of these columns have the types of the query."""
        given, stored = self.arrow_schema, self.reader.schema
        return all(name in stored.names and stored.field(name).type == given.field(name).type for name in columns)


class Readable(Protocol):
    """Rows that can be read again and again."""

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns there are."""
        ...

    @property
    def hidden_schema(self) -> pa.Schema:
        """Those that have to be asked for by name."""
        ...

    def to_reader(self, columns: Sequence[str] | None = None, filter: Any = None) -> pa.RecordBatchReader:  # noqa: A002
        """Matching rows as a stream of batches."""
        ...


def scanned(rows: Readable, size_bytes: int) -> Any:
    """Rows in the form in which DuckDB scans them best: as a stream if they are few, else so that it can push down."""
    if size_bytes <= _STREAMED_BYTES:
        return _Stream(rows)
    from lakebed.table.dataset import TableDataset  # pyarrow's datasets are slow to load

    return TableDataset(rows)


@dataclass(frozen=True)
class _Stream:
    """Rows as an Arrow stream, a new one for every scan."""

    rows: Readable

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.rows.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.rows.arrow_schema.__arrow_c_schema__()


def _is_native_type(data_type: DataType) -> bool:
    """Whether DuckDB reads such a column from Parquet files as we do."""
    match data_type:
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ):
            return data_type.precision <= 6
        case AtomicType(root=root):
            return root not in (TypeRoot.TIME, TypeRoot.VARIANT, TypeRoot.BLOB, TypeRoot.CHAR)
        case ArrayType(element):
            return _is_native_type(element)
        case MapType(key, value):
            return _is_native_type(key) and _is_native_type(value)
        case RowType(fields):
            return all(_is_native_type(part.type) for part in fields)
    return False
