"""Tables that pypaimon 2.1.0 and Paimon Java 0.9.0 wrote, read through the public API."""

import json
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from tests.compat.judges.canonical import canonical_rows

import lakebed

FIXTURES = Path(__file__).parents[1] / "fixtures"


def _expected(family: str, file: str) -> dict[str, Any]:
    return json.loads((FIXTURES / family / "warehouse" / "default.db" / f"{file}.expected.json").read_text())


def _tables() -> list[tuple[str, str]]:
    return [
        (directory.parents[2].name, directory.name)
        for directory in sorted(FIXTURES.glob("*/warehouse/default.db/*"))
        if directory.is_dir()
    ]


def _open(family: str, table: str) -> lakebed.Table:
    return lakebed.connect(str(FIXTURES / family / "warehouse")).table(table)


READABLE = _tables()


def test_all_fixtures_are_there() -> None:
    """No table of either family is left out."""
    assert len(_tables()) == 26


@pytest.mark.parametrize(("family", "table"), READABLE)
def test_latest_rows(family: str, table: str) -> None:
    """The latest snapshot reads as its writer reads it."""
    assert canonical_rows(_open(family, table).to_arrow()) == canonical_rows(_expected(family, table)["rows"])


@pytest.mark.parametrize(("family", "table"), READABLE)
def test_columns(family: str, table: str) -> None:
    """Names, Arrow types and nullability of the columns are as the writer reports them."""
    schema = _open(family, table).arrow_schema
    wanted = _expected(family, table)["columns"]
    assert schema.names == [column["name"] for column in wanted]
    for field, column in zip(schema, wanted, strict=True):
        # Names of list items differ between implementations and mean nothing.
        assert str(field.type).replace("item:", "element:") == column["arrow_type"].replace("item:", "element:")
        if "nullable" in column:
            assert field.nullable == column["nullable"]


@pytest.mark.parametrize(
    ("family", "table", "snapshot"),
    [
        (family, table, int(snapshot))
        for family, table in READABLE
        for snapshot in _expected(family, table).get("rows_at_snapshot", {})
    ],
)
def test_rows_at_snapshot(family: str, table: str, snapshot: int) -> None:
    """Every earlier snapshot reads as its writer reads it."""
    wanted = _expected(family, table)["rows_at_snapshot"][str(snapshot)]
    rows = wanted if isinstance(wanted, list) else wanted["rows"]
    assert canonical_rows(_open(family, table).at(snapshot=snapshot).to_arrow()) == canonical_rows(rows)


@pytest.mark.parametrize(
    ("family", "table"), [(family, table) for family, table in READABLE if "live_files" in _expected(family, table)]
)
def test_live_files(family: str, table: str) -> None:
    """A full scan plans exactly the files that the writer lists as live."""
    expected = _expected(family, table)["live_files"]
    planned = {file.file_name for file in _open(family, table).scan().files}
    lowest = 1 if table == "first_row" else 0  # of first-row tables, level 0 is not shown
    visible = {file["file_name"] for file in expected if file.get("bucket", 0) >= 0 and file.get("level", 0) >= lowest}
    assert planned == visible


def test_tag_and_branch() -> None:
    """A tag and a branch written by others read as their writer reads them."""
    family = "pypaimon-2.1.0"
    table = _open(family, "tags_branches")
    tagged = _expected(family, "tags_branches.tag_t1")["rows"]
    assert canonical_rows(table.at(tag="t1").to_arrow()) == canonical_rows(tagged)
    branch = _open(family, "tags_branches$branch_b1")
    branched = _expected(family, "tags_branches.branch_b1")["rows"]
    assert canonical_rows(branch.to_arrow()) == canonical_rows(branched)


def test_columns_of_a_row_in_several_files() -> None:
    """Columns come from the files that were written last, in any order and number, filtered and with row ids."""
    table = _open("pypaimon-2.1.0", "data_evolution")
    shown = table.to_arrow(columns=["c", "_ROW_ID", "a"], filter=pc.field("c") > 100).to_pylist()
    assert shown == [{"c": 300, "_ROW_ID": 3, "a": 3}]
    assert table.to_arrow(columns=["b"]).column("b").to_pylist() == ["r0", "r1", "r2", "r3"]
    assert sum(batch.num_rows for batch in table.to_batches(columns=[])) == 4
    assert len(table.scan().files) == 2


def test_changes_of_spread_columns_are_told_by_row() -> None:
    """Rows of such tables are told apart by their ids, so a diff has whole rows; a commit alone has parts of them."""
    table = _open("pypaimon-2.1.0", "data_evolution")
    assert [tuple(row.values()) for row in table.diff(1, 2).to_pylist()] == [
        ("-U", 1, "r1", None),
        ("+U", 1, "r1", 100),
        ("-U", 3, "r3", None),
        ("+U", 3, "r3", 300),
    ]
    with pytest.raises(lakebed.errors.Unsupported, match="only some columns"):
        table.changes(1, 2)


KEYED = [(family, table) for family, table in READABLE if _open(family, table).primary_key]


@pytest.mark.parametrize(("family", "table"), KEYED)
def test_why(family: str, table: str) -> None:
    """Every row is explained as it is read, from files that the table has; their snapshots and users are told."""
    opened = _open(family, table)
    rows = opened.to_arrow()
    why = opened.why(rows.select(list(opened.primary_key)))
    assert repr(rows.to_pylist()) == repr([dict(each.row or {}) for each in why])
    files = {path.rpartition("/")[2] for path in _open(family, f"{table}$files").to_arrow()["file_path"].to_pylist()}
    users = {snapshot.commit_user for snapshot in opened.snapshots()}
    for each in why:
        assert {version.file for version in each.versions} <= files
        assert {version.commit_user for version in each.versions if version.snapshot_id is not None} <= users
        by_number = {version.number: version for version in each.versions}
        for column in each.columns:
            if column.version is not None:
                assert repr(by_number[column.version].values[column.column]) == repr(column.value)
