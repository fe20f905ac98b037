"""Types of Kafka Connect's schemas, as Debezium uses them, and how their JSON values become values of a column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.formats.base import query
from lakebed.errors import InvalidData
from lakebed.records import dataclass
from lakebed.schema.casts import cast_array
from lakebed.types.arrow import to_arrow_type
from lakebed.types.cast_text import in_utc
from lakebed.types.logical import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    ArrayType,
    DataType,
    MapType,
    TypeRoot,
    decimal,
    is_root,
    time,
    timestamp,
    timestamp_ltz,
    with_nullable,
)

_PLAIN: Final[dict[str, DataType]] = {
    "boolean": BOOLEAN,
    "int8": TINYINT,
    "int16": SMALLINT,
    "int32": INT,
    "int64": BIGINT,
    "float": FLOAT,
    "float32": FLOAT,
    "double": DOUBLE,
    "float64": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "array": ArrayType(STRING),
    "map": MapType(with_nullable(STRING, False), STRING),
    "struct": MapType(with_nullable(STRING, False), STRING),
}
DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
COUNTS: Final[dict[str, tuple[DataType, str]]] = {
    "io.debezium.time.Date": (DATE, "d"),
    "org.apache.kafka.connect.data.Date": (DATE, "d"),
    "io.debezium.time.Time": (time(3), "ms"),
    "org.apache.kafka.connect.data.Time": (time(3), "ms"),
    "io.debezium.time.MicroTime": (time(6), "us"),
    "io.debezium.time.NanoTime": (time(9), "ns"),
    "io.debezium.time.Timestamp": (timestamp(3), "ms"),
    "org.apache.kafka.connect.data.Timestamp": (timestamp(3), "ms"),
    "io.debezium.time.MicroTimestamp": (timestamp(6), "us"),
    "io.debezium.time.NanoTimestamp": (timestamp(9), "ns"),
}
"""Logical types that are counts, with what they count."""
ZONED: Final = "io.debezium.time.ZonedTimestamp"


@dataclass(frozen=True, slots=True)
class ConnectColumn:
    """A column: its type in the lake, None if it is not known, and how its values are written."""

    name: str
    type: DataType | None
    form: str = "plain"
    unit: str = ""
    scale: int = 0

    @classmethod
    def untyped(cls, name: str) -> ConnectColumn:
        """A column of which only the name is known."""
        return cls(name, None)

    @property
    def json_type(self) -> str:
        """What DuckDB shall read it as."""
        if isinstance(self.type, ArrayType):
            return "VARCHAR[]"
        return "MAP(VARCHAR, VARCHAR)" if isinstance(self.type, MapType) else "VARCHAR"

    def values(self, read: pa.Array) -> pa.Array:
        """The values of what was read."""
        if self.type is None:
            return read
        try:
            return self._values(read, self.type)
        except (InvalidData, pa.ArrowException, ValueError) as error:
            text = error.message if isinstance(error, InvalidData) else str(error)
            raise InvalidData(
                f"column `{self.name}`: {text}", hint="the message's schema and its values do not belong together"
            ) from error

    def _values(self, read: pa.Array, data_type: DataType) -> pa.Array:
        arrow = to_arrow_type(data_type)
        if isinstance(data_type, ArrayType | MapType):
            return read.cast(arrow)
        match self.form:
            case "count":
                return counted(read.cast(pa.int64()), self.unit, arrow)
            case "decimal":
                return _decimals(read, self.scale, arrow)
            case "bytes":
                return _decoded(read)
            case "zoned":
                return cast_array(in_utc(read), STRING, data_type)
        if is_root(data_type, TypeRoot.BOOLEAN):
            return pc.equal(pc.utf8_lower(read), "true")
        return cast_array(read, STRING, data_type)


def connect_column(body: Mapping[str, Any]) -> ConnectColumn:
    """The column that a field of a schema stands for."""
    name, kind, logical = str(body["field"]), str(body["type"]), body.get("name")
    nullable = bool(body.get("optional", False))
    if logical in COUNTS:
        data_type, unit = COUNTS[logical]
        return ConnectColumn(name, with_nullable(data_type, nullable), "count", unit)
    if logical == ZONED:
        return ConnectColumn(name, with_nullable(timestamp_ltz(6), nullable), "zoned")
    if logical == DECIMAL:
        parameters = body.get("parameters") or {}
        scale, precision = int(parameters.get("scale", 0)), int(parameters.get("connect.decimal.precision", 38))
        return ConnectColumn(name, with_nullable(decimal(precision, scale), nullable), "decimal", scale=scale)
    data_type = _PLAIN.get(kind, STRING)
    return ConnectColumn(name, with_nullable(data_type, nullable), "bytes" if kind == "bytes" else "plain")


def counted(counts: pa.Array, unit: str, arrow: pa.DataType) -> pa.Array:
    """Values of counts of days, or of parts of a second."""
    if unit == "d":
        return counts.cast(pa.int32()).cast(arrow)
    if pa.types.is_time(arrow):
        divisor = {"ms": 1, "us": 1_000, "ns": 1_000_000}[unit]
        return pc.divide(counts, divisor).cast(pa.int32()).cast(arrow)
    return counts.cast(pa.timestamp(unit)).cast(arrow)


def _decoded(texts: pa.Array) -> pa.Array:
    """Bytes of base64, which DuckDB decodes for a whole column."""
    return query("SELECT from_base64(json) AS bytes FROM given", texts).column(0).combine_chunks().cast(pa.binary())


def _decimals(texts: pa.Array, scale: int, arrow: pa.DataType) -> pa.Array:
    """Unscaled numbers, in base64."""
    raw = _decoded(texts)
    return unscaled_decimals(pa.concat_arrays(raw.chunks) if isinstance(raw, pa.ChunkedArray) else raw, scale, arrow)


def unscaled_decimals(raw: pa.Array, scale: int, arrow: pa.DataType) -> pa.Array:
    """Values of unscaled numbers of any length, as big-endian bytes."""
    lengths = pc.fill_null(pc.binary_length(raw), 0).to_numpy().astype(np.int64)
    if len(lengths) and lengths.max() > 16:
        raise InvalidData("a decimal has more than 38 digits", hint="set decimal.handling.mode to string at the source")
    filled = raw.fill_null(b"")
    data = np.frombuffer(filled.buffers()[2] or b"", np.uint8)
    starts = np.frombuffer(filled.buffers()[1], np.int32)[filled.offset : filled.offset + len(filled)].astype(np.int64)
    # Little-endian, 16 bytes each: the sign of the first byte is carried on.
    words = np.zeros((len(raw), 16), np.uint8)
    has = lengths > 0
    negative = np.zeros(len(raw), np.bool_)
    negative[has] = data[starts[has]] >= 0x80
    words[negative] = 0xFF
    for place in range(int(lengths.max(initial=0))):
        here = lengths > place
        words[here, place] = data[(starts + lengths - 1 - place)[here]]
    values = pa.Array.from_buffers(pa.decimal128(38, scale), len(raw), [None, pa.py_buffer(words.tobytes())])
    return pc.if_else(pc.is_valid(raw), values, pa.scalar(None, values.type)).cast(arrow)


__all__ = ["COUNTS", "DECIMAL", "ZONED", "ConnectColumn", "connect_column", "counted", "unscaled_decimals"]
