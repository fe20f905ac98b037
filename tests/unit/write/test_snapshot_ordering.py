"""Tables that order rows by snapshot, and tables whose snapshots keep the highest sequence number."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.table.worked_tables import N, create, levels, shown, write
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.commit.sequence_state import MAX_SEQUENCE_NUMBER
from lakebed.errors import CommitConflict, InvalidOption, Unsupported
from lakebed.options import BUCKET

ORDERED = {"sequence.snapshot-ordering": "true"}
KEPT = {"write.sequence-number-init-mode": "snapshot"}


def _numbers(table: lakebed.Table) -> list[tuple[int, int]]:
    return [(file.min_sequence_number, file.max_sequence_number) for file in table.scan().files]


def _rows(*rows: tuple[int, int]) -> pa.Table:
    return pa.table({"k": pa.array([k for k, _ in rows], pa.int32()), "v": pa.array([v for _, v in rows], pa.int32())})


def test_later_snapshots_win_over_many_rows_of_earlier_ones() -> None:
    """One row of a later commit wins although the commit before it wrote many rows of the key's bucket."""
    table = create("k v", ORDERED)
    write(table, [[10, 999] for _ in range(5)] + [[11, 7]])
    write(table, [10, 1])
    assert shown(table) == [[10, 1], [11, 7]]
    assert _numbers(table) == [(1, 1), (2, 2)]


def test_later_deletes_win() -> None:
    """A delete of a later snapshot removes the row, also once both are compacted."""
    table = create("k v", ORDERED)
    write(table, [[1, 100], [2, 200]])
    write(table, ("-D", [1, 100]))
    assert shown(table) == [[2, 200]]
    table.compact(full=True)
    assert shown(table) == [[2, 200]]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_compacted_rows_keep_their_snapshots(file_format: str) -> None:
    """Rows carry the id of their snapshot into compacted files, so that what comes later still wins."""
    table = create("k v", {**ORDERED, "file.format": file_format})
    for row in ([10, 100], [10, 200], [20, 300]):
        write(table, row)
    table.compact(full=True)
    assert _numbers(table) == [(2, 3)]
    write(table, [10, 500])
    write(table, [30, 600])
    assert shown(table) == [[10, 500], [20, 300], [30, 600]]
    table.compact(full=True)
    assert shown(table) == [[10, 500], [20, 300], [30, 600]]
    assert _numbers(table) == [(3, 6)]


def test_a_file_that_only_changes_its_level_keeps_its_number() -> None:
    """A lone file is lifted by compaction without being rewritten, and still stands where its snapshot does."""
    table = create("k v", ORDERED)
    write(table, [[1, 1], [1, 2]])
    table.compact()
    table.compact(full=True)
    write(table, [1, 3])
    assert shown(table) == [[1, 3]]
    assert (1, 1) in _numbers(table)


@pytest.mark.parametrize(
    ("options", "changes", "visible"),
    [
        ({"merge-engine": "partial-update"}, [[1, 100, N], [1, N, 200], [1, 999, N]], [1, 999, 200]),
        (
            {"merge-engine": "aggregation", "fields.a.aggregate-function": "sum"},
            [[1, 1, 5], [1, 2, N], [1, 3, 6]],
            [1, 6, 6],
        ),
        ({"merge-engine": "first-row"}, [[1, 1, 5], [1, 2, N]], [1, 1, 5]),
    ],
    ids=["partial-update", "aggregation", "first-row"],
)
def test_other_engines(options: dict[str, str], changes: list[list[int | None]], visible: list[int]) -> None:
    """Every engine merges in the order of snapshots, with compaction at any moment."""
    for compacted_after in range(len(changes)):
        table = create("k a b", {**ORDERED, **options})
        for number, change in enumerate(changes):
            write(table, change)
            if number >= compacted_after:
                table.compact(full=True)
        assert shown(table) == [visible]


def test_removals_within_one_commit_keep_their_place() -> None:
    """A row after a delete of the same commit is there, and nothing of before the delete is."""
    options = {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}
    table = create("k a b", {**ORDERED, **options})
    write(table, [1, 1, 1])
    write(table, [[1, 2, N], ("-D", [1, N, N]), [1, N, 3]])
    assert shown(table) == [[1, N, 3]]
    table.compact(full=True)
    assert shown(table) == [[1, N, 3]]


def test_two_writers_race_without_rewriting_files(warehouse: Warehouse) -> None:
    """The writer that commits last wins, and its files are those it had made before the other came."""
    table = warehouse.lake.create_table(
        "t",
        {"k": "INT NOT NULL", "v": "INT"},
        primary_key=["k"],
        options={"bucket": "1", "write-only": "true", **ORDERED},
    )
    with table.writer() as slow:
        slow.write(_rows((1, 1)))
        table.write(_rows((1, 2), (1, 3)))
    assert shown(table) == [[1, 1]]
    assert _numbers(table) == [(1, 1), (2, 2)]


def test_an_overwrite_is_numbered_too() -> None:
    """Rows of an overwrite get its snapshot's id, so that later ones win over them."""
    table = create("k v", ORDERED)
    write(table, [1, 1])
    table.write(_rows((1, 5), (2, 6)), overwrite=True)
    assert _numbers(table) == [(2, 2)]
    write(table, [1, 7])
    assert shown(table) == [[1, 7], [2, 6]]


