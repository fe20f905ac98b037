"""Consumers, manifests, statistics, buckets, empty directories, and what commits see to."""

from __future__ import annotations

import datetime as dt
import decimal
import json

import pyarrow as pa
import pytest
from tests.unit.maintenance.expiring_tables import (
    SCHEMA,
    TEN_O_CLOCK,
    Workshop,
    ids,
    needed,
    present,
    rows,
    shown,
    stores_of,
)
from tests.unit.maintenance.test_rollback import plain, up_to

from lakebed.errors import CommitConflict, InvalidArgument, NotFound, Unsupported
from lakebed.metadata.entries import all_metas, live_files
from lakebed.metadata.snapshot import CommitKind
from lakebed.schema.changes import SetOption
from lakebed.table.table import Table
from lakebed.testing.faulty_io import FaultyFileIO, InjectedFault

# --- consumers -------------------------------------------------------------------------------------------------------


def test_consumers_are_set_and_cleared() -> None:
    """A consumer is put at a snapshot or deleted; patterns choose which of them go."""
    table = plain(Workshop(), 2)
    for name in ("a1", "a2", "b1"):
        table.reset_consumer(name, 2)
    assert [(consumer.id, consumer.next_snapshot) for consumer in table.consumers()] == [
        ("a1", 2),
        ("a2", 2),
        ("b1", 2),
    ]
    table.reset_consumer("a1")
    with pytest.raises(NotFound):
        table.reset_consumer("a1")
    with pytest.raises(InvalidArgument):
        table.reset_consumer("b1", 0)
    with pytest.raises(InvalidArgument):
        table.clear_consumers("(")
    table.reset_consumer("a3", 1)
    assert table.clear_consumers("a.*", "a3") == ["a2"]
    assert table.clear_consumers() == ["a3", "b1"]
    assert table.consumers() == []


def test_silent_consumers_are_forgotten() -> None:
    """After `consumer.expiration-time` without a sign a commit forgets the consumer, and snapshots go."""
    shop = Workshop()
    table = plain(
        shop, 3, consumer__expiration_time="1 d", snapshot__num_retained__min=1, snapshot__num_retained__max=1
    )
    table.reset_consumer("slow", 3)
    table.write(rows((4, 4)))
    table.write(rows((5, 5)))
    assert ids(table) == [3, 4, 5]
    later = Workshop(shop.fileio)
    later.clock.sleep_ms(10**13)  # files in memory have the real time
    later.lake.table("t").write(rows((6, 6)))
    assert table.consumers() == []
    assert ids(table) == [6]


# --- manifests -------------------------------------------------------------------------------------------------------


def test_manifests_are_written_anew() -> None:
    """One manifest without deleted files describes the same rows; a second time there is nothing to gain."""
    table = plain(Workshop(), 5)
    table.write(rows((9, 9)), overwrite=True)
    stores = stores_of(table)
    assert sum(meta.num_deleted_files for meta in all_metas(stores, table.latest_snapshot())) == 5
    done = table.compact_manifest()
    assert done is not None
    assert done.commit_kind == CommitKind.COMPACT
    (meta,) = all_metas(stores, done)
    assert (meta.num_added_files, meta.num_deleted_files) == (1, 0)
    assert shown(table) == [(9, 9)]
    assert table.compact_manifest() is None
    assert Workshop().create().compact_manifest() is None


def test_files_that_are_gone_are_taken_out() -> None:
    """A table that lost a file shows the rest again; nothing is committed when all files are there."""
    shop = Workshop()
    table = plain(shop, 3)
    assert table.remove_missing_files() == []
    lost = table.at(snapshot=2).scan().files[-1].file_name
    path = f"{table.location}/bucket-0/{lost}"
    shop.fileio.delete(path)
    assert table.remove_missing_files(dry_run=True) == [path]
    assert ids(table) == [1, 2, 3]
    assert table.remove_missing_files() == [path]
    assert shown(table) == [(1, 1), (3, 3)]
    assert ids(table) == [1, 2, 3, 4]


# --- statistics ------------------------------------------------------------------------------------------------------


