"""Primary keys without the partition columns: a row may move its key to another partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import lakebed
from lakebed.bucket.hashing import hash_rows
from lakebed.clock import FixedClock
from lakebed.commit.message import CommitMessage
from lakebed.definition.bucket_mode import WritePart
from lakebed.errors import CommitConflict, InvalidData, InvalidOption
from lakebed.metadata.entries import live_files
from lakebed.read.plan import plan_scan
from lakebed.read.reader import SplitReader
from lakebed.write.commit import WriteCommit
from lakebed.write.placement.crossing import KEY_INDEX, CrossPartition

Row = Sequence[Any]
SCHEMA = pa.schema([("p", pa.int32()), ("k", pa.int32()), ("v", pa.int32()), ("w", pa.int32())])
DEDUPLICATE, PARTIAL, SUM, FIRST = "deduplicate", "partial-update", "aggregation", "first-row"


def create(engine: str = DEDUPLICATE, options: Mapping[str, str] | None = None, where: str = "") -> lakebed.Table:
    """A table whose key is `k` and whose partitions are by `p`, three keys to a bucket."""
    lake = lakebed.connect(where or f"memory://{uuid4()}")
    more = {"fields.default-aggregate-function": "sum"} if engine == SUM else {}
    return lake.create_table(
        "t",
        {"p": "INT", "k": "INT", "v": "INT", "w": "INT"},
        primary_key=["k"],
        partition_by=["p"],
        options={"dynamic-bucket.target-row-num": "3", "merge-engine": engine, **more, **(options or {})},
    )


def batch(rows: Sequence[Row], kinds: Sequence[str] | None = None) -> pa.Table:
    """Rows for the table, with their kinds if given."""
    data = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)
    return data if kinds is None else data.append_column("_kind", pa.array(kinds, pa.string()))


def write(table: lakebed.Table, rows: Sequence[Row], **arguments: Any) -> None:
    """One commit."""
    table.write(batch(rows), **arguments)


def shown(table: lakebed.Table) -> list[tuple[Any, ...]]:
    """All rows in order of their keys."""
    return [tuple(row.values()) for row in table.to_arrow().sort_by("k").to_pylist()]


def stored(table: lakebed.Table, since: int) -> list[tuple[Any, ...]]:
    """Rows of commits after a snapshot as they were written."""
    return [tuple(row.values()) for row in table.changes(since=since).to_pylist()]


def test_b_10_deduplicate_deletes_the_old_row() -> None:
    """The old partition gets a delete with the values of the new row, the new partition the row."""
    table = create()
    write(table, [(1, 1, 10, 0)])
    write(table, [(2, 1, 20, 0)])
    assert sorted(stored(table, since=1)) == [("+I", 2, 1, 20, 0), ("-D", 1, 1, 20, 0)]
    assert shown(table) == [(2, 1, 20, 0)]


@pytest.mark.parametrize("engine", [PARTIAL, SUM])
def test_b_11_merging_engines_stay_in_the_old_partition(engine: str) -> None:
    """The row is written to the partition where its key is, whatever it says itself."""
    table = create(engine)
    write(table, [(1, 1, 10, 1)])
    write(table, [(2, 1, 20, None)])
    assert {table._opened.current().partition_values(entry.partition)["p"].as_py() for entry in live(table)} == {1}
    assert shown(table) == [(1, 1, 20 if engine == PARTIAL else 30, 1)]


def test_b_12_first_row_leaves_the_new_row_out() -> None:
    """The key has its row already."""
    table = create(FIRST)
    write(table, [(1, 1, 10, 0)])
    assert table.write(batch([(2, 1, 20, 0)])) is None
    assert shown(table) == [(1, 1, 10, 0)]


@pytest.mark.parametrize("engine", [DEDUPLICATE, PARTIAL, SUM, FIRST])
def test_b_13_in_its_own_partition_a_key_is_written_plainly(engine: str) -> None:
    """A row of the same partition goes to the bucket where its key is."""
    table = create(engine)
    write(table, [(1, key, key, 0) for key in range(8)])
    write(table, [(1, 7, 1, 1), (1, 0, 1, 1)])
    assert len(shown(table)) == 8
    assert {entry.bucket for entry in live(table)} == {0, 1, 2}
    assert keys_in_buckets(table) == 8


def live(table: lakebed.Table) -> list[Any]:
    """Live manifest entries."""
    context = table._opened.current()
    return live_files(context.stores, context.stores.snapshots.latest())


def keys_in_buckets(table: lakebed.Table) -> int:
    """How many pairs of key and bucket there are among all files."""
    found: set[tuple[bytes, int, int]] = set()
    context = table._opened.current()
    reader = SplitReader(context, context.schema.fields)
    for split in plan_scan(context, table.latest_snapshot(), None).splits:
        for rows in reader.read(split):
            found |= {(split.partition, split.bucket, key) for key in rows.column("k").to_pylist()}
    return len(found)


def test_n_36_a_key_moves_many_times_in_one_batch() -> None:
    """There and back, with rows that stay in between: only the last place shows, before and after compaction."""
    table = create()
    write(table, [(1, 1, 0, 0), (1, 2, 0, 0)])
    write(table, [(2, 1, 1, 0), (3, 1, 2, 0), (3, 1, 3, 0), (1, 1, 4, 0), (2, 1, 5, 0), (2, 2, 6, 0), (1, 2, 7, 0)])
    assert shown(table) == [(2, 1, 5, 0), (1, 2, 7, 0)]
    table.compact(full=True)
    assert shown(table) == [(2, 1, 5, 0), (1, 2, 7, 0)]
    write(table, [(3, 2, 8, 0)])
    assert shown(table) == [(2, 1, 5, 0), (3, 2, 8, 0)]


def test_n_36_partial_update_across_partitions_in_one_batch() -> None:
    """The first row of a new key decides its partition; later rows fill in what it lacks."""
    table = create(PARTIAL)
    write(table, [(1, 3, 1, 1), (2, 3, 2, 3), (1, 3, 3, 3), (2, 3, 4, 4)])
    write(table, [(3, 3, None, 5)])
    assert shown(table) == [(1, 3, 4, 5)]


def test_a_deleted_key_may_come_back_elsewhere() -> None:
    """A delete finds its key in whatever partition it is, and frees it."""
    table = create()
    write(table, [(1, key, key, 0) for key in range(1, 6)])
    table.write(batch([(9, 1, 1, 0)], ["-D"]), row_kind="_kind")
    assert [row[1] for row in shown(table)] == [2, 3, 4, 5]
    write(table, [(2, 1, 2, 0), (2, 2, 3, 0)])
    assert shown(table) == [(2, 1, 2, 0), (2, 2, 3, 0), (1, 3, 3, 0), (1, 4, 4, 0), (1, 5, 5, 0)]


def test_sequence_field_is_refused() -> None:
    """Rows of a key in two partitions are never compared, so no column can order them."""
    with pytest.raises(InvalidOption, match=r"sequence\.field"):
        create(options={"sequence.field": "v"})


def test_ignored_deletes_are_refused() -> None:
    """A key that moves is deleted where it was: if deletes are ignored it would be there twice."""
    with pytest.raises(InvalidOption, match="ignore-delete"):
        create(options={"ignore-delete": "true"})
    table = create(PARTIAL, {"ignore-delete": "true"})
    write(table, [(1, 1, 10, 0)])
    write(table, [(2, 1, 20, None)])
    assert shown(table) == [(1, 1, 20, 0)]


def test_a_second_writer_is_refused() -> None:
    """Whoever wrote meanwhile may have put the same key elsewhere; compactions are no matter."""
    table = create()
    write(table, [(1, 1, 0, 0)])
    writer, other = table.writer(), table.writer()
    writer.write(batch([(1, 2, 0, 0)]))
    other.write(batch([(5, 5, 0, 0)]))
    table.compact(full=True)
    writer.commit()
    with pytest.raises(CommitConflict, match="one writer at a time"):
        other.commit()
    assert [row[1] for row in shown(table)] == [1, 2]


def test_whole_overwrites_begin_anew() -> None:
    """What is replaced is no place for a key any more."""
    table = create()
    write(table, [(1, 1, 0, 0), (2, 2, 0, 0)])
    write(table, [(2, 1, 1, 0), (3, 1, 2, 0)], overwrite={})
    assert shown(table) == [(3, 1, 2, 0)]
    write(table, [(1, 1, 3, 0), (1, 2, 3, 0)])
    assert shown(table) == [(1, 1, 3, 0), (1, 2, 3, 0)]
    table.truncate()
    write(table, [(7, 1, 4, 0)])
    assert shown(table) == [(7, 1, 4, 0)]


def test_overwrites_of_some_partitions() -> None:
    """They may not bring keys that are in partitions which stay."""
    table = create()
    write(table, [(1, 1, 0, 0), (1, 2, 0, 0), (2, 3, 0, 0)])
    write(table, [(1, 2, 1, 0), (1, 4, 1, 0)], overwrite=True)
    assert shown(table) == [(1, 2, 1, 0), (2, 3, 0, 0), (1, 4, 1, 0)]
    with pytest.raises(InvalidData, match="also in partition p=2"):
        write(table, [(1, 3, 2, 0)], overwrite={"p": 1})
    with table.writer(overwrite={"p": 1}) as writer:
        with pytest.raises(InvalidData, match="belongs to p=2"):
            writer.write(batch([(2, 9, 0, 0)]))
        writer.write(batch([(1, 9, 0, 0)]))
    assert shown(table) == [(2, 3, 0, 0), (1, 9, 0, 0)]


def test_an_overwrite_that_others_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that somebody brings to a partition that stays, between look and commit, is not there twice ever after."""
    table, run = create(), WriteCommit.run
    write(table, [(1, 1, 0, 0), (2, 2, 0, 0)])
    came: list[Row] = [(2, 7, 1, 0)]

    def others_first(commit: WriteCommit, messages: list[CommitMessage]) -> Any:
        if came:
            write(table, [came.pop()])
        return run(commit, messages)

    monkeypatch.setattr(WriteCommit, "run", others_first)
    with pytest.raises(CommitConflict, match="another job wrote"):
        write(table, [(1, 7, 2, 0)], overwrite={"p": 1})
    assert shown(table) == [(1, 1, 0, 0), (2, 2, 0, 0), (2, 7, 1, 0)]
    came.append((2, 7, 3, 0))
    write(table, [(1, 7, 4, 0)], overwrite={})
    assert shown(table) == [(1, 7, 4, 0)]
    assert not table.check(deep=True)


