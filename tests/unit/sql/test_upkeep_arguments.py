"""Arguments of procedures that choose buckets, tags of expired snapshots and watermarks, and dry runs."""

from __future__ import annotations

import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import InvalidArgument, NotFound


@pytest.fixture
def lake(warehouse: Warehouse) -> lakebed.Lake:
    """An empty lake."""
    return warehouse.lake


def rows(lake: lakebed.Lake, text: str) -> list[tuple[object, ...]]:
    """What a statement gives."""
    return [tuple(row) for row in lake.sql(text).collect()]


def test_only_some_buckets_are_compacted(lake: lakebed.Lake) -> None:
    """Numbers and ranges; the others keep their files, and all rows stay."""
    lake.sql("CREATE TABLE t (k INT, PRIMARY KEY (k) NOT ENFORCED) WITH ('bucket' = '4', 'write-only' = 'true')")
    for start in (0, 40):
        lake.sql(f"INSERT INTO t VALUES {', '.join(f'({key})' for key in range(start, start + 40))}")
    lake.sql("CALL sys.compact(table => 't', buckets => '0-1, 3')")
    counts = rows(lake, "SELECT bucket, count(*) FROM `t$files` GROUP BY bucket ORDER BY bucket")
    assert counts == [(0, 1), (1, 1), (2, 2), (3, 1)]
    assert rows(lake, "SELECT count(*) FROM t") == [(80,)]
    for wrong in ("1-0", "a", "1,,2", "-1"):
        with pytest.raises(InvalidArgument, match="can not be read"):
            lake.sql(f"CALL sys.compact(table => 't', buckets => '{wrong}')")
    with pytest.raises(InvalidArgument, match="do not go together"):
        lake.sql("CALL sys.compact(table => 't', buckets => '1', order_strategy => 'order', order_by => 'k')")
    lake.sql("CREATE TABLE plain (v INT)")
    with pytest.raises(InvalidArgument, match="bucket by bucket"):
        lake.sql("CALL sys.compact(table => 'plain', buckets => '0')")


def test_tags_of_snapshots_that_live_on_in_tags(lake: lakebed.Lake) -> None:
    """An expired snapshot that a tag keeps is the first at its time; a tag that is not there is deleted already."""
    lake.sql("CREATE TABLE t (v INT)")
    lake.sql("INSERT INTO t VALUES (1)")
    lake.sql("CALL sys.create_tag('t', 'kept', 1)")
    lake.sql("INSERT INTO t VALUES (2)")
    lake.sql("CALL sys.expire_snapshots(table => 't', retain_max => 1, retain_min => 1)")
    lake.sql("CALL sys.create_tag_from_timestamp(table => 't', tag => 'first', timestamp => 1000)")
    assert rows(lake, "SELECT tag_name, snapshot_id FROM `t$tags` ORDER BY tag_name") == [("first", 1), ("kept", 1)]
    assert rows(lake, "CALL sys.delete_tag('t', 'kept, nobody')") == [(True,)]
    assert rows(lake, "SHOW TAGS t") == [("first",)]
    with pytest.raises(NotFound):
        lake.sql("ALTER TABLE t DELETE TAG nobody")


def test_watermarks_of_batch_writes(lake: lakebed.Lake) -> None:
    """A hint sets one; tags are made, and tables rolled back, by it."""
    lake.sql("CREATE TABLE t (v INT)")
    for mark in (1000, 2000, 3000):
        lake.sql(f"INSERT INTO t /*+ OPTIONS('end-input.watermark' = '{mark}') */ VALUES ({mark})")
    lake.sql("INSERT INTO t VALUES (4)")
    assert [snapshot.watermark for snapshot in lake.table("t").snapshots()] == [1000, 2000, 3000, 3000]
    lake.sql("CALL sys.create_tag_from_watermark(table => 't', tag => 'later', watermark => 1001)")
    assert lake.table("t").at(tag="later").to_arrow()["v"].to_pylist() == [1000, 2000]
    lake.sql("CALL sys.rollback_to_watermark(table => 't', watermark => 2001)")
    assert lake.table("t").to_arrow()["v"].to_pylist() == [1000, 2000]
    with pytest.raises(NotFound, match="999 or earlier"):
        lake.sql("CALL sys.rollback_to_watermark(table => 't', watermark => 999)")


def test_manifests_are_only_looked_at(lake: lakebed.Lake) -> None:
    """A dry run changes nothing; arguments about sorting are checked."""
    lake.sql("CREATE TABLE t (v INT, p INT) PARTITIONED BY (p) WITH ('manifest.merge-min-count' = '100')")
    for _ in range(3):
        lake.sql("INSERT OVERWRITE t VALUES (1, 1), (2, 2)")
    before = lake.table("t").latest_snapshot()
    sorting = "manifest_sort_enabled => true, manifest_sort_partition_field"
    lake.sql(f"CALL sys.compact_manifest(table => 't', dry_run => true, {sorting} => 'p')")
    assert lake.table("t").latest_snapshot() == before
    with pytest.raises(InvalidArgument, match="`v` is not a partition column"):
        lake.sql(f"CALL sys.compact_manifest(table => 't', {sorting} => 'v')")
    lake.sql(f"CALL sys.compact_manifest(table => 't', options => 'manifest-sort.enabled=true', {sorting} => 'p')")
    assert rows(lake, "SELECT sum(num_deleted_files) FROM `t$manifests`") == [(0,)]


def test_rescale_and_bucket(lake: lakebed.Lake) -> None:
    """Nothing to rescale is an error, postponed buckets are rescaled to what is asked for, and `bucket` stays."""
    lake.sql("CREATE TABLE t (k INT, PRIMARY KEY (k) NOT ENFORCED) WITH ('bucket' = '-2')")
    with pytest.raises(NotFound, match="no snapshot"):
        lake.sql("CALL sys.rescale(table => 't', bucket_num => 2)")
    lake.sql("ALTER TABLE t RESET ('bucket')")
    lake.sql("ALTER TABLE t SET ('bucket' = '-2')")
    lake.sql(f"INSERT INTO t VALUES {', '.join(f'({key})' for key in range(20))}")
    with pytest.raises(InvalidArgument, match="bucket_num is -2"):
        lake.sql("CALL sys.rescale(table => 't')")
    lake.sql("CALL sys.rescale(table => 't', bucket_num => 3)")
    assert rows(lake, "SELECT count(*) FROM t") == [(20,)]
    assert rows(lake, "SELECT DISTINCT bucket FROM `t$files` ORDER BY bucket") == [(0,), (1,), (2,)]
    lake.sql("INSERT INTO t VALUES (7), (20)")
    lake.sql("CALL sys.compact(table => 't')")
    assert rows(lake, "SELECT count(*) FROM t") == [(21,)]
    with pytest.raises(lakebed.errors.InvalidOption, match="can not be taken away"):
        lake.sql("ALTER TABLE t RESET ('bucket')")
