"""Expiry of whole tables: what goes, what stays, and that nothing goes when in doubt."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.unit.maintenance.expiring_tables import (
    MINUTE_MS,
    ROOT,
    TEN_O_CLOCK,
    Workshop,
    changed,
    ids,
    needed,
    present,
    rows,
    shown,
    stores_of,
)

from lakebed.errors import CorruptFile, FileMissing, InvalidArgument, NotFound
from lakebed.fileio.base import FileIO
from lakebed.maintenance.snapshots import line_of
from lakebed.maintenance.tidy_up import tidy_up
from lakebed.metadata.index_manifest import HASH_INDEX, IndexEntry
from lakebed.metadata.manifest import EntryKind
from lakebed.metadata.snapshot import CommitKind
from lakebed.options import MANIFEST_MERGE_MIN_COUNT, Options
from lakebed.table.opened import OpenedTable
from lakebed.table.table import Table
from lakebed.testing.faulty_io import FaultyFileIO, InjectedFault

KEEP_ALL = {"snapshot__time_retained": "9 d"}


def history(shop: Workshop, commits: int = 6, **options: object) -> Table:
    """A table with so many commits, one a minute, each replacing key 0 and adding one; compacted after the third."""
    table = shop.create(**{"write_only": "true", **options})
    for number in range(commits):
        shop.at(number)
        table.write(rows((0, number), (number + 1, number)))
        if number == 2:
            table.with_options({"write-only": "false"}).compact(full=True)
    return table


def contents(shop: Workshop) -> dict[str, bytes]:
    """Every file."""
    return {status.path: shop.fileio.read_bytes(status.path) for status in shop.fileio.list_recursive(ROOT)}


# --- snapshots -------------------------------------------------------------------------------------------------------


def test_files_of_expired_snapshots_go() -> None:
    """Exactly the files that no snapshot needs any more go, and the rows stay."""
    shop = Workshop()
    table = history(shop)
    before, rows_before = present(table), shown(table)
    expired = table.expire_snapshots(retain_max=2)
    assert expired.snapshots == (1, 2, 3, 4, 5)
    assert ids(table) == [6, 7]
    assert present(table) == needed(table)
    assert expired.file_count == len(before - present(table)) + 5
    assert shown(table) == rows_before
    assert shown(table.at(snapshot=6)) == [(0, 4), *((n + 1, n) for n in range(5))]
    assert shop.fileio.read_bytes(f"{table.location}/snapshot/EARLIEST") == b"6"


def test_each_snapshot_is_whole_until_it_goes() -> None:
    """Expiring one at a time, all that are left can be read each time."""
    shop = Workshop()
    table = history(shop)
    states = {number: shown(table.at(snapshot=number)) for number in ids(table)}
    while len(ids(table)) > 1:
        assert len(table.expire_snapshots(retain_max=1, max_deletes=1).snapshots) == 1
        assert {number: shown(table.at(snapshot=number)) for number in ids(table)} == {
            number: state for number, state in states.items() if number in ids(table)
        }
        assert present(table) == needed(table)


def test_older_than_is_a_moment() -> None:
    """What was replaced before the moment goes."""
    shop = Workshop()
    table = history(shop)
    moment = table.snapshots()[2].time_millis
    assert table.expire_snapshots(older_than=moment, retain_min=1).snapshots == (1,)
    with pytest.raises(InvalidArgument, match="no point in time"):
        table.expire_snapshots(older_than=1.5)  # type: ignore[arg-type]


def test_overwritten_files_go() -> None:
    """An overwrite's predecessors go with their files."""
    shop = Workshop()
    table = history(shop, 3, snapshot__expire__limit=100)
    table.truncate()
    table.expire_snapshots(retain_max=1)
    assert shown(table) == []
    assert present(table) == needed(table)
    assert not [path for path in present(table) if "/bucket-" in path]


def test_merged_manifests_go() -> None:
    """Manifests that were merged into others go with the last snapshot that names them."""
    shop = Workshop()
    table = history(shop, 8, **{MANIFEST_MERGE_MIN_COUNT.key.replace(".", "__").replace("-", "_"): 2})
    table.expire_snapshots(retain_max=3)
    assert present(table) == needed(table)


