"""One Spark session for the tests that compare with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.sessions import few_tasks, open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session with little overhead for small tables."""
    session = open_session()
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _few_tasks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where Spark is compared with, one task shuffles."""
    if "spark" not in request.fixturenames:
        yield
        return
    with few_tasks(request.getfixturevalue("spark")):
        yield
