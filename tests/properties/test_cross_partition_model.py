"""Tables of all engines whose keys move between partitions, beside their model; handles come and go.

The model is that of a table whose key holds the partition too. What it is given are the rows as the rules for moving
keys have them: a delete in the old partition before a row that moves, the row in the partition where its key is, or no
row at all. So the rules stand here once more, row by row, and everything else is compared as for other tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test
from tests.properties.side_by_side import OP, OpenWriter, SideBySide
from tests.properties.test_engines_model import EngineMachine

import lakebed
from lakebed.testing.engine_strategies import KINDS_OF_TABLES, engine_definitions
from lakebed.testing.model import Deduplicate, Row, Value, order_of
from lakebed.testing.model_arrow import to_arrow_table, types_of
from lakebed.testing.model_engines import FirstRow
from lakebed.testing.strategies import TableDefinition
from lakebed.types import logical as lt
from lakebed.types.logical import AtomicType, with_nullable

PARTITION = "p"
Key = tuple[object, ...]


class MovingDefinition(TableDefinition):
    """A table whose key does not hold the partition; its model's key does."""

    def create(self, lake: lakebed.Lake, name: str) -> lakebed.Table:
        """The real table."""
        key = tuple(column for column in self.primary_key if column != PARTITION)
        return TableDefinition.create(replace(self, primary_key=key), lake, name)

    @staticmethod
    def of(definition: TableDefinition, partitions: tuple[Value, ...]) -> MovingDefinition:
        """Another table with moving keys: no column orders its rows, and keys that are there stay."""
        key = tuple(name for name in definition.primary_key if name != PARTITION)
        columns = {name: kind for name, kind in definition.columns.items() if name != PARTITION}
        part = with_nullable(lt.INT, False)
        assert isinstance(part, AtomicType)
        left_out = ("sequence.field", "remove-record-on")
        if definition.meaning["merge-engine"] == "deduplicate":
            left_out = (*left_out, "ignore-delete")  # a key that moves is deleted where it was
        return MovingDefinition(
            {**columns, PARTITION: part},
            (*key, PARTITION),
            (PARTITION,),
            {name: text for name, text in definition.meaning.items() if not any(part in name for part in left_out)},
            {**definition.layout, "bucket": "-1", "dynamic-bucket.target-row-num": "2"},
            {**definition.pools, PARTITION: partitions},
        )


class Moving(SideBySide):
    """A table with moving keys, and its model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.homes: dict[Key, Value] = {}
        self._open_homes: dict[Key, Value] = {}

    def open_writer(
        self, kinds: bool = False, overwrite: bool | Mapping[str, Value] | None = None, handle: int = 0
    ) -> OpenWriter:
        """What replaces everything knows no keys."""
        self._open_homes = {} if overwrite is not None else dict(self.homes)
        return super().open_writer(kinds, overwrite, handle)

    def feed(self, writer: OpenWriter, rows: Sequence[Row], kinds: Sequence[str] | None = None) -> None:
        """Gives the rows to the table, and what the rules make of them to the model."""
        given = list(kinds) if writer.kinds and kinds is not None else ["+I"] * len(rows)
        taken = [i for i, (row, kind) in enumerate(zip(rows, given, strict=True)) if self._told(writer, row, kind)]
        table = to_arrow_table([rows[i] for i in taken], types_of(writer.model.schema))
        if writer.kinds:
            table = table.append_column(OP, [[given[i] for i in taken]])
        writer.real.write(table)

    def commit(self, writer: OpenWriter) -> None:
        """Where keys are counts from now on."""
        super().commit(writer)
        self.homes = self._open_homes

    def check_changes(self, since: int, until: int) -> None:
        """What is written for a key that was deleted depends on whether the handle remembers it."""

    def _told(self, writer: OpenWriter, row: Row, kind: str) -> bool:
        """Tells the model of one row; whether the table gets it too."""
        schema, engine = writer.model.schema, self.model.engine
        accepted = self.model.accept(schema, row, kind)
        if accepted is None:
            return True  # both leave it out
        key = tuple(order_of(accepted[1][column][1]) for column in sorted(self.fixed - self._partition_ids))
        home = self._open_homes.get(key, row[PARTITION])
        if isinstance(engine, Deduplicate):
            if home != row[PARTITION]:
                _, cells = self.model.accept(schema, {**row, PARTITION: home}, "+I") or accepted
                writer.model.accepted.append(("-D", cells))
            writer.model.accepted.append(accepted)
            self._open_homes[key] = row[PARTITION]
            return True
        if isinstance(engine, FirstRow) and home != row[PARTITION]:
            return kind in ("+I", "+U")
        there = {**row, PARTITION: home}
        if not self._admission.admitted(schema, writer.records, [there], [kind], replaces=writer.model.is_overwrite):
            return False
        writer.model.write([there], [kind])
        self._open_homes[key] = home
        return True

    @property
    def _partition_ids(self) -> set[int]:
        return {self.model.schema.column(PARTITION).id}


class MovingMachine(EngineMachine):
    """Everything that happens to other tables but writers at the same time, of which such tables allow one only."""

    use_writers: Any = None

    @initialize(data=st.data(), full_only=st.booleans())
    def create(self, data: st.DataObject, full_only: bool) -> None:
        drawn = data.draw(engine_definitions(self.kind), "definition")
        definition = MovingDefinition.of(drawn, tuple(range(data.draw(st.integers(2, 3), "partitions"))))
        is_write_only = definition.layout.get("write-only") == "true"
        self.both = Moving(definition, full_only=full_only and is_write_only, judges=True)
        self.write(data, 0)

    @rule()
    def restart(self) -> None:
        """Whatever handles remember of the keys is gone."""
        self.both.handles = [self.both.open(), self.both.open()]


@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_moving_keys(kind: str) -> None:
    """Up to 48 steps on tables of each engine: every key is in one partition, with the row its engine makes."""
    machine = type(f"Moving {kind}", (MovingMachine,), {"kind": kind})
    run_state_machine_as_test(machine, settings=settings(max_examples=4, stateful_step_count=12))


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_moving_keys_for_a_night(kind: str) -> None:
    """4,800 steps asked for of each engine; other ones each time."""
    machine = type(f"Moving {kind}", (MovingMachine,), {"kind": kind})
    run_state_machine_as_test(machine, settings=settings(max_examples=120, stateful_step_count=40, derandomize=False))
