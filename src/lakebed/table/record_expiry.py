"""Rows that have outlived `record-level.expire-time`: compaction leaves them out, reads show them until then.

A row's age is counted in whole seconds from a column of its own. Numbers are seconds since 1970, except that a BIGINT
of 13 digits and more counts milliseconds; timestamps without a time zone are taken as UTC. A row without a time stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidOption, did_you_mean
from lakebed.options import RECORD_LEVEL_EXPIRE_TIME, RECORD_LEVEL_TIME_FIELD, Options
from lakebed.schema.table_schema import TableSchema
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import TIMESTAMPS, DataField, TypeRoot, is_root

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

    def without_expired(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are still young enough."""
        column = rows.column(self.column.name)
        seconds = _seconds(column)
        expired = seconds < self.cutoff_s
        if column.null_count:
            expired &= np.asarray(pc.is_valid(column))
        return rows.filter(pa.array(~expired)) if np.any(expired) else rows

    @property
    def condition(self) -> pc.Expression:
        """The same as a filter, by which statistics tell the files that hold such rows."""
        column = pc.field(self.column.name)
        arrow = to_arrow_type(self.column.type)
        if pa.types.is_timestamp(arrow):
            return column < pa.scalar(self.cutoff_s * _TICKS[arrow.unit], pa.int64()).cast(arrow)
        if pa.types.is_int64(arrow):
            is_millis = column >= pa.scalar(_SMALLEST_MILLIS, arrow)
            return (column < pa.scalar(self.cutoff_s, arrow)) | (
                is_millis & (column < pa.scalar(self.cutoff_s * 1000, arrow))
            )
        return column < pa.scalar(min(self.cutoff_s, 2**31 - 1), arrow)


def _seconds(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
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


__all__ = ["RecordExpiry", "check_record_expiry"]
