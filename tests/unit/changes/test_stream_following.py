"""Tables followed as streams: what comes first, what comes then, and that a reader may stop and go on anywhere."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.table.worked_tables import N, create, write
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.changes.follow import ChangeStream
from lakebed.changes.position import StreamPosition
from lakebed.changes.stream import StreamScan
from lakebed.errors import FileMissing, InvalidArgument, InvalidOption, NotFound, Unsupported

Events = list[tuple[Any, ...]]

# 4.2: what each commit brings, and what each producer tells of it
COMMITS: list[Any] = [
    [[1, "a"], [2, "b"]],
    [[1, "c"], ("-D", [2, "b"])],
    [[1, "c"]],
    [[3, "x"], ("-D", [3, "x"])],
    [[1, "z"], [1, "y"]],
]
FIRST: Events = [("+I", 1, "a"), ("+I", 2, "b")]
TOLD: dict[str, list[Events]] = {
    "none": [FIRST, [("+I", 1, "c"), ("-D", 2, "b")], [("+I", 1, "c")], [("-D", 3, "x")], [("+I", 1, "y")]],
    "input": [
        FIRST,
        [("+I", 1, "c"), ("-D", 2, "b")],
        [("+I", 1, "c")],
        [("+I", 3, "x"), ("-D", 3, "x")],
        [("+I", 1, "z"), ("+I", 1, "y")],
    ],
    "lookup": [
        FIRST,
        [("-U", 1, "a"), ("+U", 1, "c"), ("-D", 2, "b")],
        [("-U", 1, "c"), ("+U", 1, "c")],
        [("-U", 1, "c"), ("+U", 1, "y")],
    ],
}
TOLD["full-compaction"] = TOLD["lookup"]


def keyed(columns: str = "k v:STRING", producer: str = "none", **options: str) -> lakebed.Table:
    return create(columns, {"write-only": "false", "changelog-producer": producer, **options})


def events(changes: pa.Table) -> Events:
    return [tuple(row.values()) for row in changes.to_pylist()]


def followed(table: lakebed.Table, **arguments: Any) -> list[Events]:
    """What a stream brings until it has caught up."""
    return [events(changes) for changes in table.follow(**arguments)]


def scanned(table: lakebed.Table, options: dict[str, object] | None = None) -> StreamScan:
    return table.follow(options=options)._scan


# --- what comes first, what comes then ---------------------------------------------------------------------------


@pytest.mark.parametrize("producer", TOLD)
def test_4_4_changes_as_they_come(producer: str) -> None:
    """4.4: who follows a table from its first day gets what its producer tells of every commit."""
    table = keyed(producer=producer)
    stream = table.follow()
    seen = []
    for commit in COMMITS:
        write(table, commit)
        seen += [events(changes) for changes in stream]
    assert seen == TOLD[producer]


@pytest.mark.parametrize("producer", TOLD)
def test_4_4_state_first_then_changes(producer: str) -> None:
    """4.4: who comes later gets the merged state as inserts, whatever the stored kinds, then the changes."""
    table = keyed(producer=producer)
    write(table, COMMITS[0])
    write(table, [("+U", [1, "c"]), ("-D", [2, "b"])])
    stream = table.follow()
    assert [events(changes) for changes in stream] == [[("+I", 1, "c")]]
    write(table, COMMITS[2])
    assert [events(changes) for changes in stream] == [TOLD[producer][2]]


@pytest.mark.parametrize(
    ("producer", "first", "then"),
    [
        ("none", [("+I", 1, "c"), ("+I", 2, "b")], []),
        ("input", [("+I", 1, "c"), ("+I", 2, "b")], []),
        ("lookup", [("+I", 1, "a"), ("+I", 2, "b")], [[("-U", 1, "a"), ("+U", 1, "c")]]),
        ("full-compaction", [("+I", 1, "a"), ("+I", 2, "b")], [[("-U", 1, "a"), ("+U", 1, "c")]]),
    ],
)
def test_4_4_first_plan_leaves_to_the_changelog_what_it_will_tell(producer: str, first: Events, then: Any) -> None:
    """4.4: rows that no compaction has lifted yet are in the first plan only if no changelog will tell of them."""
    table = keyed(producer=producer)
    write(table, COMMITS[0])
    table.compact(full=True)
    write(table.with_options({"write-only": "true"}), [1, "c"])
    stream = table.follow()
    assert [events(changes) for changes in stream] == [first]
    table.compact(full=True)
    assert [events(changes) for changes in stream] == then


def test_4_4_full_compaction_shows_the_highest_level_only() -> None:
    """4.4: with producer full-compaction, rows on levels in between wait for the changelog like those of level 0."""
    rare = {"full-compaction.delta-commits": "100", "num-levels": "6", "num-sorted-run.compaction-trigger": "3"}
    table = keyed(producer="full-compaction", **rare)
    table.write(pa.table({"k": pa.array(range(1000), pa.int32()), "v": [str(i) for i in range(1000)]}))
    table.compact(full=True)
    for identifier in range(1, 4):
        writer = table.writer(commit_user="job", commit_identifier=identifier)
        writer.write(pa.table({"k": pa.array([0], pa.int32()), "v": ["new"]}))
        writer.commit()
    assert any(0 < file.level < 5 for file in table.scan().files), "this proves something only with levels in between"
    (first,) = followed(table)
    assert len(first) == 1000
    assert ("+I", 0, "0") in first
    assert ("+I", 0, "new") not in first


def test_n_07_no_producer_tells_upserts_and_deletes() -> None:
    """N-07: without a producer a stream is not limited to full reads: it gets every commit, without -U."""
    table = keyed()
    stream = table.follow()
    write(table, [1, "a"])
    write(table, ("+U", [1, "b"]))
    write(table, ("-U", [1, "b"]))
    assert events(next(stream)) == [("+I", 1, "a")]
    write(table, [2, "x"])
    assert [events(changes) for changes in stream] == [[("+U", 1, "b")], [("-U", 1, "b")], [("+I", 2, "x")]]


def test_n_08_three_commits_or_one() -> None:
    """N-08: insert, update, delete in three commits are three steps; in one commit only the delete is left."""
    table = keyed()
    stream = table.follow(options={"scan.mode": "latest"})
    for change in ([1, "a"], [1, "b"], ("-D", [1, "b"])):
        write(table, change)
    assert [events(changes) for changes in stream] == [[("+I", 1, "a")], [("+I", 1, "b")], [("-D", 1, "b")]]
    write(table, [[2, "a"], [2, "b"], ("-D", [2, "b"])])
    assert [events(changes) for changes in stream] == [[("-D", 2, "b")]]


@pytest.mark.parametrize("producer", ["none", "input"])
def test_l_02_n_40_partial_rows(producer: str) -> None:
    """L-02, N-40: without a producer that merges, a stream of a partial-update table brings the partial rows."""
    table = keyed("k a:STRING b:STRING", producer, **{"merge-engine": "partial-update"})
    stream = table.follow()
    write(table, [1, "a", N])
    first = events(next(stream))
    write(table, [1, N, "b"])
    assert [first, *(events(changes) for changes in stream)] == [[("+I", 1, "a", N)], [("+I", 1, N, "b")]]


@pytest.mark.parametrize("engine", ["aggregation", "first-row"])
def test_engines_that_need_a_producer(engine: str) -> None:
    """What is written to such a table is not what happens to its rows: following it is refused with what to set."""
    table = keyed(**{"merge-engine": engine})
    write(table, [1, "a"])
    with pytest.raises(Unsupported, match=f"merge engine `{engine}` and no changelog producer") as caught:
        table.follow()
    assert "`changelog-producer` to `lookup`" in caught.value.hint
    if engine == "aggregation":
        with pytest.raises(Unsupported, match="no changelog producer"):
            table.changes()
    else:
        table.alter(lakebed.SetOption("changelog-producer", "lookup"))
        assert followed(table) == [[("+I", 1, "a")]]


def test_append_table_is_followed(warehouse: Warehouse) -> None:
    """A table without key brings its rows, then those of every commit; columns can be chosen."""
    table = warehouse.table("t", {"id": "INT", "v": "STRING"})
    assert followed(table) == []
    stream = table.follow(["v"])
    table.write(pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["a", "b"]}))
    table.write(pa.table({"id": pa.array([3], pa.int32()), "v": ["c"]}))
    assert stream.schema.names == ["rowkind", "v"]
    assert [events(changes) for changes in stream] == [[("+I", "a"), ("+I", "b")], [("+I", "c")]]
    assert followed(table) == [[("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "c")]]


def test_a_stream_keeps_the_columns_it_began_with() -> None:
    """A column that is added meanwhile does not change what a stream brings; a new stream has it."""
    table = keyed()
    stream = table.follow()
    write(table, [1, "a"])
    table.alter(lakebed.AddColumn("w", "INT"))
    write(table, [2, "b", 5])
    assert [events(changes) for changes in stream] == [[("+I", 1, "a")], [("+I", 2, "b")]]
    assert followed(table) == [[("+I", 1, "a", N), ("+I", 2, "b", 5)]]


# --- overwrites --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("producer", ["none", "input"])
def test_overwrites_are_told_if_asked_for(producer: str) -> None:
    """An overwrite is passed over; asked for, it takes back the merged old rows, then brings the new ones."""
    for asked, told in (("false", []), ("true", [[("-D", 1, "c"), ("+I", 1, "n"), ("+I", 3, "n")]])):
        table = keyed(producer=producer, **{"streaming-read-overwrite": asked})
        write(table, COMMITS[0])
        write(table, COMMITS[1])
        stream = table.follow(options={"scan.mode": "latest"})
        rows = pa.table({"k": pa.array([1, 3, 3], pa.int32()), "v": ["n", "m", "n"]})
        table.write(rows, overwrite=True)
        assert [events(changes) for changes in stream] == told


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_overwrites_and_a_changelog_tell_the_same_twice(producer: str) -> None:
    """Options that would bring changes twice are refused, for a new table and for a stream."""
    with pytest.raises(InvalidOption, match="would read duplicated changes"):
        keyed(producer=producer, **{"streaming-read-overwrite": "true"})
    table = keyed(producer=producer)
    with pytest.raises(InvalidOption, match="would read duplicated changes"):
        table.follow(options={"streaming-read-overwrite": "true"})


def test_overwrites_of_append_tables(warehouse: Warehouse) -> None:
    """New rows of an overwrite come if asked for; old rows of a table without key are never taken back."""
    one, two = (pa.table({"id": pa.array([number], pa.int32())}) for number in (1, 2))
    for asked, told in (("false", []), ("true", [[("+I", 2)]])):
        table = warehouse.table(f"t_{asked}", {"id": "INT"}, one, options={"streaming-read-append-overwrite": asked})
        stream = table.follow(options={"scan.mode": "latest"})
        table.write(two, overwrite=True)
        assert [events(changes) for changes in stream] == told
    with warehouse.refuses(InvalidOption, "no primary key", "streaming-read-append-overwrite"):
        table.follow(options={"streaming-read-overwrite": "true"})


# --- stopping and going on ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("producer", TOLD)
def test_going_on_from_every_position(producer: str) -> None:
    """Whatever position a stream was left at, a new one brings exactly the rest; positions survive JSON."""
    table = keyed(producer=producer)
    write(table, COMMITS[0])
    stream = table.follow()
    kept = [json.dumps(stream.position)]
    seen = []
    for commit in COMMITS:
        write(table, commit)
        for changes in stream:
            seen.append(events(changes))
            kept.append(json.dumps(stream.position))
    for count, position in enumerate(kept):
        if count:  # the first plan of the first position is another one by now
            assert followed(table, position=json.loads(position)) == seen[count:]


@pytest.mark.parametrize("mode", ["latest-full", "from-snapshot"])
def test_going_on_within_a_plan(warehouse: Warehouse, mode: str) -> None:
    """A reader that stopped between two splits of a plan goes on with the third, by partition and bucket."""
    table = warehouse.table("t", {"p": "INT", "id": "INT"}, partition_by=["p"])
    for number in range(2):
        column = pa.array([number, 1, 12, 3], pa.int32())
        table.write(pa.table({"p": pa.array([3, 1, 12, 2], pa.int32()), "id": column}))
    options = {"scan.mode": mode} | ({"scan.snapshot-id": "1"} if mode == "from-snapshot" else {})
    scan = scanned(table, options)
    position = scan.start()
    whole = [row for changes in table.follow(options=options) for row in events(changes)]
    assert [row[1] for row in whole] == ([1, 1, 12, 12, 2, 2, 3, 3] if mode == "latest-full" else [1, 12, 2, 3] * 2)
    read: Events = []
    while (plan := scan.plan(position)) is not None:
        rest = [row for changes in table.follow(position=position.to_members()) for row in events(changes)]
        assert read + rest == whole
        if plan.splits:
            assert pickle.loads(pickle.dumps(plan.splits)) == plan.splits, "splits travel to other machines"
            read += [row for batch in scan.read_split(plan.splits[0]) for row in events(batch)]
        position = plan.after(1)
    assert read == whole
    assert position == StreamPosition(3)


def test_a_position_must_be_one(warehouse: Warehouse) -> None:
    """What is no position, or one of another table, is refused."""
    table = warehouse.table("t", {"id": "INT"}, pa.table({"id": pa.array([1], pa.int32())}))
    good = table.follow().position
    assert good == {"snapshot": 1, "full": True, "index": 0}
    bad: list[Any] = [7, {}, {**good, "more": 1}, {**good, "index": -1}, {**good, "full": 1}, {**good, "snapshot": "1"}]
    for position in bad:
        with warehouse.refuses(InvalidArgument, "is no position of a stream"):
            table.follow(position=position)
    with warehouse.refuses(InvalidArgument, "past the 1 pieces of snapshot 1"):
        next(table.follow(position={**good, "index": 2}))
    with warehouse.refuses(NotFound, "stands at snapshot 5, but the latest is 1", "rolled back"):
        next(table.follow(position={**good, "snapshot": 5}))


def test_an_expired_position_is_an_error(disk: Warehouse) -> None:
    """A stream whose next snapshot has expired neither skips it nor starts anew: it says how to go on."""
    table = disk.table("t", {"id": "INT"})
    stream = table.follow(options={"consumer-id": "c"})
    early = [stream.position, {"snapshot": 1, "full": False, "index": 0}]
    for number in range(3):
        table.write(pa.table({"id": pa.array([number], pa.int32())}))
    for number in (1, 2):
        (Path(table.location) / "snapshot" / f"snapshot-{number}").unlink()
    for position in early:
        with disk.refuses(NotFound, "snapshot 1, which has expired; the earliest is 3", "from-snapshot` at 3"):
            next(table.follow(position=position))
    with disk.refuses(NotFound, "has expired", "consumer.ignore-progress"):
        next(stream)
    assert followed(table) == [[("+I", 0), ("+I", 1), ("+I", 2)]]
    assert followed(table, options={"scan.mode": "from-snapshot", "scan.snapshot-id": "1"}) == [[("+I", 2)]]


def test_a_snapshot_that_expires_while_it_is_read(disk: Warehouse) -> None:
    """Files that vanish together with their snapshot are told as expired; files that vanish alone are damage."""
    table = disk.table("t", {"id": "INT"}, pa.table({"id": pa.array([1], pa.int32())}))
    scan = scanned(table)
    plan = scan.plan(scan.start())
    assert plan is not None
    for path in Path(table.location).rglob("bucket-0/*"):
        path.unlink()
    with disk.refuses(FileMissing):
        scan.read(plan)
    (Path(table.location) / "snapshot" / "snapshot-1").unlink()
    with disk.refuses(NotFound, "snapshot 1, which has expired"):
        scan.read(plan)


def test_long_lived_changelogs_serve_ids_without_a_snapshot(disk: Warehouse) -> None:
    """Changes of an expired snapshot are read from its changelog; its state is not."""
    table = disk.table("t", {"id": "INT"})
    for number in range(3):
        table.write(pa.table({"id": pa.array([number], pa.int32())}))
    stores = table._opened.context.stores
    for number in (1, 2):
        stores.changelogs.put(stores.snapshots.get(number))
        stores.snapshots.delete(number)
    expected = [[("+I", 0)], [("+I", 1)], [("+I", 2)]]
    assert followed(table, options={"scan.mode": "from-snapshot", "scan.snapshot-id": "1"}) == expected
    assert followed(table, options={"scan.mode": "from-timestamp", "scan.timestamp-millis": "1"}) == expected
    assert followed(table, position={"snapshot": 2, "full": False, "index": 0}) == expected[1:]
    assert table.changes()["id"].to_pylist() == [0, 1, 2]
    with disk.refuses(NotFound, "which has expired"):
        next(table.follow(position={"snapshot": 2, "full": True, "index": 0}))


@pytest.mark.parametrize("producer", TOLD)
def test_changes_of_snapshots_that_really_expired(producer: str) -> None:
    """Where changelogs are kept longer than snapshots, a stream begins long before the earliest snapshot."""
    kept = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1", "changelog.num-retained.min": "50"}
    table = keyed(producer=producer, **kept, **{"changelog.num-retained.max": "50"})
    for commit in COMMITS:
        write(table, commit)
    table.expire_snapshots()
    assert len(table.snapshots()) == 1
    assert followed(table, options={"scan.mode": "from-snapshot", "scan.snapshot-id": "1"}) == TOLD[producer]


def test_a_consumer_keeps_what_it_has_yet_to_read() -> None:
    """Snapshots after a consumer's progress outlive every expiry."""
    table = keyed(**{"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"})
    write(table, COMMITS[0])
    named: dict[str, object] = {"consumer-id": "c"}
    assert followed(table, options=named) == [FIRST]
    for commit in COMMITS[1:]:
        write(table, commit)
    table.expire_snapshots()
    assert followed(table, options=named) == TOLD["none"][1:]
    table.expire_snapshots()
    assert len(table.snapshots()) == 1


