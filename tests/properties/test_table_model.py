"""The table and its model, driven side by side by random operations and compared after every one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.properties.side_by_side import OpenWriter, SideBySide

from lakebed.testing.model import ModelSchema, Row
from lakebed.testing.model_arrow import types_of
from lakebed.testing.strategies import (
    ATOMIC_TYPES,
    TableDefinition,
    filters,
    row_kinds,
    rows_of,
    stores,
    table_definitions,
    wider_types,
)
from lakebed.types.logical import AtomicType

_NEW_NAMES = st.sampled_from(["a", "b", "c", "d", "é", "select"])


class TableMachine(RuleBasedStateMachine):
    """Writes, overwrites, schema changes, and all ways to read, on any number of handles and open writers."""

    both: SideBySide
    is_keyed = True

    @initialize(definition=table_definitions(), on_disk=st.integers(0, 9))
    def create(self, definition: TableDefinition, on_disk: int) -> None:
        self.both = SideBySide(definition, on_disk=on_disk == 9, judges=True)

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
        batches = data.draw(st.lists(self._rows(self.both.model.schema), min_size=1, max_size=3), "batches")
        self.both.write(batches, self._kinds(data, batches), handle=handle)

    @rule(data=st.data())
    def overwrite(self, data: st.DataObject) -> None:
        how = data.draw(self._overwrites(), "overwrite")
        rows = data.draw(self._rows(self.both.model.schema), "rows")
        if isinstance(how, dict) and data.draw(st.integers(0, 3)):
            rows = [{**row, **how} for row in rows]
        self.both.write([rows], self._kinds(data, [rows]), overwrite=how)

    @rule(data=st.data(), second_first=st.booleans())
    def race(self, data: st.DataObject, second_first: bool) -> None:
        """Two writers start from the same state; the one that commits later wins."""
        writers = [self.both.open_writer(data.draw(self._wants_kinds()), handle=i) for i in range(2)]
        for writer in writers:
            self._feed(data, writer)
        for writer in reversed(writers) if second_first else writers:
            self.both.commit(writer)

    @precondition(lambda self: len(self.both.writers) < 3)
    @rule(data=st.data(), handle=st.integers(0, 1))
    def open_writer(self, data: st.DataObject, handle: int) -> None:
        overwrite = data.draw(st.sampled_from([None, None, None, True]))
        self.both.open_writer(data.draw(self._wants_kinds()), overwrite, handle)

    @precondition(lambda self: self.both.writers)
    @rule(data=st.data())
    def feed_writer(self, data: st.DataObject) -> None:
        self._feed(data, self._some_writer(data))

    @precondition(lambda self: self.both.writers)
    @rule(data=st.data())
    def commit_writer(self, data: st.DataObject) -> None:
        self.both.commit(self._some_writer(data))

    @precondition(lambda self: self.both.writers)
    @rule(data=st.data())
    def abort_writer(self, data: st.DataObject) -> None:
        self.both.abort(self._some_writer(data))

    @rule()
    def reopen(self) -> None:
        self.both.handles = [self.both.handles[1], self.both.open()]

    # --- altering ---

    @rule(name=_NEW_NAMES, data_type=st.sampled_from(ATOMIC_TYPES))
    def add_column(self, name: str, data_type: AtomicType) -> None:
        if name not in self.both.model.schema.names and self._fits(name, data_type):
            self.both.add_column(name, data_type)

    @precondition(lambda self: self.both.free_columns())
    @rule(data=st.data())
    def drop_column(self, data: st.DataObject) -> None:
        self.both.drop_column(data.draw(st.sampled_from(self.both.free_columns())))

    @precondition(lambda self: self.both.renamable_columns())
    @rule(data=st.data(), new_name=_NEW_NAMES)
    def rename_column(self, data: st.DataObject, new_name: str) -> None:
        name = data.draw(st.sampled_from(self.both.renamable_columns()))
        schema = self.both.model.schema
        if new_name not in schema.names and self._fits(new_name, schema.column(name).type):
            self.both.rename_column(name, new_name)

    @rule(data=st.data())
    def widen_column(self, data: st.DataObject) -> None:
        schema = self.both.model.schema
        choices = [
            (name, wider)
            for name in self.both.retypable_columns()
            for wider in wider_types(schema.column(name).type)
            if self._fits(name, wider)
        ]
        if choices:
            self.both.widen_column(*data.draw(st.sampled_from(choices)))

    # --- reading ---

    @precondition(lambda self: self.both.snapshots)
    @rule(data=st.data())
    def time_travel(self, data: st.DataObject) -> None:
        self.both.check_past(data.draw(st.integers(1, len(self.both.snapshots)), "snapshot"))

    @precondition(lambda self: self.both.snapshots)
    @rule(data=st.data())
    def changes(self, data: st.DataObject) -> None:
        since = data.draw(st.integers(0, len(self.both.snapshots)), "since")
        self.both.check_changes(since, data.draw(st.integers(since, len(self.both.snapshots)), "until"))

    @rule(data=st.data())
    def filtered_read(self, data: st.DataObject) -> None:
        at = data.draw(st.none() | st.integers(1, len(self.both.snapshots)), "at") if self.both.snapshots else None
        schema = self.both.model.schema if at is None else self.both.model.commits[at - 1].schema
        condition = data.draw(filters(types_of(schema), self.both.known_values(schema)), "filter")
        columns = data.draw(st.lists(st.sampled_from(schema.names), min_size=1, unique=True), "columns")
        self.both.check_filtered(condition, columns, at)

    # --- drawing ---

    def _feed(self, data: st.DataObject, writer: OpenWriter) -> None:
        rows = data.draw(self._rows(writer.model.schema), "rows")
        kinds = data.draw(st.lists(row_kinds(), min_size=len(rows), max_size=len(rows))) if writer.kinds else None
        self.both.feed(writer, rows, kinds)

    def _rows(self, schema: ModelSchema) -> st.SearchStrategy[list[Row]]:
        return rows_of(types_of(schema), self.both.pools(schema), self.both.rowkind(schema))

    def _wants_kinds(self) -> st.SearchStrategy[bool]:
        return st.just(False) if not self.is_keyed or self.both.definition.rowkind_field else st.booleans()

    def _kinds(self, data: st.DataObject, batches: list[list[Row]]) -> list[str] | None:
        count = sum(len(rows) for rows in batches)
        if not data.draw(self._wants_kinds()):
            return None
        return data.draw(st.lists(row_kinds(), min_size=count, max_size=count), "kinds")

    def _overwrites(self) -> st.SearchStrategy[Any]:
        pools = self.both.pools(self.both.model.schema)
        parts = {name: st.sampled_from(pools[name]) for name in self.both.definition.partition_by}
        specs = st.fixed_dictionaries({}, optional=parts)
        return st.just(True) | specs

    def _some_writer(self, data: st.DataObject) -> OpenWriter:
        return self.both.writers[data.draw(st.integers(0, len(self.both.writers) - 1), "writer")]

    def _fits(self, name: str, data_type: AtomicType) -> bool:
        return stores(self.both.definition.layout["file.format"], {name: data_type})


class AppendMachine(TableMachine):
    """The same without a primary key: rows pile up."""

    is_keyed = False

    @initialize(definition=table_definitions(keyed=False), on_disk=st.integers(0, 9))
    def create(self, definition: TableDefinition, on_disk: int) -> None:
        self.both = SideBySide(definition, on_disk=on_disk == 9)


TestKeyedTable = TableMachine.TestCase
TestKeyedTable.settings = settings(max_examples=15, stateful_step_count=15)
TestAppendTable = AppendMachine.TestCase
TestAppendTable.settings = settings(max_examples=8, stateful_step_count=15)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("machine", "examples"), [(TableMachine, 350), (AppendMachine, 50)])
def test_for_a_night(machine: type[RuleBasedStateMachine], examples: int) -> None:
    """Twenty thousand steps, other ones each time, with longer histories than the default run has."""
    long = settings(max_examples=examples, stateful_step_count=50, derandomize=False)
    run_state_machine_as_test(machine, settings=long)
