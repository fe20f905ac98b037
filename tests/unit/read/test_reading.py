"""Reading a table: projections, filters, the ways out of Arrow, time travel, tags, branches and changes."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed import Table
from lakebed.errors import InvalidArgument, NotFound

FIXTURES = Path(__file__).parents[2] / "fixtures" / "pypaimon-2.1.0" / "warehouse"
ROWS = pa.table({"id": ints(1, 2, 3), "v": ["a", None, "c"]})


@pytest.fixture
def table(warehouse: Warehouse) -> Table:
    return warehouse.table("t", {"id": "INT", "v": "STRING"}, ROWS)


def test_an_empty_table(warehouse: Warehouse) -> None:
    """A table without snapshots reads as no rows of its schema, in every way."""
    table = warehouse.table("empty", {"id": "INT", "v": "STRING"})
    assert table.to_arrow().equals(table.arrow_schema.empty_table())
    assert list(table.to_batches()) == []
    assert table.to_pandas().empty
    assert table.scan().files == []
    assert table.scan().snapshot is None
    assert table.changes().num_rows == 0
    assert table.snapshots() == []
    assert table.latest_snapshot() is None
    assert table.tags() == []


def test_all_ways_out(table: Table) -> None:
    """Arrow, batches, pandas, polars and DuckDB show the same rows."""
    rows = ROWS.to_pylist()
    assert table.to_arrow().to_pylist() == rows
    assert pa.Table.from_batches(table.to_batches()).to_pylist() == rows
    assert table.to_pandas()["id"].tolist() == [1, 2, 3]
    assert table.to_polars().to_dicts() == rows
    assert table.to_duckdb().fetchall() == [(1, "a"), (2, None), (3, "c")]
    assert pa.table(table.to_polars(columns=["v"], filter=[("id", ">", 2)])).to_pylist() == [{"v": "c"}]


def test_projection(table: Table) -> None:
    """Columns come in the order asked for; asking for none leaves the number of rows."""
    assert table.to_arrow(columns=["v", "id"]).column_names == ["v", "id"]
    assert table.to_arrow(columns=("v",)).to_pylist() == [{"v": "a"}, {"v": None}, {"v": "c"}]
    assert table.to_arrow(columns=[]).num_rows == 3
    assert table.to_arrow(columns=[], filter=[("id", ">", 1)]).num_rows == 2


def test_filters(table: Table) -> None:
    """Expressions and lists filter alike, also on columns that are not asked for; null matches no comparison."""
    assert table.to_arrow(filter=pc.field("id") >= 2)["id"].to_pylist() == [2, 3]
    assert table.to_arrow(filter=[("id", ">=", 2)])["id"].to_pylist() == [2, 3]
    assert table.to_arrow(columns=["id"], filter=[("v", "!=", "a")]).to_pylist() == [{"id": 3}]
    assert table.to_arrow(filter=pc.field("v").is_null())["id"].to_pylist() == [2]
    assert table.to_arrow(filter=[[("id", "=", 1)], [("id", "=", 3)]])["id"].to_pylist() == [1, 3]
    assert table.to_arrow(filter=[("id", "=", 2**40)]).num_rows == 0


def test_batches_see_one_snapshot(table: Table) -> None:
    """Batches show the table as it was when they were asked for, whatever is written before they are read."""
    batches = table.to_batches()
    table.write(ROWS)
    assert sum(batch.num_rows for batch in batches) == 3


def test_time_travel(warehouse: Warehouse) -> None:
    """at() and the scan options show each state by snapshot, tag and time, under the schema of that time."""
    table = warehouse.table("t", {"id": "INT"}, pa.table({"id": ints(1)}))
    table.create_tag("one")
    table.alter(lakebed.AddColumn("v", "STRING"))
    table.write(pa.table({"id": ints(2), "v": ["x"]}))
    first, second = table.snapshots()
    assert table.latest_snapshot() == second
    one = [{"id": 1}]
    both = [{"id": 1, "v": None}, {"id": 2, "v": "x"}]
    assert table.at(snapshot=1).to_arrow().to_pylist() == one
    assert table.at(tag="one").to_arrow().to_pylist() == one
    assert table.at(snapshot=2).to_arrow().sort_by("id").to_pylist() == both
    assert table.at(timestamp=second.time_millis).to_arrow().num_rows == 2
    moment = dt.datetime.fromtimestamp((second.time_millis + 60_000) / 1000)
    assert table.at(timestamp=moment).to_arrow().num_rows == 2
    assert table.at(timestamp=moment.isoformat(sep=" ")).to_arrow().num_rows == 2
    assert table.with_options({"scan.snapshot-id": "1"}).to_arrow().to_pylist() == one
    assert table.with_options({"scan.tag-name": "one"}).to_arrow().to_pylist() == one
    assert table.with_options({"scan.version": "one"}).to_arrow().to_pylist() == one
    assert table.with_options({"scan.version": "2"}).to_arrow().num_rows == 2
    assert table.with_options({"scan.timestamp-millis": str(second.time_millis)}).to_arrow().num_rows == 2
    assert table.at(snapshot=1).arrow_schema.names == ["id"]
    assert "snapshot 1" in repr(table.at(snapshot=1))
    assert table.arrow_schema.names == ["id", "v"]
    assert first.id == 1


def test_tags(table: Table) -> None:
    """A tag names a snapshot until it is deleted; the snapshot stays."""
    table.write(ROWS)
    table.create_tag("later")
    table.create_tag("Früher 1", snapshot=1)
    assert table.tags() == ["Früher 1", "later"]
    assert table.at(tag="Früher 1").to_arrow().num_rows == 3
    assert table.at(tag="later").to_arrow().num_rows == 6
    table.delete_tag("Früher 1")
    assert table.tags() == ["later"]
    assert table.at(snapshot=1).to_arrow().num_rows == 3


def test_branches_of_another_writer(tmp_path: Path) -> None:
    """A branch is read through the table's name, with rows, tags and snapshots of its own."""
    shutil.copytree(FIXTURES / "default.db" / "tags_branches", tmp_path / "default.db" / "tags_branches")
    lake = lakebed.connect(tmp_path)

    def expected(name: str) -> list[dict[str, object]]:
        text = (FIXTURES / "default.db" / f"tags_branches{name}.expected.json").read_text()
        return list(json.loads(text)["rows"])

    branch = lake.table("tags_branches$branch_b1")
    assert branch.name == "default.tags_branches$branch_b1"
    assert branch.to_arrow().sort_by("id").to_pylist() == expected(".branch_b1")
    assert lake.table("tags_branches").to_arrow().sort_by("id").to_pylist() == expected("")
    assert lake.table("tags_branches").at(tag="t1").to_arrow().sort_by("id").to_pylist() == expected(".tag_t1")
    assert branch.tags() == ["t1"]
    assert [snapshot.id for snapshot in branch.snapshots()] == [1, 2]
    with pytest.raises(NotFound, match="no branch `b2`"):
        lake.table("tags_branches$branch_b2")
    assert lake.tables() == ["tags_branches"]