# --- consumers ---------------------------------------------------------------------------------------------------


def progress(table: lakebed.Table, name: str = "c") -> int | None:
    return table._opened.context.stores.consumers.next_snapshot(name)


def test_consumer_progress_is_recorded_when_the_next_changes_are_asked_for() -> None:
    """What was returned is consumed when the loop asks again; a loop that fails meets the same changes once more."""
    table = keyed()
    write(table, COMMITS[0])
    named: dict[str, object] = {"consumer-id": "c"}
    stream = table.follow(options=named)
    next(stream)
    assert progress(table) is None, "the first plan is not known to be consumed yet"
    write(table, COMMITS[1])
    changes = events(next(stream))
    assert progress(table) == 2
    assert [changes] == followed(table, options=named), "not consumed, so it comes again"
    assert progress(table) == 3
    assert followed(table, options=named) == []
    assert followed(table, options={**named, "consumer.ignore-progress": "true"}) == [[("+I", 1, "c")]]


def test_consumer_progress_overrides_the_mode_and_passes_over_compactions() -> None:
    """A consumer goes on where it was, changes only, whatever the mode; snapshots without changes count as consumed."""
    table = keyed()
    write(table, COMMITS[0])
    assert followed(table, options={"consumer-id": "c"}) == [FIRST]
    table.compact(full=True)
    assert followed(table, options={"consumer-id": "c", "scan.mode": "from-snapshot", "scan.snapshot-id": "1"}) == []
    assert progress(table) == 3


