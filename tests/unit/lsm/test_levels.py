"""How the files of a bucket are arranged into runs."""

from __future__ import annotations

import pytest
from tests.unit.lsm.bucket_under_test import KEY_TYPES, described

from lakebed.errors import CorruptFile, InvalidArgument
from lakebed.lsm.levels import Levels


def test_runs_go_from_newest_to_oldest() -> None:
    """Level 0 file by file, the larger sequence number first; then one run for every level that holds files."""
    old = described(0, max_sequence_number=3)
    new = described(0, max_sequence_number=9)
    left, right = described(2, keys=(1, 4)), described(2, keys=(5, 9))
    top = described(5, keys=(1, 9))
    levels = Levels.of([right, old, top, new, left], KEY_TYPES, 6)
    assert [(run.level, run.run.files) for run in levels.runs] == [
        (0, (new,)),
        (0, (old,)),
        (2, (left, right)),
        (5, (top,)),
    ]
    assert levels.level0 == (new, old)
    assert levels.files == (new, old, left, right, top)
    assert levels.number_of_runs == 4
    assert levels.highest_non_empty_level == 5
    assert levels.max_level == 5


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"max_sequence_number": 9}, {"max_sequence_number": 8}),
        ({"min_sequence_number": 1, "max_sequence_number": 9}, {"min_sequence_number": 2, "max_sequence_number": 9}),
        ({"creation_time_ms": 5, "file_name": "b"}, {"creation_time_ms": 6, "file_name": "a"}),
        ({"creation_time_ms": None, "file_name": "b"}, {"creation_time_ms": 6, "file_name": "a"}),
        ({"file_name": "a"}, {"file_name": "b"}),
    ],
)
def test_ties_in_level_0_are_broken(first: dict[str, object], second: dict[str, object]) -> None:
    """Files of several writers may have equal numbers; their order is still the same for everybody."""
    one, two = described(0, **first), described(0, **second)
    assert Levels.of([two, one], KEY_TYPES, 6).level0 == (one, two)
    assert Levels.of([one, two], KEY_TYPES, 6).level0 == (one, two)


def test_sizes_add_up() -> None:
    """A run is as large as its files together, and a bucket as its runs."""
    levels = Levels.of([described(1, 5, (1, 2)), described(1, 7, (3, 4)), described(0, 2)], KEY_TYPES, 6)
    assert [run.size_bytes for run in levels.runs] == [2, 12]
    assert levels.size_bytes == 14


def test_an_empty_bucket_has_no_level() -> None:
    """Without files there is no run, and the highest level with data is none."""
    levels = Levels.of([], KEY_TYPES, 6)
    assert (levels.runs, levels.highest_non_empty_level, levels.max_level) == ((), -1, 5)


def test_files_beyond_the_number_of_levels_are_kept() -> None:
    """A table that had more levels once keeps as many as its files need."""
    assert Levels.of([described(7)], KEY_TYPES, 6).max_level == 7


def test_one_level_is_too_few() -> None:
    """Compaction must have somewhere to go."""
    with pytest.raises(InvalidArgument, match="1 levels"):
        Levels.of([], KEY_TYPES, 1)


def test_levels_below_zero_are_damage() -> None:
    """No level lies below 0."""
    with pytest.raises(CorruptFile, match="level -1"):
        Levels.of([described(-1)], KEY_TYPES, 6)
