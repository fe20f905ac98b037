"""Other implementations read a table after Lakebed expired its snapshots, and expire further themselves."""

from pathlib import Path
from typing import Any

import pytest

from . import ours
from .judges import JavaJudge, Judge, JudgeError, assert_same_rows

SCHEMA = {"id": "BIGINT NOT NULL", "part": "INT NOT NULL", "v": "STRING"}


def expired_table(warehouse: Path, **options: str) -> ours.lakebed.Table:
    """Upserts, deletes, compactions and an overwrite of one partition; then all but two snapshots and a tag go."""
    table = ours.create(
        warehouse,
        "t",
        SCHEMA,
        primary_key=["part", "id"],
        partition_by=["part"],
        options={"bucket": "1", "num-sorted-run.compaction-trigger": "3", **options},
    )
    for number in range(6):
        rows: list[Any] = [{"id": key, "part": key % 2, "v": f"{number}-{key}"} for key in range(number, number + 4)]
        ours.write(table, rows, ["-D" if row["id"] == number else "+I" for row in rows])
        if number == 2:
            table.create_tag("kept")
        if number == 3:
            ours.write(table, [{"id": 99, "part": 1, "v": "new"}], overwrite={"part": 1})
    table.expire_snapshots(retain_max=2)
    assert table.snapshots()[0].id > 4
    return table


@pytest.mark.parametrize("judge_name", ["java", "pypaimon", "rust"])
def test_judges_read_after_expiry(judge_name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The latest state, the older of the two snapshots that are left, and the tag read the same there and here."""
    judge: Judge = request.getfixturevalue(f"{judge_name}_judge")
    table = expired_table(tmp_path)
    assert_same_rows(judge.read(tmp_path, "db", "t"), ours.read(table))
    (first, _) = table.snapshots()
    assert_same_rows(judge.read(tmp_path, "db", "t", snapshot=first.id), ours.read(table.at(snapshot=first.id)))
    assert_same_rows(judge.read(tmp_path, "db", "t", tag="kept"), ours.read(table.at(tag="kept")))


def test_java_writes_and_expires_after_expiry(java_judge: JavaJudge, tmp_path: Path) -> None:
    """Java commits on top, expires by the same options, and both read what is left, the tag included."""
    kept = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}
    table = expired_table(tmp_path, **kept)
    for number in range(3):
        java_judge.append(tmp_path, "db", "t", [{"id": 7, "part": 0, "v": f"java {number}"}])
    table = ours.open_table(tmp_path, "t")
    ours.write(table, [{"id": 8, "part": 0, "v": "ours"}])
    assert len(table.snapshots()) == 2
    assert_same_rows(java_judge.read(tmp_path, "db", "t"), ours.read(table))
    assert_same_rows(java_judge.read(tmp_path, "db", "t", tag="kept"), ours.read(table.at(tag="kept")))


@pytest.mark.parametrize("producer", ["none", "input", "lookup"])
def test_java_reads_changelogs_that_outlive_their_snapshots(
    producer: str, java_judge: JavaJudge, tmp_path: Path
) -> None:
    """Java reads the table beside our long-lived changelogs, and expires them by its own rules on its next commits."""
    kept = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}
    longer = {"changelog.num-retained.min": "1", "changelog.num-retained.max": "6", "changelog-producer": producer}
    table = expired_table(tmp_path, **kept, **longer)
    changelogs = table._opened.context.stores.changelogs
    ids = changelogs.ids()
    assert len(ids) == 4
    assert_same_rows(java_judge.read(tmp_path, "db", "t"), ours.read(table))
    for number in range(3):
        java_judge.append(tmp_path, "db", "t", [{"id": 7, "part": 0, "v": f"java {number}"}])
    table = ours.open_table(tmp_path, "t")
    latest = table.snapshots()[-1].id
    assert changelogs.ids()[0] > ids[0]
    told = table.changes(since=changelogs.ids()[0] - 1)
    assert told.num_rows > 0
    ours.write(table, [{"id": 8, "part": 0, "v": "ours"}])
    assert table.snapshots()[-1].id > latest
    assert changelogs.ids()[-1] == table.snapshots()[0].id - 1
    assert_same_rows(java_judge.read(tmp_path, "db", "t"), ours.read(table))


def test_java_does_not_find_what_expired(java_judge: JavaJudge, tmp_path: Path) -> None:
    """An expired snapshot is gone for others too, rather than half there."""
    expired_table(tmp_path)
    with pytest.raises(JudgeError):
        java_judge.read(tmp_path, "db", "t", snapshot=1)
