"""Columns that tell where a row comes from: its database, schema and table, when it changed, and its message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from lakebed.cdc.envelope import ABOUT, SourceName
from lakebed.errors import InvalidArgument, did_you_mean
from lakebed.records import dataclass
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import BIGINT, BYTES, INT, STRING, DataType, MapType, timestamp_ltz, with_nullable

_NAMES: Final[dict[str, Callable[[SourceName], str]]] = {
    "database_name": lambda source: source.database,
    "schema_name": lambda source: source.schema,
    "table_name": lambda source: source.table,
}
_TIME: Final = "op_ts"
"""When the change was made, in UTC; the epoch for rows of the first copy."""

MESSAGE_COLUMNS: Final[dict[str, DataType]] = {
    "topic": with_nullable(STRING, False),
    "partition": with_nullable(INT, False),
    "offset": with_nullable(BIGINT, False),
    "timestamp": timestamp_ltz(3),
    "timestamp_type": STRING,
    "key": STRING,
    "headers": MapType(with_nullable(STRING, False), BYTES),
}
"""What a message log knows of each message."""

METADATA_COLUMNS: Final = (*_NAMES, _TIME, *MESSAGE_COLUMNS)


@dataclass(frozen=True, slots=True)
class MetadataColumn:
    """One such column: what it tells, and what it is called in the lake."""

    kind: str
    name: str

    @property
    def type(self) -> DataType:
        """Names, times and places have a value in every row."""
        if self.kind in MESSAGE_COLUMNS:
            return MESSAGE_COLUMNS[self.kind]
        return with_nullable(timestamp_ltz(3) if self.kind == _TIME else STRING, False)

    @property
    def is_fixed(self) -> bool:
        """Whether all rows of a source table have the same value."""
        return self.kind in _NAMES

    def evaluate(self, source: SourceName, op_ts: pa.Array, given: Mapping[str, pa.Array]) -> pa.Array:
        """Values for some rows of a source table, from their payload."""
        if self.kind == _TIME:
            return op_ts
        if self.kind in MESSAGE_COLUMNS:
            return given[ABOUT + self.kind].cast(to_arrow_type(self.type))
        text = pa.array([_NAMES[self.kind](source)], pa.string())
        return text.take(pa.array(np.zeros(len(op_ts), np.int64)))


def metadata_columns(kinds: Sequence[str], prefix: str, offered: Sequence[str]) -> tuple[MetadataColumn, ...]:
    """The columns that were asked for, as far as the source offers them."""
    for kind in kinds:
        if kind not in offered or kind not in METADATA_COLUMNS:
            raise InvalidArgument(
                f"there is no metadata column `{kind}` for this source", hint=did_you_mean(kind, offered)
            )
    return tuple(MetadataColumn(kind, prefix + kind) for kind in kinds)


__all__ = ["MESSAGE_COLUMNS", "METADATA_COLUMNS", "MetadataColumn", "metadata_columns"]
