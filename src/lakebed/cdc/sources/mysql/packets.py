"""Packets of the MySQL protocol, cut out of what a socket delivered: the one loop that looks at packets one by one."""

from __future__ import annotations

import select
import struct
from typing import Any, Final

import numpy as np

from lakebed.cdc.sources.mysql.gather import Array

LARGEST: Final = 0xFFFFFF
HEADER: Final = 4
_LENGTH: Final = struct.Struct("<I")


def packet_length(data: bytes | bytearray, at: int = 0) -> int:
    """Bytes of the packet whose header stands there."""
    return int(_LENGTH.unpack_from(data, at)[0]) & LARGEST


def header(length: int, number: int = 0) -> bytes:
    """The header of a packet."""
    return _LENGTH.pack(length | number << 24)


def cut(data: bytearray, filled: int) -> tuple[Array, Array, int]:
    """Where the contents of whole messages begin and end, and where the first begins that is not whole.

    A message of 16 MiB or more comes in several packets; its parts are moved together within the buffer.
    """
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    unpack = _LENGTH.unpack_from
    while at + HEADER <= filled:
        length = unpack(data, at)[0] & LARGEST
        end = at + HEADER + length
        if end > filled:
            break
        behind = end
        if length == LARGEST:
            joined = _join(data, at, filled)
            if joined is None:
                break
            end, behind = joined
        starts.append(at + HEADER)
        ends.append(end)
        at = behind
    return np.array(starts, np.int64), np.array(ends, np.int64), at


def _join(data: bytearray, at: int, filled: int) -> tuple[int, int] | None:
    """Moves the parts of a message together: where it ends then, and where its packets end. None if some lack."""
    parts: list[tuple[int, int]] = []
    place = at
    length = LARGEST
    while length == LARGEST:
        if place + HEADER > filled:
            return None
        length = packet_length(data, place)
        parts.append((place + HEADER, place + HEADER + length))
        place += HEADER + length
    if place > filled:
        return None
    end = parts[0][1]
    for low, high in parts[1:]:
        data[end : end + high - low] = data[low:high]
        end += high - low
    return end, place


def more_at_once(socket: Any) -> bool:
    """Whether a socket has more to give without waiting."""
    if getattr(socket, "pending", lambda: 0)():  # what TLS has decrypted already
        return True
    readable, _, _ = select.select([socket], [], [], 0)
    return bool(readable)


__all__ = ["HEADER", "LARGEST", "cut", "header", "more_at_once", "packet_length"]
