"""Incremental reads: what changed between two snapshots, tags or moments, told by files or by comparison."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.changes.test_changelog_producers import COMMITS
from tests.unit.table.worked_tables import create, write
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.errors import InvalidArgument, InvalidOption, NotFound


def worked(producer: str = "none", **options: str) -> lakebed.Table:
    """The table of 4.2 after its five commits."""
    table = create("k v:STRING", {"changelog-producer": producer, **options})
    for commit in COMMITS:
        write(table, commit)
    return table


def rows(table: lakebed.Table, options: dict[str, str], **more: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.with_options(options).to_arrow(**more).to_pylist()]


def between(since: object, until: object, mode: str = "auto") -> dict[str, str]:
    return {"incremental-between": f"{since},{until}", "incremental-between-scan-mode": mode}


def test_s_20_delta() -> None:
    """S-20: the rows of every commit in the range, without the retracts."""
    assert rows(worked(), between(1, 3, "delta")) == [(1, "c"), (1, "c")]


def test_s_21_diff() -> None:
    """S-21: the one row that is another at the end of the range."""
    assert rows(worked(), between(1, 3, "diff")) == [(1, "c")]


@pytest.mark.parametrize(
    ("producer", "expected"),
    [
        ("none", [(1, "c"), (1, "c"), (1, "y")]),
        ("input", [(1, "c"), (1, "c"), (3, "x"), (1, "z"), (1, "y")]),
    ],
)
def test_auto_reads_the_changelog_if_there_is_one(producer: str, expected: list[Any]) -> None:
    """6.8: `auto` is `changelog` for a table with a producer, else `delta`; the start is left out, the end taken in."""
    table = worked(producer)
    assert rows(table, between(1, 5)) == expected
    assert rows(table, between(1, 5, "changelog" if producer == "input" else "delta")) == expected


def test_the_range_may_begin_before_everything() -> None:
    """6.8: the snapshot before the earliest is a start, as 0 is for a table that lost nothing yet."""
    table = worked()
    assert rows(table, between(0, 1)) == [(1, "a"), (2, "b")]
    assert rows(table, between(0, 1, "diff")) == [(1, "a"), (2, "b")]
    assert rows(table, between(2, 2)) == rows(table, between(2, 2, "diff")) == []


def test_compactions_and_overwrites_are_passed_over() -> None:
    """6.8: neither `delta` nor `changelog` tell of an OVERWRITE or of what a compaction wrote; `diff` does not care."""
    table = worked()
    table.compact(full=True)
    table.write(pa.table({"k": ints(9), "v": ["new"]}), overwrite=True)
    assert rows(table, between(5, 7)) == []
    assert rows(table, between(5, 7, "changelog")) == []
    assert rows(table, between(5, 7, "diff")) == [(9, "new")]


@pytest.mark.parametrize("mode", ["delta", "diff"])
def test_filters_and_columns(mode: str) -> None:
    """Columns and filters work as in any read, batch by batch too, and skip files that can not match."""
    table = worked().with_options(between(0, 5, mode))
    assert table.to_arrow(columns=["v"], filter=[("k", "==", 2)]).to_pydict() == {"v": [] if mode == "diff" else ["b"]}
    assert table.to_arrow(["v", "k"], pc.field("v") == "y").to_pylist() == [{"v": "y", "k": 1}]
    assert [batch.to_pydict() for batch in table.to_batches(["k"], [("v", "==", "y")])] == [{"k": [1]}]
    assert len(table.scan([("k", "==", 3)]).files) == 1 < len(table.scan().files)


def test_first_row_tables_tell_what_is_folded() -> None:
    """Rows of a first-row table that may lose against an older one are no changes; a comparison tells what is new."""
    table = create("k v", {"merge-engine": "first-row"})
    write(table, [[1, 1]])
    table.compact(full=True)
    write(table, [[1, 2], [2, 2]])
    table.compact(full=True)
    assert rows(table, between(0, 4, "delta")) == []
    assert rows(table, between(2, 4, "diff")) == [(2, 2)]


def test_partitions_are_pruned(warehouse: Warehouse) -> None:
    """A filter on the partition opens only its files, in every mode."""
    table = warehouse.table(
        "t", {"p": "INT NOT NULL", "k": "INT NOT NULL", "v": "INT"},
        primary_key=["p", "k"], partition_by=["p"], options={"bucket": 1, "write-only": True},
    )  # fmt: skip
    table.write(pa.table({"p": ints(1, 2), "k": ints(1, 1), "v": ints(1, 2)}))
    table.write(pa.table({"p": ints(1, 2), "k": ints(1, 1), "v": ints(3, 4)}))
    for mode, files in (("delta", 1), ("diff", 2)):
        view = table.with_options(between(1, 2, mode))
        assert view.to_arrow(filter=[("p", "==", 2)]).to_pydict() == {"p": [2], "k": [1], "v": [4]}
        assert len(view.scan([("p", "==", 2)]).files) == files


def test_tables_without_a_key(warehouse: Warehouse) -> None:
    """What was appended is what changed, in every mode."""
    table = warehouse.table("t", {"v": "INT"}, pa.table({"v": ints(1)}))
    table.write(pa.table({"v": ints(2, 3)}))
    for mode in ("auto", "delta", "diff"):
        assert rows(table, between(1, 2, mode)) == [(2,), (3,)]


def test_tags_are_compared() -> None:
    """6.8: between two tags the states are compared, unless the option says to read them as snapshots."""
    table = worked()
    table.create_tag("one", 1)
    table.create_tag("three", 3)
    assert rows(table, between("one", "three")) == [(1, "c")]
    as_snapshots = {"incremental-between-tag-to-snapshot": "true"}
    assert rows(table, {**between("one", "three"), **as_snapshots}) == [(1, "c"), (1, "c")]
    with pytest.raises(InvalidArgument, match="snapshot 3"):
        rows(table, between("three", "one"))
    with pytest.raises(InvalidOption, match="mixes"):
        rows(table, between("one", 3))
    with pytest.raises(NotFound, match=r"tag `ones`.*\n.*one"):
        rows(table, between("ones", "three"))


def test_to_auto_tag() -> None:
    """6.8: from the automatic tag before; nothing if there is none, or if the tag is not there yet."""
    table = worked()
    for day, snapshot in (("2024-05-14", 1), ("2024-05-16", 3), ("2024-05-16 10", 2)):
        table.create_tag(day, snapshot)
    assert rows(table, {"incremental-to-auto-tag": "2024-05-16"}) == [(1, "c")]
    assert rows(table, {"incremental-to-auto-tag": "2024-05-14"}) == []
    assert rows(table, {"incremental-to-auto-tag": "2024-05-17"}) == []
    with pytest.raises(InvalidOption, match=r"incremental-to-auto-tag.*daily"):
        rows(table, {"incremental-to-auto-tag": "daily"})


def test_times() -> None:
    """6.8: commits after the first moment up to the second, which may both lie outside of the table's life."""
    table = worked()
    times = [snapshot.time_millis for snapshot in table.snapshots()]
    key = "incremental-between-timestamp"
    after_all = f"{times[-1] + 10}"
    assert rows(table, {key: f"0,{after_all}"}) == rows(table, between(0, 5))
    assert rows(table, {key: f"{after_all},{after_all}"}) == []
    assert rows(table, {key: "2001-01-01,2001-01-02 12:30:00"}) == []
    first = max(number for number, time in enumerate(times, 1) if time == times[0])
    assert rows(table, {key: f"{times[0]},2999-01-01 00:00:00"}) == rows(table, between(first, 5))
    with pytest.raises(InvalidArgument, match="earlier time first"):
        rows(table, {key: "2024-01-02,2024-01-01"})
    with pytest.raises(InvalidArgument, match="no point in time"):
        rows(table, {key: "yesterday,today"})


