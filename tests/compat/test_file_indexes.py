"""Indexes of data files across implementations: what one writes, the other skips files by."""

import base64
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from lakebed.datafiles.index.container import unpack
from lakebed.schema.changes import SetOption

from . import ours
from .judges import JavaJudge, Row, assert_same_rows
from .judges.canonical import arrow_table

COLUMNS = {
    "id": "INT",
    "s": "STRING",
    "b": "BIGINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "day": "DATE",
    "ts3": "TIMESTAMP(3)",
    "ts6": "TIMESTAMP(6)",
    "t": "SMALLINT",
    "bin": "BYTES",
    "yes": "BOOLEAN",
}
BLOOM = "id,s,b,f,d,day,ts3,ts6,t,bin"
BITMAP = "id,s,b,f,d,day,ts3,ts6,t,yes"
BSI = "id,b,day,ts3,ts6,t"
SMALL = {f"file-index.bloom-filter.{name}.items": "50" for name in BLOOM.split(",")}
INDEXED = {
    "file-index.bloom-filter.columns": BLOOM,
    "file-index.bitmap.columns": BITMAP,
    "file-index.range-bitmap.columns": BITMAP,
    "file-index.bsi.columns": BSI,
    **SMALL,
}
NO_STATISTICS = {"metadata.stats-mode": "none"}
PLACES = {"beside": {}, "in the manifest": {"file-index.in-manifest-threshold": "1 mb"}}


def _row(number: int) -> Row:
    day = f"{1960 + number * 3}-02-{number + 1:02}"
    return {
        "id": number,
        "s": f"{number}ä" * (1 + 9 * (number % 5)),
        "b": (number - 10) * 10**12,
        "f": number * 0.5 - 4.0,
        "d": number * 0.1 - 1.0,
        "day": day,
        "ts3": f"{day}T01:02:03.456000",
        "ts6": f"{day}T01:02:03.4567{number:02}",
        "t": number - 15,
        "bin": "base64:" + base64.b64encode(bytes([number, 255, 0])).decode(),
        "yes": number < 10,
    }


FIRST, SECOND = [_row(number) for number in range(10)], [_row(number) for number in range(10, 20)]


def _remove_file_of(table: ours.lakebed.Table, number: int) -> None:
    """Takes away the data file that holds the row; its index stays."""
    rows = table.to_arrow(columns=["id", "__paimon_file_path"]).to_pylist()
    Path(next(row["__paimon_file_path"] for row in rows if row["id"] == number)).unlink()


@pytest.mark.parametrize("place", PLACES)
def test_java_skips_files_by_indexes_that_came_later(java_judge: JavaJudge, tmp_path: Path, place: str) -> None:
    """Files that got their indexes by `rewrite_file_index` are found, and skipped, as if written with them."""
    table = ours.create(tmp_path, "t", COLUMNS, options=NO_STATISTICS | PLACES[place])
    ours.write(table, FIRST)
    ours.write(table, SECOND)
    table.alter(*(SetOption(key, value) for key, value in INDEXED.items()))
    assert table.rewrite_file_index().files == 2
    for name in COLUMNS:
        wanted = [other for other in (*FIRST, *SECOND) if other[name] == FIRST[3][name]]
        assert_same_rows(java_judge.read(tmp_path, "db", "t", equal={name: FIRST[3][name]}), wanted)
    _remove_file_of(table, 4)
    assert_same_rows(java_judge.read(tmp_path, "db", "t", equal={"id": 14}), [SECOND[4]])


@pytest.mark.parametrize("place", PLACES)
def test_java_skips_files_by_our_indexes(java_judge: JavaJudge, tmp_path: Path, place: str) -> None:
    """Java finds every value through our indexes, and does not even open a file that they exclude."""
    table = ours.create(tmp_path, "t", COLUMNS, options=INDEXED | NO_STATISTICS | PLACES[place])
    ours.write(table, FIRST)
    ours.write(table, SECOND)
    for row in (FIRST[3], SECOND[4]):
        for name in COLUMNS:
            wanted = [other for other in (*FIRST, *SECOND) if other[name] == row[name]]
            assert_same_rows(java_judge.read(tmp_path, "db", "t", equal={name: row[name]}), wanted)
    _remove_file_of(table, 4)
    for name in COLUMNS:
        found = java_judge.read(tmp_path, "db", "t", equal={name: SECOND[2][name]})
        assert_same_rows(found, SECOND if name == "yes" else [SECOND[2]])


@pytest.mark.parametrize("place", PLACES)
def test_we_skip_files_by_indexes_of_java(java_judge: JavaJudge, tmp_path: Path, place: str) -> None:
    """The same the other way round."""
    ours.create(tmp_path, "t", COLUMNS, options=INDEXED | NO_STATISTICS | PLACES[place])
    java_judge.append(tmp_path, "db", "t", FIRST)
    java_judge.append(tmp_path, "db", "t", SECOND)
    table = ours.open_table(tmp_path, "t")
    _remove_file_of(table, 4)
    for name in COLUMNS:
        wanted = arrow_table(SECOND[2:3], table.arrow_schema)[name][0]
        found = ours.read(table, filter=pc.field(name) == wanted)
        assert_same_rows(found, SECOND if name == "yes" else [SECOND[2]])


