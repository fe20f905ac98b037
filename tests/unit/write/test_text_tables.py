"""Tables whose files are CSV, JSON or text: what they may be, what may change, and what their metadata says."""

from __future__ import annotations

import datetime as dt
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import InvalidData, InvalidOption, InvalidSchema, LakebedError
from lakebed.schema.changes import AddColumn, SetOption

ROWS = pa.table({"id": pa.array(range(5), pa.int32()), "s": ["a", None, "c,d", "\\", '"']})


def _create(path: Path, columns: dict[str, str], options: dict[str, str], **more: Any) -> lakebed.Table:
    with warnings.catch_warnings(action="ignore"):
        return lakebed.connect(path).create_table("t", columns, options=options, **more)


@pytest.mark.parametrize(
    ("columns", "options", "key", "words"),
    [
        ({"a": "INT"}, {"file.format": "text"}, [], "one column of type STRING"),
        ({"a": "TIMESTAMP_LTZ(3)"}, {"file.format": "csv"}, [], "column `a`"),
        ({"a": "ARRAY<INT>"}, {"file.format": "csv"}, [], "column `a`"),
        ({"a": "INT NOT NULL"}, {"file.format": "csv", "bucket": "1"}, ["a"], "csv is no format"),
        ({"a": "STRING NOT NULL"}, {"file.format": "text", "bucket": "1"}, ["a"], "text is no format"),
        ({"a": "INT NOT NULL"}, {"changelog-file.format": "csv", "bucket": "1"}, ["a"], "csv is no format"),
        ({"a": "INT NOT NULL"}, {"file.format.per.level": "0:csv", "bucket": "1"}, ["a"], "csv is no format"),
        ({"a": "STRING"}, {"file.format": "text", "row-tracking.enabled": "true"}, [], "row-tracking"),
        ({"a": "STRING"}, {"file.format": "text", "file.compression": "gzip"}, [], "gzip"),
        ({"a": "STRING"}, {"file.format": "csv", "file.compression": "snappy"}, [], "snappy"),
        ({"a": "STRING"}, {"file.format": "csv", "csv.field-delimiter": "||"}, [], "csv.field-delimiter"),
        ({"a": "STRING"}, {"file.format": "csv", "csv.field-delimiter": '"'}, [], "the same"),
        ({"a": "STRING"}, {"file.format": "csv", "csv.null-literal": "a,b"}, [], "csv.null-literal"),
        ({"a": "STRING"}, {"file.format": "csv", "csv.mode": "dropmalformed"}, [], "csv.mode"),
        ({"a": "STRING"}, {"file.format": "csv", "csv.line-delimiter": "aa"}, [], "csv.line-delimiter"),
        ({"a": "STRING"}, {"file.format": "json", "json.ignore-parse-errors": "true"}, [], "json.ignore-parse-errors"),
        ({"a": "STRING"}, {"file.format": "parquet", "file.compression": "bzip2"}, [], "bzip2"),
        ({"a": "STRING"}, {"file.format": "parquet", "file.compression": "null"}, [], "null"),
        ({"a": "STRING"}, {"file.format": "orc", "file.compression": "brotli"}, [], "brotli"),
        ({"a": "STRING"}, {"file.format": "avro", "file.compression": "lz4"}, [], "lz4"),
        ({"a": "INT NOT NULL"}, {"file.compression.per.level": "5:deflate", "bucket": "1"}, ["a"], "deflate"),
        ({"a": "STRING"}, {"file.format": "csv", "csv.unknown": "1"}, [], "csv.unknown"),
    ],
)
def test_tables_that_are_not_made(
    columns: dict[str, str], options: dict[str, str], key: list[str], words: str, tmp_path: Path
) -> None:
    """What could not be stored, or not be read back by Paimon, is refused when the table is created."""
    with pytest.raises((InvalidOption, InvalidSchema), match=words) as caught:
        _create(tmp_path, columns, options, primary_key=key)
    assert caught.value.hint
    assert not list(tmp_path.glob("**/schema-0"))


