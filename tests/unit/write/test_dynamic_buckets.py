"""Primary-key tables that find their buckets themselves, which is what a table does unless told otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import lakebed
from lakebed.bucket.dynamic import KnownHashes
from lakebed.errors import CommitConflict, InvalidData, InvalidOption
from lakebed.metadata.index_manifest import HASH_INDEX
from lakebed.testing.key_layout import KeyLayout

Row = Sequence[Any]
SCHEMA = pa.schema([("p", pa.int32()), ("k", pa.int32()), ("v", pa.string())])


def create(options: Mapping[str, str] | None = None, where: str | None = None, **more: Any) -> lakebed.Table:
    """A table with a key, partitioned by `p`, with two keys to a bucket unless options say otherwise."""
    lake = lakebed.connect(where or f"memory://{uuid4()}")
    arguments = {"primary_key": ["p", "k"], "partition_by": ["p"], **more}
    wanted = {"dynamic-bucket.target-row-num": "2", **(options or {})}
    return lake.create_table("t", {"p": "INT", "k": "INT", "v": "STRING"}, options=wanted, **arguments)


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


def buckets(table: lakebed.Table) -> dict[int, int]:
    """How many keys the index holds for each bucket of all partitions."""
    counts: dict[int, int] = {}
    for (_, bucket), hashes in KeyLayout.of(table).index.items():
        counts[bucket] = counts.get(bucket, 0) + len(hashes)
    return counts


def index_files(root: Path) -> set[str]:
    """Names of all index files on disk."""
    return {path.name for path in root.rglob("index/*")}


def test_n_33_keys_fill_buckets_and_stay() -> None:
    """The default: keys fill buckets, later ones open new buckets, and an update finds the bucket of its key."""
    table = create()
    assert "bucket" not in table.options
    write(table, [(1, key, "a") for key in (50, 40, 30, 20, 10)])
    assert buckets(table) == {0: 2, 1: 2, 2: 1}
    write(table, [(1, 50, "b"), (1, 20, "b"), (1, 60, "b")])
    assert buckets(table) == {0: 2, 1: 2, 2: 2}
    assert shown(table) == [
        (1, 10, "a"), (1, 20, "b"), (1, 30, "a"), (1, 40, "a"), (1, 50, "b"), (1, 60, "b"),
    ]  # fmt: skip
    KeyLayout.of(table).check()


def test_n_35_each_partition_has_buckets_of_its_own() -> None:
    """The same key has one place in every partition, and a commit rewrites the index of what it adds keys to only."""
    table = create()
    write(table, [(part, key, "a") for part in (1, 2) for key in range(3)])
    before = hash_files(table)
    assert {bucket for _, bucket in before} == {0, 1}
    write(table, [(1, 7, "b"), (2, 0, "b")])
    after = hash_files(table)
    changed = [place for place in after if after[place] != before[place]]
    assert [bucket for _, bucket in changed] == [1]
    KeyLayout.of(table).check()


def hash_files(table: lakebed.Table) -> dict[tuple[bytes, int], str]:
    """Names of index files by partition and bucket."""
    context = table._opened.current()
    snapshot = context.stores.snapshots.latest()
    if snapshot is None or snapshot.index_manifest is None:
        return {}
    entries = context.stores.index_manifests.read(snapshot.index_manifest)
    return {(entry.partition, entry.bucket): entry.file_name for entry in entries if entry.index_type == HASH_INDEX}


def test_updates_alone_leave_the_index_as_it_is() -> None:
    """A commit of known keys carries the index manifest over."""
    table = create()
    write(table, [(1, key, "a") for key in range(5)])
    before = table.latest_snapshot()
    write(table, [(1, key, "b") for key in range(5)])
    after = table.latest_snapshot()
    assert before is not None
    assert after is not None
    assert after.id > before.id
    assert after.index_manifest == before.index_manifest is not None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"dynamic-bucket.initial-buckets": "3", "dynamic-bucket.assigner-parallelism": "6"}, {0, 1, 2}),
        ({"dynamic-bucket.initial-buckets": "3"}, {0, 1, 2}),
        ({"dynamic-bucket.assigner-parallelism": "3"}, {0, 1, 2}),
        ({"dynamic-bucket.max-buckets": "2", "dynamic-bucket.target-row-num": "1"}, {0, 1}),
        ({"dynamic-bucket.target-row-num": "1000"}, {0}),
    ],
    ids=str,
)
def test_options_say_how_many_buckets(options: dict[str, str], expected: set[int]) -> None:
    """Initial buckets, the most buckets and the rows of a bucket come from the table's options."""
    table = create({"dynamic-bucket.target-row-num": "50", **options})
    write(table, [(1, key, "a") for key in range(40)])
    write(table, [(1, key, "b") for key in range(20, 60)])
    assert set(buckets(table)) == expected
    assert len(shown(table)) == 60
    KeyLayout.of(table).check()


