"""Rules of compaction with an example, seen from outside: levels, file names and counts of a table's files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.table.worked_tables import N, create, levels, shown, write

import lakebed
from lakebed.metadata.snapshot import CommitKind

WIDE = "k v:STRING"


def _fill(table: lakebed.Table, keys: Sequence[int], text: str = "x") -> None:
    """One commit of these keys with texts that do not compress well."""
    noise = np.random.default_rng(len(keys)).bytes(16 * len(keys)).hex()
    texts = [text + noise[32 * n : 32 * n + 32] for n in range(len(keys))]
    table.write(pa.table({"k": pa.array(keys, pa.int32()), "v": texts}))


def _deletes(table: lakebed.Table) -> int:
    return sum(file.delete_row_count or 0 for file in table.scan().files)


def _names(table: lakebed.Table) -> set[str]:
    return {file.file_name for file in table.scan().files}


# --- 5.2 -------------------------------------------------------------------------------------------------------------


def test_k_01_many_small_runs_become_one() -> None:
    """K-01: new runs outgrow the oldest, so everything goes to the highest level."""
    options = {"num-sorted-run.compaction-trigger": "3", "num-levels": "3"}
    table = create(WIDE, options | {"compaction.max-size-amplification-percent": "25"})
    for n in range(4):
        _fill(table, range(n, 50))
    table.compact()
    assert levels(table) == [2]


@pytest.mark.parametrize("upper", [1, 2])
def test_k_02_and_k_03_the_large_run_stays(upper: int) -> None:
    """K-02, K-03: small runs above a large one are merged into the level just above it; the large one stays."""
    options = {"num-sorted-run.compaction-trigger": "3", "num-levels": "4"}
    table = create(WIDE, options | {"compaction.max-size-amplification-percent": "25"})
    _fill(table, range(20_000))
    table.compact(full=True)
    large = _names(table)
    for n in range(3):
        _fill(table, range(5 * upper**n))
    table.compact()
    assert levels(table) == [2, 3]
    assert large < _names(table)
    assert table.to_arrow().num_rows == 20_000


def test_k_05_nothing_is_written_to_level_0() -> None:
    """K-05: runs of level 0 only, taken in part by their sizes, still go to the highest level together."""
    table = create(WIDE, {"num-sorted-run.compaction-trigger": "5", "compaction.max-size-amplification-percent": "999"})
    for keys in (20_000, 300, 5, 5, 5):
        _fill(table, range(keys))
    table.compact()
    assert levels(table) == [5]


# --- 5.3 to 5.5 ------------------------------------------------------------------------------------------------------


def test_runs_stay_below_the_stop_trigger() -> None:
    """5.3: however many commits, a writer that compacts leaves no more runs than allowed."""
    options = {"num-sorted-run.compaction-trigger": "3", "num-sorted-run.stop-trigger": "4"}
    table = create(WIDE, options, "universal")
    table.alter(lakebed.SetOption("num-sorted-run.compaction-trigger", "3"))
    for n in range(12):
        _fill(table, range(n, n + 20))
        assert len(table.scan().files) <= 4
    assert table.to_arrow().num_rows == 31


def test_lookup_example_forces_level_0_up() -> None:
    """5.4: with three levels, level 0 alone goes to level 1 below a larger run, and everything to 2 after that."""
    options = {"num-sorted-run.compaction-trigger": "3", "num-levels": "3", "compaction.force-up-level-0": "true"}
    table = create(WIDE, options)
    _fill(table, range(400))
    table.compact(full=True)
    assert levels(table) == [2]
    _fill(table, range(200))
    table.compact()
    assert levels(table) == [1, 2]
    _fill(table, range(200))
    table.compact()
    assert levels(table) == [2]


def test_full_compaction_of_a_compacted_table_does_nothing() -> None:
    """5.5: one run in the highest level is left alone, unless all files are to be rewritten."""
    table = create(WIDE, {})
    for _ in range(2):
        _fill(table, range(10))
    assert table.compact(full=True) is not None
    before = _names(table)
    assert table.compact(full=True) is None
    assert table.with_options({"compaction.force-rewrite-all-files": "true"}).compact(full=True) is not None
    assert levels(table) == [5]
    assert _names(table).isdisjoint(before)


def test_full_compaction_by_its_option() -> None:
    """5.5: `full-compaction.delta-commits` compacts at each commit of a batch job."""
    table = create(WIDE, {"full-compaction.delta-commits": "4"}, "universal")
    for n in range(3):
        _fill(table, range(n, n + 5))
        assert levels(table) == [2]


@pytest.mark.parametrize(
    "option", [{"compaction.optimization-interval": "1 d"}, {"compaction.total-size-threshold": "1 gb"}]
)
def test_early_full_compaction(option: dict[str, str]) -> None:
    """5.2 step 0: two runs are enough if no full compaction was ever done, or if the bucket is small."""
    table = create(WIDE, option)
    _fill(table, range(10))
    assert table.compact() is None
    _fill(table, range(10))
    assert table.compact() is not None
    assert levels(table) == [5]


# --- 5.6 -------------------------------------------------------------------------------------------------------------


def test_large_files_change_their_level_only() -> None:
    """5.6: files of sections of their own that are large enough are not written again."""
    table = create(WIDE, {"target-file-size": "20 kb"})
    for start in (0, 10_000, 20_000):
        _fill(table, range(start, start + 500))
    before = _names(table)
    assert all(file.size_bytes >= 14 * 1024 for file in table.scan().files)
    table.compact(full=True)
    assert levels(table) == [5, 5, 5]
    assert _names(table) == before


def test_a_lone_small_file_changes_its_level_only() -> None:
    """5.6: there is nothing to merge a lone file with."""
    table = create(WIDE, {})
    _fill(table, range(3))
    before = _names(table)
    table.compact(full=True)
    assert levels(table) == [5]
    assert _names(table) == before


def test_small_neighbours_are_merged() -> None:
    """5.6: small files that overlap nothing are rewritten as one all the same."""
    table = create(WIDE, {})
    for start in (0, 100, 200):
        _fill(table, range(start, start + 10))
    table.compact(full=True)
    assert levels(table) == [5]
    assert table.scan().files[0].row_count == 30


def test_a_file_with_deletes_is_written_again_at_the_top() -> None:
    """5.6: a lone file would only change its level, but no delete row may reach the highest one."""
    table = create(WIDE, {})
    write(table, [[1, "a"], ("-D", [2, "b"])])
    before = _names(table)
    assert _deletes(table) == 1
    table.compact(full=True)
    assert levels(table) == [5]
    assert _deletes(table) == 0
    assert _names(table).isdisjoint(before)


def test_output_rolls() -> None:
    """5.6: a compaction starts the next file at the target number of rows."""
    table = create(WIDE, {"target-file-row-num": "40"})
    for _ in range(2):
        _fill(table, range(100))
    table.compact(full=True)
    assert sorted(file.row_count for file in table.scan().files) == [20, 40, 40]
    assert levels(table) == [5, 5, 5]


# --- 5.7 -------------------------------------------------------------------------------------------------------------


def test_k_20_deletes_above_older_rows_are_kept() -> None:
    """K-20: level 0 goes to level 4 below a filled top; the deletes stay, and with them the rows stay hidden."""
    table = create(WIDE, {"num-sorted-run.compaction-trigger": "2", "num-levels": "6"})
    _fill(table, range(20_000))
    table.compact(full=True)
    for key in (7, 9):
        write(table, ("-D", [key, "any"]))
    table.compact()
    assert levels(table) == [4, 5]
    assert _deletes(table) == 2
    assert table.to_arrow().num_rows == 19_998
    table.compact(full=True)
    assert levels(table) == [5]
    assert _deletes(table) == 0
    assert table.to_arrow().num_rows == 19_998


def test_k_21_deletes_of_a_whole_bucket_are_dropped() -> None:
    """K-21: if everything goes to the top there is nothing older to hide."""
    table = create(WIDE, {"num-sorted-run.compaction-trigger": "2"})
    write(table, [[1, "a"], [2, "b"]])
    write(table, ("-D", [1, "a"]))
    write(table, ("-D", [3, "c"]))
    table.compact()
    assert levels(table) == [2]
    assert _deletes(table) == 0
    assert shown(table) == [[2, "b"]]


def test_nothing_is_left_of_a_bucket_of_deletes() -> None:
    """5.7: a bucket in which everything was deleted has no file after a full compaction."""
    table = create(WIDE, {})
    write(table, [1, "a"])
    write(table, ("-D", [1, "a"]))
    table.compact(full=True)
    assert levels(table) == []
    assert shown(table) == []
    write(table, [1, N])
    assert shown(table) == [[1, N]]


# --- 5.8, G-05, G-09 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["write-only", "write.compaction-skip"])
def test_write_only_never_compacts(key: str) -> None:
    """5.8, G-05: under both names of the option, writes leave files of level 0 only; a separate call compacts."""
    table = create(WIDE, {key: "true", "num-sorted-run.compaction-trigger": "2"}, "universal")
    for n in range(6):
        write(table, [n, "x"])
    assert levels(table) == [0] * 6
    assert table.compact() is not None
    assert levels(table) == [2]


def test_g_09_one_commit_two_snapshots() -> None:
    """G-09: rows first, then the compaction they made due, under the same user and identifier."""
    table = create(WIDE, {}, "universal")
    for n in range(2):
        write(table, [n, "x"])
    first, second, third = table.snapshots()
    assert [first.commit_kind, second.commit_kind, third.commit_kind] == [
        CommitKind.APPEND,
        CommitKind.APPEND,
        CommitKind.COMPACT,
    ]
    assert (second.commit_user, second.commit_identifier) == (third.commit_user, third.commit_identifier)


def test_g_04_a_commit_holds_a_key_once() -> None:
    """G-04: rows of one key in one commit are merged before they are written."""
    table = create("k n", {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"})
    write(table, [[1, 1], [1, 2], [2, 5], [1, 3]])
    assert [file.row_count for file in table.scan().files] == [2]
    assert shown(table) == [[1, 6], [2, 5]]


def test_g_03_a_lone_record_is_not_merged() -> None:
    """G-03: a delete that meets nothing is stored as it came, by every engine that takes deletes."""
    removing = {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}
    for options in ({}, removing, {"merge-engine": "aggregation"}):
        table = create(WIDE, options)
        write(table, ("-D", [1, "a"]))
        assert [file.delete_row_count for file in table.scan().files] == [1]
        assert shown(table) == []


# --- 1.4 -------------------------------------------------------------------------------------------------------------


def test_n_31_a_bucket_is_sorted_by_its_key() -> None:
    """N-31: files of a bucket hold rows in key order, and a filter on the key opens only files that can hold it."""
    lake = lakebed.connect("memory://n-31")
    options = {"bucket": "4", "write-only": "true"}
    table = lake.create_table("t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options=options)
    keys = np.random.default_rng(1).permutation(200).astype(np.int32)
    table.write(pa.table({"k": keys, "v": keys}))
    where = {key: {split.bucket for split in table.scan(filter=[("k", "=", key)]).splits} for key in range(200)}
    assert all(len(buckets) == 1 for buckets in where.values())
    assert set().union(*where.values()) == {0, 1, 2, 3}
    stored = table.to_arrow().column("k").to_pylist()
    for bucket in range(4):
        inside = [key for key in stored if where[key] == {bucket}]
        assert inside == sorted(inside)
    assert table.to_arrow(filter=[("k", "=", 7)]).to_pylist() == [{"k": 7, "v": 7}]


def test_n_32_the_number_of_buckets_changes_by_overwrite_only() -> None:
    """N-32: after the number of buckets was changed rows are refused until the table is rewritten."""
    table = create(WIDE, {"bucket": "2"})
    _fill(table, range(100))
    before = shown(table)
    table.alter(lakebed.SetOption("bucket", "5"))
    assert shown(table) == before
    with pytest.raises(lakebed.errors.LakebedError, match="bucket"):
        _fill(table, range(100))
    table.write(table.to_arrow(), overwrite=True)
    assert shown(table) == before
    assert {split.bucket for split in table.scan().splits} == {0, 1, 2, 3, 4}
