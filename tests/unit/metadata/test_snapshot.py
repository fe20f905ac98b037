"""Snapshot files, their hints, and the search for one of them."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.metadata.metadata_samples import snapshot

from lakebed.errors import CorruptFile, FileMissing, NotFound
from lakebed.fileio.local import LocalFileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.operation import OWN_OPERATION
from lakebed.metadata.paths import TablePaths
from lakebed.metadata.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot, SnapshotStore

FULL = Snapshot(
    id=5,
    schema_id=2,
    base_manifest_list="b",
    base_manifest_list_size=10,
    delta_manifest_list="d",
    delta_manifest_list_size=11,
    changelog_manifest_list="c",
    changelog_manifest_list_size=12,
    index_manifest="i",
    commit_user="ü",
    commit_identifier=BATCH_COMMIT_IDENTIFIER,
    commit_kind=CommitKind.OVERWRITE,
    time_millis=1794766237632,
    total_record_count=9,
    delta_record_count=-4,
    changelog_record_count=3,
    watermark=-(1 << 63),
    statistics="s",
    properties={"k": "v"},
    next_row_id=7,
    operation="DELETE",
    writer_version="lakebed",
    uuid="u",
)


@pytest.fixture
def store(fileio: MemoryFileIO, paths: TablePaths) -> SnapshotStore:
    """Snapshots of an empty table."""
    return SnapshotStore(fileio, paths)


def fill(store: SnapshotStore, *ids: int) -> None:
    """Publish snapshots with these ids."""
    for snapshot_id in ids:
        assert store.publish(snapshot(snapshot_id))


COMPACTED = snapshot(2, operation="COMPACT", writer_version="lakebed-1")
NEWER = snapshot(2, operation="WORD_OF_TOMORROW", properties={OWN_OPERATION: "COMPACT"})
REPAIRED = replace(FULL, operation="REPAIR")


@pytest.mark.parametrize(
    "one", [FULL, snapshot(1), COMPACTED, REPAIRED, NEWER], ids=["full", "minimal", "compact", "repair", "newer"]
)
def test_json_round_trip(one: Snapshot) -> None:
    """Every member survives, and members without value are not written."""
    assert Snapshot.from_json(one.to_json(), "p") == one
    assert None not in json.loads(one.to_json()).values()


def test_json_has_the_keys_other_readers_expect() -> None:
    """The spelling of each key is part of the format."""
    assert set(json.loads(FULL.to_json())) == {
        *("version", "uuid", "id", "schemaId", "baseManifestList", "baseManifestListSize", "deltaManifestList"),
        *("deltaManifestListSize", "changelogManifestList", "changelogManifestListSize", "indexManifest"),
        *("commitUser", "commitIdentifier", "commitKind", "timeMillis", "totalRecordCount", "deltaRecordCount"),
        *("changelogRecordCount", "watermark", "statistics", "properties", "nextRowId", "operation", "writerVersion"),
    }
    assert json.loads(FULL.to_json())["commitIdentifier"] == 9223372036854775807


@pytest.mark.parametrize(
    ("one", "properties"),
    [(COMPACTED, {OWN_OPERATION: "COMPACT"}), (REPAIRED, {"k": "v", OWN_OPERATION: "REPAIR"})],
    ids=["compact", "repair"],
)
def test_a_word_that_others_do_not_know_stands_among_the_properties(one: Snapshot, properties: dict[str, str]) -> None:
    """Paimon reads `operation` as one of a fixed set of words; ours go where it does not look."""
    members = json.loads(one.to_json())
    assert "operation" not in members
    assert members["properties"] == properties


def test_a_word_of_ours_in_its_old_place_is_read() -> None:
    """Snapshots of older versions say the same as those of this one."""
    members = json.loads(snapshot(2, writer_version="lakebed-1").to_json()) | {"operation": "COMPACT"}
    assert Snapshot.from_json(json.dumps(members), "p") == COMPACTED


def test_words_in_snapshots_of_others_are_left_alone() -> None:
    """A newer release may know more words, and others carry our properties on to commits that were something else."""
    assert json.loads(NEWER.to_json())["operation"] == "WORD_OF_TOMORROW"
    carried = replace(NEWER, operation=None)
    assert Snapshot.from_json(carried.to_json(), "p") == carried


def test_unknown_and_null_members_are_ignored() -> None:
    """Old and new writers add members of their own."""
    members = json.loads(snapshot(1).to_json()) | {"logOffsets": {}, "future": [1], "watermark": None, "version": 99}
    assert Snapshot.from_json(json.dumps(members), "p") == snapshot(1, version=99)


@pytest.mark.parametrize(
    "key",
    [
        *("id", "schemaId", "baseManifestList", "deltaManifestList", "commitUser", "commitIdentifier", "commitKind"),
        *("timeMillis", "totalRecordCount", "deltaRecordCount"),
    ],
)
def test_a_missing_or_mistyped_member_is_corruption(key: str) -> None:
    """The error names the file and the member."""
    members = json.loads(FULL.to_json())
    for wrong in ({}, [], 1.5, True, 1 << 63, "x" if isinstance(members[key], int) else 3):
        with pytest.raises(CorruptFile, match=rf"some/path.*{key}"):
            Snapshot.from_json(json.dumps(members | {key: wrong}), "some/path")
    del members[key]
    with pytest.raises(CorruptFile, match=f"some/path.*{key}"):
        Snapshot.from_json(json.dumps(members), "some/path")


@pytest.mark.parametrize("text", [b"", b"{", b"null", b"[1]", b"\xff\xfe", b"[" * 100_000, b'{"id": ' + b"9" * 5000])
def test_what_is_not_a_json_object_is_corruption(text: bytes) -> None:
    """No parser error gets out."""
    with pytest.raises(CorruptFile, match="some/path"):
        Snapshot.from_json(text, "some/path")


def test_every_truncation_is_corruption() -> None:
    """A snapshot cut off anywhere is never taken for a snapshot."""
    text = FULL.to_json().encode()
    for length in range(len(text)):
        with pytest.raises(CorruptFile):
            Snapshot.from_json(text[:length], "p")


@given(st.integers(0, len(FULL.to_json().encode()) - 1), st.integers(0, 7))
def test_a_flipped_bit_gives_a_snapshot_or_corruption(position: int, bit: int) -> None:
    """Damage that JSON can not reveal is at least no crash."""
    text = bytearray(FULL.to_json().encode())
    text[position] ^= 1 << bit
    with contextlib.suppress(CorruptFile):
        assert isinstance(Snapshot.from_json(bytes(text), "p"), Snapshot)


# Hints


def test_an_empty_table_has_no_snapshot(store: SnapshotStore) -> None:
    """Nothing is found, and nothing fails."""
    assert store.latest_id() is None
    assert store.latest() is None
    assert store.earliest_id() is None
    assert store.earliest() is None
    assert store.ids() == []
    with pytest.raises(NotFound, match="no snapshot"):
        store.get(1)


@pytest.mark.parametrize(
    "hint", [None, b"", b"garbage", b"\xff", b"-1", b"0", b"1", b"2", b"3", b" 4\n", b"5", b"99", b"9" * 30, b"1.5"]
)
def test_the_newest_snapshot_is_found_whatever_the_hint(
    hint: bytes | None, store: SnapshotStore, fileio: MemoryFileIO, paths: TablePaths
) -> None:
    """Missing, unreadable, too low or too high: a hint never hides the newest or the oldest snapshot."""
    fill(store, 2, 3, 4)
    if hint is not None:
        fileio.overwrite(paths.latest_hint, hint)
        fileio.overwrite(paths.earliest_hint, hint if hint != b" 4\n" and hint != b"3" else b"2")
    latest = store.latest()
    assert latest is not None
    assert store.latest_id() == latest.id == 4
    assert store.earliest_id() == 2


def test_a_crash_between_snapshot_and_hint_hides_nothing(store: SnapshotStore) -> None:
    """The hint still says 1 when snapshot 2 is already published."""
    fill(store, 1)
    store.write_latest_hint(1)
    fill(store, 2)
    assert store.latest_id() == 2


def test_a_good_hint_saves_the_listing(paths: TablePaths) -> None:
    """The directory is not listed when the files bear out the hint."""

    class Unlisted(MemoryFileIO):
        def list_directory(self, path: str) -> list[object]:  # type: ignore[override]
            raise AssertionError(path)

    store = SnapshotStore(Unlisted("unlisted"), paths)
    fill(store, 6, 7)
    store.write_latest_hint(7)
    store.write_earliest_hint(6)
    assert (store.latest_id(), store.earliest_id()) == (7, 6)


def test_only_snapshot_files_count(store: SnapshotStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """Temporary and foreign files in the directory are passed over."""
    fill(store, 10, 9)
    for name in (".snapshot-11.tmp", "snapshot-", "snapshot-x", "snapshot-12.tmp", "other-13", "snapshot-١"):
        fileio.write_bytes(f"{paths.snapshot_directory}/{name}", b"")
    assert store.ids() == [9, 10]


# One snapshot


def test_an_absent_snapshot_says_what_there_is(store: SnapshotStore) -> None:
    """Expired ids get an error that names the range."""
    fill(store, 4, 5)
    with pytest.raises(NotFound, match="snapshot 3") as caught:
        store.get(3)
    assert "4 to 5" in caught.value.hint


def test_a_damaged_snapshot_names_its_path(store: SnapshotStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """Corruption is not mistaken for absence."""
    fileio.write_bytes(paths.snapshot_file(1), b"{}")
    with pytest.raises(CorruptFile, match=paths.snapshot_file(1)):
        store.get(1)
    with pytest.raises(CorruptFile):
        store.latest()


def test_the_file_name_decides_the_id(store: SnapshotStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """A copy under another number counts as that number, or the next commit could never get its own."""
    fileio.write_bytes(paths.snapshot_file(8), snapshot(3).to_json().encode())
    assert store.get(8).id == 8


def test_publish_happens_once(store: SnapshotStore) -> None:
    """The second commit with the same id is told, and changes nothing."""
    assert store.publish(snapshot(1, commit_user="first"))
    assert not store.publish(snapshot(1, commit_user="second"))
    assert store.get(1).commit_user == "first"
    assert store.delete(1)
    assert not store.exists(1)


def test_one_of_many_racing_commits_wins(tmp_path: Path) -> None:
    """With threads on a real file system, each id goes to exactly one committer and none is lost."""
    store = SnapshotStore(LocalFileIO(), TablePaths(str(tmp_path / "t")))

    def commit(user: int) -> list[int]:
        won = []
        while len(won) < 5:
            next_id = (store.latest_id() or 0) + 1
            if store.publish(snapshot(next_id, commit_user=str(user))):
                store.write_latest_hint(next_id)
                won.append(next_id)
        return won

    with ThreadPoolExecutor(8) as pool:
        wins = list(pool.map(commit, range(8)))
    assert sorted(i for won in wins for i in won) == store.ids() == list(range(1, 41))
    for user, won in enumerate(wins):
        assert all(store.get(i).commit_user == str(user) for i in won)
    assert store.latest_id() == 40


# By time and user


@given(
    st.lists(st.integers(0, 5), min_size=0, max_size=12), st.integers(1, 4), st.integers(-1, 40), st.integers(0, 10**9)
)
def test_time_search_equals_a_scan(gaps: list[int], first: int, time_ms: int, unique: int) -> None:
    """Binary search finds what looking at every snapshot finds, with equal times and expired ids."""
    store = SnapshotStore(MemoryFileIO(f"time-{unique}-{id(gaps)}"), TablePaths(f"t{gaps}{first}{time_ms}{unique}"))
    now, times = 0, {}
    for offset, gap in enumerate(gaps):
        now += gap
        times[first + offset] = now
        store.publish(snapshot(first + offset, time_millis=now))
    before = max((i for i, t in times.items() if t <= time_ms), default=None)
    after = min((i for i, t in times.items() if t >= time_ms), default=None)
    found_before, found_after = store.at_or_before_time(time_ms), store.first_at_or_after_time(time_ms)
    assert (found_before.id if found_before else None) == before
    assert (found_after.id if found_after else None) == after


def test_search_starts_over_when_snapshots_expire(paths: TablePaths) -> None:
    """A snapshot that vanishes between listing and reading does not spoil the answer."""

    class Expiring(MemoryFileIO):
        expired = False

        def read_bytes(self, path: str) -> bytes:
            if not self.expired and "snapshot-" in path:
                self.expired = True
                for snapshot_id in range(1, 7):
                    self.delete(paths.snapshot_file(snapshot_id))
            return super().read_bytes(path)

    store = SnapshotStore(Expiring("expiring"), paths)
    fill(store, *range(1, 11))
    found = store.at_or_before_time(8000)
    assert found is not None
    assert found.id == 8
    assert store.at_or_before_time(6999) is None


def test_a_table_that_never_settles_is_an_error(paths: TablePaths) -> None:
    """When every read finds its file gone, the caller is told to try again instead of waiting forever."""

    class Vanishing(MemoryFileIO):
        def read_bytes(self, path: str) -> bytes:
            raise FileMissing(path, hint="gone")

    store = SnapshotStore(Vanishing("vanishing"), paths)
    fill(store, 1)
    with pytest.raises(FileMissing, match="vanish"):
        store.latest()
    with pytest.raises(FileMissing, match="vanish"):
        store.at_or_before_time(1)


def test_the_newest_snapshot_of_a_user(store: SnapshotStore) -> None:
    """The walk goes down from the newest, not below the given id, and ends where snapshots have expired."""
    for snapshot_id, user in ((2, "b"), (4, "a"), (5, "b"), (6, "a"), (7, "c")):
        store.publish(snapshot(snapshot_id, commit_user=user))
    newest = store.newest_of_user("a")
    assert newest is not None
    assert newest.id == 6
    assert store.newest_of_user("b", down_to=6) is None
    assert [s.id for s in store.newest_first()] == [7, 6, 5, 4]
    assert store.newest_of_user("nobody") is None
