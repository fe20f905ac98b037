"""Branches: made from a tag or empty, written to on their own, renamed, deleted, and made the main line."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.maintenance.expiring_tables import ROOT, Workshop, ids, rows, shown, stores_of
from tests.unit.maintenance.test_rollback import plain, up_to

from lakebed.errors import (
    AlreadyExists,
    CommitConflict,
    FileMissing,
    InvalidArgument,
    InvalidOption,
    InvalidSchema,
    NotFound,
)
from lakebed.schema.changes import AddColumn, SetOption
from lakebed.table.table import Table


def branched(shop: Workshop, commits: int = 4, at: int = 2, **options: object) -> tuple[Table, Table]:
    """A table, and its branch `b` from one of its snapshots."""
    table = plain(shop, commits, **options)
    table.create_tag("fork", at)
    table.create_branch("b", "fork")
    return table, shop.lake.table("t$branch_b")


def test_a_branch_has_the_rows_of_its_tag_and_goes_its_own_way() -> None:
    """Writes to either do not show in the other."""
    table, branch = branched(Workshop())
    assert shown(branch) == up_to(2)
    assert ids(branch) == [2]
    assert branch.tags() == ["fork"]
    branch.write(rows((20, 20)))
    table.write(rows((5, 5)))
    assert shown(branch) == [*up_to(2), (20, 20)]
    assert shown(table) == up_to(5)
    assert ids(branch) == [2, 3]
    assert table.branches() == branch.branches() == ["b"]


def test_an_empty_branch_has_schemas_only() -> None:
    """It starts with snapshot 1."""
    shop = Workshop()
    table = plain(shop)
    table.create_branch("e")
    branch = shop.lake.table("t$branch_e")
    assert shown(branch) == []
    branch.write(rows((1, 10)))
    assert ids(branch) == [1]
    assert shown(branch) == [(1, 10)]
    assert shown(table) == up_to(4)


def test_the_option_chooses_a_branch() -> None:
    """`branch` for one handle is the same as opening the branch by name; there and back."""
    table, branch = branched(Workshop())
    table.with_options({"branch": "b"}).write(rows((30, 30)))
    assert shown(branch) == shown(table.on_branch("b")) == [*up_to(2), (30, 30)]
    assert shown(branch.on_branch("main")) == up_to(4)
    with pytest.raises(NotFound, match="no branch `c`"):
        table.with_options({"branch": "c"})


def test_schemas_and_options_are_per_branch() -> None:
    """A column and an option of a branch do not show in the table."""
    table, branch = branched(Workshop())
    branch.alter(AddColumn("w", "INT"), SetOption("snapshot.time-retained", "5 h"))
    assert branch.schema.field_names == ("k", "v", "w")
    assert table.schema.field_names == ("k", "v")
    assert "snapshot.time-retained" not in table.options
    branch.write(pa.table({"k": [9], "v": [9], "w": pa.array([1], pa.int32())}))
    assert shown(branch)[-1] == (9, 9, 1)


def test_a_branch_of_a_branch() -> None:
    """A branch's tag makes another branch."""
    shop = Workshop()
    _, branch = branched(shop)
    branch.write(rows((7, 7)))
    branch.create_tag("inner")
    branch.create_branch("c", "inner")
    assert shown(shop.lake.table("t$branch_c")) == [*up_to(2), (7, 7)]


def test_an_expired_snapshot_makes_a_branch_through_its_tag() -> None:
    """The tag holds all that is needed, and expiry of the table spares what the branch has."""
    shop = Workshop()
    table = plain(shop)
    table.create_tag("fork", 2)
    table.expire_snapshots(retain_max=1, retain_min=1)
    table.create_branch("b", "fork")
    table.delete_tag("fork")
    table.write(rows((9, 9)), overwrite=True)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert shown(shop.lake.table("t$branch_b")) == up_to(2)


