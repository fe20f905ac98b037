"""Other implementations look at the table of a history: its last state, older ones, tags, and what its changelog tells.

Their processes stay for all histories of a run, as a JVM takes seconds to start. What a judge can not read, or is known
to read otherwise, stands in one table (`LIMITS`) with the reason: it is counted and printed, never passed over in
silence, and an error that is not there is a finding as much as a row that differs.
"""

from __future__ import annotations

import atexit
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tests.compat.judges import JudgeError, canonical_rows, prepare
from tests.compat.judges.canonical import Row, row_text
from tests.compat.judges.judge import JUDGES
from tests.properties.combinations.findings import Finding

import lakebed
from lakebed.metadata.snapshot import CommitKind, Snapshot

if TYPE_CHECKING:
    from tests.properties.combinations.machine import Machine

DATABASE, NAME = "default", "t"
OLDER = 3
"""So many older snapshots, and so many ranges of changes, are looked at."""


@dataclass(frozen=True)
class Question:
    """What both sides are asked: rows now, of a snapshot, tag or branch; or changes of snapshots (after, until]."""

    snapshot: int | None = None
    tag: str | None = None
    after: int | None = None
    until: int | None = None
    branch: str | None = None

    @property
    def is_about_changes(self) -> bool:
        return self.after is not None

    @property
    def what(self) -> str:
        return "changes" if self.is_about_changes else "rows"

    def __str__(self) -> str:
        if self.is_about_changes:
            return f"changes of ({self.after}, {self.until}]"
        if self.tag is not None:
            return f"rows of tag {self.tag}"
        if self.branch is not None:
            return f"rows of branch {self.branch}"
        return "rows" if self.snapshot is None else f"rows of snapshot {self.snapshot}"


@dataclass(frozen=True)
class Exhibit:
    """A question to one judge about one table, with what tells whether it can be expected to answer it."""

    judge: str
    question: Question
    table: lakebed.Table
    machine: Machine

    @property
    def options(self) -> Mapping[str, str]:
        """The options of now."""
        return self.table.options

    @cached_property
    def schemas(self) -> dict[int, dict[str, str]]:
        """The options of every schema that there is, by its number."""
        branch = self.question.branch
        place = Path(self.machine.url) / f"{DATABASE}.db" / NAME / (f"branch/branch-{branch}" if branch else "")
        files = sorted((place / "schema").glob("schema-*"))
        return {int(file.name.partition("-")[2]): json.loads(file.read_text())["options"] for file in files}

    @property
    def snapshots(self) -> list[Snapshot]:
        """Those that are asked of."""
        question = self.question
        if question.tag is not None:
            return [_found(self.table.at(tag=question.tag).fixed_to)]
        if question.snapshot is not None:
            return [_found(self.table.at(snapshot=question.snapshot).fixed_to)]
        if question.after is None or question.until is None:
            return [_found(self.table.latest_snapshot())]
        return [each for each in self.table.snapshots() if question.after < each.id <= question.until]

    def has(self, key: str, *values: str) -> bool:
        """Whether an option has one of these values, or had it at some time."""
        return any(options.get(key) in values for options in self.schemas.values())

    def told_by(self) -> set[str]:
        """All changelog producers of the snapshots and of now."""
        return {
            options.get("changelog-producer", "none")
            for options in [self.options, *(self.schemas[each.schema_id] for each in self.snapshots)]
        }


def _found(snapshot: Snapshot | None) -> Snapshot:
    assert snapshot is not None
    return snapshot


@dataclass(frozen=True)
class Limit:
    """What a judge can not do. `refusal`: how it says so; without one the answer is known to be wrong and not asked."""

    reason: str
    judges: Sequence[str]
    fits: Callable[[Exhibit], bool]
    refusal: str | None = None


JAVA, PYPAIMON = ("java", "java2"), ("pypaimon",)
NAMES = (*PYPAIMON, *JAVA)
MEANING = ("merge-engine", "sequence.", "fields.", "aggregation.", "partial-update.", "ignore-", "deletion-vectors.")
MEANING += ("changelog-producer", "force-lookup")
DEFAULTS = ("false", "none", "ascending")
REMOVALS = ("aggregation.remove-record-on-delete", "partial-update.remove-record-on-delete")
REMOVALS += ("partial-update.remove-record-on-sequence-group",)


