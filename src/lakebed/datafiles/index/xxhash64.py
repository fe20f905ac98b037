"""64-bit xxHash of texts, many at a time: what Bloom filters of text columns are made of.

All texts take the same step together, longest first, so that those which are not at their end yet are a prefix. Words
are taken from where they lie in Arrow's buffer, aligned or not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
_Places = npt.NDArray[np.int64]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E37_79B1_85EB_CA87,
        0xC2B2_AE3D_27D4_EB4F,
        0x1656_67B1_9E37_79F9,
        0x85EB_CA77_C2B2_AE63,
        0x27D4_EB2F_1656_67C5,
    )
)
_STRIPE = 32


def xxhash64(texts: pa.Array) -> Hashes:
    """The hash, with seed 0, of each text; `texts` is a binary or text column without nulls."""
    column = texts.cast(pa.large_binary())
    _, offsets_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(data_buffer or b"", np.uint8)
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    hashes = np.empty(len(column), np.uint64)
    hashes[order] = _hash(data, offsets[:-1][order], lengths[order])
    return hashes


def _hash(data: npt.NDArray[np.uint8], places: _Places, lengths: _Places) -> Hashes:
    """REQUIRES: longest first."""
    stripes = lengths // _STRIPE
    state = np.full(len(places), _P5, np.uint64)
    long_ones = int(np.count_nonzero(stripes))
    if long_ones:
        state[:long_ones] = _striped(_words(data, 8), places[:long_ones], stripes[:long_ones])
    state += lengths.astype(np.uint64)
    return _finished(_with_rest(data, state, places + stripes * _STRIPE, lengths % _STRIPE))


def _words(data: npt.NDArray[np.uint8], size_bytes: int) -> npt.NDArray[np.uint64]:
    """The number that starts at each byte."""
    count = max(len(data) - size_bytes + 1, 0)
    return np.ndarray((count,), f"<u{size_bytes}", data.data, strides=(1,))


def _striped(words: npt.NDArray[np.uint64], places: _Places, stripes: _Places) -> Hashes:
    lanes = [np.full(len(places), start, np.uint64) for start in _starts()]
    for step in range(int(stripes[0])):
        count = int(np.searchsorted(-stripes, -step))
        for lane, state in enumerate(lanes):
            state[:count] = _round(state[:count], words[places[:count] + (step * _STRIPE + lane * 8)])
    merged = _rotated(lanes[0], 1) + _rotated(lanes[1], 7) + _rotated(lanes[2], 12) + _rotated(lanes[3], 18)
    for state in lanes:
        merged = (merged ^ _round(np.zeros_like(state), state)) * _P1 + _P4
    return merged


def _starts() -> tuple[int, int, int, int]:
    mask = (1 << 64) - 1
    first, second = int(_P1), int(_P2)
    return ((first + second) & mask, second, 0, -first & mask)


def _with_rest(data: npt.NDArray[np.uint8], state: Hashes, places: _Places, left: _Places) -> Hashes:
    """With the last bytes of each text, which are fewer than a stripe."""
    words, halves = _words(data, 8), _words(data, 4)
    for _ in range(3):
        some = np.flatnonzero(left >= 8)
        mixed = state[some] ^ _round(np.zeros(len(some), np.uint64), words[places[some]])
        state[some] = _rotated(mixed, 27) * _P1 + _P4
        places[some] += 8
        left[some] -= 8
    some = np.flatnonzero(left >= 4)
    mixed = state[some] ^ (halves[places[some]].astype(np.uint64) * _P1)
    state[some] = _rotated(mixed, 23) * _P2 + _P3
    places[some] += 4
    left[some] -= 4
    for _ in range(3):
        some = np.flatnonzero(left > 0)
        mixed = state[some] ^ (data[places[some]].astype(np.uint64) * _P5)
        state[some] = _rotated(mixed, 11) * _P1
        places[some] += 1
        left[some] -= 1
    return state


def _round(state: Hashes, words: npt.NDArray[np.uint64]) -> Hashes:
    return _rotated(state + words * _P2, 31) * _P1


def _rotated(values: Hashes, bits: int) -> Hashes:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _finished(state: Hashes) -> Hashes:
    state = (state ^ (state >> np.uint64(33))) * _P2
    state = (state ^ (state >> np.uint64(29))) * _P3
    return state ^ (state >> np.uint64(32))
