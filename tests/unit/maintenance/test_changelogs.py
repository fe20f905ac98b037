"""Changelogs that outlive their snapshots, with and without a producer: kept, read, expired."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.maintenance.expiring_tables import Workshop, changed, ids, needed, present, rows, shown, stores_of

from lakebed.errors import NotFound
from lakebed.schema.changes import RemoveOption
from lakebed.table.table import Table

PRODUCERS = ["none", "input", "lookup", "full-compaction"]


def history(shop: Workshop, producer: str, commits: int = 6, **options: Any) -> Table:
    """A table whose changelogs stay longer than its snapshots; nothing expires by itself yet."""
    given = {
        "changelog_producer": producer,
        "num_sorted_run__compaction_trigger": 3,
        "changelog__num_retained__max": 200,
        "changelog__num_retained__min": 8,
        "snapshot__num_retained__max": 100,
        "snapshot__num_retained__min": 1,
        **({"full_compaction__delta_commits": 1} if producer == "full-compaction" else {}),
        **options,
    }
    table = shop.create(**given)
    for number in range(commits):
        shop.at(number)
        table.write(rows((0, number), (number + 1, number)))
    return table


def limits(table: Table, changelogs: int) -> Table:
    """The same with so many changelogs at most."""
    kept = {"changelog.num-retained.min": 1, "changelog.num-retained.max": changelogs, "snapshot.num-retained.max": 1}
    return table.with_options(kept)


@pytest.mark.parametrize("producer", PRODUCERS)
def test_changes_stay_readable(producer: str) -> None:
    """Changes of expired snapshots are told as before, and only what they need is kept."""
    shop = Workshop()
    table = history(shop, producer)
    told = {since: changed(table, since) for since in range(len(ids(table)))}
    assert any(told[0])
    latest = ids(table)[-1]
    expired = limits(table, 1000).expire_snapshots(retain_max=1)
    assert expired.snapshots == tuple(range(1, latest))
    assert expired.changelogs == ()
    assert ids(table) == [latest]
    assert stores_of(table).changelogs.ids() == list(range(1, latest))
    assert {since: changed(table, since) for since in told} == told
    assert needed(table) <= present(table)
    if producer != "none":
        assert present(table) == needed(table)
    assert shop.fileio.read_bytes(f"{table.location}/changelog/LATEST") == str(latest - 1).encode()


@pytest.mark.parametrize("producer", PRODUCERS)
def test_changelogs_expire_too(producer: str) -> None:
    """One after the other, changelogs go with their files; positions before them have expired."""
    shop = Workshop()
    table = history(shop, producer)
    latest = ids(table)[-1]
    told = {since: changed(table, since) for since in range(latest)}
    rows_before = shown(table)
    limits(table, 1000).expire_snapshots()
    for keep in range(latest - 1, 1, -1):
        expired = limits(table, keep).expire_snapshots()
        assert expired.changelogs == (latest - keep,)
        first = latest - keep + 1
        assert stores_of(table).changelogs.ids() == list(range(first, latest))
        assert {since: changed(table, since) for since in range(first - 1, latest)} == {
            since: events for since, events in told.items() if since >= first - 1
        }
        with pytest.raises(NotFound, match="have expired") as raised:
            table.changes(first - 2)
        assert f"snapshot {latest}" in raised.value.hint
        assert needed(table) <= present(table)
    assert shown(table) == rows_before


@pytest.mark.parametrize("producer", PRODUCERS)
def test_nothing_is_left_when_changelogs_end(producer: str) -> None:
    """When changelogs stop outliving snapshots, those that are left go, with every file that only they needed."""
    shop = Workshop()
    table = history(shop, producer)
    limits(table, 1000).expire_snapshots()
    assert stores_of(table).changelogs.ids()
    table.alter(RemoveOption("changelog.num-retained.max"), RemoveOption("changelog.num-retained.min"))
    table.write(rows((0, 77)))
    before = shown(table)
    table.expire_snapshots(retain_max=1)
    assert stores_of(table).changelogs.ids() == []
    assert present(table) == needed(table)
    assert shown(table) == before
    assert not shop.fileio.exists(f"{table.location}/changelog/LATEST")


def test_age_of_changelogs() -> None:
    """Changelogs go by their own time, two hours, while snapshots go after one."""
    shop = Workshop()
    table = shop.create(False, snapshot__num_retained__min=1, changelog__time_retained="2 h")
    for minute in range(0, 300, 30):
        shop.at(minute)
        table.write(rows((minute, minute)))
    # now 270: the snapshot that was replaced at 210 is the first to stay, and the changelog replaced at 150
    assert ids(table) == [7, 8, 9, 10]
    assert stores_of(table).changelogs.ids() == [5, 6]
    assert [row[1] for row in changed(table, 4)] == list(range(120, 300, 30))


def test_consumers_hold_changelogs() -> None:
    """A consumer that reads changes holds changelogs, and snapshots too unless it is said not to."""
    shop = Workshop()
    table = history(shop, "none")
    stores_of(table).consumers.record("reader", 4)
    assert limits(table, 2).expire_snapshots().snapshots == (1, 2, 3)
    assert stores_of(table).changelogs.ids() == []  # all three are beyond the two that may stay
    stores_of(table).consumers.delete("reader")
    limits(table, 1000).expire_snapshots()
    first = stores_of(table).changelogs.ids()[0]
    stores_of(table).consumers.record("reader", first + 1)
    assert limits(table, 2).expire_snapshots().changelogs == (first,)
    assert limits(table, 2).expire_snapshots().changelogs == ()


def test_left_over_changelogs_go_before_snapshots() -> None:
    """While a consumer holds a changelog of former times, no snapshot goes that shares files with it."""
    shop = Workshop()
    table = history(shop, "none")
    limits(table, 1000).expire_snapshots(retain_max=3)
    kept = ids(table)
    table.alter(RemoveOption("changelog.num-retained.max"), RemoveOption("changelog.num-retained.min"))
    stores_of(table).consumers.record("reader", 3)
    told = changed(table, 2)
    assert table.expire_snapshots(retain_max=1).snapshots == ()
    assert ids(table) == kept
    assert changed(table, 2) == told


def test_tags_keep_files_from_changelog_expiry() -> None:
    """A tag's files stay when the changelog of the commit that added them goes."""
    shop = Workshop()
    table = history(shop, "none")
    table.create_tag("early", 2)
    state = shown(table.at(tag="early"))
    limits(table, 1000).expire_snapshots()
    limits(table, 2).expire_snapshots()
    assert shown(table.at(tag="early")) == state
    assert needed(table) <= present(table)


