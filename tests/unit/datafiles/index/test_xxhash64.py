"""64-bit xxHash over columns."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.datafiles.index.xxhash64 import xxhash64

_MASK = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("", 0xEF46DB3751D8E999), ("a", 0xD24EC4F1A98C6E5B), ("abc", 0x44BC2CF5AD770999)],
)
def test_known_hashes(text: str, wanted: int) -> None:
    """Hashes that the inventor of the function has published."""
    assert xxhash64(pa.array([text])).tolist() == [wanted]


@given(st.lists(st.binary(max_size=100), max_size=12), st.integers(0, 3))
def test_columns_agree_with_single_texts(texts: list[bytes], skip: int) -> None:
    """Texts of any lengths, hashed together, give what the plain definition gives for each."""
    column = pa.array(texts, pa.binary()).slice(min(skip, len(texts)))
    assert xxhash64(column).tolist() == [_plain(text) for text in texts[min(skip, len(texts)) :]]


def _plain(data: bytes) -> int:
    """The definition, one text at a time."""
    at, state = 0, _P5
    if len(data) >= 32:
        lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
        while at + 32 <= len(data):
            lanes = [_round(lane, _word(data, at + 8 * i, 8)) for i, lane in enumerate(lanes)]
            at += 32
        state = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            state = ((state ^ _round(0, lane)) * _P1 + _P4) & _MASK
    state = (state + len(data)) & _MASK
    while at + 8 <= len(data):
        state = (_rotated(state ^ _round(0, _word(data, at, 8)), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= len(data):
        state = (_rotated(state ^ (_word(data, at, 4) * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        state = _rotated(state ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    for shift, prime in ((33, _P2), (29, _P3), (32, 1)):
        state = (state ^ state >> shift) * prime & _MASK
    return state


def _word(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _round(state: int, word: int) -> int:
    return _rotated((state + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK
