"""Worked examples of kinds of tables: with and without a key, with marked rows, with settings of other engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.table.worked_tables import shown
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.definition.bucket_mode import DYNAMIC, UNAWARE, bucket_mode
from lakebed.definition.row_rules import vectors_at


def rows(*given: Sequence[Any]) -> pa.Table:
    """Keys and values, of text or numbers."""
    return pa.table({"k": ints(*(key for key, _ in given)), "v": [value for _, value in given]})


def test_n_30_a_key_decides_the_kind_of_table(warehouse: Warehouse) -> None:
    """N-30: with a primary key rows replace each other, without one they pile up; no option says which."""
    keyed = warehouse.table("keyed", {"k": "INT NOT NULL", "v": "STRING"}, primary_key=["k"])
    plain = warehouse.table("plain", {"k": "INT NOT NULL", "v": "STRING"})
    for table in (keyed, plain):
        table.write(rows((1, "a"), (2, "b")))
        table.write(rows((1, "c")))
    assert keyed.options == plain.options == {}
    assert shown(keyed) == [[1, "c"], [2, "b"]]
    assert sorted(shown(plain)) == [[1, "a"], [1, "c"], [2, "b"]]
    modes = [bucket_mode(table.schema, table._opened.context.options) for table in (keyed, plain)]
    assert modes == [DYNAMIC, UNAWARE]


def test_n_37_a_setting_of_flinks_sink_is_taken(warehouse: Warehouse) -> None:
    """N-37: `table.exec.sink.upsert-materialize` may be set for a session, which is told that it does nothing."""
    lake, key = warehouse.lake, "table.exec.sink.upsert-materialize"
    with pytest.warns(UserWarning, match="is a setting of Flink"):
        assert [tuple(row) for row in lake.sql(f"SET '{key}' = 'NONE'").collect()] == [(key, "NONE")]
    lake.sql(f"CREATE TABLE t (k INT PRIMARY KEY NOT ENFORCED, v STRING) WITH ('{key}' = 'NONE')")
    lake.sql("INSERT INTO t VALUES (1, 'a'), (1, 'b')")
    assert shown(lake.table("t")) == [[1, "b"]]


OTHERS = [[key, f"text {key * 7919}"] for key in range(3, 1000)]
"""Rows behind those of the examples: a file of two rows would be joined with the next one at once."""


@pytest.fixture
def masked(warehouse: Warehouse) -> lakebed.Table:
    """T-01: a table that marks old rows; its first commit is one file above level 0."""
    options = {"deletion-vectors.enabled": "true", "bucket": "1"}
    table = warehouse.table("t", {"k": "INT NOT NULL", "v": "STRING"}, primary_key=["k"], options=options)
    table.write(rows((1, "a"), (2, "b"), *OTHERS))
    return table


def marks(table: lakebed.Table) -> dict[str, list[int]]:
    """Positions of marked rows by file, named by its age: f1 is the oldest."""
    context = table._opened.current()
    places = vectors_at(context, context.stores.snapshots.latest())
    files = sorted(table.scan().files, key=lambda file: file.min_sequence_number)
    return {
        f"f{number}": context.vector_store.read(places[file.file_name]).tolist()
        for number, file in enumerate(files, 1)
        if file.file_name in places
    }


def test_t_01_a_first_file_has_no_marks(masked: lakebed.Table) -> None:
    """T-01: two rows at positions 0 and 1 of one file above level 0."""
    (file,) = masked.scan().files
    assert (file.row_count, file.level > 0, marks(masked)) == (999, True, {})
    assert shown(masked) == [[1, "a"], [2, "b"], *OTHERS]


def test_t_02_an_upsert_marks_the_old_row(masked: lakebed.Table) -> None:
    """T-02: position 0 of the first file is marked, the new row stands in the second."""
    masked.write(rows((1, "c")))
    assert marks(masked) == {"f1": [0]}
    assert shown(masked) == [[1, "c"], [2, "b"], *OTHERS]


def test_t_03_a_delete_marks_the_last_row(masked: lakebed.Table) -> None:
    """T-03: both rows of the first file are gone, one is left in the second."""
    masked.write(rows((1, "c")))
    masked.write(rows((2, "b")).append_column("kind", pa.array(["-D"])), row_kind="kind")
    assert marks(masked) == {"f1": [0, 1]}
    assert shown(masked) == [[1, "c"], *OTHERS]
