"""Rows found by key are the rows that a read of everything shows, for tables of every kind and after every change."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakebed
from lakebed.errors import LakebedError
from lakebed.read.lookup import KeyLookup
from lakebed.testing.engine_strategies import KINDS_OF_TABLES, engine_definitions
from lakebed.testing.model import Row
from lakebed.testing.model_arrow import from_arrow, to_arrow_table
from lakebed.testing.strategies import TableDefinition, row_kinds, rows_of, table_definitions

_names = itertools.count()
_LAYOUTS = [
    {},
    {"write-only": "true"},
    {"bucket": "-1", "dynamic-bucket.target-row-num": "2"},
    {"bucket": "-2", "postpone.target-row-num-per-bucket": "2"},
    {"deletion-vectors.enabled": "true"},
    {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true", "write-only": "true"},
    {"changelog-producer": "lookup"},
]


def check_lookups(definition: TableDefinition, layout: dict[str, str], data: st.DataObject) -> None:
    """Creates a table, changes it a few times, and asks for keys after each change."""
    definition = replace(definition, layout={**definition.layout, **layout})
    lake = lakebed.connect(f"memory://lookup-{next(_names)}")
    try:
        table = definition.create(lake, "t")
    except LakebedError:
        return  # these options do not go together
    for _ in range(data.draw(st.integers(1, 4), "rounds")):
        rows = data.draw(rows_of(definition.columns, definition.pools, definition.rowkind_field), "rows")
        arrow = to_arrow_table(rows, definition.columns)
        kinds = None
        if definition.rowkind_field is None and data.draw(st.booleans(), "has kinds"):
            kinds = "op"
            arrow = arrow.append_column("op", pa.array([data.draw(row_kinds()) for _ in rows], pa.string()))
        try:
            table.write(arrow, row_kind=kinds)
            if data.draw(st.integers(0, 2), "compacts") == 0:
                table.compact(full=data.draw(st.booleans(), "full"))
            table.to_arrow()
        except LakebedError:
            return  # rows that the engine does not take, or can not take back
        key_columns = {name: definition.columns[name] for name in definition.primary_key}
        others = data.draw(rows_of(key_columns, {}, max_size=3), "others")
        known = data.draw(rows_of(key_columns, definition.pools, max_size=6), "known")
        compare(table, definition, [*others, *known])


def compare(table: lakebed.Table, definition: TableDefinition, asked: Sequence[Row]) -> None:
    """Asks twice, since files may be read in another way then, and once as a task of another process would."""
    key = list(definition.primary_key)
    shown = table.to_arrow()
    expected = {_told(row, key): row for row in from_arrow(shown)}
    wanted = [*from_arrow(shown.select(key)), *asked, *asked[:1]]
    keys = to_arrow_table(wanted, {name: definition.columns[name] for name in key})
    finder = table.key_lookup()
    elsewhere: KeyLookup = replace(finder, context=replace(finder.context, memory=type(finder.context.memory)()))
    for each in (finder, finder, elsewhere):
        found, rows = each.find(keys)
        assert rows.schema == table.arrow_schema
        assert found.to_pylist() == [_told(row, key) in expected for row in wanted]
        answers = [expected[_told(row, key)] for row in wanted if _told(row, key) in expected]
        assert [_told(row, rows.column_names) for row in from_arrow(rows)] == [
            _told(row, rows.column_names) for row in answers
        ]


def _told(row: Row, names: Sequence[str]) -> str:
    """The row as text: NaN is itself there, and zero is not minus zero."""
    return repr([row[name] for name in names])


@settings(max_examples=40)
@given(definition=table_definitions(), layout=st.sampled_from(_LAYOUTS), data=st.data())
def test_any_table(definition: TableDefinition, layout: dict[str, str], data: st.DataObject) -> None:
    """Keys of any types, nullable or not, of one column or several, with partitions, buckets and deletion vectors."""
    check_lookups(definition, layout, data)


@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_any_engine(kind: str) -> None:
    """Levels are merged by the table's engine."""

    @settings(max_examples=12)
    @given(definition=engine_definitions(kind), layout=st.sampled_from(_LAYOUTS), data=st.data())
    def check(definition: TableDefinition, layout: dict[str, str], data: st.DataObject) -> None:
        check_lookups(definition, layout, data)

    check()


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", [*KINDS_OF_TABLES, "any"])
def test_many(kind: str) -> None:
    """The same for long."""

    @settings(max_examples=2000)
    @given(
        definition=table_definitions() if kind == "any" else engine_definitions(kind),
        layout=st.sampled_from(_LAYOUTS),
        data=st.data(),
    )
    def check(definition: TableDefinition, layout: dict[str, str], data: st.DataObject) -> None:
        check_lookups(definition, layout, data)

    check()


def test_can_be_pickled(tmp_path: object) -> None:
    """What was sent to another process finds the same rows, at the snapshot that it was made for."""
    table = lakebed.connect(str(tmp_path)).create_table(
        "t", {"k": "INT NOT NULL", "v": "STRING"}, primary_key=["k"], options={"bucket": "4"}
    )
    table.write(pa.table({"k": pa.array(range(100), pa.int32()), "v": [f"v{i}" for i in range(100)]}))
    finder = table.key_lookup(["v"])
    table.write(pa.table({"k": pa.array([5], pa.int32()), "v": ["new"]}))
    there: KeyLookup = pickle.loads(pickle.dumps(finder))
    assert there.rows([7, 5, 200, 7]).to_pydict() == {"v": ["v7", "v5", "v7"]}
    assert table.lookup([5], ["v"]).to_pydict() == {"v": ["new"]}
