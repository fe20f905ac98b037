"""Positions in a binary log, by global transaction ids: where a reader has got to, independent of files and servers.

MariaDB counts transactions per domain (`0-1-1234,7-2-9`), MySQL keeps a set of intervals per server
(`3e11fa47-…:1-77`). Both answer the same three questions: does this transaction lie before, is one position at or past
another, and how is it written.

INVARIANT: a position always stands behind a complete transaction. Ids are all that it knows: one that is in it is not
read again, so the rest of a transaction that was read in part would be lost.
"""

from __future__ import annotations

import re
import struct
from typing import Final, Protocol, Self
from uuid import UUID

from lakebed.errors import CorruptFile, InvalidData
from lakebed.records import dataclass


class Position(Protocol):
    """A set of transactions that have been read: all before a place in the log."""

    def covers(self, other: Self) -> bool:
        """Whether every transaction of the other position is in this one."""
        ...

    def __str__(self) -> str: ...


_MARIADB: Final = re.compile(r"(\d+)-(\d+)-(\d+)")
_TAG: Final = re.compile(r"\s*[A-Za-z_][A-Za-z0-9_]{0,31}\s*")


@dataclass(frozen=True, slots=True)
class MariaDbPosition:
    """The last transaction of each domain: domain to (server id, sequence number)."""

    domains: tuple[tuple[int, int, int], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `domain-server-sequence`, comma-separated; empty is the beginning of the log."""
        parts = [part.strip() for part in text.split(",") if part.strip()]
        matches = [_MARIADB.fullmatch(part) for part in parts]
        if any(match is None for match in matches):
            raise InvalidData(f"`{text}` is no position of a MariaDB log", hint="it looks like 0-1-1234")
        found = {int(m[1]): (int(m[1]), int(m[2]), int(m[3])) for m in matches if m is not None}
        return cls(tuple(found[domain] for domain in sorted(found)))

    def __str__(self) -> str:
        return ",".join(f"{domain}-{server}-{sequence}" for domain, server, sequence in self.domains)

    def sequences(self) -> dict[int, int]:
        """The last sequence number of each domain."""
        return {domain: sequence for domain, _, sequence in self.domains}

    def covers(self, other: Self) -> bool:
        """Whether every transaction of the other position is in this one."""
        mine = self.sequences()
        return all(mine.get(domain, 0) >= sequence for domain, sequence in other.sequences().items())

    def has(self, domain: int, sequence: int) -> bool:
        """Whether a transaction lies at or before this position."""
        return self.sequences().get(domain, 0) >= sequence

    def after(self, domain: int, server: int, sequence: int) -> MariaDbPosition:
        """The position behind one more transaction."""
        others = [entry for entry in self.domains if entry[0] != domain]
        return MariaDbPosition(tuple(sorted([*others, (domain, server, sequence)])))


@dataclass(frozen=True, slots=True)
class MySqlPosition:
    """Intervals of transaction numbers of each server, both ends included.

    A server is known by its UUID; those of its transactions that have a tag (`gtid_next = 'AUTOMATIC:tag'`) are counted
    by themselves, as those of `UUID:tag`.
    """

    servers: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `uuid:1-5:7:tag:1-2,uuid:3`; empty is the beginning of the log."""
        found: dict[str, list[tuple[int, int]]] = {}
        try:
            for part in text.replace("\n", "").split(","):
                if not part.strip():
                    continue
                server, *intervals = part.strip().split(":")
                counted = server = str(UUID(server))
                for interval in intervals:
                    if _TAG.fullmatch(interval):
                        counted = f"{server}:{interval.strip().lower()}"
                    else:
                        low, _, high = interval.partition("-")
                        found.setdefault(counted, []).append((int(low), int(high or low)))
        except ValueError as error:
            raise InvalidData(
                f"`{text}` is no set of MySQL's transaction ids", hint="it looks like 3e11fa47-…:1-77"
            ) from error
        return cls(tuple((server, _joined(found[server])) for server in sorted(found)))

    def __str__(self) -> str:
        return ",".join(
            ":".join([server, *(f"{low}-{high}" if high > low else f"{low}" for low, high in intervals)])
            for server, intervals in self.servers
        )

    def covers(self, other: Self) -> bool:
        """Whether every transaction of the other position is in this one."""
        mine = dict(self.servers)
        return all(
            any(low <= first and last <= high for low, high in mine.get(server, ()))
            for server, intervals in other.servers
            for first, last in intervals
        )

    def has(self, server: str, number: int) -> bool:
        """Whether a transaction is in this set."""
        return any(low <= number <= high for low, high in dict(self.servers).get(server, ()))

    def after(self, server: str, number: int) -> MySqlPosition:
        """The set with one more transaction."""
        found = {name: list(intervals) for name, intervals in self.servers}
        found.setdefault(server, []).append((number, number))
        return MySqlPosition(tuple((name, _joined(found[name])) for name in sorted(found)))


def _joined(intervals: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


# ------------------------------------------------------------------------------------------------------------------
# Transaction ids with tags (MySQL 8.3 and later): `3e11fa47-…:tag:7`, which any session may give its transactions.
#
# Their events, and the set of ids with which a reader asks for the log, are written in a form of their own: numbers
# of varying length, whose first byte tells by its low bits how many more follow.


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


__all__ = ["MariaDbPosition", "MySqlPosition", "Position", "id_set", "tagged_id"]