def test_n_02_scan_mode_incremental() -> None:
    """N-02: the mode alone is an error that names the three options; with one of them it changes nothing."""
    table = worked()
    with pytest.raises(InvalidOption) as raised:
        table.with_options({"scan.mode": "incremental"}).to_arrow()
    for key in ("incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag"):
        assert f"`{key}`" in raised.value.hint
    assert rows(table, {"scan.mode": "incremental", **between(1, 3)}) == rows(table, between(1, 3))


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        (between(1, 2) | {"incremental-between-timestamp": "0,1"}, InvalidOption, "incremental-between-timestamp"),
        (between(1, 2) | {"scan.snapshot-id": "1"}, InvalidOption, "point in time"),
        (between(1, 2) | {"scan.mode": "latest"}, InvalidOption, "scan.mode"),
        ({"incremental-between": "1"}, InvalidOption, "no range"),
        ({"incremental-between": "1,2,3"}, InvalidOption, "no range"),
        (between(3, 1), InvalidArgument, "from snapshot 3 to snapshot 1"),
        (between(1, 9), NotFound, "snapshot 9"),
        (between(8, 9, "diff"), NotFound, "snapshot 9"),
        ({"incremental-between-scan-mode": "both"}, InvalidOption, "both"),
    ],
)
def test_refused(options: dict[str, str], kind: type[Exception], text: str) -> None:
    """A range that is none, or that is not there, is refused with what is wrong about it."""
    with pytest.raises(kind, match=text):
        rows(worked(), options)


