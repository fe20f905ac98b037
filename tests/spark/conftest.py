"""One Spark session for all tests of a process; a warehouse of its own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sessions import IS_CONNECT, open_session

import lakebed

# They start drivers of their own, which know nothing of the server: nothing new would be seen.
_ALONE = ["test_driver_kills.py", "test_stream_kills.py", "test_stream_phases.py", "test_stream_soak.py"]
collect_ignore = _ALONE if IS_CONNECT else []


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
    session = open_session()
    yield session
    session.stop()


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> lakebed.Lake:
    """An empty lake."""
    return lakebed.connect(tmp_path / "warehouse", spark=spark)
