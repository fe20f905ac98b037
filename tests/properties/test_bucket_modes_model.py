"""The table and its model side by side, for tables that find their buckets themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test
from tests.properties.side_by_side import SideBySide
from tests.properties.test_table_model import TableMachine

from lakebed.testing.strategies import TableDefinition, table_definitions

DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "2"}
POSTPONED = {"bucket": "-2", "postpone.target-row-num-per-bucket": "2"}


class ChoosingMachine(TableMachine):
    """All of the machine but writers at the same time, of which such tables allow one only."""

    options: ClassVar[dict[str, str]] = {}
    race = None  # type: ignore[assignment]
    open_writer = None  # type: ignore[assignment]

    @initialize(definition=table_definitions(), on_disk=st.integers(0, 9))
    def create(self, definition: TableDefinition, on_disk: int) -> None:
        layout = {**definition.layout, **self.options}
        self.both = SideBySide(replace(definition, layout=layout), on_disk=on_disk == 9, judges=True)


@pytest.mark.parametrize("options", [DYNAMIC, POSTPONED], ids=["dynamic", "postponed"])
def test_tables_that_choose_buckets(options: dict[str, str]) -> None:
    """Random operations on random tables: with two rows to a bucket, reads and changes are those of the model."""
    machine = type("Machine", (ChoosingMachine,), {"options": options})
    quick = settings(
        max_examples=15, stateful_step_count=12, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    run_state_machine_as_test(machine, settings=quick)