def test_expired_snapshots() -> None:
    """6.8: the snapshot before the earliest is the earliest start; tags keep what they need for a comparison."""
    table = worked()
    table.create_tag("one", 1)
    table.create_tag("three", 3)
    table.expire_snapshots(retain_max=2, retain_min=1)
    assert [snapshot.id for snapshot in table.snapshots()] == [4, 5]
    assert rows(table, between(3, 5)) == [(1, "y")]
    assert rows(table, {"incremental-between-timestamp": "0,9999999999999"}) == [(1, "y")]
    assert rows(table, between("one", "three")) == [(1, "c")]
    for mode in ("delta", "diff"):
        with pytest.raises(NotFound, match="2"):
            rows(table, between(2, 5, mode))


def test_changelogs_that_outlive_their_snapshots() -> None:
    """6.6: a changelog that is kept longer than its snapshot is still read."""
    options = {"snapshot.num-retained.max": "2", "snapshot.num-retained.min": "1", "changelog.num-retained.max": "4"}
    table = worked("input", **options, **{"changelog.num-retained.min": "1"})
    table.expire_snapshots()
    assert [snapshot.id for snapshot in table.snapshots()] == [4, 5]
    assert rows(table, between(2, 5)) == [(1, "c"), (3, "x"), (1, "z"), (1, "y")]
    with pytest.raises(NotFound, match="expired"):
        rows(table, between(0, 5))


def test_a_view_of_the_past_has_no_range() -> None:
    """A handle at a snapshot shows that snapshot; a range besides is refused."""
    with pytest.raises(InvalidOption, match="point in time"):
        worked().at(snapshot=2).with_options(between(1, 2)).to_arrow()


def test_a_table_that_was_never_written() -> None:
    """There is nothing to read, whatever snapshots are named; a range must still be one."""
    table = create("k v", {})
    assert rows(table, between(0, 0)) == rows(table, between(1, 2)) == []
    assert rows(table, {"incremental-between-timestamp": "0,1"}) == []
    with pytest.raises(InvalidArgument, match="no range"):
        rows(table, between(2, 1))


def test_tags_with_names_of_snapshots_go_first() -> None:
    """Where both names are tags they are taken as such; one tag and one snapshot are two snapshots."""
    table = create("k v", {})
    for number in (1, 2, 3):
        write(table, [number, number])
    table.create_tag("1", snapshot=1)
    assert rows(table, between(1, 3)) == [(2, 2), (3, 3)]
    table.create_tag("3", snapshot=2)
    assert rows(table, between(1, 3)) == [(2, 2)]


def test_writes_do_not_mind() -> None:
    """A handle with a range still writes to the table."""
    table = create("k v", {}).with_options(between(0, 1))
    write(table, [1, 2])
    write(table, [1, 3])
    assert table.to_arrow().to_pydict() == {"k": [1], "v": [2]}
