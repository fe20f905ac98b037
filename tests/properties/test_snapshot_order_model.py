"""Tables that order rows by snapshot, of all merge engines, driven side by side with their model.

Whoever commits later wins, whatever numbers the rows carry: the model knows no other order. Left out are
`sequence.field`, which such tables must not have, and buffers that are too small for a commit: rows of a key that one
commit writes to several files have no order among themselves.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test
from tests.properties.side_by_side import SideBySide
from tests.properties.test_engines_model import MACHINES, EngineMachine

from lakebed.testing.engine_strategies import engine_definitions
from lakebed.testing.strategies import TableDefinition

EXAMPLES, STEPS = 4, 12
LONG_EXAMPLES, LONG_STEPS = 100, 40


def by_snapshot(definition: TableDefinition) -> TableDefinition:
    """The table, ordered by snapshot."""
    meaning = {key: text for key, text in definition.meaning.items() if not key.startswith("sequence.")}
    layout = {key: text for key, text in definition.layout.items() if key != "write-buffer-size"}
    return replace(
        definition, meaning=meaning, layout={**layout, "write-only": "true", "sequence.snapshot-ordering": "true"}
    )


class SnapshotOrderMachine(EngineMachine):
    """All that happens to the tables of `EngineMachine` happens to tables that order by snapshot."""

    @initialize(data=st.data(), full_only=st.booleans())
    def create(self, data: st.DataObject, full_only: bool) -> None:
        definition = by_snapshot(data.draw(engine_definitions(self.kind), "definition"))
        self.both = SideBySide(definition, full_only=full_only, judges=True)
        self.write(data, 0)


def machine_of(kind: str) -> type[SnapshotOrderMachine]:
    """The machine for tables of one engine."""
    return type(f"By snapshot {kind}", (SnapshotOrderMachine,), {"kind": kind})


KINDS = [machine.kind for machine in MACHINES if machine.kind != "first-row"]


@pytest.mark.parametrize("kind", KINDS)
def test_snapshot_order(kind: str) -> None:
    """Up to 48 steps on tables of each engine, each followed by a comparison."""
    run_state_machine_as_test(machine_of(kind), settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS))


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS)
def test_snapshot_order_for_a_night(kind: str) -> None:
    """4,000 steps asked for of each engine; other ones each time."""
    long = settings(max_examples=LONG_EXAMPLES, stateful_step_count=LONG_STEPS, derandomize=False)
    run_state_machine_as_test(machine_of(kind), settings=long)
