"""Tags."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest
from tests.unit.metadata.metadata_samples import snapshot

from lakebed.errors import AlreadyExists, CorruptFile, InvalidArgument, NotFound
from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.paths import TablePaths
from lakebed.metadata.tag import Tag, TagStore


@pytest.fixture
def store(fileio: MemoryFileIO, paths: TablePaths) -> TagStore:
    """Tags of an empty table."""
    return TagStore(fileio, paths)


def test_a_tag_is_a_copy_of_its_snapshot(store: TagStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """Without a time to live the file is just the snapshot."""
    created = store.create("v1", snapshot(4))
    assert created == store.get("v1") == Tag("v1", snapshot(4))
    assert fileio.read_bytes(paths.tag_file("v1")) == snapshot(4).to_file()


def test_a_time_to_live_comes_with_the_time_of_creation(
    store: TagStore, fileio: MemoryFileIO, paths: TablePaths
) -> None:
    """Both are written as Java writes them, and come back."""
    moment, day = datetime(2026, 11, 15, 17, 57, 3, 258762), timedelta(days=1, milliseconds=500)
    store.create("v1", snapshot(4), create_time=moment, retained=day)
    members = json.loads(fileio.read_bytes(paths.tag_file("v1")))
    assert members["tagCreateTime"] == [2026, 11, 15, 17, 57, 3, 258762000]
    assert members["tagTimeRetained"] == 86400.5
    assert store.get("v1") == Tag("v1", snapshot(4), moment, day)
    assert store.create("v2", snapshot(4), retained=day).create_time is not None


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([2026, 1, 2, 3, 4], datetime(2026, 1, 2, 3, 4)),
        ([2026, 1, 2, 3, 4, 5], datetime(2026, 1, 2, 3, 4, 5)),
        ([2026, 1, 2], datetime(2026, 1, 2)),
    ],
)
def test_trailing_zero_parts_may_be_missing(parts: list[int], expected: datetime) -> None:
    """Java leaves out seconds and nanoseconds that are zero."""
    members = snapshot(1).to_members() | {"tagCreateTime": parts, "tagTimeRetained": 60}
    assert Tag.from_json("t", json.dumps(members), "p") == Tag("t", snapshot(1), expected, timedelta(minutes=1))


@pytest.mark.parametrize(
    "change",
    [
        {"tagCreateTime": [2026]},
        {"tagCreateTime": [2026, 13, 1]},
        {"tagCreateTime": [2026, 1, 1, 0, 0, 0, 10**12]},
        {"tagCreateTime": [1] * 8},
        {"tagCreateTime": "x"},
        {"tagTimeRetained": "x"},
        {"tagTimeRetained": True},
        {"tagTimeRetained": 1e300},
        {"id": "x"},
    ],
)
def test_wrong_members_are_damage(change: dict[str, object]) -> None:
    """The error names the file and the member."""
    members = snapshot(1).to_members() | change
    with pytest.raises(CorruptFile, match=rf"some/path.*{next(iter(change))}"):
        Tag.from_json("t", json.dumps(members), "some/path")


def test_names_are_unique(store: TagStore) -> None:
    """A taken name is refused and keeps its snapshot; replacing needs the tag to exist."""
    store.create("v1", snapshot(1))
    with pytest.raises(AlreadyExists, match="v1"):
        store.create("v1", snapshot(2))
    assert store.get("v1").snapshot.id == 1
    store.replace("v1", snapshot(2))
    assert store.get("v1").snapshot.id == 2
    with pytest.raises(NotFound):
        store.replace("v2", snapshot(2))
    assert not store.exists("v2")


def test_an_absent_tag_names_the_nearest(store: TagStore) -> None:
    """A misspelt name is answered with the right one."""
    store.create("release-1", snapshot(1))
    with pytest.raises(NotFound, match="did you mean `release-1`"):
        store.get("relase-1")
    with pytest.raises(InvalidArgument):
        store.get("../snapshot/snapshot-1")


def test_tags_are_listed_by_snapshot(store: TagStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """All tags, older snapshots first; other files are passed over; deleted ones are gone."""
    assert store.list() == ()
    for name, snapshot_id in (("b", 2), ("a", 2), ("z", 1)):
        store.create(name, snapshot(snapshot_id))
    fileio.write_bytes(f"{paths.tag_directory}/.hidden", b"")
    assert [tag.name for tag in store.list()] == ["z", "a", "b"]
    assert store.names() == ("a", "b", "z")
    assert store.delete("a")
    assert not store.delete("a")
    assert [tag.name for tag in store.list()] == ["z", "b"]