def test_an_analysis_counts_rows() -> None:
    """Merged rows are counted, in a snapshot of its own that later ones refer to."""
    table = Workshop().create()
    assert table.analyze() is None
    table.write(rows((1, 1), (2, 2)))
    table.write(rows((2, 3)))
    assert table.statistics() is None
    done = table.analyze()
    assert done is not None
    assert done.commit_kind == CommitKind.ANALYZE
    found = table.statistics()
    assert found is not None
    assert (found.snapshot_id, found.schema_id, found.merged_record_count, found.columns) == (2, 0, 2, {})
    assert found.merged_record_size is not None
    assert found.merged_record_size > 0
    table.write(rows((5, 5)))
    assert table.statistics() == found
    assert table.at(snapshot=2).statistics() is None
    assert shown(table) == [(1, 1), (2, 3), (5, 5)]


def test_an_analysis_looks_at_columns() -> None:
    """Distinct values, nulls, bounds as text, and lengths, as other engines write and read them."""
    shop = Workshop()
    columns = {
        "i": "INT",
        "s": "STRING",
        "d": "DATE",
        "n": "DECIMAL(5, 2)",
        "b": "BYTES",
        "o": "BOOLEAN",
        "a": "ARRAY<INT>",
    }
    table = shop.lake.create_table("t", columns)
    data = {
        "i": pa.array([3, 1, None, 3], pa.int32()),
        "s": ["a", "bbb", None, "cc"],
        "d": [dt.date(2024, 1, 2), dt.date(2023, 1, 1), None, None],
        "n": pa.array([decimal.Decimal("1.50"), decimal.Decimal("-2.00"), None, None], pa.decimal128(5, 2)),
        "b": [b"1", b"22", None, None],
        "o": [True, False, True, None],
        "a": pa.array([[1], None, None, None], pa.list_(pa.int32())),
    }
    table.write(pa.table(data))
    table.analyze(True)
    body = json.loads(shop.fileio.read_bytes(f"{table.location}/statistics/{table.latest_snapshot().statistics}"))  # type: ignore[union-attr]
    assert body["mergedRecordCount"] == 4
    assert body["colStats"] == {
        "i": {"colId": 0, "distinctCount": 2, "min": "1", "max": "3", "nullCount": 1, "avgLen": 4, "maxLen": 4},
        "s": {"colId": 1, "distinctCount": 3, "nullCount": 1, "avgLen": 2, "maxLen": 3},
        "d": {
            "colId": 2,
            "distinctCount": 2,
            "min": "19358",
            "max": "19724",
            "nullCount": 2,
            "avgLen": 4,
            "maxLen": 4,
        },
        "n": {"colId": 3, "distinctCount": 2, "min": "-2.00", "max": "1.50", "nullCount": 2, "avgLen": 8, "maxLen": 8},
        "b": {"colId": 4, "distinctCount": 2, "nullCount": 2, "avgLen": 2, "maxLen": 2},
        "o": {"colId": 5, "distinctCount": 2, "min": "false", "max": "true", "nullCount": 1, "avgLen": 1, "maxLen": 1},
    }
    table.analyze(["s"])
    assert set(table.statistics().columns) == {"s"}  # type: ignore[union-attr]
    with pytest.raises(Unsupported, match="`a`"):
        table.analyze(["a"])
    with pytest.raises(NotFound):
        table.analyze(["zz"])


def test_statistics_of_a_failed_commit_are_taken_back() -> None:
    """Nothing but the table as it was is left."""
    shop = Workshop()
    table = plain(shop, 2)
    before = {status.path for status in shop.fileio.list_recursive("lake")}
    io = FaultyFileIO(shop.fileio, 1, only={"create_exclusive"})
    with pytest.raises(InjectedFault):
        Workshop(io).lake.table("t").analyze()
    assert {status.path for status in shop.fileio.list_recursive("lake")} == before
    assert shown(table) == up_to(2)


def test_statistics_go_with_their_last_snapshot() -> None:
    """Expiry removes what no snapshot refers to any more."""
    shop = Workshop()
    table = plain(shop, 2)
    table.analyze()
    table.analyze()
    table.expire_snapshots(retain_max=1, retain_min=1)
    left = [status.name for status in shop.fileio.list_directory(f"{table.location}/statistics")]
    assert left == [table.latest_snapshot().statistics]  # type: ignore[union-attr]


# --- buckets ---------------------------------------------------------------------------------------------------------


def bucket_counts(table: Table) -> dict[str, int]:
    """Into how many buckets each partition's files were hashed."""
    return {partition.name: partition.total_buckets for partition in table.partitions()}


