"""`sys.max_pt`: the largest first partition value of a table, as a literal of the statement."""

from __future__ import annotations

import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import InvalidArgument, NotFound
from lakebed.sql.query.newest_partition import with_newest_partitions


@pytest.fixture
def lake(warehouse: Warehouse) -> lakebed.Lake:
    """Tables by a number and by a text, and one without partitions."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE n (v INT, p INT, q STRING) PARTITIONED BY (p, q)")
    lake.sql("INSERT INTO n VALUES (1, 9, 'z'), (2, 10, 'a'), (3, 10, 'b'), (4, NULL, 'c')")
    lake.sql("CREATE TABLE s (v INT, p STRING) PARTITIONED BY (p)")
    lake.sql("CREATE TABLE plain (v INT)")
    return lake


@pytest.mark.parametrize(
    "name", ["sys.max_pt('n')", "paimon.sys.MAX_PT('default.n')", "sys.max_pt('paimon.default.n')"]
)
def test_value_stands_in_the_text(lake: lakebed.Lake, name: str) -> None:
    """Numbers count as numbers, and only the first column counts."""
    assert with_newest_partitions(lake, f"SELECT {name} AS p, 'sys.max_pt(1)'") == "SELECT '10' AS p, 'sys.max_pt(1)'"
    rows = lake.sql("SELECT v FROM n WHERE p = CAST(sys.max_pt('n') AS INT) ORDER BY v").collect()
    assert [row.v for row in rows] == [2, 3]


def test_quotes_are_kept(lake: lakebed.Lake) -> None:
    """A value is a literal whatever is in it."""
    lake.sql("INSERT INTO s VALUES (1, 'a''b')")
    assert with_newest_partitions(lake, "SELECT sys.max_pt('s')") == "SELECT 'a''b'"


def test_mistakes(lake: lakebed.Lake) -> None:
    """No name, no partitions, none yet."""
    for text in ("SELECT sys.max_pt(1)", "SELECT sys.max_pt()", "SELECT sys.max_pt('n'"):
        with pytest.raises(InvalidArgument, match="takes the name of a table"):
            lake.sql(text)
    with pytest.raises(InvalidArgument, match="not partitioned"):
        lake.sql("SELECT sys.max_pt('plain')")
    with pytest.raises(NotFound, match="has no partition"):
        lake.sql("SELECT sys.max_pt('s')")