def test_consumer_is_there_from_the_start_if_it_wants_changes_only() -> None:
    """A stream without first plan protects the snapshots it waits for before any of them comes."""
    table = keyed()
    write(table, COMMITS[0])
    assert followed(table, options={"consumer-id": "c", "scan.mode": "latest"}) == []
    assert progress(table) == 2


def test_acknowledging_by_hand() -> None:
    """Progress can be recorded as soon as changes are dealt with; never within a first plan; never without a name."""
    table = keyed()
    write(table, COMMITS[0])
    stream = table.follow(options={"consumer-id": "c"})
    stream.acknowledge()
    assert progress(table) is None
    next(stream)
    stream.acknowledge()
    assert progress(table) == 2
    scanned(table, {"consumer-id": "d"}).acknowledge(4)
    assert progress(table, "d") == 5
    unnamed = table.follow()
    next(unnamed)
    with pytest.raises(InvalidArgument, match="without a name") as caught:
        unnamed.acknowledge()
    assert "consumer-id" in caught.value.hint


@pytest.mark.parametrize("name", ["", "a/b", "..\\b"])
def test_a_consumer_needs_a_name_for_a_file(name: str) -> None:
    """A consumer's name becomes a file's name: others are refused."""
    with pytest.raises(InvalidOption, match="consumer-id"):
        keyed().follow(options={"consumer-id": name})


