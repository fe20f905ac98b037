"""Character sets of MySQL and MariaDB: which one a collation's number stands for, and its bytes as UTF-8.

The binary log carries text in the column's own character set. What is UTF-8 already, or ASCII, is taken as it is;
single byte sets go through a table of 256 texts; the rest is decoded once for each distinct value with Python's
codecs.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.sources.mysql.values.gather import by_distinct
from lakebed.errors import InvalidData, Unsupported

_UTF8: Final = ("utf8mb4", "utf8mb3", "utf8", "ascii")

_CODECS: Final = {
    "big5": "big5",
    "dec8": None,
    "cp850": "cp850",
    "hp8": "hp_roman8",
    "koi8r": "koi8_r",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "swe7": None,
    "ujis": "euc_jp",
    "sjis": "shift_jis",
    "hebrew": "iso8859_8",
    "tis620": "tis_620",
    "euckr": "cp949",
    "koi8u": "koi8_u",
    "gb2312": "gb2312",
    "greek": "iso8859_7",
    "cp1250": "cp1250",
    "gbk": "gbk",
    "latin5": "iso8859_9",
    "armscii8": None,
    "ucs2": "utf_16_be",
    "cp866": "cp866",
    "keybcs2": None,
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "cp852": "cp852",
    "latin7": "iso8859_13",
    "cp1251": "cp1251",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "utf32": "utf_32_be",
    "geostd8": None,
    "cp932": "cp932",
    "eucjpms": None,
    "gb18030": "gb18030",
}
"""Python's codec of each set; None where it has none."""

_OTHER_LETTERS: Final = {
    "hebrew": {0xAF: "\u203e"},
    "koi8u": {0x95: "\u2022"},
    "greek": {0xA1: "\u02bd", 0xA2: "\u02bc", 0xA4: "?", 0xA5: "?", 0xAA: "?"},
    "cp866": {0xFC: "\u207f", 0xFD: "\u00b2"},
    "cp1256": dict.fromkeys((0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF), "?"),
    "tis620": dict.fromkeys((0xA0, *range(0xDB, 0xDF), *range(0xFC, 0x100)), "\ufffd"),
}
"""Where the servers read a byte otherwise than Python does: found by asking a server for each byte of each set."""

_MULTI_BYTE: Final = {
    "big5": 2,
    "ujis": 3,
    "sjis": 2,
    "euckr": 2,
    "gb2312": 2,
    "gbk": 2,
    "ucs2": 2,
    "utf16": 4,
    "utf16le": 4,
    "utf32": 4,
    "cp932": 2,
    "eucjpms": 3,
    "gb18030": 4,
    "utf8mb3": 3,
    "utf8": 3,
    "utf8mb4": 4,
}

# Numbers of collations by character set: the two servers agree on those below 256.
_COLLATIONS: Final = {
    "big5": (1, 84),
    "latin2": (2, 9, 21, 27, 77),
    "dec8": (3, 69),
    "cp850": (4, 80),
    "latin1": (5, 8, 15, 31, 47, 48, 49, 94),
    "hp8": (6, 72),
    "koi8r": (7, 74),
    "swe7": (10, 82),
    "ascii": (11, 65),
    "ujis": (12, 91),
    "sjis": (13, 88),
    "cp1251": (14, 23, 50, 51, 52),
    "hebrew": (16, 71),
    "tis620": (18, 89),
    "euckr": (19, 85),
    "latin7": (20, 41, 42, 79),
    "koi8u": (22, 75),
    "gb2312": (24, 86),
    "greek": (25, 70),
    "cp1250": (26, 34, 44, 66, 99),
    "gbk": (28, 87),
    "cp1257": (29, 58, 59),
    "latin5": (30, 78),
    "armscii8": (32, 64),
    "utf8mb3": (33, 76, 83, *range(192, 216), 223, *range(576, 608)),
    "ucs2": (35, 90, *range(128, 152), 159, *range(640, 672)),
    "cp866": (36, 68),
    "keybcs2": (37, 73),
    "macce": (38, 43),
    "macroman": (39, 53),
    "cp852": (40, 81),
    "utf8mb4": (45, 46, *range(224, 248), *range(255, 324), *range(608, 640)),
    "utf16": (54, 55, *range(101, 125), *range(672, 704)),
    "utf16le": (56, 62),
    "cp1256": (57, 67),
    "utf32": (60, 61, *range(160, 184), *range(736, 768)),
    "binary": (63,),
    "geostd8": (92, 93),
    "cp932": (95, 96),
    "eucjpms": (97, 98),
    "gb18030": (248, 249, 250),
}
_WITHOUT_PADDING: Final = 1024
"""MariaDB's twins of older collations that do not ignore spaces at the end have numbers that are so much larger."""
_UCA_1400: Final = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
"""MariaDB's newer collations have 256 numbers for each of these, from 2048 on."""
_BY_COLLATION: Final = {number: name for name, numbers in _COLLATIONS.items() for number in numbers}


