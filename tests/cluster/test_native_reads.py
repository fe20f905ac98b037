"""Files in the store that Spark reads itself: where its Hadoop is set up for the store; elsewhere we read them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.bed import Bed
from tests.cluster.s3_server import SECRET_KEY

import lakebed
from lakebed.spark import hadoop, read

ROWS = 300_000
COLUMNS = {"id": "BIGINT NOT NULL", "v": "STRING", "day": "INT"}


@pytest.fixture
def able(bed: Bed, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The session, if it has Hadoop's module for S3; files of any size are worth Spark's reader."""
    monkeypatch.setattr(read, "_LEAST_NATIVE_BYTES", 0)
    if not bed.hadoop():
        pytest.skip("Hadoop's module for S3 can not be had")
    return spark


@pytest.fixture
def tables(bed: Bed, able: Any, request: pytest.FixtureRequest) -> list[lakebed.Table]:
    """Rows as they came; rows of keys, a part of which are deleted by marks; the same with newer rows over them."""
    lake = bed.lake(request.node.name, able)
    rows = able.range(0, ROWS, 1, 2).selectExpr("id", "md5(CAST(id AS STRING)) AS v", "CAST(id % 3 AS INT) AS day")
    marks = {"bucket": "2", "deletion-vectors.enabled": "true"}
    plain = lake.create_table("plain", COLUMNS, options={"bucket": "-1"})
    marked = lake.create_table("marked", COLUMNS, options={"bucket": "-1", "deletion-vectors.enabled": "true"})
    keyed = lake.create_table("keyed", COLUMNS, primary_key=["id"], options=marks)
    overlaid = lake.create_table("overlaid", COLUMNS, primary_key=["id"], options={"bucket": "2"})
    for table in (plain, marked, keyed, overlaid):
        table.write_spark(rows)
    marked.delete_where([("id", "<", 100)])
    keyed.compact(full=True)
    overlaid.compact(full=True)
    for table in (keyed, overlaid):
        table.write_spark(rows.filter("id < 10").selectExpr("id", "'new' AS v", "day"))
    return [plain, marked, keyed, overlaid]


def _found(table: lakebed.Table, **question: Any) -> list[Any]:
    frame = table.to_spark(**question)
    return frame.selectExpr("count(*)", "sum(hash(*))", "sum(CASE WHEN v = 'new' THEN 1 ELSE 0 END)").collect()


def test_rows_are_equal_both_ways(
    bed: Bed, able: Any, tables: list[lakebed.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark reads what needs no merge, we read the rest: together the rows that we alone read. No key is told."""
    questions: list[dict[str, Any]] = [{}, {"filter": [("id", ">", 1000), ("day", "=", 1)]}]
    for table in tables:
        files = table.to_spark().inputFiles()
        assert bool(files) == (table.name != "default.overlaid"), table.name
        assert all(file.startswith(f"s3a://{bed.store.bucket}/") for file in files)
        assert SECRET_KEY not in table.to_spark()._jdf.queryExecution().toString()
        both = [_found(table, **question) for question in questions]
        with monkeypatch.context() as patch:
            patch.setattr(read, "spark_prefix", lambda *_: None)
            assert table.to_spark().inputFiles() == []
            assert [_found(table, **question) for question in questions] == both
    assert _found(tables[1])[0][0] == ROWS - 100
    assert _found(tables[3])[0][2] == 10
    monkeypatch.undo()
    assert tables[0].to_spark().inputFiles() == []  # small files: we ask less often for each
    assert SECRET_KEY not in bed.told()


def test_a_session_for_another_store_is_not_asked(bed: Bed, able: Any, tables: list[lakebed.Table]) -> None:
    """Settings for another endpoint: no request goes there, and we read the files."""
    key = "spark.hadoop.fs.s3a.endpoint"
    before = able.conf.get(key)
    hadoop._KNOWN.pop(able, None)
    able.conf.set(key, "http://127.0.0.1:9")
    try:
        assert tables[0].to_spark().inputFiles() == []
        assert tables[0].to_spark().count() == ROWS
    finally:
        able.conf.set(key, before)
        hadoop._KNOWN.pop(able, None)
