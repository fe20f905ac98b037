"""What a manifest says about one data file: name, size, key range, sequence range, level, statistics.

Writers make a `DataFile` when they close a file, commit messages carry it as JSON, manifests as Avro, and readers plan
with it. It describes a file; it never opens one. Statistics and keys stay undecoded BinaryRows.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any

from lakebed.errors import InvalidArgument, Unsupported
from lakebed.metadata.avro_container import Record, optional, required
from lakebed.metadata.stats import EMPTY_STATS, SimpleStats, build_stats, stats_schema, stats_to_record
from lakebed.records import dataclass

INDEX_SUFFIX = ".index"
"""What the name of a data file gets for the name of the file beside it that holds its indexes."""


class FileSource(IntEnum):
    """What made a data file."""

    APPEND = 0
    COMPACT = 1


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file. `creation_time_ms` is the writer's wall clock read as if it were UTC (`creation_time_to_epoch`).

    `value_stats_cols` names the columns of `value_stats`; `None` means all columns of the file's schema.
    `external_path` is where the file really is when it does not lie in its bucket directory.
    """

    file_name: str
    size_bytes: int
    row_count: int
    min_key: bytes
    max_key: bytes
    key_stats: SimpleStats
    value_stats: SimpleStats
    min_sequence_number: int
    max_sequence_number: int
    schema_id: int
    level: int
    extra_files: tuple[str, ...] = ()
    creation_time_ms: int | None = None
    delete_row_count: int | None = None
    embedded_index: bytes | None = None
    file_source: int | None = None
    value_stats_cols: tuple[str, ...] | None = None
    external_path: str | None = None
    first_row_id: int | None = None
    write_cols: tuple[str, ...] | None = None
    write_cols_sequences: tuple[int, ...] | None = None

    def at_level(self, level: int) -> DataFile:
        """The same file, said to lie on another level: compaction may move a file without rewriting it."""
        return replace(self, level=level)

    @property
    def index_file(self) -> str | None:
        """The name of the file beside it that holds its indexes, if there is one."""
        return next((name for name in self.extra_files if name.endswith(INDEX_SUFFIX)), None)

    def to_json(self) -> dict[str, Any]:
        """Plain values only, bytes as base64."""
        return {field.name: _to_plain(getattr(self, field.name)) for field in fields(self)}

    @staticmethod
    def from_json(body: dict[str, Any]) -> DataFile:
        """Inverse of `to_json`."""
        try:
            values = dict(body)
            for name in _STATS:
                values[name] = SimpleStats.from_json(values[name])
            for name in _BYTES:
                if values[name] is not None:
                    values[name] = base64.b64decode(values[name], validate=True)
            for name in _TUPLES:
                if values[name] is not None:
                    values[name] = tuple(values[name])
            return DataFile(**values)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgument(
                f"this JSON does not describe a data file: {type(error).__name__} {error}",
                hint="pass what DataFile.to_json of the same version of lakebed returned",
            ) from error


_STATS = ("key_stats", "value_stats")
_BYTES = ("min_key", "max_key", "embedded_index")
_TUPLES = ("extra_files", "value_stats_cols", "write_cols", "write_cols_sequences")


def _to_plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, SimpleStats):
        return value.to_json()
    return list(value) if isinstance(value, tuple) else value


# Creation time -------------------------------------------------------------------------------------------------------
_EPOCH = datetime(1970, 1, 1)


