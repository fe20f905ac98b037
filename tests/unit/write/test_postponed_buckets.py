"""Tables whose rows wait for a compaction to give them their buckets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import lakebed
from lakebed.clock import FixedClock
from lakebed.errors import CommitConflict, Unsupported
from lakebed.metadata.entries import live_files
from lakebed.table.opened import OpenedTable
from lakebed.table.plans import plan_write
from lakebed.write.placement import postponed
from lakebed.write.placement.postponed import KeptRows
from lakebed.write.waiting_rows import WaitingRows

Row = Sequence[Any]
SCHEMA = pa.schema([("p", pa.int32()), ("k", pa.int32()), ("v", pa.string())])
WAITING = {"postpone.batch-write-fixed-bucket": "false"}


def create(options: Mapping[str, str] | None = None, where: str | None = None, **more: Any) -> lakebed.Table:
    """A table with postponed buckets, partitioned by `p`."""
    lake = lakebed.connect(where or f"memory://{uuid4()}")
    arguments = {"primary_key": ["p", "k"], "partition_by": ["p"], **more}
    columns = {"p": "INT", "k": "INT", "v": "STRING"}
    return lake.create_table("t", columns, options={"bucket": "-2", **(options or {})}, **arguments)


def batch(rows: Sequence[Row], kinds: Sequence[str] | None = None) -> pa.Table:
    """Rows for the table, with their kinds if given."""
    data = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)
    return data if kinds is None else data.append_column("_kind", pa.array(kinds, pa.string()))


def write(table: lakebed.Table, rows: Sequence[Row], **arguments: Any) -> None:
    """One commit."""
    table.write(batch(rows), **arguments)


def shown(table: lakebed.Table) -> list[tuple[Any, ...]]:
    """All rows in order of their keys."""
    found = table.to_arrow().sort_by([("p", "ascending"), ("k", "ascending")])
    return [tuple(row.values()) for row in found.to_pylist()]


def buckets(table: lakebed.Table) -> dict[tuple[int, int], int]:
    """Files of each partition's buckets, by partition value and bucket."""
    context = table._opened.current()
    found: dict[tuple[int, int], int] = {}
    for entry in live_files(context.stores, context.stores.snapshots.latest()):
        place = (context.partition_values(entry.partition)["p"].as_py(), entry.bucket)
        found[place] = found.get(place, 0) + 1
        assert (entry.total_buckets == -2) == (entry.bucket == -2)
    return found


def test_rows_wait_until_compaction(tmp_path: Path) -> None:
    """Written rows lie in files of their own, unseen; a compaction brings them to buckets, the next more of them."""
    table = create({**WAITING, "postpone.default-bucket-num": "2"}, str(tmp_path))
    write(table, [(1, 10, "a"), (1, 20, "a"), (2, 10, "a")])
    write(table, [(1, 20, "b")])
    assert shown(table) == []
    assert buckets(table) == {(1, -2): 2, (2, -2): 1}
    names = sorted(path.name for path in tmp_path.rglob("bucket-postpone/*"))
    assert all(name.startswith("data--u-") and "-s-" in name and "-w-" in name for name in names)
    assert all(name.endswith(".avro") for name in names)
    snapshot = table.compact()
    assert snapshot is not None
    assert snapshot.commit_kind.value == "COMPACT"
    assert shown(table) == [(1, 10, "a"), (1, 20, "b"), (2, 10, "a")]
    assert {bucket for _, bucket in buckets(table)} <= {0, 1}
    assert table.compact() is None
    write(table, [(2, 10, "c")])
    assert shown(table)[-1] == (2, 10, "a")
    table.compact()
    assert shown(table)[-1] == (2, 10, "c")
    table.expire_snapshots(retain_max=1)
    assert list(tmp_path.rglob("bucket-postpone/*")) == []


def test_rows_keep_the_order_of_their_writer() -> None:
    """Many files of one writer are read in the order in which it made them."""
    table = create({**WAITING, "target-file-row-num": "1"})
    with table.writer(row_kind="_kind") as writer:
        for number in range(12):
            writer.write(batch([(1, 1, f"v{number}")], ["+I"]))
        writer.write(batch([(1, 2, "gone"), (1, 3, "stays")], ["+I", "+I"]))
        writer.write(batch([(1, 2, "gone")], ["-D"]))
    assert buckets(table) == {(1, -2): 15}
    table.compact()
    assert shown(table) == [(1, 1, "v11"), (1, 3, "stays")]


