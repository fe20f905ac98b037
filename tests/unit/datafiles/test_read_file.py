"""One data file read as today's schema wants it: evolution, partition columns, row groups, and misfits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.datafiles.datafile_samples import Bucket, fields, schema_of

from lakebed.datafiles.rolling_writer import FileLayout
from lakebed.errors import CorruptFile, FileMissing
from lakebed.fileio.memory import MemoryFileIO
from lakebed.formats.base import WriteSettings
from lakebed.schema.system_columns import FILE_PATH, ROW_INDEX, TRACKING_FIELDS, VALUE_KIND
from lakebed.types.key_value import KIND_FIELD
from lakebed.types.logical import DataField, parse_type
from lakebed.types.predicate_parse import to_predicate

COLUMNS = fields(id="INT NOT NULL", v="STRING", n="INT")
OLD = schema_of(COLUMNS)
FORMATS = ["parquet", "orc", "avro"]


def _rows(count: int) -> pa.RecordBatch:
    numbers = pa.array(range(count), pa.int32())
    return pa.record_batch({"id": numbers, "v": [f"v{n}" for n in range(count)], "n": numbers})


def _no_partition(name: str) -> pa.Scalar:
    raise AssertionError(name)


@pytest.mark.parametrize("file_format", FORMATS)
def test_todays_columns_of_an_old_file(file_format: str) -> None:
    """Columns are found by id: renamed, widened, in another order; new ones are null."""
    bucket = Bucket(FileLayout(0, COLUMNS), file_format)
    (file,) = bucket.written(_rows(3))
    wanted = (
        DataField(3, "v", parse_type("DOUBLE")),
        DataField(1, "text", parse_type("STRING")),
        DataField(2, "n", parse_type("BIGINT")),
    )
    reader = bucket.reader(wanted, OLD)
    ((position, rows),) = reader.read(bucket.path(file.file_name), file, _no_partition)
    assert position == 0
    assert rows.to_pylist() == [{"v": None, "text": f"v{n}", "n": n} for n in range(3)]
    assert rows.schema.types == [pa.float64(), pa.string(), pa.int64()]


def test_partition_columns_come_from_the_manifest() -> None:
    """The value of the partition is told, whatever the file holds."""
    bucket = Bucket(FileLayout(0, COLUMNS))
    (file,) = bucket.written(_rows(3))
    reader = bucket.reader(COLUMNS[:2], OLD, partition_keys=frozenset({"v"}))
    ((_, rows),) = reader.read(bucket.path(file.file_name), file, {"v": pa.scalar("p")}.__getitem__)
    assert rows.to_pylist() == [{"id": n, "v": "p"} for n in range(3)]


def test_partition_columns_alone_open_no_file() -> None:
    """When only partition columns are wanted the manifest's row count is enough, batch by batch."""
    bucket = Bucket(FileLayout(0, COLUMNS))
    (file,) = bucket.written(_rows(5))
    bucket.fileio.delete(bucket.path(file.file_name))
    reader = bucket.reader(COLUMNS[1:2], OLD, partition_keys=frozenset({"v"}), batch_rows=2)
    parts = list(reader.read(bucket.path(file.file_name), file, {"v": pa.scalar("p")}.__getitem__))
    assert [(position, rows.num_rows) for position, rows in parts] == [(0, 2), (2, 2), (4, 1)]
    counted = list(bucket.reader((), OLD).read(bucket.path(file.file_name), file, _no_partition))
    assert sum(rows.num_rows for _, rows in counted) == 5


@pytest.mark.parametrize("file_format", FORMATS)
def test_batches_have_positions(file_format: str) -> None:
    """Batches are as large as asked, and each says where in the file it begins."""
    bucket = Bucket(FileLayout(0, COLUMNS), file_format)
    (file,) = bucket.written(_rows(10))
    reader = bucket.reader(COLUMNS, OLD, batch_rows=4)
    parts = list(reader.read(bucket.path(file.file_name), file, _no_partition))
    assert [(position, rows.num_rows) for position, rows in parts] == [(0, 4), (4, 4), (8, 2)]
    assert [rows.column("id")[0].as_py() for _, rows in parts] == [0, 4, 8]