# --- ends and waits ----------------------------------------------------------------------------------------------


def test_waiting_for_more() -> None:
    """A stream that waits asks again after the interval of the options, until changes are there."""
    table = keyed(**{"continuous.discovery-interval": "7 s"})
    write(table, COMMITS[0])

    class Impatient:
        """A clock whose second pause brings a commit."""

        pauses: list[int] = []  # noqa: RUF012

        def now_ms(self) -> int:
            return 0

        def sleep_ms(self, duration_ms: int) -> None:
            self.pauses.append(duration_ms)
            if len(self.pauses) == 2:
                write(table, COMMITS[1])

    clock = Impatient()
    stream = ChangeStream(scanned(table), clock, 7_000, wait=True)
    assert events(next(stream)) == FIRST
    assert events(next(stream)) == TOLD["none"][1]
    assert clock.pauses == [7_000, 7_000]


def test_a_bounded_stream_ends_at_its_watermark() -> None:
    """The first snapshot past the watermark ends the stream, also one that waits; a first plan past it comes whole."""
    table = keyed()
    stores = table._opened.context.stores
    for number, commit in enumerate(COMMITS[:3], start=1):
        write(table, commit)
        _set_watermark(stores, number, 100 * number)
    begins = {"scan.mode": "from-snapshot", "scan.snapshot-id": "1"}
    for bound, count in (("199", 1), ("200", 2), ("299", 2)):
        assert followed(table, options={**begins, "scan.bounded.watermark": bound}, wait=True) == TOLD["none"][:count]
    assert followed(table, options={**begins, "scan.bounded.watermark": "300"}) == TOLD["none"][:3]
    assert followed(table, options={"scan.bounded.watermark": "250"}, wait=True) == [[("+I", 1, "c")]]