def test_tags_keep_their_files() -> None:
    """A tag's state is readable after its snapshot expired; other files go all the same."""
    shop = Workshop()
    table = history(shop)
    table.create_tag("early", 2)
    table.create_tag("late", 6)
    state = shown(table.at(tag="early"))
    table.expire_snapshots(retain_max=1)
    assert shown(table.at(tag="early")) == state == [(0, 1), (1, 0), (2, 1)]
    assert present(table) == needed(table)
    with pytest.raises(NotFound):
        table.at(snapshot=2)


def test_consumers_hold_snapshots() -> None:
    """Nothing that a consumer has yet to read goes, however many snapshots there are."""
    shop = Workshop()
    table = history(shop)
    stores_of(table).consumers.record("slow", 3)
    stores_of(table).consumers.record("fast", 6)
    assert table.expire_snapshots(retain_max=1).snapshots == (1, 2)
    assert table.expire_snapshots(retain_max=1).snapshots == ()
    stores_of(table).consumers.record("slow", 1)  # its past is gone already
    assert table.expire_snapshots(retain_max=1).snapshots == ()
    stores_of(table).consumers.delete("slow")
    assert table.expire_snapshots(retain_max=1).snapshots == (3, 4, 5)


def test_other_branches_keep_their_files() -> None:
    """What a branch's snapshots, tags and changelogs need stays, though the main branch forgets it."""
    shop = Workshop()
    table = history(shop)
    stores = stores_of(table)
    paths = stores.paths.on_branch("b")
    for number in (2, 3):
        data = stores.snapshots.get(number).to_json().encode()
        shop.fileio.write_bytes(paths.snapshot_file(number), data)
    shop.fileio.write_bytes(paths.changelog_file(1), stores.snapshots.get(1).to_json().encode())
    shop.fileio.write_bytes(paths.tag_file("five"), stores.snapshots.get(5).to_json().encode())
    for status in shop.fileio.list_directory(stores.paths.schema_directory):
        shop.fileio.write_bytes(f"{paths.schema_directory}/{status.name}", shop.fileio.read_bytes(status.path))
    branch = shop.lake.table("t$branch_b")
    states = [shown(branch), shown(branch.at(snapshot=2)), shown(branch.at(tag="five"))]
    changes = changed(branch, 0)
    assert table.expire_snapshots(retain_max=1)
    assert [shown(branch), shown(branch.at(snapshot=2)), shown(branch.at(tag="five"))] == states
    assert changed(branch, 0) == changes


def test_files_that_an_overwrite_brought_back_stay() -> None:
    """A snapshot that restores an old state uses files which an earlier one had dropped: they stay."""
    shop = Workshop()
    table = shop.create(False, **KEEP_ALL)
    table.write(rows((1, 1)))
    table.truncate()
    table.write(rows((2, 2)))
    stores = stores_of(table)
    first, latest = stores.snapshots.get(1), stores.snapshots.get(3)
    brought_back = Table(OpenedTable(table._opened.context)).at(snapshot=1).scan().files
    assert len(brought_back) == 1
    entries = stores.manifests.read(stores.manifest_lists.read(first.delta_manifest_list)[0].file_name)
    metas = stores.manifests.write(entries, [], 1 << 20)
    delta, delta_size = stores.manifest_lists.write(metas)
    base, base_size = stores.manifest_lists.write(
        stores.manifest_lists.read(latest.base_manifest_list) + stores.manifest_lists.read(latest.delta_manifest_list)
    )
    restored = first.to_members() | {
        "id": 4,
        "baseManifestList": base,
        "baseManifestListSize": base_size,
        "deltaManifestList": delta,
        "deltaManifestListSize": delta_size,
        "commitKind": str(CommitKind.OVERWRITE),
        "timeMillis": latest.time_millis,
    }
    assert entries[0].kind == EntryKind.ADD
    shop.fileio.write_bytes(stores.paths.snapshot_file(4), json.dumps(restored).encode())
    shop.fileio.overwrite(stores.paths.latest_hint, b"4")
    table.expire_snapshots(retain_max=2)
    assert ids(table) == [3, 4]
    (path,) = {table._opened.context.data_file_path(e.partition, e.bucket, e.file.file_name) for e in entries}
    assert shop.fileio.exists(path)


