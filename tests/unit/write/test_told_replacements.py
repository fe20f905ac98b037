"""Commits that replace files tell what they change: who replays a complete changelog always has the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import lakebed
from lakebed.fileio.local import LocalFileIO
from lakebed.metadata.entries import changelog_entries
from lakebed.write import told_replacements

COLUMNS = {"p": "INT", "k": "INT", "v": "INT"}
PRODUCERS = ("lookup", "full-compaction")


def create(options: Mapping[str, str], key: tuple[str, ...] = ("p", "k")) -> lakebed.Table:
    """A partitioned table."""
    lake = lakebed.connect(f"memory://{uuid4()}")
    return lake.create_table("t", COLUMNS, primary_key=list(key), partition_by=["p"], options=dict(options))


def batch(*rows: tuple[int, int, int]) -> pa.Table:
    """Rows to write."""
    return pa.table([pa.array(column, pa.int32()) for column in zip(*rows, strict=True)], names=list(COLUMNS))


def replayed(table: lakebed.Table) -> list[tuple[int, ...]]:
    """What a reader has who was told everything from the first snapshot on; every event must fit what is there."""
    rows: dict[tuple[int, ...], tuple[int, ...]] = {}
    keys = [list(COLUMNS).index(name) for name in table.primary_key]
    for event in table.changes(0).to_pylist():
        kind, row = event.pop("rowkind"), tuple(event.values())
        key = tuple(row[index] for index in keys)
        if kind in ("-D", "-U"):
            assert rows.pop(key) == row, (kind, row)
        else:
            assert key not in rows, (kind, row)
            rows[key] = row
    return sorted(rows.values())


def shown(table: lakebed.Table) -> list[tuple[Any, ...]]:
    """All rows."""
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def agree(table: lakebed.Table) -> None:
    """The reader has the table."""
    assert replayed(table) == shown(table)


@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("options", [{"bucket": "1"}, {"bucket": "3"}, {"bucket": "-1"}], ids=str)
@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation"])
def test_whatever_replaces_rows_tells_it(producer: str, options: dict[str, str], engine: str) -> None:
    """Overwrites, dropped partitions, truncation and old states that come back, among writes and compactions."""
    table = create({**options, "changelog-producer": producer, "merge-engine": engine})
    table.write(batch((1, 1, 1), (1, 2, 2), (2, 1, 1)))
    table.write(batch((1, 2, 5), (2, 2, 2)))
    agree(table)
    first = table.latest_snapshot()
    assert first is not None
    table.write(batch((1, 1, 1), (1, 3, 3)), overwrite={"p": 1})
    agree(table)
    table.write(batch((2, 1, 7)), overwrite=True)
    agree(table)
    table.rollback_to_as_latest(first.id)
    agree(table)
    table.write(batch((1, 1, 9), (2, 9, 9)))
    table.compact(full=True)
    agree(table)
    table.drop_partitions([{"p": 1}])
    agree(table)
    table.write(batch((1, 1, 4)))
    table.write(batch((3, 1, 1), (3, 2, 2)), overwrite={})
    agree(table)
    table.rollback_to_as_latest(first.id)
    agree(table)
    table.truncate()
    assert shown(table) == []
    agree(table)
    table.write(batch((1, 1, 1)))
    agree(table)


@pytest.mark.parametrize("producer", PRODUCERS)
def test_other_buckets_change_nothing(producer: str) -> None:
    """A rescale moves rows and tells of none."""
    table = create({"bucket": "1", "changelog-producer": producer})
    table.write(batch((1, 1, 1), (1, 2, 2), (2, 1, 1)))
    before = table.changes(0).num_rows
    table.rescale(2)
    assert table.changes(0).num_rows == before
    agree(table)


def test_normalised_input_tells_replacements() -> None:
    """A changelog of what rows change, made at the write, is complete too."""
    options = {"changelog-producer": "input", "changelog-producer.input.normalize": "true"}
    table = create({"bucket": "2", **options})
    table.write(batch((1, 1, 1), (1, 2, 2), (2, 1, 1)))
    table.write(batch((1, 1, 5)), overwrite={"p": 1})
    agree(table)
    table.write(batch((1, 1, 6), (2, 1, 3)))
    table.rollback_to_as_latest(1)
    agree(table)
    table.drop_partitions([{"p": 2}])
    agree(table)


def test_rows_that_nobody_was_told_of_go_in_silence() -> None:
    """What waits for its compaction when it is replaced was never there for a reader, and its successor is told."""
    table = create({"bucket": "1", "changelog-producer": "lookup", "write-only": "true"})
    table.write(batch((1, 1, 1)))
    table.write(batch((1, 2, 2)), overwrite={})
    assert replayed(table) == [(1, 2, 2)]
    table.write(batch((1, 2, 3)))
    table.compact()
    agree(table)


def test_masked_rows_are_not_told_twice() -> None:
    """Rows that deletion vectors have taken are told as gone once; hidden new ones never."""
    table = create({"bucket": "1", "changelog-producer": "lookup", "deletion-vectors.enabled": "true"})
    table.write(batch((1, 1, 1), (1, 2, 2), (1, 3, 3)))
    table.write(batch((1, 2, 5)))
    agree(table)
    table.write(batch((1, 2, 6), (1, 4, 4)), overwrite={"p": 1})
    agree(table)
    table.rollback_to_as_latest(2)
    agree(table)
    table.write(batch((1, 1, 8)))
    agree(table)


def test_first_rows_that_go_are_told() -> None:
    """A first-row table tells new keys only, until a partition is replaced."""
    table = create({"bucket": "1", "changelog-producer": "lookup", "merge-engine": "first-row"})
    table.write(batch((1, 1, 1), (1, 2, 2)))
    table.write(batch((1, 1, 9), (1, 3, 3)))
    table.write(batch((1, 1, 7)), overwrite={})
    agree(table)
    table.write(batch((1, 1, 6), (1, 2, 6)))
    agree(table)


def test_no_file_is_left_behind_by_an_attempt_that_lost(tmp_path: Path) -> None:
    """All changelog files on disk are of a snapshot, also after an overwrite that was refused."""
    lake = lakebed.connect(str(tmp_path))
    options = {"bucket": "1", "changelog-producer": "lookup"}
    table = lake.create_table("t", COLUMNS, primary_key=["p", "k"], partition_by=["p"], options=options)
    table.write(batch((1, 1, 1)))
    table.write(batch((1, 2, 1)), overwrite={})
    with pytest.raises(lakebed.errors.LakebedError):
        table.write(batch((2, 2, 1)), overwrite={"p": 1})
    stores = table._opened.context.stores
    told = {entry.file.file_name for snapshot in table.snapshots() for entry in changelog_entries(stores, snapshot)}
    assert len(told) == 2
    assert {path.name for path in tmp_path.rglob("changelog-*")} == told


@pytest.mark.parametrize("replace", ["overwrite", "drop", "bring back"])
@pytest.mark.parametrize("meanwhile", [False, True])
def test_nobody_waits_while_states_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replace: str, meanwhile: bool
) -> None:
    """Old and new rows are read before the commit has its turn; a commit to another partition changes nothing of it."""
    table = lakebed.connect(tmp_path).create_table(
        "t",
        COLUMNS,
        primary_key=["p", "k"],
        partition_by=["p"],
        options={"bucket": "1", "changelog-producer": "lookup"},
    )
    table.write(batch((1, 1, 1), (1, 2, 2)))
    table.write(batch((1, 1, 7)))
    first = table.latest_snapshot()
    assert first is not None
    if replace == "bring back":
        table.write(batch((1, 3, 3)))
    holders, seen = [0], []
    lock, written = LocalFileIO.advisory_lock, told_replacements._events_written

    @contextmanager
    def counted(fileio: LocalFileIO, directory: str) -> Iterator[None]:
        with lock(fileio, directory):
            holders[0] += 1
            try:
                yield
            finally:
                holders[0] -= 1

    def noted(*arguments: Any, **named: Any) -> Any:
        seen.append(holders[0])
        if meanwhile and replace != "bring back" and len(seen) == 1:
            lakebed.connect(tmp_path).table("t").write(batch((2, 1, 1)))
        return written(*arguments, **named)

    monkeypatch.setattr(LocalFileIO, "advisory_lock", counted)
    monkeypatch.setattr(told_replacements, "_events_written", noted)
    if replace == "overwrite":
        table.write(batch((1, 1, 9)), overwrite={"p": 1})
    elif replace == "drop":
        table.drop_partitions([{"p": 1}])
    else:
        table.rollback_to_as_latest(first.id)
    assert seen == [0]
    agree(table)
    assert table.check() == []


REVIVED: dict[str, dict[str, str]] = {
    "lookup": {"changelog-producer": "lookup"},
    "full-compaction": {"changelog-producer": "full-compaction"},
    "vectors": {"deletion-vectors.enabled": "true"},
    "vectors, lookup": {"deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
}


@pytest.mark.parametrize(
    ("kind", "engine"),
    [("lookup", "first-row")]
    + [(kind, engine) for kind in REVIVED for engine in ("deduplicate", "partial-update", "aggregation")],
)
def test_rows_that_were_not_compacted_come_back_told(kind: str, engine: str) -> None:
    """An old state shows what it showed; what it had not compacted is shown and told at once, as after its write."""
    summed = {"fields.v.aggregate-function": "sum"} if engine == "aggregation" else {}
    table = create({"bucket": "1", "merge-engine": engine, **summed, **REVIVED[kind]})
    table.write(batch((1, 1, 1), (2, 1, 1)))
    table.write(batch((1, 1, 5), (1, 2, 2)))
    after = shown(table)
    written = [snapshot.id for snapshot in table.snapshots() if snapshot.commit_kind == "APPEND"][-1]
    table.write(batch((1, 1, 7), (1, 3, 3)), overwrite=True)
    done = table.rollback_to_as_latest(written)
    assert shown(table.at(snapshot=done.current)) == shown(table.at(snapshot=written))
    assert shown(table) == after
    if "changelog-producer" in REVIVED[kind]:
        agree(table)
    assert table.check(deep=True) == []
    table.write(batch((1, 2, 8)))
    if "changelog-producer" in REVIVED[kind]:
        agree(table)


def test_a_revived_state_is_compacted_by_those_who_compact() -> None:
    """With `write-only`, what was not compacted in an old state waits for whoever compacts the table."""
    table = create({"bucket": "1", "changelog-producer": "lookup", "write-only": "true"})
    table.write(batch((1, 1, 1)))
    table.write(batch((1, 1, 2)))
    done = table.rollback_to_as_latest(1)
    latest = table.latest_snapshot()
    assert latest is not None
    assert latest.id == done.current
    table.with_options({"write-only": "false"}).compact()
    agree(table)
    assert shown(table) == [(1, 1, 1)]


def test_rows_whose_marks_are_taken_back_are_told() -> None:
    """A row that came back because its file is not marked any more, with no file coming or going, is told too."""
    table = create({"bucket": "1", "deletion-vectors.enabled": "true", "changelog-producer": "lookup"})
    table.write(batch((1, 1, 1), (1, 2, 2)))
    table.compact(full=True)
    first = table.latest_snapshot()
    assert first is not None
    gone = batch((1, 1, 1)).append_column("kind", pa.array(["-D"]))
    table.write(gone, row_kind="kind")
    agree(table)
    table.rollback_to_as_latest(first.id)
    assert shown(table) == [(1, 1, 1), (1, 2, 2)]
    agree(table)


@pytest.mark.parametrize("producer", PRODUCERS)
def test_both_halves_of_a_move_are_told_at_once(producer: str) -> None:
    """A key that went to another partition has left its old one for who follows, whatever partition is compacted."""
    table = create({"bucket": "-1", "changelog-producer": producer, "write-only": "true"}, key=("k",))
    table.write(batch((1, 1, 1), (1, 2, 2)))
    table.compact(full=True)
    table.write(batch((2, 1, 5)))
    table.compact(full=True, where=[("p", "=", 2)])
    agree(table)
    table.write(batch((1, 1, 7), (2, 2, 8)))
    table.compact(full=False, where=[("p", "=", 1)])
    table.compact(full=True)
    agree(table)


def test_a_full_compaction_of_one_bucket_tells_of_all() -> None:
    """Runs may be so many that one bucket is compacted in full: keys that left others for it are told with it."""
    options = {"bucket": "-1", "changelog-producer": "full-compaction", "write-only": "true"}
    table = create({**options, "num-sorted-run.compaction-trigger": "3"}, key=("k",))
    table.write(batch((1, 1, 1), (2, 2, 2)))
    table.compact(full=True)
    table.write(batch((2, 1, 5)))
    table.write(batch((2, 3, 3)))
    assert table.compact(full=False) is not None
    agree(table)


def test_a_state_from_before_there_was_a_producer_is_told() -> None:
    """Its snapshot means rows as they were meant then, and carries what who follows the table now has to know."""
    table = create({"bucket": "1"})
    table.write(batch((1, 1, 1)))
    table.alter(lakebed.SetOption("changelog-producer", "lookup"))
    table.write(batch((1, 1, 2)))
    agree(table)
    table.rollback_to_as_latest(1)
    assert shown(table) == [(1, 1, 1)]
    agree(table)
    table.compact(full=True)
    agree(table)
