"""Where chosen runs go, and whether their retracts may go too."""

from __future__ import annotations

import pytest
from tests.unit.lsm.bucket_under_test import as_text, described, levels_of

from lakebed.lsm.compaction.plan import CompactionResult, plan_newest


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, "10 20 30 -> L1"),
        (2, "10 20 30 -> L1"),
        (3, "10 20 30 -> L2"),
        (4, "10 20 30 40 -> L3"),
        (5, "10 20 30 40 50 -> L5"),
    ],
)
def test_k06_output_is_right_below_the_next_run(count: int, expected: str) -> None:
    """K-06: one level below the run that stays, never level 0, and the highest when nothing stays."""
    levels = levels_of("0:10", "0:20", "1:30", "3:40", "4:50", num_levels=6)
    assert as_text(levels, plan_newest(levels, count, "test")) == expected


def test_level_0_alone_goes_to_the_top() -> None:
    """With nothing above level 0, taking one run means taking all."""
    levels = levels_of("0:1", "0:2", "0:3", num_levels=4)
    plan = plan_newest(levels, 1, "test")
    assert as_text(levels, plan) == "1 2 3 -> L3"
    assert plan is not None
    assert plan.is_full


@pytest.mark.parametrize(
    ("runs", "count", "level", "deletion_vectors", "drops"),
    [
        pytest.param(("0:1", "5:9"), 1, 4, False, False, id="K-20"),
        pytest.param(("0:1", "0:2"), 2, 5, False, True, id="K-21"),
        pytest.param(("0:1", "3:9"), 2, 5, False, True, id="K-22"),
        pytest.param(("0:1", "5:9"), 1, 4, True, True, id="K-23"),
        pytest.param(("0:1", "0:1", "1:3", "5:9"), 1, 1, False, False, id="L0 and L1 below L5"),
    ],
)
def test_retracts_go_when_nothing_older_stays(
    runs: tuple[str, ...], count: int, level: int, deletion_vectors: bool, drops: bool
) -> None:
    """K-20 to K-23: what lies above may hold older rows of the key, unless deletion vectors mask them."""
    plan = plan_newest(levels_of(*runs, num_levels=6), count, "test", deletion_vectors=deletion_vectors)
    assert plan is not None
    assert (plan.output_level, plan.drops_retracts) == (level, drops)


def test_a_file_in_its_place_is_no_work() -> None:
    """A lone file that lies on the output level already is left alone; on another level it moves."""
    assert plan_newest(levels_of("5:1", num_levels=6), 1, "test") is None
    levels = levels_of("4:1", num_levels=6)
    assert as_text(levels, plan_newest(levels, 1, "test")) == "1 -> L5"


def test_results_apply_to_files() -> None:
    """Files that went are gone, a moved file is there once, others stay."""
    stays, goes, moves, comes = described(0), described(0), described(0), described(5)
    result = CompactionResult((goes, moves), (comes, moves.at_level(5)))
    assert result.applied_to([stays, goes, moves]) == [stays, comes, moves.at_level(5)]