def _set_watermark(stores: Any, number: int, watermark: int) -> None:
    path = stores.paths.snapshot_file(number)
    members = json.loads(stores.fileio.read_bytes(path))
    del members["lakebedCrc32"]
    stores.fileio.overwrite(path, json.dumps({**members, "watermark": watermark}).encode())


def test_young_snapshots_wait() -> None:
    """With a delay, changes come once their snapshot is old enough; the first plan does not wait."""
    table = keyed()
    write(table, COMMITS[0])
    assert followed(table, options={"streaming.read.snapshot.delay": "1 h"}) == [FIRST]
    stream = table.follow(options={"streaming.read.snapshot.delay": "1 h"})
    next(stream)
    write(table, COMMITS[1])
    assert list(stream) == []
    position = stream.position
    assert followed(table, position=position, options={"streaming.read.snapshot.delay": "0 s"}) == [TOLD["none"][1]]


def test_views_are_not_followed(warehouse: Warehouse) -> None:
    """The audit log is the table with kinds, which a stream has anyway; other views have no changes of their own."""
    table = warehouse.table("t", {"id": "INT NOT NULL"}, primary_key=["id"], options={"bucket": "1"})
    table.write(pa.table({"id": pa.array([1], pa.int32())}))
    assert followed(warehouse.lake.table("t$audit_log")) == [[("+I", 1)]]
    for view in ("ro", "binlog"):
        with warehouse.refuses(Unsupported, "can not be followed", "follow `default.t`"):
            warehouse.lake.table(f"t${view}").follow()