def charset_of(collation: int) -> str:
    """The character set of a collation's number; `binary` is that of bytes."""
    for number in (collation, collation - _WITHOUT_PADDING):
        if number in _BY_COLLATION:
            return _BY_COLLATION[number]
    if 2048 <= collation < 2048 + 256 * len(_UCA_1400):
        return _UCA_1400[(collation - 2048) // 256]
    raise Unsupported(
        f"collation number {collation} is unknown", hint="ALTER TABLE … CONVERT TO CHARACTER SET utf8mb4 repairs it"
    )


def bytes_per_character(charset: str) -> int:
    """The most bytes one character takes."""
    return _MULTI_BYTE.get(charset, 1)


def is_readable(charset: str) -> bool:
    """Whether texts of that set can be turned into UTF-8."""
    return charset in _UTF8 or _CODECS.get(charset) is not None


def to_text(values: pa.Array, charset: str | None) -> pa.Array:
    """Byte strings in a character set as texts."""
    if charset in (None, "binary", *_UTF8) or _only_ascii(values, charset):
        try:
            return values.cast(pa.string())
        except pa.ArrowInvalid as error:
            raise InvalidData(
                f"a text said to be {charset or 'utf8mb4'} is no UTF-8", hint="correct the value in the source"
            ) from error
    codec = _CODECS.get(charset)
    if codec is None:
        raise Unsupported(
            f"the character set `{charset}` can not be read", hint="ALTER TABLE … CONVERT TO CHARACTER SET utf8mb4"
        )
    if charset in _MULTI_BYTE:
        texts = by_distinct(
            values, lambda value: None if value is None else value.decode(codec, "replace"), pa.string()
        )
        return pc.replace_substring(texts, "\uff3c", "\\") if charset == "sjis" else texts
    return _through_table(values, charset)


def _only_ascii(values: pa.Array, charset: str) -> bool:
    if charset in _MULTI_BYTE and charset in ("ucs2", "utf16", "utf16le", "utf32"):
        return False
    if charset == "swe7":
        return False
    data = values.buffers()[2]
    return data is None or not (np.frombuffer(data, np.uint8) & 0x80).any()


@cache
def _table(charset: str) -> pa.Array:
    codec = _CODECS[charset] or ""
    texts = [bytes([byte]).decode(codec, "replace") for byte in range(256)]
    if codec == "cp1252":  # MySQL's latin1 gives a meaning to the five bytes that it leaves open
        texts = [chr(byte) if text == "\ufffd" else text for byte, text in enumerate(texts)]
    texts = ["?" if text == "\ufffd" else text for text in texts]  # as the server converts them
    others = _OTHER_LETTERS.get(charset, {})
    return pa.array([others.get(byte, text) for byte, text in enumerate(texts)], pa.string())


def _through_table(values: pa.Array, charset: str) -> pa.Array:
    values = pa.concat_arrays([values])  # without an offset
    offsets = pa.Array.from_buffers(pa.int32(), len(values) + 1, [None, values.buffers()[1]])
    data = values.buffers()[2]
    letters = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    letters = letters[: offsets[-1].as_py()]
    single = pc.take(_table(charset), pa.array(letters))
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, single), "")
    return pc.if_else(values.is_valid(), joined, pa.scalar(None, pa.string()))


__all__ = ["bytes_per_character", "charset_of", "is_readable", "to_text"]