def test_branches_are_renamed_and_deleted() -> None:
    """Names are exact; what does not exist or is taken is an error."""
    shop = Workshop()
    table, _ = branched(shop)
    table.rename_branch("b", "c")
    assert table.branches() == ["c"]
    assert shown(shop.lake.table("t$branch_c")) == up_to(2)
    table.create_branch("d")
    for action in (
        lambda: table.rename_branch("c", "d"),
        lambda: table.create_branch("d"),
        lambda: table.create_branch("c", "fork"),
    ):
        with pytest.raises(AlreadyExists):
            action()
    for missing in (
        lambda: table.rename_branch("b", "x"),
        lambda: table.delete_branch("b"),
        lambda: table.create_branch("x", "nothing"),
        lambda: table.fast_forward("b"),
        lambda: table.fast_forward("d"),
    ):
        with pytest.raises(NotFound):
            missing()
    for wrong in ("main", "12", " ", "a/b"):
        with pytest.raises(InvalidArgument):
            table.create_branch(wrong)
    table.delete_branch("c", "d")
    assert table.branches() == []
    with pytest.raises(NotFound):
        shop.lake.table("t$branch_c")
    leftover = [status.path for status in shop.fileio.list_recursive(f"{ROOT}/default.db/t/branch")]
    assert leftover == []


def test_a_branch_can_not_delete_itself() -> None:
    """Nor be fast-forwarded to itself."""
    _, branch = branched(Workshop())
    with pytest.raises(InvalidArgument):
        branch.delete_branch("b")
    with pytest.raises(InvalidArgument):
        branch.fast_forward("b")


# --- fast-forward ----------------------------------------------------------------------------------------------------


def test_the_table_goes_on_as_its_branch() -> None:
    """Snapshots after the fork are the branch's, and so are the tags."""
    table, branch = branched(Workshop())
    branch.write(rows((20, 20)))
    branch.create_tag("b-tag")
    table.create_tag("mine", 4)
    table.fast_forward("b")
    assert ids(table) == [1, 2, 3]
    assert shown(table) == [*up_to(2), (20, 20)]
    assert table.tags() == ["b-tag", "fork"]
    assert shown(table.at(snapshot=1)) == up_to(1)
    table.write(rows((21, 21)))
    assert ids(table) == [1, 2, 3, 4]
    assert shown(branch) == [*up_to(2), (20, 20)]


def test_fast_forward_twice_returns_to_the_branch() -> None:
    """What the table wrote in between is gone again."""
    table, branch = branched(Workshop(), 4, 2)
    table.fast_forward("b")
    table.write(rows((5, 5)))
    table.write(rows((6, 6)))
    assert shown(table) == [*up_to(2), (5, 5), (6, 6)]
    table.fast_forward("b")
    assert shown(table) == shown(branch) == up_to(2)
    assert ids(table) == [1, 2]


def test_a_table_that_went_another_way_before_the_branch() -> None:
    """Its last snapshot is not what the branch's first one was made from, and streams would miss rows: refused."""
    table, branch = branched(Workshop(), 4, 4)
    branch.write(rows((20, 20)))
    table.rollback_to(2)
    table.write(rows((9, 9)))
    stream = table.follow(options={"scan.mode": "latest"})
    assert list(stream) == []
    with pytest.raises(CommitConflict, match=r"before snapshot 4, with which branch `b` begins.*snapshot 3") as refused:
        table.fast_forward("b")
    assert "before 3" in str(refused.value.hint)
    assert ids(table) == [1, 2, 3]
    assert shown(table) == [*up_to(2), (9, 9)]
    table.rollback_to(2)
    table.fast_forward("b")
    assert shown(table) == shown(branch) == [*up_to(4), (20, 20)]
    assert table.check() == []
    with pytest.raises(NotFound, match="snapshot 3 that is gone, while older ones are there"):
        list(table.follow(position=stream.position))


def test_a_longer_branch() -> None:
    """The branch has more snapshots than the table."""
    table, branch = branched(Workshop(), 3, 1)
    for number in range(20, 26):
        branch.write(rows((number, number)))
    table.fast_forward("b")
    assert ids(table) == [1, 2, 3, 4, 5, 6, 7]
    assert shown(table) == shown(branch)
    assert table._opened.context.fileio.read_bytes(f"{table.location}/snapshot/LATEST") == b"7"


def test_a_fork_that_has_expired_in_the_table() -> None:
    """The table's snapshots are all newer than the branch's: the branch's take their place."""
    table, branch = branched(Workshop(), 6, 2)
    branch.write(rows((20, 20)))
    table.expire_snapshots(retain_max=2, retain_min=1)
    assert ids(table) == [5, 6]
    table.fast_forward("b")
    assert ids(table) == [2, 3]
    assert shown(table) == shown(branch)
    table.write(rows((30, 30)))
    table.create_tag("x", 3)
    assert ids(table) == [2, 3, 4]