def test_views_of_the_past_do_not_change() -> None:
    """A handle at a snapshot is not followed; one whose options name a snapshot starts there."""
    table = keyed()
    write(table, COMMITS[0])
    write(table, COMMITS[1])
    with pytest.raises(InvalidArgument, match="opened at snapshot 1, which does not change"):
        table.at(snapshot=1).follow()
    assert followed(table.with_options({"scan.snapshot-id": "2"})) == [TOLD["none"][1]]


# --- filters -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("producer", TOLD)
def test_filters_choose_events_by_their_values(producer: str) -> None:
    """A filter keeps the events whose own row matches, from the first plan on; other columns may be asked for."""
    table = keyed(producer=producer)
    write(table, COMMITS[0])
    for filter_, keeps in (
        ([("v", "=", "c")], lambda event: event[2] == "c"),
        ([("k", "=", 2)], lambda event: event[1] == 2),
        ([("rowkind", "=", "+U")], lambda event: event[0] == "+U"),
    ):
        stream = table.follow(filter=filter_)
        values = table.follow(["v"], filter_)
        everything = table.follow()
        for commit in ([[1, "c"], ("-D", [2, "b"])], [[1, "d"]], [[2, "c"]]):
            write(table, commit)
        expected = [event for changes in everything for event in events(changes) if keeps(event)]
        assert [event for changes in stream for event in events(changes)] == expected
        assert [event for changes in values for event in events(changes)] == [(kind, v) for kind, _, v in expected]


