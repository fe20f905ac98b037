"""Tables of all merge engines and their model, driven side by side, with compactions at any moment.

The table must equal the model after every step, whatever was compacted when: the model does not know compaction. What
the semantics let depend on it is left out by `admission`.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tests.properties.side_by_side import OpenWriter, SideBySide

from lakebed.testing.engine_strategies import engine_definitions
from lakebed.testing.model import ModelSchema, Row
from lakebed.testing.model_arrow import types_of
from lakebed.testing.strategies import ATOMIC_TYPES, filters, row_kinds, rows_of, stores, wider_types
from lakebed.types.logical import AtomicType, TypeRoot

_NEW_NAMES = st.sampled_from(["a", "b", "é"])


class EngineMachine(RuleBasedStateMachine):
    """Upserts, deletes, late rows, several writers, compactions, schema changes, and reads of now and then."""

    kind: str
    both: SideBySide

    @initialize(data=st.data(), full_only=st.booleans())
    def create(self, data: st.DataObject, full_only: bool) -> None:
        definition = data.draw(engine_definitions(self.kind), "definition")
        is_write_only = definition.layout.get("write-only") == "true"
        self.both = SideBySide(definition, full_only=full_only and is_write_only, judges=True)
        self.write(data, 0)

    def teardown(self) -> None:
        if hasattr(self, "both"):
            self.both.close()

    @invariant()
    def same_table(self) -> None:
        if hasattr(self, "both"):
            self.both.check_table()

    # --- writing ---

    @rule(data=st.data(), handle=st.integers(0, 1))
    def write(self, data: st.DataObject, handle: int) -> None:
        """Commits of many rows, so that keys meet in the buffer too."""
        for _ in range(data.draw(st.integers(1, 3), "commits")):
            rows = data.draw(self._rows(self.both.model.schema, min_size=3, max_size=8), "rows")
            self.both.write([rows], self._kinds(data, len(rows)), handle=handle)

    @rule(data=st.data(), handle=st.integers(0, 1))
    def write_one_by_one(self, data: st.DataObject, handle: int) -> None:
        """Commits of one row each: the way to many small files."""
        for _ in range(data.draw(st.integers(2, 5), "commits")):
            rows = data.draw(self._rows(self.both.model.schema, min_size=1, max_size=1), "rows")
            self.both.write([rows], self._kinds(data, 1), handle=handle)

    @rule(data=st.data())
    def overwrite(self, data: st.DataObject) -> None:
        """Now and then all starts again. Deletes have nothing to act on there and are left out."""
        if not data.draw(st.integers(0, 3)):
            self.both.overwrite(data.draw(self._rows(self.both.model.schema, min_size=0, max_size=3), "rows"))

    @rule(data=st.data(), handle=st.integers(0, 1))
    def use_writers(self, data: st.DataObject, handle: int) -> None:
        """Writers stay open while others write, compact and alter."""
        if len(self.both.writers) < 2:
            self.both.open_writer(data.draw(st.booleans()), handle=handle)
        writer = self._some_writer(data)
        rows = data.draw(self._rows(writer.model.schema), "rows")
        self.both.feed(writer, rows, self._drawn_kinds(data, len(rows)) if writer.kinds else None)
        if writer in self.both.writers:
            match data.draw(st.sampled_from(["stay", "commit", "commit", "abort"])):
                case "commit":
                    self.both.commit(writer)
                case "abort":
                    self.both.abort(writer)

    # --- compacting ---

    @rule(handle=st.integers(0, 1))
    def compact_what_is_due(self, handle: int) -> None:
        self.both.compact(False, handle)

    @rule(handle=st.integers(0, 1))
    def compact_all(self, handle: int) -> None:
        self.both.compact(True, handle)

    # --- altering ---

    @rule(data=st.data())
    def alter(self, data: st.DataObject) -> None:
        schema = self.both.model.schema
        name, data_type = data.draw(_NEW_NAMES, "new name"), data.draw(st.sampled_from(ATOMIC_TYPES), "new type")
        is_new = name not in schema.names
        match data.draw(st.sampled_from(["add", "drop", "rename", "widen", "reopen"])):
            case "add" if is_new and self._fits(name, data_type):
                self.both.add_column(name, data_type)
            case "drop" if self.both.free_columns():
                self.both.drop_column(data.draw(st.sampled_from(self.both.free_columns())))
            case "rename" if is_new:
                old = data.draw(st.sampled_from(self.both.renamable_columns()))
                if self._fits(name, schema.column(old).type):
                    self.both.rename_column(old, name)
            case "widen" if self._widenings():
                self.both.widen_column(*data.draw(st.sampled_from(self._widenings())))
            case _:
                self.both.handles = [self.both.handles[1], self.both.open()]

    def _widenings(self) -> list[tuple[str, AtomicType]]:
        schema = self.both.model.schema
        return [
            (name, wider)
            for name in self.both.retypable_columns()
            for wider in wider_types(schema.column(name).type)
            if self._fits(name, wider) and self._may_become(name, wider)
        ]

    # --- reading ---

    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        if self.both.snapshots:
            self.both.check_past(data.draw(st.integers(1, len(self.both.snapshots)), "snapshot"))
        if self.both.compacted:
            self.both.check_compacted(data.draw(st.integers(0, len(self.both.compacted) - 1), "compaction"))

    @rule(data=st.data())
    def changes(self, data: st.DataObject) -> None:
        since = data.draw(st.integers(0, len(self.both.snapshots)), "since")
        self.both.check_changes(since, min(since + 2, len(self.both.snapshots)))

    @rule(data=st.data())
    def filtered_read(self, data: st.DataObject) -> None:
        schema = self.both.model.schema
        condition = data.draw(filters(types_of(schema), self.both.known_values(schema)), "filter")
        columns = data.draw(st.lists(st.sampled_from(schema.names), min_size=1, unique=True), "columns")
        self.both.check_filtered(condition, columns)

    # --- drawing ---

    def _rows(self, schema: ModelSchema, min_size: int = 1, max_size: int = 6) -> st.SearchStrategy[list[Row]]:
        """Rows of all keys, or of one key only: where many records meet, most can go wrong."""
        pools = self.both.pools(schema)
        key = {column.name: pools[column.name] for column in schema.columns if column.id in self.both.fixed}
        one_key = {name: values[:1] for name, values in key.items()}
        return st.one_of(
            rows_of(types_of(schema), pools | chosen, min_size=min_size, max_size=max_size) for chosen in (key, one_key)
        )

    def _kinds(self, data: st.DataObject, count: int) -> list[str] | None:
        return self._drawn_kinds(data, count) if data.draw(st.integers(0, 2)) else None

    def _drawn_kinds(self, data: st.DataObject, count: int) -> list[str]:
        mixed = st.lists(row_kinds(), min_size=count, max_size=count)
        retracts = st.lists(st.sampled_from(["-U", "-D", "-U", "+I"]), min_size=count, max_size=count)
        return data.draw(mixed | retracts, "kinds")

    def _some_writer(self, data: st.DataObject) -> OpenWriter:
        return self.both.writers[data.draw(st.integers(0, len(self.both.writers) - 1), "writer")]

    def _fits(self, name: str, data_type: AtomicType) -> bool:
        return stores(self.both.definition.layout["file.format"], {name: data_type})

    def _may_become(self, name: str, data_type: AtomicType) -> bool:
        # Counts are INT or BIGINT.
        is_counted = self.both.model.schema.column(name).id in self.both.model.counted_ids
        return not is_counted or data_type.root is TypeRoot.BIGINT


class DeduplicateMachine(EngineMachine):
    kind = "deduplicate"


class PartialUpdateMachine(EngineMachine):
    kind = "partial-update"


class SequenceGroupMachine(EngineMachine):
    kind = "sequence groups"


class AggregationMachine(EngineMachine):
    kind = "aggregation"


class FirstRowMachine(EngineMachine):
    """New rows show after a compaction; unless the table is write-only, every commit ends with one."""

    kind = "first-row"


MACHINES: list[type[EngineMachine]] = [
    DeduplicateMachine,
    PartialUpdateMachine,
    SequenceGroupMachine,
    AggregationMachine,
    FirstRowMachine,
]
EXAMPLES, STEPS = 8, 15
LONG_EXAMPLES, LONG_STEPS = 160, 40
"""Of each machine. Histories may end earlier: measured, about 7 of 10 steps asked for are taken."""


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.kind)
def test_engine(machine: type[EngineMachine]) -> None:
    """Up to 120 steps on tables of each engine, each followed by a comparison."""
    run_state_machine_as_test(machine, settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS))


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.kind)
def test_engine_for_a_night(machine: type[EngineMachine]) -> None:
    """6,400 steps asked for of each engine, 32,000 in all, more than 20,000 taken; other ones each time."""
    long = settings(max_examples=LONG_EXAMPLES, stateful_step_count=LONG_STEPS, derandomize=False)
    run_state_machine_as_test(machine, settings=long)
