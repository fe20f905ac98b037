"""Every `scan.mode`, for reads that end and for streams."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import lakebed
from lakebed.checksums import unsealed
from lakebed.clock import FixedClock
from lakebed.errors import InvalidArgument, NotFound
from lakebed.metadata.data_file import creation_time_to_epoch

START_MS = 1_700_000_000_000
STEP_MS = 1_000_000


def row(number: int) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int32())})


@pytest.fixture
def table() -> lakebed.Table:
    """Rows 1, 2 and 3 in snapshots 1, 2 and 4; snapshot 3 is a compaction. Commits are 1000 s apart."""
    lake = lakebed.connect(f"memory://{uuid4()}")
    made = lake.create_table("t", {"id": "INT NOT NULL"}, primary_key=["id"], options={"bucket": "1"})
    object.__setattr__(made._opened.context, "clock", FixedClock(START_MS))
    made = made.with_options({"write-only": "true"})
    clock: Any = made._opened.context.clock
    for number in (1, 2):
        made.write(row(number))
        clock.sleep_ms(STEP_MS)
    made.with_options({"write-only": "false"}).compact(full=True)
    clock.sleep_ms(STEP_MS)
    made.write(row(3))
    assert [snapshot.commit_kind for snapshot in made.snapshots()] == ["APPEND", "APPEND", "COMPACT", "APPEND"]
    assert [snapshot.time_millis for snapshot in made.snapshots()] == [START_MS + STEP_MS * i for i in range(4)]
    return made


def ids(found: pa.Table) -> list[int]:
    return sorted(found["id"].to_pylist())


def time_of(snapshot: int) -> str:
    return str(START_MS + STEP_MS * (snapshot - 1))


MODES: list[tuple[dict[str, str], list[int], list[list[int]]]] = [
    ({}, [1, 2, 3], [[1, 2, 3]]),
    ({"scan.mode": "default"}, [1, 2, 3], [[1, 2, 3]]),
    ({"scan.mode": "latest-full"}, [1, 2, 3], [[1, 2, 3]]),
    ({"scan.mode": "full"}, [1, 2, 3], [[1, 2, 3]]),
    ({"scan.mode": "latest"}, [1, 2, 3], []),
    ({"scan.mode": "compacted-full"}, [1, 2], [[1, 2], [3]]),
    ({"scan.mode": "from-timestamp", "scan.timestamp-millis": time_of(2)}, [1, 2], [[2], [3]]),
    ({"scan.timestamp-millis": str(int(time_of(2)) + 1)}, [1, 2], [[3]]),
    ({"scan.timestamp-millis": str(int(time_of(4)) + 1)}, [1, 2, 3], []),
    ({"scan.mode": "from-snapshot", "scan.snapshot-id": "2"}, [1, 2], [[2], [3]]),
    ({"scan.snapshot-id": "4"}, [1, 2, 3], [[3]]),
    ({"scan.version": "1"}, [1], [[1], [2], [3]]),
    ({"scan.mode": "from-snapshot-full", "scan.snapshot-id": "2"}, [1, 2], [[1, 2], [3]]),
    ({"scan.mode": "from-creation-timestamp", "scan.creation-time-millis": time_of(2)}, [1, 2], [[2], [3]]),
    ({"scan.creation-time-millis": "1"}, [1, 2, 3], [[1, 2, 3]]),
    ({"scan.mode": "from-file-creation-time", "scan.file-creation-time-millis": "1"}, [1, 2, 3], [[1, 2, 3]]),
    ({"scan.file-creation-time-millis": "9999999999999"}, [], []),
]


@pytest.mark.parametrize(
    ("options", "batch", "stream"), MODES, ids=lambda item: str(item) if isinstance(item, dict) else ""
)
def test_8_1_modes(table: lakebed.Table, options: dict[str, str], batch: list[int], stream: list[list[int]]) -> None:
    """8.1: every mode shows a read its state, and a stream its start, and then what comes."""
    followed = table.follow(options=options)
    assert [ids(changes) for changes in followed] == stream
    assert ids(table.with_options(options).to_arrow()) == batch
    table.write(row(9))
    assert [ids(changes) for changes in followed] == [[9]]


def test_8_1_file_creation_time_leaves_older_files_out(table: lakebed.Table) -> None:
    """8.1: only files written since a time count, the moment itself included; later changes come whatever it is."""
    newest = table.scan().files[-1]
    times = sorted(creation_time_to_epoch(file.creation_time_ms or 0) for file in table.scan().files)
    assert newest.creation_time_ms is not None
    for key in ("scan.file-creation-time-millis", "scan.creation-time-millis"):
        for since, count in ((times[-1] + 1, 0), (times[0], 2)):
            options = {key: str(since)}
            if key == "scan.creation-time-millis" and int(time_of(1)) < since <= int(time_of(4)):
                continue  # lies between two snapshots
            assert len(table.with_options(options).scan().files) == count


@pytest.mark.parametrize(("kind", "expected"), [("APPEND", [3]), ("COMPACT", [])])
def test_8_1_latest_delta(table: lakebed.Table, kind: str, expected: list[int]) -> None:
    """8.1: latest-delta reads what the newest commit added, nothing after a compaction; it is no stream."""
    if kind == "COMPACT":
        table.with_options({"write-only": "false"}).compact(full=True)
    latest = table.with_options({"scan.mode": "latest-delta"})
    assert ids(latest.to_arrow()) == expected
    assert ids(latest.to_arrow(filter=[("id", "=", 1)])) == []
    with pytest.raises(InvalidArgument, match="is for reads that end"):
        latest.follow()


def test_8_1_compacted_full_counts_commits(table: lakebed.Table) -> None:
    """8.1: where full compactions come every so many commits, the newest snapshot of such a commit is the start."""
    options = {"scan.mode": "compacted-full", "full-compaction.delta-commits": "2"}
    made = table.with_options({"write-only": "false", "full-compaction.delta-commits": "2"})
    for identifier in (1, 2, 3):
        writer = made.writer(commit_user="job", commit_identifier=identifier)
        writer.write(row(10 + identifier))
        writer.commit()
    other = made.compact(full=True)
    assert other is not None
    stores = table._opened.context.stores
    path = stores.paths.snapshot_file(other.id)  # as if it were that of a commit in between
    stores.fileio.overwrite(path, replace(other, commit_identifier=3).to_json().encode())
    found = table.with_options(options).scan().snapshot
    assert found is not None
    assert (found.commit_kind, found.commit_identifier) == ("COMPACT", 2)
    assert ids(table.with_options(options).to_arrow()) == [1, 2, 3, 11, 12]


def test_8_1_compacted_full_without_compaction() -> None:
    """8.1: without any compaction, compacted-full is the latest state."""
    made = lakebed.connect(f"memory://{uuid4()}").create_table("t", {"id": "INT"}).with_options({})
    compacted = {"scan.mode": "compacted-full"}
    assert made.with_options(compacted).to_arrow().num_rows == 0
    made.write(row(1))
    assert ids(made.with_options(compacted).to_arrow()) == [1]
    assert [ids(changes) for changes in made.follow(options=compacted)] == [[1]]


@pytest.mark.parametrize("mode", ["latest", "latest-full", "compacted-full", "from-timestamp", "from-snapshot"])
def test_8_1_a_table_that_is_empty_yet(mode: str) -> None:
    """8.1: a stream that begins before the first commit brings everything, whatever the mode."""
    made = lakebed.connect(f"memory://{uuid4()}").create_table("t", {"id": "INT"})
    point = {"from-timestamp": {"scan.timestamp-millis": "1"}, "from-snapshot": {"scan.snapshot-id": "1"}}.get(mode, {})
    stream = made.follow(options={"scan.mode": mode, **point})
    assert list(stream) == []
    for number in (1, 2):
        made.write(row(number))
    assert [ids(changes) for changes in stream] == [[1], [2]]


def test_n_02_incremental_is_latest_for_a_stream(table: lakebed.Table, caplog: pytest.LogCaptureFixture) -> None:
    """N-02: a stream takes incremental for latest and says so; with a range it is for reads that end."""
    with caplog.at_level(logging.WARNING):
        stream = table.follow(options={"scan.mode": "incremental"})
    assert "`scan.mode` = `incremental` for `latest`" in caplog.text
    assert list(stream) == []
    table.write(row(9))
    assert [ids(changes) for changes in stream] == [[9]]
    for options in ({"incremental-between": "1,2"}, {"scan.mode": "incremental", "incremental-between": "1,2"}):
        with pytest.raises(InvalidArgument, match="is for reads that end"):
            table.follow(options=options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scan.mode": "from-snapshot"}, "does not say where to start"),
        ({"scan.mode": "from-snapshot-full"}, "does not say where to start"),
        ({"scan.mode": "from-timestamp"}, "does not say where to start"),
        ({"scan.mode": "from-file-creation-time"}, "does not say where to start"),
        ({"scan.mode": "from-creation-timestamp"}, "does not say where to start"),
        ({"scan.mode": "latest", "scan.file-creation-time-millis": "1"}, "does not go with `scan.mode` = `latest`"),
        ({"scan.file-creation-time-millis": "1", "scan.creation-time-millis": "1"}, "each choose a snapshot"),
    ],
)
def test_modes_and_points_that_contradict(table: lakebed.Table, options: dict[str, str], message: str) -> None:
    """A mode without its point, or with the point of another, is refused for reads and streams alike."""
    with pytest.raises(InvalidArgument, match=message):
        table.with_options(options).to_arrow()
    with pytest.raises(InvalidArgument, match=message):
        table.follow(options=options)


def test_a_stream_does_not_start_at_a_tag_or_watermark(table: lakebed.Table) -> None:
    """8.1: a stream starts at a snapshot; tags and watermarks are for reads that end."""
    table.create_tag("x", 1)
    for options in ({"scan.tag-name": "x"}, {"scan.version": "x"}, {"scan.watermark": "5"}):
        with pytest.raises(InvalidArgument, match="a stream can not start at"):
            table.follow(options=options)


def test_6_8_reading_by_watermark(table: lakebed.Table) -> None:
    """6.8: the first snapshot whose watermark has reached a value is read; without one there is an error."""
    stores = table._opened.context.stores
    for number, watermark in ((2, 50), (4, 70)):
        path = stores.paths.snapshot_file(number)
        members = unsealed(json.loads(stores.fileio.read_bytes(path)))
        stores.fileio.overwrite(path, json.dumps({**members, "watermark": watermark}).encode())
    for options, found in (
        ({"scan.watermark": "50"}, [1, 2]),
        ({"scan.watermark": "51"}, [1, 2, 3]),
        ({"scan.version": "watermark-1"}, [1, 2]),
    ):
        assert ids(table.with_options(options).to_arrow()) == found
    with pytest.raises(NotFound, match="no snapshot whose watermark has reached 71"):
        table.with_options({"scan.watermark": "71"}).to_arrow()
