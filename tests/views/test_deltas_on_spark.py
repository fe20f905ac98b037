"""Changes followed by tasks of Spark: a real job of each shape in which a result is kept, and one that fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.views.in_parts import share_among
from tests.views.judging import bag, difference, folded
from tests.views.test_on_spark import _odd

import lakebed
from lakebed.lake import Lake
from lakebed.views.shared_delta import SharedDelta

pytestmark = pytest.mark.spark

_SHAPES = {
    "keyed": "SELECT t.id, t.x, t.name, t.d, t.m, t.l, t.at, c.region FROM t LEFT JOIN c ON t.c = c.cid",
    "added": "SELECT c.region, count(*) AS n, sum(t.d) AS s FROM t JOIN c ON t.c = c.cid GROUP BY c.region",
    "numbered": "SELECT x, name FROM t",
    "replaced": "SELECT c, name, max(at) AS last, min(d) AS least FROM t GROUP BY c, name",
}
"""One for each way in which parts come together; `t` and `c` change."""


def _rows(numbers: range, step: int = 0) -> list[dict[str, Any]]:
    return [_odd(number + step) | {"id": number, "c": number % 5} for number in numbers]


@pytest.fixture
def lake(tmp_path: Path, spark: Any) -> Lake:
    """Rows with a bit of everything, and a small table beside."""
    found = lakebed.connect(str(tmp_path), spark=spark)
    columns = {"id": "INT NOT NULL", "x": "DOUBLE", "name": "STRING", "d": "DECIMAL(9, 2)", "c": "INT"}
    columns |= {"m": "MAP<STRING, INT>", "l": "ARRAY<DOUBLE>", "at": "TIMESTAMP_LTZ(6)"}
    keyed = {"bucket": "1", "changelog-producer": "lookup"}
    found.create_table("t", columns, primary_key=["id"], options=keyed)
    found.create_table("c", {"cid": "INT NOT NULL", "region": "STRING"}, primary_key=["cid"], options=keyed)
    found["t"].write(_rows(range(30)))
    found["c"].write([{"cid": n, "region": f"r{n % 2}"} for n in range(4)])
    return found


def _happen(lake: Lake) -> None:
    lake["t"].write(_rows(range(0, 9, 2), 1))
    lake["t"].write([{**row, "kind": "-D"} for row in _rows(range(20, 22))], row_kind="kind")
    lake["t"].write(_rows(range(50, 53)))
    lake["c"].write([{"cid": 1, "region": None}, {"cid": 4, "region": "r0"}])


@pytest.mark.parametrize(
    "shape", [pytest.param(shape, marks=() if shape == "keyed" else pytest.mark.nightly) for shape in _SHAPES]
)
def test_tasks_follow_changes(lake: Lake, monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    """What comes out is what this process gives, down to hashes, numbers, what is kept beside, and signs of zero."""
    query = _SHAPES[shape]
    for name in ("here", "tasks"):
        lake.materialize(name, query, policy="incremental")
    _happen(lake)
    expected = lake.refresh("here")
    share_among(monkeypatch, 2)
    done = lake.refresh("tasks")
    assert done.way == "incremental"
    assert "; by Spark: " in done.reason, done.reason
    assert (done.inserted, done.updated, done.deleted) == (expected.inserted, expected.updated, expected.deleted)
    columns = lake["here"].schema.field_names
    assert bag(lake["tasks"].to_arrow(columns)) == bag(lake["here"].to_arrow(columns))
    assert difference(lake, "tasks", query, engine="spark") is None
    assert folded(lake, "tasks") is None


def test_a_task_that_fails_leaves_the_table_as_it_was(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is committed, no file is left, and the next refresh has the same changes."""
    query = _SHAPES["replaced"]
    lake.materialize("v", query, policy="incremental")
    share_among(monkeypatch, 2)
    before, files = lake["v"].latest_snapshot(), _files(lake)
    _happen(lake)
    events = SharedDelta._events

    def torn(self: SharedDelta, spark: Any) -> Any:
        broken: Any = None
        return events(replace(self, task=replace(self.task, difference=broken)), spark)

    with monkeypatch.context() as patched:
        patched.setattr(SharedDelta, "_events", torn)
        with pytest.raises(Exception, match=r"(?s)'NoneType' object|AttributeError"):
            lake.refresh("v")
    assert lake["v"].latest_snapshot() == before
    assert _files(lake) == files
    assert "; by Spark: " in lake.refresh("v").reason
    assert difference(lake, "v", query) is None
    assert folded(lake, "v") is None


def _files(lake: Lake) -> set[str]:
    place = Path(lake["v"].location)
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
