"""Finds the current rows that have given values in some columns: the first ones of the key, or any.

What can not hold such a row is left out by partition, bucket, statistics and indexes. Files of a table with a key are
sorted: by its first columns, rows are found in row groups, and in the local copies that lookups make. Else everything
that is left is read, and what does not match dropped batch by batch, so that memory holds little besides the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lakebed.definition.context import TableContext
from lakebed.errors import InvalidArgument
from lakebed.lsm.lookup.store import LookupStore
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.deletion_vector import Positions
from lakebed.metadata.snapshot import Snapshot
from lakebed.read.keyed_reader import copied_rows, lookup_store
from lakebed.read.lookup import asked_columns, chosen_fields, refuse_unreachable
from lakebed.read.plan import plan_scan
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.types import ordering
from lakebed.types import predicate as predicates
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.logical import DataField, is_nested
from lakebed.types.predicate import LONG_LIST, In, IsNull, Or, Predicate
from lakebed.types.value_sets import ValueSet


@dataclass(frozen=True)
class ValueLookup:
    """Rows of one snapshot (None: an empty table) by their values. It can be pickled, and used by many threads."""

    context: TableContext
    snapshot: Snapshot | None
    fields: tuple[DataField, ...]
    by: tuple[DataField, ...]
    null_safe: bool = False

    @staticmethod
    def of(
        context: TableContext,
        snapshot: Snapshot | None,
        columns: Sequence[str] | None,
        by: Sequence[str],
        null_safe: bool,
    ) -> ValueLookup:
        """A lookup of these columns, all of them by default, if the table allows any."""
        refuse_unreachable(context)
        if not by or len(set(by)) != len(by):
            problem = "names no column" if not by else "names a column twice"
            raise InvalidArgument(f"by {problem}", hint="list the columns to look up by in `by`, each once")
        fields = tuple(context.schema.fields_of(by))
        for field in fields:
            if is_nested(field.type):
                raise InvalidArgument(
                    f"column `{field.name}` of table `{context.name}` is {field.type}: rows can not be looked up by it",
                    hint="look up by other columns, or filter a read by a part of it",
                )
        return ValueLookup(context, snapshot, chosen_fields(context, columns), fields, null_safe)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows that are found."""
        return to_arrow_schema(self.fields)

    def rows(self, values: Any) -> pa.Table:
        """Every row whose values are among these, once, in any order."""
        asked = asked_columns(self.context, values, self.by)
        wanted = ValueSet.of(asked.columns, null_safe=self.null_safe)
        if not len(wanted) or self.snapshot is None:
            return self.schema.empty_table()
        predicate = self._condition(asked)
        reader = self._reader(asked, predicate)
        plan = plan_scan(self.context, self.snapshot, predicate)
        return pa.Table.from_batches(
            [batch.select(self.schema.names) for batch in reader.matching(plan.splits, self.by, wanted)],
            schema=self.schema,
        )

    # --- inside --------------------------------------------------------------------------------------------------

    def _condition(self, asked: pa.RecordBatch) -> Predicate | None:
        """What is true of each column of the rows. Of floats nothing is said: NaN is a value, but equals nothing."""
        parts: list[Predicate] = []
        for column, field in zip(asked.columns, self.by, strict=True):
            if pa.types.is_floating(column.type):
                continue
            is_one = In(field.name, column.drop_null().unique())
            parts.append(Or((is_one, IsNull(field.name))) if self.null_safe and column.null_count else is_one)
        return predicates.conjunction(parts) if parts else None

    def _reader(self, asked: pa.RecordBatch, predicate: Predicate | None) -> _MatchingReader:
        context = self.context
        besides = tuple(field for field in self.by if field not in self.fields)
        key = context.merge_order.key if context.has_key else ()
        in_key = [field.name for field in self.by if field.name in key]
        key_set = ValueSet.of([asked.column(name) for name in in_key], null_safe=self.null_safe) if in_key else None
        is_prefix = set(in_key) == set(key[: len(in_key)])
        prefix = _ascending([asked.column(name) for name in key[: len(in_key)]]) if in_key and is_prefix else ()
        return _MatchingReader(
            context,
            (*self.fields, *besides),
            predicate,
            keeps_everything=asked.num_rows > LONG_LIST,
            key_names=tuple(in_key),
            key_set=key_set,
            prefix=prefix,
        )


@dataclass(frozen=True)
class _MatchingReader(SplitReader):
    """Drops rows of other keys before anything is merged: all rows of a key have the same values in its columns."""

    key_names: tuple[str, ...] = ()
    key_set: ValueSet | None = None
    prefix: tuple[pa.Array, ...] = ()
    """The first columns of the keys in ascending order, each combination once; none if they can not be searched for."""

    def matching(self, splits: Sequence[Split], by: Sequence[DataField], wanted: ValueSet) -> Iterator[pa.RecordBatch]:
        """Rows of splits with values of the set."""
        for batch in self.read_all(splits):
            found = wanted.holds([batch.column(field.name) for field in by])
            yield batch if found.all() else batch.filter(pa.array(found))

    def _file(
        self,
        split: Split,
        file: DataFile,
        fields: tuple[DataField, ...],
        predicate: Predicate | None,
        batch_rows: int | None = None,
        deleted: Positions | None = None,
    ) -> Iterator[pa.RecordBatch]:
        if self.key_set is None:
            yield from super()._file(split, file, fields, predicate, batch_rows, deleted)
            return
        copies = lookup_store(self.context) if self.prefix else None
        if copies is not None and copies.is_worth_a_copy(file):
            yield from self._from_copy(copies, split, file, fields)
            return
        count = 0
        for batch in super()._file(split, file, fields, predicate, batch_rows, deleted):
            count += batch.num_rows
            found = self.key_set.holds([batch.column(name) for name in self.key_names])
            if found.any():
                yield batch if found.all() else batch.filter(pa.array(found))
        if copies is not None:
            copies.note_reading(file, count)

    def _from_copy(
        self, copies: LookupStore, split: Split, file: DataFile, fields: tuple[DataField, ...]
    ) -> Iterator[pa.RecordBatch]:
        stored, accept = copied_rows(self, split, file)
        found = copies.find_prefix(file, self.prefix, stored.fields, stored.read, self.context.merge_order.key)
        for batch in found:
            rows = batch if accept is None else batch.filter(pa.array(accept(file, batch)))
            if rows.num_rows:
                yield rows.select([field.name for field in fields])


def _ascending(columns: Sequence[pa.Array]) -> tuple[pa.Array, ...]:
    """Rows of columns in ascending order, each once. None of floats: they are looked for by value, not by bits."""
    if any(pa.types.is_floating(column.type) for column in columns):
        return ()
    codes = ordering.key_codes(columns)
    order = ordering.argsort(codes)
    firsts = order[ordering.changes([column[order] for column in codes])]
    return tuple(column.take(pa.array(firsts)) for column in columns)


__all__ = ["ValueLookup"]
