"""Columns of bytes as base64 texts, all values at once: libraries encode one value at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_FILLER = ord("=")


def to_base64(values: pa.Array) -> pa.Array:
    """The texts of the values, with `=` at their ends as RFC 4648 has it; nulls stay null."""
    large = values.cast(pa.large_binary()).fill_null(b"")
    offsets = np.frombuffer(large.buffers()[1], np.int64)[large.offset : large.offset + len(large) + 1]
    content = large.buffers()[2]
    source = np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]] if content else np.empty(0, np.uint8)
    sizes = np.diff(offsets)
    groups = -(-sizes // 3)
    group_ends = np.concatenate(([0], np.cumsum(groups)))
    # Each value begins at a group of three bytes; what lacks in its last group is zero.
    padded = np.zeros(int(group_ends[-1]) * 3, np.uint8)
    moved_by = np.repeat(group_ends[:-1] * 3 - (offsets[:-1] - offsets[0]), sizes)
    padded[np.arange(len(source)) + moved_by] = source
    encoded = _ALPHABET[_sixths(padded)].reshape(-1)
    for lacking in (1, 2):
        short = (groups * 3 - sizes >= lacking) & (sizes > 0)
        encoded[group_ends[1:][short] * 4 - lacking] = _FILLER
    buffers = [None, pa.py_buffer(np.ascontiguousarray(group_ends * 4)), pa.py_buffer(encoded)]
    texts = pa.Array.from_buffers(pa.large_string(), len(values), buffers)
    return pa.compute.if_else(values.is_valid(), texts, pa.scalar(None, pa.large_string()))


def _sixths(padded: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Four numbers of six bits for three bytes of eight."""
    first, second, third = padded[0::3], padded[1::3], padded[2::3]
    return np.stack(
        [first >> 2, (first & 3) << 4 | second >> 4, (second & 15) << 2 | third >> 6, third & 63], axis=1
    ).astype(np.uint8)
