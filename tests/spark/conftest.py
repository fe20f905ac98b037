"""One Spark session for all tests of a process; a warehouse of its own for each test."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.spark.session import Session

IS_CONNECT = bool(os.environ.get("LAKEBED_TEST_CONNECT"))
# They start drivers of their own, which know nothing of the server: nothing new would be seen.
collect_ignore = ["test_driver_kills.py", "test_stream_kills.py", "test_stream_soak.py"] if IS_CONNECT else []


def mark_as_spark(folder: str) -> Callable[[list[pytest.Item]], None]:
    """A hook that marks the tests of a folder: they need a JVM."""

    def mark(items: list[pytest.Item]) -> None:
        for item in items:
            if folder in item.path.as_posix():
                item.add_marker(pytest.mark.spark)

    return mark


pytest_collection_modifyitems = mark_as_spark("tests/spark/")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session: a local one as users get it, or one of Spark Connect if the environment says so."""
    if IS_CONNECT:
        from pyspark.sql import SparkSession

        from lakebed.spark.java import java_home

        os.environ["JAVA_HOME"] = java_home() or os.environ.get("JAVA_HOME", "")
        # The server's workers would take whatever `python3` is on the path, and look in relative directories of theirs.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(part).resolve()) for part in sys.path if part)
        os.environ.setdefault("SPARK_TESTING", "1")  # the server takes any free port, not the same one each time
        session = SparkSession.builder.remote("local[2]").getOrCreate()
    else:
        session = Session().get()
    yield session
    session.stop()


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> lakebed.Lake:
    """An empty lake."""
    return lakebed.connect(tmp_path / "warehouse", spark=spark)
