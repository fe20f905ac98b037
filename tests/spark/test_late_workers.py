"""A Python worker that does not answer Spark in time: played by a Python that does not start the first time."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.sessions import IS_CONNECT

import lakebed


@pytest.mark.skipif(IS_CONNECT, reason="workers are started by the server, with its Python")
def test_a_stream_starts_although_its_first_worker_does_not(
    spark: Any, lake: lakebed.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark gives up on the source after ten seconds; the query begins again from its checkpoint, and all rows come."""
    _ = lake.spark  # gets our Python when it is first used, and is left alone from then on
    python, tried = tmp_path / "python", tmp_path / "tried"
    stays_away = f'case "$*" in *python_streaming_source_runner*) [ -e {tried} ] || {{ touch {tried}; exit 1; }};; esac'
    python.write_text(f'#!/bin/sh\n{stays_away}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    source, target = (
        lake.create_table(name, {"id": "BIGINT", "v": "INT"}, primary_key=["id"], options={"bucket": "1"})
        for name in ("source", "target")
    )
    rows = [{"id": key, "v": key * 2} for key in range(5)]
    source.write(pa.Table.from_pylist(rows, schema=source.arrow_schema))
    with caplog.at_level(logging.WARNING, "lakebed"):
        query = target.write_stream(source.read_stream(), checkpoint=tmp_path / "c", trigger="availableNow")
    query.awaitTermination()
    assert tried.exists()
    assert target.to_arrow().sort_by("id").to_pylist() == rows
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "a Python worker did not answer Spark in time, the machine is busy"
    ]
