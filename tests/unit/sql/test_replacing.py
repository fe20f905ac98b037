"""REPLACE TABLE in place: the new table is empty, and old snapshots are read as they were."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse

from lakebed.errors import InvalidArgument

OLD = pa.table({"k": pa.array([1, 2], pa.int64()), "v": ["a", "b"], "p": ["x", "y"]})
NEW = pa.table({"k": pa.array([3], pa.int64()), "w": ["c"], "p": ["x"]})
COLUMNS = "k BIGINT, v STRING, p STRING"


@pytest.mark.parametrize("bucket", ["2", "-1", "-2"])
@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (p)"])
def test_replaced_in_place(warehouse: Warehouse, bucket: str, partitioned: str) -> None:
    """With any kind of buckets: the place stays, the rows go, old snapshots show the old columns."""
    lake = warehouse.lake
    lake.sql(f"CREATE TABLE t ({COLUMNS}) {partitioned} TBLPROPERTIES ('primary-key' = 'k,p', 'bucket' = '{bucket}')")
    table = lake.table("t")
    table.write(OLD)
    lake.sql("CALL sys.create_tag('t', 'before', 1)")
    lake.sql(f"REPLACE TABLE t (k BIGINT, w STRING, p STRING) {partitioned} TBLPROPERTIES ('primary-key' = 'k,p')")
    again = lake.table("t")
    assert again.location == table.location
    assert again.to_arrow().num_rows == 0
    assert "bucket" not in again.options
    again.write(NEW)
    assert again.to_arrow().to_pylist() == NEW.to_pylist()
    if bucket != "-2":  # waiting rows are not read
        assert again.at(snapshot=1).to_arrow().sort_by("k").to_pylist() == OLD.to_pylist()
        assert again.at(tag="before").to_arrow().num_rows == 2
    again.check()


def test_columns_that_are_something_else_get_other_ids(warehouse: Warehouse) -> None:
    """A column of the same name and type is the same one; all others never meet what older files hold."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (a INT, b STRING, c ROW<x INT, y INT>)")
    lake.sql("CREATE OR REPLACE TABLE t (c ROW<x INT, y INT>, b INT, a INT NOT NULL, d ROW<x INT>)")
    schema = lake.table("t").schema
    assert {field.name: field.id for field in schema.fields} == {"c": 2, "b": 5, "a": 0, "d": 6}
    assert schema.highest_field_id == 7
    assert schema.id == 1


def test_what_was_another_table_is_not_brought_back(warehouse: Warehouse) -> None:
    """Rows of before can be read, but a rollback to them is refused if keys or engine are others now."""
    lake = warehouse.lake
    lake.sql(f"CREATE TABLE t ({COLUMNS}) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')")
    lake.table("t").write(OLD)
    lake.sql(f"REPLACE TABLE t ({COLUMNS}) TBLPROPERTIES ('primary-key' = 'v', 'bucket' = '1')")
    with warehouse.refuses(InvalidArgument, "replaced after snapshot 1", "VERSION AS OF"):
        lake.table("t").rollback_to(1)
    engine = "'primary-key' = 'k', 'bucket' = '1', 'merge-engine' = 'first-row'"
    lake.sql(f"REPLACE TABLE t ({COLUMNS}) TBLPROPERTIES ({engine})")
    with warehouse.refuses(InvalidArgument, "replaced after snapshot 1"):
        lake.table("t").rollback_to_as_latest(1)


def test_other_partitions_begin_anew(warehouse: Warehouse) -> None:
    """Old manifests describe other partitions: the table begins anew, and a warning says that its history is gone."""
    lake = warehouse.lake
    lake.sql(f"CREATE TABLE t ({COLUMNS}) PARTITIONED BY (p)")
    lake.table("t").write(OLD)
    for columns, partitioned in ((COLUMNS, ""), ("k BIGINT, p INT", "PARTITIONED BY (p)")):
        with pytest.warns(UserWarning, match="old snapshots are gone"):
            lake.sql(f"REPLACE TABLE t ({columns}) {partitioned}")
        assert lake.table("t").snapshots() == []
