"""Every rule of the levels, broken once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.lsm.bucket_under_test import KEY_TYPES, described

from lakebed.lsm.checker import check_levels
from lakebed.metadata.data_file import FileSource


def test_good_buckets_have_no_findings() -> None:
    """Overlap on level 0 and between levels is what an LSM tree is made of; neighbours on a level may be close."""
    files = [
        described(0, keys=(1, 9)),
        described(0, keys=(1, 9)),
        described(1, keys=(1, 4), file_source=FileSource.COMPACT),
        described(1, keys=(5, 5), delete_row_count=None),
        described(5, keys=(1, 9), row_count=3, delete_row_count=3),
    ]
    assert check_levels(files, KEY_TYPES, num_levels=6) == []
    assert check_levels([], KEY_TYPES) == []


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"level": -1}, "a lies on level -1, below level 0"),
        ({"level": 6}, "a lies on level 6, but the highest level is 5"),
        ({"level": 0, "file_source": FileSource.COMPACT}, "a lies on level 0, but compaction made it"),
        ({"row_count": 0}, "a has 0 rows"),
        ({"delete_row_count": -1}, "a has -1 retract rows among its 1 rows"),
        ({"delete_row_count": 2}, "a has 2 retract rows among its 1 rows"),
        (
            {"min_sequence_number": 4, "max_sequence_number": 3},
            "a has sequence numbers from 4 to 3: the smallest is above the largest",
        ),
        ({"keys": (2, 1)}, "a has a smallest key above its largest"),
    ],
)
def test_wrong_files_are_named(changes: dict[str, Any], finding: str) -> None:
    """A file that can not be right is reported with its name and what is wrong."""
    file = described(**{"level": 1, "file_name": "a"} | changes)
    assert check_levels([file], KEY_TYPES, num_levels=6) == [finding]


def test_a_name_listed_twice_is_found() -> None:
    """One file can lie on one level only."""
    files = [described(0, file_name="a"), described(1, file_name="a")]
    assert check_levels(files, KEY_TYPES) == ["a is listed 2 times"]


@pytest.mark.parametrize(
    ("ranges", "findings"),
    [
        ([(1, 4), (4, 6)], ["f0 and f1 overlap on level 2"]),
        ([(1, 9), (2, 3), (4, 5)], ["f0 and f1 overlap on level 2", "f0 and f2 overlap on level 2"]),
        ([(1, 2), (1, 2)], ["f0 and f1 overlap on level 2"]),
        ([(1, 2), (3, 4)], []),
    ],
)
def test_overlap_on_a_level_is_found(ranges: list[tuple[int, int]], findings: list[str]) -> None:
    """Files of a level above 0 share no key, also when a long one covers several others."""
    files = [described(2, keys=keys, file_name=f"f{i}") for i, keys in enumerate(ranges)]
    assert check_levels(files, KEY_TYPES) == findings


def test_unreadable_keys_are_a_finding() -> None:
    """Damaged keys are reported, and the other files are still looked at."""
    files = [described(1, file_name="a", min_key=b"\x00"), described(1, file_name="b"), described(1, file_name="c")]
    findings = check_levels(files, KEY_TYPES)
    assert len(findings) == 2
    assert findings[0].startswith("a has keys that can not be read: ")
    assert findings[1] == "b and c overlap on level 1"
