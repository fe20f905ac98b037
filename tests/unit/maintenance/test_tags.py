"""Tags: made, moved, renamed, expired, and deleted with exactly the files that only they kept."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from tests.unit.maintenance.expiring_tables import (
    TEN_O_CLOCK,
    Workshop,
    ids,
    needed,
    present,
    rows,
    shown,
    stores_of,
)

from lakebed.errors import AlreadyExists, CommitConflict, CorruptFile, FileMissing, InvalidArgument, NotFound
from lakebed.maintenance.tags import find_snapshot
from lakebed.table.table import Table

DAY = dt.timedelta(days=1)


def history(shop: Workshop, commits: int = 5, **options: object) -> Table:
    """A table where each commit replaces key 0 and adds one; compacted after each, so that files drop out."""
    table = shop.create(**{"write_only": "true", **options})
    for number in range(commits):
        table.write(rows((0, number), (number + 1, number)))
        table.with_options({"write-only": "false"}).compact(full=True)
    return table


def test_a_tag_names_the_latest_snapshot_or_another() -> None:
    """Without a snapshot the latest is meant; names are listed in order, details by snapshot."""
    table = history(Workshop(), 2)
    table.create_tag("now")
    table.create_tag("earlier", 2)
    assert table.tags() == ["earlier", "now"]
    assert [(tag.name, tag.snapshot.id, tag.retained) for tag in table.tags(detail=True)] == [
        ("earlier", 2, None),
        ("now", 4, None),
    ]
    assert shown(table.at(tag="earlier")) == [(0, 0), (1, 0)]


def test_a_number_may_name_a_tag() -> None:
    """A tag named like a snapshot id is found first by `scan.version`."""
    table = history(Workshop(), 2)
    table.create_tag("4", 2)
    assert shown(table.with_options({"scan.version": "4"})) == [(0, 0), (1, 0)]


def test_a_time_to_live_is_written_as_other_engines_do() -> None:
    """Local time of creation in parts, and seconds; a tag without a time to live has neither."""
    table = history(Workshop(), 1)
    table.create_tag("short", time_retained="1 d")
    table.create_tag("long")
    body = json.loads(table._opened.context.fileio.read_bytes(f"{table.location}/tag/tag-short"))
    local = dt.datetime.fromtimestamp(TEN_O_CLOCK / 1000)
    assert body["tagCreateTime"][:5] == [local.year, local.month, local.day, local.hour, local.minute]
    assert body["tagTimeRetained"] == 86400
    assert not {"tagCreateTime", "tagTimeRetained"} & set(
        json.loads(table._opened.context.fileio.read_bytes(f"{table.location}/tag/tag-long"))
    )


def test_the_option_gives_new_tags_a_time_to_live() -> None:
    """`tag.default-time-retained` holds for tags that name no time of their own."""
    table = history(Workshop(), 1, tag__default_time_retained="2 d")
    table.create_tag("a")
    table.create_tag("b", time_retained=DAY)
    assert {tag.name: tag.retained for tag in table.tags(detail=True)} == {"a": 2 * DAY, "b": DAY}


def test_a_marker_tells_of_a_new_tag() -> None:
    """Where the option asks for it there is a file for each tag, which is no tag itself and goes with the tag."""
    shop = Workshop()
    table = history(shop, 1, tag__create_success_file="true")
    table.create_tag("a")
    path = f"{table.location}/tag/tag-success-file/a_SUCCESS"
    assert json.loads(shop.fileio.read_bytes(path)) == {"creationTime": TEN_O_CLOCK, "modificationTime": TEN_O_CLOCK}
    assert table.tags() == ["a"]
    table.expire_snapshots(retain_max=1, retain_min=1)
    table.delete_tag("a")
    assert not shop.fileio.exists(path)


def test_tags_are_replaced_and_renamed() -> None:
    """A tag moves to another snapshot with another time to live, and takes another name."""
    table = history(Workshop(), 2)
    with pytest.raises(NotFound):
        table.replace_tag("x")
    table.create_tag("x", 2)
    table.replace_tag("x", time_retained="1 d")
    assert [(tag.snapshot.id, tag.retained) for tag in table.tags(detail=True)] == [(4, DAY)]
    table.rename_tag("x", "y")
    assert table.tags() == ["y"]
    assert table.tags(detail=True)[0].retained == DAY
    table.create_tag("z")
    with pytest.raises(AlreadyExists):
        table.rename_tag("y", "z")
    with pytest.raises(NotFound):
        table.rename_tag("x", "w")
    assert table.tags() == ["y", "z"]


def test_wrong_arguments_are_refused() -> None:
    """No tag of nothing, no name twice, no time that is none."""
    table = Workshop().create()
    with pytest.raises(NotFound, match="no snapshot"):
        table.create_tag("a")
    table.write(rows((1, 1)))
    with pytest.raises(InvalidArgument, match="time_retained"):
        table.create_tag("a", time_retained="soon")
    with pytest.raises(InvalidArgument):
        table.create_tag(" ")
    with pytest.raises(InvalidArgument):
        table.delete_tag()
    table.create_tag("a")
    with pytest.raises(AlreadyExists):
        table.create_tag("a")
    with pytest.raises(NotFound):
        table.delete_tag("a", "b")
    assert table.tags() == ["a"]


def test_a_deleted_tag_takes_its_files_along() -> None:
    """What only tags of expired snapshots kept goes with the last of them; what is shared stays until then."""
    table = history(Workshop())
    for name, number in (("one", 2), ("two", 4), ("twin", 4), ("three", 6)):
        table.create_tag(name, number)
    states = {name: shown(table.at(tag=name)) for name in table.tags()}
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert present(table) == needed(table)
    latest = shown(table)
    assert table.delete_tag("twin").file_count == 0
    for name in ("two", "one", "three"):
        assert table.delete_tag(name).file_count > 0
        states.pop(name)
        assert present(table) == needed(table)
        assert {left: shown(table.at(tag=left)) for left in table.tags()} == {
            left: state for left, state in states.items() if left != "twin"
        }
    assert shown(table) == latest


def test_a_tag_of_a_living_snapshot_goes_alone() -> None:
    """The snapshot still needs the files."""
    table = history(Workshop(), 2)
    table.create_tag("a", 2)
    before = present(table)
    assert table.delete_tag("a").file_count == 0
    assert present(table) == before


def test_files_of_a_branch_stay_when_the_tag_goes() -> None:
    """A branch made from the tag has the same files."""
    shop = Workshop()
    table = history(shop)
    table.create_tag("a", 2)
    table.create_branch("b", "a")
    table.expire_snapshots(retain_max=1, retain_min=1)
    before = present(table)
    assert table.delete_tag("a").file_count == 0
    assert present(table) == before
    assert shown(shop.lake.table("t$branch_b")) == [(0, 0), (1, 0)]


@pytest.mark.parametrize("damage", ["missing", "corrupt"])
def test_nothing_goes_if_something_is_unreadable(damage: str) -> None:
    """Neither the tag nor a file goes while a manifest of the latest snapshot can not be read."""
    shop = Workshop()
    table = history(shop)
    table.create_tag("a", 2)
    table.expire_snapshots(retain_max=1, retain_min=1)
    stores = stores_of(table)
    path = stores.paths.manifest_file(table.snapshots()[-1].base_manifest_list)
    shop.fileio.delete(path)
    if damage == "corrupt":
        shop.fileio.write_bytes(path, b"no avro")
    before = {status.path for status in shop.fileio.list_recursive("lake")}
    with pytest.raises((CorruptFile, FileMissing)):
        table.delete_tag("a")
    assert {status.path for status in shop.fileio.list_recursive("lake")} == before


def test_tags_expire_when_their_time_is_over() -> None:
    """Only tags with a time to live expire by themselves; a moment takes older ones too."""
    shop = Workshop()
    table = history(shop, 2)
    table.create_tag("kept", 2)
    table.create_tag("hour", 2, "1 h")
    table.create_tag("day", 4, "1 d")
    assert table.expire_tags().names == ()
    shop.at(61)
    assert table.expire_tags().names == ("hour",)
    assert table.tags() == ["day", "kept"]
    shop.at(70)
    assert table.expire_tags(older_than=TEN_O_CLOCK + 1).names == ("day",)
    assert table.expire_tags(older_than="2999-01-01").names == ("kept",)


def test_a_tag_keeps_an_expired_snapshot_findable() -> None:
    """Another tag can be made of it, as long as one keeps its files."""
    table = history(Workshop())
    table.create_tag("a", 2)
    table.expire_snapshots(retain_max=1, retain_min=1)
    table.create_tag("b", 2)
    table.delete_tag("a")
    assert shown(table.at(tag="b")) == [(0, 0), (1, 0)]
    assert find_snapshot(stores_of(table), 2).id == 2
    with pytest.raises(NotFound):
        table.create_tag("c", 3)


def test_a_tag_of_what_is_about_to_expire_is_taken_back() -> None:
    """An expiry that has announced itself may not know of the tag: the tag does not stay."""
    table = history(Workshop())
    stores_of(table).snapshots.announce_expiry(5)
    with pytest.raises(CommitConflict):
        table.create_tag("a", 4)
    assert table.tags() == []
    table.create_tag("a", 5)
    with pytest.raises(CommitConflict):
        table.replace_tag("a", 4)
    assert table.tags(detail=True)[0].snapshot.id == 5
    assert ids(table)[0] == 1