def test_index_and_statistics_files_go_with_the_last_snapshot_that_names_them() -> None:
    """Index files, their manifests and statistics go when the next snapshot has others, and not before."""
    shop = Workshop()
    table = history(shop, 4)
    stores = stores_of(table)
    names = {}
    for number, file in ((1, "a"), (2, "a"), (3, "b"), (4, "b"), (5, "b")):
        if file not in names:
            entry = IndexEntry(b"\0\0\0\0", 0, HASH_INDEX, f"index-{file}", 1, 1)
            names[file] = stores.index_manifests.write([entry])
            shop.fileio.write_bytes(stores.paths.index_file(f"index-{file}"), b"x")
            shop.fileio.write_bytes(stores.paths.statistics_file(f"stat-{file}"), b"x")
        members = stores.snapshots.get(number).to_json()
        extra = f'"indexManifest": "{names[file]}", "statistics": "stat-{file}", '
        shop.fileio.overwrite(stores.paths.snapshot_file(number), members.replace("{", "{" + extra, 1).encode())

    def there(file: str) -> list[bool]:
        paths = stores.paths
        places = [
            paths.index_file(f"index-{file}"),
            paths.manifest_file(names[file]),
            paths.statistics_file(f"stat-{file}"),
        ]
        return [shop.fileio.exists(place) for place in places]

    table.expire_snapshots(retain_max=4)
    assert there("a") == [True] * 3
    table.expire_snapshots(retain_max=3)
    assert there("a") == [False] * 3
    table.expire_snapshots(retain_max=1)
    assert there("b") == [True] * 3


def test_partitions_and_plain_tables() -> None:
    """Partitioned tables and tables without a key expire as well."""
    shop = Workshop()
    schema = pa.schema([("p", pa.string()), ("v", pa.int64())])
    table = shop.lake.create_table("parts", schema, partition_by=["p"], options={"write-only": "true"})
    for number in range(4):
        table.write(pa.table({"p": ["x", "y"], "v": [number, number]}, schema=schema))
    table.write(pa.table({"p": ["x"], "v": [9]}, schema=schema), overwrite={"p": "x"})
    table.expire_snapshots(retain_max=1)
    assert present(table) == needed(table)
    assert sorted(table.to_arrow()["v"].to_pylist()) == [0, 1, 2, 3, 9]


# --- several at once -------------------------------------------------------------------------------------------------


class _Between(FaultyFileIO):
    """Another expiry runs, once, right after (or before) the nth use of a method on the announcement of expiries."""

    def __init__(self, inner: FileIO, method: str, nth: int, action: Callable[[], object], *, is_before: bool = False):
        super().__init__(inner)
        self._method, self._nth, self._action, self._is_before = method, nth, action, is_before

    def _meddle(self, method: str, path: str, is_before: bool) -> None:
        if method == self._method and path.endswith("/EXPIRING") and is_before == self._is_before:
            self._nth -= 1
            if self._nth == 0:
                self._action()

    def read_bytes(self, path: str) -> bytes:
        try:
            return super().read_bytes(path)
        finally:
            self._meddle("read", path, False)

    def overwrite(self, path: str, data: bytes) -> None:
        self._meddle("overwrite", path, True)
        super().overwrite(path, data)


@pytest.mark.parametrize(("use", "nth"), [("overwrite", 1), *(("read", nth) for nth in range(1, 9))])
def test_two_expiries_do_not_take_each_other_for_a_rollback(
    use: str, nth: int, caplog: pytest.LogCaptureFixture
) -> None:
    """One that goes further overtakes another at any point: no warning, and all that both meant to remove is gone."""
    shop = Workshop()
    table = history(shop, 8)
    further = lambda: table.expire_snapshots(retain_max=2)  # noqa: E731
    io = _Between(shop.fileio, use, nth, further, is_before=use == "overwrite")
    with caplog.at_level(logging.WARNING):
        slower = Workshop(io).lake.table("t")
        slower.expire_snapshots(retain_max=5)
    assert ids(table) == [8, 9]
    assert present(table) == needed(table)
    assert table.check() == []
    assert "rolled back" not in caplog.text