def test_changelogs_by_lookup() -> None:
    """A compaction that looks up old rows tells the changes in the order of snapshots."""
    table = create("k v", {**ORDERED, "changelog-producer": "lookup"})
    for row in ([1, 100], [1, 1]):
        write(table, row)
        table.compact()
    told = [tuple(row.values()) for row in table.changes().to_pylist()]
    assert told == [("+I", 1, 100), ("-U", 1, 100), ("+U", 1, 1)]
    assert shown(table) == [[1, 1]]


def test_a_handle_may_compact_by_itself() -> None:
    """With `write-only` = false on a handle only, commits compact what is due, after their snapshot is there."""
    table = create("k v", {**ORDERED, "num-sorted-run.compaction-trigger": "2"})
    compacting = table.with_options({"write-only": "false"})
    for value in range(5):
        write(compacting, [1, value])
    assert shown(table) == [[1, 4]]
    assert max(levels(table)) > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"write-only": "false", **ORDERED}, "requires write-only"),
        ({**ORDERED, "sequence.field": "v"}, "`sequence.field`"),
    ],
)
def test_what_does_not_go_with_it(options: dict[str, str], words: str) -> None:
    """The order of snapshots needs `write-only`, and excludes `sequence.field`."""
    with pytest.raises(InvalidOption, match=words):
        create("k v", options)


def test_it_needs_a_primary_key(warehouse: Warehouse) -> None:
    """Rows without a key have no order."""
    with warehouse.refuses(InvalidOption, "primary key"):
        warehouse.lake.create_table("t", {"v": "INT"}, options={"write-only": "true", **ORDERED})


def test_postponed_rows_are_numbered_when_they_get_their_bucket() -> None:
    """Rows that waited for a bucket count from the snapshot that brought them there."""
    table = create("k v", {**ORDERED, "bucket": "-2"})
    write(table, [[1, value] for value in range(10)])
    table.compact()
    write(table, [1, 99])
    table.compact()
    assert shown(table) == [[1, 99]]


# --- the highest number, kept by snapshots -------------------------------------------------------------------------


def _kept(table: lakebed.Table) -> str | None:
    latest = table.latest_snapshot()
    assert latest is not None
    return (latest.properties or {}).get(MAX_SEQUENCE_NUMBER)


def test_snapshots_keep_the_highest_number() -> None:
    """Every snapshot, also that of a compaction, says what the highest number of the table is."""
    table = create("k v", KEPT)
    write(table, [[1, 1], [2, 2], [3, 3]])
    assert _kept(table) == "2"
    write(table, [1, 4])
    assert _kept(table) == "3"
    table.compact(full=True)
    assert _kept(table) == "3"
    write(table, [1, 5])
    assert (_kept(table), shown(table)) == ("4", [[1, 5], [2, 2], [3, 3]])


def test_the_number_is_found_in_files_if_no_snapshot_keeps_it() -> None:
    """The option may be set later: the first commit looks at the files once."""
    table = create("k v", {})
    write(table, [[1, 1], [2, 2]])
    assert _kept(table) is None
    later = table.with_options(KEPT)
    write(later, [1, 3])
    assert _kept(table) == "2"
    write(table, [1, 4])
    assert _kept(table) is None
    write(later, [1, 5])
    assert (_kept(table), shown(table)) == ("4", [[1, 5], [2, 2]])


def test_writers_that_race_move_behind_each_other(warehouse: Warehouse) -> None:
    """Numbers that a snapshot keeps move with it: the later commit wins."""
    table = warehouse.lake.create_table(
        "t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options={"bucket": "1", "write-only": "true", **KEPT}
    )
    table.write(_rows((1, 0)))
    with table.writer() as slow:
        slow.write(_rows((1, 1)))
        table.write(_rows((1, 2), (1, 3)))
    assert (shown(table), _kept(table)) == ([[1, 1]], "3")


def test_a_changed_number_of_buckets_is_noticed() -> None:
    """Without a look at files when writing, the commit still refuses rows in another number of buckets."""
    table = create("k v", KEPT)
    write(table, [1, 1])
    table.alter(lakebed.SetOption(BUCKET.key, "2"))
    with pytest.raises(CommitConflict, match="2 buckets"):
        write(table, [1, 2])
    assert shown(table) == [[1, 1]]


@pytest.mark.parametrize(
    "options",
    [
        {"write-buffer-spillable": "false"},
        {"write-buffer-spill.max-disk-size": "1 b"},
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    ],
)
def test_rows_that_memory_can_not_order_are_refused(warehouse: Warehouse, options: dict[str, str]) -> None:
    """Rows of a key in two files of a commit have no order: the commit fails by name, and nothing is there of it."""
    table = warehouse.table("t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options=_small(options))
    with pytest.raises(Unsupported, match=r"write-buffer-size[\s\S]*raise"), table.writer() as writer:  # noqa: PT012
        writer.write(_rows((2, 1)))
        writer.write(_rows((1, 2), (2, 2)))
    assert table.latest_snapshot() is None
    with table.writer() as writer:  # what lies apart has no order to lose
        writer.write(_rows((1, 1)))
        writer.write(_rows((2, 2)))
    assert shown(table) == [[1, 1], [2, 2]]


def test_rows_that_went_to_disk_keep_their_order(warehouse: Warehouse) -> None:
    """Where rows may be put on local disk, one file has them all."""
    table = warehouse.table("t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options=_small({}))
    with table.writer() as writer:
        writer.write(_rows((2, 1)))
        writer.write(_rows((1, 2), (2, 2)))
    assert shown(table) == [[1, 2], [2, 2]]


def _small(options: dict[str, str]) -> dict[str, str]:
    return {"bucket": "1", "write-only": "true", "write-buffer-size": "1 b"} | ORDERED | options
