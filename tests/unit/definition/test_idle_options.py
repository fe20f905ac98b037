"""Options of another merge engine: other engines take them in silence, so tables that have them must be of use."""

from __future__ import annotations

import logging

import pytest
from tests.unit.table.worked_tables import create, shown, write
from tests.unit.warehouse_under_test import Warehouse

import lakebed


def test_options_of_another_engine_have_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    """A deduplicate table with an option of partial-update is a deduplicate table; a warning says so once."""
    with caplog.at_level(logging.WARNING, logger="lakebed"):
        table = create("k a b", {"partial-update.remove-record-on-delete": "true", "fields.a.sequence-group": "b"})
        write(table, [1, 5, 1])
        write(table, [1, 2, 3])
        assert shown(table) == [[1, 2, 3]]
        write(table, ("-D", [1, None, None]))
    assert shown(table) == []
    told = [record.getMessage() for record in caplog.records if "has no effect" in record.getMessage()]
    assert sorted(text.split("`")[3] for text in told) == [
        "fields.<fields>.sequence-group",
        "partial-update.remove-record-on-delete",
    ]


def test_options_that_name_columns_follow_a_rename(warehouse: Warehouse) -> None:
    """A table without a key may carry sequence groups; renamed columns are renamed there too."""
    options = {"fields.f1,f2.sequence-group": "f3"}
    table = warehouse.table("t", {f"f{number}": "INT" for number in range(4)}, options=options)
    for number in (1, 2, 3):
        table.alter(lakebed.RenameColumn(f"f{number}", f"g{number}"))
    assert table.options == {"fields.g1,g2.sequence-group": "g3"}
