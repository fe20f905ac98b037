"""Counts a table's rows and looks at its columns, and commits what it found as statistics for query planners."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.checksums import sealed_json
from lakebed.commit.attempt import Attempt
from lakebed.commit.committer import Changes, CommitIdentity
from lakebed.definition.context import TableContext
from lakebed.definition.file_rules import committer_for
from lakebed.errors import CommitConflict, Unsupported
from lakebed.metadata.entries import live_files
from lakebed.metadata.partition_text import partition_text
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.read.reader import rows_of
from lakebed.records import dataclass
from lakebed.types.logical import BINARIES, STRINGS, AtomicType, DataField, DataType, TypeRoot, is_nested, is_root

_SIZES = {"BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INT": 4, "DATE": 4, "TIME": 4, "FLOAT": 4}
"""Bytes that planners count for a value; eight for all others of fixed length."""


def analyzable(context: TableContext, names: Sequence[str] | None) -> list[DataField]:
    """The columns to look at: those named, or all that can be."""
    if names is None:
        return [item for item in context.schema.fields if not is_nested(item.type)]
    chosen = list(context.schema.fields_of(names))
    for item in chosen:
        if is_nested(item.type):
            raise Unsupported(
                f"column `{item.name}` is {item.type}, of which there are no statistics",
                hint="analyze columns of plain types",
            )
    return chosen


@dataclass(slots=True)
class _ColumnFacts:
    """What is known of a column after the batches so far. Distinct values are kept, so memory grows with them."""

    column: DataField
    null_count: int = 0
    value_count: int = 0
    length_sum: int = 0
    max_length: int = 0
    distinct: pa.Array | None = field(default=None, repr=False)

    def add(self, values: pa.Array) -> None:
        """Takes another batch in."""
        self.null_count += values.null_count
        present = values.drop_null()
        if not len(present):
            return
        self.value_count += len(present)
        if self._has_lengths:
            is_text = is_root(self.column.type, STRINGS)
            lengths = pc.utf8_length(present) if is_text else pc.binary_length(present)
            self.length_sum += pc.sum(lengths).as_py()
            self.max_length = max(self.max_length, pc.max(lengths).as_py())
        fresh = present.unique()
        self.distinct = fresh if self.distinct is None else pa.concat_arrays([self.distinct, fresh]).unique()

    def members(self) -> dict[str, Any]:
        """The JSON members of a column's statistics; those without a value left out."""
        count = 0 if self.distinct is None else len(self.distinct)
        found: dict[str, Any] = {"colId": self.column.id, "distinctCount": count}
        if count and not self._has_lengths:
            bounds = pc.min_max(self.distinct)
            found |= {name: _bound_text(self.column.type, bounds[name]) for name in ("min", "max")}
        found["nullCount"] = self.null_count
        if self._has_lengths:
            average = math.ceil(self.length_sum / self.value_count) if self.value_count else 0
            return {**found, "avgLen": average, "maxLen": self.max_length}
        size = self._fixed_size()
        return {**found, "avgLen": size, "maxLen": size}

    @property
    def _has_lengths(self) -> bool:
        return is_root(self.column.type, STRINGS) or is_root(self.column.type, BINARIES)

    def _fixed_size(self) -> int:
        text = str(self.column.type)
        root = text.partition("(")[0].partition(" ")[0]
        if root == "DECIMAL":
            return 8 if int(text.partition("(")[2].partition(",")[0]) <= 18 else 16
        return _SIZES.get(root, 8)


def _bound_text(data_type: DataType, value: pa.Scalar) -> str:
    """As other engines spell bounds: dates and times of day as the numbers they store, moments in UTC."""
    if isinstance(data_type, AtomicType) and data_type.root is TypeRoot.TIMESTAMP_LTZ:
        data_type = AtomicType(TypeRoot.TIMESTAMP, precision=data_type.precision)
    return partition_text(data_type, value, legacy=is_root(data_type, {TypeRoot.DATE, TypeRoot.TIME}))


def analyze(
    context: TableContext,
    snapshot: Snapshot,
    columns: Sequence[DataField],
    identity: CommitIdentity,
) -> Snapshot | None:
    """Commits statistics of a snapshot: its row count, and what these columns hold."""
    facts = [_ColumnFacts(column) for column in columns]
    row_count = 0
    # Without columns, the narrowest way to count: merging needs the key, and nothing else.
    names = [column.name for column in columns] or [context.schema.fields[0].name]
    for batch in rows_of(context, snapshot, names):
        row_count += batch.num_rows
        for fact in facts:
            fact.add(batch.column(fact.column.name))
    size_bytes = sum(entry.file.size_bytes for entry in live_files(context.stores, snapshot))
    body = {
        "snapshotId": snapshot.id,
        "schemaId": snapshot.schema_id,
        "mergedRecordCount": row_count,
        "mergedRecordSize": size_bytes * row_count // max(snapshot.total_record_count, 1),
        "colStats": {fact.column.name: fact.members() for fact in facts},
    }
    return _commit(context, sealed_json(json.dumps(body, indent=2)).encode(), snapshot.schema_id, identity)


def _commit(context: TableContext, body: bytes, schema_id: int, identity: CommitIdentity) -> Snapshot | None:
    name = f"stat-{context.ids.new_id()}-0"
    path = context.paths.statistics_file(name)

    def prepare(latest: Snapshot | None) -> Changes:
        if latest is None or latest.schema_id != schema_id:
            raise CommitConflict(
                f"table `{context.name}` got another schema while it was analyzed", hint="analyze it again"
            )
        return Changes([], statistics=name)

    with Attempt(context.fileio) as attempt:
        attempt.fileio.write_bytes(path, body)
        return committer_for(context).commit(
            CommitKind.ANALYZE, identity, lambda: schema_id, prepare, attempt=attempt, operation="ANALYZE"
        )
