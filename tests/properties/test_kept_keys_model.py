"""Tables of all engines whose keys move between partitions, written in small and in large batches, beside their model.

Large batches are shared by key among tasks that keep keys on disk. In between come small ones of any handle, restarts,
compactions, overwrites, changes of the schema, attempts that fail, and disks that lose or damage what was kept.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test
from tests.properties.shared_writer import SharedWriter
from tests.properties.side_by_side import OP, OpenWriter
from tests.properties.test_cross_partition_model import Moving, MovingDefinition, MovingMachine

from lakebed.table.plans import plan_write
from lakebed.testing.engine_strategies import KINDS_OF_TABLES, engine_definitions
from lakebed.testing.model import Value
from lakebed.write.placement.kept_keys import KeptPlace


@dataclass(frozen=True)
class Way:
    """How the next batches are written: by so many tasks, or by none of them."""

    parts: int
    is_taught: bool
    is_repeated: bool


class InShares(Moving):
    """A table with moving keys that is written by several tasks now and then."""

    way = Way(0, False, False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.scope = str(uuid4())

    def open_writer(
        self, kinds: bool = False, overwrite: bool | Mapping[str, Value] | None = None, handle: int = 0
    ) -> OpenWriter:
        """A writer of the chosen way."""
        writer = super().open_writer(kinds, overwrite, handle)
        if self.way.parts and overwrite is None:
            table, way = self.handles[handle % len(self.handles)], self.way
            writer.real.abort()
            shared: Any = SharedWriter(
                table, OP if kinds else None, way.parts, self.scope, way.is_taught, way.is_repeated
            )
            writer.real = shared
        return writer

    @property
    def kept(self) -> Path:
        """Where tasks keep keys."""
        return Path(KeptPlace(self.scope).directory(plan_write(self.handles[0])[0]))

    def close(self) -> None:
        """Leaves nothing behind."""
        shutil.rmtree(self.kept, ignore_errors=True)
        super().close()


class InSharesMachine(MovingMachine):
    """Everything that happens to tables with moving keys, in small and in large batches."""

    both: InShares

    @initialize(data=st.data(), full_only=st.booleans())
    def create(self, data: st.DataObject, full_only: bool) -> None:
        drawn = data.draw(engine_definitions(self.kind), "definition")
        definition = MovingDefinition.of(drawn, tuple(range(data.draw(st.integers(2, 3), "partitions"))))
        is_write_only = definition.layout.get("write-only") == "true"
        self.both = InShares(definition, full_only=full_only and is_write_only, judges=True)
        self.write(data, 0)

    @rule(data=st.data(), handle=st.integers(0, 1))
    def write(self, data: st.DataObject, handle: int) -> None:
        """Small and large batches one after the other."""
        for tasks in data.draw(st.sampled_from([(0, 2, 0), (2, 0, 2), (2, 2, 3), (3, 0, 0)]), "tasks"):
            self.both.way = Way(
                tasks,
                is_taught=not data.draw(st.integers(0, 3), "taught"),
                is_repeated=not data.draw(st.integers(0, 3), "repeated"),
            )
            rows = data.draw(self._rows(self.both.model.schema, min_size=3, max_size=8), "rows")
            self.both.write([rows], self._kinds(data, len(rows)), handle=handle)

    write_one_by_one: Any = None

    @rule(damage=st.sampled_from(["cut", "scratch", "remove"]))
    def damage_a_disk(self, damage: str) -> None:
        """Something happens to one of the files."""
        for path in sorted(self.both.kept.glob("*/*.keys"))[:1]:
            if damage == "remove":
                path.unlink()
            elif damage == "cut":
                path.write_bytes(path.read_bytes()[:5000])
            else:
                body = bytearray(path.read_bytes())
                body[len(body) // 2 :] = bytes(byte ^ 0xFF for byte in body[len(body) // 2 :])
                path.write_bytes(body)


@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_moving_keys_in_shares(kind: str) -> None:
    """Up to 16 steps on tables of each engine: every key is in one partition, with the row its engine makes."""
    machine = type(f"In shares {kind}", (InSharesMachine,), {"kind": kind})
    run_state_machine_as_test(machine, settings=settings(max_examples=2, stateful_step_count=8))


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_moving_keys_in_shares_for_a_night(kind: str) -> None:
    """2,000 steps asked for of each engine; other ones each time."""
    machine = type(f"In shares {kind}", (InSharesMachine,), {"kind": kind})
    run_state_machine_as_test(machine, settings=settings(max_examples=50, stateful_step_count=40, derandomize=False))
