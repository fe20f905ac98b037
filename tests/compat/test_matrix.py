"""The matrix: all types, formats and layouts, written by Lakebed and read by every judge, and the other way round."""

import itertools
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.thinning import pairs, thinned

from lakebed.errors import CorruptFile, InvalidSchema

from . import ours
from .judges import JavaJudge, Judge, JudgeError, assert_same_rows
from .matrix_data import (
    CANNOT_READ,
    CANNOT_WRITE,
    COLUMNS,
    FINE_COLUMNS,
    FORMATS,
    LAKEBED_REFUSES,
    LAYOUTS,
    MISREADS,
    WRITES_WRONG,
    Column,
    columns_of,
    readable_by,
    rows_of,
    writable_by,
)

JUDGES = ["pypaimon", "rust", "java"]
SOME_LAYOUTS = ["key_1", "key_4_partitioned", "append", "append_4_partitioned"]
"""The two ends of each kind; what lies between adds time and no case."""
COLUMN = {column.name: column for column in COLUMNS}


def options_for(judge: str, file_format: str) -> dict[str, str]:
    options = {"file.format": file_format}
    if (judge, file_format) == ("rust", "orc"):
        options["file.compression"] = "none"  # the only one this judge writes
    return options


def two_commits(table: ours.lakebed.Table, columns: list[Column], model: ours.Model) -> None:
    """A first commit of all values; a second one that updates, adds and, given a key, deletes."""
    rows = rows_of(columns)
    ours.write(table, rows)
    model.upsert(rows)
    changes = rows_of(columns, shift=1)[:3] + rows_of(columns, first_id=100)
    deletes = rows[3:5] if table.primary_key else []
    ours.write(table, changes + deletes, ["+I"] * len(changes) + ["-D"] * len(deletes) if deletes else None)
    model.upsert(changes)
    model.delete(deletes)


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Judge:
    """The judge whose name the test is parametrised with."""
    found: Judge = request.getfixturevalue(f"{request.param}_judge")
    return found


@pytest.mark.parametrize(
    ("judge", "file_format", "layout_name"),
    thinned(itertools.product(JUDGES, FORMATS, LAYOUTS), pairs),
    indirect=["judge"],
)
def test_judge_reads_what_lakebed_wrote(judge: Judge, file_format: str, layout_name: str, tmp_path: Path) -> None:
    """Every column, every layout: two commits read the same at the judge and here, the first of them too."""
    layout, columns = LAYOUTS[layout_name], readable_by(judge.name, file_format)
    table = ours.create_matrix(tmp_path, "t", layout, columns, {"file.format": file_format})
    model = ours.Model(layout)
    two_commits(table, columns, model)
    assert_same_rows(table.to_arrow(), model.rows)
    assert_same_rows(judge.read(tmp_path, "db", "t"), model.rows)
    assert_same_rows(judge.read(tmp_path, "db", "t", snapshot=1), rows_of(columns))


@pytest.mark.parametrize(
    ("judge", "file_format", "layout_name"),
    thinned(itertools.product(JUDGES, FORMATS, SOME_LAYOUTS), pairs),
    indirect=["judge"],
)
def test_judge_and_lakebed_take_turns(judge: Judge, file_format: str, layout_name: str, tmp_path: Path) -> None:
    """The judge commits on top of Lakebed's table and Lakebed on top of that; both see the same all the time."""
    layout, columns = LAYOUTS[layout_name], writable_by(judge.name, file_format)
    table = ours.create_matrix(tmp_path, "t", layout, columns, options_for(judge.name, file_format))
    model = ours.Model(layout)
    two_commits(table, columns, model)

    theirs = rows_of(columns, shift=2)[1:6] + rows_of(columns, first_id=200)
    judge.append(tmp_path, "db", "t", theirs)
    model.upsert(theirs)
    assert_same_rows(table.to_arrow(), model.rows)
    assert_same_rows(judge.read(tmp_path, "db", "t"), model.rows)

    if layout.primary_key and judge.name != "pypaimon":  # pypaimon takes no row kinds
        gone = theirs[1:3]
        judge.delete(tmp_path, "db", "t", gone)
        model.delete(gone)
        assert_same_rows(table.to_arrow(), model.rows)

    again = rows_of(columns, shift=3)[:2] + rows_of(columns, first_id=300)[:2]
    ours.write(table, again)
    model.upsert(again)
    assert_same_rows(judge.read(tmp_path, "db", "t"), model.rows)
    assert_same_rows(table.to_arrow(), model.rows)


