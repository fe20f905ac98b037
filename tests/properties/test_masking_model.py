"""Primary-key tables that mark old rows in deletion vectors, of all merge engines that may, beside their model.

What the table shows must equal the model after every step, whatever was compacted when, and each key must be there once
above level 0: whoever reads those files without merging them, and leaves out the marked rows, has the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, run_state_machine_as_test
from tests.properties.side_by_side import OpenWriter, SideBySide
from tests.properties.test_changelog_model import Told
from tests.properties.test_engines_model import EngineMachine

from lakebed.testing.engine_strategies import engine_definitions
from lakebed.testing.model import Row
from lakebed.testing.model_engines import PartialUpdate

MASKING = {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"}
"""Reads see level 0 too, so that states between a commit and its compaction can be compared."""


class Masked(SideBySide):
    """A table that masks old rows, and its model."""

    _ordered = Told._ordered

    def feed(self, writer: OpenWriter, rows: Sequence[Row], kinds: Sequence[str] | None = None) -> None:
        """As for tables with a changelog: rows speak of all groups that they bring values for."""
        engine = self.model.engine
        if isinstance(engine, PartialUpdate):
            rows = [self._ordered(row, engine, writer.model.schema) for row in rows]
        super().feed(writer, rows, kinds)


class MaskingMachine(EngineMachine):
    """Everything that happens to other tables, to one that masks."""

    @initialize(data=st.data(), bits=st.sampled_from(["false", "true"]))
    def create(self, data: st.DataObject, bits: str) -> None:
        definition = data.draw(engine_definitions(self.kind), "definition")
        layout = {**definition.layout, **MASKING, "deletion-vectors.bitmap64": bits}
        # No `distinct` lists: what a lone row holds twice is folded where its file is rewritten, and stays elsewhere.
        meaning = {option: text for option, text in definition.meaning.items() if not option.endswith(".distinct")}
        self.both = Masked(replace(definition, layout=layout, meaning=meaning), judges=True)
        self.write(data, 0)

    @invariant()
    def keys_are_there_once(self) -> None:
        if hasattr(self, "both") and self.both.snapshots:
            table = self.both.handles[0].with_options({"deletion-vectors.merge-on-read": "false"})
            shown = table.to_arrow(columns=table.primary_key).to_pylist()
            assert len({repr(row) for row in shown}) == len(shown)


ENGINES = ["deduplicate", "partial-update", "sequence groups", "aggregation"]


@pytest.mark.parametrize("kind", ENGINES)
def test_masking(kind: str) -> None:
    """Up to 60 steps for each engine."""
    machine = type(f"Masking {kind}", (MaskingMachine,), {"kind": kind})
    run_state_machine_as_test(machine, settings=settings(max_examples=5, stateful_step_count=12))


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", ENGINES)
def test_masking_for_a_night(kind: str) -> None:
    """4,800 steps asked for of each engine; other ones each time."""
    machine = type(f"Masking {kind}", (MaskingMachine,), {"kind": kind})
    run_state_machine_as_test(machine, settings=settings(max_examples=120, stateful_step_count=40, derandomize=False))