def test_buckets_are_rescaled() -> None:
    """The same rows in another number of buckets, in one OVERWRITE commit; writes go on once the option says so."""
    table = Workshop().create(bucket=2, num_sorted_run__compaction_trigger=9)
    table.write(rows(*((number, 0) for number in range(20))))
    table.write(rows(*((number, 1) for number in range(0, 20, 2))))
    expected = shown(table)
    table.alter(SetOption("bucket", "4"))
    with pytest.raises(CommitConflict):
        table.write(rows((1, 5)))
    done = table.rescale(4)
    assert done is not None
    assert done.commit_kind == CommitKind.OVERWRITE
    assert shown(table) == expected
    assert {entry.bucket for entry in live_files(stores_of(table), table.latest_snapshot())} == {0, 1, 2, 3}
    table.write(rows((1, 5)))
    assert dict(shown(table))[1] == 5
    table.alter(SetOption("bucket", "3"))
    assert table.rescale() is not None
    assert bucket_counts(table) == {"": 3}
    assert table.check() == []


def test_some_partitions_are_rescaled() -> None:
    """Others keep their buckets; what names no partition rewrites nothing."""
    shop = Workshop()
    columns = {"p": "STRING NOT NULL", "q": "INT NOT NULL", "k": "INT NOT NULL", "v": "INT"}
    table = shop.lake.create_table(
        "t", columns, primary_key=["p", "q", "k"], partition_by=["p", "q"], options={"bucket": "2"}
    )
    data = pa.table(
        {
            "p": ["a", "a", "b"],
            "q": pa.array([1, 2, 1], pa.int32()),
            "k": pa.array([1, 2, 3], pa.int32()),
            "v": pa.array([1, 2, 3], pa.int32()),
        }
    )
    table.write(data)
    assert table.rescale(4, [{"q": 1}]) is not None
    assert bucket_counts(table) == {"p=a/q=1": 4, "p=a/q=2": 2, "p=b/q=1": 4}
    assert table.rescale(4, [{"p": "z"}]) is None
    assert len(shown(table)) == 3
    with pytest.raises(InvalidArgument):
        table.rescale(0)
    with pytest.raises(InvalidArgument):
        plain(Workshop(), 1).rescale(2)


def test_rescaling_keeps_counts_and_first_rows() -> None:
    """Stored values are taken as they are: a count is not counted again, and rows that wait are not lost."""
    shop = Workshop()
    options = {"bucket": "2", "merge-engine": "aggregation", "fields.v.aggregate-function": "count"}
    table = shop.lake.create_table("c", SCHEMA, primary_key=["k"], options=options)
    for _ in range(3):
        table.write(rows((1, 7), (2, 7)))
    before = shown(table)
    table.rescale(3)
    assert shown(table) == before
    first = shop.lake.create_table(
        "f", SCHEMA, primary_key=["k"], options={"bucket": "2", "merge-engine": "first-row", "write-only": "true"}
    )
    first.write(rows((1, 7), (2, 7)))
    first.write(rows((1, 8), (3, 8)))
    first.rescale(1)
    first.with_options({"write-only": "false"}).compact(full=True)
    assert shown(first) == [(1, 7), (2, 7), (3, 8)]


def test_rescaling_is_refused_when_others_write() -> None:
    """A commit that comes while rows are rewritten is not lost."""
    shop = Workshop()
    table = shop.create(bucket=2)
    table.write(rows((1, 1)))

    class Meanwhile(FaultyFileIO):
        def create_exclusive(self, path: str, data: bytes) -> bool:
            if "/snapshot-2" in path:
                table.write(rows((2, 2)))
            return super().create_exclusive(path, data)

    with pytest.raises(CommitConflict, match="written to"):
        Workshop(Meanwhile(shop.fileio)).lake.table("t").rescale(4)
    assert shown(table) == [(1, 1), (2, 2)]
    assert present(table) == needed(table)


# --- after commits ---------------------------------------------------------------------------------------------------


def test_empty_directories_go_with_the_last_file() -> None:
    """Where the option asks for it, expiry removes buckets and partitions that have become empty."""
    shop = Workshop()
    options = {"snapshot.clean-empty-directories": "true", "file.format": "avro"}
    table = shop.lake.create_table("t", SCHEMA, partition_by=["k"], options=options)
    table.write(rows((1, 1), (2, 2)))
    table.drop_partitions([{"k": 1}])
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert not shop.fileio.exists(f"{table.location}/k=1")
    assert shop.fileio.exists(f"{table.location}/k=2/bucket-0")