def test_no_bucket_at_all_is_refused() -> None:
    """A limit of 0 buckets is refused when the table is made."""
    with pytest.raises(InvalidOption, match="max-buckets"):
        create({"dynamic-bucket.max-buckets": "0"})


def test_deletes_leave_the_key_its_bucket() -> None:
    """A key that was deleted, and even compacted away, gets its old bucket when it returns."""
    table = create()
    write(table, [(1, key, "a") for key in range(4)])
    table.write(batch([(1, 0, "a"), (1, 1, "a")], ["-D", "-D"]), row_kind="_kind")
    table.compact(full=True)
    assert shown(table) == [(1, 2, "a"), (1, 3, "a")]
    write(table, [(1, 8, "new"), (1, 0, "back")])
    assert buckets(table) == {0: 2, 1: 2, 2: 1}
    assert shown(table) == [(1, 0, "back"), (1, 2, "a"), (1, 3, "a"), (1, 8, "new")]
    KeyLayout.of(table).check()


def test_an_overwrite_begins_anew(tmp_path: Path) -> None:
    """Replaced partitions forget their keys, others keep theirs, and expiry removes the old index files."""
    table = create(where=str(tmp_path))
    write(table, [(part, key, "a") for part in (1, 2) for key in range(5)])
    write(table, [(1, 4, "new")], overwrite=True)
    layout = KeyLayout.of(table)
    assert sorted(len(hashes) for hashes in layout.index.values()) == [1, 1, 2, 2]
    layout.check()
    write(table, [(1, 0, "later"), (2, 9, "later")])
    KeyLayout.of(table).check()
    assert len(shown(table)) == 2 + 6
    table.expire_snapshots(retain_max=1)
    assert index_files(tmp_path) == set(hash_files(table).values())
    write(table, [(2, 1, "only")], overwrite={"p": 2})
    assert shown(table) == [(1, 0, "later"), (1, 4, "new"), (2, 1, "only")]
    table.truncate()
    assert hash_files(table) == {}
    table.expire_snapshots(retain_max=1)
    assert index_files(tmp_path) == set()
    write(table, [(1, 0, "again")])
    assert shown(table) == [(1, 0, "again")]
    KeyLayout.of(table).check()


def test_n_34_a_second_writer_of_a_partition_is_refused(tmp_path: Path) -> None:
    """Two writers that both bring new keys: the later one must start again, and leaves nothing behind."""
    table = create(where=str(tmp_path))
    write(table, [(1, 0, "a"), (2, 0, "a")])
    first, second = table.writer(), lakebed.connect(str(tmp_path)).table("t").writer()
    first.write(batch([(1, 1, "first")]))
    second.write(batch([(1, 1, "second"), (1, 2, "second")]))
    first.commit()
    before = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    with pytest.raises(CommitConflict, match=r"partition p=1.*another job gave keys") as error:
        second.commit()
    assert "one writer at a time" in str(error.value)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == before
    assert shown(table) == [(1, 0, "a"), (1, 1, "first"), (2, 0, "a")]


def test_n_34_writers_of_two_partitions_both_commit() -> None:
    """New keys elsewhere, updates of known keys and compactions are no conflict."""
    table = create()
    write(table, [(1, 0, "a"), (2, 0, "a")])
    writers = [table.writer() for _ in range(3)]
    writers[0].write(batch([(1, 1, "new")]))
    writers[1].write(batch([(2, 1, "new"), (2, 0, "b")]))
    writers[2].write(batch([(3, 0, "new")]))
    table.compact(full=True)
    write(table, [(1, 0, "updated"), (2, 0, "updated")])
    for writer in writers:
        writer.commit()
    assert shown(table) == [(1, 0, "updated"), (1, 1, "new"), (2, 0, "b"), (2, 1, "new"), (3, 0, "new")]
    KeyLayout.of(table).check()


