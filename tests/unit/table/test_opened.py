"""What a table may be used for, as somebody has opened it, is found out anew whenever the table has changed."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

from lakebed import SetOption
from lakebed.errors import InvalidOption
from lakebed.table.opened import opened_of


def test_a_context_is_kept_while_the_schema_stays(warehouse: Warehouse) -> None:
    """What was worked out from it is there for the next call; a new version of the schema begins anew."""
    table = warehouse.table("t", {"a": "INT"}, pa.table({"a": ints(1)}))
    first = opened_of(table).current()
    assert opened_of(table).current() is first
    table.alter(SetOption("target-file-size", "1 mb"))
    assert opened_of(table).current() is not first
    assert table.options["target-file-size"] == "1 mb"


def test_options_that_no_longer_fit_are_refused_every_time(warehouse: Warehouse) -> None:
    """A handle whose own option the table has changed since says so at the second call as at the first."""
    table = warehouse.table("t", {"a": "INT NOT NULL"}, primary_key=["a"], options={"bucket": "2"})
    opened = table.with_options({"bucket": "2"})
    assert opened.to_arrow().num_rows == 0
    table.alter(SetOption("bucket", "3"))
    for _ in range(2):
        with pytest.raises(InvalidOption, match="bucket"):
            opened.to_arrow()
        with pytest.raises(InvalidOption, match="bucket"):
            opened.write(pa.table({"a": ints(1)}))