def test_an_empty_branch_with_rows_replaces_everything() -> None:
    """A branch that began with nothing has its own snapshot 1."""
    shop = Workshop()
    table = plain(shop)
    table.create_branch("e")
    shop.lake.table("t$branch_e").write(rows((100, 100)))
    table.fast_forward("e")
    assert ids(table) == [1]
    assert shown(table) == [(100, 100)]


def test_schemas_come_along() -> None:
    """Columns of the branch are columns of the table, in this handle too; the table's own later ones are gone."""
    shop = Workshop()
    table, branch = branched(shop)
    table.alter(AddColumn("mine", "INT"))
    table.alter(AddColumn("mine2", "INT"))
    branch.alter(AddColumn("theirs", "STRING"))
    branch.write(pa.table({"k": [9], "v": [9], "theirs": ["x"]}))
    table.fast_forward("b")
    assert table.schema.field_names == ("k", "v", "theirs")
    assert shown(table) == [(1, 1, None), (2, 2, None), (9, 9, "x")]
    assert shown(shop.lake.table("t")) == shown(table)


def test_a_schema_that_stays_in_use_is_not_replaced() -> None:
    """A snapshot before the branch's first was written under a schema that the branch has otherwise: refused."""
    shop = Workshop()
    table = plain(shop, 2)
    table.create_branch("e")
    branch = shop.lake.table("t$branch_e")
    table.alter(AddColumn("mine", "INT"))
    table.write(pa.table({"k": [3], "v": [3], "mine": pa.array([3], pa.int32())}))
    branch.alter(AddColumn("theirs", "STRING"))
    for number in range(5):
        branch.write(pa.table({"k": [number], "v": [1], "theirs": ["x"]}))
    branch.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(CommitConflict, match="schema 1"):
        table.fast_forward("e")
    assert ids(table) == [1, 2, 3]
    assert table.schema.field_names == ("k", "v", "mine")


def test_a_branch_goes_on_as_another() -> None:
    """Fast-forward works between any two branches."""
    shop = Workshop()
    table, branch = branched(shop)
    table.create_branch("c", "fork")
    other = shop.lake.table("t$branch_c")
    other.write(rows((8, 8)))
    branch.write(rows((9, 9)))
    branch.write(rows((10, 10)))
    branch.fast_forward("c")
    assert shown(branch) == [*up_to(2), (8, 8)]
    assert shown(table) == up_to(4)


def test_a_branch_whose_tag_changes_meanwhile_is_not_made() -> None:
    """What the tag kept may be gone already."""
    shop = Workshop()
    table = plain(shop)
    table.create_tag("fork", 2)
    stores = stores_of(table)
    tag = stores.tags.get("fork")
    original = stores.tags.find
    try:
        object.__setattr__(stores.tags, "find", lambda name: None)
        from lakebed.maintenance.branches import create_branch

        with pytest.raises(CommitConflict):
            create_branch(stores, "b", tag, table._opened.context.ids)
    finally:
        object.__setattr__(stores.tags, "find", original)
    assert table.branches() == []


# --- two branches as one table ---------------------------------------------------------------------------------------


def two_branches(shop: Workshop) -> tuple[Table, Table]:
    """A table of partitions without a key, and a branch of it with one, as `scan.fallback-branch` is made for."""
    columns = {"p": "INT NOT NULL", "k": "INT NOT NULL", "v": "STRING"}
    table = shop.lake.create_table("t", columns, partition_by=["p"], options={"file.format": "avro"})
    table.create_branch("live")
    branch = shop.lake.table("t$branch_live")
    branch.alter(SetOption("bucket", "1"), SetOption("bucket-key", "k"))
    branch.write(parts((1, 1, "live"), (2, 1, "live"), (2, 2, "live")))
    table.write(parts((1, 1, "done"), (3, 1, "done")))
    return table, branch


def parts(*found: tuple[int, int, str]) -> pa.Table:
    """Rows to write."""
    p, k, v = zip(*found, strict=True)
    return pa.table({"p": pa.array(p, pa.int32()), "k": pa.array(k, pa.int32()), "v": list(v)})


