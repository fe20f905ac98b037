"""Which snapshots expire: the worked examples, and the walk against a plain description of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.maintenance.expiring_tables import Workshop, ids, needed, present, rows, shown

from lakebed.errors import InvalidArgument
from lakebed.maintenance.retention import Retention, RetentionRules
from lakebed.options import Options
from lakebed.table.table import Table

HOUR_MS = 3_600_000


def filled(shop: Workshop, *minutes: int) -> Table:
    """A table that keeps two to five snapshots for an hour, with snapshots of these times."""
    table = shop.create(False, snapshot__num_retained__min=2, snapshot__num_retained__max=5)
    commit(shop, table, *minutes)
    return table


def commit(shop: Workshop, table: Table, *minutes: int) -> None:
    for minute in minutes:
        shop.at(minute)
        table.write(rows((minute, minute)))


def test_s_10_nothing_is_old_enough() -> None:
    """Four snapshots within an hour stay."""
    shop = Workshop()
    table = filled(shop, 0, 20, 40, 60)
    assert table.expire_snapshots().snapshots == ()
    assert ids(table) == [1, 2, 3, 4]


def test_s_11_expires_when_the_successor_is_old() -> None:
    """The first snapshot goes when the second has been there for more than an hour."""
    shop = Workshop()
    table = filled(shop, 0, 20, 40, 60, 80)
    assert ids(table) == [1, 2, 3, 4, 5]  # at 80 the second is exactly an hour old
    shop.at(81)
    assert table.expire_snapshots().snapshots == (1,)
    assert ids(table) == [2, 3, 4, 5]


def test_s_12_stays_while_the_successor_is_young() -> None:
    """The second snapshot stays, since the third is fifty minutes old."""
    shop = Workshop()
    table = filled(shop, 0, 20, 40, 60, 80)
    commit(shop, table, 90)
    assert ids(table) == [2, 3, 4, 5, 6]


def test_s_13_at_most_so_many_stay() -> None:
    """Beyond the largest number, age does not matter."""
    shop = Workshop()
    table = filled(shop, 0, 20, 40, 60, 80, 90, 95, 96)
    assert ids(table) == [4, 5, 6, 7, 8]
    assert len(shown(table)) == 8
    assert present(table) == needed(table)


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=14),
    st.integers(1, 15),
    st.integers(0, 10),
    st.integers(-5, 35),
    st.integers(1, 15),
    st.none() | st.integers(1, 16),
    st.integers(1, 5),
)
def test_walk_is_what_the_rules_say(
    times: list[int], least: int, more: int, older_than: int, limit: int, held: int | None, earliest: int
) -> None:
    """An id goes exactly if all before it go, it is not among the least to keep, not held, and too old or too many."""
    times.sort()
    most, latest = least + more, earliest + len(times) - 1
    stop = Retention(least, most, older_than, limit).first_kept(
        earliest, latest, lambda number: times[number - earliest], lambda: held
    )
    expected = earliest
    while True:
        number = expected
        if number > latest - least or (held is not None and number >= held) or number >= earliest + limit:
            break
        if number >= latest - most + 1 and times[number + 1 - earliest] >= older_than:
            break
        expected += 1
    assert stop == expected


def test_consumers_are_asked_only_if_something_is_due() -> None:
    """A table with nothing to expire costs no look at its consumers, and no snapshot is read for few of them."""

    def never(*_: int) -> int:
        raise AssertionError

    assert Retention(10, 100, 0, 50).first_kept(1, 10, never, never) == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, False),
        ({"changelog.num-retained.min": "10"}, False),
        ({"changelog.num-retained.min": "11"}, True),
        ({"changelog.time-retained": "2 h"}, True),
        ({"changelog.time-retained": "30 min"}, False),
        ({"snapshot.num-retained.max": "20", "changelog.num-retained.max": "21"}, True),
        ({"snapshot.num-retained.max": "20"}, False),
    ],
)
def test_changelogs_outlive_snapshots_if_they_are_kept_longer(options: dict[str, str], expected: bool) -> None:
    """One larger setting is enough; equal or smaller ones change nothing."""
    assert RetentionRules.of(Options(options), 0).is_decoupled is expected


def test_arguments_take_the_place_of_options() -> None:
    """What is given counts, what is not comes from the options; to keep few at most means to keep few at least."""
    rules = RetentionRules.of(Options({"snapshot.num-retained.max": "30"}), 2 * HOUR_MS)
    assert rules.snapshots == Retention(10, 30, HOUR_MS, 50)
    assert rules.with_arguments(7, 3, None, None).snapshots == Retention(3, 3, 7, 50)
    assert rules.with_arguments(None, None, 1, 2).snapshots == Retention(1, 30, HOUR_MS, 2)


@pytest.mark.parametrize(
    "arguments", [{"retain_max": 0}, {"retain_min": "2"}, {"max_deletes": True}, {"retain_min": 3, "retain_max": 2}]
)
def test_wrong_arguments_are_named(arguments: dict[str, int]) -> None:
    """Numbers below one, other types and contradictions are refused, and nothing happens."""
    table = Workshop().create()
    with pytest.raises(InvalidArgument, match=next(iter(arguments))):
        table.expire_snapshots(**arguments)
