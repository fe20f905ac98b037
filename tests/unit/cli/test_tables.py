"""`lakebed tables` and `lakebed describe`."""

from __future__ import annotations

import pytest

import lakebed

from .conftest import Run


def test_tables(run: Run) -> None:
    """Tables of all databases or of one, in every format."""
    assert run("tables").lines == ["database  table", "default   events", "shop      orders"]
    assert run("tables", "shop", "--format", "csv").lines == ["database,table", "shop,orders"]
    assert run("tables", "--format", "json").json[1] == {"database": "shop", "table": "orders"}


def test_a_database_that_is_not_there(run: Run) -> None:
    """A mistyped database is no empty one."""
    ran = run("tables", "shopp")
    assert ran.status == 2
    assert "did you mean `shop`?" in ran.err


def test_tables_at_length(run: Run, lake: lakebed.Lake) -> None:
    """With --long, sizes and counts come from the metadata; keys of JSON are stable."""
    lake.create_table("empty", {"a": "INT"})
    rows = {row["table"]: row for row in run("tables", "--long", "--format", "json").json}
    assert list(rows["orders"]) == [
        "database",
        "table",
        "primary_key",
        "partitioned",
        "record_count",
        "file_count",
        "size_bytes",
        "last_file_time",
    ]
    assert (rows["orders"]["primary_key"], rows["orders"]["record_count"], rows["orders"]["file_count"]) == (True, 6, 3)
    assert (rows["empty"]["record_count"], rows["empty"]["last_file_time"]) == (0, None)
    shown = run("tables", "shop", "--long")
    assert shown.lines[0].split()[2:] == ["key", "partitioned", "records", "files", "size", "last", "file"]
    assert " kB " in shown.lines[1]


def test_describe(run: Run) -> None:
    """Columns, keys, options and the latest snapshot, to read and to parse."""
    ran = run("describe", "shop.orders")
    assert "primary key   id, dt" in ran.lines
    assert "comment       all orders" in ran.lines
    assert any(line.split() == ["amount", "DECIMAL(10,", "2)"] for line in ran.lines)
    assert any(line.split() == ["bucket", "1"] for line in ran.lines)
    found = run("describe", "shop.orders", "--format", "json").json
    assert (found["name"], found["primary_key"], found["partition_by"]) == ("shop.orders", ["id", "dt"], ["dt"])
    assert found["columns"][0] == {
        "id": 0,
        "name": "id",
        "type": "BIGINT NOT NULL",
        "nullable": False,
        "comment": None,
        "default": None,
    }
    assert found["options"] == {"bucket": "1", "write-only": "true"}
    assert (found["snapshot"]["id"], found["snapshot"]["record_count"], found["row_count"]) == (3, 6, 5)
    assert run("describe", "shop.orders", "--format", "csv").lines[2] == "1,dt,DATE NOT NULL,false,,"


def test_describe_an_empty_table(run: Run, lake: lakebed.Lake) -> None:
    """A table without snapshots, keys and options says so."""
    lake.create_table("empty", {"a": "INT"})
    ran = run("describe", "empty")
    assert "snapshot      none yet" in ran.lines
    assert "option" not in ran.out
    assert run("describe", "empty", "--format", "json").json["snapshot"] is None


def test_describe_a_system_table(run: Run) -> None:
    """System tables have columns too."""
    names = [column["name"] for column in run("describe", "events$options", "--format", "json").json["columns"]]
    assert names == ["key", "value"]


@pytest.mark.usefixtures("terminal")
def test_on_a_terminal(run: Run) -> None:
    """A terminal gets drawn tables."""
    ran = run("tables")
    assert any(set(line.strip()) == {"─"} for line in ran.lines)
    assert any(line.split() == ["shop", "orders"] for line in ran.lines)
    assert any(set(line.strip()) == {"─"} for line in run("describe", "shop.orders").lines)


def test_rows_not_records(run: Run, lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is counted is what a SELECT would show; where that would take long, the most it can be is said."""
    assert "rows          5" in run("describe", "shop.orders").lines
    monkeypatch.setattr("lakebed.cli.tables._COUNTED", 5)
    assert "rows          at most 6, not all merged yet" in run("describe", "shop.orders").lines
    assert run("describe", "shop.orders", "--format", "json").json["row_count"] is None
    lake.create_table("empty", {"a": "INT"})
    assert run("describe", "empty", "--format", "json").json["row_count"] == 0
