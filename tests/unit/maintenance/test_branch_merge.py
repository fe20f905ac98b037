"""Merging a branch into another: what comes over, and what is refused because rows could be lost or doubled."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.maintenance.expiring_tables import Workshop, ids, rows, shown

from lakebed.errors import InvalidArgument, InvalidSchema, LakebedError, NotFound, Unsupported
from lakebed.metadata.snapshot import CommitKind
from lakebed.schema.changes import AddColumn
from lakebed.table.table import Table
from lakebed.types.logical import INT

KEEP = {"write_only": "true"}


def parted(**options: object) -> tuple[Table, Table]:
    """A table, and a branch `b` of its first snapshot; each has got one more row since."""
    table = Workshop().create(False, **{**KEEP, **options})
    table.write(rows((1, 1)))
    table.create_tag("first", 1)
    table.create_branch("b", "first")
    branch = table.on_branch("b")
    table.write(rows((2, 2)))
    branch.write(rows((3, 3)))
    return table, branch


def test_what_the_branch_has_besides_comes_over() -> None:
    """The rows of both are there, once each, as one more APPEND; the branch stays as it was."""
    table, branch = parted()
    committed = table.merge_branch("b")
    assert committed is not None
    assert committed.commit_kind == CommitKind.APPEND
    assert committed.delta_record_count == 1
    assert shown(table) == [(1, 1), (2, 2), (3, 3)]
    assert shown(branch) == [(1, 1), (3, 3)]
    assert table.check() == []
    assert [row["k"] for row in table.changes(since=2).to_pylist()] == [3]


def test_merging_again_brings_nothing_twice() -> None:
    """Files that came over are known; what the branch got since comes with the next merge."""
    table, branch = parted()
    table.merge_branch("b")
    before = ids(table)
    assert table.merge_branch("b") is None
    assert ids(table) == before
    branch.write(rows((4, 4)))
    table.merge_branch("b")
    assert shown(table) == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_main_is_merged_into_a_branch_and_back() -> None:
    """Any two branches can be named, main among them."""
    table, branch = parted()
    table.merge_branch("main", "b")
    assert shown(branch) == [(1, 1), (2, 2), (3, 3)]
    assert shown(table) == [(1, 1), (2, 2)]
    table.merge_branch("b")
    assert shown(table) == [(1, 1), (2, 2), (3, 3)]


def test_files_that_came_over_outlive_the_branch() -> None:
    """When the branch is deleted and orphans are removed, its rows stay in the table."""
    table, _ = parted()
    table.merge_branch("b")
    table.delete_branch("b")
    table.remove_orphan_files(older_than="2020-01-01")
    assert shown(table) == [(1, 1), (2, 2), (3, 3)]


def test_rows_get_ids_of_the_table_that_takes_them() -> None:
    """Ids that the branch gave are of the branch: those of the table are its own, and no two rows share one."""
    table, _ = parted(row_tracking__enabled="true")
    table.merge_branch("b")
    found = table.to_arrow(["k", "_ROW_ID"]).to_pylist()
    assert sorted((row["k"], row["_ROW_ID"]) for row in found) == [(1, 0), (2, 1), (3, 2)]


def test_refused_and_nothing_changes() -> None:
    """What could lose or double rows is refused with the reason."""
    table, branch = parted()
    state = (shown(table), ids(table), shown(branch), ids(branch))

    def refused(kind: type[LakebedError], match: str, source: str = "b", target: str = "main") -> None:
        with pytest.raises(kind, match=match):
            table.merge_branch(source, target)
        assert (shown(table), ids(table)) == state[:2]

    refused(InvalidArgument, "itself", "main", "main")
    refused(NotFound, "no branch `c`", "c")
    table.create_branch("empty")
    refused(NotFound, "no snapshot", "empty")
    assert (shown(branch), ids(branch)) == state[2:]
    branch.truncate()
    refused(Unsupported, "took files away")
    branch.expire_snapshots(retain_max=1, retain_min=1)
    refused(Unsupported, "snapshot 1 is gone")


def test_other_columns_are_refused() -> None:
    """Files of columns that the target does not know can not come over."""
    table, branch = parted()
    branch.alter(AddColumn("more", INT))
    branch.write(pa.table({"k": [5], "v": [5], "more": pa.array([5], pa.int32())}))
    with pytest.raises(InvalidSchema, match="different columns"):
        table.merge_branch("b")
    assert shown(table) == [(1, 1), (2, 2)]


def test_tables_with_a_key_are_refused() -> None:
    """Of two rows of a key nobody knows which is newer."""
    table = Workshop().create(**KEEP)
    table.write(rows((1, 1)))
    table.create_tag("a")
    table.create_branch("b", "a")
    with pytest.raises(Unsupported, match="primary key"):
        table.merge_branch("b")
