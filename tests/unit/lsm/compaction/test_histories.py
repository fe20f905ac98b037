"""Random histories of flushes and compactions: the tree keeps its rules, and no reader can tell what was compacted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.lsm.bucket_under_test import KEY_TYPES, NOW_MS, SCHEMA, Bucket, Change

from lakebed.lsm.checker import check_levels
from lakebed.lsm.compaction.full import last_full_ms, pick_full
from lakebed.lsm.compaction.plan import CompactionPlan
from lakebed.lsm.compaction.universal import UniversalPicker, UniversalSettings
from lakebed.merge.aggregation import Aggregation
from lakebed.merge.base import MergeEngine, MergeSetup
from lakebed.merge.deduplicate import Deduplicate
from lakebed.merge.partial_update import PartialUpdate
from lakebed.options import Options

Row = tuple[int | None, str | None]


@dataclass(frozen=True)
class Meaning:
    """An engine, and what it means: how one change alters a row (None: there is none)."""

    engine: Callable[[], MergeEngine]
    step: Callable[[Row | None, Change], Row | None]
    kinds: tuple[str, ...] = ("+I", "+U")
    sequence_fields: tuple[str, ...] = ()


def _setup(options: dict[str, str]) -> MergeSetup:
    return MergeSetup(SCHEMA.fields, ("k",), Options(options))


def _newest(row: Row | None, change: Change) -> Row | None:
    return None if change[0] in ("-U", "-D") else change[2:]


def _updated(row: Row | None, change: Change) -> Row | None:
    number, text = row or (None, None)
    return (number if change[2] is None else change[2], text if change[3] is None else change[3])


def _aggregated(row: Row | None, change: Change) -> Row | None:
    """Last value of the number, first value of the text that is not null."""
    text = row[1] if row is not None and row[1] is not None else change[3]
    return (change[2], text)


def _latest(row: Row | None, change: Change) -> Row | None:
    """The greatest number wins, nulls lose, and among equals the newest."""
    if row is None or (change[2] is not None and (row[0] is None or change[2] >= row[0])):
        return change[2:]
    return row if change[2] is not None or row[0] is not None else change[2:]


# Deletes with deduplicate only: an engine that folds forgets a -D that something follows, so that what an older file
# holds of the key shows again. When files are folded decides, and so it is in Paimon.
MEANINGS = {
    "deduplicate": Meaning(Deduplicate, _newest, ("+I", "+U", "-U", "-D")),
    "deduplicate by number": Meaning(Deduplicate, _latest, sequence_fields=("n",)),
    "partial-update": Meaning(lambda: PartialUpdate(_setup({})), _updated),
    "aggregation": Meaning(
        lambda: Aggregation(
            _setup(
                {
                    "fields.n.aggregate-function": "last_value",
                    "fields.t.aggregate-function": "first_non_null_value",
                }
            )
        ),
        _aggregated,
    ),
}


def expected(history: Sequence[Change], meaning: Meaning) -> list[tuple[int, int | None, str | None]]:
    """The rows after a history, told one change at a time and without files."""
    rows: dict[int, Row | None] = {}
    for change in history:
        rows[change[1]] = meaning.step(rows.get(change[1]), change)
    return [(key, *row) for key, row in sorted(rows.items()) if row is not None]


@dataclass(frozen=True)
class Story:
    """Flushes, what is compacted after each, and the rules."""

    flushes: list[tuple[list[Change], str]]
    rules: UniversalSettings
    num_levels: int
    rows_per_file: int | None
    target_size_bytes: int
    threads: int


@st.composite
def stories(draw: st.DrawFn, kinds: tuple[str, ...]) -> Story:
    change = st.tuples(
        st.sampled_from(kinds),
        st.integers(0, 15),
        st.none() | st.integers(0, 5),
        st.none() | st.sampled_from(["a", "b", "c"]),
    )
    flush = st.tuples(
        st.lists(change, min_size=1, max_size=8), st.sampled_from(["pick", "pick", "pick", "nothing", "force", "full"])
    )
    rules = UniversalSettings(
        trigger=draw(st.integers(1, 4)),
        size_ratio_percent=draw(st.sampled_from([0, 1, 30])),
        max_size_amplification_percent=draw(st.sampled_from([25, 200, 1000])),
        optimization_interval_ms=draw(st.sampled_from([None, None, 0, 10**15])),
        total_size_threshold_bytes=draw(st.sampled_from([None, None, 6000])),
    )
    return Story(
        draw(st.lists(flush, min_size=1, max_size=10)),
        rules,
        draw(st.integers(2, 6)),
        draw(st.sampled_from([None, 2, 3])),
        # Real files take about two thousand bytes: all of them are large, some are, or none is.
        draw(st.sampled_from([1, 3000, 1 << 30])),
        draw(st.sampled_from([1, 1, 3])),
    )


def play(story: Story, meaning: Meaning) -> None:
    """Tells a story to a bucket, and looks at it after every step."""
    bucket = Bucket(
        meaning.engine(),
        sequence_fields=meaning.sequence_fields,
        num_levels=story.num_levels,
        rows_per_file=story.rows_per_file,
        target_size_bytes=story.target_size_bytes,
        threads=story.threads,
    )
    picker = UniversalPicker(story.rules)
    history: list[Change] = []
    for changes, action in story.flushes:
        bucket.flush(changes)
        history += changes
        runs_before = bucket.levels.number_of_runs
        for _ in range(runs_before + 1):
            plan = due(bucket, picker, action)
            if plan is None:
                break
            carry_out(bucket, plan)
            assert bucket.rows() == expected(history, meaning)
        else:
            pytest.fail(f"there is always more to {action}")
        if action in ("pick", "force"):
            assert bucket.levels.number_of_runs <= story.rules.trigger
        if action == "force":
            assert not bucket.levels.level0
        if action == "full":
            assert bucket.levels.number_of_runs <= 1
        assert bucket.rows() == expected(history, meaning)


def due(bucket: Bucket, picker: UniversalPicker, action: str) -> CompactionPlan | None:
    levels = bucket.levels
    if action == "nothing":
        return None
    if action == "full":
        return pick_full(levels, force_rewrite=False)
    picked = picker.pick(levels, now_ms=NOW_MS, last_full_ms=last_full_ms(levels))
    if picked is None and action == "force":
        return picker.force_up_level_0(levels, now_ms=NOW_MS)
    return picked


def carry_out(bucket: Bucket, plan: CompactionPlan) -> None:
    """Runs a plan; its result takes from the plan, and leaves a sound tree with files that exist."""
    planned = {file.file_name: file for file in plan.files}
    result = bucket.compact(plan)
    assert all(planned[file.file_name] == file for file in result.before)
    assert all(file.level == plan.output_level > 0 for file in result.after)
    for file in result.after:
        if file.file_name in planned:
            assert file == planned[file.file_name].at_level(plan.output_level)
    assert check_levels(bucket.files, KEY_TYPES, num_levels=bucket.num_levels) == []
    assert {file.file_name for file in bucket.files} <= bucket.on_disk()
    if plan.is_full:
        assert all(file.delete_row_count == 0 for file in bucket.files)


@pytest.mark.parametrize("name", MEANINGS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_no_reader_can_tell_what_was_compacted(name: str, data: st.DataObject) -> None:
    """Flushes and compactions in any order give the rows that the history itself gives, and few disjoint runs."""
    meaning = MEANINGS[name]
    play(data.draw(stories(meaning.kinds)), meaning)


@pytest.mark.nightly
@pytest.mark.parametrize("name", MEANINGS)
@settings(max_examples=800, deadline=None)
@given(data=st.data())
def test_no_reader_can_tell_what_was_compacted_in_many_stories(name: str, data: st.DataObject) -> None:
    """As above, for a long time."""
    meaning = MEANINGS[name]
    play(data.draw(stories(meaning.kinds)), meaning)