def test_filters_skip_files_that_can_not_match(warehouse: Warehouse) -> None:
    """Files whose statistics or partition exclude a match are not planned, of states and of changes."""
    table = warehouse.table("t", {"p": "INT", "id": "INT"}, partition_by=["p"])
    rows = pa.table({"p": pa.array([1, 2, 2], pa.int32()), "id": pa.array([1, 2, 3], pa.int32())})
    table.write(rows)
    table.write(rows.set_column(1, "id", pa.array([10, 20, 30], pa.int32())))
    for mode, filter_, files in (
        ("latest-full", [("p", "=", 1)], 2),
        ("latest-full", [("id", ">", 9)], 2),
        ("from-snapshot", [("p", "=", 2), ("id", ">", 9)], 1),
    ):
        options: dict[str, object] = {"scan.mode": mode}
        if mode == "from-snapshot":
            options["scan.snapshot-id"] = 1
        stream = table.follow(filter=filter_, options=options)
        position, planned = stream._position, 0
        while (plan := stream._scan.plan(position)) is not None:
            planned += sum(len(item.split.files) for item in plan.splits)
            position = plan.end
        assert planned == files
    found = [row for changes in table.follow(filter=[("p", "=", 2), ("id", ">", 9)]) for row in events(changes)]
    assert found == [("+I", 2, 20), ("+I", 2, 30)]


def test_filters_of_overwrites_and_unknown_columns(warehouse: Warehouse) -> None:
    """Old and new rows of an overwrite are filtered alike; a column that is not there is an error."""
    table = keyed(**{"streaming-read-overwrite": "true"})
    write(table, COMMITS[0])
    stream = table.follow(filter=[("k", "=", 1)], options={"scan.mode": "latest"})
    table.write(pa.table({"k": pa.array([1, 3], pa.int32()), "v": ["n", "m"]}), overwrite=True)
    assert [events(changes) for changes in stream] == [[("-D", 1, "a"), ("+I", 1, "n")]]
    with pytest.raises(NotFound, match="`zz`"):
        table.follow(filter=[("zz", "=", 1)])


def test_filters_see_shown_defaults() -> None:
    """A default that reads show in place of null is what a filter compares with."""
    table = keyed("k a", **{"fields.a.default-value": "7"})
    write(table, [[1, N], [2, 5]])
    assert followed(table, filter=[("a", "=", 7)]) == [[("+I", 1, 7)]]
    write(table, [3, N])
    options = {"scan.mode": "from-snapshot", "scan.snapshot-id": "2"}
    assert followed(table, filter=[("a", "=", 7)], options=options) == [[("+I", 3, 7)]]


# --- histories that were rewritten -------------------------------------------------------------------------------


def test_a_rollback_under_a_position_is_noticed(disk: Warehouse) -> None:
    """After a rollback and new commits the ids are those of before, but not the snapshots: that is an error."""
    table = disk.table("t", {"id": "INT"})
    one, two, three = (pa.table({"id": pa.array([number], pa.int32())}) for number in (1, 2, 3))
    table.write(one)
    table.write(two)
    stream = table.follow(options={"scan.mode": "from-snapshot", "scan.snapshot-id": "1"})
    first = next(stream)
    before_rollback = stream.position
    assert events(first) == [("+I", 1)]
    next(stream)
    kept = stream.position
    table.rollback_to(snapshot=1)
    with disk.refuses(NotFound, "stands at snapshot 3, but the latest is 1", "reads the whole table first"):
        next(table.follow(position=kept))
    table.write(three)
    with disk.refuses(NotFound, "has read a snapshot 2 that is gone", "reads the whole table first"):
        next(table.follow(position=kept))
    with disk.refuses(NotFound, "has read a snapshot 2 that is gone"):
        next(stream)
    assert followed(table, position=before_rollback) == [[("+I", 3)]], "what was read is still part of the table"


def test_a_consumer_notices_a_rollback(disk: Warehouse) -> None:
    """A named consumer that starts again after a rollback and new commits does not go on as if nothing had been."""
    one, two = (pa.table({"id": pa.array([number], pa.int32())}) for number in (1, 2))
    table = disk.table("t", {"id": "INT"}, one)
    table.write(two)
    named: dict[str, object] = {"consumer-id": "c"}
    assert followed(table, options=named) == [[("+I", 1), ("+I", 2)]]
    assert followed(table, options=named) == []
    table.rollback_to(snapshot=1)
    table.write(one)
    with disk.refuses(NotFound, "has read a snapshot 2 that is gone", "consumer.ignore-progress"):
        next(table.follow(options=named))
    again = followed(table, options={**named, "consumer.ignore-progress": "true"})
    assert again == [[("+I", 1), ("+I", 1)]]
    table.write(two)
    assert followed(table, options=named) == [[("+I", 2)]]