def test_changes_of_a_keyed_table(warehouse: Warehouse) -> None:
    """changes() gives what each commit wrote, in order, with its kind in front; ranges exclude their start."""
    table = warehouse.table("t", {"id": "INT", "v": "STRING"}, primary_key=["id"], options={"bucket": "1"})
    table.write(pa.table({"id": ints(1, 2), "v": ["a", "b"]}))
    table.write(pa.table({"id": ints(1, 2), "v": ["c", "b"], "k": ["+U", "-D"]}), row_kind="k")
    first = [("+I", 1, "a"), ("+I", 2, "b")]
    second = [("+U", 1, "c"), ("-D", 2, "b")]

    def read(since: int = 0, until: int | None = None) -> list[tuple[str, int, str]]:
        found = table.changes(since, until)
        assert found.column_names == ["rowkind", "id", "v"]
        return [tuple(row.values()) for row in found.to_pylist()]  # type: ignore[misc]

    assert read() == first + second
    assert read(0, 1) == first
    assert read(1) == second
    assert read(2) == []
    assert read(1, 1) == []
    assert [row["rowkind"] for row in table.at(snapshot=1).changes().to_pylist()] == ["+I", "+I"]
    assert table.to_arrow().to_pylist() == [{"id": 1, "v": "c"}]


def test_changes_that_have_expired(disk: Warehouse) -> None:
    """Changes whose snapshots are gone are refused with the point from which to go on."""
    table = disk.table("t", {"id": "INT"}, pa.table({"id": ints(1)}))
    table.write(pa.table({"id": ints(2)}))
    (Path(table.location) / "snapshot" / "snapshot-1").unlink()
    with disk.refuses(NotFound, "default.t", "have expired", "changes(since=2)"):
        table.changes()
    assert table.changes(since=1)["id"].to_pylist() == [2]


def test_options_of_a_handle_change_nothing_else(table: Table) -> None:
    """with_options counts for the handle it returns, and adds up."""
    small = table.with_options({"read.batch-size": "1"})
    assert [batch.num_rows for batch in small.to_batches()] == [1, 1, 1]
    assert small.options == {"read.batch-size": "1"}
    assert small.with_options({"target-file-size": "1 kb"}).options == {
        "read.batch-size": "1",
        "target-file-size": "1 kb",
    }
    assert table.options == {}
    with pytest.raises(InvalidArgument, match="read only"):
        table.with_options({"scan.snapshot-id": "1"}).write(ROWS)
