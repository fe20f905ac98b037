"""Benchmarks run at a small size, so that they can not rot. What they measure means nothing here.

The default run takes some without Spark, of appending, of keys and of changes; the nightly run takes all.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "name",
    [
        "append_table",
        "bucket_hash",
        pytest.param("cluster", marks=[pytest.mark.spark, pytest.mark.nightly]),
        pytest.param("compaction", marks=pytest.mark.nightly),
        "crossings",
        pytest.param("keyed_write", marks=pytest.mark.nightly),
        "lookup_changelog",
        pytest.param("lazy_outputs", marks=pytest.mark.nightly),
        pytest.param("memory", marks=pytest.mark.nightly),
        pytest.param("merge_read", marks=pytest.mark.nightly),
        pytest.param("metadata", marks=pytest.mark.nightly),
        pytest.param("metrics_cost", marks=pytest.mark.nightly),
        pytest.param("queries", marks=pytest.mark.nightly),
        pytest.param("why", marks=pytest.mark.nightly),
        pytest.param("stream_core", marks=pytest.mark.nightly),
        pytest.param("views", marks=[pytest.mark.spark, pytest.mark.nightly]),
        pytest.param("continuous", marks=[pytest.mark.spark, pytest.mark.nightly]),
        pytest.param("cdc", marks=[pytest.mark.spark, pytest.mark.nightly]),
        pytest.param("kafka_messages", marks=pytest.mark.nightly),
        pytest.param("cdc_postgres_source", marks=pytest.mark.nightly),
        pytest.param("deletion_vectors", marks=[pytest.mark.spark, pytest.mark.nightly]),
        pytest.param("dynamic_buckets", marks=[pytest.mark.spark, pytest.mark.nightly]),
        pytest.param("spark_read", marks=[pytest.mark.spark, pytest.mark.nightly]),
        pytest.param("spark_upsert", marks=[pytest.mark.spark, pytest.mark.nightly]),
        pytest.param("stream_latency", marks=[pytest.mark.spark, pytest.mark.nightly]),
        pytest.param("stream_thousand", marks=[pytest.mark.spark, pytest.mark.nightly]),
    ],
)
def test_benchmark_runs(name: str) -> None:
    """Every benchmark reaches its end and reports JSON; those on Spark with the peers that have been built here."""
    assert {path.stem for path in (ROOT / "benchmarks").glob("*.py")} == {
        "__init__",
        "append_table",
        "bucket_hash",
        "cdc",
        "cdc_debezium",
        "cdc_postgres_source",
        "cdc_worker",
        "cluster",
        "compaction",
        "continuous",
        "crossings",
        "deletion_vectors",
        "dynamic_buckets",
        "flink_home",
        "kafka_messages",
        "keyed_write",
        "lazy_outputs",
        "lookup_changelog",
        "memory",
        "merge_read",
        "metadata",
        "metrics_cost",
        "peers",
        "queries",
        "spark_peers",
        "spark_read",
        "spark_upsert",
        "spark_worker",
        "stream_core",
        "stream_latency",
        "stream_thousand",
        "stream_worker",
        "tpch",
        "ui_scale",
        "views",
        "why",
    }
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", "--small", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    for line in done.stdout.splitlines():
        assert json.loads(line)["benchmark"] == name
