"""One Spark session for the tests that compare with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.sessions import open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session with little overhead for small tables."""
    session = open_session()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    yield session
    session.stop()
