"""Which files of a table without a key are joined: by size, by order, by deleted rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.lsm.compaction.small_files import SmallFileRules, pick_ordered, pick_unordered
from lakebed.metadata.data_file import EMPTY_STATS, DataFile
from lakebed.types.binary_row import EMPTY_ROW

RULES = SmallFileRules(100, open_file_cost_bytes=0)


def _file(number: int, size: int, rows: int = 10) -> DataFile:
    sequence = number * 100
    return DataFile(
        f"{number:03}", size, rows, EMPTY_ROW, EMPTY_ROW, EMPTY_STATS, EMPTY_STATS, sequence, sequence + rows - 1, 0, 0
    )


def _files(*sizes: int) -> list[DataFile]:
    return [_file(number, size) for number, size in enumerate(sizes)]


def _names(groups: list[tuple[DataFile, ...]]) -> list[list[int]]:
    return [[int(file.file_name) for file in group] for group in groups]


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([], []),
        ([10, 10, 10, 10], []),
        ([10, 10, 10, 10, 10], [[0, 1, 2, 3, 4]]),
        ([10, 90, 10, 100, 10, 70, 10, 69], [[0, 2, 4, 6, 7]]),
        ([60, 60, 60, 60, 60, 60], [[0, 1, 2, 3]]),
        ([60, 60, 60, 60, 1, 2, 3, 4, 5], [[0, 1, 2, 3, 4, 5, 6, 7, 8]]),
    ],
)
def test_without_order(sizes: list[int], groups: list[list[int]]) -> None:
    """Small files are packed up to twice the target; a rest of fewer than five waits."""
    assert _names(pick_unordered(_files(*sizes), RULES)) == groups


def test_a_file_that_costs_more_to_open_than_to_read() -> None:
    """Opening a file counts as reading some bytes more."""
    groups = pick_unordered(_files(*[1] * 8), replace(RULES, open_file_cost_bytes=99))
    assert _names(groups) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_full_without_order() -> None:
    """A full compaction does not wait for more small files, but one alone stays as it is."""
    assert _names(pick_unordered(_files(10, 10, 100), RULES, full=True)) == [[0, 1]]
    assert pick_unordered(_files(10, 100), RULES, full=True) == []


def test_deleted_rows_without_order() -> None:
    """A file of which more than a fifth is deleted is rewritten even alone; with less of them it takes a full one."""
    files = _files(100, 100, 100)
    rules = replace(RULES, deleted_rows=lambda file: {"000": 2, "001": 3}.get(file.file_name, 0))
    assert _names(pick_unordered(files, rules)) == [[1]]
    assert _names(pick_unordered(files, rules, full=True)) == [[0, 1]]


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([10, 10, 10, 10], []),
        ([10, 10, 10, 10, 10, 10], [[0, 1, 2, 3, 4]]),
        ([150, 60, 10, 10, 10, 10], [[1, 2, 3, 4, 5]]),
        ([100, 100, 100, 100, 100, 100], []),
        ([10] * 11, [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]),
    ],
)
def test_in_order(sizes: list[int], groups: list[list[int]]) -> None:
    """Five neighbours that are not too large together are joined; the window moves on past large files."""
    assert _names(pick_ordered(_files(*sizes), RULES)) == groups


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([10, 10], []),
        ([10, 10, 10], [[0, 1, 2]]),
        ([100, 100, 10, 10, 10], [[2, 3, 4]]),
        ([100, 10, 100, 10, 10], [[1, 2, 3, 4]]),
        ([10, 100, 100, 10], []),
    ],
)
def test_full_in_order(sizes: list[int], groups: list[list[int]]) -> None:
    """All from the first small file on, if there are three and more of them are small than large."""
    assert _names(pick_ordered(_files(*sizes), RULES, full=True)) == groups


def test_full_in_order_as_the_table_asks() -> None:
    """Two files are enough where the table says that so few are worth it."""
    assert _names(pick_ordered(_files(10, 10), replace(RULES, min_file_count=1), full=True)) == [[0, 1]]
    assert pick_ordered(_files(10), replace(RULES, min_file_count=1), full=True) == []


def test_deleted_rows_in_order() -> None:
    """A full compaction rids a bucket of deleted rows, however few files there are."""
    rules = replace(RULES, deleted_rows=lambda file: int(file.file_name == "001"))
    assert _names(pick_ordered(_files(100, 100), rules, full=True)) == [[1]]
    assert pick_ordered(_files(100, 100), rules) == []


@settings(deadline=None)
@given(st.lists(st.integers(1, 150), max_size=40), st.booleans(), st.randoms())
def test_order_is_kept_and_no_file_is_taken_twice(sizes: list[int], full: bool, random: object) -> None:
    """In a bucket groups are stretches of neighbours, wherever the manifest lists them; elsewhere just disjoint."""
    files = _files(*sizes)
    shuffled = list(files)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for group in _names(pick_ordered(shuffled, RULES, full=full)):
        assert group == list(range(group[0], group[0] + len(group)))
    taken = [name for group in _names(pick_unordered(shuffled, RULES, full=full)) for name in group]
    assert len(set(taken)) == len(taken)
    assert all(RULES.is_small(files[number]) for number in taken)
