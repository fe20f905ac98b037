"""Other implementations read tables that Lakebed tagged, branched and rolled back, and the other way round."""

from pathlib import Path
from typing import Any

import pytest

from . import ours
from .judges import JavaJudge, Judge, JudgeError, assert_same_rows

SCHEMA = {"id": "BIGINT NOT NULL", "part": "INT NOT NULL", "v": "STRING"}


def row(key: int, value: str) -> dict[str, Any]:
    """A row of the table under test."""
    return {"id": key, "part": key % 2, "v": value}


def history(warehouse: Path, **options: str) -> ours.lakebed.Table:
    """Upserts, a delete, compactions: eight commits or so."""
    table = ours.create(
        warehouse,
        "t",
        SCHEMA,
        primary_key=["part", "id"],
        partition_by=["part"],
        options={"bucket": "2", "num-sorted-run.compaction-trigger": "3", **options},
    )
    for number in range(5):
        rows = [row(key, f"{number}-{key}") for key in range(number, number + 4)]
        ours.write(table, rows, ["-D" if item["id"] == number else "+I" for item in rows])
    return table


def check_same(judge: Judge, warehouse: Path, name: str = "t", **point: Any) -> None:
    """A judge reads the same rows as we do."""
    table = ours.open_table(warehouse, name)
    assert_same_rows(judge.read(warehouse, "db", name, **point), ours.read(table.at(**point) if point else table))


@pytest.mark.parametrize("judge_name", ["java", "pypaimon", "rust"])
def test_judges_read_after_upkeep(judge_name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Tags with a time to live, a rollback, an old state made new, rewritten manifests, statistics, other buckets."""
    judge: Judge = request.getfixturevalue(f"{judge_name}_judge")
    table = history(tmp_path)
    table.create_tag("day", 3, "1 d")
    check_same(judge, tmp_path, tag="day")
    table.rename_tag("day", "kept")
    table.rollback_to(5)
    check_same(judge, tmp_path)
    ours.write(table, [row(20, "after")])
    check_same(judge, tmp_path)
    table.rollback_to_as_latest(2)
    check_same(judge, tmp_path)
    ours.write(table, [row(21, "again")])
    table.compact_manifest()
    table.analyze(True)
    check_same(judge, tmp_path)
    table.rescale(2, [{"part": 1}])
    check_same(judge, tmp_path)
    table.expire_snapshots(retain_max=1, retain_min=1)
    table.drop_partitions([{"part": 0}])
    check_same(judge, tmp_path)
    check_same(judge, tmp_path, tag="kept")


def test_java_reads_two_branches_as_one_table(java_judge: JavaJudge, tmp_path: Path) -> None:
    """A stored `scan.fallback-branch` gives the same rows there and here."""
    table = history(tmp_path)
    table.create_branch("late")
    branch = ours.open_table(tmp_path, "t$branch_late")
    ours.write(branch, [row(70, "late"), row(71, "late")])
    table.drop_partitions([{"part": 1}])
    table.alter(ours.lakebed.SetOption("scan.fallback-branch", "late"))
    check_same(java_judge, tmp_path)
    assert {item["id"] for item in ours.read(ours.open_table(tmp_path, "t"))} >= {71}


@pytest.mark.parametrize("judge_name", ["java", "pypaimon"])
def test_judges_read_branches(judge_name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A branch with rows of its own, before and after the table has gone on as the branch."""
    judge: Judge = request.getfixturevalue(f"{judge_name}_judge")
    table = history(tmp_path)
    table.create_tag("fork", 2)
    table.create_branch("b", "fork")
    branch = ours.open_table(tmp_path, "t$branch_b")
    ours.write(branch, [row(30, "branch")])
    assert_same_rows(judge.read(tmp_path, "db", "t$branch_b"), ours.read(branch))
    check_same(judge, tmp_path)
    table.fast_forward("b")
    check_same(judge, tmp_path)


def test_we_read_what_java_did(java_judge: JavaJudge, tmp_path: Path) -> None:
    """Java tags, branches, rolls back and fast-forwards our table; both read the same each time, and we go on."""
    table = history(tmp_path)
    java_judge.look_after(tmp_path, "db", "t", "create_tag_for_a_day", name="day")
    (tag,) = table.tags(detail=True)
    assert tag.retained is not None
    assert tag.retained.days == 1
    assert tag.create_time is not None
    java_judge.look_after(tmp_path, "db", "t", "create_branch", name="b", tag="day")
    java_judge.append(tmp_path, "db", "t$branch_b", [row(40, "java")])
    branch = ours.open_table(tmp_path, "t$branch_b")
    ours.write(branch, [row(41, "ours")])
    assert_same_rows(java_judge.read(tmp_path, "db", "t$branch_b"), ours.read(branch))
    assert table.branches() == ["b"]
    java_judge.look_after(tmp_path, "db", "t", "rollback_to_snapshot", snapshot=3)
    assert table.snapshots()[-1].id == 3
    check_same(java_judge, tmp_path)
    ours.write(table, [row(42, "ours")])
    java_judge.look_after(tmp_path, "db", "t", "fast_forward", name="b")
    table = ours.open_table(tmp_path, "t")
    assert_same_rows(ours.read(table), ours.read(branch))
    ours.write(table, [row(43, "ours")])
    check_same(java_judge, tmp_path)


def test_java_goes_on_after_ours(java_judge: JavaJudge, tmp_path: Path) -> None:
    """Java writes and expires after our rollbacks and fast-forward, deletes our tags, and finds no orphan of ours."""
    kept = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}
    table = history(tmp_path)
    table.create_tag("one", 2, "12 h")
    times = java_judge.look_after(tmp_path, "db", "t", "tag_times", name="one")
    assert times["retained"] == "PT12H"
    table.create_branch("b", "one")
    ours.write(ours.open_table(tmp_path, "t$branch_b"), [row(50, "branch")])
    java_judge.append(tmp_path, "db", "t$branch_b", [row(49, "java")])
    table.rollback_to(4)
    table.rollback_to_as_latest(2)
    java_judge.append(tmp_path, "db", "t", [row(51, "java")])
    check_same(java_judge, tmp_path)
    table = ours.open_table(tmp_path, "t")
    table.alter(*(ours.lakebed.SetOption(key, value) for key, value in kept.items()))
    for number in range(3):
        java_judge.append(tmp_path, "db", "t", [row(52, f"java {number}")])
    assert len(ours.open_table(tmp_path, "t").snapshots()) == 2
    check_same(java_judge, tmp_path)
    check_same(java_judge, tmp_path, tag="one")
    branch = ours.open_table(tmp_path, "t$branch_b")
    assert_same_rows(java_judge.read(tmp_path, "db", "t$branch_b"), ours.read(branch))
    # From here on the branch is lost: Java deletes the files of a tag without a look at the branches.
    java_judge.look_after(tmp_path, "db", "t", "delete_tag", name="one")
    check_same(java_judge, tmp_path)


