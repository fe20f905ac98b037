"""The container of file indexes."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.datafiles.index.container import pack, unpack
from lakebed.errors import CorruptFile

_NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(
    st.dictionaries(
        _NAMES, st.dictionaries(_NAMES, st.none() | st.binary(max_size=20), min_size=1, max_size=3), max_size=3
    )
)
def test_what_is_packed_comes_out(indexes: dict[str, dict[str, bytes | None]]) -> None:
    """Any columns and kinds, empty indexes and names beyond ASCII included, come out as they went in."""
    assert unpack(pack(indexes), "x") == indexes


def test_layout() -> None:
    """The bytes of a small container, as other engines write them, and behind them our checksum."""
    wanted = "00054e4ed01a35ae000000010000002a00000001000161000000010001620000002a00000002" + "00000000" + "0708"
    packed = pack({"a": {"b": b"\x07\x08"}})
    assert packed == bytes.fromhex(wanted) + b"lakebed-crc32" + zlib.crc32(bytes.fromhex(wanted)).to_bytes(4, "big")
    assert unpack(bytes.fromhex(wanted), "x") == {"a": {"b": b"\x07\x08"}}


def test_every_flipped_bit_is_noticed_or_harmless() -> None:
    """Only the mark of the checksum can change unnoticed, and then the indexes are what they were."""
    indexes = {"a": {"b": b"\x07\x08", "c": None}, "ü": {"b": b"x" * 30}}
    packed = pack(indexes)
    harmless = 0
    for bit in range(len(packed) * 8):
        damaged = bytearray(packed)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            found = unpack(bytes(damaged), "some/path")
        except CorruptFile:
            continue
        assert found == indexes
        harmless += 1
    assert harmless == len(b"lakebed-crc32") * 8


@pytest.mark.parametrize("cut", [0, 7, 15, 19, 22, 30])
def test_cut_containers_are_refused(cut: int) -> None:
    """A container that ends too early is no container, and the error names the file."""
    with pytest.raises(CorruptFile, match="some-file"):
        unpack(pack({"a": {"b": b"\x07\x08"}})[:cut], "some-file")


def test_other_bytes_are_refused() -> None:
    """Bytes that do not begin with the magic number are refused."""
    with pytest.raises(CorruptFile):
        unpack(bytes(64), "x")
