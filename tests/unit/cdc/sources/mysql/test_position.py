"""Positions of both servers: written, read, compared, moved on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.cdc.sources.mysql.position import MariaDbPosition, MySqlPosition
from lakebed.errors import InvalidData

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
OTHER = "3e11fa47-71ca-11e1-9e33-c80aa9429563"


def test_mariadb() -> None:
    """Domains stand for themselves; a position covers another if it does in every domain."""
    position = MariaDbPosition.parse("7-2-9,0-1-1234")
    assert str(position) == "0-1-1234,7-2-9"
    assert position.covers(MariaDbPosition.parse("0-5-1234"))
    assert not position.covers(MariaDbPosition.parse("0-1-1235"))
    assert not position.covers(MariaDbPosition.parse("1-1-1"))
    assert position.covers(MariaDbPosition.parse(""))
    assert str(position.after(0, 3, 1235)) == "0-3-1235,7-2-9"
    with pytest.raises(InvalidData, match="0-1-1234"):
        MariaDbPosition.parse("0-1")


def test_mysql() -> None:
    """Intervals are joined; a set covers another if it holds each of its intervals."""
    position = MySqlPosition.parse(f"{UUID}:1-3:5,\n{OTHER}:7")
    assert str(position) == f"{UUID}:1-3:5,{OTHER}:7"
    assert str(position.after(UUID, 4)) == f"{UUID}:1-5,{OTHER}:7"
    assert position.has(UUID, 2)
    assert not position.has(UUID, 4)
    assert position.covers(MySqlPosition.parse(f"{UUID}:2-3"))
    assert not position.covers(MySqlPosition.parse(f"{UUID}:3-5"))
    with pytest.raises(InvalidData):
        MySqlPosition.parse("no-uuid:1")


@given(st.lists(st.integers(1, 30), max_size=20))
def test_a_set_of_transactions_is_a_set(numbers: list[int]) -> None:
    """Whatever the order in which transactions come, the set holds them and no others."""
    position = MySqlPosition()
    for number in numbers:
        position = position.after(UUID, number)
    assert {number for number in range(32) if position.has(UUID, number)} == set(numbers)
    assert MySqlPosition.parse(str(position)) == position
