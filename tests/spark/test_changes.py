"""Changes and differences as DataFrames: read by several tasks, in the order in which the table tells them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

import lakebed
from lakebed.errors import Unsupported
from lakebed.spark import read

COLUMNS = {"id": "INT NOT NULL", "v": "INT"}


@pytest.fixture
def many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is small, and a few bytes are worth a task."""
    monkeypatch.setattr(read, "LOCAL_ROWS", -1)
    monkeypatch.setattr(read, "_TASK_BYTES", 1 << 10)
    monkeypatch.setattr(read, "_LEAST_TASK_BYTES", 1)


def _table(lake: lakebed.Lake, **options: str) -> lakebed.Table:
    table = lake.create_table("t", COLUMNS, primary_key=["id"], options={"bucket": "3", **options})
    rng = np.random.default_rng(1)
    for value in range(5):
        ids = rng.choice(400, 60, replace=False).astype(np.int32)
        table.write(pa.table({"id": ids, "v": np.full(60, value, np.int32)}))
    return table


def _rows(frame: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


def _tasks(frame: Any) -> int:
    return int(frame.select(sf.spark_partition_id().alias("task")).distinct().count())


def _told(rows: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows.to_pylist()]


@pytest.mark.usefixtures("many_tasks")
@pytest.mark.parametrize("producer", ["none", "lookup"])
def test_changes_by_several_tasks(lake: lakebed.Lake, producer: str) -> None:
    """Each task reads what follows the part of the one before it, so a frame has the order of the commits."""
    table = _table(lake, **{"changelog-producer": producer})
    frame = table.changes_to_spark()
    assert _tasks(frame) > 2
    assert _rows(frame) == _told(table.changes())
    last = table.latest_snapshot()
    assert last is not None
    assert _rows(table.changes_to_spark(2, last.id - 1)) == _told(table.changes(2, last.id - 1))
    assert table.changes_to_spark(last.id).count() == 0


@pytest.mark.usefixtures("many_tasks")
@pytest.mark.parametrize("options", [{}, {"bucket": "-1"}, {"deletion-vectors.enabled": "true"}])
def test_differences_by_several_tasks(lake: lakebed.Lake, options: dict[str, str]) -> None:
    """What is compared together stays in one task; all of it comes, in the order of `diff`."""
    table = _table(lake, **options)
    last = table.snapshots()[-1].id
    for before, after in ((1, last), (last, 1), (0, last), (2, last - 1)):
        assert _rows(table.diff_to_spark(before, after)) == _told(table.diff(before, after))
    if not options:
        assert _tasks(table.diff_to_spark(0, last)) > 2
    some = table.diff_to_spark(1, last, columns=["id"], filter=[("id", "<", 50)])
    assert _rows(some) == _told(table.diff(1, last, columns=["id"], filter=[("id", "<", 50)]))


@pytest.mark.usefixtures("many_tasks")
@pytest.mark.parametrize("view", ["", "$audit_log", "$binlog"])
@pytest.mark.parametrize("mode", ["delta", "changelog", "diff"])
def test_ranges_by_several_tasks(lake: lakebed.Lake, view: str, mode: str) -> None:
    """Incremental reads of the table and its views, also where a change is told by two rows."""
    _table(lake, **{"changelog-producer": "lookup"})
    shown = lake.table(f"t{view}").with_options({"incremental-between": "1,6", "incremental-between-scan-mode": mode})
    assert _rows(shown.to_spark()) == _told(shown.to_arrow())


@pytest.mark.usefixtures("many_tasks")
def test_tables_without_a_key(lake: lakebed.Lake) -> None:
    """Rows that went and came, and appends, partition by partition."""
    table = lake.create_table("a", {"p": "INT", "v": "INT"}, partition_by=["p"])
    for value in range(3):
        table.write(pa.table({"p": pa.array([0, 1, 2], pa.int32()), "v": pa.array([value] * 3, pa.int32())}))
    table.delete_where([("v", "==", 1)])
    assert _rows(table.diff_to_spark(2, 4)) == _told(table.diff(2, 4))
    assert _rows(table.changes_to_spark(0, 3)) == _told(table.changes(0, 3))


def test_small_ones_are_read_at_once(lake: lakebed.Lake) -> None:
    """Few changes travel as part of the query; one row for each change is refused, with another way."""
    table = _table(lake)
    assert _rows(table.changes_to_spark()) == _told(table.changes())
    assert _rows(table.diff_to_spark(1, 3)) == _told(table.diff(1, 3))
    with pytest.raises(Unsupported, match="incremental-between"):
        lake.table("t$binlog").changes_to_spark()
