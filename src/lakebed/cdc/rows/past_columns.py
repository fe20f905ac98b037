"""Columns that tables have which keep the past of their source: when a row was deleted, changed, or valid.

They are columns that a sync adds, like those of `metadata`, so that names, types and schema changes go the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import ABOUT, CHANGED_AT, LOG_POSITION, NUMBER, TRANSACTION, SourceName
from lakebed.errors import InvalidData
from lakebed.records import dataclass
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import BIGINT, BOOLEAN, DATE, STRING, DataType, timestamp_ltz, with_nullable

DELETED_AT: Final = "deleted_at"
OP: Final = "op"
CHANGED: Final = "changed_at"
CHANGED_ON: Final = "changed_on"
TRANSACTION_ID: Final = "transaction_id"
POSITION: Final = "position"
CHANGE_NUMBER: Final = "change_number"
VALID_FROM: Final = "valid_from"
VALID_TO: Final = "valid_to"
IS_CURRENT: Final = "is_current"
ROW_VERSION: Final = "row_version"

_MOMENT: Final = timestamp_ltz(6)
_TYPES: Final[dict[str, DataType]] = {
    DELETED_AT: _MOMENT,
    OP: with_nullable(STRING, False),
    CHANGED: with_nullable(_MOMENT, False),
    CHANGED_ON: with_nullable(DATE, False),
    TRANSACTION_ID: STRING,
    POSITION: STRING,
    CHANGE_NUMBER: BIGINT,
    VALID_FROM: with_nullable(_MOMENT, False),
    VALID_TO: _MOMENT,
    IS_CURRENT: with_nullable(BOOLEAN, False),
    ROW_VERSION: with_nullable(BIGINT, False),
}
_TOLD: Final = {TRANSACTION_ID: TRANSACTION, POSITION: LOG_POSITION, CHANGE_NUMBER: NUMBER}
_TIMES: Final = (DELETED_AT, CHANGED, CHANGED_ON, VALID_FROM)


@dataclass(frozen=True, slots=True)
class PastColumn:
    """One such column: what it tells, and what it is called in the lake."""

    kind: str
    name: str

    @property
    def type(self) -> DataType:
        """The type that its values have."""
        return _TYPES[self.kind]

    @property
    def is_fixed(self) -> bool:
        """No two changes of a row need have the same."""
        return False

    def evaluate(self, source: SourceName, op_ts: pa.Array, given: Mapping[str, pa.Array]) -> pa.Array:
        """Values for some changes, as far as each change tells them for itself; others come once all are together."""
        arrow = to_arrow_type(self.type)
        if self.kind in _TIMES:
            return _change_times(source, op_ts, given).cast(arrow)
        if self.kind in _TOLD and ABOUT + _TOLD[self.kind] in given:
            return given[ABOUT + _TOLD[self.kind]].cast(arrow)
        return pa.nulls(len(op_ts), arrow)


def _change_times(source: SourceName, op_ts: pa.Array, given: Mapping[str, pa.Array]) -> pa.Array:
    """When changes were committed, or copied rows read."""
    times = given.get(ABOUT + CHANGED_AT)
    times = op_ts.cast(pa.timestamp("us", tz="UTC")) if times is None else times
    if times.null_count or (len(times) and pc.min(times.cast(pa.int64())).as_py() <= 0):
        raise InvalidData(
            f"{source} sends changes without the time at which they were made, which the past of rows needs",
            hint="have the messages carry the time of the source, or follow the table without keeping its past",
        )
    return times


__all__ = [
    "CHANGED",
    "CHANGED_ON",
    "CHANGE_NUMBER",
    "DELETED_AT",
    "IS_CURRENT",
    "OP",
    "POSITION",
    "ROW_VERSION",
    "TRANSACTION_ID",
    "VALID_FROM",
    "VALID_TO",
    "PastColumn",
]