def test_keys_are_forgotten_after_their_time() -> None:
    """With `cross-partition-upsert.index-ttl` old files are not looked at: their keys may be there twice."""
    where, clock = f"memory://{uuid4()}", FixedClock(1_700_000_000_000)
    table = create(options={"cross-partition-upsert.index-ttl": "1 h"}, where=where)
    context = table._opened.context
    object.__setattr__(context, "clock", clock)
    write(table, [(1, 1, 0, 0)])
    clock.sleep_ms(30 * 60_000)
    context.memory.take(KEY_INDEX)
    write(table, [(2, 1, 1, 0)])
    assert shown(table) == [(2, 1, 1, 0)]
    table.compact(full=True)
    clock.sleep_ms(2 * 3600_000)
    context.memory.take(KEY_INDEX)
    write(table, [(3, 1, 2, 0)])
    assert sorted(shown(table)) == [(2, 1, 1, 0), (3, 1, 2, 0)]


def test_a_handle_reads_the_keys_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next write of a handle knows the keys still; what somebody else wrote in between it reads alone."""
    where = f"memory://{uuid4()}"
    table = create(where=where)
    write(table, [(1, 1, 0, 0)])
    loads: list[int] = []
    load = CrossPartition._loaded

    def noted(self: CrossPartition, snapshot: Any) -> Any:
        loads.append(snapshot.id)
        return load(self, snapshot)

    monkeypatch.setattr(CrossPartition, "_loaded", noted)
    write(table, [(2, 1, 1, 0)])
    table.compact(full=True)
    write(table, [(3, 1, 2, 0), (1, 2, 0, 0)])
    assert loads == []
    write(lakebed.connect(where).table("t"), [(4, 1, 3, 0)])
    write(table, [(5, 1, 4, 0)])
    assert len(loads) == 1
    writer = table.writer()
    writer.write(batch([(6, 1, 5, 0)]))
    writer.abort()
    write(table, [(7, 1, 6, 0)])
    assert len(loads) == 2
    assert shown(table) == [(7, 1, 6, 0), (1, 2, 0, 0)]


def test_several_writers_share_the_keys() -> None:
    """Each with the keys of its share: they find what any of them has placed, and hand out buckets of their own."""
    table = create()
    write(table, [(key % 2, key, 0, 0) for key in range(30)])
    context = table._opened.current()
    rows = batch([(key % 3, key, 1, 0) for key in range(50)]).combine_chunks().to_batches()[0]
    shares = np.abs(hash_rows([rows.column("k")], [context.schema.field("k").type]).astype(np.int64)) % 3
    places: dict[int, int] = {}
    for number in range(3):
        crossing = CrossPartition(context, context.stores.snapshots.latest, WritePart(number, 3))
        mine = rows.filter(pa.array(shares == number))
        placed = crossing.place(mine, pa.array([0] * mine.num_rows, pa.int8()))
        deletes = np.asarray(placed.kinds) == 3
        parts, keys = placed.rows.column("p").to_numpy(), placed.rows.column("k").to_numpy()
        assert sorted(keys[deletes].tolist()) == [k for k in mine.column("k").to_pylist() if k < 30 and k % 2 != k % 3]
        assert (parts[deletes] == keys[deletes] % 2).all()
        is_new = ~deletes & ((keys >= 30) | (keys % 2 != keys % 3))
        assert set((placed.buckets[is_new] % 3).tolist()) == {number}
        places |= dict(zip(keys[~deletes].tolist(), placed.buckets[~deletes].tolist(), strict=True))
    assert sorted(places) == list(range(50))


def test_new_rows_of_first_row_tables_count_before_compaction() -> None:
    """Level 0 of a first-row table is not shown yet, and its keys are taken all the same."""
    where = f"memory://{uuid4()}"
    table = create(FIRST, {"write-only": "true"}, where)
    write(table, [(1, 1, 0, 0)])
    write(lakebed.connect(where).table("t"), [(2, 1, 1, 0), (2, 2, 1, 0)])
    table.compact(full=True)
    assert shown(table) == [(1, 1, 0, 0), (2, 2, 1, 0)]


class CrossPartitionMachine(RuleBasedStateMachine):
    """Random rows whose keys move between partitions, beside a dictionary; handles come and go."""

    @initialize(
        engine=st.sampled_from([DEDUPLICATE, PARTIAL, SUM, FIRST]),
        trigger=st.sampled_from(["2", "5"]),
        most=st.sampled_from(["-1", "2"]),
    )
    def create(self, engine: str, trigger: str, most: str) -> None:
        self.where = f"memory://{uuid4()}"
        options = {"num-sorted-run.compaction-trigger": trigger, "dynamic-bucket.max-buckets": most}
        self.engine, self.table = engine, create(engine, options, self.where)
        self.rows: dict[int, tuple[int, int, int | None, int | None]] = {}

    _rows = st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 12), st.none() | st.integers(0, 9), st.none() | st.integers(0, 9)),
        min_size=1,
        max_size=15,
    )

    @rule(rows=_rows)
    def write(self, rows: list[tuple[int, int, int | None, int | None]]) -> None:
        write(self.table, rows)
        for part, key, *values in rows:
            old = self.rows.get(key)
            if old is None or self.engine == DEDUPLICATE:
                self.rows[key] = (part, key, *values)  # type: ignore[assignment]
            elif self.engine == PARTIAL:
                merged = [before if value is None else value for before, value in zip(old[2:], values, strict=True)]
                self.rows[key] = (old[0], key, *merged)  # type: ignore[assignment]
            elif self.engine == SUM:
                pairs = zip(old[2:], values, strict=True)
                sums = [a if b is None else b if a is None else a + b for a, b in pairs]
                self.rows[key] = (old[0], key, *sums)  # type: ignore[assignment]

    @rule(rows=_rows)
    def delete(self, rows: list[tuple[int, int, int | None, int | None]]) -> None:
        if self.engine == DEDUPLICATE:
            self.table.write(batch(rows, ["-D"] * len(rows)), row_kind="_kind")
            self.rows = {key: row for key, row in self.rows.items() if key not in {gone[1] for gone in rows}}

    @rule(full=st.booleans())
    def compact(self, full: bool) -> None:
        self.table.compact(full=full)

    @rule()
    def restart(self) -> None:
        self.table = lakebed.connect(self.where).table("t")

    @invariant()
    def every_key_once(self) -> None:
        if hasattr(self, "table"):
            if self.engine == FIRST:
                self.table.compact(full=True)
            assert shown(self.table) == [self.rows[key] for key in sorted(self.rows)]


def test_random_histories() -> None:
    """Whatever rows come, every key is in one partition, with the row that its engine asks for."""
    run_state_machine_as_test(
        CrossPartitionMachine,
        settings=settings(
            max_examples=25, stateful_step_count=10, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
def test_where_a_key_leaves_is_told_before_where_it_comes_to(producer: str) -> None:
    """Who applies the changes of commits in their order has the table, however keys move to and fro in one of them."""
    chance = np.random.default_rng(7)
    table = create(options={"changelog-producer": producer})
    rows: dict[int, tuple[Any, ...]] = {}
    since = 0
    for _ in range(12):
        moves = [(int(chance.integers(3)), int(chance.integers(6)), int(chance.integers(99)), 0) for _ in range(9)]
        write(table, moves)
        for kind, *row in stored(table, since):
            if kind in ("+I", "+U"):
                rows[row[1]] = tuple(row)
            else:
                rows.pop(row[1], None)
        since = table.latest_snapshot().id  # type: ignore[union-attr]
        assert sorted(rows.values(), key=lambda row: row[1]) == shown(table)


@pytest.mark.parametrize("full", [True, False])
def test_both_halves_of_a_move_become_visible_at_once(full: bool) -> None:
    """Where new files are hidden until compacted, a compaction of one partition shows the moves of others too."""
    table = create(options={"deletion-vectors.enabled": "true", "write-only": "true"})
    write(table, [(1, 1, 10, 0), (1, 2, 10, 0)])
    table.compact(full=True)
    write(table, [(2, 1, 20, 0)])
    assert shown(table) == [(1, 1, 10, 0), (1, 2, 10, 0)]
    table.compact(full=full, where=[("p", "=", 2)])
    assert shown(table) == [(2, 1, 20, 0), (1, 2, 10, 0)]
    write(table, [(1, 1, 30, 0)])
    table.with_options({"write-only": "false"}).write(batch([(3, 9, 1, 0)]))
    assert shown(table) == [(1, 1, 30, 0), (1, 2, 10, 0), (3, 9, 1, 0)]


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_an_overwrite_is_told_after_what_its_keys_have_left(producer: str) -> None:
    """A key that left a partition unnoticed, and comes to another with an overwrite, is told to leave first."""
    table = create(options={"changelog-producer": producer, "write-only": "true"})
    write(table, [(1, 1, 10, 0), (3, 3, 30, 0)])
    table.compact(full=True)
    table.write(batch([(2, 1, 20, 0)], ["-D"]), row_kind="_kind")
    since = table.latest_snapshot().id  # type: ignore[union-attr]
    write(table, [(2, 1, 21, 0)], overwrite={"p": 2})
    write(table, [(3, 4, 40, 0)], overwrite={"p": 3})
    assert shown(table) == [(2, 1, 21, 0), (3, 4, 40, 0)]
    table.compact(full=True)
    told = stored(table, since)
    assert sorted(told) == [("+I", 2, 1, 21, 0), ("+I", 3, 4, 40, 0), ("-D", 1, 1, 10, 0), ("-D", 3, 3, 30, 0)]
    assert told.index(("-D", 1, 1, 10, 0)) < told.index(("+I", 2, 1, 21, 0))


@pytest.mark.parametrize("engine", [DEDUPLICATE, PARTIAL])
def test_an_overwrite_is_shown_with_what_its_keys_have_left(engine: str) -> None:
    """Where new files are hidden until compacted, a key of an overwrite is never there twice."""
    removes = {"partial-update.remove-record-on-delete": "true"} if engine == PARTIAL else {}
    table = create(engine, {"deletion-vectors.enabled": "true", "write-only": "true", **removes})
    write(table, [(1, 1, 10, 0)])
    table.compact(full=True)
    table.write(batch([(1, 1, 10, 0)], ["-D"]), row_kind="_kind")
    write(table, [(2, 1, 20, 0)], overwrite={"p": 2})
    assert shown(table) == [(1, 1, 10, 0)]
    table.compact(full=True)
    assert shown(table) == [(2, 1, 20, 0)]


def test_an_overwrite_of_a_whole_table_waits_for_nothing() -> None:
    """Where no partition is left that a key may have been in, the rows of an overwrite are told and shown at once."""
    table = create(options={"changelog-producer": "lookup", "write-only": "true", "deletion-vectors.enabled": "true"})
    write(table, [(1, 1, 10, 0)])
    table.compact(full=True)
    write(table, [(2, 1, 20, 0)])
    since = table.latest_snapshot().id  # type: ignore[union-attr]
    write(table, [(3, 1, 30, 0)], overwrite={})
    assert shown(table) == [(3, 1, 30, 0)]
    assert stored(table, since) == [("-D", 1, 1, 10, 0), ("+I", 3, 1, 30, 0)]


def test_an_overwrite_that_waits_is_compacted_as_any_write() -> None:
    """Whoever compacts after a commit shows an overwrite at once, with all that waited elsewhere."""
    table = create(options={"changelog-producer": "lookup", "deletion-vectors.enabled": "true"})
    write(table.with_options({"write-only": "true"}), [(1, 1, 10, 0), (1, 2, 10, 0)])
    assert shown(table) == []
    write(table, [(2, 3, 30, 0)], overwrite={"p": 2})
    assert shown(table) == [(1, 1, 10, 0), (1, 2, 10, 0), (2, 3, 30, 0)]
    assert sorted(stored(table, 0)) == [("+I", *row) for row in shown(table)]


def test_first_rows_of_an_overwrite_are_shown_at_once() -> None:
    """First rows never leave their partition, so an overwrite of another one need not wait."""
    table = create(FIRST, {"write-only": "true"})
    write(table, [(1, 1, 10, 0)])
    write(table, [(2, 2, 20, 0)], overwrite={"p": 2})
    assert shown(table) == [(2, 2, 20, 0)]