def test_n_34_known_keys_after_an_overwrite_are_refused() -> None:
    """Rows of known keys would land in buckets that the new index does not know."""
    table = create()
    write(table, [(1, key, "a") for key in range(5)])
    writer = table.writer()
    writer.write(batch([(1, 4, "late")]))
    write(table, [(1, 4, "new")], overwrite=True)
    with pytest.raises(CommitConflict, match="another job"):
        writer.commit()


def test_a_base_that_has_expired_is_refused() -> None:
    """Without the state it started from, a write can not tell whether it was the only one."""
    table = create()
    write(table, [(1, 0, "a")])
    writer = table.writer()
    writer.write(batch([(2, 0, "late")]))
    write(table, [(1, 1, "a")])
    table.expire_snapshots(retain_max=1)
    with pytest.raises(CommitConflict, match="has expired"):
        writer.commit()


def test_an_aborted_write_is_forgotten(tmp_path: Path) -> None:
    """Keys of a write that came to nothing are new to the next one, although the handle remembers buckets."""
    table = create(where=str(tmp_path))
    write(table, [(1, 0, "a")])
    writer = table.writer()
    writer.write(batch([(1, 1, "lost"), (1, 2, "lost")]))
    writer.abort()
    assert index_files(tmp_path) == set(hash_files(table).values())
    write(table, [(1, 2, "kept")])
    assert buckets(table) == {0: 2}
    KeyLayout.of(table).check()


