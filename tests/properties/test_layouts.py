"""What a table holds does not depend on how it is laid out: same operations, other options, same table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.side_by_side import SideBySide

from lakebed.testing.model import Row, Value
from lakebed.testing.model_arrow import from_arrow, tally, types_of
from lakebed.testing.strategies import (
    TableDefinition,
    filters,
    layouts,
    row_kinds,
    rows_of,
    table_definitions,
    with_layout,
)

Step = Callable[[SideBySide], None]


@st.composite
def steps(draw: st.DrawFn, definition: TableDefinition) -> list[Step]:
    """Writes and overwrites with fixed rows, to be applied to several tables."""
    made: list[Step] = []
    for _ in range(draw(st.integers(1, 5))):
        rows = rows_of(definition.columns, definition.pools, definition.rowkind_field, min_size=1)
        batches = draw(st.lists(rows, min_size=1, max_size=3))
        count = sum(map(len, batches))
        kinds = None
        if definition.rowkind_field is None and draw(st.booleans()):
            kinds = draw(st.lists(row_kinds(), min_size=count, max_size=count))
        made.append(_step(batches, kinds, draw(st.sampled_from([None, None, None, True]))))
    return made


def _step(batches: list[list[Row]], kinds: list[str] | None, overwrite: Any) -> Step:
    return lambda both: both.write(batches, kinds, overwrite)


@settings(max_examples=10)
@given(table_definitions(), st.data())
def test_layout_does_not_change_the_table(definition: TableDefinition, data: st.DataObject) -> None:
    """Buckets, format, buffers, file sizes, manifests and statistics leave rows, history and filtered reads alone."""
    check_layouts(definition, data)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@settings(max_examples=300, derandomize=False)
@given(table_definitions(), st.data())
def test_layout_does_not_change_the_table_for_a_night(definition: TableDefinition, data: st.DataObject) -> None:
    """The same many times; other tables each time."""
    check_layouts(definition, data)


def check_layouts(definition: TableDefinition, data: st.DataObject) -> None:
    """The same steps on tables of three layouts."""
    script = data.draw(steps(definition), "steps")
    others = [data.draw(layouts(definition.columns), "layout") for _ in range(2)]
    condition = data.draw(filters(definition.columns, definition.pools), "filter")
    seen: list[list[Counter[tuple[tuple[str, object], ...]]]] = []
    for layout in (definition.layout, *others):
        # Without compaction: it drops deletes, after which a late row shows, and when it runs depends on the layout.
        both = SideBySide(with_layout(definition, {**layout, "write-only": "true"}))
        try:
            for step in script:
                step(both)
            both.check_table()
            both.check_filtered(condition, list(definition.columns))
            both.check_changes(0, len(both.snapshots))
            table = both.handles[0]
            past = [from_arrow(table.at(snapshot=number).to_arrow()) for number in both.snapshots]
            seen.append([tally(rows) for rows in (*past, from_arrow(table.to_arrow(filter=condition.expression)))])
        finally:
            both.close()
    assert seen[0] == seen[1] == seen[2]


@settings(max_examples=4)
@given(table_definitions(), st.data())
def test_many_rows_in_small_files(definition: TableDefinition, data: st.DataObject) -> None:
    """Hundreds of rows over wide keys, cut into many files, runs and batches, read back as the model has them."""
    check_small_files(definition, data)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@settings(max_examples=100, derandomize=False)
@given(table_definitions(), st.data())
def test_many_rows_in_small_files_for_a_night(definition: TableDefinition, data: st.DataObject) -> None:
    """The same many times; other tables each time."""
    check_small_files(definition, data)


def check_small_files(definition: TableDefinition, data: st.DataObject) -> None:
    """Rows in many small files, side by side with the model."""
    layout = {
        **definition.layout,
        "write-only": "true",
        **data.draw(
            st.fixed_dictionaries(
                {
                    "target-file-row-num": st.sampled_from(["7", "40"]),
                    "read.batch-size": st.sampled_from(["5", "16", "1000"]),
                    "write-buffer-size": st.sampled_from(["2 kb", "20 kb"]),
                }
            ),
            "layout",
        ),
    }
    both = SideBySide(with_layout(definition, layout))
    random = data.draw(st.randoms(use_true_random=False))
    try:
        schema = both.model.schema
        example = data.draw(rows_of(types_of(schema), {}, definition.rowkind_field, min_size=8, max_size=30), "rows")
        values: dict[str, list[Value]] = {name: [row[name] for row in example] for name in schema.names}
        for _ in range(4):
            rows = [{name: random.choice(values[name]) for name in schema.names} for _ in range(60)]
            both.write([rows[:25], rows[25:40], rows[40:]])
        both.check_table()
        condition = data.draw(filters(definition.columns, values), "filter")
        both.check_filtered(condition, list(definition.columns))
    finally:
        both.close()
