"""Ids of new rows: who gets which, and who gets none."""

from __future__ import annotations

from dataclasses import replace

from lakebed.commit.row_ids import RowIdRules, number_rows
from lakebed.metadata.data_file import EMPTY_STATS, DataFile, FileSource
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.types.binary_row import EMPTY_ROW


def _file(name: str, rows: int = 10, source: FileSource = FileSource.APPEND) -> DataFile:
    return DataFile(name, 1, rows, EMPTY_ROW, EMPTY_ROW, EMPTY_STATS, EMPTY_STATS, 0, 0, 0, 0, file_source=source)


def _entry(file: DataFile, partition: bytes = b"", kind: EntryKind = EntryKind.ADD) -> ManifestEntry:
    return ManifestEntry(kind, partition, 0, -1, file)


def test_new_files_follow_each_other() -> None:
    """Each file begins where the one before ended; the next commit goes on from there."""
    entries, next_id = number_rows([_entry(_file("a", 3)), _entry(_file("b", 4))], 100, 7, RowIdRules())
    assert [entry.file.first_row_id for entry in entries] == [100, 103]
    assert next_id == 107
    assert {(entry.file.min_sequence_number, entry.file.max_sequence_number) for entry in entries} == {(7, 7)}


def test_partitions_come_one_after_the_other() -> None:
    """Rows of a partition get ids without gaps if the table asks for it, and files keep their order in the manifest."""
    given = [_entry(_file("a"), b"p"), _entry(_file("b"), b"q"), _entry(_file("c"), b"p")]
    grouped, _ = number_rows(given, 0, 1, RowIdRules(by_partition=True))
    assert [(entry.file.file_name, entry.file.first_row_id) for entry in grouped] == [("a", 0), ("b", 20), ("c", 10)]
    plain, _ = number_rows(given, 0, 1, RowIdRules(by_partition=False))
    assert [entry.file.first_row_id for entry in plain] == [0, 10, 20]


def test_who_gets_no_ids() -> None:
    """Files that go, that compaction made, that have ids, or whose rows carry them, are left alone."""
    given = [
        _entry(_file("gone"), kind=EntryKind.DELETE),
        _entry(_file("compacted", source=FileSource.COMPACT)),
        _entry(replace(_file("numbered"), first_row_id=3)),
        _entry(replace(_file("carrying"), write_cols=("x", "_ROW_ID", "_SEQUENCE_NUMBER"))),
    ]
    entries, next_id = number_rows(given, 50, 1, RowIdRules())
    assert next_id == 50
    assert [entry.file.first_row_id for entry in entries] == [None, None, 3, None]
    assert entries[0] == given[0]


def test_sequence_numbers_of_rewritten_files() -> None:
    """Where some rows are new and others old, the old smallest number stays and the largest becomes the snapshot."""
    mixed = replace(_file("mixed"), min_sequence_number=2, write_cols=("_ROW_ID",))
    old = replace(mixed, min_sequence_number=2, max_sequence_number=4)
    entries, _ = number_rows([_entry(mixed), _entry(old)], 0, 9, RowIdRules())
    numbers = [(entry.file.min_sequence_number, entry.file.max_sequence_number) for entry in entries]
    assert numbers == [(2, 9), (2, 4)]
