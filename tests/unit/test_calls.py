"""Calls with arguments of other libraries: they work, or the error says what to write instead."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed import Lake, Table
from lakebed.calls import explains_call
from lakebed.errors import InvalidArgument, NotFound


@pytest.fixture
def table(warehouse: Warehouse) -> Table:
    """Two snapshots, the first of which has a tag."""
    made = warehouse.table("t", {"id": "INT"}, {"id": ints(1)})
    made.create_tag("v1")
    made.write({"id": ints(2)})
    return made


def test_a_point_in_time_without_a_name(warehouse: Warehouse, table: Table) -> None:
    """at() takes a number for a snapshot, text for a tag, and a datetime for a moment."""
    assert table.at(1).count() == table.at("v1").count() == 1
    assert table.at(dt.datetime.now() + dt.timedelta(days=1)).count() == 2
    with warehouse.refuses(NotFound, "no tag `v2`", "`v1`"):
        table.at("v2")
    with warehouse.refuses(NotFound, "no tag `2024-05-14`", "at(timestamp='2024-05-14')"):
        table.at("2024-05-14")
    with warehouse.refuses(InvalidArgument, "exactly one of", "not 2"):
        table.at(1, tag="v1")


def test_differences_by_time(warehouse: Warehouse, table: Table) -> None:
    """diff() takes moments as at() does, and ends at what the table shows."""
    assert table.diff(1).to_pylist() == table.diff("v1").to_pylist() == [{"rowkind": "+I", "id": 2}]
    first = table.snapshots()[0].time_millis
    while table.snapshots()[-1].time_millis == first:
        table.write({"id": ints(2)})  # until the clock has moved on
    came = table.diff(dt.datetime.fromtimestamp(first / 1000, dt.UTC)).to_pylist()
    assert {row["id"] for row in came} == {2}
    assert table.diff(0, dt.datetime.now() + dt.timedelta(days=1)).num_rows == table.count()
    assert table.at(1).diff(0).to_pylist() == [{"rowkind": "+I", "id": 1}]
    with warehouse.refuses(NotFound, "no tag `2024-05-14`", "pass a datetime"):
        table.diff("2024-05-14")
    with warehouse.refuses(NotFound, "no snapshot at or before"):
        table.diff(dt.date(2020, 1, 1))


Call = Callable[[Lake, Any], object]


@pytest.mark.parametrize(
    ("call", "texts"),
    [
        (
            lambda lake, t: t.write({"id": ints(1)}, mode="overwrite"),
            ["write() takes no argument `mode`", "overwrite=True"],
        ),
        (lambda lake, t: t.write_spark(None, mode="append"), ["`mode`", "without it they are added"]),
        (lambda lake, t: t.at(version=1), ["`version`", "at(snapshot=...)"]),
        (lambda lake, t: t.to_arrow(limit=1), ["`limit`", "t.head(n)"]),
        (lambda lake, t: t.to_pandas(where="id = 1"), ["`where`", "filter="]),
        (lambda lake, t: t.to_arrow(colums=["id"]), ["`colums`", "did you mean `columns`?", "to_arrow(columns="]),
        (lambda lake, t: t.snapshots(limit=1), ["`limit`", "[-n:]"]),
        (lambda lake, t: t.create_tag("v2", snapshot_id=1), ["`snapshot_id`", "snapshot=..."]),
        (lambda lake, t: t.diff(), ["diff() lacks the argument `before`", "diff(before, after"]),
        (lambda lake, t: t.where(city="Rome"), ["`city`", "where(\"amount > 10 AND state = 'paid'\")"]),
        (lambda lake, t: t.to_arrow(columns="id"), ["columns is 'id'", "columns=['id']"]),
        (lambda lake, t: lake.create_table("x", {"id": "INT"}, primary_key="id"), ["primary_key=['id']"]),
        (lambda lake, t: t.count("id = 1", 2), ["takes 1 arguments without a name, not 2"]),
        (lambda lake, t: t.tags(True, detail=True), ["is given `detail` twice"]),
        (lambda lake, t: lake.table("t", snapshot=1), ["`snapshot`", "lake.table(name).at(snapshot=...)"]),
        (lambda lake, t: lake.create_table("u", {"id": "INT"}, keys=["id"]), ["`keys`", "primary_key=['id']"]),
        (lambda lake, t: lake.create_table("u", {"id": "INT"}, bucket=2), ["`bucket`", "options={'bucket': '4'}"]),
        (lambda lake, t: lake.create_table("u"), ["lacks the argument `schema`", "create_table(name, schema, "]),
        (lambda lake, t: lake.query("SELECT :id", id=1), ["`id`", "args={'name': value}"]),
        (lambda lake, t: lake.query("SELECT 1").show(limit=1), ["`limit`", "show(n)"]),
        (lambda lake, t: lakebed.connect(warehouse="w"), ["`warehouse`", "lakebed.connect(path)"]),  # type: ignore[call-arg]
    ],
)
def test_arguments_that_are_not_taken(warehouse: Warehouse, table: Table, call: Call, texts: list[str]) -> None:
    """The error names the argument and what to write; nothing is changed."""
    with warehouse.refuses(InvalidArgument, *texts):
        call(warehouse.lake, table)


def test_errors_of_the_function_itself_stay() -> None:
    """A TypeError from inside of a function that was called rightly is no matter of arguments."""

    @explains_call({})
    def add(one: Any) -> Any:
        return one + "text"

    with pytest.raises(TypeError, match="unsupported operand"):
        add(1)


def test_warnings_point_at_the_caller(warehouse: Warehouse) -> None:
    """However deep a warning comes from, it names the line that led to it."""
    table = warehouse.table("t", {"id": "INT"})
    options = {"sink.parallelism": "4"}
    calls: list[Callable[[], object]] = [
        lambda: table.with_options(options),
        lambda: warehouse.lake.sql("SET 'pipeline.name' = 'nightly'"),
        lambda: warehouse.lake.create_table("u", {"id": "INT"}, options=options),
    ]
    for call in calls:
        with pytest.warns(UserWarning, match="no effect") as heard:
            call()
        assert [Path(each.filename).name for each in heard] == ["test_calls.py"]