@pytest.mark.parametrize(
    ("file_format", "layout_name"),
    thinned(itertools.product(FORMATS, SOME_LAYOUTS), lambda file_format, layout_name: [file_format, layout_name]),
)
def test_java_compacts_and_overwrites(
    java_judge: JavaJudge, file_format: str, layout_name: str, tmp_path: Path
) -> None:
    """Compaction by Java changes no row, an overwrite replaces what it should, and Lakebed writes on after both."""
    layout, columns = LAYOUTS[layout_name], writable_by(java_judge.name, file_format)
    table = ours.create_matrix(tmp_path, "t", layout, columns, {"file.format": file_format})
    model = ours.Model(layout)
    two_commits(table, columns, model)
    for number in range(0 if layout.primary_key else 3):  # without a key, five files are worth the effort
        more = rows_of(columns, first_id=500 + 100 * number)
        ours.write(table, more)
        model.upsert(more)
    java_judge.compact(tmp_path, "db", "t")
    assert table.latest_snapshot().commit_kind.value == "COMPACT"  # type: ignore[union-attr]
    assert_same_rows(table.to_arrow(), model.rows)

    updates = rows_of(columns, shift=4)[:4]
    ours.write(table, updates)
    model.upsert(updates)
    assert_same_rows(java_judge.read(tmp_path, "db", "t"), model.rows)

    fresh = rows_of(columns, first_id=400)[::2]
    assert len({row["part"] for row in fresh}) == 1
    java_judge.overwrite(tmp_path, "db", "t", fresh)
    kept = [row for row in model.rows if layout.partition_by and row["part"] != fresh[0]["part"]]
    assert_same_rows(table.to_arrow(), fresh + kept)

    ours.write(table, fresh[:1], overwrite=True)
    assert_same_rows(java_judge.read(tmp_path, "db", "t"), fresh[:1] + kept)


# ---------------------------------------------------------------- TIMESTAMP(9)


@pytest.mark.parametrize("layout_name", ["key_4", "append"])
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
@pytest.mark.parametrize("judge", JUDGES, indirect=True)
def test_nanoseconds_everywhere(judge: Judge, file_format: str, layout_name: str, tmp_path: Path) -> None:
    """Timestamps with nanoseconds, nested ones and coarser neighbours read the same at every judge."""
    layout, columns = LAYOUTS[layout_name], columns_of(file_format, columns=FINE_COLUMNS)
    table = ours.create_matrix(tmp_path, "t", layout, columns, {"file.format": file_format})
    rows = rows_of(columns)
    ours.write(table, rows)
    assert_same_rows(table.to_arrow(), rows)
    assert_same_rows(judge.read(tmp_path, "db", "t"), rows)
    if file_format == "parquet":
        for file in tmp_path.rglob("data-*.parquet"):
            schema = pq.ParquetFile(file).schema
            leaves = [schema.column(i) for i in range(len(schema))]
            int96 = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
            assert int96 == {"c_ts_9", "c_ltz_9", "c_array_ts.list.element", "c_row_ts.a", "c_map_ts.key_value.value"}


def test_nanoseconds_of_java(java_judge: JavaJudge, tmp_path: Path) -> None:
    """Java stores times of day before 1970 as negative numbers, which are found here all the same."""
    layout, columns = LAYOUTS["key_4"], columns_of("parquet", columns=FINE_COLUMNS)
    table = ours.create_matrix(tmp_path, "t", layout, columns, {})
    model = ours.Model(layout)
    two_commits(table, columns, model)
    theirs = rows_of(columns, shift=2)
    java_judge.append(tmp_path, "db", "t", theirs)
    model.upsert(theirs)
    assert_same_rows(table.to_arrow(), model.rows)
    java_judge.compact(tmp_path, "db", "t")
    assert_same_rows(table.to_arrow(), model.rows)
    ours.write(table, theirs[:2])
    assert_same_rows(java_judge.read(tmp_path, "db", "t"), model.rows)


# ---------------------------------------------------------------- the lists of exceptions are true


def cases(table: dict[tuple[str, str], dict[str, str]]) -> list[tuple[str, str, str, str]]:
    return [(judge, form, column, words) for (judge, form), found in table.items() for column, words in found.items()]


