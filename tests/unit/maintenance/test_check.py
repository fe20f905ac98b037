"""`check` finds damage of every kind that metadata and data can have, and nothing where there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.checksums import unsealed
from lakebed.metadata.entries import base_metas, changelog_entries, delta_entries, live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stats import SimpleStats
from lakebed.types.binary_row import encode_row
from lakebed.types.logical import INT

Change = Callable[[list[ManifestEntry]], list[ManifestEntry]]


def _rows(*rows: tuple[int, int | None]) -> pa.Table:
    names = pa.schema([pa.field("k", pa.int32(), nullable=False), ("v", pa.int32())])
    return pa.Table.from_pylist([{"k": k, "v": v} for k, v in rows], schema=names)


def _table(path: Path, key: bool = True, **options: str) -> lakebed.Table:
    given = {name.replace("_", "-"): text for name, text in options.items()}
    given = {name.replace("--", "."): text for name, text in given.items()}
    if key:
        given.setdefault("bucket", "1")
    columns = {"k": "INT NOT NULL", "v": "INT"}
    return lakebed.connect(path).create_table("t", columns, primary_key=["k"] if key else [], options=given)


def _latest(table: lakebed.Table) -> Snapshot:
    found = table.latest_snapshot()
    assert found is not None
    return found


def _edit_snapshot(table: lakebed.Table, **members: Any) -> None:
    """Writes the latest snapshot again, with other members."""
    path = Path(table.location) / "snapshot" / f"snapshot-{_latest(table).id}"
    body = json.loads(path.read_text()) | members
    path.write_text(json.dumps(unsealed(body)))


def _edit_delta(table: lakebed.Table, change: Change, *, merged: bool = False) -> None:
    """Writes the changes of the latest snapshot again, changed; `merged`: as those of the whole state."""
    context, latest = table._opened.current(), _latest(table)
    stores = context.stores
    entries = live_files(stores, latest) if merged else delta_entries(stores, latest)
    metas = stores.manifests.write(change(list(entries)), context.partition_types)
    name, size = stores.manifest_lists.write(metas)
    members = {"deltaManifestList": name, "deltaManifestListSize": size}
    if merged:
        base, base_size = stores.manifest_lists.write([])
        members |= {"baseManifestList": base, "baseManifestListSize": base_size}
    _edit_snapshot(table, **members)


def _on_file(table: lakebed.Table, **members: Any) -> None:
    """Says something else of the files of the latest commit."""
    _edit_delta(table, lambda entries: [replace(each, file=replace(each.file, **members)) for each in entries])


def _fresh(path: Path) -> lakebed.Table:
    return lakebed.connect(path).table("t")


# --- metadata --------------------------------------------------------------------------------------------------------


def test_a_table_in_order_has_no_finding(tmp_path: Path) -> None:
    """Writes, compactions, overwrites, rollbacks and schema changes leave nothing to find, in metadata and data."""
    table = _table(tmp_path)
    assert table.check(deep=True) == []
    table.write(_rows((1, 1), (2, None)))
    table.compact(full=True)
    table.write(_rows((2, 5), (3, 1)))
    table.alter(lakebed.AddColumn("w", INT))
    table.write(
        pa.table({"k": pa.array([7], pa.int32()), "v": pa.array([7], pa.int32()), "w": pa.array([7], pa.int32())})
    )
    table.rollback_to_as_latest(1)
    table.compact(full=True)
    assert table.check() == []
    assert table.check(deep=True) == []


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"totalRecordCount": 7}, "counts 7 records in all, its files hold 3"),
        ({"deltaRecordCount": 9}, "counts 9 records more than before, its changes come to 1"),
        ({"changelogRecordCount": 4}, "counts 4 records of changelog, the files hold 0"),
    ],
)
def test_wrong_counts(tmp_path: Path, members: dict[str, int], words: str) -> None:
    """Each record count of a snapshot is compared with the files."""
    table = _table(tmp_path, write_only="true")
    table.write(_rows((1, 1), (2, 2)))
    table.write(_rows((3, 3)))
    _edit_snapshot(table, **members)
    assert any(words in finding for finding in _fresh(tmp_path).check())


def test_a_revived_file_whose_old_delete_is_still_there(tmp_path: Path) -> None:
    """A file deleted and added again lives for readers that keep the order, and is gone for all others: it is told."""
    table = _table(tmp_path, write_only="true")
    table.write(_rows((1, 1)))
    table.write(_rows((2, 2)))

    def delete_and_add(entries: list[ManifestEntry]) -> list[ManifestEntry]:
        (first,) = (each for each in live_files(table._opened.current().stores, table.at(snapshot=1).fixed_to))
        return [replace(first, kind=EntryKind.DELETE), first, *entries]

    _edit_delta(table, delete_and_add)
    found = _fresh(tmp_path).check()
    assert any("readers that know no order take it for deleted" in finding for finding in found)


def test_a_base_that_is_not_the_state_before(tmp_path: Path) -> None:
    """A snapshot that builds on anything but the snapshot before it has lost files, or found some."""
    table = _table(tmp_path, write_only="true")
    table.write(_rows((1, 1)))
    table.write(_rows((2, 2)))
    stores = table._opened.current().stores
    assert base_metas(stores, _latest(table))
    name, size = stores.manifest_lists.write([])
    _edit_snapshot(table, baseManifestList=name, baseManifestListSize=size)
    found = _fresh(tmp_path).check()
    assert any("lacks files of snapshot 1" in finding for finding in found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda entries: [*entries, *entries], "added although there already"),
        (
            lambda entries: [
                *entries,
                replace(entries[0], kind=EntryKind.DELETE, file=replace(entries[0].file, level=3)),
            ],
            "deleted without being there",
        ),
        (
            lambda entries: [*entries, replace(entries[0], file=replace(entries[0].file, level=3))],
            "listed more than once",
        ),
        (lambda entries: [replace(each, bucket=4) for each in entries], "was written for 1 buckets"),
    ],
)
def test_entries_that_contradict_each_other(tmp_path: Path, change: Change, words: str) -> None:
    """A file is added once, deleted if it is there, on one level, in a bucket that exists."""
    table = _table(tmp_path, write_only="true")
    table.write(_rows((1, 1)))
    table.write(_rows((2, 2)))
    _edit_delta(table, change)
    assert any(words in finding for finding in _fresh(tmp_path).check())


def test_levels_that_overlap(tmp_path: Path) -> None:
    """Two files of one level may not share keys."""
    table = _table(tmp_path, write_only="true")
    table.write(_rows((1, 1), (5, 5)))
    table.write(_rows((2, 2)))
    _edit_delta(table, lambda all_: [replace(each, file=each.file.at_level(2)) for each in all_], merged=True)
    assert any("overlap on level 2" in finding for finding in _fresh(tmp_path).check())


# --- index files -----------------------------------------------------------------------------------------------------


def test_marks_of_a_file_that_is_gone(tmp_path: Path) -> None:
    """Deletion vectors speak of files that are there."""
    table = _table(tmp_path, key=False, deletion_vectors__enabled="true")
    table.write(_rows((1, 1), (2, 2)))
    table.delete_where([("k", "==", 1)])
    assert table.check(deep=True) == []
    _edit_delta(
        table,
        lambda all_: [replace(each, file=replace(each.file, file_name="data-other-0.parquet")) for each in all_],
        merged=True,
    )
    assert any("which is not in the table" in finding for finding in _fresh(tmp_path).check())


def test_a_bucket_whose_keys_nobody_knows(tmp_path: Path) -> None:
    """Dynamic buckets need their index, and the index every key."""
    table = _table(tmp_path, bucket="-1")
    table.write(_rows((1, 1), (2, 2)))
    old = _latest(table).index_manifest
    table.write(_rows((3, 3)))
    assert table.check(deep=True) == []
    _edit_snapshot(table, indexManifest=old)
    assert any("does not know the keys of 1 rows" in finding for finding in _fresh(tmp_path).check(deep=True))
    body = json.loads((Path(table.location) / "snapshot" / f"snapshot-{_latest(table).id}").read_text())
    del body["indexManifest"]
    (Path(table.location) / "snapshot" / f"snapshot-{_latest(table).id}").write_text(json.dumps(unsealed(body)))
    assert any("no index file tells its keys" in finding for finding in _fresh(tmp_path).check())


# --- data ------------------------------------------------------------------------------------------------------------

_THREE = SimpleStats(encode_row([3], [INT]), encode_row([3], [INT]), (0,))


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"row_count": 5}, "its manifest says 5"),
        ({"min_key": encode_row([2], [INT])}, "keys outside of the range"),
        ({"max_key": encode_row([2], [INT])}, "keys outside of the range"),
        ({"max_sequence_number": 0}, "has sequence numbers from 0 to 2"),
        ({"delete_row_count": 1}, "has 0 retract rows, its manifest says 1"),
        ({"value_stats": _THREE, "value_stats_cols": ("v",)}, "has 1 nulls in column `v`, its manifest says 0"),
        (
            {"value_stats": replace(_THREE, null_counts=(1,)), "value_stats_cols": ("v",)},
            "values in column `v` outside of the range",
        ),
    ],
)
def test_files_that_are_not_as_told(tmp_path: Path, members: dict[str, Any], words: str) -> None:
    """Rows, keys, numbers and statistics of a file are compared with what its manifest says; only a deep check can."""
    table = _table(tmp_path, write_only="true")
    table.write(_rows((1, 4), (2, None), (3, 9)))
    _on_file(table, **members)
    found = _fresh(tmp_path).check(deep=True)
    assert any(words in finding for finding in found), found


def test_rows_in_the_wrong_bucket(tmp_path: Path) -> None:
    """A row lies in the bucket that its key hashes to."""
    table = _table(tmp_path, write_only="true", bucket="2")
    table.write(_rows(*((k, k) for k in range(20))))
    _edit_delta(table, lambda entries: [replace(each, total_buckets=7) for each in entries])
    assert any("belong to other buckets of 7" in finding for finding in _fresh(tmp_path).check(deep=True))


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    """What can not be read is a finding, not an error."""
    table = _table(tmp_path)
    table.write(_rows((1, 1)))
    for file in Path(table.location).rglob("data-*"):
        file.unlink()
    assert any("can not be read" in finding for finding in _fresh(tmp_path).check(deep=True))


def test_a_changelog_that_tells_something_else(tmp_path: Path) -> None:
    """Where the changelog is complete, it makes each state the next one."""
    table = _table(tmp_path, changelog_producer="lookup")
    table.write(_rows((1, 1)))
    table.write(_rows((1, 2), (2, 2)))
    assert table.check(deep=True) == []
    context, latest = table._opened.current(), _latest(table)
    told = changelog_entries(context.stores, latest)
    assert told
    name, size = context.stores.manifest_lists.write([])
    _edit_snapshot(table, changelogManifestList=name, changelogManifestListSize=size, changelogRecordCount=0)
    found = _fresh(tmp_path).check(deep=True)
    assert any("0 rows are told and not there" not in finding and "not told" in finding for finding in found), found
