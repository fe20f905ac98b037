"""Write modes, rolling policies and joining before commits, as writers of this process honour them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.clock import FixedClock
from lakebed.errors import InvalidOption
from lakebed.metadata.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind
from lakebed.options import Options
from lakebed.schema.changes import SetOption
from lakebed.table.plans import plan_write
from lakebed.table.writer import CommitTimer

KEYED = {"id": "BIGINT NOT NULL", "v": "BIGINT"}
SUMS = {"bucket": "2", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([1] * len(ids), pa.int64())})


def keyed(warehouse: Warehouse, **options: str) -> lakebed.Table:
    return warehouse.table("t", KEYED, primary_key=["id"], options={**SUMS, **options})


def identifiers(table: lakebed.Table) -> list[int]:
    return [snapshot.commit_identifier for snapshot in table.snapshots()]


def test_n_22_batch_commits_once_at_the_end(warehouse: Warehouse) -> None:
    """Nothing is visible before a batch writer is done, and then it is one commit, which is no part of a stream."""
    table = keyed(warehouse).with_options({"write-mode": "batch"})
    with table.writer() as writer:
        writer.write(rows(1))
        writer.write(rows(2))
        assert table.to_arrow().num_rows == 0
    assert identifiers(table) == [BATCH_COMMIT_IDENTIFIER]


def test_n_22_stream_commits_as_rows_come(warehouse: Warehouse) -> None:
    """A stream writer shows each write at once, under identifiers that count up."""
    table = keyed(warehouse).with_options({"write-mode": "stream"})
    with table.writer() as writer:
        for count in range(1, 4):
            writer.write(rows(count))
            assert table.to_arrow().num_rows == count
    assert identifiers(table) == [1, 2, 3]


def test_n_22_a_stream_writer_repeats_nothing(warehouse: Warehouse) -> None:
    """Commits that are written again under their user and identifiers are in the table once; new ones follow."""
    table = keyed(warehouse).with_options({"write-mode": "stream"})
    for writes in (2, 3):
        with table.writer(commit_user="u", commit_identifier=1) as writer:
            for _ in range(writes):
                writer.write(rows(7))
    assert table.to_arrow()["v"].to_pylist() == [3]
    assert identifiers(table) == [1, 2, 3]


def test_n_22_a_stream_writer_without_identifier_goes_on(warehouse: Warehouse) -> None:
    """A user that names no identifier does not repeat its first commits."""
    table = keyed(warehouse).with_options({"write-mode": "stream"})
    for _ in range(2):
        with table.writer(commit_user="u") as writer:
            writer.write(rows(7))
    assert table.to_arrow()["v"].to_pylist() == [2]
    assert identifiers(table) == [1, 2]


def test_n_22_one_write_is_one_commit_in_either_mode(warehouse: Warehouse) -> None:
    """`t.write` returns its snapshot, whatever the mode."""
    table = keyed(warehouse)
    found = [table.with_options({"write-mode": mode}).write(rows(1)) for mode in ("batch", "stream")]
    assert [snapshot and snapshot.id for snapshot in found] == [1, 2]


@pytest.mark.parametrize("value", ["change-log", "append-only"])
def test_n_22_values_of_old_are_left_out_with_a_warning(warehouse: Warehouse, value: str) -> None:
    """What the option meant long ago is taken, said to mean nothing, and not kept."""
    with pytest.warns(UserWarning, match=f"`write-mode` = `{value}` has no meaning"):
        table = keyed(warehouse, **{"write-mode": value})
    with pytest.warns(UserWarning, match="no meaning"):
        table.alter(SetOption("write-mode", value))
    with pytest.warns(UserWarning, match="no meaning"):
        table.with_options({"write-mode": value}).write(rows(1))
    assert "write-mode" not in table.options
    assert table.to_arrow().num_rows == 1


def test_n_22_other_values_are_refused(warehouse: Warehouse) -> None:
    """The error lists the values there are."""
    with warehouse.refuses(InvalidOption, "`write-mode`", "`batch`", "`stream`"):
        keyed(warehouse, **{"write-mode": "sometimes"})


def test_n_24_small_files_of_a_commit_are_joined(warehouse: Warehouse) -> None:
    """With `precommit-compact` the files of many small writes to a partition become one; without, they stay."""
    for name, value, count in (("on", "true", 1), ("off", "false", 3)):
        options = {"precommit-compact": value, "target-file-row-num": "1"}
        table = warehouse.table(name, {"id": "BIGINT"}, options=options)
        joined = table.with_options({"target-file-row-num": "1000"}) if value == "true" else table
        with joined.writer(commit_user="u", commit_identifier=1) as writer:
            for number in range(3):
                writer.write(pa.table({"id": [number]}))
        assert sum(len(split.files) for split in table.scan().splits) == count


def test_n_24_is_for_tables_without_buckets(warehouse: Warehouse) -> None:
    """On a bucketed append table it can only be off."""
    options = {"bucket": "2", "bucket-key": "id", "precommit-compact": "false"}
    warehouse.table("off", {"id": "BIGINT"}, options=options)
    with warehouse.refuses(InvalidOption, "precommit-compact"):
        warehouse.table("on", {"id": "BIGINT"}, options={**options, "precommit-compact": "true"})


def test_n_25_file_size_is_for_the_write_alone(warehouse: Warehouse) -> None:
    """Files of a write are cut at the sink's size; a compaction makes them as large as the table wants them."""
    table = warehouse.table("t", {"id": "BIGINT", "s": "STRING"}, options={"file.compression": "none"})
    data = pa.table({"id": range(100_000), "s": [f"{number:040}" for number in range(100_000)]})
    table.with_options({"sink.rolling-policy.file-size": "1 mb"}).write(data)
    sizes = [file.size_bytes for split in table.scan().splits for file in split.files]
    assert len(sizes) > 2
    assert max(sizes) < 2 << 20
    table.compact(full=True)
    assert sum(len(split.files) for split in table.scan().splits) == 1