def test_a_predicate_skips_but_does_not_filter() -> None:
    """A predicate that can not match skips the file's rows; one that may match gives them all, under old names too."""
    bucket = Bucket(FileLayout(0, COLUMNS))
    (file,) = bucket.written(_rows(10))
    wanted = (COLUMNS[0], DataField(2, "renamed", parse_type("INT")))
    reader = bucket.reader(wanted, OLD)
    schema = pa.schema([("id", pa.int32()), ("renamed", pa.int32())])

    def count(column: str, value: int) -> int:
        predicate = to_predicate([(column, "=", value)], schema)
        return sum(
            rows.num_rows for _, rows in reader.read(bucket.path(file.file_name), file, _no_partition, predicate)
        )

    assert count("renamed", 5) == 10
    assert count("renamed", 50) == 0
    assert count("id", 50) == 0


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_file_that_is_gone(file_format: str) -> None:
    """A missing file is named, with the likely cause."""
    bucket = Bucket(FileLayout(0, COLUMNS), file_format)
    (file,) = bucket.written(_rows(3))
    bucket.fileio.delete(bucket.path(file.file_name))
    with pytest.raises(FileMissing, match=f"{file.file_name} of the table is gone.*\n.*open the table again"):
        list(bucket.reader(COLUMNS, OLD).read(bucket.path(file.file_name), file, _no_partition))


@pytest.mark.parametrize("where", [None, [("id", ">", 0)], [("id", ">", 9)]])
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_file_with_other_rows_than_recorded(file_format: str, where: list[Any] | None) -> None:
    """A file with more or fewer rows than its manifest says was replaced or cut, whatever is looked for in it."""
    predicate = to_predicate(where, pa.schema([("id", pa.int32())]))
    bucket = Bucket(FileLayout(0, COLUMNS), file_format)
    (file,) = bucket.written(_rows(3))
    for count in (2, 4):
        with pytest.raises(CorruptFile, match=f"{file.file_name} holds 3 rows, its manifest says {count}"):
            list(
                bucket.reader(COLUMNS, OLD).read(
                    bucket.path(file.file_name), replace(file, row_count=count), _no_partition, predicate
                )
            )


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_file_of_another_schema(file_format: str) -> None:
    """A file that lacks a column of its schema and has a stranger instead is refused; a lack alone reads as null."""
    bucket = Bucket(FileLayout(0, COLUMNS), file_format)
    (file,) = bucket.written(_rows(3))
    other = schema_of(fields(id="INT NOT NULL", v="STRING", m="INT"))
    reader = bucket.reader(other.fields, other)
    with pytest.raises(CorruptFile, match=f"{file.file_name} lacks column `m` of its schema and has `n`"):
        list(reader.read(bucket.path(file.file_name), file, _no_partition))
    larger = schema_of(fields(id="INT NOT NULL", v="STRING", n="INT", m="INT"))
    ((_, rows),) = bucket.reader(larger.fields, larger).read(bucket.path(file.file_name), file, _no_partition)
    assert rows.column("m").to_pylist() == [None] * 3


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_column_of_another_type(file_format: str) -> None:
    """A column that has not the type its schema says is refused, and both types are named."""
    bucket = Bucket(FileLayout(0, COLUMNS), file_format)
    (file,) = bucket.written(_rows(3))
    other = schema_of(fields(id="INT NOT NULL", v="DOUBLE", n="INT"))
    with pytest.raises(CorruptFile, match=file.file_name) as raised:
        list(bucket.reader(other.fields, other).read(bucket.path(file.file_name), file, _no_partition))
    assert "`v`" in raised.value.message


@pytest.mark.parametrize("file_format", FORMATS)
def test_deleted_rows_are_left_out(file_format: str) -> None:
    """Rows go by their positions in the file, across batches; what is left says where it lies."""
    bucket = Bucket(FileLayout(0, COLUMNS), file_format)
    (file,) = bucket.written(_rows(100))
    reader = bucket.reader((COLUMNS[0], ROW_INDEX, FILE_PATH), OLD, batch_rows=7)
    gone = np.array([0, 6, 7, 8, 41, *range(49, 64), 99])
    path = bucket.path(file.file_name)
    rows = pa.Table.from_batches([batch for _, batch in reader.read(path, file, _no_partition, None, gone)])
    left = [n for n in range(100) if n not in set(gone.tolist())]
    assert rows.column("id").to_pylist() == left
    assert rows.column(ROW_INDEX.name).to_pylist() == left
    assert set(rows.column(FILE_PATH.name).to_pylist()) == {path}


def test_positions_hold_when_row_groups_are_skipped() -> None:
    """A row group that can not match is not read, and the rows after it keep their positions."""
    bucket = Bucket(FileLayout(0, COLUMNS))
    (file,) = bucket.written(_rows(100), settings=WriteSettings(row_group_rows=10))
    reader = bucket.reader((COLUMNS[0], ROW_INDEX), OLD)
    predicate = to_predicate([("id", ">=", 85)], pa.schema([("id", pa.int32())]))
    path, gone = bucket.path(file.file_name), np.array([3, 84, 86, 95])
    rows = pa.Table.from_batches([batch for _, batch in reader.read(path, file, _no_partition, predicate, gone)])
    left = [n for n in range(80, 100) if n not in (84, 86, 95)]
    assert rows.column("id").to_pylist() == left
    assert rows.column(ROW_INDEX.name).to_pylist() == left