def _always(exhibit: Exhibit) -> bool:
    return True


def _rows(fits: Callable[[Exhibit], bool]) -> Callable[[Exhibit], bool]:
    return lambda exhibit: not exhibit.question.is_about_changes and fits(exhibit)


def _changes(fits: Callable[[Exhibit], bool]) -> Callable[[Exhibit], bool]:
    return lambda exhibit: exhibit.question.is_about_changes and fits(exhibit)


def _hides_new(exhibit: Exhibit) -> bool:
    return exhibit.has("merge-engine", "first-row") or exhibit.has("deletion-vectors.enabled", "true")


def _meant_otherwise(exhibit: Exhibit) -> bool:
    """Whether options that decide what rows mean have changed since."""
    folds = exhibit.options.get("merge-engine") in ("aggregation", "partial-update")

    def meaning(options: Mapping[str, str]) -> dict[str, str]:
        return {
            key: text
            for key, text in options.items()
            if (key.startswith(MEANING) and text not in DEFAULTS and (folds or not key.startswith("fields.")))
            or (key, text) == ("bucket", "-2")
        }

    (snapshot,) = exhibit.snapshots
    return bool(exhibit.table.primary_key) and meaning(exhibit.schemas[snapshot.schema_id]) != meaning(exhibit.options)


LIMITS: tuple[Limit, ...] = (
    Limit(
        "rows from before a change of what they mean: read under the options of today by others, under their own here",
        NAMES,
        _rows(_meant_otherwise),
    ),
    Limit(
        "changes from before another `changelog-producer`: others look for them where today's would have left them",
        NAMES,
        _changes(lambda exhibit: len(exhibit.told_by()) > 1),
    ),
    Limit(
        "what follows a -D that removes its row: others begin with the values of the -D, here it is a barrier",
        NAMES,
        _rows(lambda exhibit: any(key in options for options in exhibit.schemas.values() for key in REMOVALS)),
    ),
    Limit(
        "release 1 does not know `deletion-vectors.merge-on-read`",
        ("java",),
        lambda exhibit: exhibit.has("deletion-vectors.merge-on-read", "true"),
    ),
    Limit(
        "release 1 shows no changes that wait for a compaction",
        ("java",),
        _changes(lambda exhibit: _hides_new(exhibit) and exhibit.told_by() <= {"none", "input"}),
    ),
    Limit(
        "rows that wait for their buckets are no changes to a batch read of Java; here they are told when written",
        JAVA,
        _changes(lambda exhibit: exhibit.has("bucket", "-2") and exhibit.told_by() == {"none"}),
    ),
    Limit(
        "older rows of a table whose options name a column that was renamed since: the new name is not in their schema",
        JAVA,
        _rows(lambda exhibit: exhibit.snapshots[0].schema_id != exhibit.table.schema.id),
        r"Field \w+ can not be found in table schema",
    ),
    Limit(
        "pypaimon merges without sequence groups, retracts and removals",
        PYPAIMON,
        lambda exhibit: exhibit.options.get("merge-engine") in ("aggregation", "partial-update"),
        "options that pypaimon does not yet implement",
    ),
    Limit(
        "pypaimon does not read deletion vectors of 64 bits",
        PYPAIMON,
        lambda exhibit: exhibit.has("deletion-vectors.bitmap64", "true"),
        "Invalid magic number",
    ),
)


@dataclass
class Verdicts:
    """How much was asked, and what was left out, by judge and reason."""

    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, other: Verdicts) -> None:
        self.asked.update(other.asked)
        self.left_out.update(other.left_out)

    def text(self) -> str:
        """For people."""
        lines = [f"  {judge}: {count} times {what} compared" for (judge, what), count in sorted(self.asked.items())]
        lines += [f"  {judge}: {count} left out: {reason}" for (judge, reason), count in self.left_out.most_common()]
        return "\n".join(lines)