def test_partitions_that_are_missing_come_from_the_fallback() -> None:
    """A partition is read from the table if it has it, from the branch if not; filters do not change which."""
    table, _ = two_branches(Workshop())
    both = table.with_options({"scan.fallback-branch": "live"})
    assert shown(both) == [(1, 1, "done"), (2, 1, "live"), (2, 2, "live"), (3, 1, "done")]
    assert both.to_arrow(filter=[("k", "=", 2)]).to_pylist() == [{"p": 2, "k": 2, "v": "live"}]
    assert both.to_arrow(columns=["v"], filter=[("v", "=", "live"), ("p", "=", 1)]).num_rows == 0
    assert sum(batch.num_rows for batch in both.to_batches()) == 4
    table.write(parts((2, 9, "done")))
    assert shown(both) == [(1, 1, "done"), (2, 9, "done"), (3, 1, "done")]


def test_the_primary_branch_comes_first() -> None:
    """The other way round: what the branch has hides what the table has."""
    table, branch = two_branches(Workshop())
    both = table.with_options({"scan.primary-branch": "live"})
    assert shown(both) == [(1, 1, "live"), (2, 1, "live"), (2, 2, "live"), (3, 1, "done")]
    assert shown(branch.with_options({"scan.fallback-branch": "main"})) == shown(both)
    with pytest.raises(InvalidOption):
        shown(both.with_options({"scan.fallback-branch": "live"}))


def test_a_stored_fallback_can_not_be_deleted() -> None:
    """Reads would fail; and writes go to the table itself."""
    table, branch = two_branches(Workshop())
    table.alter(SetOption("scan.fallback-branch", "live"))
    with pytest.raises(InvalidArgument, match=r"scan\.fallback-branch"):
        table.delete_branch("live")
    before = shown(branch)
    table.write(parts((5, 5, "done")))
    assert shown(branch) == before
    assert (5, 5, "done") in shown(table)


def test_branches_with_other_columns_are_not_one_table() -> None:
    """Rows of both would not fit together."""
    table, branch = two_branches(Workshop())
    branch.alter(AddColumn("w", "INT"))
    with pytest.raises(InvalidSchema):
        shown(table.with_options({"scan.fallback-branch": "live"}))
    with pytest.raises(NotFound):
        shown(table.with_options({"scan.fallback-branch": "none"}))


# --- what a tag brings back ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["branch", "rollback"])
def test_a_state_whose_changes_have_expired_does_not_stop_upkeep(how: str) -> None:
    """The first snapshot of a branch, or of a table rolled back to a tag, names a changelog that is gone."""
    shop = Workshop()
    table = shop.create(changelog_producer="input")
    for number in range(1, 6):
        shop.at(number)
        table.write(rows((number, number)))
    for name, number in (("fork", 2), ("other", 3)):
        table.create_tag(name, number)
    table.expire_snapshots(retain_max=1, retain_min=1)
    if how == "branch":
        table.create_branch("b", "fork")
        came_back = shop.lake.table("t$branch_b")
    else:
        table.rollback_to(tag="fork")
        came_back = table
    came_back.write(rows((20, 20)))
    assert shown(came_back) == [*up_to(2), (20, 20)]
    assert came_back.changes(since=2).num_rows == 1
    with pytest.raises(FileMissing, match="the changes of snapshot 2 have expired"):
        came_back.changes(since=1)
    if how == "branch":
        assert table.delete_tag("other").names == ("other",)
    table.remove_orphan_files(older_than=shop.clock.now_ms() - 1)
    assert shown(came_back) == [*up_to(2), (20, 20)]
    assert came_back.check(deep=True) == table.check(deep=True) == []
    table.write(rows((30, 30)))
    for each in (table, came_back):
        each.expire_snapshots(retain_max=1, retain_min=1)
    assert shown(came_back)[: len(up_to(2))] == up_to(2)


def test_another_handle_sees_the_schema_that_a_branch_brought() -> None:
    """Of two schemas of one number the one that is there now counts, whoever has read the other before."""
    shop = Workshop()
    table, branch = branched(shop)
    branch.alter(AddColumn("x", "STRING"))
    branch.write(rows((20, 20)).append_column("x", pa.array(["of x"])))
    table.alter(AddColumn("y", "BIGINT"))
    other = shop.lake.table("t")
    assert other.columns[-1] == "y"
    table.fast_forward("b")
    assert other.columns[-1] == "x"
    assert other.to_arrow().to_pylist() == table.to_arrow().to_pylist()
    other.write(rows((21, 21)).append_column("x", pa.array(["of x, too"])))
    assert sorted(filter(None, table.to_arrow()["x"].to_pylist())) == ["of x", "of x, too"]
