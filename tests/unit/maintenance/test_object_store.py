"""Upkeep where there are no directories: the same on an object store as on a disk."""

from __future__ import annotations

from obstore.store import MemoryStore
from tests.unit.maintenance.expiring_tables import Workshop, rows, shown
from tests.unit.maintenance.test_orphans import later
from tests.unit.maintenance.test_rollback import plain, up_to

from lakebed.fileio.object_store import ObjectStoreFileIO


def test_a_table_on_an_object_store_is_looked_after() -> None:
    """Tags, branches, rollback, fast-forward, dropping and cleaning, one after the other."""
    shop = Workshop(ObjectStoreFileIO(MemoryStore()))
    table = plain(shop)
    table.create_tag("two", 2, "1 d")
    table.create_branch("b", "two")
    table.create_branch("e")
    assert table.branches() == ["b", "e"]
    branch = shop.lake.table("t$branch_b")
    branch.write(rows((20, 20)))
    assert shown(branch) == [*up_to(2), (20, 20)]
    table.rename_branch("b", "c")
    table.delete_branch("e")
    assert table.branches() == ["c"]
    table.rollback_to(3)
    assert shown(table) == up_to(3)
    table.fast_forward("c")
    assert shown(table) == [*up_to(2), (20, 20)]
    table.delete_branch("c")
    table.rename_tag("two", "zwei")
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert shown(table.at(tag="zwei")) == up_to(2)
    assert later(shop).lake.table("t").remove_orphan_files().file_count > 0
    assert table.delete_tag("zwei").file_count > 0
    assert later(shop).lake.table("t").remove_orphan_files().file_count == 0
    assert shown(table) == [*up_to(2), (20, 20)]
