"""The universal picker on runs given as `level:size`."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.lsm.bucket_under_test import KEY_TYPES, NOW_MS, as_text, described, levels_of

from lakebed.lsm.compaction.universal import UniversalPicker, UniversalSettings
from lakebed.lsm.levels import Levels


def picker(trigger: int, ratio: int, amplification: int, **more: int | None) -> UniversalPicker:
    return UniversalPicker(UniversalSettings(trigger, ratio, amplification, **more))  # type: ignore[arg-type]


NEVER = 1 << 60
"""A size amplification that no bucket reaches."""


@pytest.mark.parametrize(
    ("rules", "num_levels", "runs", "expected", "reason"),
    [
        pytest.param((3, 1, 25), 3, "0:1 0:2 0:3 0:3", "1 2 3 3 -> L2", "size amplification", id="K-01"),
        pytest.param((3, 1, 25), 4, "0:1 1:1 2:1 3:50", "1 1 1 -> L2", "size ratio", id="K-02"),
        pytest.param((3, 1, 25), 4, "0:1 1:2 2:3 3:50", "1 2 3 -> L2", "number of runs", id="K-03"),
        pytest.param((3, 1, 200), 3, "0:10 0:20 1:97 2:100", "10 20 97 100 -> L2", "number of runs", id="K-04"),
        pytest.param(
            (5, 1, 200),
            6,
            "0:1 0:1 0:1 0:1024 0:1048576",
            "1 1 1 1024 1048576 -> L5",
            "size ratio",
            id="K-05",
        ),
        pytest.param((3, 1, 25), 3, "0:1 0:1 1:1 2:50", "1 1 1 -> L1", "size ratio", id="level 1 below a large top"),
        pytest.param((3, 1, 25), 3, "0:1 0:2 1:3 2:50", "1 2 3 -> L1", "number of runs", id="count, never to level 0"),
        pytest.param((3, 1, NEVER), 6, "0:1 2:50 3:400 4:3000", "1 50 -> L2", "number of runs", id="one run too many"),
        pytest.param((5, 1, 200), 6, "0:1 0:1 0:1 0:1", "nothing", "", id="below the trigger"),
        pytest.param((3, 1, 200), 6, "0:1 4:10 5:100", "nothing", "", id="well-shaped"),
        pytest.param((3, 1, 200), 6, "5:100", "nothing", "", id="one run"),
        pytest.param((1, 1, 200), 6, "0:1", "nothing", "", id="one run at a trigger of one"),
        pytest.param((1, 1, 200), 6, "", "nothing", "", id="no run"),
    ],
)
def test_picks(rules: tuple[int, int, int], num_levels: int, runs: str, expected: str, reason: str) -> None:
    """K-01 to K-05 and more: which runs are taken, where they go, and why."""
    levels = levels_of(*runs.split(), num_levels=num_levels)
    plan = picker(*rules).pick(levels, now_ms=NOW_MS, last_full_ms=None)
    assert as_text(levels, plan) == expected
    assert (plan.reason if plan else "") == reason


@pytest.mark.parametrize(
    ("small_bytes", "runs", "expected"),
    [
        (0, "0:1 0:1 5:100", "1 1 -> L4"),
        (101, "0:1 0:1 5:100", "1 1 -> L4"),
        (102, "0:1 0:1 5:100", "1 1 100 -> L5"),
        (1000, "0:1 5:100", "nothing"),
    ],
)
def test_a_small_bucket_is_taken_as_a_whole(small_bytes: int, runs: str, expected: str) -> None:
    """Up to the size named, and only once there are as many runs as trigger a compaction."""
    levels = levels_of(*runs.split(), num_levels=6)
    chosen = picker(3, 1, 200, small_bucket_bytes=small_bytes).pick(levels, now_ms=NOW_MS, last_full_ms=None)
    assert as_text(levels, chosen) == expected


@pytest.mark.parametrize(("ratio", "expected"), [(10, "nothing"), (20, "8 9 10 -> L5")])
def test_k07_the_ratio_bounds_the_next_run(ratio: int, expected: str) -> None:
    """K-07: a run of 9 is taken after one of 8 at 20 percent, not at 10."""
    levels = levels_of("0:8", "0:9", "0:10", num_levels=6)
    assert as_text(levels, picker(2, ratio, 25).by_size_ratio(levels, now_ms=NOW_MS)) == expected


@pytest.mark.parametrize(
    ("sizes", "afterwards"),
    [([1, 1, 1, 1], [5]), ([1, 1, 1, 5], [4, 5]), ([1, 2, 3, 4, 5], [16]), ([2, 3, 4, 16], [1, 2, 3, 4, 16])],
)
def test_k08_sizes_after_one_more_run(sizes: list[int], afterwards: list[int]) -> None:
    """K-08: a run of size 1 comes in front; the runs taken by ratio become one."""
    runs = [1, *sizes]
    levels = levels_of(*(f"{level}:{size}" for level, size in enumerate(runs)), num_levels=len(runs) + 1)
    plan = picker(5, 1, NEVER).by_size_ratio(levels, now_ms=NOW_MS)
    taken = 0 if plan is None else len(plan.files)
    assert ([sum(runs[:taken])] if taken else []) + runs[taken:] == afterwards


def test_size_amplification_is_strict() -> None:
    """Exactly the allowed percentage is allowed."""
    at_limit, above = levels_of("0:50", "5:200", num_levels=6), levels_of("0:51", "5:200", num_levels=6)
    assert picker(2, 1, 25).by_size_amplification(at_limit) is None
    assert as_text(above, picker(2, 1, 25).by_size_amplification(above)) == "51 200 -> L5"


def test_the_next_run_at_exactly_the_ratio_is_taken() -> None:
    """Only a run that is larger than the ratio allows ends the search."""
    levels = levels_of("0:100", "4:101", "5:9999", num_levels=6)
    assert as_text(levels, picker(2, 1, NEVER).by_size_ratio(levels, now_ms=NOW_MS)) == "100 101 -> L4"
    levels = levels_of("0:100", "4:102", "5:9999", num_levels=6)
    assert picker(2, 1, NEVER).by_size_ratio(levels, now_ms=NOW_MS) is None


def test_low_levels_come_along_once_something_was_taken() -> None:
    """After the first extension level 0 and 1 are taken whatever their size; level 2 must fit again."""
    levels = levels_of("0:1", "0:1", "0:500", "1:900", "2:99999", num_levels=6)
    assert as_text(levels, picker(3, 1, NEVER).by_size_ratio(levels, now_ms=NOW_MS)) == "1 1 500 900 -> L1"
    levels = levels_of("0:1", "0:1", "0:500", "1:900", "2:1400", "3:99999", num_levels=6)
    assert as_text(levels, picker(3, 1, NEVER).by_size_ratio(levels, now_ms=NOW_MS)) == "1 1 500 900 1400 -> L2"
    levels = levels_of("0:1", "0:500", "1:900", "2:99999", num_levels=6)
    assert picker(3, 1, NEVER).by_size_ratio(levels, now_ms=NOW_MS) is None


# --- early full ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last_full_ms", "is_due"), [(None, True), (NOW_MS - 1001, True), (NOW_MS - 1000, False), (NOW_MS, False)]
)
def test_the_interval_makes_a_full_compaction_due(last_full_ms: int | None, is_due: bool) -> None:
    """When more time than the interval has passed since the last full compaction, or there was none."""
    levels = levels_of("0:1", "1:30", "2:500", num_levels=3)
    plan = picker(5, 1, 100, optimization_interval_ms=1000).pick(levels, now_ms=NOW_MS, last_full_ms=last_full_ms)
    assert as_text(levels, plan) == ("1 30 500 -> L2" if is_due else "nothing")
    assert (plan is not None and plan.is_full and plan.drops_retracts) == is_due


@pytest.mark.parametrize(
    ("rule", "value", "is_due"),
    [
        ("total_size_threshold_bytes", 532, True),
        ("total_size_threshold_bytes", 531, False),
        ("incremental_size_threshold_bytes", 30, True),
        ("incremental_size_threshold_bytes", 31, False),
    ],
)
def test_sizes_make_a_full_compaction_due(rule: str, value: int, is_due: bool) -> None:
    """A bucket below the total threshold, or with more than the other threshold below its highest level."""
    levels = levels_of("0:1", "1:30", "2:500", num_levels=3)
    plan = picker(5, 1, 100, **{rule: value}).pick(levels, now_ms=NOW_MS, last_full_ms=None)
    assert as_text(levels, plan) == ("1 30 500 -> L2" if is_due else "nothing")


def test_one_run_is_never_compacted_early() -> None:
    """A single run has nothing to be merged with."""
    eager = picker(
        5, 1, 100, optimization_interval_ms=0, total_size_threshold_bytes=1 << 40, incremental_size_threshold_bytes=0
    )
    for runs in (["0:5"], []):
        assert eager.pick(levels_of(*runs, num_levels=3), now_ms=NOW_MS, last_full_ms=None) is None


# --- quiet time ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end", "quiet_hours"),
    [
        (2, 5, {2, 3, 4}),
        (22, 2, {22, 23, 0, 1}),
        (0, 1, {0}),
        (3, 3, set()),
        (-1, 5, set()),
        (5, -1, set()),
    ],
)
def test_quiet_time_may_wrap_midnight(start: int, end: int, quiet_hours: set[int]) -> None:
    """The window is counted on the local clock, from its first hour up to its end."""
    rules = UniversalSettings(offpeak_start_hour=start, offpeak_end_hour=end)
    at = {hour: int(datetime(2024, 5, 7, hour, 30).timestamp() * 1000) for hour in range(24)}
    assert {hour for hour in at if rules.is_offpeak(at[hour])} == quiet_hours


def test_quiet_time_adds_to_the_ratio() -> None:
    """Inside the window larger neighbours are taken."""
    eager = picker(2, 1, NEVER, offpeak_start_hour=1, offpeak_end_hour=2, offpeak_ratio_percent=49)
    levels = levels_of("0:100", "0:150", "5:9999", num_levels=6)
    quiet, busy = (int(datetime(2024, 5, 7, hour).timestamp() * 1000) for hour in (1, 2))
    assert as_text(levels, eager.by_size_ratio(levels, now_ms=quiet)) == "100 150 -> L4"
    assert eager.by_size_ratio(levels, now_ms=busy) is None


# --- forcing level 0 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "runs", "expected"),
    [
        (3, "0:1 2:2", "1 -> L1"),
        (3, "0:1 1:2 2:2", "1 2 2 -> L2"),
        (5, "0:1 0:1", "1 1 -> L2"),
        (5, "0:1 1:10", "1 10 -> L2"),
        (5, "0:1 0:5 2:10", "1 5 -> L1"),
        (5, "0:1 1:99 2:100", "1 99 100 -> L2"),
        (5, "0:1 1:99 2:102", "1 99 -> L1"),
        (5, "1:5 2:10", "nothing"),
        (5, "2:10", "nothing"),
        (5, "", "nothing"),
    ],
)
def test_level_0_can_be_forced_up(trigger: int, runs: str, expected: str) -> None:
    """All of level 0 leaves it, with level 1 and neighbours of like size, however few runs there are."""
    levels = levels_of(*runs.split(), num_levels=3)
    assert as_text(levels, picker(trigger, 1, 200).force_up_level_0(levels, now_ms=NOW_MS)) == expected


# --- always --------------------------------------------------------------------------------------------------------


@st.composite
def buckets(draw: st.DrawFn) -> Levels:
    num_levels = draw(st.integers(2, 7))
    size = st.integers(0, 60) | st.integers(0, 1 << 40)
    files = [described(0, draw(size), max_sequence_number=age) for age in range(draw(st.integers(0, 9)))]
    files += [described(level, draw(size)) for level in range(1, num_levels) if draw(st.booleans())]
    return Levels.of(files, KEY_TYPES, num_levels)


@settings(max_examples=300, deadline=None)
@given(
    buckets(),
    st.builds(
        UniversalSettings,
        trigger=st.integers(1, 8),
        size_ratio_percent=st.integers(0, 100),
        max_size_amplification_percent=st.integers(0, 300),
        optimization_interval_ms=st.none() | st.just(10),
        total_size_threshold_bytes=st.none() | st.integers(0, 200),
        incremental_size_threshold_bytes=st.none() | st.integers(0, 200),
        deletion_vectors=st.booleans(),
    ),
    st.none() | st.just(0),
)
def test_every_pick_leaves_a_sound_tree(levels: Levels, rules: UniversalSettings, last_full_ms: int | None) -> None:
    """The newest runs, never to level 0, into a level that is free or taken along; too many runs are always a pick."""
    chooser = UniversalPicker(rules)
    picked = chooser.pick(levels, now_ms=NOW_MS, last_full_ms=last_full_ms)
    forced = chooser.force_up_level_0(levels, now_ms=NOW_MS)
    assert picked is not None or levels.number_of_runs <= rules.trigger
    assert (forced is not None) == bool(levels.level0)
    for plan in (picked, forced):
        if plan is None:
            continue
        assert plan.files == levels.files[: len(plan.files)]
        assert 1 <= plan.output_level <= levels.max_level
        rest = levels.files[len(plan.files) :]
        assert all(file.level > plan.output_level for file in rest)
        assert plan.output_level >= max(file.level for file in plan.files)
        assert plan.is_full == (not rest)
        assert plan.drops_retracts == (rules.deletion_vectors or not rest)
        assert len(plan.files) > 1 or plan.files[0].level != plan.output_level
        assert all(left.level <= right.level for left, right in pairwise([*plan.files, *rest]))