def test_deleted_rows_without_columns() -> None:
    """Where only the number of rows matters, deleted ones do not count, and no file is opened."""
    bucket = Bucket(FileLayout(0, COLUMNS))
    (file,) = bucket.written(_rows(10))
    bucket.fileio.delete(bucket.path(file.file_name))
    reader = bucket.reader((), OLD, batch_rows=4)
    parts = reader.read(bucket.path(file.file_name), file, _no_partition, None, np.array([1, 2, 9]))
    assert [rows.num_rows for _, rows in parts] == [2, 4, 1]


def test_ids_in_the_file_and_ids_that_follow() -> None:
    """An id or sequence number that stands in the file counts; where there is none, the manifest tells."""
    layout = FileLayout(0, COLUMNS, (), tracks_rows=True, carries_ids=True)
    bucket = Bucket(layout)
    tracked = _rows(3).append_column("_ROW_ID", pa.array([70, 71, 75]))
    (file,) = bucket.written(tracked.append_column("_SEQUENCE_NUMBER", pa.array([4, None, 5])))
    assert (file.min_sequence_number, file.max_sequence_number) == (4, 0)
    assert file.write_cols == ("id", "v", "n", "_ROW_ID", "_SEQUENCE_NUMBER")
    assert file.value_stats_cols == ("id", "v", "n")
    plain = Bucket(FileLayout(0, COLUMNS, (), tracks_rows=True))
    (other,) = plain.written(_rows(3))
    assert (other.min_sequence_number, other.max_sequence_number) == (0, 0)
    cases = ((bucket, file, [(70, 4), (75, 5)]), (plain, replace(other, first_row_id=20), [(20, 9), (22, 9)]))
    for place, made, wanted in cases:
        reader = place.reader((*TRACKING_FIELDS,), OLD)
        committed = replace(made, max_sequence_number=9)
        ((_, rows),) = reader.read(place.path(made.file_name), committed, _no_partition, None, np.array([1]))
        assert list(zip(*(column.to_pylist() for column in rows.columns), strict=True)) == wanted


def test_kinds_of_files_without_retracts_are_not_read_unless_asked_for() -> None:
    """Who only tells retracts from other rows gets zeros for a compacted file that has none, and else what is stored.

    Not every writer counts the retracts of a file that it writes first.
    """
    bucket = Bucket(FileLayout(0, (VALUE_KIND, *COLUMNS)))
    kinds = pa.array([2, 0, 2], pa.int8())
    (file,) = bucket.written(_rows(3).add_column(0, KIND_FIELD, kinds))
    wanted = (VALUE_KIND, COLUMNS[0])

    def found(deleted_rows: int | None, *, tells_kinds: bool, level: int = 5) -> list[int]:
        reader = bucket.reader(wanted, OLD, tells_kinds=tells_kinds)
        described = replace(file, delete_row_count=deleted_rows, level=level)
        ((_, rows),) = reader.read(bucket.path(file.file_name), described, _no_partition)
        assert rows.column("id").to_pylist() == [0, 1, 2]
        return rows.column(VALUE_KIND.name).to_pylist()

    assert found(0, tells_kinds=False) == [0, 0, 0]
    assert found(0, tells_kinds=True) == found(1, tells_kinds=False) == found(None, tells_kinds=False) == [2, 0, 2]
    assert found(0, tells_kinds=False, level=0) == [2, 0, 2]


def test_a_small_file_is_read_with_one_request() -> None:
    """Its footer and its columns come together; of a large one only what is asked for is read."""

    class Counted(MemoryFileIO):
        opened = 0

        def open_input(self, path: str) -> pa.NativeFile:
            Counted.opened += 1
            return super().open_input(path)

    bucket = Bucket(FileLayout(0, COLUMNS))
    (file,) = bucket.written(_rows(3))
    reader = replace(bucket.reader(COLUMNS, OLD), fileio=Counted(bucket.fileio.name))
    for size_bytes, opened in ((file.size_bytes, 0), (1 << 30, 1)):
        described = replace(file, size_bytes=size_bytes)
        ((_, rows),) = reader.read(bucket.path(file.file_name), described, _no_partition)
        assert rows.num_rows == 3
        assert Counted.opened == opened
