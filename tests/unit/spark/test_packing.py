"""How splits are shared out among the tasks of a read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.metadata.metadata_samples import data_file

from lakebed.lsm.sections import Section, SortedRun
from lakebed.read.splits import Split
from lakebed.spark.read import packed, parts_of
from lakebed.types.binary_row import EMPTY_ROW

MB = 1 << 20


def _sections(sizes_bytes: list[int]) -> list[Section]:
    return [Section((SortedRun((data_file(size_bytes=size),)),)) for size in sizes_bytes]


def _splits(sizes_bytes: list[int]) -> list[Split]:
    return [
        Split(EMPTY_ROW, bucket, (Section((SortedRun((data_file(size_bytes=size),)),)),))
        for bucket, size in enumerate(sizes_bytes)
    ]


def _buckets(groups: list[list[Split]]) -> list[list[int]]:
    return [[split.bucket for split in group] for group in groups]


@given(st.lists(st.integers(0, 200 * MB), max_size=30), st.integers(1, 8))
def test_every_split_is_in_one_task(sizes_bytes: list[int], parallelism: int) -> None:
    """No split is lost or read twice, the order stays, and no task is without work."""
    groups = _buckets(packed(_splits(sizes_bytes), parallelism))
    assert [bucket for group in groups for bucket in group] == list(range(len(sizes_bytes)))
    assert all(groups)


def test_small_splits_share_a_task() -> None:
    """What is too small to be worth a second task is read by one, however many could work."""
    assert _buckets(packed(_splits([MB] * 8), 4)) == [list(range(8))]


def test_everybody_has_work() -> None:
    """A table of less than a task's usual size is still shared out evenly among those who could work."""
    assert _buckets(packed(_splits([6 * MB] * 8), 2)) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_tasks_come_in_full_rounds() -> None:
    """There are as many tasks as workers, or a multiple of it, so that none is idle at the end."""
    assert len(packed(_splits([24 * MB] * 8), 2)) == 4
    assert len(packed(_splits([150 * MB] * 8), 2)) == 8


def test_many_small_files_are_much_work() -> None:
    """Files count by their number too: thousands of them are not left to one task."""
    groups = packed(_splits([4000] * 2000), 4)
    assert len(groups) == 8
    assert {len(group) for group in groups} == {250}


@given(st.lists(st.lists(st.integers(0, 90 * MB), max_size=8), max_size=6), st.integers(1, 8))
def test_every_section_is_in_one_part(sizes_bytes: list[list[int]], parallelism: int) -> None:
    """No file is lost or read twice, and the order stays."""
    splits = [_splits([0])[0].with_sections(tuple(_sections(sizes))) for sizes in sizes_bytes]
    parts = parts_of(splits, parallelism)
    assert [s for part in parts for s in part.sections] == [s for split in splits for s in split.sections]


def test_a_large_split_keeps_all_busy() -> None:
    """A split of many files is more than one task's work: several share it, none of whom gets crumbs."""
    (split,) = (_splits([0])[0].with_sections(tuple(_sections([10 * MB] * 12))),)
    assert [len(part.sections) for part in parts_of([split], 2)] == [6, 6]
    assert [len(group) for group in packed(parts_of([split], 4), 4)] == [1, 1, 1, 1]
    assert len(parts_of([_splits([MB])[0]], 8)) == 1
