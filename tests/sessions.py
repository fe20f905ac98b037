"""The Spark session that tests run on: a local one as users get it, or one of Spark Connect if the environment says."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lakebed.spark.session import Session

IS_CONNECT = bool(os.environ.get("LAKEBED_TEST_CONNECT"))


def open_session() -> Any:
    """A session, to be stopped by the caller."""
    if not IS_CONNECT:
        return Session().get()
    from pyspark.sql import SparkSession

    from lakebed.spark.session import java_home
    from lakebed.spark.worker_python import worker_python

    os.environ["JAVA_HOME"] = java_home() or os.environ.get("JAVA_HOME", "")
    # The server's workers would take whatever `python3` is on the path, and look in relative directories of theirs.
    os.environ["PYSPARK_PYTHON"] = worker_python()
    os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(part).resolve()) for part in sys.path if part)
    os.environ.setdefault("SPARK_TESTING", "1")  # the server takes any free port, not the same one each time
    return SparkSession.builder.remote("local[2]").getOrCreate()


@contextmanager
def few_tasks(session: Any) -> Iterator[None]:
    """Small tables are shuffled by one task; other tests of the process share the session, and want more."""
    key = "spark.sql.shuffle.partitions"
    before = session.conf.get(key)
    session.conf.set(key, "1")
    try:
        yield
    finally:
        session.conf.set(key, before)
