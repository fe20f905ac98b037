"""Dynamic buckets shared with other engines: each finds the keys of the others in the index and leaves them there."""

import random
from pathlib import Path

import pytest

import lakebed
from lakebed.testing.key_layout import KeyLayout

from .judges import JavaJudge, Judge, PypaimonJudge, Row, RustJudge, assert_same_rows
from .ours import DATABASE, create, open_table, read, write

SCHEMA = {"p": "STRING NOT NULL", "k": "BIGINT NOT NULL", "v": "STRING"}
OPTIONS = {"dynamic-bucket.target-row-num": "7", "bucket": "-1"}
FIELDS = [("p", "STRING", False), ("k", "BIGINT", False), ("v", "STRING", True)]


def rows_of(keys: list[int], word: str) -> list[Row]:
    """Rows of these keys in two partitions."""
    return [{"p": part, "k": key, "v": f"{word}-{part}-{key}"} for key in keys for part in ("a", "b")]


def checked(table: lakebed.Table, expected: dict[tuple[str, int], Row], target: int = 7) -> None:
    """Our own view: all rows are there, no key in two buckets, the index knows all of them, no bucket is overfull."""
    assert_same_rows(read(table), list(expected.values()))
    layout = KeyLayout.of(table)
    layout.check()
    assert all(len(hashes) <= target for hashes in layout.index.values())


def upsert(expected: dict[tuple[str, int], Row], rows: list[Row]) -> None:
    expected |= {(row["p"], row["k"]): row for row in rows}


@pytest.mark.parametrize("is_ours", [True, False], ids=["our-table", "their-table"])
def test_java_and_lakebed_take_turns(
    java_judge: JavaJudge, rust_judge: RustJudge, tmp_path: Path, is_ours: bool
) -> None:
    """Twelve commits of new and known keys by turns, with compactions of both: no key ever gets a second bucket."""
    if is_ours:
        create(tmp_path, "t", SCHEMA, primary_key=["p", "k"], partition_by=["p"], options=OPTIONS)
    else:
        java_judge.create(
            tmp_path, DATABASE, "t", FIELDS, primary_keys=["p", "k"], partition_keys=["p"], options=OPTIONS
        )
    table = open_table(tmp_path, "t")
    chance, expected = random.Random(5), dict[tuple[str, int], Row]()
    for turn in range(12):
        rows = rows_of(chance.sample(range(60), 8), f"turn {turn}")
        if turn % 2:
            java_judge.append(tmp_path, DATABASE, "t", rows)
        else:
            write(table, rows)
        upsert(expected, rows)
        if turn == 5:
            java_judge.compact(tmp_path, DATABASE, "t")
        if turn == 8:
            table.compact(full=True)
        checked(table, expected)
    for judge in (java_judge, rust_judge):
        assert_same_rows(judge.read(tmp_path, DATABASE, "t"), list(expected.values()))


def test_pypaimon_and_lakebed_take_turns(pypaimon_judge: PypaimonJudge, java_judge: JavaJudge, tmp_path: Path) -> None:
    """The same with pypaimon on a table of ours; Java reads the result."""
    table = create(tmp_path, "t", SCHEMA, primary_key=["p", "k"], partition_by=["p"], options=OPTIONS)
    chance, expected = random.Random(6), dict[tuple[str, int], Row]()
    for turn in range(6):
        rows = rows_of(chance.sample(range(40), 8), f"turn {turn}")
        if turn % 2:
            pypaimon_judge.append(tmp_path, DATABASE, "t", rows)
        else:
            write(table, rows)
        upsert(expected, rows)
        checked(table, expected, target=100)
    judges: list[Judge] = [java_judge, pypaimon_judge]
    for judge in judges:
        assert_same_rows(judge.read(tmp_path, DATABASE, "t"), list(expected.values()))


def test_java_overwrites_and_lakebed_goes_on(java_judge: JavaJudge, tmp_path: Path) -> None:
    """An overwrite by either side drops the index of the replaced partition for both."""
    table = create(tmp_path, "t", SCHEMA, primary_key=["p", "k"], partition_by=["p"], options=OPTIONS)
    write(table, rows_of(list(range(20)), "first"))
    java_judge.overwrite(tmp_path, DATABASE, "t", [{"p": "a", "k": 5, "v": "java"}])
    write(table, [{"p": "a", "k": 6, "v": "ours"}, {"p": "a", "k": 5, "v": "ours"}, {"p": "b", "k": 50, "v": "ours"}])
    KeyLayout.of(table).check()
    write(table, [{"p": "b", "k": 1, "v": "overwritten"}], overwrite=True)
    java_judge.append(tmp_path, DATABASE, "t", rows_of([1, 2, 3, 4, 5, 6], "java again"))
    KeyLayout.of(table).check()
    expected = rows_of([1, 2, 3, 4, 5, 6], "java again")
    assert_same_rows(read(table), expected)
    assert_same_rows(java_judge.read(tmp_path, DATABASE, "t"), expected)


def test_java_goes_on_after_our_expiry(java_judge: JavaJudge, tmp_path: Path) -> None:
    """Expiry of ours leaves the index files that the last snapshot needs."""
    table = create(tmp_path, "t", SCHEMA, primary_key=["p", "k"], partition_by=["p"], options=OPTIONS)
    for start in range(0, 30, 5):
        write(table, rows_of(list(range(start, start + 8)), f"from {start}"))
    table.expire_snapshots(retain_max=1)
    java_judge.append(tmp_path, DATABASE, "t", rows_of(list(range(40)), "java"))
    KeyLayout.of(table).check()
    assert_same_rows(read(table), rows_of(list(range(40)), "java"))
