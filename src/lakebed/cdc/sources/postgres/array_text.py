"""Texts that hold several things, taken apart byte by byte in numpy: arrays, hexadecimal bytes, strings of bits.

All of a column's texts lie behind one another in one buffer; what a byte means (a quote, a comma between elements, a
backslash that protects) is computed for all bytes at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def flat(text: pa.Array, instead_of_null: str) -> tuple[Numbers, Bytes]:
    """Where each text begins (and the last ends), and the bytes of them all."""
    filled = pc.fill_null(text, instead_of_null)
    offsets = np.frombuffer(filled.buffers()[1], np.int32)[filled.offset : filled.offset + len(filled) + 1]
    offsets = offsets.astype(np.int64)
    content = filled.buffers()[2]
    data = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    return offsets - offsets[0], data[offsets[0] : offsets[-1]]


def split_arrays(text: pa.Array) -> tuple[Numbers, pa.Array]:
    """Elements of arrays such as `{1,NULL,"a \\"b\\""}`: where those of each array begin, and all of them as texts.

    Bounds in front (`[0:1]={…}`) are left out. Of arrays in arrays nothing is understood: the caller sorts them out.
    """
    if pc.any(pc.starts_with(text, "[")).as_py():
        text = pc.replace_substring_regex(text, r"^\[[^=]*=", "")
    borders, data = flat(text, "{}")
    is_backslash = data == ord("\\")
    is_escape = np.zeros(len(data), bool)
    if is_backslash.any():
        places = np.arange(len(data))
        run = places - np.maximum.accumulate(np.where(is_backslash, -1, places))
        is_escape = is_backslash & (run % 2 == 1)  # of several in a row, every second is itself protected
    is_escaped = np.zeros(len(data), bool)
    is_escaped[1:] = is_escape[:-1]
    is_quote = (data == ord('"')) & ~is_escaped
    is_plain = ~is_quote & (np.cumsum(is_quote) % 2 == 0)
    is_open, is_close, is_comma = (is_plain & (data == ord(mark)) for mark in "{},")
    is_empty = np.diff(borders) == 2
    is_open[borders[:-1][is_empty]] = False  # `{}` has no element, `{x}` has one
    is_edge = is_open | is_comma
    begins = np.flatnonzero(is_edge) + 1
    is_kept = ~(is_quote | is_escape | is_edge | is_close)
    is_kept[borders[:-1][is_empty]] = False
    new_places = np.concatenate([[0], np.cumsum(is_kept)])
    offsets = np.append(new_places[begins], new_places[-1]).astype(np.int32)
    content = np.ascontiguousarray(data[is_kept])
    elements = pa.StringArray.from_buffers(len(begins), pa.py_buffer(offsets), pa.py_buffer(content))
    is_null = pc.and_(pc.equal(elements, "NULL"), pa.array(data[begins] != ord('"')))
    elements = pc.if_else(is_null, pa.scalar(None, pa.string()), elements)
    counts = np.concatenate([[0], np.cumsum(is_edge)])
    return counts[borders], elements


_DIGITS = np.zeros(256, np.uint8)
for _place, _digit in enumerate(b"0123456789abcdef"):
    _DIGITS[_digit] = _place


def hex_strings(text: pa.Array) -> pa.Array:
    """Bytes from texts such as `\\x6869`."""
    borders, data = flat(text, "\\x")
    # Two characters stand in front, two for each byte: every text begins at an even place.
    digits = _DIGITS[data]
    pairs: Bytes = np.bitwise_or(np.left_shift(digits[0::2], 4), digits[1::2]).astype(np.uint8)
    is_content = np.ones(len(pairs), bool)
    is_content[borders[:-1] // 2] = False
    offsets = borders // 2 - np.arange(len(borders))
    return _binary(offsets, pairs[is_content], text)


def bit_strings(text: pa.Array, width_bytes: int | None) -> pa.Array:
    """Bytes from texts such as `0101`: the number that they write, most significant byte first."""
    borders, data = flat(text, "")
    lengths = np.diff(borders)
    widths = (lengths + 7) // 8 if width_bytes is None else np.full(len(lengths), width_bytes)
    offsets = np.concatenate([[0], np.cumsum(widths)])
    bits = np.zeros(8 * int(offsets[-1]), np.uint8)
    shift = 8 * offsets[1:] - borders[1:]  # texts end where their bytes end
    bits[np.arange(len(data)) + np.repeat(shift, lengths)] = data == ord("1")
    return _binary(offsets, np.packbits(bits), text)


def _binary(offsets: Numbers, data: Bytes, text: pa.Array) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data))]
    values = pa.Array.from_buffers(pa.binary(), len(text), buffers)
    return values if text.null_count == 0 else pc.if_else(pc.is_valid(text), values, pa.scalar(None, pa.binary()))


__all__ = ["bit_strings", "flat", "hex_strings", "split_arrays"]
