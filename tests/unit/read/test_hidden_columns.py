"""Hidden columns that tell where rows lie: bucket, partition, file and position."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.errors import Unsupported


@pytest.fixture(params=[False, True], ids=["append", "keyed"])
def table(request: pytest.FixtureRequest, warehouse: Warehouse) -> lakebed.Table:
    """A table with two partition columns and two buckets, written twice."""
    keys = {"primary_key": ["p", "q", "k"]} if request.param else {}
    options = {"bucket": "2", "bucket-key": "k"}
    columns = {"k": "INT", "p": "INT", "q": "STRING"}
    made = warehouse.table("t", columns, partition_by=["p", "q"], options=options, **keys)
    for _ in range(2):
        made.write(pa.table({"k": ints(1, 2, 3), "p": ints(1, 1, 2), "q": ["x", "x", "y"]}))
    return made


def test_bucket_and_partition(table: lakebed.Table) -> None:
    """Every row tells the bucket its key hashes to, and its partition columns as one."""
    count = 1 if table.primary_key else 2
    rows = table.to_arrow(columns=["k", "__paimon_partition", "__paimon_bucket"]).sort_by("k")
    assert rows["__paimon_bucket"].to_pylist() == [0] * (2 * count) + [1] * count
    assert rows["__paimon_partition"].to_pylist()[-1] == {"p": 2, "q": "y"}
    assert rows.schema.field("__paimon_bucket").type == pa.int32()
    assert "__paimon_bucket" not in table.to_arrow().column_names


def test_only_hidden_columns(table: lakebed.Table) -> None:
    """They are read without any stored column, and the number of rows is right."""
    count = 1 if table.primary_key else 2
    assert table.to_arrow(columns=["__paimon_bucket"])["__paimon_bucket"].to_pylist() == [0] * (2 * count) + [1] * count


def test_filter_on_a_hidden_column(table: lakebed.Table) -> None:
    """A filter may look at the bucket, whether it is asked for or not."""
    assert set(table.to_arrow(columns=["k"], filter=[("__paimon_bucket", "=", 1)])["k"].to_pylist()) == {3}
    assert table.to_arrow(columns=["__paimon_bucket"], filter=[("k", "=", 3)])["__paimon_bucket"].to_pylist()[0] == 1


def test_file_and_position_where_rows_are_not_merged(table: lakebed.Table) -> None:
    """Of a table that is fully compacted, file and position are told as well."""
    table.compact(full=True)
    rows = table.to_arrow(columns=["k", "__paimon_file_path", "__paimon_row_index"])
    names = {file.file_name for file in table.scan().files}
    assert {path.rpartition("/")[2] for path in rows["__paimon_file_path"].to_pylist()} == names
    assert min(rows["__paimon_row_index"].to_pylist()) == 0


def test_merged_rows_lie_in_no_file(warehouse: Warehouse) -> None:
    """File and position of rows that have to be merged are refused, with what helps."""
    table = warehouse.table("m", {"k": "INT"}, primary_key=["k"], options={"bucket": "1"})
    for _ in range(2):
        table.write(pa.table({"k": ints(1)}))
    with warehouse.refuses(Unsupported, "__paimon_file_path", "compact"):
        table.to_arrow(columns=["__paimon_file_path"])


def test_without_partitions_there_is_a_row_of_nothing(warehouse: Warehouse) -> None:
    """An unpartitioned table has a partition without values."""
    table = warehouse.table("u", {"k": "INT"}, pa.table({"k": ints(1, 2)}))
    assert table.to_arrow(columns=["__paimon_partition"])["__paimon_partition"].to_pylist() == [{}, {}]
    assert table.to_arrow(columns=["__paimon_bucket"])["__paimon_bucket"].to_pylist() == [0, 0]
