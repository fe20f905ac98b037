"""Transaction ids with tags (MySQL 8.3 and later): `3e11fa47-…:tag:7`, which any session may give its transactions.

Their events, and the set of ids with which a reader asks for the log, are written in a form of their own: numbers of
varying length, whose first byte tells by its low bits how many more follow. Positions themselves are in
`lakebed.metadata.source_position`.
"""

from __future__ import annotations

import struct
from uuid import UUID

from lakebed.errors import CorruptFile

_FLAGS, _SERVER, _NUMBER, _NAME = 0, 1, 2, 3
_TAGGED = 1


def tagged_id(body: bytes) -> tuple[str, int]:
    """Server with tag, and number, of the event that begins a transaction."""
    number, tag, server = 0, "", ""
    try:
        at = 0
        for _ in range(3):  # version, size, and what may not be ignored
            _, at = _varying(body, at)
        for expected in (_FLAGS, _SERVER, _NUMBER, _NAME):
            field, at = _varying(body, at)
            if field != expected:
                raise IndexError(field)
            if field == _SERVER:
                each: list[int] = []
                for _ in range(16):
                    value, at = _varying(body, at)
                    each.append(value)
                server = str(UUID(bytes=bytes(each)))
            elif field == _NAME:
                length, at = _varying(body, at)
                tag = body[at : at + length].decode("ascii")
            else:
                number, at = _varying(body, at)
                number >>= 1 if field == _NUMBER else 0  # the lowest bit is the sign
    except (IndexError, ValueError) as error:
        raise CorruptFile(
            "an id of a transaction in the binary log is not understood",
            hint="this is a fault of the reader; report it",
        ) from error
    return (f"{server}:{tag}" if tag else server), number


def id_set(servers: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]) -> bytes:
    """A set of ids as the request for a log has it; without tags in the form that older servers know as well."""
    tagged = any(":" in server for server, _ in servers)
    count = len(servers)
    parts = [struct.pack("<Q", count << 8 | _TAGGED << 56 | _TAGGED if tagged else count)]
    for server, intervals in servers:
        uuid, _, tag = server.partition(":")
        parts += [UUID(uuid).bytes]
        if tagged:
            parts += [bytes([len(tag) << 1]), tag.encode("ascii")]
        parts += [struct.pack("<Q", len(intervals))]
        parts += [struct.pack("<QQ", low, high + 1) for low, high in intervals]
    return b"".join(parts)


def _varying(data: bytes, at: int) -> tuple[int, int]:
    """A number, and the place behind it."""
    more = 0
    while more < 8 and data[at] >> more & 1:
        more += 1
    size = more + 1
    content = data[at : at + size]
    if len(content) < size:
        raise IndexError(at)
    return int.from_bytes(content, "little") >> min(size, 8), at + size


__all__ = ["id_set", "tagged_id"]