def test_n_25_rows_wait_for_the_rollover_interval(warehouse: Warehouse) -> None:
    """The age of what is not committed decides, looked at every check interval."""
    clock = FixedClock(0)
    options = {"sink.rolling-policy.rollover-interval": "1 min", "sink.rolling-policy.check-interval": "10 s"}
    timer = CommitTimer(Options(options), clock)
    asked = {}
    for second in range(0, 140, 4):
        asked[second] = timer.is_due()
        if asked[second]:
            timer.restart()
        clock.sleep_ms(4000)
    due = [second for second, is_due in asked.items() if is_due]
    assert len(due) == 2
    assert all(60 <= after - before <= 76 for before, after in zip([0, *due], due, strict=False))


def test_n_25_a_stream_writer_rolls_over(warehouse: Warehouse) -> None:
    """Rows of several writes become one commit until some have waited too long; the end commits the rest."""
    table = keyed(warehouse).with_options(
        {
            "write-mode": "stream",
            "sink.rolling-policy.rollover-interval": "1 h",
            "sink.rolling-policy.check-interval": "1",
        }
    )
    with table.writer(commit_user="u", commit_identifier=5) as writer:
        for key in range(3):
            writer.write(rows(key))
    assert identifiers(table) == [5]
    assert table.to_arrow().num_rows == 3


def test_a_replay_redoes_only_a_missing_compaction(warehouse: Warehouse) -> None:
    """A commit that died before its compaction gets that and nothing else when it comes again; then nothing more."""
    table = keyed(warehouse, **{"full-compaction.delta-commits": "2"})
    for identifier in (1, 2):
        quiet = table.with_options({"write-only": "true"}) if identifier == 2 else table
        with quiet.writer(commit_user="u", commit_identifier=identifier) as writer:
            writer.write(rows(1))
    assert [snapshot.commit_kind for snapshot in table.snapshots()] == [CommitKind.APPEND] * 2
    for _ in range(2):
        with table.writer(commit_user="u", commit_identifier=2) as writer:
            writer.write(rows(1))
        kinds = [(snapshot.commit_kind, snapshot.commit_identifier) for snapshot in table.snapshots()]
        assert kinds == [(CommitKind.APPEND, 1), (CommitKind.APPEND, 2), (CommitKind.COMPACT, 2)]
        assert table.to_arrow()["v"].to_pylist() == [2]


def test_a_commit_remembers_its_watermark(warehouse: Warehouse) -> None:
    """A later commit with an earlier watermark, or with none, does not take it back."""
    table = keyed(warehouse)
    context, _ = plan_write(table)
    committed = []
    for number, watermark in enumerate((100, 50, None, 200)):
        with table.writer(commit_user="u", commit_identifier=number + 1) as writer:
            writer.write(rows(number))
            writer._commit.watermark = watermark
        committed.append(context.stores.snapshots.latest())
    assert [snapshot and snapshot.watermark for snapshot in committed] == [100, 100, 100, 200]
