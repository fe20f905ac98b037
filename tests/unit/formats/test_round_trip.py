"""Every type through every format and back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.unit.formats.format_samples import SAMPLES, array, field, not_null, read, same, table, written

from lakebed.errors import InvalidData, InvalidOption
from lakebed.formats import FORMATS, WriteSettings
from lakebed.types import logical as lt
from lakebed.types.logical import ArrayType, DataField

CASES = [pytest.param(name, *case, id=f"{name}-{label}") for name in SAMPLES for label, case in SAMPLES[name].items()]
EVERY_FORMAT = pytest.mark.parametrize("name", list(SAMPLES))


@pytest.mark.parametrize(("name", "data_type", "values"), CASES)
def test_every_type_comes_back_as_it_was(name: str, data_type: Any, values: list[Any]) -> None:
    """Extreme values, nulls and empties of each type survive a file, also when the batches are slices."""
    fields = [field(data_type)]
    FORMATS[name].check(fields)
    whole = table(fields, [None, *values, None, *reversed(values), None])
    content, stats = written(name, fields, whole.slice(0, 2), whole.slice(2, 2), whole.slice(4).to_batches()[0])
    result = read(name, content, fields)
    assert same(result["c"], whole["c"])
    assert stats.row_count == whole.num_rows
    assert stats.columns["c"].null_count == 3
    result.validate(full=True)


@pytest.mark.parametrize(("name", "data_type", "values"), CASES)
def test_not_null_columns_come_back_as_they_were(name: str, data_type: Any, values: list[Any]) -> None:
    """NOT NULL, which is stored differently, makes no difference to the values."""
    fields = [field(not_null(data_type))]
    rows = table(fields, values * 3)
    content, _ = written(name, fields, rows)
    assert same(read(name, content, fields)["c"], rows["c"])


@pytest.mark.parametrize(("name", "data_type", "values"), CASES)
def test_columns_of_nulls_only(name: str, data_type: Any, values: list[Any]) -> None:
    """A column without a single value keeps its nulls and has no bounds."""
    fields = [field(data_type)]
    content, stats = written(name, fields, table(fields, [None] * 5))
    assert read(name, content, fields)["c"].to_pylist() == [None] * 5
    assert (stats.columns["c"].min, stats.columns["c"].max, stats.columns["c"].null_count) == (None, None, 5)


@EVERY_FORMAT
def test_files_without_rows(name: str) -> None:
    """A file may be empty, with or without an empty batch, and still knows its columns."""
    fields = [DataField(i, label, case[0]) for i, (label, case) in enumerate(SAMPLES[name].items())]
    for batches in ([], [table(fields, *[[] for _ in fields])]):
        content, stats = written(name, fields, *batches)
        assert stats.row_count == 0
        assert read(name, content, fields).num_rows == 0
        reader = FORMATS[name].open_reader(pa.BufferReader(content), "some/file")
        assert (reader.row_count, reader.column_names) == (0, [f.name for f in fields])


@EVERY_FORMAT
def test_many_rows_in_small_batches(name: str) -> None:
    """Many rows of all types at once, written in odd pieces, come back in order whatever the batch size."""
    fields = [DataField(i, label, case[0]) for i, (label, case) in enumerate(SAMPLES[name].items())]
    count = 1503
    columns = [([None, *case[1]] * count)[:count] for case in SAMPLES[name].values()]
    rows = table(fields, *columns)
    pieces = [rows.slice(start, 777) for start in range(0, count, 777)]
    content, _ = written(name, fields, *pieces, row_group_rows=400)
    for batch_rows in (300, 1000):
        result = read(name, content, fields, batch_rows=batch_rows, use_threads=False)
        for label in result.column_names:
            assert same(result[label], rows[label]), label


@EVERY_FORMAT
def test_columns_are_found_by_name(name: str) -> None:
    """Columns come in the order asked for, absent ones as nulls, and asking for none still counts the rows."""
    fields = [field(lt.INT, "a", 1), field(lt.STRING, "b", 2), field(lt.STRING, "a_b", 3)]
    content, _ = written(name, fields, table(fields, [1, 2], ["x", "y"], ["p", "q"]))
    absent = field(not_null(ArrayType(lt.INT)), "absent", 9)
    result = read(name, content, [fields[2], absent, fields[0]])
    assert result.to_pydict() == {"a_b": ["p", "q"], "absent": [None, None], "a": [1, 2]}
    assert result.schema.field("absent").type == pa.list_(pa.field("element", pa.int32()))
    assert read(name, content, [absent]).to_pydict() == {"absent": [None, None]}
    reader = FORMATS[name].open_reader(pa.BufferReader(content), "some/file")
    assert [(position, batch.num_rows) for position, batch in reader.read([])] == [(0, 2)]


@EVERY_FORMAT
def test_nulls_are_refused_where_there_must_be_none(name: str) -> None:
    """Null in a NOT NULL column or element is an error that names the column, not a broken file."""
    for data_type, values in (
        (not_null(lt.INT), [1, None]),
        (ArrayType(not_null(lt.INT)), [[1], [None]]),
    ):
        rows = pa.table({"c": array(lt.with_nullable(data_type, True), values)})
        with pytest.raises(InvalidData, match="`c`"):
            written(name, [field(data_type)], rows)


@EVERY_FORMAT
def test_null_rows_may_hide_null_members(name: str) -> None:
    """A NOT NULL member of a null row is not a null that must not be."""
    fields = [field(SAMPLES[name]["row_not_null"][0])]
    rows = table(fields, [{"x": 1}, None, {"x": 2}]).slice(1)
    content, _ = written(name, fields, rows)
    assert read(name, content, fields).to_pydict() == {"c": [None, {"x": 2}]}


@EVERY_FORMAT
def test_other_columns_are_refused(name: str) -> None:
    """Rows with other columns, or with values that do not fit, are refused."""
    with pytest.raises(InvalidData, match="columns"):
        written(name, [field(lt.INT)], pa.table({"d": pa.array([1], pa.int32())}))
    with pytest.raises(InvalidData, match="`c`"):
        written(name, [field(lt.TINYINT)], pa.table({"c": pa.array([300], pa.int64())}))


@EVERY_FORMAT
def test_compression_is_chosen_by_name(name: str) -> None:
    """Known codecs make readable files, unknown ones an error that says so."""
    fields = [field(lt.STRING)]
    rows = table(fields, ["a" * 100] * 1000)
    sizes = {}
    for compression in ("zstd", "ZSTD", "none", "snappy", "gzip"):
        content, _ = written(name, fields, rows, compression=compression)
        assert read(name, content, fields)["c"].to_pylist() == ["a" * 100] * 1000
        sizes[compression] = len(content)
    assert sizes["zstd"] <= sizes["none"]
    with pytest.raises(InvalidOption, match="zst0"):
        written(name, fields, rows, compression="zst0")


@EVERY_FORMAT
def test_size_estimate_follows_the_file(name: str) -> None:
    """bytes_written never shrinks much, includes buffered rows and ends near the real size."""
    fields = [field(lt.BIGINT, "id", 1), field(lt.STRING, "v", 2)]
    stream = pa.BufferOutputStream()
    writer = FORMATS[name].open_writer(stream, fields, WriteSettings())
    estimates = []
    for start in range(0, 200_000, 50_000):
        ids = list(range(start, start + 50_000))
        writer.write(table(fields, ids, [f"value {(i * 7919) % 100_003}" for i in ids]))
        estimates.append(writer.bytes_written())
    assert estimates == sorted(estimates)
    writer.close()
    size = stream.tell()
    assert 0.6 * size < estimates[-1] < 1.6 * size