def creation_time_from_epoch(epoch_ms: int) -> int:
    """The local wall clock at that instant, in milliseconds as if it were UTC: how data files record their birth."""
    offset = datetime.fromtimestamp(epoch_ms // 1000).astimezone().utcoffset() or timedelta()
    return epoch_ms + offset // timedelta(milliseconds=1)


def creation_time_to_epoch(creation_time_ms: int) -> int:
    """The instant of a recorded creation time, taking the writer to have lived in our time zone."""
    seconds, rest_ms = divmod(creation_time_ms, 1000)
    return int((_EPOCH + timedelta(seconds=seconds)).timestamp()) * 1000 + rest_ms


# Avro ----------------------------------------------------------------------------------------------------------------
_NAMES = {"type": "array", "items": "string"}


def data_file_schema(name: str) -> Record:
    """The Avro record type of a data file; `name` prefixes the names of the records within."""
    members = [
        required("_FILE_NAME", "string"),
        required("_FILE_SIZE", "long"),
        required("_ROW_COUNT", "long"),
        required("_MIN_KEY", "bytes"),
        required("_MAX_KEY", "bytes"),
        required("_KEY_STATS", stats_schema(f"{name}__KEY_STATS")),
        required("_VALUE_STATS", stats_schema(f"{name}__VALUE_STATS")),
        required("_MIN_SEQUENCE_NUMBER", "long"),
        required("_MAX_SEQUENCE_NUMBER", "long"),
        required("_SCHEMA_ID", "long"),
        required("_LEVEL", "int"),
        required("_EXTRA_FILES", _NAMES),
        optional("_CREATION_TIME", {"type": "long", "logicalType": "timestamp-millis"}),
        optional("_DELETE_ROW_COUNT", "long"),
        optional("_EMBEDDED_FILE_INDEX", "bytes"),
        optional("_FILE_SOURCE", "int"),
        optional("_VALUE_STATS_COLS", _NAMES),
        optional("_EXTERNAL_PATH", "string"),
        optional("_FIRST_ROW_ID", "long"),
        optional("_WRITE_COLS", _NAMES),
        optional("_WRITE_COLS_SEQUENCES", {"type": "array", "items": "long"}),
    ]
    return {"type": "record", "name": name, "fields": members}


def data_file_to_record(file: DataFile) -> Record:
    """The Avro record of a data file."""
    return {
        "_FILE_NAME": file.file_name,
        "_FILE_SIZE": file.size_bytes,
        "_ROW_COUNT": file.row_count,
        "_MIN_KEY": file.min_key,
        "_MAX_KEY": file.max_key,
        "_KEY_STATS": stats_to_record(file.key_stats),
        "_VALUE_STATS": stats_to_record(file.value_stats),
        "_MIN_SEQUENCE_NUMBER": file.min_sequence_number,
        "_MAX_SEQUENCE_NUMBER": file.max_sequence_number,
        "_SCHEMA_ID": file.schema_id,
        "_LEVEL": file.level,
        "_EXTRA_FILES": list(file.extra_files),
        "_CREATION_TIME": file.creation_time_ms,
        "_DELETE_ROW_COUNT": file.delete_row_count,
        "_EMBEDDED_FILE_INDEX": file.embedded_index,
        "_FILE_SOURCE": file.file_source,
        "_VALUE_STATS_COLS": _listed(file.value_stats_cols),
        "_EXTERNAL_PATH": file.external_path,
        "_FIRST_ROW_ID": file.first_row_id,
        "_WRITE_COLS": _listed(file.write_cols),
        "_WRITE_COLS_SEQUENCES": _listed(file.write_cols_sequences),
    }


def data_file_builders(name: str) -> dict[str, Callable[..., Any]]:
    """What makes objects of the records of `data_file_schema(name)`, whose fields are the members of `DataFile`."""
    return {name: DataFile, f"{name}__KEY_STATS": build_stats, f"{name}__VALUE_STATS": build_stats}


def _listed(values: tuple[Any, ...] | None) -> list[Any] | None:
    # fastavro takes a tuple in a union for a pair of type name and value, so it gets lists.
    return None if values is None else list(values)


def first_row_id(file: DataFile) -> int:
    """The id of a file's first row."""
    if file.first_row_id is None:
        raise Unsupported(
            f"file {file.file_name} was written before its rows had ids, so single columns can not be replaced",
            hint="copy the rows into a new table",
        )
    return file.first_row_id


__all__ = [
    "EMPTY_STATS",
    "INDEX_SUFFIX",
    "DataFile",
    "FileSource",
    "SimpleStats",
    "creation_time_from_epoch",
    "creation_time_to_epoch",
    "data_file_builders",
    "data_file_schema",
    "data_file_to_record",
]
