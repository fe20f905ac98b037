"""Minimum, maximum and null counts of columns, as manifests carry them: undecoded BinaryRows, cheap to pass along.

Planning decodes them only for the columns a filter names. Computing them for data columns is the format writers' work;
here they are computed only for partition columns, whose values manifests hold.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.metadata.avro_container import Record, optional, required
from lakebed.records import dataclass
from lakebed.types.binary_row import EMPTY_ROW, decode_rows, encode_rows
from lakebed.types.logical import BINARIES, DataType, is_root
from lakebed.types.ordering import sort_codes


@dataclass(frozen=True, slots=True)
class SimpleStats:
    """Statistics of a list of columns. A null minimum or maximum means unknown."""

    min_values: bytes
    max_values: bytes
    null_counts: tuple[int | None, ...] | None

    def to_json(self) -> dict[str, Any]:
        """Plain values only, bytes as base64."""
        return {
            "min_values": base64.b64encode(self.min_values).decode(),
            "max_values": base64.b64encode(self.max_values).decode(),
            "null_counts": None if self.null_counts is None else list(self.null_counts),
        }

    @staticmethod
    def from_json(body: dict[str, Any]) -> SimpleStats:
        """Inverse of `to_json`."""
        counts = body["null_counts"]
        return SimpleStats(
            base64.b64decode(body["min_values"], validate=True),
            base64.b64decode(body["max_values"], validate=True),
            None if counts is None else tuple(counts),
        )


EMPTY_STATS = SimpleStats(EMPTY_ROW, EMPTY_ROW, ())
"""Statistics of no column."""


def stats_schema(name: str) -> Record:
    """The Avro record type of statistics; each use in a schema needs a name of its own."""
    counts = {"type": "array", "items": ["null", "long"]}
    fields = [required("_MIN_VALUES", "bytes"), required("_MAX_VALUES", "bytes"), optional("_NULL_COUNTS", counts)]
    return {"type": "record", "name": name, "fields": fields}


def stats_to_record(stats: SimpleStats) -> Record:
    """The Avro record of statistics."""
    counts = stats.null_counts
    return {
        "_MIN_VALUES": stats.min_values,
        "_MAX_VALUES": stats.max_values,
        "_NULL_COUNTS": None if counts is None else list(counts),
    }


def build_stats(low: bytes, high: bytes, null_counts: tuple[int | None, ...] | None) -> SimpleStats:
    """Statistics from the values of their Avro record; the many empty ones share one object."""
    if null_counts == () and low == EMPTY_ROW and high == EMPTY_ROW:
        return EMPTY_STATS
    return SimpleStats(low, high, null_counts)


def partition_stats(partitions: Iterable[bytes], types: Sequence[DataType]) -> SimpleStats:
    """Statistics of partition values, given as one BinaryRow per manifest entry."""
    if not types:
        return EMPTY_STATS
    entries_per_partition = Counter(partitions)
    columns = decode_rows(pa.array(entries_per_partition.keys(), pa.binary()), types)
    weights = np.fromiter(entries_per_partition.values(), np.int64, len(entries_per_partition))
    lows, highs, null_counts = [], [], []
    for column, data_type in zip(columns, types, strict=True):
        # Java compares bytes as signed numbers: with bounds it would skip partitions that hold what it looks for.
        low, high = _extremes(pa.nulls(1, column.type) if is_root(data_type, BINARIES) else column)
        lows.append(low)
        highs.append(high)
        null_counts.append(int(weights[pc.is_null(column).to_numpy(zero_copy_only=False)].sum()))
    return SimpleStats(encode_rows(lows, types)[0].as_py(), encode_rows(highs, types)[0].as_py(), tuple(null_counts))


def _extremes(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The smallest and the greatest value, each as an array of one; null when there is no value."""
    values = column.drop_null()
    if len(values) == 0:
        return column[:1], column[:1]
    codes = sort_codes(values)
    return values.take([int(codes.argmin())]), values.take([int(codes.argmax())])