def test_a_stream_that_waits_notices_a_rollback(disk: Warehouse) -> None:
    """Also a stream that has read nothing yet stands behind a snapshot, and not only behind a number."""
    one, two = (pa.table({"id": pa.array([number], pa.int32())}) for number in (1, 2))
    table = disk.table("t", {"id": "INT"}, one)
    table.write(two)
    stream = table.follow(options={"scan.mode": "latest"})
    table.rollback_to(snapshot=1)
    table.write(one)
    table.write(one)
    with disk.refuses(NotFound, "has read a snapshot 2 that is gone"):
        next(stream)


# --- how much at a time ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "sizes"),
    [
        ({"read.stream.maxFilesPerTrigger": 2}, [4, 3, 4, 3]),
        ({"read.stream.maxRowsPerTrigger": 5}, [4, 3, 4, 3]),
        ({"read.stream.maxRowsPerTrigger": 1}, [1, 3, 3, 1, 3, 3]),
        ({"read.stream.maxBytesPerTrigger": 1}, [1, 3, 3, 1, 3, 3]),
        ({"read.stream.maxFilesPerTrigger": 9, "read.stream.maxRowsPerTrigger": 4}, [4, 3, 4, 3]),
        ({}, [7, 7]),
    ],
)
def test_limits_cut_snapshots_between_files(warehouse: Warehouse, limit: dict[str, object], sizes: list[int]) -> None:
    """A stream takes as many files as fit, one at least, and goes on within the snapshot from any position."""
    table = warehouse.table("t", {"p": "INT", "id": "INT"}, partition_by=["p"])
    for number in range(2):
        ids = pa.array([number] * 7, pa.int32())
        table.write(pa.table({"p": pa.array([1, 2, 2, 2, 3, 3, 3], pa.int32()), "id": ids}))
    options = {"scan.mode": "from-snapshot", "scan.snapshot-id": "1", "consumer-id": "c", **limit}
    stream = table.follow(options=options)
    seen, positions = [], []
    for changes in stream:
        seen.append(events(changes))
        positions.append(stream.position)
    assert [len(part) for part in seen] == sizes
    assert progress(table) == 3
    for count, position in enumerate(positions, start=1):
        rest = [events(changes) for changes in table.follow(position=position, options=limit)]
        assert rest == seen[count:]


def test_a_consumer_advances_past_whole_snapshots_only(warehouse: Warehouse) -> None:
    """Between two files of a snapshot the consumer still needs it."""
    table = warehouse.table("t", {"p": "INT"}, partition_by=["p"])
    table.write(pa.table({"p": pa.array([1, 2, 3], pa.int32())}))
    stream = table.follow(
        options={
            "scan.mode": "from-snapshot",
            "scan.snapshot-id": "1",
            "consumer-id": "c",
            "read.stream.maxFilesPerTrigger": "1",
        }
    )
    next(stream)
    next(stream)
    assert progress(table) == 1
    assert len(list(stream)) == 1
    assert progress(table) == 2


def test_waiting_for_enough_rows() -> None:
    """Changes wait until enough rows are there, over several snapshots, or until they have waited long enough."""
    table = keyed()
    wanted = {"read.stream.minRowsPerTrigger": 3, "read.stream.maxTriggerDelayMs": 3_600_000}
    write(table, [[1, "a"], [2, "b"]])
    stream = table.follow(options=wanted)
    assert [events(changes) for changes in stream] == [FIRST], "the first plan does not wait"
    write(table, [1, "c"])
    assert list(stream) == []
    write(table, [[1, "d"], [2, "e"]])
    assert events(next(stream)) == [("+I", 1, "c")]
    late = table.follow(options={**wanted, "read.stream.maxTriggerDelayMs": 1}, position=stream.position)
    assert [events(changes) for changes in late] == [[("+I", 1, "d"), ("+I", 2, "e")]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"read.stream.minRowsPerTrigger": 3}, "maxTriggerDelayMs"),
        ({"read.stream.maxTriggerDelayMs": 3}, "minRowsPerTrigger"),
        (
            {
                "read.stream.minRowsPerTrigger": 3,
                "read.stream.maxTriggerDelayMs": 3,
                "read.stream.maxRowsPerTrigger": 2,
            },
            "more than the 2",
        ),
    ],
)
def test_limits_that_contradict_each_other(options: dict[str, object], words: str) -> None:
    """The least needs a time, and must not be more than the most."""
    with pytest.raises(InvalidOption, match=words):
        keyed().follow(options=options)
