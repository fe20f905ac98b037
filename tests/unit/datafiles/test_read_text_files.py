"""Text files as parts of a table: their columns are those of the schema that they were written under."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.datafiles.datafile_samples import Bucket, fields, schema_of

from lakebed.datafiles.rolling_writer import FileLayout
from lakebed.errors import CorruptFile
from lakebed.metadata.data_file import DataFile
from lakebed.types.logical import DataField, parse_type
from lakebed.types.predicate_parse import to_predicate

COLUMNS = fields(id="INT NOT NULL", v="STRING", n="INT")


def _no_partition(name: str) -> pa.Scalar:
    raise AssertionError(name)


def _file(bucket: Bucket, name: str, content: bytes, rows: int) -> DataFile:
    """The entry of a file that another engine has written."""
    ids = pa.array(range(rows), pa.int32())
    (file,) = bucket.written(pa.record_batch({"id": ids, "v": pa.nulls(rows, pa.string()), "n": ids}))
    bucket.fileio.write_bytes(bucket.path(name), content)
    return replace(file, file_name=name, size_bytes=len(content))


CONTENTS = {
    "a.csv": b"0|x|5\n1|y|\n",
    "a.json": b'{"id":"0","v":"x","n":"5"}\n{"id":"1","v":"y","n":null}\n',
}


@pytest.mark.parametrize("name", CONTENTS)
def test_todays_columns_of_an_old_text_file(name: str) -> None:
    """Places in a CSV line, and its delimiter, are those of the file's schema version; columns are then found by id."""
    bucket = Bucket(FileLayout(0, COLUMNS))
    old = replace(schema_of(COLUMNS), options={"csv.field-delimiter": "|"})
    file = _file(bucket, name, CONTENTS[name], 2)
    wanted = (DataField(2, "number", parse_type("BIGINT")), DataField(9, "new", parse_type("STRING")))
    ((_, rows),) = bucket.reader(wanted, old).read(bucket.path(name), file, _no_partition)
    assert rows.to_pylist() == [{"number": 5, "new": None}, {"number": None, "new": None}]


def test_deleted_rows_of_a_text_file() -> None:
    """Positions count rows, not lines, so that deletion vectors mark the right ones."""
    bucket = Bucket(FileLayout(0, COLUMNS))
    file = _file(bucket, "a.csv", b'0,"x\ny",1\n1,y,2\n2,z,3\n', 3)
    reader = bucket.reader(COLUMNS[1:2], schema_of(COLUMNS))
    ((_, rows),) = reader.read(bucket.path("a.csv"), file, _no_partition, deleted=pa.array([1]).to_numpy())
    assert rows.to_pylist() == [{"v": "x\ny"}, {"v": "z"}]


@pytest.mark.parametrize("where", [None, [("n", ">", 0)]])
def test_lost_lines_are_noticed(where: list[Any] | None) -> None:
    """A file that ends early at the end of a line has fewer rows than its manifest says, whatever is looked for."""
    bucket = Bucket(FileLayout(0, COLUMNS))
    file = _file(bucket, "a.csv", b"0,x,1\n", 2)
    predicate = to_predicate(where, pa.schema([("n", pa.int32())]))
    with pytest.raises(CorruptFile, match="1 rows"):
        list(bucket.reader(COLUMNS, schema_of(COLUMNS)).read(bucket.path("a.csv"), file, _no_partition, predicate))
