"""Dynamic buckets shared with other engines: each finds the keys of the others in the index and leaves them there."""

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lakebed
from lakebed.commit.attempt import Attempt
from lakebed.definition.bucket_mode import WritePart
from lakebed.definition.partition_spec import key_hashes
from lakebed.table.plans import plan_write
from lakebed.testing.key_layout import KeyLayout
from lakebed.write.commit import WriteCommit
from lakebed.write.files import FileMaker

from .judges import JavaJudge, Judge, PypaimonJudge, Row, RustJudge, assert_same_rows
from .judges.canonical import arrow_table
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


@pytest.mark.parametrize("judge_name", ["java", "pypaimon"])
def test_judges_find_keys_that_many_assigners_placed(
    judge_name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The index of a commit that several writers shared is read by others: they give no key a second bucket."""
    judge: Judge = request.getfixturevalue(f"{judge_name}_judge")
    options = OPTIONS | {"dynamic-bucket.assigner-parallelism": "3"}
    table = create(tmp_path, "t", SCHEMA, primary_key=["p", "k"], partition_by=["p"], options=options)
    expected = dict[tuple[str, int], Row]()
    for turn in range(3):
        rows = rows_of(list(range(20 * turn, 20 * turn + 40)), f"turn {turn}")
        write_in_parts(table, rows, parts=3)
        upsert(expected, rows)
    checked(table, expected)
    judge.append(tmp_path, DATABASE, "t", rows := rows_of(list(range(0, 100, 2)), "judge"))
    upsert(expected, rows)
    checked(table, expected, target=100)
    assert_same_rows(judge.read(tmp_path, DATABASE, "t"), list(expected.values()))


def write_in_parts(table: lakebed.Table, rows: list[Row], parts: int) -> None:
    """One commit whose rows are dealt out to several writers, as a job on Spark does it."""
    context, identity = plan_write(table)
    attempt = Attempt(context.fileio)
    fileio = attempt.fileio
    commit = WriteCommit(context, overwrite=None, identity=identity, attempt=attempt)
    data = arrow_table(rows, table.arrow_schema).combine_chunks().to_batches()[0]
    shares = np.abs(key_hashes(context, data).astype(np.int64)) % parts
    messages = []
    for number in range(parts):
        part = WritePart(number, parts)
        maker = FileMaker(context, row_kind=None, overwrite=None, states=commit.states, fileio=fileio, part=part)
        maker.write(data.filter(pa.array(shares == number)), maker.abort)
        messages += maker.finish()
    assert commit.run(messages) is not None


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