def test_an_expiry_whose_announcement_was_taken_back_announces_again() -> None:
    """A slower expiry may write its own announcement over a further one: the further one goes on all the same."""
    shop = Workshop()
    table = history(shop, 8)
    snapshots = stores_of(table).snapshots
    io = _Between(shop.fileio, "read", 4, lambda: snapshots.withdraw_expiry(2))
    gone = Workshop(io).lake.table("t").expire_snapshots(retain_max=2)
    assert ids(table) == [8, 9]
    assert gone.snapshots == tuple(range(1, 8))
    assert present(table) == needed(table)


def test_a_rollback_meanwhile_makes_the_plan_anew() -> None:
    """The expiry does then what is due after the rollback, and announces nothing of the history that is gone."""
    shop = Workshop()
    table = history(shop, 8)
    io = _Between(shop.fileio, "read", 1, lambda: table.rollback_to(4))
    gone = Workshop(io).lake.table("t").expire_snapshots(retain_max=2)
    assert gone.snapshots == (1, 2)
    assert ids(table) == [3, 4]
    assert stores_of(table).snapshots.first_not_expiring() == 3


# --- more than may go at once ----------------------------------------------------------------------------------------


def test_what_the_limit_leaves_is_counted() -> None:
    """The result says how many more are due, until none is."""
    shop = Workshop()
    table = history(shop, 12)
    first = table.expire_snapshots(retain_max=3, max_deletes=4)
    assert (len(first.snapshots), first.remaining) == (4, 6)
    second = table.with_options({"snapshot.expire.limit": 5}).expire_snapshots(retain_max=3)
    assert (len(second.snapshots), second.remaining) == (5, 1)
    third = table.expire_snapshots(retain_max=3)
    assert (len(third.snapshots), third.remaining) == (1, 0)


def test_the_count_of_what_is_due_goes_by_age_and_consumers_too() -> None:
    """Neither young snapshots nor those that a consumer has yet to read count as due."""
    shop = Workshop()
    table = history(shop, 12)
    minute_8 = TEN_O_CLOCK + 8 * MINUTE_MS
    assert table.expire_snapshots(older_than=minute_8, retain_min=1, max_deletes=1).remaining == 7
    stores_of(table).consumers.record("slow", 5)
    assert table.expire_snapshots(older_than=minute_8, retain_min=1, max_deletes=1).remaining == 2


def test_changelogs_that_outlive_their_snapshots_count_as_due() -> None:
    """Where changelogs live longer, those that are due and have to wait are counted."""
    shop = Workshop()
    table = history(shop, 12, changelog__num_retained__max=20, changelog__num_retained__min=20)
    table.expire_snapshots(retain_max=1)
    few = {
        "snapshot.num-retained.max": 1,
        "snapshot.num-retained.min": 1,
        "changelog.num-retained.max": 3,
        "changelog.num-retained.min": 2,
    }
    gone = table.with_options(few).expire_snapshots(retain_max=1, max_deletes=4)
    assert len(gone.changelogs) == 4
    assert gone.remaining == len(stores_of(table).changelogs.ids()) - 2


# --- after a commit --------------------------------------------------------------------------------------------------


def test_commits_expire() -> None:
    """Each commit and each compaction expires what is due; a table that is write-only keeps everything."""
    shop = Workshop()
    kept = {"snapshot__num_retained__min": 1, "snapshot__num_retained__max": 3}
    table = shop.create(**kept, num_sorted_run__compaction_trigger=3)
    for number in range(7):
        table.write(rows((number, number)))
        assert len(ids(table)) <= 3
    table.compact(full=True)
    assert len(ids(table)) == 3
    assert present(table) == needed(table)
    count = len(ids(table))
    table.with_options({"write-only": "true"}).write(rows((1, 1)))
    assert len(ids(table)) == count + 1