@cache
def judge_named(name: str) -> Any:
    """The judge, whose process is there until this one ends."""
    judge = JUDGES[name](prepare(name))
    atexit.register(judge.close)
    return judge


def judge(machine: Machine, names: Sequence[str], verdicts: Verdicts) -> None:
    """Asks every judge; raises where one says something else than the table does."""
    for finding in findings(machine, names, verdicts):
        raise finding


def findings(machine: Machine, names: Sequence[str], verdicts: Verdicts) -> Iterator[Finding]:
    """Whatever the judges say that the table does not."""
    table = machine.open()
    for question in _questions(machine, table) if names else ():
        for name in names:
            exhibit = Exhibit(name, question, table.on_branch(question.branch) if question.branch else table, machine)
            known = [each for each in LIMITS if name in each.judges and each.fits(exhibit)]
            unasked = next((each for each in known if each.refusal is None), None)
            if unasked is not None:
                verdicts.left_out[name, unasked.reason] += 1
                continue
            try:
                there = _theirs(exhibit)
            except JudgeError as error:
                reason = next((each.reason for each in known if re.search(each.refusal or "", str(error))), None)
                if reason is None:
                    yield Finding(f"{name} can not read {question.what}", f"{question}: {error}")
                else:
                    verdicts.left_out[name, reason] += 1
                continue
            verdicts.asked[name, question.what] += 1
            yield from _differences(exhibit, _ours(exhibit), there)


def _questions(machine: Machine, table: lakebed.Table) -> list[Question]:
    """The last state, some older ones, all tags, and some ranges of changes. The same ones for the same history."""
    random = Random(len(machine.done))
    ids = [snapshot.id for snapshot in table.snapshots()]
    if not ids:
        return []
    older = random.sample(ids[:-1], min(OLDER, len(ids) - 1))
    found = [Question()]
    found += [Question(snapshot=each) for each in sorted(older)]
    found += [Question(tag=name) for name in sorted(machine.tags)]
    found += [Question(branch=name) for name in sorted(machine.branches)]
    producer = table.options.get("changelog-producer", "none")
    parts_only = table.options.get("merge-engine") == "aggregation" and producer == "none"
    for _ in range(0 if parts_only or len(ids) < 2 else OLDER):
        after, until = sorted(random.sample(ids, 2))
        found.append(Question(after=after, until=until))
    return found


def _ours(exhibit: Exhibit) -> list[Row]:
    table, question = exhibit.table, exhibit.question
    if question.is_about_changes and exhibit.judge in JAVA:  # which leaves overwrites out of such a read
        told = [each for each in exhibit.snapshots if each.commit_kind != CommitKind.OVERWRITE]
        return [row for each in told for row in canonical_rows(table.changes(each.id - 1, each.id))]
    if question.is_about_changes:
        return canonical_rows(table.changes(question.after, question.until))
    if question.tag is not None:
        return canonical_rows(table.at(tag=question.tag).to_arrow())
    if question.snapshot is not None:
        return canonical_rows(table.at(snapshot=question.snapshot).to_arrow())
    return canonical_rows(table.to_arrow())


def _theirs(exhibit: Exhibit) -> list[Row]:
    judge, question, lake = judge_named(exhibit.judge), exhibit.question, Path(exhibit.machine.url)
    if question.is_about_changes:
        rows: list[Row] = judge.read_changes(lake, DATABASE, NAME, after=question.after, until=question.until)
        return rows
    name = f"{NAME}$branch_{question.branch}" if question.branch else NAME
    found: list[Row] = judge.read(lake, DATABASE, name, snapshot=question.snapshot, tag=question.tag)
    return found


def _differences(exhibit: Exhibit, here: list[Row], there: list[Row]) -> Iterator[Finding]:
    ours, theirs = Counter(map(row_text, here)), Counter(map(row_text, there))
    if ours != theirs:
        yield Finding(
            f"{exhibit.judge} reads other {exhibit.question.what}",
            f"{exhibit.question}: only here {dict(ours - theirs)}, only there {dict(theirs - ours)}",
        )


__all__ = ["LIMITS", "NAMES", "Verdicts", "findings", "judge", "judge_named"]
