"""A query that writes a table is told to lineage from its start to its end, whatever that is."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.lineage.sender import sender_to

pytest.importorskip("pyspark")


class _Query:
    """A query that ends when it is told to."""

    def __init__(self, failure: Exception | None) -> None:
        self._failure = failure
        self.ends = threading.Event()

    def awaitTermination(self) -> None:  # noqa: N802 - Spark's name
        self.ends.wait(60)
        if self._failure is not None:
            raise self._failure


@pytest.mark.parametrize("failure", [None, ValueError("topsecret")])
def test_the_life_of_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception | None) -> None:
    """START at once, COMPLETE or FAIL when it ends; of an error of Spark's only the kind is told."""
    from lakebed.spark.stream.sink import _trace

    table = lakebed.connect(tmp_path / "lake").create_table("t", {"id": "INT"})
    place = tmp_path / "events"
    monkeypatch.setenv("LAKEBED_OPENLINEAGE", str(place))

    def events() -> list[dict[str, Any]]:
        assert sender_to(str(place)).flush(30)
        return [json.loads(line) for line in place.read_text().splitlines()]

    before = set(threading.enumerate())
    query: Any = _Query(failure)
    _trace(query, table, "night")
    assert [each["eventType"] for each in events()] == ["START"]
    query.ends.set()
    for thread in set(threading.enumerate()) - before:
        if thread.name == "lakebed-lineage-of-query":
            thread.join(60)
    end = events()[-1]
    assert end["eventType"] == ("COMPLETE" if failure is None else "FAIL")
    assert end["job"]["name"] == "stream.default.t.night"
    assert end["outputs"][0]["name"] == table.location
    assert "topsecret" not in place.read_text()
    if failure is not None:
        assert end["run"]["facets"]["errorMessage"]["message"] == "ValueError"
