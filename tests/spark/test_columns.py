"""Hidden columns, columns that a write adds, indexes of columns and columns in files of their own, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakebed
from lakebed.errors import Unsupported

MERGE = {"write.merge-schema": "true"}


def _rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_bucket_and_partition(lake: lakebed.Lake) -> None:
    """Bucket and partition of rows can be selected and grouped by, also of a table with a key."""
    lake.sql("CREATE TABLE t (k INT, p STRING) PARTITIONED BY (p) TBLPROPERTIES ('primary-key'='k,p', 'bucket'='2')")
    lake.sql("INSERT INTO t VALUES (1, 'x'), (2, 'x'), (3, 'y')")
    found = lake.sql("SELECT __paimon_bucket, __paimon_partition.p, count(*) FROM t GROUP BY 1, 2")
    assert _rows(found) == [(0, "x", 2), (1, "y", 1)]
    assert lake.sql("SELECT * FROM t").columns == ["k", "p"]


def test_writes_add_columns(lake: lakebed.Lake) -> None:
    """`write_spark` and the data source add the columns that a frame brings."""
    table = lake.create_table("t", {"a": "INT", "b": "STRING"})
    table.with_options(MERGE).write_spark(lake.spark.sql("SELECT 1 AS a, '1' AS b, 3L AS c"))
    frame = lake.spark.sql("SELECT '2' AS b, named_struct('x', 1) AS d")
    frame.write.format("lakebed").options(**MERGE).mode("append").save(table.location)
    assert table.to_arrow().column_names == ["a", "b", "c", "d"]
    assert _rows(table.to_spark(columns=["b", "c"])) == [("1", 3), ("2", None)]


def test_indexed_files_are_not_opened(lake: lakebed.Lake) -> None:
    """Files that Spark would read itself are left out if their indexes exclude them."""
    options = {"file-index.bloom-filter.columns": "s", "metadata.stats-mode": "none"}
    table = lake.create_table("t", {"a": "BIGINT", "s": "STRING"}, options=options)
    count = 60_000
    for start in (0, count):
        numbers = np.arange(start, start + count)
        table.write(pa.table({"a": numbers, "s": [f"s{number}" for number in numbers]}))
    first = table.to_arrow(columns=["__paimon_file_path"], filter=pc.field("a") == 5)[0][0].as_py()
    Path(first).unlink()
    assert _rows(table.to_spark(filter=pc.field("s") == f"s{count + 7}")) == [(count + 7, f"s{count + 7}")]
    assert _rows(lake.sql("SELECT count(*) FROM t WHERE s = 'nobody'")) == [(0,)]


def test_columns_in_files_of_their_own(lake: lakebed.Lake) -> None:
    """UPDATE and MERGE replace columns, keep the ids of rows, and DELETE is refused."""
    options = "'row-tracking.enabled'='true', 'data-evolution.enabled'='true'"
    lake.sql(f"CREATE TABLE t (k INT, b INT, c INT) TBLPROPERTIES ({options})")
    lake.sql("INSERT INTO t VALUES (1, 10, 100), (2, 20, 200)")
    lake.sql("UPDATE t SET b = 22 WHERE k = 2")
    lake.sql(
        "MERGE INTO t USING (SELECT 1 AS k, 11 AS b UNION ALL SELECT 3, 33) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET b = s.b WHEN NOT MATCHED THEN INSERT (k, b, c) VALUES (s.k, s.b, 300)"
    )
    assert _rows(lake.sql("SELECT k, b, c, _ROW_ID FROM t")) == [(1, 11, 100, 0), (2, 22, 200, 1), (3, 33, 300, 2)]
    assert sorted(file.write_cols or () for file in lake.table("t").scan().files) == [(), (), ("b",), ("b",)]
    with pytest.raises(Unsupported, match="data-evolution"):
        lake.sql("DELETE FROM t WHERE k = 1")
