"""Temporary views and the time zone mean the same with and without a session, and a session that starts gets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lakebed

SETUP = """
CREATE TABLE t (id INT, v BIGINT, at TIMESTAMP_LTZ(3));
INSERT INTO t VALUES (1, 10, NULL), (2, 20, NULL), (3, NULL, NULL);
CREATE TEMPORARY VIEW big AS SELECT id, v * 2 AS w, array(id) AS l FROM t WHERE v > 5;
CREATE TEMPORARY VIEW bigger AS SELECT id FROM big b WHERE b.w > 20
"""
QUESTIONS = [
    "SELECT * FROM big ORDER BY id",
    "SELECT x.id, big.w FROM bigger AS x JOIN big ON x.id = big.id ORDER BY x.id",
    "WITH big AS (SELECT 7 AS id) SELECT * FROM big",
    "SELECT count(*) FROM t WHERE id IN (SELECT id FROM bigger)",
    "DESCRIBE big",
    "SHOW VIEWS LIKE 'big*'",  # the session is shared, and others have views in it
    "SELECT unix_micros(TIMESTAMP '2024-10-27 02:30:00') AS m",
    "SELECT CAST(timestamp_seconds(0) AS STRING) AS s",
]


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "Europe/Berlin"])
def test_the_same_is_seen(tmp_path: Path, spark: Any, zone: str) -> None:
    """Every question has one answer: without a session, with one that starts later, with one from the start."""
    alone, beside = lakebed.connect(tmp_path / "alone"), lakebed.connect(tmp_path / "beside", spark)
    answers = []
    for lake in (alone, beside):
        lake.sql(f"{SETUP}; SET TIME ZONE '{zone}'")
        lake.sql("INSERT INTO t VALUES (4, 40, '2024-05-14 12:00:00')")
        answers.append([lake.sql(question).toArrow().to_pylist() for question in QUESTIONS])
    assert not alone.is_spark_started
    assert answers[0] == answers[1]
    for name in ("big", "bigger"):  # the sessions are one: what the other lake has left must not be found
        spark.catalog.dropTempView(name)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert alone.spark.table("bigger").count() == 2
    assert [alone.sql(question).toArrow().to_pylist() for question in QUESTIONS] == answers[0]
    alone.sql("DROP VIEW bigger; DROP VIEW big")


def test_a_view_whose_table_is_gone_does_not_stop_a_session(tmp_path: Path, spark: Any) -> None:
    """A session starts all the same; who uses the view is told, and it is there again when the table is."""
    lake = lakebed.connect(tmp_path)
    lake.sql("CREATE TABLE t (id INT); CREATE TEMPORARY VIEW lost AS SELECT * FROM t; DROP TABLE t")
    assert lake.spark is spark
    with pytest.raises(lakebed.errors.NotFound):
        lake.sql("SELECT * FROM lost")
    lake.sql("CREATE TABLE t (id INT); INSERT INTO t VALUES (1)")
    assert [tuple(row) for row in lake.sql("SELECT * FROM lost").collect()] == [(1,)]
    lake.sql("DROP VIEW lost")