def single(tmp_path: Path, judge: str, file_format: str, name: str) -> tuple[ours.lakebed.Table, list[ours.Row]]:
    """A table of one column with its rows in it."""
    columns = columns_of(file_format, columns=[COLUMN[name]])
    table = ours.create_matrix(tmp_path, "t", LAYOUTS["key_1"], columns, options_for(judge, file_format))
    rows = rows_of(columns)
    ours.write(table, rows)
    return table, rows


@pytest.mark.parametrize(
    ("file_format", "column", "words"),
    [(form, *case) for form, found in LAKEBED_REFUSES.items() for case in found.items()],
)
def test_lakebed_refuses_what_it_cannot_write(file_format: str, column: str, words: str, tmp_path: Path) -> None:
    """Columns left out of the matrix for a format are refused when the table is made."""
    with pytest.raises(InvalidSchema, match=words):
        ours.create_matrix(tmp_path, "t", LAYOUTS["key_1"], [COLUMN[column]], {"file.format": file_format})


@pytest.mark.parametrize(("judge", "file_format", "column", "words"), cases(CANNOT_READ), indirect=["judge"])
def test_judge_cannot_read(judge: Judge, file_format: str, column: str, words: str, tmp_path: Path) -> None:
    """A column left out of what the judge reads is still refused by it."""
    single(tmp_path, judge.name, file_format, column)
    with pytest.raises(JudgeError, match=words):
        judge.read(tmp_path, "db", "t")


@pytest.mark.parametrize(("judge", "file_format", "column", "words"), cases(CANNOT_WRITE), indirect=["judge"])
def test_judge_cannot_write(judge: Judge, file_format: str, column: str, words: str, tmp_path: Path) -> None:
    """A column left out of what the judge writes is still refused by it, and read well."""
    _, rows = single(tmp_path, judge.name, file_format, column)
    assert_same_rows(judge.read(tmp_path, "db", "t"), rows)
    with pytest.raises((JudgeError, ValueError), match=words):
        judge.append(tmp_path, "db", "t", rows)


@pytest.mark.parametrize(
    ("judge", "file_format", "column"),
    [(*case, column) for case, found in MISREADS.items() for column in found],
    indirect=["judge"],
)
def test_judge_misreads(judge: Judge, file_format: str, column: str, java_judge: JavaJudge, tmp_path: Path) -> None:
    """Java writes a column left out for the judge, reads it right, and the judge reads it wrong."""
    chosen = columns_of(file_format, columns=[COLUMN[column]])
    table = ours.create_matrix(tmp_path, "t", LAYOUTS["key_1"], chosen, {"file.format": file_format})
    rows = rows_of(chosen, shift=1)
    java_judge.append(tmp_path, "db", "t", rows)
    assert_same_rows(java_judge.read(tmp_path, "db", "t"), rows)
    assert_same_rows(table.to_arrow(), rows)
    with pytest.raises(AssertionError):
        assert_same_rows(judge.read(tmp_path, "db", "t"), rows)


def test_pypaimon_loses_nanoseconds_when_it_merges(pypaimon_judge: Judge, tmp_path: Path) -> None:
    """Nanoseconds survive pypaimon's reading of one file, and lose their last digits where it merges two."""
    columns = columns_of("parquet", columns=FINE_COLUMNS)[:1]
    table = ours.create_matrix(tmp_path, "t", LAYOUTS["key_1"], columns, {})
    rows = rows_of(columns)
    ours.write(table, rows)
    assert_same_rows(pypaimon_judge.read(tmp_path, "db", "t"), rows)
    ours.write(table, rows)
    assert_same_rows(table.to_arrow(), rows)
    with pytest.raises(AssertionError):
        assert_same_rows(pypaimon_judge.read(tmp_path, "db", "t"), rows)


@pytest.mark.parametrize(("judge", "file_format", "column", "words"), cases(WRITES_WRONG), indirect=["judge"])
def test_judge_writes_files_that_break_their_format(
    judge: Judge, file_format: str, column: str, words: str, tmp_path: Path
) -> None:
    """What the judge writes against the rules of the format is refused here, not misread."""
    table, rows = single(tmp_path, judge.name, file_format, column)
    assert_same_rows(judge.read(tmp_path, "db", "t"), rows)
    judge.append(tmp_path, "db", "t", rows)
    with pytest.raises(CorruptFile, match=words):
        table.to_arrow()
