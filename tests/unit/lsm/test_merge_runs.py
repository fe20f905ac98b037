"""The streaming merge of runs."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.unit.lsm.bucket_under_test import described

from lakebed.lsm.merge_runs import came_one_after_the_other, merge_runs, read_runs
from lakebed.lsm.sections import Section, SortedRun
from lakebed.merge.base import MergeOrder
from lakebed.merge.deduplicate import Deduplicate
from lakebed.types.key_value import KIND_FIELD, SEQUENCE_NUMBER, with_system_columns

ORDER = MergeOrder(("k",))


def batch(keys: list[int], first_number: int) -> pa.RecordBatch:
    """Rows with these keys, numbered from a start."""
    table = pa.RecordBatch.from_pydict({"k": pa.array(keys, pa.int64())})
    numbers = pa.array(range(first_number, first_number + len(keys)), pa.int64())
    return with_system_columns(table, numbers, pa.array([0] * len(keys), pa.int8()))


def merged(*runs: list[pa.RecordBatch]) -> list[list[tuple[int, int]]]:
    """Key and number of the rows of each batch that comes out."""
    return [
        [(row["k"], row["_SEQUENCE_NUMBER"]) for row in made.to_pylist()]
        for made in merge_runs([iter(run) for run in runs], ORDER, Deduplicate())
    ]


def test_no_runs_and_empty_runs_give_nothing() -> None:
    """Runs without rows, and batches without rows within a run, are passed over."""
    assert merged() == []
    assert merged([], [batch([], 0), batch([], 0)]) == []
    assert merged([batch([], 0), batch([1], 0), batch([], 0), batch([2], 1)]) == [[(1, 0)], [(2, 1)]]


def test_a_round_ends_at_the_smallest_last_key() -> None:
    """Rows above the cut wait, so that a key whose versions lie in different batches is merged once."""
    assert merged([batch([1, 2], 0), batch([5, 6], 2)], [batch([2, 5], 10), batch([6], 12)]) == [
        [(1, 0), (2, 10)],
        [(5, 10 + 1)],
        [(6, 12)],
    ]


def test_the_newer_run_wins_wherever_it_stands() -> None:
    """Sequence numbers decide, not the order in which the runs are given."""
    assert merged([batch([1, 2], 10)], [batch([1, 3], 0)]) == [[(1, 10), (2, 11), (3, 1)]]


def test_runs_that_end_are_merged_in_one_round() -> None:
    """A run sets no cut once it is known that nothing follows; one that goes on does."""
    short, long = [batch([2, 9], 10)], [batch([1, 2, 3], 0), batch([4, 9], 3)]
    assert merged(short, [batch([1, 5], 0)]) == [[(1, 0), (2, 10), (5, 1), (9, 11)]]
    assert merged(long, short) == [[(1, 0), (2, 10), (3, 2)], [(4, 3), (9, 11)]]


def test_after_a_large_batch_nothing_is_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them would be in memory for each run, so their last keys set the cuts."""
    monkeypatch.setattr("lakebed.lsm.merge_runs._LITTLE_BYTES", 0)
    assert merged([batch([1, 2], 10)], [batch([1, 3], 0)]) == [[(1, 10), (2, 11)], [(3, 1)]]


def test_runs_are_read_only_as_far_as_needed() -> None:
    """A consumer that stops after the first rows makes the runs read one batch each, and one more if that is small."""
    pulled: list[str] = []

    def run(name: str) -> Iterator[pa.RecordBatch]:
        for i in range(3):
            pulled.append(name)
            yield batch([10 * i, 10 * i + 5], 100 * i)

    stream = merge_runs([run("a"), run("b")], ORDER, Deduplicate())
    assert pulled == []
    next(stream)
    assert pulled == ["a", "a", "b", "b"]


def test_readers_see_the_columns_they_asked_for_without_retracts() -> None:
    """Keys come window by window; numbers may be missing where the order of runs says the same."""
    older = [batch([1, 2, 3], 0), batch([4, 5], 3)]
    newer = [batch([2, 4], 5).set_column(1, KIND_FIELD, pa.array([3, 0], pa.int8()))]
    for drop in ([], [SEQUENCE_NUMBER]):
        runs = [iter([rows.drop_columns(drop) for rows in run]) for run in (older, newer)]
        found = [rows.to_pydict() for rows in read_runs(runs, ORDER, Deduplicate(), ["k"])]
        assert found == [{"k": [1, 3]}, {"k": [4, 5]}]


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([[(0, 9)], [(10, 19)]], True),
        ([[(0, 4), (5, 9)], [(10, 19)], [(30, 30)]], True),
        ([[(0, 9)], [(9, 19)]], False),
        ([[(0, 4), (12, 14)], [(10, 19)]], False),
        ([[(10, 19)], [(0, 9)]], False),
    ],
)
def test_runs_came_one_after_the_other(ranges: list[list[tuple[int, int]]], expected: bool) -> None:
    """Only if every number of a run is larger than all numbers before."""
    runs = [
        SortedRun(tuple(described(0, min_sequence_number=low, max_sequence_number=high) for low, high in run))
        for run in ranges
    ]
    assert came_one_after_the_other(Section(tuple(runs))) is expected
