"""Compaction of real files: what is merged, what is moved, what is left when something fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.lsm.bucket_under_test import KEY_TYPES, Bucket, Change, described

from lakebed.errors import StorageError
from lakebed.fileio.memory import MemoryFileIO
from lakebed.lsm.checker import check_levels
from lakebed.lsm.compaction.full import pick_full
from lakebed.lsm.compaction.merging import PlainMerging
from lakebed.lsm.compaction.plan import CompactionPlan, plan_newest
from lakebed.lsm.compaction.task import CompactionTask, Move
from lakebed.lsm.sections import SortedRun
from lakebed.merge.base import Groups, MergeEngine, MergeSetup
from lakebed.merge.deduplicate import Deduplicate
from lakebed.merge.partial_update import PartialUpdate
from lakebed.metadata.data_file import DataFile, FileSource
from lakebed.testing.faulty_io import MUTATIONS, FaultyFileIO, count_operations
from lakebed.types.key_value import with_system_columns

LARGE = 1
"""A target size in bytes beside which every real file is large."""


def inserts(*keys: int, text: str = "x") -> list[Change]:
    return [("+I", key, key, text) for key in keys]


def full(bucket: Bucket) -> CompactionPlan:
    plan = pick_full(bucket.levels, force_rewrite=False)
    assert plan is not None
    return plan


# --- steps: what is merged and what is moved ------------------------------------------------------------------------


def steps_of(plan: CompactionPlan, **changes: object) -> list[str]:
    """Steps as text: `a>` for a move, `a+b` for a rewrite, of files named by letters."""
    bucket = Bucket(target_size_bytes=100)
    task = replace(bucket.task, **changes)
    texts = []
    for step in task.steps(plan):
        files = [step.file] if isinstance(step, Move) else step.files
        names = "+".join(sorted(file.file_name for file in files))
        texts.append(names + (">" if isinstance(step, Move) else ""))
    return texts


def plan_of(*files: DataFile, output_level: int = 5, is_full: bool = True) -> CompactionPlan:
    return CompactionPlan(output_level, files, is_full, "test", is_full)


def file(name: str, low: int, high: int, size: int = 70, level: int = 0, deletes: int | None = 0) -> DataFile:
    return described(level, size, (low, high), file_name=name, delete_row_count=deletes, row_count=9)


def test_large_files_that_nobody_overlaps_are_moved() -> None:
    """From seven tenths of the target size on, a file changes its level only; in its place already, it is no step."""
    assert steps_of(plan_of(file("a", 1, 2), file("b", 3, 4, level=3), file("c", 5, 6, level=5))) == ["a>", "b>"]


def test_overlapping_files_are_rewritten() -> None:
    """A section of several runs is merged, however large its files are."""
    assert steps_of(plan_of(file("a", 1, 5), file("b", 5, 9), file("c", 10, 11))) == ["a+b", "c>"]


def test_small_neighbours_are_rewritten_together() -> None:
    """Small files join the rewrite beside them, and so do small files alone if there are several."""
    small = [file(name, 10 * i, 10 * i + 1, 69) for i, name in enumerate("abc")]
    assert steps_of(plan_of(*small)) == ["a+b+c"]
    merged = [file("x", 50, 60), file("y", 55, 70)]
    assert steps_of(plan_of(*small, *merged)) == ["a+b+c+x+y"]


def test_rewrites_do_not_reach_across_a_large_file() -> None:
    """A large file between small ones is moved, and parts what is rewritten: no output may span it."""
    files = [file("a", 1, 2, 5), file("b", 3, 4, 5), file("c", 5, 6), file("d", 7, 8, 5), file("e", 9, 10, 5)]
    assert steps_of(plan_of(*files)) == ["a+b", "c>", "d+e"]


def test_a_lone_small_file_is_moved() -> None:
    """With no neighbour to join, rewriting a small file would gain nothing."""
    files = [file("a", 1, 2, 5), file("b", 3, 4), file("c", 5, 6, 5)]
    assert steps_of(plan_of(*files)) == ["a>", "b>", "c>"]
    assert steps_of(plan_of(file("a", 1, 2, 5, level=5), file("b", 3, 4))) == ["b>"]


@pytest.mark.parametrize("deletes", [1, None])
def test_files_with_retracts_are_rewritten_at_the_top(deletes: int | None) -> None:
    """The highest level is free of retracts: a file that has some, or may have, is rewritten; not so further down."""
    files = [file("a", 1, 2, deletes=deletes), file("b", 3, 4), file("c", 5, 6, 5, deletes=deletes), file("d", 7, 8)]
    assert steps_of(plan_of(*files)) == ["a", "b>", "c", "d>"]
    assert steps_of(plan_of(*files, output_level=4, is_full=False)) == ["a>", "b>", "c>", "d>"]
    in_place = file("a", 1, 2, level=5, deletes=deletes)
    assert steps_of(plan_of(in_place, file("b", 3, 4))) == ["a", "b>"]


def test_files_can_be_rewritten_for_other_reasons() -> None:
    """Force rewrites all; a predicate rewrites those it names, each on its own."""
    files = [file("a", 1, 2), file("b", 3, 4, level=5)]
    assert steps_of(plan_of(*files), force_rewrite=True) == ["a", "b"]
    assert steps_of(plan_of(*files), must_rewrite=lambda f: f.file_name == "b") == ["a>", "b"]


def test_each_file_on_its_own() -> None:
    """A plan for single files merges no neighbours, small or not."""
    plan = replace(plan_of(file("a", 1, 2, 5), file("b", 3, 4, 5)), rewrites_each_file=True)
    assert steps_of(plan) == ["a", "b"]


def test_the_small_file_ratio_can_be_set() -> None:
    """What counts as small is a part of the target size."""
    files = [file("a", 1, 2, 50), file("b", 3, 4, 49)]
    assert steps_of(plan_of(*files), small_file_ratio=0.5) == ["a>", "b>"]
    assert steps_of(plan_of(*files), small_file_ratio=0.51) == ["a+b"]


# --- running --------------------------------------------------------------------------------------------------------


def test_moving_keeps_the_file() -> None:
    """A moved file has the same name, the same bytes and everything else but its level; nothing is written."""
    bucket = Bucket(target_size_bytes=LARGE)
    (moved,) = bucket.flush(inserts(1, 2))
    (other,) = bucket.flush(inserts(5, 6))
    result = bucket.compact(full(bucket))
    assert result.before == (moved, other)
    assert result.after == (moved.at_level(5), other.at_level(5))
    assert bucket.on_disk() == {moved.file_name, other.file_name}


def test_rewriting_keeps_numbers_and_kinds() -> None:
    """The newest row of a key comes out with its own sequence number and kind; files are marked as compacted."""
    bucket = Bucket()
    bucket.flush([("+I", 1, 10, "old"), ("+I", 2, 20, "old")])
    bucket.flush([("+U", 1, 11, "new"), ("+I", 3, 30, "new")])
    old = tuple(bucket.files)
    result = bucket.compact(full(bucket))
    (made,) = bucket.files
    assert set(result.before) == set(old)
    assert result.after == (made,)
    assert (made.level, made.file_source, made.row_count) == (5, FileSource.COMPACT, 3)
    assert bucket.stored(made) == [("+U", 1, 11, "new"), ("+I", 2, 20, "old"), ("+I", 3, 30, "new")]
    assert bucket.sequence_numbers(made) == {1: 2, 2: 1, 3: 3}
    assert (made.min_sequence_number, made.max_sequence_number) == (1, 3)


def test_engines_that_fold_tell_the_kind() -> None:
    """What a folding engine makes of several rows is an insert."""
    bucket = Bucket(PartialUpdate(MergeSetup(key=("k",))))
    bucket.flush([("+I", 1, 10, None)])
    bucket.flush([("+U", 1, None, "t"), ("+U", 2, 5, None)])
    bucket.compact(full(bucket))
    assert bucket.merged() == [("+I", 1, 10, "t"), ("+U", 2, 5, None)]


def test_k20_retracts_stay_below_older_data() -> None:
    """K-20: compacting level 0 under a filled top keeps the -D, so that the old row stays hidden."""
    bucket = Bucket()
    bucket.flush(inserts(1, 2), level=5)
    bucket.flush([("-D", 1, 1, "x")])
    bucket.flush([("-D", 1, 1, "x"), ("+I", 9, 9, "x")])
    bucket.compact(plan_newest(bucket.levels, 2, "test"))
    (low,) = [made for made in bucket.files if made.level == 4]
    assert low.delete_row_count == 1
    assert bucket.rows() == [(2, 2, "x"), (9, 9, "x")]


def test_k21_retracts_go_at_the_top() -> None:
    """K-21: when everything goes to the top, the -D goes, and with it what it hid."""
    bucket = Bucket()
    bucket.flush(inserts(1, 2))
    bucket.flush([("-D", 1, 1, "x")])
    bucket.compact(full(bucket))
    assert bucket.merged() == [("+I", 2, 2, "x")]
    assert [made.delete_row_count for made in bucket.files] == [0]


def test_k22_retracts_go_when_the_oldest_run_comes_along() -> None:
    """K-22: level 0 and the highest filled level go to the top together: nothing older is left."""
    bucket = Bucket()
    bucket.flush(inserts(1, 2), level=3)
    bucket.flush([("-D", 1, 1, "x"), ("-D", 7, 7, "x")])
    bucket.compact(plan_newest(bucket.levels, 2, "test"))
    assert [made.level for made in bucket.files] == [5]
    assert bucket.merged() == [("+I", 2, 2, "x")]


def test_k23_retracts_go_with_deletion_vectors() -> None:
    """K-23: as K-20, but deletion vectors mask the old row, so the -D is not kept."""
    bucket = Bucket()
    bucket.flush(inserts(1, 2), level=5)
    bucket.flush([("-D", 1, 1, "x"), ("+I", 8, 8, "x")])
    bucket.flush(inserts(8))
    result = bucket.compact(plan_newest(bucket.levels, 2, "test", deletion_vectors=True))
    assert [bucket.stored(made) for made in result.after] == [inserts(8)]


def test_nothing_may_remain() -> None:
    """A bucket whose rows are all deleted is empty after a full compaction, without a file."""
    bucket = Bucket()
    bucket.flush(inserts(1, 2))
    bucket.flush([("-D", 1, 1, "x"), ("-D", 2, 2, "x")])
    result = bucket.compact(full(bucket))
    assert result.after == ()
    assert bucket.files == []


def test_a_lone_file_with_retracts_is_cleaned_at_the_top() -> None:
    """A file that overlaps nothing is rewritten for its retracts alone."""
    bucket = Bucket(target_size_bytes=LARGE)
    bucket.flush([("+I", 1, 1, "x"), ("-D", 2, 2, "x")])
    bucket.compact(full(bucket))
    assert [(made.level, made.delete_row_count) for made in bucket.files] == [(5, 0)]
    assert bucket.merged() == inserts(1)


def test_output_rolls_in_key_order() -> None:
    """Several sections go through one writer: files are as full as they can be, disjoint and in order."""
    bucket = Bucket(rows_per_file=4)
    bucket.flush(inserts(1, 2, 3))
    bucket.flush(inserts(3, 4))
    bucket.flush(inserts(10, 11, 12, 13))
    bucket.flush(inserts(13, 20))
    result = bucket.compact(full(bucket))
    assert [made.row_count for made in result.after] == [4, 4, 1]
    assert [row[0] for row in bucket.rows()] == [1, 2, 3, 4, 10, 11, 12, 13, 20]
    assert check_levels(bucket.files, KEY_TYPES, num_levels=6) == []


def test_forced_rewrites_leave_the_rows() -> None:
    """A forced full compaction at the top makes new files of the same rows."""
    bucket = Bucket(force_rewrite=True)
    bucket.flush(inserts(1, 2), level=5)
    bucket.flush(inserts(3, 4), level=5)
    old = {made.file_name for made in bucket.files}
    bucket.compact(pick_full(bucket.levels, force_rewrite=True))
    assert len(bucket.files) == 2
    assert old.isdisjoint(made.file_name for made in bucket.files)
    assert bucket.rows() == [(key, key, "x") for key in (1, 2, 3, 4)]


def test_overlap_above_level_0_is_healed() -> None:
    """Files of one level that overlap against the rules are merged like any others."""
    bucket = Bucket()
    bucket.flush(inserts(1, 5), level=3)
    bucket.flush(inserts(5, 9, text="new"), level=3)
    assert check_levels(bucket.files, KEY_TYPES)
    bucket.compact(full(bucket))
    assert check_levels(bucket.files, KEY_TYPES) == []
    assert bucket.rows() == [(1, 1, "x"), (5, 5, "new"), (9, 9, "new")]


# --- threads --------------------------------------------------------------------------------------------------------


def bucket_with_gaps(threads: int, rewrites: int = 6) -> Bucket:
    """Pairs of overlapping files, parted by files that are large beside the target: several rewrites."""
    bucket = Bucket(threads=threads, target_size_bytes=LARGE)
    for start in range(0, 10 * rewrites, 10):
        bucket.flush(inserts(start, start + 2, start + 4))
        bucket.flush(inserts(start + 1, start + 3, text="new"))
        bucket.flush(inserts(start + 7))
    return bucket


@pytest.mark.parametrize("threads", [2, 8])
def test_threads_change_nothing(threads: int) -> None:
    """The same files in the same order come out, whatever the number of threads."""
    alone, together = bucket_with_gaps(1), bucket_with_gaps(threads)
    one, several = alone.compact(full(alone)), together.compact(full(together))

    def told(files: tuple[DataFile, ...]) -> list[tuple[bytes, bytes, int, int]]:
        return [(made.min_key, made.max_key, made.row_count, made.level) for made in files]

    assert told(one.after) == told(several.after)
    assert [made.file_name for made in one.before] == [made.file_name for made in several.before]
    assert alone.merged() == together.merged()


def test_rewrites_run_at_the_same_time() -> None:
    """With two threads two rewrites are under way at once, and never three."""
    bucket = bucket_with_gaps(2)
    both = threading.Barrier(2, timeout=30)
    running: set[int] = set()
    most = 0

    def read(run: SortedRun) -> Iterator[pa.RecordBatch]:
        nonlocal most
        running.add(threading.get_ident())
        most = max(most, len(running))
        both.wait()  # twelve runs: they meet here pair by pair
        yield from bucket.read_run(run)

    replace(bucket.task, merging=PlainMerging(bucket.order, bucket.engine, read)).run(full(bucket))
    assert most == 2


# --- failures -------------------------------------------------------------------------------------------------------


def failing_task(bucket: Bucket, io: FaultyFileIO) -> CompactionTask:
    """The bucket's compaction, with a file system that fails in front of its disk."""
    task = bucket.task
    return Bucket(fileio=io, threads=task.threads, target_size_bytes=task.target_size_bytes, first_name=1000).task


