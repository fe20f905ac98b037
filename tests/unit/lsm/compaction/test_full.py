"""What a full compaction takes."""

from __future__ import annotations

import pytest
from tests.unit.lsm.bucket_under_test import KEY_TYPES, NOW_MS, as_text, described, levels_of

from lakebed.lsm.compaction.full import last_full_ms, pick_full
from lakebed.lsm.levels import Levels
from lakebed.metadata.data_file import creation_time_from_epoch


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ("0:1", "1 -> L5"),
        ("0:1 0:2 3:9", "1 2 9 -> L5"),
        ("4:9", "9 -> L5"),
        ("4:1 5:9", "1 9 -> L5"),
        ("5:9", "nothing"),
        ("", "nothing"),
    ],
)
def test_everything_goes_to_the_highest_level(runs: str, expected: str) -> None:
    """All runs, unless all lies at the top already."""
    levels = levels_of(*runs.split(), num_levels=6)
    plan = pick_full(levels, force_rewrite=False)
    assert as_text(levels, plan) == expected
    if plan is not None:
        assert plan.is_full
        assert plan.drops_retracts
        assert not plan.rewrites_each_file


def test_forcing_rewrites_what_lies_at_the_top() -> None:
    """With force, files that are in their place already are rewritten, one by one."""
    levels = Levels.of([described(5, keys=(1, 2)), described(5, keys=(3, 4))], KEY_TYPES, 6)
    plan = pick_full(levels, force_rewrite=True)
    assert plan is not None
    assert plan.files == levels.files
    assert plan.rewrites_each_file
    assert pick_full(Levels.of([], KEY_TYPES, 6), force_rewrite=True) is None


def test_only_files_that_must_are_rewritten_at_the_top() -> None:
    """A file with something to throw away is rewritten alone; its neighbours stay."""
    files = [described(5, keys=(i, i), file_name=f"f{i}") for i in range(3)]
    levels = Levels.of(files, KEY_TYPES, 6)
    plan = pick_full(levels, force_rewrite=False, must_rewrite=lambda file: file.file_name != "f1")
    assert plan is not None
    assert plan.files == (files[0], files[2])
    assert plan.rewrites_each_file
    assert pick_full(levels, force_rewrite=False, must_rewrite=lambda _: False) is None


def test_the_last_full_compaction_is_told_by_the_highest_level() -> None:
    """Its newest file was made then; other levels and files without a time say nothing."""
    made = creation_time_from_epoch(NOW_MS)
    files = [
        described(5, keys=(1, 1), creation_time_ms=made),
        described(5, keys=(2, 2), creation_time_ms=made - 1),
        described(5, keys=(3, 3), creation_time_ms=None),
        described(0, creation_time_ms=made + 5),
    ]
    assert last_full_ms(Levels.of(files, KEY_TYPES, 6)) == NOW_MS
    assert last_full_ms(Levels.of(files[2:], KEY_TYPES, 6)) is None