def test_orphans_are_the_same_for_both(java_judge: JavaJudge, tmp_path: Path) -> None:
    """What we leave behind after a rollback Java finds as well; after our cleaning it finds nothing."""
    import os
    import time

    table = history(tmp_path)
    table.create_tag("one", 2)
    table.create_branch("b", "one")
    table.rollback_to(4)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            os.utime(path, (time.time() - 3600, time.time() - 3600))
    moment = int(time.time() * 1000) - 60_000
    found = table.remove_orphan_files(older_than=moment, dry_run=True)
    assert found.file_count > 0
    assert java_judge.look_after(tmp_path, "db", "t", "orphans")["count"] == found.file_count
    assert table.remove_orphan_files(older_than=moment) == found
    assert java_judge.look_after(tmp_path, "db", "t", "orphans")["count"] == 0
    check_same(java_judge, tmp_path)
    check_same(java_judge, tmp_path, tag="one")


def test_java_reads_our_statistics(java_judge: JavaJudge, tmp_path: Path) -> None:
    """Java parses the file, with bounds of every type."""
    schema = {
        "i": "INT",
        "s": "STRING",
        "d": "DATE",
        "n": "DECIMAL(10, 2)",
        "f": "DOUBLE",
        "o": "BOOLEAN",
        "t": "TIMESTAMP(3)",
        "z": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    }
    table = ours.create(tmp_path, "t", schema)
    table.write(
        ours.pa.table(
            {
                "i": ours.pa.array([1, 5, None], ours.pa.int32()),
                "s": ["a", "bb", None],
                "d": ours.pa.array([1, 2, None], ours.pa.int32()).cast(ours.pa.date32()),
                "n": ours.pa.array(["1.25", "3.00", None]).cast(ours.pa.decimal128(10, 2)),
                "f": [1.5, 2.5, None],
                "o": [True, False, None],
                "t": ours.pa.array([0, 86_400_001, None], ours.pa.timestamp("ms")),
                "z": ours.pa.array([0, 86_400_001, None], ours.pa.timestamp("ms", "UTC")),
            },
            schema=table.arrow_schema,
        )
    )
    table.analyze(True)
    found = java_judge.look_after(tmp_path, "db", "t", "statistics")
    ours_found = table.statistics()
    assert ours_found is not None
    assert found["mergedRecordCount"] == ours_found.merged_record_count == 3
    assert found["colStats"] == ours_found.columns


def test_java_does_not_find_a_deleted_branch(java_judge: JavaJudge, tmp_path: Path) -> None:
    """A deleted branch is gone for others too."""
    table = history(tmp_path)
    table.create_branch("b")
    table.delete_branch("b")
    with pytest.raises(JudgeError):
        java_judge.read(tmp_path, "db", "t$branch_b")
