"""`t$file_indexes`: one row for each index within the data files' own indexes, such as a column's bloom filter.

An index lies in the manifest entry or in a file beside the data file; only its table of contents is read here.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakebed.datafiles.index.container import Place, contents
from lakebed.metadata.manifest import ManifestEntry
from lakebed.records import dataclass
from lakebed.table.system.base import SystemTable, TableState, each
from lakebed.table.system.file_columns import file_path
from lakebed.table.system.texts import partition_texts


@dataclass(frozen=True, slots=True)
class _Index:
    """One index of one column of one data file. Without a path it lies in the manifest entry."""

    partition: str
    entry: ManifestEntry
    data_path: str
    index_path: str | None
    container_bytes: int
    place: Place


def _indexes(state: TableState) -> Iterator[_Index]:
    context = state.context
    partitions = partition_texts(context, [entry.partition for entry in state.files])
    for partition, entry in zip(partitions, state.files, strict=True):
        path = file_path(context, entry)
        data, index_path = entry.file.embedded_index, None
        if data is None and entry.file.index_file is not None:
            index_path = f"{path.rpartition('/')[0]}/{entry.file.index_file}"
            data = context.fileio.read_bytes(index_path)
        if data is not None:
            for place in contents(data, index_path or path):
                yield _Index(partition, entry, path, index_path, len(data), place)


FILE_INDEXES = SystemTable[TableState, _Index](
    "file_indexes",
    _indexes,
    (
        each("partition", "STRING", lambda index: index.partition),
        each("bucket", "INT NOT NULL", lambda index: index.entry.bucket),
        each("file_path", "STRING NOT NULL", lambda index: index.data_path),
        each("file_size_in_bytes", "BIGINT NOT NULL", lambda index: index.entry.file.size_bytes),
        each("record_count", "BIGINT NOT NULL", lambda index: index.entry.file.row_count),
        each("schema_id", "BIGINT NOT NULL", lambda index: index.entry.file.schema_id),
        each("column_name", "STRING NOT NULL", lambda index: index.place.column),
        each("index_type", "STRING NOT NULL", lambda index: index.place.kind),
        each("storage_type", "STRING NOT NULL", lambda index: "FILE" if index.index_path else "EMBEDDED"),
        each("index_file_path", "STRING", lambda index: index.index_path),
        each("index_size_in_bytes", "BIGINT NOT NULL", lambda index: index.place.size_bytes),
        each("index_container_size_in_bytes", "BIGINT NOT NULL", lambda index: index.container_bytes),
        each("is_empty", "BOOLEAN NOT NULL", lambda index: index.place.is_empty),
    ),
)

__all__ = ["FILE_INDEXES"]
