"""When Spark's own readers are sent to a store: only where the session is set up for the very store of the lake."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException

import lakebed
from lakebed.fileio.memory import MemoryFileIO
from lakebed.spark.hadoop import spark_prefix

HOME = "http://10.0.0.1:7070"


class _Session:
    """As much of a session as is asked: settings, and whether a task finds the file."""

    def __init__(self, settings: dict[str, str], finds: bool) -> None:
        self.conf = self
        self.read = self
        self.jobs = 0
        self._settings, self._finds = settings, finds

    def get(self, key: str, default: str | None) -> str | None:
        return self._settings.get(key, default)

    def schema(self, _: str) -> _Session:
        return self

    def parquet(self, path: str) -> _Session:
        assert path == "s3a://lake/shop.db/t/x.parquet"
        return self

    def limit(self, _: int) -> _Session:
        return self

    def collect(self) -> list[Any]:
        self.jobs += 1
        if not self._finds:
            raise PySparkException("no file system for scheme s3a")
        return []


def _store(**options: str) -> Any:
    keys = {"s3.access-key": "a", "s3.secret-key": "b", "s3.region": "us-east-1", **options}
    return lakebed.connect("s3://lake", options=keys)._catalog.fileio  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("settings", "endpoint", "is_found"),
    [
        ({}, HOME, False),
        ({"endpoint": HOME}, HOME, True),
        ({"endpoint": "10.0.0.1:7070"}, HOME, True),
        ({"endpoint": "http://10.0.0.2:7070"}, HOME, False),
        ({"endpoint": "http://10.0.0.2:7070", "bucket.lake.endpoint": HOME}, HOME, True),
        ({"endpoint": HOME, "bucket.lake.endpoint": "http://10.0.0.2:7070"}, HOME, False),
        ({"access.key": "x"}, HOME, False),
        ({"access.key": "x"}, None, True),
        ({"endpoint": "s3.eu-west-1.amazonaws.com"}, None, True),
        ({"endpoint": HOME}, None, False),
    ],
)
def test_a_session_for_the_store_of_the_lake(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], endpoint: str | None, is_found: bool
) -> None:
    """Another endpoint is another store, even where the bucket has the same name; a task is asked once."""
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    store = _store(**({} if endpoint is None else {"s3.endpoint": endpoint}))
    session: Any = _Session({f"spark.hadoop.fs.s3a.{key}": value for key, value in settings.items()}, finds=True)
    wanted = "s3a://lake/" if is_found else None
    for _ in range(2):
        assert spark_prefix(session, store, "shop.db/t/x.parquet") == wanted
    assert session.jobs == int(is_found)


def test_tasks_that_can_not_read_are_not_sent() -> None:
    session: Any = _Session({"spark.hadoop.fs.s3a.endpoint": HOME}, finds=False)
    for _ in range(2):
        assert spark_prefix(session, _store(**{"s3.endpoint": HOME}), "shop.db/t/x.parquet") is None
    assert session.jobs == 1


def test_memory_is_for_nobody_else() -> None:
    session: Any = _Session({}, finds=True)
    assert spark_prefix(session, MemoryFileIO("x"), "x") is None
