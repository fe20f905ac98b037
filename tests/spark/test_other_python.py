"""A session of the user's own, in a virtual environment that is not activated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sessions import IS_CONNECT

pytestmark = pytest.mark.skipif(IS_CONNECT, reason="starts a driver of its own")
JOB = """
import sys, pyarrow as pa, lakebed
from lakebed.spark.session import java_home
import os
os.environ["JAVA_HOME"] = java_home() or os.environ.get("JAVA_HOME", "")
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
assert spark.sparkContext.pythonExec == "python3"
lake = lakebed.connect(sys.argv[1], spark=spark)
rows = spark.range(100).selectExpr("CAST(id AS INT) AS k", "'x' AS v")
t = lake.create_table("t", rows, primary_key=["k"], options={"bucket": "2"})
t.write(spark.range(50).selectExpr("CAST(id AS INT) AS k", "'y' AS v"))
spark.range(7).selectExpr("CAST(id AS INT) AS k", "'z' AS v").write.format("lakebed").mode("append").save(t.location)
print("rows", t.to_spark().where("v = 'y'").count(), spark.read.format("lakebed").load(t.location).count())
"""


def test_workers_run_on_the_python_of_the_driver(tmp_path: Path) -> None:
    """Jobs and `format("lakebed")` work though the `python3` of the PATH has none of our modules, or is not there."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "VIRTUAL_ENV"))}
    own["PATH"] = "/usr/bin:/bin"
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(tmp_path)], env=own, capture_output=True, text=True, timeout=280, check=False
    )
    assert "rows 43 100" in done.stdout, done.stderr[-2000:]