def test_a_handle_reads_a_partitions_index_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next write of a handle knows the keys still, unless somebody else wrote in between."""
    where = f"memory://{uuid4()}"
    table = create(where=where)
    write(table, [(1, key, "a") for key in range(9)])
    loads: list[int] = []
    load = KnownHashes.load

    def noted(count: int, *rest: Any) -> KnownHashes:
        loads.append(count)
        return load(count, *rest)

    monkeypatch.setattr(KnownHashes, "load", staticmethod(noted))
    write(table, [(1, 3, "b"), (1, 20, "b")])
    write(table, [(1, 21, "b")])
    assert loads == []
    write(lakebed.connect(where).table("t"), [(1, 22, "c")])
    assert loads == [11]
    write(table, [(1, 23, "d"), (2, 0, "d")])
    assert loads == [11, 12, 0]
    assert len(shown(table)) == 14
    KeyLayout.of(table).check()


def test_a_refused_batch_leaves_no_false_memory() -> None:
    """Keys of rows that were refused are new again: the index never claims them as known."""
    table = create()
    write(table, [(1, 0, "a")])
    with table.writer(overwrite={"p": 1}) as writer:
        writer.write(batch([(1, 5, "a")]))
        with pytest.raises(InvalidData):
            writer.write(batch([(1, 6, "a"), (2, 7, "a")]))
    write(table, [(2, 7, "b"), (1, 6, "b")])
    assert shown(table) == [(1, 5, "a"), (1, 6, "b"), (2, 7, "b")]
    KeyLayout.of(table).check()


def test_tables_without_partitions() -> None:
    """A table without partitions has one index for all its keys."""
    table = create(primary_key=["k"], partition_by=[])
    write(table, [(0, key, "a") for key in range(7)])
    write(table, [(1, key, "b") for key in range(5, 9)])
    assert buckets(table) == {0: 2, 1: 2, 2: 2, 3: 2, 4: 1}
    assert len(shown(table)) == 9
    KeyLayout.of(table).check()


def test_a_difference_finds_keys_that_changed_their_bucket() -> None:
    """An overwrite gives keys new buckets; what is compared are keys, wherever they are."""
    table = create()
    write(table, [(1, key, "old") for key in range(5)] + [(2, 0, "old")])
    write(table, [(1, 4, "new"), (1, 3, "old"), (1, 9, "new")], overwrite=True)
    found = sorted(tuple(row.values()) for row in table.diff(1, 2).to_pylist())
    assert found == [
        ("+I", 1, 9, "new"), ("+U", 1, 4, "new"),
        ("-D", 1, 0, "old"), ("-D", 1, 1, "old"), ("-D", 1, 2, "old"), ("-U", 1, 4, "old"),
    ]  # fmt: skip


class DynamicBucketMachine(RuleBasedStateMachine):
    """Random writes, deletes, overwrites and compactions through two handles, beside a dictionary of rows."""

    @initialize(
        room=st.integers(1, 6),
        most=st.sampled_from(["-1", "1", "3"]),
        parallelism=st.sampled_from(["1", "2", "3"]),
        trigger=st.sampled_from(["2", "5"]),
    )
    def create(self, room: int, most: str, parallelism: str, trigger: str) -> None:
        where = f"memory://{uuid4()}"
        self.table = create(
            {
                "dynamic-bucket.target-row-num": str(room),
                "dynamic-bucket.max-buckets": most,
                "dynamic-bucket.assigner-parallelism": parallelism,
                "num-sorted-run.compaction-trigger": trigger,
            },
            where,
        )
        self.handles = [self.table, lakebed.connect(where).table("t")]
        self.limit = room if most == "-1" else None
        self.rows: dict[tuple[int, int], tuple[int, int, str]] = {}

    _rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 25), st.sampled_from("abc")), min_size=1, max_size=12)

    @rule(rows=_rows, handle=st.integers(0, 1))
    def write(self, rows: list[tuple[int, int, str]], handle: int) -> None:
        write(self.handles[handle], rows)
        self.rows |= {row[:2]: row for row in rows}

    @rule(rows=_rows, handle=st.integers(0, 1))
    def delete(self, rows: list[tuple[int, int, str]], handle: int) -> None:
        self.handles[handle].write(batch(rows, ["-D"] * len(rows)), row_kind="_kind")
        self.rows = {key: row for key, row in self.rows.items() if key not in {gone[:2] for gone in rows}}

    @rule(rows=_rows, handle=st.integers(0, 1))
    def overwrite(self, rows: list[tuple[int, int, str]], handle: int) -> None:
        write(self.handles[handle], rows, overwrite=True)
        gone = {row[0] for row in rows}
        self.rows = {key: row for key, row in self.rows.items() if key[0] not in gone} | {row[:2]: row for row in rows}

    @rule(lost=_rows, handle=st.integers(0, 1))
    def abort(self, lost: list[tuple[int, int, str]], handle: int) -> None:
        writer = self.handles[handle].writer()
        writer.write(batch(lost))
        writer.abort()

    @rule(full=st.booleans())
    def compact(self, full: bool) -> None:
        self.table.compact(full=full)

    @rule()
    def expire(self) -> None:
        self.table.expire_snapshots(retain_max=1)

    @invariant()
    def same_rows_and_no_key_twice(self) -> None:
        if not hasattr(self, "table"):
            return
        assert shown(self.table) == [self.rows[key] for key in sorted(self.rows)]
        layout = KeyLayout.of(self.table)
        layout.check()
        if self.limit is not None:
            assert all(len(hashes) <= self.limit for hashes in layout.index.values())


def test_random_histories() -> None:
    """Whatever happens to a table, no key is in two buckets, the index knows every key, no bucket is overfull."""
    run_state_machine_as_test(
        DynamicBucketMachine,
        settings=settings(
            max_examples=25, stateful_step_count=12, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )


def test_an_index_that_expires_under_an_open_writer_is_a_conflict() -> None:
    """The index files that a writer began with may be gone when it commits: it is told to write again."""
    lake = lakebed.connect(f"memory://{uuid4()}")
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "2"}
    table = lake.create_table("t", {"k": "INT NOT NULL"}, primary_key=["k"], options=options)

    def batch(*keys: int) -> pa.Table:
        return pa.table({"k": pa.array(keys, pa.int32())})

    table.write(batch(1, 2, 6))
    writer = table.writer()
    writer.write(batch(3, 2))
    table.write(batch(4), overwrite={})
    table.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(CommitConflict, match="has expired"):
        writer.commit()


def test_a_write_that_began_before_a_rollback() -> None:
    """Its keys have places in an index that is gone, even if another snapshot has the same id now: it is refused."""
    lake = lakebed.connect("memory://write-across-rollback")
    table = lake.create_table("t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options={"write-only": "true"})

    def rows(*keys: int) -> pa.Table:
        return pa.table({"k": pa.array(keys, pa.int32()), "v": pa.array(keys, pa.int32())})

    table.write(rows(6))
    table.write(rows(1))
    writer = table.writer()
    writer.write(rows(1))
    other = lake.table("t")
    other.rollback_to(1)
    other.write(rows(5))
    with pytest.raises(lakebed.errors.CommitConflict, match="snapshot 2, which this write began with"):
        writer.commit()
    other.write(rows(1))
    assert sorted(table.to_arrow().column("k").to_pylist()) == [1, 5, 6]
    assert table.check() == []