def test_batches_go_to_real_buckets_at_once() -> None:
    """By default a batch write is visible immediately, in as many buckets as it needs and its partition then keeps."""
    table = create({"postpone.target-row-num-per-bucket": "10"})
    with table.writer() as writer:
        for start in range(0, 45, 5):
            writer.write(batch([(1, key, "a") for key in range(start, start + 5)] + [(2, start, "a")]))
    assert {bucket for part, bucket in buckets(table) if part == 1} == set(range(8))
    assert {bucket for part, bucket in buckets(table) if part == 2} == {0}
    write(table, [(1, 0, "b"), (2, 0, "b"), (3, 0, "b")])
    assert len(shown(table)) == 45 + 9 + 1
    assert {row[2] for row in shown(table) if row[1] == 0} == {"b"}
    assert {entry.total_buckets for entry in live(table) if entry.bucket >= 0} == {8, 1}


def live(table: lakebed.Table) -> list[Any]:
    """Live manifest entries."""
    context = table._opened.current()
    return live_files(context.stores, context.stores.snapshots.latest())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 1),
        ({"postpone.default-bucket-num": "5"}, 5),
        ({"postpone.target-row-num-per-bucket": "40"}, 4),
        ({"postpone.target-row-num-per-bucket": "1"}, 128),
        (
            {
                "postpone.target-row-num-per-bucket": "1",
                "postpone.batch-write-fixed-bucket.max-parallelism": "6",
            },
            6,
        ),
    ],
    ids=str,
)
def test_how_many_buckets_a_batch_gets(options: dict[str, str], expected: int) -> None:
    """A number that is set counts; else a power of two that the rows need, up to the most that is allowed."""
    table = create(options)
    write(table, [(1, key, "a") for key in range(128)])
    assert {entry.total_buckets for entry in live(table)} == {expected}
    assert len(shown(table)) == 128


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 1),
        ({"postpone.default-bucket-num": "5"}, 5),
        ({"postpone.target-row-num-per-bucket": "40"}, 4),
        ({"postpone.target-row-num-per-bucket": "50"}, 3),
    ],
    ids=str,
)
def test_how_many_buckets_waiting_rows_get(options: dict[str, str], expected: int) -> None:
    """A number that is set counts; else exactly as many as the waiting rows need."""
    table = create({**WAITING, **options})
    write(table, [(1, key, "a") for key in range(64)])
    write(table, [(1, key, "b") for key in range(64, 128)])
    table.compact()
    assert {entry.total_buckets for entry in live(table)} == {expected}
    assert len(shown(table)) == 128


def test_size_decides_where_rows_do_not() -> None:
    """Without a number of rows, bytes per bucket decide how many buckets there are."""
    table = create({"postpone.target-size-per-bucket": "1 kb"})
    write(table, [(1, key, f"{key * 7919:x}" * 30) for key in range(300)])
    (count,) = {entry.total_buckets for entry in live(table)}
    assert count > 1
    assert count & (count - 1) == 0