def _indexes(table: ours.lakebed.Table) -> dict[str, dict[str, Any]]:
    (file,) = table.scan().files
    assert file.embedded_index is not None
    return unpack(file.embedded_index, file.file_name)


def test_indexes_are_the_same_bytes(java_judge: JavaJudge, tmp_path: Path) -> None:
    """Of the same rows both make the same indexes, for every type; bitmaps may be in another order."""
    options = INDEXED | PLACES["in the manifest"]
    rows = [*FIRST, {**dict.fromkeys(COLUMNS), "id": 77}, {**dict.fromkeys(COLUMNS), "id": 78}, *FIRST[:3]]
    mine, theirs = (ours.create(tmp_path, name, COLUMNS, options=options) for name in ("mine", "theirs"))
    ours.write(mine, rows)
    java_judge.append(tmp_path, "db", "theirs", rows)
    here, there = _indexes(mine), _indexes(theirs)
    assert here.keys() == there.keys() == set(COLUMNS)
    for name, indexes in here.items():
        assert indexes.get("bloom-filter") == there[name].get("bloom-filter"), name
        assert indexes.get("range-bitmap") == there[name].get("range-bitmap"), name
        assert indexes.get("bsi") == there[name].get("bsi"), name
        if "bitmap" in indexes:
            assert len(indexes["bitmap"]) == len(there[name]["bitmap"]), name


def test_keyed_tables(java_judge: JavaJudge, tmp_path: Path) -> None:
    """Files of primary-key tables have indexes too, which survive compactions of both."""
    options = INDEXED | NO_STATISTICS | {"bucket": "1", "num-sorted-run.compaction-trigger": "3"}
    table = ours.create(tmp_path, "t", COLUMNS, primary_key=["id"], options=options)
    for rows in (FIRST, SECOND, [{**FIRST[1], "s": "new"}]):
        ours.write(table, rows)
    java_judge.append(tmp_path, "db", "t", [{**FIRST[2], "s": "newer"}])
    for full in (False, True):
        for s, wanted in (("new", 1), ("newer", 2), (FIRST[1]["s"], None), (FIRST[5]["s"], 5)):
            for found in (
                java_judge.read(tmp_path, "db", "t", equal={"s": s}),
                ours.read(table, filter=[("s", "=", s)]),
            ):
                assert [row["id"] for row in found] == ([] if wanted is None else [wanted])
        if not full:
            table.compact(full=True)
    assert all(file.index_file for file in table.scan().files)


def test_many_values(java_judge: JavaJudge, tmp_path: Path) -> None:
    """Indexes of so many values that they are cut into pieces are the same bytes, and Java finds values in ours."""
    columns = {"id": "INT", "s": "STRING"}
    options = {
        "file-index.bitmap.columns": "id,s",
        "file-index.range-bitmap.columns": "id,s",
        **PLACES["in the manifest"],
    }
    rows = [{"id": number * 7 % 9001 // 2, "s": f"text-{number * 11 % 9001 // 3}"} for number in range(9001)]
    mine, theirs = (ours.create(tmp_path, name, columns, options=options) for name in ("mine", "theirs"))
    ours.write(mine, rows)
    java_judge.append(tmp_path, "db", "theirs", rows)
    here, there = _indexes(mine), _indexes(theirs)
    for name in columns:
        assert here[name]["range-bitmap"] == there[name]["range-bitmap"]
        assert len(here[name]["bitmap"]) == len(there[name]["bitmap"])
    for row in rows[::3000]:
        for name, value in row.items():
            wanted = [other for other in rows if other[name] == value]
            assert_same_rows(java_judge.read(tmp_path, "db", "mine", equal={name: value}), wanted)
            assert_same_rows(ours.read(theirs, filter=[(name, "=", value)]), wanted)


def test_keys_of_maps(java_judge: JavaJudge, tmp_path: Path) -> None:
    """Indexes of the values of single keys of a MAP are the same bytes, those of keys that no map has included."""
    options = {
        "file-index.bloom-filter.columns": "m[a],m[b],m[never]",
        "file-index.range-bitmap.columns": "m[a],m[never]",
        "file-index.bloom-filter.m[a].items": "20",
        "file-index.bloom-filter.m[b].items": "30",
        **PLACES["in the manifest"],
    }
    rows = [{"m": [["a", 1], ["b", 2]]}, {"m": [["a", None]]}, {"m": None}, {"m": [["b", 7]]}]
    columns = {"m": "MAP<STRING, INT>"}
    mine, theirs = (ours.create(tmp_path, name, columns, options=options) for name in ("mine", "theirs"))
    ours.write(mine, rows)
    java_judge.append(tmp_path, "db", "theirs", rows)
    assert _indexes(mine) == _indexes(theirs)
    assert_same_rows(java_judge.read(tmp_path, "db", "mine"), rows)
