"""Data files as they are written: what is in them, what is said of them, and what is left after a failure."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.datafiles.datafile_samples import Bucket, fields

from lakebed.datafiles.restamp import restamp
from lakebed.datafiles.rolling_writer import FileLayout
from lakebed.errors import StorageError
from lakebed.formats import format_of_file
from lakebed.metadata.data_file import EMPTY_STATS
from lakebed.testing.faulty_io import FaultyFileIO
from lakebed.types.binary_row import EMPTY_ROW, decode_row
from lakebed.types.key_value import SEQUENCE_NUMBER, VALUE_KIND

COLUMNS = fields(id="INT NOT NULL", v="STRING")
FORMATS = ["parquet", "orc", "avro"]


def _plain(count: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(range(count), pa.int32()), "v": [f"v{n}" for n in range(count)]})


def _keyed(*rows: tuple[int, int, str]) -> pa.RecordBatch:
    """Rows of (sequence number, kind, id as value)."""
    return pa.record_batch(
        {
            SEQUENCE_NUMBER: pa.array([row[0] for row in rows], pa.int64()),
            VALUE_KIND: pa.array([row[1] for row in rows], pa.int8()),
            "id": pa.array([int(row[2]) for row in rows], pa.int32()),
            "v": pa.array([f"v{row[2]}" for row in rows]),
        }
    )


@pytest.mark.parametrize("file_format", FORMATS)
def test_an_append_file(file_format: str) -> None:
    """A file without key holds the rows and is described by counts, numbers and statistics."""
    bucket = Bucket(FileLayout(3, COLUMNS), file_format)
    writer = bucket.writer(first_sequence_number=100)
    writer.write(_plain(4))
    writer.write(_plain(3))
    (file,) = writer.close()
    assert file.file_name == f"data-0.{file_format}"
    assert file.size_bytes == len(bucket.fileio.read_bytes(bucket.path(file.file_name)))
    assert (file.row_count, file.schema_id, file.level, file.delete_row_count) == (7, 3, 0, 0)
    assert (file.min_sequence_number, file.max_sequence_number) == (100, 106)
    assert (file.min_key, file.max_key, file.key_stats) == (EMPTY_ROW, EMPTY_ROW, EMPTY_STATS)
    types = [column.type for column in COLUMNS]
    assert [value.as_py() for value in decode_row(file.value_stats.min_values, types)] == [0, "v0"]
    assert [value.as_py() for value in decode_row(file.value_stats.max_values, types)] == [3, "v3"]
    assert file.value_stats.null_counts == (0, 0)


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_keyed_file(file_format: str) -> None:
    """A file with key has copies of the key in front, and its key and sequence ranges and deletes are recorded."""
    bucket = Bucket(FileLayout(0, COLUMNS, COLUMNS[:1]), file_format)
    (file,) = bucket.written(_keyed((7, 0, "1"), (5, 3, "2"), (9, 1, "4")))
    key_types = [COLUMNS[0].type]
    assert [decode_row(key, key_types)[0].as_py() for key in (file.min_key, file.max_key)] == [1, 4]
    assert (file.min_sequence_number, file.max_sequence_number) == (5, 9)
    assert file.delete_row_count == 2
    assert decode_row(file.key_stats.max_values, key_types)[0].as_py() == 4
    path = bucket.path(file.file_name)
    with bucket.fileio.open_input(path) as source, format_of_file(path).open_reader(source, path) as reader:
        assert reader.column_names == ["_KEY_id", SEQUENCE_NUMBER, VALUE_KIND, "id", "v"]


def test_rolling_by_rows() -> None:
    """A full file is closed and another begun, within a batch as well; numbers go on."""
    bucket = Bucket(FileLayout(0, COLUMNS))
    files = bucket.written(_plain(25), target_row_count=10)
    assert [file.row_count for file in files] == [10, 10, 5]
    assert [file.min_sequence_number for file in files] == [0, 10, 20]
    assert bucket.left() == [file.file_name for file in files]


def test_rolling_by_size() -> None:
    """Files end soon after they reach the wanted size."""
    bucket = Bucket(FileLayout(0, fields(b="BYTES")))
    noise = np.random.default_rng(1).bytes(1 << 20)
    rows = pa.record_batch({"b": [noise[i : i + 4096] for i in range(0, len(noise), 4096)]})
    writer = bucket.writer(target_size_bytes=256 << 10)
    for start in range(0, rows.num_rows, 16):
        writer.write(rows.slice(start, 16))
    files = writer.close()
    assert len(files) in (3, 4)
    assert sum(file.row_count for file in files) == rows.num_rows
    assert all(file.size_bytes < 400 << 10 for file in files)


def test_nothing_written_is_no_file() -> None:
    """Without rows there is no file."""
    bucket = Bucket(FileLayout(0, COLUMNS))
    assert bucket.written(_plain(0)) == []
    assert bucket.left() == []


@pytest.mark.parametrize("file_format", FORMATS)
def test_aborting_removes_all_files(file_format: str) -> None:
    """Giving up removes the closed files and the open one."""
    bucket = Bucket(FileLayout(0, COLUMNS), file_format)
    writer = bucket.writer(target_row_count=10)
    writer.write(_plain(25))
    writer.abort()
    assert bucket.left() == []
    assert writer.close() == []


def test_a_failure_at_any_operation_removes_all_files() -> None:
    """Whichever file operation of a write fails, the error is the file system's and no file stays behind."""
    sound = Bucket(FileLayout(0, COLUMNS))
    counting = FaultyFileIO(sound.fileio)
    sound.written_to(counting, _plain(25), target_row_count=10)
    assert len(counting.ops) > 6
    for number in range(1, len(counting.ops) + 1):
        bucket = Bucket(FileLayout(0, COLUMNS))
        with pytest.raises(StorageError):
            bucket.written_to(FaultyFileIO(bucket.fileio, fail_at=number), _plain(25), target_row_count=10)
        assert bucket.left() == [], counting.ops[number - 1]


@pytest.mark.parametrize("file_format", FORMATS)
def test_restamping(file_format: str) -> None:
    """A copy has the same rows under later sequence numbers, and the description follows."""
    bucket = Bucket(FileLayout(0, COLUMNS, COLUMNS[:1]), file_format)
    (file,) = bucket.written(_keyed((0, 0, "1"), (1, 3, "2")))
    name = f"moved.{file_format}"
    moved = restamp(
        bucket.fileio, bucket.path(file.file_name), bucket.path(name), file, bucket.layout, bucket.rules(), 40
    )
    assert (moved.file_name, moved.min_sequence_number, moved.max_sequence_number) == (name, 40, 41)
    assert moved.size_bytes == len(bucket.fileio.read_bytes(bucket.path(name)))
    assert (moved.min_key, moved.value_stats, moved.row_count) == (file.min_key, file.value_stats, 2)
    path = bucket.path(name)
    with bucket.fileio.open_input(path) as source, format_of_file(path).open_reader(source, path) as reader:
        ((_, rows),) = reader.read(bucket.layout.physical)
    assert rows.column(SEQUENCE_NUMBER).to_pylist() == [40, 41]
    assert rows.column(VALUE_KIND).to_pylist() == [0, 3]
    assert rows.column("v").to_pylist() == ["v1", "v2"]
