"""A Spark session whose zone and rules are those of the comparison."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.differential.engines import ZONE
from tests.sessions import few_tasks, open_session
from tests.spark.conftest import mark_as_spark

pytest_collection_modifyitems = mark_as_spark("tests/differential/")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session in a zone with a change of clocks."""
    session = open_session()
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _settings(spark: Any) -> Iterator[None]:
    """Those of the comparison; other tests of the process share the session, and have settings of their own."""
    ours = {"spark.sql.session.timeZone": ZONE, "spark.sql.ansi.enabled": "true"}
    before = {key: spark.conf.get(key) for key in ours}
    for key, value in ours.items():
        spark.conf.set(key, value)
    with few_tasks(spark):
        yield
    for key, value in before.items():
        spark.conf.set(key, value)