def test_nothing_due_costs_one_listing() -> None:
    """A commit of a table with fewer snapshots than stay in any case looks at its tags alone for expiry."""
    shop = Workshop()
    table = shop.create(False)
    for _ in range(3):
        table.write(rows((1, 1)))
    watched = FaultyFileIO(shop.fileio)
    for write_only in ("true", "false"):
        again = Workshop(watched).lake.table("t").with_options({"write-only": write_only})
        again.write(rows((1, 1)))
        watched.ops.append(("end", ""))
    ends = [number for number, (method, _) in enumerate(watched.ops) if method == "end"]
    first, second = watched.ops[: ends[0]], watched.ops[ends[0] + 1 : ends[1]]
    assert len(second) == len(first) + 1
    assert second[-1] == ("list_directory", f"{table.location}/tag")


@pytest.mark.parametrize("key", ["consumer.expiration-time", "tag.automatic-creation", "tag.time-expire-enabled"])
def test_a_value_that_nobody_can_read_does_not_fail_a_commit(key: str, caplog: pytest.LogCaptureFixture) -> None:
    """Of another engine's table, say: it is told in the log, and the commit stands."""
    context = Workshop().create(False)._opened.context
    wrong = context.with_schema(context.schema, Options({**context.options.raw, key: "?"}))
    tidy_up(wrong)
    tidy_up(wrong)
    assert key in caplog.text


def test_who_commits_again_and_again_lists_no_snapshots() -> None:
    """Once a handle knows how young the oldest snapshot is, it looks again when that one may have had its time."""
    watched = FaultyFileIO(Workshop().fileio)
    shop = Workshop(watched)
    table = shop.create(False, snapshot__num_retained__min=1, snapshot__time_retained="1 h")

    def listings() -> int:
        watched.ops.clear()
        table.write(rows((1, 1)))
        return watched.ops.count(("list_directory", f"{table.location}/snapshot"))

    assert [listings() > 0 for _ in range(6)][2:] == [False] * 4
    shop.at(60)
    assert listings() == 0
    assert len(ids(table)) == 7
    shop.at(61)
    assert listings() > 0
    assert len(ids(table)) == 3


def test_failures_after_a_commit_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The commit stands when its expiry can not be decided; a warning says why."""
    shop = Workshop()
    table = history(shop)
    stores = stores_of(table)
    shop.fileio.overwrite(stores.paths.tag_file("broken"), b"{")
    with caplog.at_level(logging.WARNING):
        table.with_options(
            {"write-only": "false", "snapshot.num-retained.max": 2, "snapshot.num-retained.min": 1}
        ).write(rows((7, 7)))
    assert (7, 7) in shown(table)
    assert ids(table)[0] == 1
    assert "tag-broken" in caplog.text


def test_replays_are_recognised_after_expiry() -> None:
    """A stream's commit whose snapshot has expired is not committed again."""
    shop = Workshop()
    table = shop.create(snapshot__num_retained__min=1, snapshot__num_retained__max=1)

    def commit(identifier: int, value: int) -> object:
        with table.writer(commit_user="job", commit_identifier=identifier) as writer:
            writer.write(rows((identifier, value)))
            return writer.commit()

    for identifier in (1, 2):
        assert commit(identifier, identifier) is not None
    table.write(rows((9, 9)))
    assert "job" not in {snapshot.commit_user for snapshot in table.snapshots()}
    for identifier in (1, 2):
        assert commit(identifier, 100) is None
    assert shown(table) == [(1, 1), (2, 2), (9, 9)]
    assert commit(3, 3) is not None


def test_handles_outlive_expiry() -> None:
    """A handle that remembers a state since expired goes on writing with the right sequence numbers."""
    shop = Workshop()
    table = shop.create(**KEEP_ALL)
    table.write(rows((1, 1)))
    other = shop.lake.table("t")
    for value in (2, 3, 4):
        other.write(rows((1, value)))
    other.expire_snapshots(retain_max=1)
    table.write(rows((1, 5)))
    assert shown(table) == [(1, 5)]


