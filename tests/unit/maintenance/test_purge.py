"""Purging: nothing is left of what was in a table, and the table works on."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.maintenance.expiring_tables import Workshop, ids, present, rows, shown, stores_of

from lakebed.errors import InvalidArgument


@pytest.mark.parametrize("changelog", ["none", "input"])
def test_nothing_is_left(changelog: str) -> None:
    """Rows, old snapshots, tags, branches, consumers, changelogs and stray files go; one empty snapshot stays."""
    shop = Workshop()
    table = shop.create(
        write_only="true",
        changelog_producer=changelog,
        changelog__num_retained__min=40,
        changelog__num_retained__max=40,
    )
    for number in range(5):
        table.write(rows((number, number)))
    table.expire_snapshots(retain_max=3, retain_min=1)
    assert stores_of(table).changelogs.ids()
    table.create_tag("a", 4)
    table.create_branch("b", "a")
    table.on_branch("b").write(rows((9, 9)))
    stores_of(table).consumers.record("c", 3)
    shop.fileio.write_bytes(f"{table.location}/bucket-0/data-stray-0.avro", b"x")
    table.purge_files()
    assert shown(table) == []
    assert len(ids(table)) == 1
    assert table.tags() == []
    assert table.branches() == []
    assert table.consumers() == []
    assert stores_of(table).changelogs.ids() == []
    assert not [path for path in present(table) if "/bucket-" in path]
    table.write(rows((7, 7)))
    assert shown(table) == [(7, 7)]
    assert table.check() == []


def test_a_table_without_snapshots() -> None:
    """A table that never had a row stays as it is, and works on."""
    table = Workshop().create(False)
    table.purge_files()
    assert shown(table) == []
    table.write(rows((1, 1)))
    assert shown(table) == [(1, 1)]


def test_a_branch_that_is_read_is_found_before_anything_goes() -> None:
    """A table that falls back to a branch is not purged half."""
    shop = Workshop()
    schema = pa.schema([("p", pa.int32()), ("v", pa.int64())])
    table = shop.lake.create_table("p", schema, partition_by=["p"])
    table.write(pa.table({"p": pa.array([1], pa.int32()), "v": [1]}))
    table.create_tag("a")
    table.create_branch("b", "a")
    shop.lake.sql("ALTER TABLE p SET ('scan.fallback-branch' = 'b')")
    table = shop.lake.table("p")
    with pytest.raises(InvalidArgument, match="fallback-branch"):
        table.purge_files()
    assert table.tags() == ["a"]
    assert table.to_arrow().num_rows == 1


def test_a_branch_itself_is_refused() -> None:
    """Its files may be of other branches."""
    table = Workshop().create(False)
    table.write(rows((1, 1)))
    table.create_branch("b")
    with pytest.raises(InvalidArgument, match="is a branch"):
        table.on_branch("b").purge_files()
    assert shown(table) == [(1, 1)]
