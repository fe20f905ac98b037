"""Small pieces of metadata for tests of the metadata stores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakebed.metadata.data_file import EMPTY_STATS, DataFile, SimpleStats
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.types.binary_row import EMPTY_ROW

KEY_1 = bytes.fromhex("0000000100000000000000000100000000000000")
KEY_3 = bytes.fromhex("0000000100000000000000000300000000000000")


def data_file(name: str = "data-a-0.parquet", **changes: Any) -> DataFile:
    """A level-0 file of a key table, with any member changed."""
    file = DataFile(
        file_name=name,
        size_bytes=1234,
        row_count=3,
        min_key=KEY_1,
        max_key=KEY_3,
        key_stats=SimpleStats(KEY_1, KEY_3, (0,)),
        value_stats=EMPTY_STATS,
        min_sequence_number=0,
        max_sequence_number=2,
        schema_id=0,
        level=0,
        creation_time_ms=1794766237632,
        delete_row_count=0,
        file_source=0,
        value_stats_cols=(),
    )
    return replace(file, **changes)


FULL_FILE = data_file(
    "data-full-0.parquet",
    value_stats=SimpleStats(b"\x00\x01", b"\xff\x00", (0, None, 7)),
    extra_files=("data-full-0.parquet.index",),
    embedded_index=b"\x00\xffindex",
    file_source=1,
    value_stats_cols=("a", "b", "ü"),
    external_path="s3://elsewhere/data-full-0.parquet",
    first_row_id=-(1 << 62),
    write_cols=("a",),
    write_cols_sequences=(1, 1 << 62),
    level=5,
    max_sequence_number=(1 << 63) - 1,
)
"""A data file with every member set."""


def entry(
    name: str = "data-a-0.parquet",
    kind: EntryKind = EntryKind.ADD,
    *,
    partition: bytes = EMPTY_ROW,
    bucket: int = 0,
    total_buckets: int = 1,
    **changes: Any,
) -> ManifestEntry:
    """An entry of a manifest."""
    return ManifestEntry(kind, partition, bucket, total_buckets, data_file(name, **changes))


def snapshot(snapshot_id: int = 1, **changes: Any) -> Snapshot:
    """An APPEND snapshot, with any member changed."""
    plain = Snapshot(
        id=snapshot_id,
        schema_id=0,
        base_manifest_list="manifest-list-a-0",
        delta_manifest_list="manifest-list-a-1",
        commit_user="writer",
        commit_identifier=snapshot_id,
        commit_kind=CommitKind.APPEND,
        time_millis=1000 * snapshot_id,
        total_record_count=3,
        delta_record_count=3,
    )
    return replace(plain, **changes)
