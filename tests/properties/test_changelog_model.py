"""Tables that tell what changed, of all merge engines, driven side by side with their model.

Whoever replays the changes has the table: as it is, or as it was when a compaction last told. Every event must fit what
was told before it, to the value; and what nobody touched is not told of. Tables with the producer `input` tell what
came in, no more and no less, or, if they normalise it, what it changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test
from tests.properties.side_by_side import OP, OpenWriter, SideBySide
from tests.properties.test_engines_model import EngineMachine
from tests.thinning import thinned

import lakebed
from lakebed.testing.engine_strategies import engine_definitions
from lakebed.testing.model import Change, ModelSchema, Record, Row, Value
from lakebed.testing.model_arrow import changes_from_arrow, from_arrow, tally, tally_changes
from lakebed.testing.model_engines import PartialUpdate
from lakebed.testing.replay import Key, key_of, replayed
from lakebed.testing.strategies import TableDefinition
from lakebed.types.logical import AtomicType

MARKS = "deletion-vectors.enabled"
NORMALISES = "changelog-producer.input.normalize"
TELLERS: dict[str, list[dict[str, str]]] = {
    "lookup": [
        {},
        {"changelog-producer.row-deduplicate": "true"},
        {"changelog-file.format": "parquet"},
        {MARKS: "true", "deletion-vectors.merge-on-read": "true"},
    ],
    "full-compaction": [
        {},
        {"changelog-producer.row-deduplicate": "true"},
        {"full-compaction.delta-commits": "3"},
        {"full-compaction.delta-commits": "2", "changelog-producer.row-deduplicate": "true"},
    ],
    "input": [{}],
    "normalised input": [
        {NORMALISES: "true"},
        {NORMALISES: "true", "changelog-producer.row-deduplicate": "true"},
    ],
}
"""Options to go with each producer."""


@dataclass
class NumberedWriter(OpenWriter):
    """Of a job that counts its commits."""

    number: int


@dataclass
class Told(SideBySide):
    """A table and its model, and what the table's changes have told so far."""

    numbers: count[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        super().__post_init__()
        meaning = self.definition.meaning
        self.producer = meaning["changelog-producer"]
        self.tells_at_once = NORMALISES in meaning
        """Whether commits tell what they change, rather than compactions."""
        self.skips_unchanged = "changelog-producer.row-deduplicate" in meaning
        self.every = int(meaning.get("full-compaction.delta-commits", "1"))
        self.is_write_only = self.definition.layout.get("write-only") == "true"
        self.seen = 0
        """Snapshot up to which events have been looked at."""
        self.told_records: Sequence[Record] = ()
        """What the replay must come to."""
        self.is_certain = True
        """Whether it must; otherwise not all buckets were compacted in full, and only the read-optimized view knows."""
        self.touched: set[Key] = set()

    # --- operations, as they are told ---

    def open_writer(
        self, kinds: bool = False, overwrite: bool | dict[str, Value] | None = None, handle: int = 0
    ) -> OpenWriter:
        """Every commit has a number: each so many of them compact in full."""
        if self.every == 1:
            return super().open_writer(kinds, overwrite, handle)
        number = next(self.numbers)
        table = self.handles[handle % len(self.handles)]
        real = table.writer(
            row_kind=OP if kinds else None, overwrite=overwrite, commit_user=f"job {number}", commit_identifier=number
        )
        writer = NumberedWriter(real, self.model.writer(overwrite), kinds, number)
        self.writers.append(writer)
        return writer

    def feed(self, writer: OpenWriter, rows: Sequence[Row], kinds: Sequence[str] | None = None) -> None:
        """Rows speak of all groups that they bring values for.

        Where compactions look up, the lone row of a key is folded if its file is rewritten and is not if the file only
        moves; values of a group without an order survive the one and not the other.
        """
        engine = self.model.engine
        if self.producer == "lookup" and isinstance(engine, PartialUpdate):
            rows = [self._ordered(row, engine, writer.model.schema) for row in rows]
        super().feed(writer, rows, kinds)

    def _ordered(self, row: Row, engine: PartialUpdate, schema: ModelSchema) -> Row:
        names, pools = {column.id: column.name for column in schema.columns}, self.pools(schema)
        row = dict(row)
        for group in engine.groups:
            brings = any(row[names[i]] is not None or i in self.model.counted_ids for i in group.protected)
            if brings and all(row[names[i]] is None for i in group.ordering):
                row |= {names[i]: pools[names[i]][-1] for i in group.ordering}
        return row

    def commit(self, writer: OpenWriter) -> None:
        """Publishes on both sides; a compaction follows, unless others do that."""
        commits, before = self.model.latest, self.model.commits[-1].live if self.model.commits else ()
        super().commit(writer)
        if self.model.latest == commits:
            return
        commit = self.model.commits[-1]
        if writer.model.is_overwrite:
            # What it replaces is told with it; what waits elsewhere for its compaction is not told yet.
            self.touched |= {self.model.key_of(record.cells) for record in before}
            self.is_certain = False
        if self.tells_at_once:
            self.told_records, self.is_certain = commit.live, True
        self.touched |= {self.model.key_of(record.cells) for record in commit.brought}
        if not self.is_write_only:
            self._was_compacted(not isinstance(writer, NumberedWriter) or writer.number % self.every == 0)

    def compact(self, full: bool, handle: int = 0) -> None:
        """Compacts the table, which tells."""
        super().compact(full, handle)
        self._was_compacted(full or self.full_only)

    def widen_column(self, name: str, data_type: AtomicType) -> None:
        """A wider type; where stored values are folded before it counts, that compaction tells too."""
        super().widen_column(name, data_type)
        self.is_certain = self.is_certain and self.tells_at_once

    def _was_compacted(self, is_full: bool) -> None:
        if self.tells_at_once:
            return
        if self.producer == "lookup" or is_full:
            self.told_records = self.model.commits[-1].live if self.model.commits else ()
            self.is_certain = True
        else:
            self.is_certain = False

    # --- comparisons ---

    def check_told(self) -> None:
        """Everything told since the beginning, step by step and in sum."""
        table = self.handles[0]
        state = replayed(changes_from_arrow(table.changes(0)), self._key_names)
        if self.producer == "full-compaction":
            found = from_arrow(lakebed.connect(self.url).table("t$ro").to_arrow())
            assert tally(state.values()) == tally(found), "told is not what the highest levels hold"
        if self.is_certain:
            self._check_sum(state)
        self._check_news(table)

    def _check_sum(self, state: dict[Key, Row]) -> None:
        expected = self._rows_of(self.told_records)
        missing, extra = tally(expected) - tally(state.values()), tally(state.values()) - tally(expected)
        assert (missing, extra) == (Counter(), Counter()), (
            f"told in sum: missing {dict(missing)}, instead {dict(extra)}"
        )

    def _rows_of(self, records: Sequence[Record]) -> list[Row]:
        schema = self.model.schema
        return [schema.row(record) for record in self.model.merged(records, schema) if not record.is_retract]

    def _check_news(self, table: lakebed.Table) -> None:
        """What was told since the last look is about keys that somebody wrote, and about changes if asked for."""
        start, self.seen = self.seen, table.snapshots()[-1].id if self.snapshots else 0
        events = changes_from_arrow(table.changes(start, self.seen))
        keys = {self._key(row) for _, row in events}
        assert keys <= self.touched, f"told of keys that nobody wrote: {keys - self.touched}"
        if self.is_certain and self.told_records is (self.model.commits[-1].live if self.model.commits else ()):
            self.touched = set()
        is_of_now = self.seen and table.snapshots()[-1].schema_id == table.schema.id
        if self.skips_unchanged and is_of_now:
            for (kind, row), (_, following) in pairwise(events):
                assert kind != "-U" or tally([row]) != tally([following]), f"an update that changes nothing: {row}"

    def _key(self, row: Row) -> Key:
        return key_of(row, self._key_names)

    @property
    def _key_names(self) -> list[str]:
        ids = self.model._key
        return [next(column.name for column in self.model.schema.columns if column.id == each) for each in ids]

    def check_input(self) -> None:
        """Each commit's changes are the rows that came in; by key and order of merging where one buffer held them."""
        table, schema = self.handles[0], self.model.schema
        told = changes_from_arrow(table.changes(0))
        expected: list[Change] = []
        for commit in (each for each in self.model.commits if not each.is_overwrite):
            by_key: dict[Key, list[Record]] = {}
            for record in commit.brought:
                by_key.setdefault(self.model.key_of(record.cells), []).append(record)
            for key in sorted(by_key):
                ordered = self.model.order.oldest_first(by_key[key], schema.cell)
                expected += [(record.kind, schema.row(record)) for record in ordered]
        assert tally_changes(told) == tally_changes(expected)
        layout, definition = self.definition.layout, self.definition
        if layout["bucket"] == "1" and not definition.partition_by and "write-buffer-size" not in layout:
            assert [tally_changes([change]) for change in told] == [tally_changes([change]) for change in expected]


def with_changelog(definition: TableDefinition, producer: str, more: dict[str, str]) -> TableDefinition:
    """The table, telling its changes.

    No `distinct` lists: what a lone row holds twice is folded where its file is rewritten, and stays where it moves.
    """
    kept = {option: text for option, text in definition.meaning.items() if not option.endswith(".distinct")}
    return replace(definition, meaning={**kept, "changelog-producer": producer, **more})


class ChangelogMachine(EngineMachine):
    """All that happens to the tables of `EngineMachine` happens to tables with a changelog."""

    producer: str
    both: Told
    # Reads are the same as without a changelog: steps are better spent on what is told.
    look_back = None
    filtered_read = None

    @initialize(data=st.data(), full_only=st.booleans(), may_be_write_only=st.booleans())
    def create(self, data: st.DataObject, full_only: bool, may_be_write_only: bool) -> None:
        definition = data.draw(engine_definitions(self.kind), "definition")
        if not may_be_write_only:
            layout = {option: text for option, text in definition.layout.items() if option != "write-only"}
            definition = replace(definition, layout=layout)
        more = data.draw(st.sampled_from(self._tellers()), "changelog")
        is_write_only = definition.layout.get("write-only") == "true"
        told = with_changelog(definition, self.producer.removeprefix("normalised "), more)
        self.both = Told(told, full_only=full_only and is_write_only, judges=True)
        self.write(data, 0)

    def _tellers(self) -> list[dict[str, str]]:
        # The first row of a key is never replaced: there is nothing to mark.
        return [more for more in TELLERS[self.producer] if self.kind != "first-row" or MARKS not in more]

    @invariant()
    def same_changes(self) -> None:
        if hasattr(self, "both"):
            if self.producer == "input":
                self.both.check_input()
            else:
                self.both.check_told()

    @rule()
    def changes(self) -> None:
        """Parts of what was told are as the whole says."""
        both = self.both
        if both.snapshots:
            table = both.handles[1]
            last = table.snapshots()[-1].id
            middle = last // 2
            parts = [
                *changes_from_arrow(table.changes(0, middle)),
                *changes_from_arrow(table.changes(middle)),
            ]
            whole = changes_from_arrow(table.changes(0))
            assert [tally_changes([change]) for change in parts] == [tally_changes([change]) for change in whole]


ENGINES = ["deduplicate", "partial-update", "sequence groups", "aggregation"]
CASES = [
    *((kind, producer) for producer in TELLERS if producer != "normalised input" for kind in ENGINES),
    ("first-row", "lookup"),
    ("deduplicate", "normalised input"),
]
EXAMPLES, STEPS = 3, 12
LONG_EXAMPLES, LONG_STEPS = 120, 40
"""Of each engine with each producer."""


def machine_of(kind: str, producer: str) -> type[ChangelogMachine]:
    """The machine for tables of one engine and one producer."""
    return type(f"Changelog {kind} {producer}", (ChangelogMachine,), {"kind": kind, "producer": producer})


@pytest.mark.parametrize(("kind", "producer"), thinned(CASES, lambda kind, producer: [kind, producer]))
def test_changelog(kind: str, producer: str) -> None:
    """Up to 72 steps for each engine and for each producer, everything told replayed after each."""
    short = settings(max_examples=EXAMPLES, stateful_step_count=STEPS)
    run_state_machine_as_test(machine_of(kind, producer), settings=short)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("kind", "producer"), CASES)
def test_changelog_for_a_night(kind: str, producer: str) -> None:
    """4,800 steps asked for of each engine and producer; other ones each time."""
    long = settings(max_examples=LONG_EXAMPLES, stateful_step_count=LONG_STEPS, derandomize=False)
    run_state_machine_as_test(machine_of(kind, producer), settings=long)