def test_nothing_guards_plain_files(tmp_path: Path) -> None:
    """Files of text without compression have no checksum, which is said; those with one have."""
    lake = lakebed.connect(tmp_path)
    with pytest.warns(UserWarning, match="`file.format` = `csv` with `file.compression` = `none`"):
        lake.create_table("a", {"a": "INT"}, options={"file.format": "csv"})
    with warnings.catch_warnings(action="error"):
        lake.create_table("b", {"a": "INT"}, options={"file.format": "csv", "file.compression": "gzip"})


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_nothing_is_known_of_files_of_text(kind: str, tmp_path: Path) -> None:
    """As in Paimon there are no statistics; filters find every row all the same."""
    table = _create(tmp_path, {"id": "INT", "s": "STRING"}, {"file.format": kind, "file.compression": "gzip"})
    table.write(ROWS)
    (file,) = lakebed.connect(tmp_path).table("t$files").to_arrow().to_pylist()
    assert (file["file_format"], file["record_count"]) == (kind, 5)
    assert file["file_path"].endswith(f".{kind}.gz")
    assert (file["min_value_stats"], file["max_value_stats"]) == ("{id=null, s=null}",) * 2
    assert table.to_arrow(filter=[("id", "=", 2)]).to_pylist() == [{"id": 2, "s": "c,d"}]


@pytest.mark.parametrize(
    "option", ["csv.field-delimiter", "csv.quote-character", "csv.escape-character", "csv.null-literal"]
)
def test_spellings_do_not_change(option: str, tmp_path: Path) -> None:
    """Other engines read all files by the options of the moment: once there are some, these stay, for handles too."""
    table = _create(tmp_path, {"id": "INT", "s": "STRING"}, {"file.format": "csv"})
    table.alter(SetOption("csv.field-delimiter", ";"))
    table.write(ROWS)
    with pytest.raises(LakebedError, match=option):
        table.alter(SetOption(option, "!"))
    with pytest.raises(LakebedError, match=option):
        table.with_options({option: "!"})
    assert table.to_arrow().equals(ROWS)


def test_a_refused_row_leaves_nothing_behind(tmp_path: Path) -> None:
    """A value without a text fails the write before anything is visible, also after good rows."""
    table = _create(tmp_path, {"id": "INT", "s": "STRING"}, {"file.format": "csv", "target-file-row-num": "2"})
    table.write(ROWS)
    before = {file for file in tmp_path.rglob("*") if file.is_file()}
    with pytest.raises(InvalidData, match="column `s`"):
        table.write(pa.table({"id": pa.array(range(5), pa.int32()), "s": ["a", "b", "c", "d", "x\ny"]}))
    assert {file for file in tmp_path.rglob("*") if file.is_file()} == before
    assert table.latest_snapshot().id == 1


def test_a_new_column_must_have_a_text(tmp_path: Path) -> None:
    """A change of columns is judged by the format as well, and a table may change to it and back."""
    table = _create(tmp_path, {"id": "INT", "s": "STRING"}, {})
    table.write(ROWS)
    table.alter(SetOption("file.format", "json"), SetOption("file.compression", "bzip2"))
    table.write(ROWS)
    with pytest.raises(InvalidSchema, match="column `at`"):
        table.alter(AddColumn(("at",), "TIMESTAMP_LTZ(3)"))
    table.alter(SetOption("file.format", "parquet"), SetOption("file.compression", "zstd"))
    table.alter(AddColumn(("at",), "TIMESTAMP_LTZ(3)"))
    now = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    table.write(ROWS.append_column("at", pa.array([now] * 5, pa.timestamp("ms", "UTC"))))
    table.compact(full=True)
    assert table.to_arrow().num_rows == 15


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
def test_keyed_json(producer: str, tmp_path: Path) -> None:
    """A table with a key in JSON: upserts, deletes, changelogs, lost races and compactions, as in any other format."""
    options = {"file.format": "json", "file.compression": "gzip", "bucket": "1", "changelog-producer": producer}
    table = _create(tmp_path, {"id": "INT NOT NULL", "s": "STRING"}, options, primary_key=["id"])
    first, second = table.writer(), table.writer()
    for writer, text in ((first, "x\ny"), (second, '"')):
        writer.write(pa.table({"id": pa.array(range(3), pa.int32()), "s": [text] * 3}))
    first.commit()
    second.commit()
    kinds = pa.array(["-D", "+I"])
    table.write(pa.table({"id": pa.array([0, 7], pa.int32()), "s": ["", None], "k": kinds}), row_kind="k")
    expected = [{"id": 1, "s": '"'}, {"id": 2, "s": '"'}, {"id": 7, "s": None}]
    assert table.to_arrow().sort_by("id").to_pylist() == expected
    table.compact(full=True)
    assert table.to_arrow().sort_by("id").to_pylist() == expected
    assert table.check(deep=True) == []
