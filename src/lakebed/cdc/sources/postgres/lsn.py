"""Positions in the write-ahead log: 64-bit numbers, written as two hexadecimal halves."""

from __future__ import annotations

from lakebed.errors import InvalidData


def parse_lsn(text: str) -> int:
    """The number of a position such as `16/B374D848`."""
    high, slash, low = text.partition("/")
    try:
        if not slash:
            raise ValueError(text)
        return (int(high, 16) << 32) | int(low, 16)
    except ValueError:
        raise InvalidData(f"`{text}` is no position in the log", hint="a position looks like 16/B374D848") from None


def format_lsn(lsn: int) -> str:
    """The text of a position."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


__all__ = ["format_lsn", "parse_lsn"]
