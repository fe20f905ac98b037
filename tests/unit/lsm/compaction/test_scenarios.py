"""Which files the pickers of compaction choose, read from `scenarios/*.txt`: rules to be read and changed as text.

A scenario is a comment with its reason, a picker with its settings, the files, `----` and what is picked:

    # The newer runs (1 + 2 + 3) are more than 25 % of the oldest (3).
    universal trigger=3 ratio=1 amplification=25 levels=3
    L0: 1 2 3 3
    ----
    1 2 3 3 -> L2 (size amplification; full)

Files of a key's bucket are sizes by level: on level 0 newest first, each a run; higher levels in the order of keys, one
run. `7!` must be rewritten for what it holds. Files without a key are `name=size@first(deleted/rows)`, in the order
they were written; what stands behind the size may be left out: no row ids, none of ten rows deleted.

After a change of a rule, write all expectations anew and read what changed:

    LAKEBED_REWRITE_SCENARIOS=1 python -m pytest tests/unit/lsm/compaction/test_scenarios.py && git diff tests
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import pytest
from tests.unit.lsm.bucket_under_test import KEY_TYPES, described

from lakebed.lsm.compaction.full import pick_full
from lakebed.lsm.compaction.plan import CompactionPlan
from lakebed.lsm.compaction.small_files import Group, SmallFileRules, pick_ordered, pick_ranges, pick_unordered
from lakebed.lsm.compaction.universal import UniversalPicker, UniversalSettings
from lakebed.lsm.levels import Levels
from lakebed.metadata.data_file import DataFile

HERE = Path(__file__).parent / "scenarios"
REWRITES = "LAKEBED_REWRITE_SCENARIOS"

NUMBERS = {
    "trigger": "trigger",
    "ratio": "size_ratio_percent",
    "amplification": "max_size_amplification_percent",
    "interval": "optimization_interval_ms",
    "total-below": "total_size_threshold_bytes",
    "new-above": "incremental_size_threshold_bytes",
    "quiet-from": "offpeak_start_hour",
    "quiet-to": "offpeak_end_hour",
    "quiet-ratio": "offpeak_ratio_percent",
    "small": "small_bucket_bytes",
}
"""Settings of the universal picker as scenarios call them."""
SMALL_FILE_NUMBERS = {
    "target": "target_size_bytes",
    "min-files": "min_file_count",
    "open-cost": "open_file_cost_bytes",
    "most-files": "file_count_limit",
}

_FILE = re.compile(r"(?P<name>\w+)=(?P<size>\d+)(@(?P<first>\d+))?(\((?P<deleted>\d+)/(?P<rows>\d+)\))?")


@dataclass(frozen=True)
class Scenario:
    """One of a file: its text up to the expectation, in parts, and the expectation."""

    head: str
    command: str
    files: tuple[str, ...]
    expected: str

    @property
    def title(self) -> str:
        return f"{self.command} | {' '.join(self.files)}"

    @property
    def picked(self) -> str:
        """What the picker chooses."""
        picker, *words = self.command.split()
        settings = dict(word.partition("=")[::2] for word in words)
        text = PICKERS[picker](settings, self.files)
        assert not settings, f"{picker} has no setting {', '.join(settings)}"
        return text


def read_scenarios(text: str) -> list[Scenario]:
    """All scenarios of a text; empty lines separate them."""
    found = []
    for block in re.split(r"\n\n+", text.strip()):
        head, separator, expected = block.partition("\n----\n")
        if not separator:
            assert all(line.startswith("#") for line in head.splitlines()), f"without ----: {head}"
            found.append(Scenario(head, "", (), ""))
            continue
        command, *files = [line for line in head.splitlines() if not line.startswith("#")]
        found.append(Scenario(head, command, tuple(files), expected))
    return found


def rewritten(text: str) -> str:
    """The same scenarios with what is picked now as their expectations."""
    blocks = [f"{each.head}\n----\n{each.picked}" if each.command else each.head for each in read_scenarios(text)]
    return "\n\n".join(blocks) + "\n"


# --- files with a key ------------------------------------------------------------------------------------------------


def _levels(settings: dict[str, str], lines: tuple[str, ...]) -> tuple[Levels, set[str]]:
    """The levels of a bucket, and the names of files that must be rewritten."""
    files, musts = [], set()
    for line in lines:
        level, _, sizes = line.removeprefix("L").partition(":")
        for size in sizes.split():
            place = len(files)
            file = described(int(level), int(size.rstrip("!")), keys=(place, place), max_sequence_number=1000 - place)
            files.append(file)
            if size.endswith("!"):
                musts.add(file.file_name)
    return Levels.of(files, KEY_TYPES, int(settings.pop("levels", "6"))), musts


def _planned(levels: Levels, plan: CompactionPlan | None) -> str:
    if plan is None:
        return "nothing"
    older = [file for run in plan.older for file in run.files]
    assert plan.rewrites_each_file or [*plan.files, *older] == list(levels.files), "a file was passed over"
    assert plan.drops_retracts or not plan.is_full
    what = "full" if plan.is_full else f"retracts {'go' if plan.drops_retracts else 'stay'}"
    if plan.rewrites_each_file:
        what += ", each on its own"
    sizes = " ".join(str(file.size_bytes) for file in plan.files)
    return f"{sizes} -> L{plan.output_level} ({plan.reason}; {what})"


def _universal(settings: dict[str, str], lines: tuple[str, ...], *, forces_level_0: bool = False) -> str:
    levels, _ = _levels(settings, lines)
    now_ms = int(datetime(2024, 5, 7, int(settings.pop("hour", "12")), 30).timestamp() * 1000)
    since_full = settings.pop("since-full", "never")
    last_full_ms = None if since_full == "never" else now_ms - int(since_full)
    with_vectors = settings.pop("vectors", None) is not None
    numbers = {NUMBERS[name]: int(settings.pop(name)) for name in list(settings) if name in NUMBERS}
    picker = UniversalPicker(replace(UniversalSettings(**numbers), deletion_vectors=with_vectors))
    if forces_level_0:
        return _planned(levels, picker.force_up_level_0(levels, now_ms=now_ms))
    return _planned(levels, picker.pick(levels, now_ms=now_ms, last_full_ms=last_full_ms))


def _level_0(settings: dict[str, str], lines: tuple[str, ...]) -> str:
    return _universal(settings, lines, forces_level_0=True)


def _full(settings: dict[str, str], lines: tuple[str, ...]) -> str:
    levels, musts = _levels(settings, lines)
    is_forced = settings.pop("force", None) is not None
    plan = pick_full(levels, force_rewrite=is_forced, must_rewrite=lambda file: file.file_name in musts)
    return _planned(levels, plan)


# --- files without one -----------------------------------------------------------------------------------------------


def _without_key(pick: Callable[..., list[Group]]) -> Callable[[dict[str, str], tuple[str, ...]], str]:
    def run(settings: dict[str, str], lines: tuple[str, ...]) -> str:
        files, deleted = [], {}
        for place, text in enumerate(word for line in lines for word in line.split()):
            file, count = _file(place, text)
            files.append(file)
            deleted[file.file_name] = count
        numbers = {
            SMALL_FILE_NUMBERS[name]: int(settings.pop(name)) for name in list(settings) if name in SMALL_FILE_NUMBERS
        }
        rules = SmallFileRules(
            **{"target_size_bytes": 100, "open_file_cost_bytes": 0, **numbers},
            small_file_ratio=float(settings.pop("small-ratio", "0.7")),
            delete_ratio_threshold=float(settings.pop("delete-ratio", "0.2")),
            deleted_rows=lambda file: deleted[file.file_name],
            drops_deleted=settings.pop("keeps-places", None) is None,
        )
        if settings.pop("listed-backwards", None) is not None:
            files.reverse()
        groups = pick(files, rules, full=settings.pop("full", None) is not None)
        return "\n".join(" ".join(file.file_name for file in group) for group in groups) or "nothing"

    return run


def _file(place: int, text: str) -> tuple[DataFile, int]:
    match = _FILE.fullmatch(text)
    assert match, f"`{text}` is not name=size@first(deleted/rows)"
    rows = int(match["rows"] or 10)
    file = described(
        0,
        int(match["size"]),
        file_name=match["name"],
        row_count=rows,
        min_sequence_number=place * 100,
        max_sequence_number=place * 100 + rows - 1,
        first_row_id=int(match["first"]) if match["first"] else None,
    )
    return file, int(match["deleted"] or 0)


PICKERS: dict[str, Callable[[dict[str, str], tuple[str, ...]], str]] = {
    "universal": _universal,
    "level-0": _level_0,
    "full": _full,
    "unordered": _without_key(pick_unordered),
    "ordered": _without_key(pick_ordered),
    "ranges": _without_key(pick_ranges),
}


# --- the scenarios ---------------------------------------------------------------------------------------------------


def _all() -> list[object]:
    return [
        pytest.param(path, scenario, id=f"{path.stem}: {scenario.title}")
        for path in sorted(HERE.glob("*.txt"))
        for scenario in read_scenarios(path.read_text())
        if scenario.command
    ]


@pytest.mark.parametrize(("path", "scenario"), _all())
def test_scenario(path: Path, scenario: Scenario) -> None:
    """What is picked is what the scenario says."""
    if REWRITES in os.environ:
        path.write_text(rewritten(path.read_text()))
        return
    assert scenario.picked == scenario.expected, scenario.head


def test_every_picker_has_scenarios() -> None:
    """No picker is left without, and each scenario gives the reason for its expectation."""
    scenarios = [each for path in HERE.glob("*.txt") for each in read_scenarios(path.read_text()) if each.command]
    assert {each.command.split()[0] for each in scenarios} == set(PICKERS)
    assert [each.title for each in scenarios if not each.head.startswith("#")] == []


def test_expectations_can_be_written_anew() -> None:
    """A wrong one is replaced, and what was right stays as it is, comments included."""
    text = "# About all.\n\n# Why.\nfull\nL0: 1\n----\n{}\n\n# Why not.\nfull\nL5: 9\n----\nnothing\n"
    right = text.format("1 -> L5 (full compaction; full)")
    assert rewritten(text.format("nothing")) == right
    assert rewritten(right) == right


def test_a_setting_that_a_picker_has_not_is_an_error() -> None:
    """A mistyped setting does not silently mean nothing."""
    (scenario,) = read_scenarios("full levls=3\nL0: 1\n----\nnothing\n")
    with pytest.raises(AssertionError, match="full has no setting levls"):
        _ = scenario.picked