def test_many_kept_rows_go_to_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows kept back come again in their order, with their kinds, also from disk."""
    monkeypatch.setattr(postponed, "_KEPT_IN_MEMORY_BYTES", 100)
    kept = KeptRows()
    for start in range(3):
        rows = pa.RecordBatch.from_pydict({"a": [start, start + 10]})
        kept.add(b"p" if start else b"q", rows, pa.array([0, 3], pa.int8()))
    sizes = kept.sizes()
    assert {partition: rows for partition, (rows, _) in sizes.items()} == {b"q": 2, b"p": 4}
    assert sizes[b"p"][1] > sizes[b"q"][1] > 50
    found = [(rows.column("a").to_pylist(), kinds.to_pylist()) for rows, kinds in kept.take()]
    assert found == [([0, 10], [0, 3]), ([1, 11], [0, 3]), ([2, 12], [0, 3])]
    assert list(KeptRows().take()) == []


def test_an_overwrite_takes_waiting_rows_too() -> None:
    """What waits in a replaced partition is replaced, and what replaces it waits or not as any other write."""
    table = create(WAITING)
    write(table, [(1, 10, "a"), (2, 10, "a"), (2, 20, "a")])
    table.compact()
    write(table, [(2, 40, "late")])
    write(table, [(2, 20, "b"), (2, 30, "b")], overwrite=True)
    assert shown(table) == [(1, 10, "a")]
    table.compact()
    assert shown(table) == [(1, 10, "a"), (2, 20, "b"), (2, 30, "b")]
    write(table, [(1, 99, "late")])
    write(table.with_options({"postpone.batch-write-fixed-bucket": "true"}), [(1, 1, "now")], overwrite=True)
    assert shown(table)[0] == (1, 1, "now")
    assert table.compact() is None
    table.truncate()
    assert live(table) == []


def test_a_stream_always_waits() -> None:
    """A writer that numbers its commits leaves buckets to compaction, whatever is set for batches."""
    table = create()
    with table.writer(commit_user="s", commit_identifier=1) as writer:
        writer.write(batch([(1, 1, "a")]))
    assert shown(table) == []
    assert buckets(table) == {(1, -2): 1}
    table.compact()
    assert shown(table) == [(1, 1, "a")]


def test_partitions_are_compacted_as_chosen() -> None:
    """A filter brings the waiting rows of some partitions to their buckets only."""
    table = create(WAITING)
    write(table, [(1, 1, "a"), (2, 1, "a")])
    table.compact(where=[("p", "=", 2)])
    assert shown(table) == [(2, 1, "a")]
    assert buckets(table) == {(1, -2): 1, (2, 0): 1}


def test_a_write_in_between_stops_the_compaction(tmp_path: Path) -> None:
    """A direct write places what waits before it goes past it: a compaction that was about to do so gives up."""
    table = create(WAITING, str(tmp_path))
    direct = table.with_options({"postpone.batch-write-fixed-bucket": "true"})
    write(direct, [(1, 1, "old")])
    write(table, [(1, 1, "waited"), (1, 2, "waited")])
    inner = WaitingRows.write

    def interrupted(self: WaitingRows, *arguments: Any) -> Any:
        messages = inner(self, *arguments)
        patch.setattr(WaitingRows, "write", inner)
        write(direct, [(1, 1, "direct")])
        return messages

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WaitingRows, "write", interrupted)
        before = {path.name for path in tmp_path.rglob("bucket-0/*")}
        with pytest.raises(CommitConflict, match="another job wrote to bucket 0"):
            table.compact()
    assert len({path.name for path in tmp_path.rglob("bucket-0/*")} - before) == 2
    assert shown(table) == [(1, 1, "direct"), (1, 2, "waited")]
    write(table, [(1, 3, "also")])
    table.compact()
    assert shown(table) == [(1, 1, "direct"), (1, 2, "waited"), (1, 3, "also")]


def test_a_write_that_is_refused_places_nothing() -> None:
    """A writer chose how many buckets a new partition has, another was first with another number."""
    table = create({"postpone.target-row-num-per-bucket": "2"})
    slow = table.writer()
    slow.write(batch([(1, key, "slow") for key in range(20)]))
    write(table, [(1, 1, "first")])
    with table.writer(commit_user="s", commit_identifier=1) as stream:
        stream.write(batch([(1, 2, "waits")]))
    before = table.latest_snapshot()
    with pytest.raises(CommitConflict, match="buckets"):
        slow.commit()
    assert table.latest_snapshot() == before
    assert shown(table) == [(1, 1, "first")]


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
@pytest.mark.parametrize("has_buckets", [True, False])
def test_rows_that_waited_are_older_than_later_ones(engine: str, has_buckets: bool) -> None:
    """A batch that goes to its buckets at once wins over rows that were written before it and still wait."""
    table = create({**WAITING, "merge-engine": engine})
    direct = table.with_options({"postpone.batch-write-fixed-bucket": "true"})
    if has_buckets:
        write(direct, [(1, 9, "first")])
    write(table, [(1, 1, "waited"), (1, 2, "waited")])
    write(table, [(1, 2, "waited longer")])
    write(direct, [(1, 1, "later")])
    table.compact()
    assert shown(table)[:2] == [(1, 1, "later"), (1, 2, "waited longer")]


def test_a_deleted_row_that_waited_does_not_return() -> None:
    """A delete of a row that waits for its bucket is newer than the row."""
    table = create(WAITING)
    write(table, [(1, 1, "a"), (1, 2, "b")])
    direct = table.with_options({"postpone.batch-write-fixed-bucket": "true"})
    direct.write(pa.table({"p": [1], "k": [1], "v": ["a"], "kind": ["-D"]}), row_kind="kind")
    table.compact(full=True)
    assert shown(table) == [(1, 2, "b")]


def test_waiting_files_are_placed_in_the_order_of_their_commits() -> None:
    """Whoever wrote them: the row of the later commit wins, also among several writers that take turns."""
    table = create(WAITING)
    first, second = table.with_options({}), table.with_options({})
    write(first, [(1, 1, "a")])
    write(second, [(1, 1, "b"), (1, 2, "b")])
    write(first, [(1, 2, "c")])
    table.compact()
    assert shown(table) == [(1, 1, "b"), (1, 2, "c")]


def test_rows_that_wait_when_buckets_become_fixed_are_placed() -> None:
    """Whoever has changed the option, compaction and rescale bring them to the buckets of their partition."""
    table = create(WAITING)
    write(table, [(1, 1, "a"), (1, 2, "b")])
    schema = table.schema
    foreign = replace(schema, id=schema.id + 1, options={**schema.options, "bucket": "2"})
    assert table._opened.context.schemas.publish(foreign)
    assert table.rescale(3) is not None
    assert shown(table) == [(1, 1, "a"), (1, 2, "b")]
    assert {bucket for _, bucket in buckets(table)} <= {0, 1, 2}


@pytest.mark.parametrize("returns", [False, True])
def test_rows_go_on_in_the_buckets_that_a_table_is_given(returns: bool) -> None:
    """Rows that wait when `bucket` becomes a number are placed in so many, also after a rollback: writes go on."""
    table = create({**WAITING, "postpone.target-row-num-per-bucket": "1"})
    write(table, [(1, 1, "a"), (1, 2, "b"), (1, 3, "c")])
    table.alter(lakebed.SetOption("bucket", "2"))
    if returns:
        table.rollback_to(1)
    write(table, [(1, 1, "d"), (2, 1, "e")])
    assert shown(table) == [(1, 1, "d"), (1, 2, "b"), (1, 3, "c"), (2, 1, "e")]
    assert {bucket for _, bucket in buckets(table)} <= {0, 1}


def test_rows_that_come_to_wait_meanwhile_stay() -> None:
    """New waiting files are no conflict: they are for the next compaction."""
    table = create(WAITING)
    write(table, [(1, 1, "a")])
    inner = WaitingRows(table._opened.current()).write

    def interrupted(self: WaitingRows, *arguments: Any) -> Any:
        messages = inner(*arguments)
        write(table, [(1, 1, "b")])
        return messages

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WaitingRows, "write", interrupted)
        table.compact()
    assert shown(table) == [(1, 1, "a")]
    table.compact()
    assert shown(table) == [(1, 1, "b")]


@pytest.mark.parametrize("producer", ["input", "lookup", "full-compaction"])
def test_changes_are_told_when_rows_become_visible(producer: str) -> None:
    """The changelog of a table whose rows wait begins with the compaction that brings them to their buckets."""
    table = create({**WAITING, "changelog-producer": producer})
    write(table, [(1, 1, "a"), (1, 2, "a")])
    assert table.changes().num_rows == 0
    table.compact(full=True)
    write(table, [(1, 1, "b")])
    table.compact(full=True)
    events = sorted(tuple(row.values()) for row in table.changes().to_pylist())
    update = [("+I", 1, 1, "b")] if producer == "input" else [("+U", 1, 1, "b"), ("-U", 1, 1, "a")]
    assert events == sorted([("+I", 1, 1, "a"), ("+I", 1, 2, "a"), *update])


def test_a_stream_without_changelog_is_told_of_waiting_rows() -> None:
    """Who follows the table hears of rows when they are written: the compaction later changes nothing for them."""
    table = create(WAITING)
    write(table, [(1, 1, "a")])
    table.compact()
    write(table, [(1, 1, "b"), (1, 2, "b")])
    stream = table.follow()
    events = [tuple(row.values()) for found in stream for row in found.to_pylist()]
    assert events == [("+I", 1, 1, "a"), ("+I", 1, 1, "b"), ("+I", 1, 2, "b")]
    write(table, [(1, 2, "c")])
    table.compact()
    later = table.follow(position=stream.position)
    assert [tuple(row.values()) for found in later for row in found.to_pylist()] == [("+I", 1, 2, "c")]


@pytest.mark.parametrize("engine", ["partial-update", "aggregation", "first-row"])
def test_other_engines(engine: str) -> None:
    """Waiting rows are merged as if they had just been written."""
    table = create({**WAITING, "merge-engine": engine})
    write(table, [(1, 1, "a")])
    write(table, [(1, 1, "b"), (1, 2, None)])
    table.compact(full=True)
    write(table, [(1, 1, None), (1, 2, "c")])
    table.compact(full=True)
    expected = {"first-row": [(1, 1, "a"), (1, 2, None)]}.get(engine, [(1, 1, "b"), (1, 2, "c")])
    assert shown(table) == expected


def test_types_that_avro_lacks_wait_in_the_tables_format() -> None:
    """Waiting files are Avro where that can hold every column."""
    table = create({**WAITING, "file.format": "parquet"})
    write(table, [(1, 1, "a")])
    assert {entry.file.file_name.rpartition(".")[2] for entry in live(table)} == {"avro"}


MERGED = {"postpone.merge-on-read": "true"}


@pytest.mark.parametrize("batches", [{}, {"postpone.default-bucket-num": "4"}], ids=str)
def test_reads_may_show_waiting_rows(batches: dict[str, str], tmp_path: Path) -> None:
    """With the option, reads merge what waits into what is there, filters included, and leave nothing behind."""
    table = create({"sequence.field": "v", **batches}, str(tmp_path))
    write(table, [(0, 1, "10-base"), (0, 2, "10-base")])
    waiting = table.with_options(WAITING)
    write(waiting, [(0, 1, "20-new"), (0, 1, "21-newer"), (0, 2, "05-older"), (1, 3, "01-new")])
    waiting.write(batch([(1, 4, "01-gone")], ["-D"]), row_kind="_kind")
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert shown(table) == [(0, 1, "10-base"), (0, 2, "10-base")]
    merged = table.with_options(MERGED)
    assert shown(merged) == [(0, 1, "21-newer"), (0, 2, "10-base"), (1, 3, "01-new")]
    assert merged.to_arrow(columns=["v"], filter=[("p", "=", 0), ("k", "=", 2)]).to_pylist() == [{"v": "10-base"}]
    assert merged.to_arrow(filter=[("v", "=", "10-base")]).num_rows == 1
    assert [row["k"] for found in merged.to_batches(columns=["k"]) for row in found.to_pylist()] != []
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == files
    assert shown(merged.at(snapshot=1)) == [(0, 1, "10-base"), (0, 2, "10-base")]
    table.compact()
    assert shown(merged) == shown(table) == [(0, 1, "21-newer"), (0, 2, "10-base"), (1, 3, "01-new")]


def test_first_rows_can_not_be_shown_before_they_are_placed() -> None:
    """Which row is the first is known after compaction only."""
    table = create({**WAITING, **MERGED, "merge-engine": "first-row"})
    write(table, [(1, 1, "a")])
    with pytest.raises(Unsupported, match="merge-on-read"):
        table.to_arrow()


def test_waiting_rows_come_back_in_their_order() -> None:
    """Rows that were placed come back before the ones that came while they were, and have waited ever since."""
    table = create(WAITING)
    write(table, [(1, 1, "older"), (2, 1, "other")])
    first = table.latest_snapshot()
    write(table, [(1, 1, "newer")])
    second = table.latest_snapshot()
    assert second is not None
    context, identity = plan_write(table)
    WaitingRows(context)._place(identity, first)  # as if the second write had come meanwhile
    assert shown(table) == [(1, 1, "older"), (2, 1, "other")]
    table.rollback_to_as_latest(second.id)
    assert shown(table) == []
    table.compact(full=True)
    assert shown(table) == [(1, 1, "newer"), (2, 1, "other")]
    assert table.check(deep=True) == []


# --- the order in which rows wait ------------------------------------------------------------------------------------


def test_merged_manifests_keep_the_order_in_which_rows_wait() -> None:
    """A large manifest stays as it is when others are written again, and does not get in front of older rows."""
    table = create({**WAITING, "manifest.target-file-size": "2600 b", "manifest.full-compaction-threshold-size": "1 b"})
    write(table, [[1, 1, "old"]])
    write(table, [[partition, 1, "new"] for partition in range(1, 30)])
    for partition in (500, 501):  # each commit merges what is there
        write(table, [[partition, 1, "new"]])
    table.compact(full=True)
    assert {row[2] for row in shown(table)} == {"new"}


def test_a_stream_begins_with_waiting_rows_in_the_order_of_their_commits() -> None:
    """Whatever the clocks of writers say: what comes later is told later, as it is placed later."""
    table = create(WAITING)
    opened = table._opened
    ahead = replace(opened.context, clock=FixedClock(opened.context.clock.now_ms() + 60_000))
    write(lakebed.Table(OpenedTable(ahead)), [[1, 1, "old"]])
    write(table, [[1, 1, "new"]])
    first = next(iter(table.follow()))
    assert [row["v"] for row in first.to_pylist()] == ["old", "new"]
    table.compact(full=True)
    assert shown(table) == [(1, 1, "new")]
