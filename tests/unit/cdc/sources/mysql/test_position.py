"""Positions of both servers: written, read, compared, moved on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.cdc.sources.mysql.tagged_ids import id_set, tagged_id
from lakebed.errors import CorruptFile, InvalidData
from lakebed.metadata.source_position import MariaDbPosition, MySqlPosition

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


def test_mysql_with_tags() -> None:
    """Transactions with a tag are counted by themselves."""
    position = MySqlPosition.parse(f"{UUID}:1-3:5:b_2:1:mytag:1-2,{OTHER}:7")
    assert str(position) == f"{UUID}:1-3:5,{UUID}:b_2:1,{UUID}:mytag:1-2,{OTHER}:7"
    assert MySqlPosition.parse(str(position)) == position
    assert position.has(f"{UUID}:mytag", 2)
    assert not position.has(f"{UUID}:mytag", 3)
    assert position.has(UUID, 3)
    assert not position.covers(MySqlPosition.parse(f"{UUID}:other:1"))
    assert position.after(f"{UUID}:other", 1).covers(MySqlPosition.parse(f"{UUID}:other:1"))
    with pytest.raises(InvalidData):
        MySqlPosition.parse(f"{UUID}:1-x")


def test_sets_as_a_server_writes_them() -> None:
    """Without tags in the form of old, with tags in the one that MySQL writes into its own files."""
    server = "3b6f722a-e23b-11f1-a01b-02fc00000001"
    old = id_set(MySqlPosition.parse(f"{server}:1-2").servers)
    assert (
        old.hex()
        == "0100000000000000" + server.replace("-", "") + "0100000000000000" + "01" + "00" * 7 + "03" + "00" * 7
    )
    assert id_set(MySqlPosition.parse(f"{server}:1-2:b_2:1:mytag:1-2").servers).hex() == (
        "01030000000000013b6f722ae23b11f1a01b02fc0000000100010000000000000001000000000000000300000000000000"
        "3b6f722ae23b11f1a01b02fc0000000106625f32010000000000000001000000000000000200000000000000"
        "3b6f722ae23b11f1a01b02fc000000010a6d79746167010000000000000001000000000000000300000000000000"
    )


def test_an_id_with_a_tag() -> None:
    """The event as MySQL writes it; one that is cut off is refused."""
    body = bytes.fromhex(
        "027800000002c903b28903f90289037422c5037d02ea04f103000000020404060a6d7974616708693f0ad17d0c7f4c71bee7"
    )
    assert tagged_id(body) == ("f259e2be-e23a-11f1-9f75-02fc00000001:mytag", 1)
    for cut in (0, 5, 20):
        with pytest.raises(CorruptFile, match="id of a transaction"):
            tagged_id(body[:cut])


@given(st.lists(st.integers(1, 30), max_size=20))
def test_a_set_of_transactions_is_a_set(numbers: list[int]) -> None:
    """Whatever the order in which transactions come, the set holds them and no others."""
    position = MySqlPosition()
    for number in numbers:
        position = position.after(UUID, number)
    assert {number for number in range(32) if position.has(UUID, number)} == set(numbers)
    assert MySqlPosition.parse(str(position)) == position
