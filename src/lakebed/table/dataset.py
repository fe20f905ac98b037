"""A table as a pyarrow dataset: what DuckDB and others need to read only the columns and rows that they ask for.

DuckDB and polars know datasets of pyarrow and push columns and filters into their scanners. pyarrow has no way to make
one of files of one's own, but a subclass may answer `schema` and `scanner` itself. Whoever hands a filter to a scanner
does not filter again, so all of it is applied here: files are left out by as much of it as is understood, and rows by
the whole of it, in pyarrow's meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from lakebed.definition.arguments import filter_argument, names_argument
from lakebed.errors import InvalidArgument, NotFound, Unsupported, did_you_mean
from lakebed.table.few_rows import first_rows
from lakebed.types.arrow import with_hidden
from lakebed.types.expression_tree import ExpressionTree, UnreadableExpression, column_names
from lakebed.types.predicate import Opaque, Predicate, conjunction
from lakebed.types.predicate_parse import to_predicate


class Scanned(Protocol):
    """What a dataset reads: rows of a table at one moment, or anything that reads like them."""

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


class TableDataset(pads.Dataset):  # type: ignore[misc]
    """Rows of a table: `columns` (all) of those that `filter` is true for. Each scan reads them anew."""

    # pyarrow's own part stays empty, so every method that would reach for it is answered or refused here.
    def __init__(self, scanned: Scanned, columns: Sequence[str] | None = None, filter: Any = None) -> None:  # noqa: A002
        self._scanned = scanned
        known = with_hidden(scanned.arrow_schema, scanned.hidden_schema)
        self._schema = scanned.arrow_schema if columns is None else _chosen(known, names_argument(columns, "columns"))
        self._filter = filter_argument(filter, known)

    @property
    def schema(self) -> pa.Schema:
        """The columns that scans may ask for."""
        return self._schema

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002
        batch_size: int | None = None,
        **_: Any,
    ) -> TableScan:
        """A scan of these columns of the matching rows, in batches of at most so many rows.

        What else pyarrow's scanners may be told (how far to read ahead, threads, memory pools) has no meaning here.
        """
        names = list(self._schema.names) if columns is None else _names(columns)
        return self.scan(names, None if filter is None else _understood(filter, self._schema), batch_size)

    def scan(self, names: list[str], condition: Predicate | None, batch_size: int | None = None) -> TableScan:
        """As `scanner`, with a predicate."""
        parts = [part for part in (self._filter, condition) if part is not None]
        return TableScan(self._scanned, self._schema, names, conjunction(parts) if parts else None, batch_size)

    def filter(self, expression: pc.Expression) -> TableDataset:
        """The same with fewer rows."""
        parts = [part for part in (self._filter, _understood(expression, self._schema)) if part is not None]
        return TableDataset(self._scanned, self._schema.names, conjunction(parts))

    def __reduce__(self) -> tuple[Any, ...]:
        return TableDataset, (self._scanned, self._schema.names, self._filter)

    @property
    def partition_expression(self) -> NoReturn:
        """Refused."""
        self._refuse("partition_expression")

    def get_fragments(self, filter: pc.Expression | None = None) -> NoReturn:  # noqa: A002
        """Refused: rows of a table may have to be merged from several files."""
        self._refuse("get_fragments")

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Refused."""
        self._refuse("replace_schema")

    def join(self, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        self._refuse("join")

    def join_asof(self, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        self._refuse("join_asof")

    def sort_by(self, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        self._refuse("sort_by")

    def _refuse(self, what: str) -> NoReturn:
        raise Unsupported(f"a table as a dataset has no `{what}`", hint="call it on the rows: to_table(columns=[...])")


class TableScan:
    """One scan, with the methods of a pyarrow scanner. Nothing is read before one of them is called."""

    def __init__(
        self,
        scanned: Scanned,
        dataset_schema: pa.Schema,
        names: list[str],
        condition: Predicate | None,
        batch_size: int | None,
    ) -> None:
        self._scanned = scanned
        self._names = names
        self._condition = condition
        self._batch_size = batch_size
        self.dataset_schema = dataset_schema
        self.projected_schema = _chosen(dataset_schema, names)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of batches."""
        reader = self._scanned.to_reader(self._names, self._condition)
        if self._batch_size is None:
            return reader
        return pa.RecordBatchReader.from_batches(reader.schema, _cut(reader, self._batch_size))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows batch by batch."""
        return iter(self.to_reader())

    def to_table(self) -> pa.Table:
        """All rows."""
        return self.to_reader().read_all()

    def head(self, num_rows: int) -> pa.Table:
        """The first rows; no more is read than they need."""
        reader = self.to_reader()
        return pa.Table.from_batches(first_rows(reader, num_rows), schema=reader.schema)

    def take(self, indices: Any) -> pa.Table:
        """Rows by their positions."""
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        """How many rows match."""
        narrow = self._names[:1] or self.dataset_schema.names[:1]
        return sum(batch.num_rows for batch in self._scanned.to_reader(narrow, self._condition))


def _cut(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def _chosen(known: pa.Schema, names: Sequence[str]) -> pa.Schema:
    for name in names:
        if name not in known.names:
            raise NotFound(f"there is no column `{name}`", hint=did_you_mean(name, known.names))
    return pa.schema([known.field(name) for name in names])


def _names(columns: Sequence[str]) -> list[str]:
    if isinstance(columns, dict):
        raise Unsupported("a scan of a table computes no columns", hint="name columns: columns=['a', 'b']")
    return list(columns)


def _understood(expression: pc.Expression, schema: pa.Schema) -> Predicate | None:
    """The expression as a predicate; one with values that fit no column stays as it is, for pyarrow to evaluate."""
    try:
        return to_predicate(expression, schema)
    except InvalidArgument:
        try:
            return Opaque(expression, column_names(ExpressionTree(expression).root))
        except UnreadableExpression:
            return Opaque(expression, frozenset(schema.names))


__all__ = ["Scanned", "TableDataset", "TableScan"]