@pytest.mark.parametrize("threads", [1, 3])
def test_every_failure_leaves_no_file(threads: int) -> None:
    """Whatever file operation fails, the compaction raises and the bucket's directory is as before."""
    bucket = bucket_with_gaps(threads, rewrites=2)
    before = bucket.on_disk()
    plan = full(bucket)

    def run(io: FaultyFileIO) -> None:
        failing_task(bucket, io).run(plan)

    total = count_operations(run, bucket.fileio)
    assert total > 10
    for name in bucket.on_disk() - before:
        bucket.fileio.delete(f"bucket/{name}")
    for n in range(1, total + 1):
        io = FaultyFileIO(bucket.fileio, fail_at=n)
        with pytest.raises(StorageError, match="injected fault"):
            failing_task(bucket, io).run(plan)
        assert bucket.on_disk() == before, f"operation {n}: {io.ops[n - 1]}"
    assert bucket.merged()


def test_a_failing_merge_leaves_no_file() -> None:
    """An engine that refuses the rows of a late section takes back what earlier ones have written."""

    class Refusing(MergeEngine):
        name = "refusing"

        def merge(self, rows: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
            if 52 in rows.column("k").to_pylist():
                raise StorageError("no", hint="none")
            return Deduplicate().merge(rows, groups)

    for threads in (1, 4):
        bucket = bucket_with_gaps(threads)
        before = bucket.on_disk()
        with pytest.raises(StorageError, match="no"):
            replace(bucket.task, merging=PlainMerging(bucket.order, Refusing(), bucket.read_run)).run(full(bucket))
        assert bucket.on_disk() == before


def test_an_interrupt_leaves_no_file() -> None:
    """Errors that are no exceptions of ours clean up as well."""
    bucket = bucket_with_gaps(1)
    before = bucket.on_disk()
    reads = 0

    def read(run: SortedRun) -> Iterator[pa.RecordBatch]:
        nonlocal reads
        reads += 1
        if reads == 7:
            raise KeyboardInterrupt
        yield from bucket.read_run(run)

    with pytest.raises(KeyboardInterrupt):
        replace(bucket.task, merging=PlainMerging(bucket.order, bucket.engine, read)).run(full(bucket))
    assert bucket.on_disk() == before


def test_moves_write_nothing() -> None:
    """A compaction of moves only does not touch the file system."""
    bucket = Bucket(target_size_bytes=LARGE)
    bucket.flush(inserts(1))
    bucket.flush(inserts(2))
    io = FaultyFileIO(bucket.fileio, fail_at=1, only=MUTATIONS)
    failing_task(bucket, io).run(full(bucket))
    assert io.ops == []


# --- memory ---------------------------------------------------------------------------------------------------------


class WatchedEngine(MergeEngine):
    """Deduplicates, and notes how many rows it ever saw at once and how much memory Arrow held then."""

    name = "watched"

    def __init__(self) -> None:
        super().__init__()
        self.widest_window = 0
        self.most_bytes = 0
        self.windows = 0

    def merge(self, rows: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
        self.windows += 1
        self.widest_window = max(self.widest_window, rows.num_rows)
        self.most_bytes = max(self.most_bytes, pa.total_allocated_bytes())
        return Deduplicate().merge(rows, groups)


def compacted_in_small_batches(rows_per_run: int) -> tuple[WatchedEngine, Bucket]:
    bucket = Bucket(batch_rows=1000, row_group_rows=2000, fileio=MemoryFileIO(f"memory-{rows_per_run}"))
    bucket.fileio.delete_directory("bucket")
    for run in range(3):
        keys = np.arange(rows_per_run, dtype=np.int64) * 3 + run * 2
        rows = pa.record_batch(
            {
                "k": pa.array(keys),
                "n": pa.array(np.full(rows_per_run, run, dtype=np.int32)),
                "t": pa.repeat("some text", rows_per_run),
            }
        )
        numbers = pa.array(np.arange(rows_per_run) + run * rows_per_run)
        bucket.add(with_system_columns(rows, numbers, pa.array(np.zeros(rows_per_run, dtype=np.int8))))
    del rows, numbers, keys
    engine = WatchedEngine()
    plan = full(bucket)
    at_rest = pa.total_allocated_bytes()
    result = replace(bucket.task, merging=PlainMerging(bucket.order, engine, bucket.read_run)).run(plan)
    bucket.files = result.applied_to(bucket.files)
    engine.most_bytes -= at_rest
    return engine, bucket


def test_memory_does_not_grow_with_the_bucket() -> None:
    """Eight times the rows make more windows, none wider than a batch of each run, and hardly more memory."""
    small, _ = compacted_in_small_batches(8_000)
    large, bucket = compacted_in_small_batches(64_000)
    assert large.windows > 7 * small.windows > 50
    assert large.widest_window <= 3 * 1000
    assert large.most_bytes < 1.5 * small.most_bytes + 100_000
    (made,) = bucket.files
    assert made.row_count == len({key * 3 + run * 2 for run in range(3) for key in range(64_000)})
