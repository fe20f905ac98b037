"""Which tables may mark rows as deleted, and which may give their rows ids."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.commit.index_changes import current_entries
from lakebed.definition.changelog_rules import FULL_COMPACTION, looks_up, producer
from lakebed.definition.context import TableContext, once_per_context
from lakebed.errors import InvalidOption, did_you_mean
from lakebed.merge.base import ChoosingEngine
from lakebed.merge.first_row import FirstRow
from lakebed.metadata.deletion_vector import DeletionVectorStore, Positions, VectorRules, Vectors
from lakebed.metadata.index_manifest import DELETION_VECTORS_INDEX, IndexEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    AGGREGATION_REMOVE_RECORD_ON_DELETE,
    BUCKET,
    CHANGELOG_PRODUCER,
    DATA_EVOLUTION_ENABLED,
    DELETION_VECTOR_INDEX_FILE_TARGET_SIZE,
    DELETION_VECTORS_BITMAP64,
    DELETION_VECTORS_ENABLED,
    DELETION_VECTORS_MERGE_ON_READ,
    MERGE_ENGINE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP,
    POSTPONE_MERGE_ON_READ,
    RECORD_LEVEL_EXPIRE_TIME,
    RECORD_LEVEL_TIME_FIELD,
    ROW_TRACKING_ENABLED,
    Options,
)
from lakebed.records import dataclass
from lakebed.schema.table_schema import TableSchema
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import TIMESTAMPS, DataField, TypeRoot, is_root

_log = logging.getLogger(__name__)


def check_row_options(schema: TableSchema, options: Options, table: str) -> None:
    """Raises if deletion vectors or row ids do not go with the rest of the table."""
    if options[DELETION_VECTORS_ENABLED]:
        _check_vectors(schema, options, table)
    else:
        for option in (DELETION_VECTORS_MERGE_ON_READ, DELETION_VECTORS_BITMAP64):
            if options[option]:
                _warn_of_no_vectors(table, option.key)
    if options[DATA_EVOLUTION_ENABLED]:
        _check_evolution(options, table)
    if options[ROW_TRACKING_ENABLED] and (schema.primary_keys or options[BUCKET] != -1):
        raise InvalidOption(
            f"table `{table}`: `{ROW_TRACKING_ENABLED.key}` is for tables without primary key and without buckets",
            hint="leave it out: the primary key tells rows apart"
            if schema.primary_keys
            else f"leave `{BUCKET.key}` out",
        )


@cache
def _warn_of_no_vectors(table: str, key: str) -> None:
    """It changes nothing, and a session may set it for all its tables."""
    _log.warning("table `%s`: `%s` has no effect without `%s`", table, key, DELETION_VECTORS_ENABLED.key)


def _check_evolution(options: Options, table: str) -> None:
    if not options[ROW_TRACKING_ENABLED]:
        raise InvalidOption(
            f"table `{table}`: `{DATA_EVOLUTION_ENABLED.key}` needs rows with ids",
            hint=f"set `{ROW_TRACKING_ENABLED.key}` to true as well",
        )


def _check_vectors(schema: TableSchema, options: Options, table: str) -> None:
    if not schema.primary_keys:
        return
    if options[MERGE_ENGINE] == FirstRow.name:
        raise InvalidOption(
            f"table `{table}`: merge engine `{FirstRow.name}` never replaces a row, so there are none to mark",
            hint=f"leave `{DELETION_VECTORS_ENABLED.key}` out: reads of such tables need no merge anyway",
        )
    if producer(options) == FULL_COMPACTION:
        raise InvalidOption(
            f"table `{table}`: `{DELETION_VECTORS_ENABLED.key}` does not go with `{CHANGELOG_PRODUCER.key}` = "
            f"`{FULL_COMPACTION}`",
            hint="use `lookup`, which tells of changes as soon as rows are marked",
        )


# --- Rows that have outlived `record-level.expire-time`: compaction leaves them out, reads show them until then ---
#
# A row's age is counted in whole seconds from a column of its own. Numbers are seconds since 1970, except that a
# BIGINT of 13 digits and more counts milliseconds; timestamps without a time zone are taken as UTC. A row without a
# time stays.


_SMALLEST_MILLIS = 10**12
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True)
class RecordExpiry:
    """Which rows of a table are too old at one moment."""

    column: DataField
    cutoff_s: int
    """Rows of an earlier second than this one have expired."""

    @staticmethod
    def of(schema: TableSchema, options: Options, now_ms: int) -> RecordExpiry | None:
        """What the options ask for; None if rows do not expire."""
        ttl_ms, name = options[RECORD_LEVEL_EXPIRE_TIME], options[RECORD_LEVEL_TIME_FIELD]
        if ttl_ms is None or name is None:
            return None
        return RecordExpiry(schema.field(name), now_ms // 1000 - ttl_ms // 1000)

    def is_young(self, rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which of the rows have not expired."""
        column = rows.column(self.column.name)
        young = _seconds(column) >= self.cutoff_s
        if column.null_count:
            young |= np.asarray(pc.is_null(column))
        return young

    def without_expired(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are still young enough."""
        young = self.is_young(rows)
        return rows if np.all(young) else rows.filter(pa.array(young))

    @property
    def condition(self) -> pc.Expression:
        """The same as a filter, by which statistics tell the files that hold such rows."""
        column = pc.field(self.column.name)
        arrow = to_arrow_type(self.column.type)
        if pa.types.is_timestamp(arrow):
            ticks = min(max(self.cutoff_s * _TICKS[arrow.unit], -(2**63)), 2**63 - 1)
            return column < pa.scalar(ticks, pa.int64()).cast(arrow)
        if pa.types.is_int64(arrow):
            is_millis = column >= pa.scalar(_SMALLEST_MILLIS, arrow)
            return (column < pa.scalar(self.cutoff_s, arrow)) | (
                is_millis & (column < pa.scalar(self.cutoff_s * 1000, arrow))
            )
        return column < pa.scalar(min(max(self.cutoff_s, -(2**31)), 2**31 - 1), arrow)


def _seconds(column: pa.Array) -> npt.NDArray[np.int64]:
    """Times as seconds since 1970; anything for null."""
    if pa.types.is_timestamp(column.type):
        ticks = column.cast(pa.int64()).fill_null(0)
        return np.asarray(ticks) // _TICKS[column.type.unit]
    numbers = np.asarray(column.fill_null(0)).astype(np.int64)
    if pa.types.is_int64(column.type):
        return np.where(numbers >= _SMALLEST_MILLIS, numbers // 1000, numbers)
    return numbers


def check_record_expiry(schema: TableSchema, options: Options, table: str) -> None:
    """Raises unless both options are there or none, and the column holds times."""
    ttl_ms, name = options[RECORD_LEVEL_EXPIRE_TIME], options[RECORD_LEVEL_TIME_FIELD]
    if ttl_ms is None and name is None:
        return
    if not schema.primary_keys:
        raise InvalidOption(
            f"table `{table}`: `{RECORD_LEVEL_EXPIRE_TIME.key}` needs a primary key: compaction drops the rows",
            hint="add a primary key, or delete old rows yourself",
        )
    if ttl_ms is None or name is None:
        there, missing = RECORD_LEVEL_EXPIRE_TIME.key, RECORD_LEVEL_TIME_FIELD.key
        if ttl_ms is None:
            there, missing = missing, there
        raise InvalidOption(
            f"table `{table}`: `{there}` is set but `{missing}` is not", hint="set both, or none of the two"
        )
    if name not in schema.field_names:
        raise InvalidOption(
            f"table `{table}`: `{RECORD_LEVEL_TIME_FIELD.key}` names column `{name}`, which does not exist",
            hint=did_you_mean(name, schema.field_names),
        )
    column = schema.field(name)
    if not is_root(column.type, TIMESTAMPS | {TypeRoot.INT, TypeRoot.BIGINT}):
        raise InvalidOption(
            f"table `{table}`: `{RECORD_LEVEL_TIME_FIELD.key}` column `{name}` is {column.type}, which is no time",
            hint="choose a column of type INT or BIGINT (seconds since 1970) or TIMESTAMP",
        )


# ------------------------------------------------------------------------------------------------------------------
# Which rows of a state are gone although their files are there, and what a table's options say about marking rows.


def vectors_at(context: TableContext, snapshot: Snapshot | None) -> Vectors:
    """The deletion vectors of a snapshot. They count whatever the options say now: the rows are gone."""
    return context.vector_store.places(current_entries(context.stores, snapshot))


def mark_rows(
    context: TableContext,
    store: DeletionVectorStore,
    current: Sequence[IndexEntry],
    marked: Mapping[tuple[bytes, int], Mapping[str, Positions]],
    gone: Collection[str] = (),
) -> tuple[list[IndexEntry], list[IndexEntry]]:
    """Writes new vectors of data files, given by bucket and name; the index files that go, and those that come.

    A bucket has one index file. Without buckets there are many, of which only those are written again that hold an old
    vector of one of the data files. Vectors of data files that are `gone` are not kept.
    """
    options = context.options
    is_bucketed = context.has_key or options[BUCKET] > 0
    target_bytes = None if is_bucketed else options[DELETION_VECTOR_INDEX_FILE_TARGET_SIZE]
    rules = VectorRules(64 if options[DELETION_VECTORS_BITMAP64] else 32, target_bytes)
    removed: list[IndexEntry] = []
    added: list[IndexEntry] = []
    for (partition, bucket), vectors in marked.items():
        old = [
            entry
            for entry in current
            if (entry.partition, entry.bucket, entry.index_type) == (partition, bucket, DELETION_VECTORS_INDEX)
            and (is_bucketed or any(part.data_file_name in vectors for part in entry.deletion_vector_ranges or ()))
        ]
        kept = {name: place for name, place in store.places(old).items() if name not in vectors and name not in gone}
        others = {name: store.read(place) for name, place in kept.items()}
        removed += old
        added += store.write(partition, bucket, {**others, **vectors}, rules)
    return removed, added


@once_per_context
def lowest_level_counts(context: TableContext) -> bool:
    """Whether of several levels above 0 that hold a key only the lowest is merged: it holds the whole of it."""
    is_renewed = context.is_first_row and not context.has_keys_once
    return is_renewed or (looks_up(context.options) and not isinstance(context.merge_engine, ChoosingEngine))


@once_per_context
def removes_records(context: TableContext) -> bool:
    """Whether a `-D` row ends what was there of its key, so that later rows begin anew."""
    options = context.options
    return bool(
        options[PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE]
        or options[PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP]
        or options[AGGREGATION_REMOVE_RECORD_ON_DELETE]
    )


def shows_waiting_rows(context: TableContext) -> bool:
    """Whether reads of the table include rows that wait."""
    return context.options[POSTPONE_MERGE_ON_READ] and context.bucket_mode.postpones


__all__ = ["RecordExpiry", "check_record_expiry", "check_row_options", "mark_rows", "vectors_at"]