# --- by hand ---------------------------------------------------------------------------------------------------------


def _with_changelogs(count: int = 8) -> Table:
    shop = Workshop()
    table = shop.create(write_only="true", changelog__num_retained__min=40, changelog__num_retained__max=40)
    for number in range(count):
        shop.at(number)
        table.write(rows((number, number)))
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert stores_of(table).changelogs.ids() == list(range(1, count))
    return table


def test_changelogs_expire_by_hand() -> None:
    """No more than so many stay, snapshots are not touched, and what the limit left is counted."""
    table = _with_changelogs()
    gone = table.expire_changelogs(retain_max=3, retain_min=1, max_deletes=2)
    assert (gone.snapshots, gone.changelogs, gone.remaining) == ((), (1, 2), 3)
    gone = table.expire_changelogs(retain_max=3, retain_min=1)
    assert gone.changelogs == (3, 4, 5)
    assert stores_of(table).changelogs.ids() == [6, 7]
    assert ids(table) == [8]
    assert changed(table, 5) == [("+I", 5, 5), ("+I", 6, 6), ("+I", 7, 7)]


def test_without_arguments_the_options_decide() -> None:
    """Nothing goes that the table's options keep."""
    table = _with_changelogs()
    assert not table.expire_changelogs()
    few = {"changelog.num-retained.max": 4, "changelog.num-retained.min": 2}
    assert table.with_options(few).expire_changelogs().changelogs == (1, 2, 3, 4)


def test_all_changelogs_go() -> None:
    """`delete_all` asks neither options nor consumers; the table reads as before."""
    table = _with_changelogs()
    stores_of(table).consumers.record("slow", 2)
    before = shown(table)
    assert len(table.expire_changelogs(retain_max=3, retain_min=1).changelogs) == 1
    assert len(table.expire_changelogs(delete_all=True).changelogs) == 6
    assert stores_of(table).changelogs.ids() == []
    assert shown(table) == before
    assert table.check() == []
