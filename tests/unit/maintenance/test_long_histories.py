"""Histories of many snapshots: expired in rounds, looked through in parts, with the same outcome as all at once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed import Table
from lakebed.errors import CorruptFile
from lakebed.maintenance import references, snapshots
from lakebed.maintenance.snapshots import watched_expiry
from lakebed.testing.s3_server import BUCKET, S3State

SCHEMA = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int32(), nullable=False)])


def written(table: Table, commits: int) -> Table:
    """A table with appends, overwrites, compactions and a tag, so that files come, go and stay."""
    for number in range(commits):
        rows = pa.table({"p": [number % 2, 1], "k": [number, 1]}, schema=SCHEMA)
        table.write(rows, overwrite=number % 4 == 3)
        if number == 2:
            table.create_tag("kept")
    return table


def left(directory: Path) -> list[str]:
    """Kinds of files and how many: names differ from table to table."""
    kinds = [
        f"{path.parent.name} {path.name.split('-')[0]}"
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in ("LATEST", "EARLIEST", "EXPIRING")
    ]
    return sorted(kinds)


def lake_table(lake: lakebed.Lake, name: str) -> Table:
    return lake.create_table(
        name, SCHEMA, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "1", "write-only": "true"}
    )


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_rounds_leave_what_one_expiry_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Nothing more and nothing less goes, and whoever watches is told how far it is."""
    lake = lakebed.connect(tmp_path / "lake")
    whole, parts = written(lake_table(lake, "whole"), 9), written(lake_table(lake, "parts"), 9)
    gone = whole.expire_snapshots(retain_max=2, retain_min=1)
    monkeypatch.setattr(snapshots, "_ROUND", size)
    told: list[tuple[int, int]] = []
    with watched_expiry(lambda done, of: told.append((done, of))):
        assert parts.expire_snapshots(retain_max=2, retain_min=1) == gone
    assert told == [(min(done, 7), 7) for done in range(size, 7 + size, size)]
    assert left(Path(parts.location)) == left(Path(whole.location))
    assert parts.to_arrow() == whole.to_arrow()
    assert parts.at(tag="kept").to_arrow().num_rows > 0
    assert parts.check() == []


def test_what_a_round_has_done_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An expiry that can not go on leaves a table in order, and the next one goes on from there."""
    table = written(lake_table(lakebed.connect(tmp_path / "lake"), "t"), 9)
    monkeypatch.setattr(snapshots, "_ROUND", 2)
    list_name = table.snapshots()[5].delta_manifest_list
    path = Path(table.location) / "manifest" / list_name
    content = path.read_bytes()
    path.write_bytes(content[:10])
    fresh = lakebed.connect(tmp_path / "lake").table("t")
    with pytest.raises(CorruptFile):
        fresh.expire_snapshots(retain_max=2, retain_min=1)
    ids = [snapshot.id for snapshot in fresh.snapshots()]
    assert 1 < ids[0] < 6
    path.write_bytes(content)
    again = lakebed.connect(tmp_path / "lake").table("t")
    assert again.expire_snapshots(retain_max=2, retain_min=1).snapshots == tuple(range(ids[0], 8))
    assert again.check() == []


@pytest.mark.parametrize("at_once", [1, 2, 4])
def test_references_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """What is needed is the same, however many references are looked at together."""
    table = written(lake_table(lakebed.connect(tmp_path / "lake"), "t"), 9)
    orphan = Path(table.location) / "p=0" / "bucket-0" / "data-none-0.parquet"
    orphan.write_bytes(b"x")
    monkeypatch.setattr(references, "_REFERENCES_AT_ONCE", at_once)
    found = table.remove_orphan_files(older_than=_now_ms(), dry_run=True)
    assert list(found.paths) == [str(orphan)]


def _now_ms() -> int:
    import time

    time.sleep(0.01)
    return int(time.time() * 1000) - 1


def test_cleaning_and_expiry_on_a_store(s3: S3State) -> None:
    """One listing finds what nothing refers to, whatever the buckets; deletions go many to a request."""
    table = written(lake_table(lakebed.connect(f"s3://{BUCKET}/lake", options=s3.options), "t"), 9)
    root = "lake/default.db/t"
    strangers = {f"{root}/p=0/bucket-0/data-none-0.parquet", f"{root}/p=1/bucket-0/data-none-1.parquet"}
    others = {f"{root}/p=0/notes.txt", f"{root}/elsewhere/bucket-0/data-x.parquet", f"{root}/p=0/p=1/bucket-0/f"}
    s3.objects |= dict.fromkeys(strangers | others, b"x")
    with s3.counted() as log:
        found = table.remove_orphan_files()
    assert set(found.paths) == strangers
    assert log.kinds["POST"] == 1
    assert len([each for each in log if each.kind == "LIST" and "bucket-" in each.key]) == 0
    assert others < s3.objects.keys()
    rows = table.to_arrow()
    with s3.counted() as log:
        gone = table.expire_snapshots(retain_max=2, retain_min=1)
    assert gone.snapshots == tuple(range(1, 8))
    assert log.kinds["DELETE"] == 0
    assert table.to_arrow() == rows
    assert table.check() == []