def test_tags_expire_after_commits() -> None:
    """A tag whose time is over goes with the next commit, once in a while; not if the option says no."""
    for is_enabled in ("true", "false"):
        shop = Workshop()
        table = plain(shop, 1, tag__time_expire_enabled=is_enabled)
        table.create_tag("t", time_retained="1 h")
        shop.at(62)
        table.write(rows((2, 2)))
        assert table.tags() == ([] if is_enabled == "true" else ["t"])


def moment(text: str) -> int:
    """Milliseconds of a wall-clock time."""
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


def tagged(times: list[str], **options: object) -> dict[str, int]:
    """Tags and their snapshots after a commit at each of these times."""
    shop = Workshop()
    table = shop.create(primary_key=False, tag__automatic_creation="process-time", **options)
    for number, text in enumerate(times):
        shop.clock.sleep_ms(moment(text) - shop.clock.now_ms())
        table.write(rows((number, number)))
    return {tag.name: tag.snapshot.id for tag in table.tags(detail=True)}


def test_a_day_that_is_over_gets_a_tag() -> None:
    """The first snapshot tags the day before at once; then one of each day, after the delay."""
    times = ["2023-07-25 12:00", "2023-07-26 00:05", "2023-07-26 00:11", "2023-07-26 12:00", "2023-07-27 00:10"]
    assert tagged(times, tag__creation_delay="10 m") == {"2023-07-24": 1, "2023-07-25": 3, "2023-07-26": 5}


def test_missed_periods_are_skipped_or_completed() -> None:
    """Without a snapshot in between, the last complete period is tagged; or the next missing one if asked to."""
    times = ["2023-07-25 12:00", "2023-07-29 12:00", "2023-07-29 13:00"]
    assert tagged(times) == {"2023-07-24": 1, "2023-07-28": 2}
    assert tagged(times, tag__automatic_completion="true") == {"2023-07-24": 1, "2023-07-25": 2, "2023-07-26": 3}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"tag__creation_period": "hourly"}, "2023-07-25 11"),
        ({"tag__creation_period": "hourly", "tag__period_formatter": "without_dashes"}, "20230725 11"),
        ({"tag__creation_period": "hourly", "tag__period_formatter": "without_dashes_and_spaces"}, "2023072511"),
        ({"tag__creation_period": "two-hours"}, "2023-07-25 10"),
        ({"tag__period_formatter": "without_dashes"}, "20230724"),
        ({"tag__creation_period_duration": "15 m"}, "202307251230"),
    ],
)
def test_names_of_periods(options: dict[str, object], expected: str) -> None:
    """Length and spelling are as the options say."""
    assert list(tagged(["2023-07-25 12:50"], **options)) == [expected]


def test_only_so_many_automatic_tags_stay() -> None:
    """The oldest go; tags that somebody made stay."""
    times = [f"2023-07-2{day} 12:00" for day in range(1, 6)]
    assert list(tagged(times, tag__num_retained_max=2)) == ["2023-07-23", "2023-07-24"]


def test_watermarks_make_tags() -> None:
    """With `watermark`, the time is the snapshot's watermark in its zone; without one there is no tag."""
    shop = Workshop()
    table = shop.create(primary_key=False, tag__automatic_creation="watermark", sink__watermark_time_zone="Asia/Tokyo")
    table.write(rows((1, 1)))
    assert table.tags() == []
    stores = stores_of(table)
    latest = table.latest_snapshot()
    assert latest is not None
    from dataclasses import replace

    utc = dt.datetime(2023, 7, 25, 15, 30, tzinfo=dt.UTC)
    stores.snapshots.delete(1)
    stores.snapshots.publish(replace(latest, watermark=int(utc.timestamp() * 1000)))
    table.write(rows((2, 2)))
    assert table.tags() == ["2023-07-25"]


def test_a_batch_gets_a_tag() -> None:
    """Named by the day or as the option says, and moved by the next batch."""
    shop = Workshop()
    day = dt.datetime.fromtimestamp(TEN_O_CLOCK / 1000)
    table = plain(shop, 2, tag__automatic_creation="batch")
    assert {tag.name: tag.snapshot.id for tag in table.tags(detail=True)} == {f"batch-write-{day:%Y-%m-%d}": 2}
    named = table.with_options({"tag.batch.customized-name": "job", "tag.num-retained-max": "1"})
    named.write(rows((3, 3)))
    assert {tag.name: tag.snapshot.id for tag in table.tags(detail=True)} == {"job": 3}
