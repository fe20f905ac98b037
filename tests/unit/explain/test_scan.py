"""`t.explain(columns, filter)`: the steps end at what the plan opens, and each says what it left."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import InvalidArgument

COLUMNS = pa.schema([("dt", pa.int32()), ("k", pa.int64()), ("a", pa.int64()), ("s", pa.string())])


def rows(dt: int, keys: range) -> pa.Table:
    """Rows of one partition."""
    return pa.table(
        {"dt": [dt] * len(keys), "k": list(keys), "a": list(keys), "s": [f"s{key}" for key in keys]}, schema=COLUMNS
    )


@pytest.fixture
def table(lake: lakebed.Lake) -> lakebed.Table:
    """Two partitions of four buckets; in the first, files of two commits overlap."""
    options = {"bucket": "4", "write-only": "true", "manifest.merge-min-count": "100"}
    table = lake.create_table("t", COLUMNS, primary_key=["dt", "k"], partition_by=["dt"], options=options)
    table.write(rows(1, range(100)))
    table.write(rows(1, range(50)))
    table.write(rows(2, range(1000, 1100)))
    return table


def rules(found: object) -> dict[str, int]:
    """Files left after each rule."""
    return {step.rule: step.files for step in found.steps}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "condition", [None, "dt = 1", "dt = 1 AND k = 7", "k = 1005", "a = 1005", "dt = 2 AND a < 0", "k > 2000"]
)
def test_the_last_step_is_the_plan(table: lakebed.Table, condition: str | None) -> None:
    """Nothing is left out that is read, and nothing is told that is not read."""
    found = table.explain(filter=condition)
    files = table.scan(condition).files
    assert found.files == len(files) == found.steps[-1].files
    assert found.steps[-1].size_bytes == sum(file.size_bytes for file in files)
    sizes = [step.files for step in found.steps]
    assert sizes == sorted(sizes, reverse=True)


def test_each_rule_says_what_it_left(table: lakebed.Table) -> None:
    """Manifests by their partitions, files by partition, bucket and keys; what is merged and what is not."""
    assert rules(table.explain()) == {"nothing": 12}
    found = table.explain(["a"], "dt = 1 AND k = 70")
    told = rules(found)
    assert told == {"nothing": 12, "partitions of manifests": 8, "bucket of the key": 2, "range of keys": 1}
    assert (found.splits, found.merged_splits, found.merged_files, found.files) == (1, 0, 0, 1)
    assert (found.steps[0].manifests, found.steps[1].manifests) == (3, 2)
    assert (found.row_groups, found.row_groups_read) == (1, 1)
    assert 0 < found.size_bytes < found.steps[-1].size_bytes
    merged = table.explain(filter="dt = 1 AND k = 7")
    assert (merged.merged_splits, merged.merged_files) == (1, 2)
    values = table.explain(filter="dt = 2 AND a = 9999")
    assert rules(values)["statistics of columns, of files that are not merged"] == 0
    assert "bucket of the key" in repr(found)
    assert "bucket of the key" in found._repr_html_()
    assert found.to_dict()["steps"][0]["files"] == 12


def test_row_groups_and_indexes(lake: lakebed.Lake) -> None:
    """Row groups that statistics exclude are told, and files that an index excludes."""
    options = {
        "file.block-size": "1 kb",
        "file-index.bloom-filter.columns": "s",
        "file-index.in-manifest-threshold": "1 b",
    }
    table = lake.create_table("t", COLUMNS, options=options)
    with table.writer() as writer:
        for start in range(0, 20_000, 5000):
            writer.write(rows(1, range(start, start + 5000)))
    table.write(rows(1, range(20_000, 20_010)))
    found = table.explain(["a"], "k = 5")
    assert 1 <= found.row_groups_read < found.row_groups
    assert table.explain(filter="s = 's5x'").files == 0
    assert rules(table.explain(filter="s = 's5x'"))["indexes of files"] == 0
    with pytest.raises(InvalidArgument, match="shows changes"):
        lake.table("t$audit_log").explain()


def test_explain_in_sql(lake: lakebed.Lake, table: lakebed.Table) -> None:
    """EXPLAIN tells what is read of each table, beside how the query is answered."""
    text = lake.sql("EXPLAIN SELECT a FROM t WHERE dt = 1 AND k = 70").collect()[0][0]
    assert "engine: duckdb" in text
    assert "bucket of the key" in text
