"""The form in which changes of a source travel through Spark: one row for a chunk of changes of one table.

Spark's schema of the stream never changes, whatever happens to the tables of the source: the columns of a chunk are
described by a JSON text beside it, its rows are an Arrow IPC stream. Sources make such rows, the pipeline reads them;
neither knows the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from lakebed.cdc.storage import PLAIN, Storage
from lakebed.errors import InvalidData, LakebedError, rebuilt
from lakebed.fileio.local import LocalFileIO
from lakebed.records import dataclass
from lakebed.types.arrow import as_data_type, to_arrow_type
from lakebed.types.logical import DataType
from lakebed.types.row_kind import RowKind

ROWS: Final = "rows"
TRUNCATE: Final = "truncate"
SCHEMA: Final = "schema"
SKIPPED: Final = "skipped"
TROUBLE: Final = "trouble"
"""Kinds of envelope rows: changes of rows, all rows of the table deleted, a change of the columns alone, messages that
could not be read and were left out, of which `columns` says how many and why, and changes of a table that could not be
read, with the error in `columns` and the raw rows in `payload` if only some rows are concerned."""

COPY: Final = "copy"
STREAM: Final = "stream"
"""Phases: rows read from the table as it is, and changes from the log."""

KIND: Final = "_kind"
OP_TS: Final = "_op_ts"
UNCHANGED: Final = "_unchanged."
ABOUT: Final = "_about."
"""Columns of a payload beside those of the table; the last two are prefixes: of marks, and of what is told of a row's
message."""

RAW_KEY: Final = "_raw_key"
"""What else is told of messages: their keys as bytes, for formats that look into them. Rows do not carry it."""
CHANGED_AT: Final = "changed_at"
TRANSACTION: Final = "transaction"
LOG_POSITION: Final = "position"
NUMBER: Final = "number"
"""What is told of a change, behind `ABOUT`, if somebody keeps the past: when its transaction was committed (or, of the
copy, its row read), in microseconds; the transaction; its place in the log; which change of it this is."""

_OP_TS_TYPE: Final = pa.timestamp("ms", tz="UTC")
MOST_ROWS: Final = 16_384
"""As many changes a chunk has at most, about."""

ENVELOPE: Final = pa.schema(
    [
        pa.field("ordinal", pa.int64(), nullable=False),
        pa.field("database", pa.string(), nullable=False),
        pa.field("schema", pa.string(), nullable=False),
        pa.field("table", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("columns", pa.string(), nullable=False),
        pa.field("phase", pa.string(), nullable=False),
        pa.field("payload", pa.binary()),
        pa.field("count", pa.int64()),
        pa.field("latest_ms", pa.int64()),
        pa.field("lacks_values", pa.bool_()),
        pa.field("place", pa.string()),
    ]
)
ENVELOPE_DDL: Final = (
    "ordinal bigint not null, database string not null, schema string not null, table string not null, "
    "kind string not null, columns string not null, phase string not null, payload binary, count bigint, "
    "latest_ms bigint, lacks_values boolean, place string"
)


@dataclass(frozen=True, slots=True, order=True)
class SourceName:
    """A table of the source, in its own spelling. `schema` is empty where the source has none."""

    database: str
    schema: str
    table: str

    def __str__(self) -> str:
        return ".".join(part for part in (self.database, self.schema, self.table) if part)


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of a source table.

    `default` is the value, as text, of rows that were there before the column was added (no expression); `id` is what
    the column keeps when it is renamed, if the source has such a thing.
    """

    name: str
    type: DataType
    comment: str | None = None
    default: str | None = None
    id: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", as_data_type(self.type, self.name))

    def to_json(self) -> dict[str, Any]:
        """The object that stands for the column."""
        return {
            "name": self.name,
            "type": str(self.type),
            "comment": self.comment,
            "default": self.default,
            "id": self.id,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`."""
        return cls(str(body["name"]), body["type"], body.get("comment"), body.get("default"), body.get("id"))


@dataclass(frozen=True, slots=True)
class NameChanges:
    """What a statement did to columns, by their names: for sources whose columns have nothing else that stays."""

    renamed: tuple[tuple[str, str], ...] = ()
    """Old and new names, all at once."""
    dropped: tuple[str, ...] = ()
    is_new_table: bool = False
    """Another table has the name now, with these columns."""


_MARKS: Final = ("base64", "partial")
"""What else may be so of a description."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a source says of a table at one moment: its columns, its primary key, its comment.

    A source that knows no types says so: its columns are texts, and types of the lake's columns are left alone. One
    with `changes` tells what a statement did: its columns are those that the statement was about, others stay.
    """

    columns: tuple[SourceColumn, ...]
    primary_key: tuple[str, ...] = ()
    comment: str | None = None
    typed: bool = True
    changes: NameChanges | None = None
    base64: bool = False
    """Whether texts of a source without types hold bytes in base64."""
    partial: bool = False
    """Whether these are some of the columns: that others are not named says nothing of them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> SourceColumn | None:
        """The column of that name, if there is one."""
        return next((column for column in self.columns if column.name == name), None)

    def to_text(self) -> str:
        """The JSON text of an envelope's column `columns`; equal descriptions have equal texts."""
        body: dict[str, Any] = {
            "columns": [column.to_json() for column in self.columns],
            "primary_key": list(self.primary_key),
            "comment": self.comment,
        } | ({} if self.typed else {"typed": False})
        body |= {name: True for name in _MARKS if getattr(self, name)}
        if self.changes is not None:
            body["changes"] = asdict(self.changes)
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Inverse of `to_text`."""
        try:
            body = json.loads(text)
            columns = tuple(SourceColumn.from_json(column) for column in body["columns"])
            key = tuple(body.get("primary_key") or ())
            changes = body.get("changes")
            if changes is not None:
                renamed = tuple((str(old), str(new)) for old, new in changes["renamed"])
                changes = NameChanges(renamed, tuple(changes["dropped"]), bool(changes["is_new_table"]))
            marks = {name: bool(body.get(name, False)) for name in _MARKS}
            return cls(columns, key, body.get("comment"), body.get("typed", True), changes, **marks)
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidData(
                f"the description of a source table is not understood: {text[:200]}",
                hint="it is JSON with `columns` (name, type, comment, default, id), `primary_key` and `comment`",
            ) from error

    def payload_schema(self, unchanged: Iterable[str] = ()) -> pa.Schema:
        """Arrow schema of a payload with all columns, and marks for those that may come without their value."""
        columns = [pa.field(column.name, to_arrow_type(column.type)) for column in self.columns]
        marks = [pa.field(UNCHANGED + name, pa.bool_()) for name in unchanged]
        return pa.schema([pa.field(KIND, pa.int8()), pa.field(OP_TS, _OP_TS_TYPE), *columns, *marks])


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table that a source has to offer."""

    name: SourceName
    description: Description


@dataclass(frozen=True, slots=True)
class Chunk:
    """One envelope row. `columns` is the text of a `Description`: chunks of one table mostly share it.

    `place` says where the payload lies if it is not here (see `cdc/payloads`). A source may say how many changes there
    are, when the last was made, and whether values are missing in them; with None in `count` somebody has to look.
    """

    ordinal: int
    name: SourceName
    kind: str
    columns: str
    phase: str
    payload: bytes | None = field(default=None, repr=False)
    count: int | None = None
    latest_ms: int | None = None
    lacks_values: bool | None = None
    place: str | None = None

    def rows(self) -> pa.RecordBatch:
        """The changes inside."""
        return decode_rows(payload_at(self.place) if self.place is not None else self.payload or b"")


def payload_rows(
    kinds: np.ndarray[Any, Any] | pa.Array,
    op_ts: pa.Array | None,
    columns: Mapping[str, pa.Array],
    unchanged: Mapping[str, pa.Array] | None = None,
    about: Mapping[str, pa.Array] | None = None,
) -> pa.RecordBatch:
    """Rows of a payload. Without `op_ts` they are of the copy: their time is the epoch."""
    kinds = pa.array(kinds, pa.int8()) if isinstance(kinds, np.ndarray) else kinds.cast(pa.int8())
    times = pa.array(np.zeros(len(kinds), np.int64)).cast(_OP_TS_TYPE) if op_ts is None else op_ts.cast(_OP_TS_TYPE)
    marks = {UNCHANGED + name: mark for name, mark in (unchanged or {}).items()}
    told = {ABOUT + name: values for name, values in (about or {}).items()}
    # By place, not by name: a table may have a column that is called like one of ours.
    parts = [(KIND, kinds), (OP_TS, times), *columns.items(), *marks.items(), *told.items()]
    return pa.RecordBatch.from_arrays([values for _, values in parts], names=[name for name, _ in parts])


def payload_columns(rows: pa.RecordBatch) -> dict[str, pa.Array]:
    """The columns of the table and their marks, by name: all but the kind and the time, which are the first two."""
    return {rows.schema.field(i).name: rows.column(i) for i in range(2, rows.num_columns)}


def copied_rows(columns: Mapping[str, pa.Array], count: int, read_at_us: int | None = None) -> pa.RecordBatch:
    """Rows of a payload that are all inserts of the copy; `read_at_us` is told of them if somebody keeps the past."""
    about = None if read_at_us is None else {CHANGED_AT: moments(np.full(count, read_at_us, np.int64))}
    return payload_rows(np.full(count, RowKind.INSERT, np.int8), None, columns, about=about)


def moments(micros: np.ndarray[Any, Any]) -> pa.Array:
    """Microseconds since 1970 as values of `CHANGED_AT`."""
    return pa.array(micros, pa.int64()).cast(pa.timestamp("us", tz="UTC"))


def cut_payload(op_ts: pa.Array | None, about: Mapping[str, pa.Array]) -> bytes:
    """The payload of a TRUNCATE, which tells what there is to tell of it: one delete without columns."""
    return encode_rows(payload_rows(np.array([RowKind.DELETE], np.int8), op_ts, {}, about=about))


def encode_rows(rows: pa.RecordBatch, compression: str | None = None) -> bytes:
    """The payload of some rows. Compression (`lz4`, `zstd`) pays where payloads are kept or sent far."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
        stream.write_batch(rows)
    return bytes(sink.getvalue())


def decode_rows(payload: bytes | pa.Buffer) -> pa.RecordBatch:
    """The rows of a payload."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(payload)) as stream:
            batches = list(stream)
            if len(batches) == 1:
                return batches[0]
            table = pa.Table.from_batches(batches, schema=stream.schema).combine_chunks()
            whole = table.to_batches()
            return whole[0] if whole else pa.RecordBatch.from_pylist([], schema=stream.schema)
    except pa.ArrowException as error:
        raise InvalidData(
            f"the payload of a change is no Arrow stream: {error}", hint="this is a fault of the source; report it"
        ) from error


def chunks_to_arrow(chunks: Sequence[Chunk]) -> pa.RecordBatch:
    """Chunks as rows of the envelope, as a Spark source hands them over."""
    columns = [
        [chunk.ordinal for chunk in chunks],
        [chunk.name.database for chunk in chunks],
        [chunk.name.schema for chunk in chunks],
        [chunk.name.table for chunk in chunks],
        [chunk.kind for chunk in chunks],
        [chunk.columns for chunk in chunks],
        [chunk.phase for chunk in chunks],
        [chunk.payload for chunk in chunks],
        [chunk.count for chunk in chunks],
        [chunk.latest_ms for chunk in chunks],
        [chunk.lacks_values for chunk in chunks],
        [chunk.place for chunk in chunks],
    ]
    arrays = [pa.array(values, part.type) for values, part in zip(columns, ENVELOPE, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ENVELOPE)


def chunks_from_arrow(rows: pa.RecordBatch | pa.Table) -> list[Chunk]:
    """Inverse of `chunks_to_arrow`; one chunk for each row."""
    values = [rows.column(name).to_pylist() for name in ENVELOPE.names]
    return [
        Chunk(ordinal, SourceName(database, schema, table), kind, columns, phase, *rest)
        for ordinal, database, schema, table, kind, columns, phase, *rest in zip(*values, strict=True)
    ]


# --- What is wrong with changes that a source could not read: the error, and the rows as the source has them -----


RAW: Final = pa.schema([("kind", pa.string()), ("op_ts", _OP_TS_TYPE), ("why", pa.string()), ("raw", pa.string())])
"""Rows of the payload of a trouble: `raw` is JSON, of the columns as the source spells them."""


def trouble_chunk(name: SourceName, phase: str, error: LakebedError, raw: pa.RecordBatch | None = None) -> Chunk:
    """A chunk that stands for changes that could not be read. With `raw` they are all there, in the source's spelling;
    without it nobody knows how many there are."""
    body = {"error": type(error).__name__, "message": error.message, "hint": error.hint}
    payload = None if raw is None else encode_rows(raw)
    return Chunk(0, name, TROUBLE, json.dumps(body, ensure_ascii=False), phase, payload)


def trouble_of(chunk: Chunk) -> LakebedError:
    """The error that a chunk stands for."""
    body = json.loads(chunk.columns)
    return rebuilt(body["error"], body["message"], body["hint"])


# --- Where a payload lies that did not come with its envelope row: a part of a file, as a text --------------------


def place_of(start: int, size_bytes: int, url: str) -> str:
    """The text for a part of a file."""
    return f"{start}:{size_bytes}:{url}"


def size_at(place: str) -> int:
    """How many bytes the payload at a place has."""
    return int(place.split(":", 2)[1])


def payload_at(place: str, storage: Storage = PLAIN) -> pa.Buffer:
    """The payload at a place. On a local disk it is mapped, not read."""
    start, size, url = place.split(":", 2)
    fileio, path = storage.open(url)
    with pa.memory_map(path) if isinstance(fileio, LocalFileIO) else fileio.open_input(path) as file:
        file.seek(int(start))
        return file.read_buffer(int(size))


__all__ = [
    "ABOUT",
    "CHANGED_AT",
    "COPY",
    "ENVELOPE",
    "ENVELOPE_DDL",
    "KIND",
    "LOG_POSITION",
    "MOST_ROWS",
    "NUMBER",
    "OP_TS",
    "RAW",
    "RAW_KEY",
    "ROWS",
    "SCHEMA",
    "SKIPPED",
    "STREAM",
    "TRANSACTION",
    "TROUBLE",
    "TRUNCATE",
    "UNCHANGED",
    "Chunk",
    "Description",
    "NameChanges",
    "SourceColumn",
    "SourceName",
    "SourceTable",
    "chunks_from_arrow",
    "chunks_to_arrow",
    "copied_rows",
    "cut_payload",
    "decode_rows",
    "encode_rows",
    "moments",
    "payload_at",
    "payload_columns",
    "payload_rows",
    "place_of",
    "size_at",
    "trouble_chunk",
    "trouble_of",
]