# --- in doubt, nothing goes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "damage"),
    [
        *((what, "corrupt") for what in ("successor", "tag", "consumer")),  # gone, they are no damage
        *((what, "delete") for what in ("delta list", "base list of a kept one", "tag's list", "branch")),
        *((what, "corrupt") for what in ("delta list", "base list of a kept one", "tag's list", "branch")),
    ],
)
def test_unreadable_metadata_stops_everything(what: str, damage: str) -> None:
    """Something that the decision rests on is missing or damaged: an error, and not one file is gone."""
    shop = Workshop()
    table = history(shop)
    stores = stores_of(table)
    table.create_tag("early", 2)
    stores.consumers.record("reader", 6)
    branch = stores.paths.on_branch("b")
    second = stores.snapshots.get(2)
    text = second.to_json().replace(second.base_manifest_list, "own")
    shop.fileio.write_bytes(branch.snapshot_file(2), text.encode())
    own = shop.fileio.read_bytes(stores.paths.manifest_file(second.base_manifest_list))
    shop.fileio.write_bytes(stores.paths.manifest_file("own"), own)
    path = {
        "successor": stores.paths.snapshot_file(3),
        "delta list": stores.paths.manifest_file(stores.snapshots.get(3).delta_manifest_list),
        "base list of a kept one": stores.paths.manifest_file(stores.snapshots.get(6).base_manifest_list),
        "tag": stores.paths.tag_file("early"),
        "tag's list": stores.paths.manifest_file(stores.snapshots.get(2).base_manifest_list),
        "consumer": stores.paths.consumer_file("reader"),
        "branch": stores.paths.manifest_file("own"),
    }[what]
    shop.fileio.delete(path)
    if damage == "corrupt":
        shop.fileio.write_bytes(path, b"{")
    before = contents(shop)
    with pytest.raises((CorruptFile, FileMissing)):
        table.expire_snapshots(retain_max=1)
    assert contents(shop) == before


def test_whichever_read_fails_nothing_goes() -> None:
    """A failing file system is no empty one: an error, and everything is as it was."""
    shop = Workshop()
    table = history(shop)
    table.create_tag("early", 2)
    before = contents(shop)

    def expire(io: FaultyFileIO) -> None:
        Workshop(io).lake.table("t").expire_snapshots(retain_max=1, max_deletes=2)

    good = FaultyFileIO(_copy(shop))
    expire(good)
    reads = next(number for number, (method, _) in enumerate(good.ops) if method == "delete")
    assert reads > 20
    for number in range(1, reads + 1):
        with pytest.raises(InjectedFault):
            expire(FaultyFileIO(shop.fileio, number))
        # The announcement of what would go may be there: it is a hint, and everything else is as it was.
        now = {path: data for path, data in contents(shop).items() if not path.endswith("/EXPIRING")}
        assert now == before


def _copy(shop: Workshop) -> FileIO:
    copy = Workshop().fileio
    for path, data in contents(shop).items():
        copy.write_bytes(path, data)
    return copy


def test_ids_below_a_gap_are_left_alone() -> None:
    """A snapshot without a successor is not the oldest of the table, and expiry does not touch it."""
    assert line_of([]) == range(0)
    assert line_of([3]) == range(3, 4)
    assert line_of([1, 2, 5, 6, 7]) == range(5, 8)
    shop = Workshop()
    table = history(shop)
    stray = stores_of(table).snapshots.get(1).to_json().encode()
    table.expire_snapshots(retain_max=4)
    shop.fileio.write_bytes(stores_of(table).paths.snapshot_file(1), stray)
    assert table.expire_snapshots(retain_max=1).snapshots == (4, 5, 6)
    assert stores_of(table).snapshots.exists(1)


def test_read_only_views_do_not_expire() -> None:
    """A table at a snapshot is read only."""
    shop = Workshop()
    table = history(shop, 1)
    with pytest.raises(InvalidArgument, match="read only"):
        table.at(snapshot=1).expire_snapshots()


def test_empty_table() -> None:
    """Without snapshots there is nothing to expire."""
    assert not Workshop().create().expire_snapshots(retain_max=1)
