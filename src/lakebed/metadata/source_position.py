"""Positions of sources of changes, in their own words, and how they are ordered.

A position is a text: `16/B374D848` of a PostgreSQL, `0-1-1234` or `3e11fa47-…:1-77` of a MariaDB or MySQL, the next
offset of each partition of a message log. Those of one source are compared as the source orders them, which need not
tell of any two which comes first. They stand here, and not with the readers of logs, since snapshots carry them.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, Protocol, Self
from uuid import UUID

from lakebed.errors import InvalidArgument, InvalidData
from lakebed.records import dataclass


def own_words(offset: str) -> str:
    """The source's own position in the text of an offset, which Spark keeps and snapshots carry."""
    body = _json(offset)
    if isinstance(body, dict):
        for name in ("lsn", "position"):
            if isinstance(body.get(name), str):
                return str(body[name])
    return offset


def is_reached(position: str, by: str) -> bool:
    """Whether everything that lies before a position lies before another one too."""
    asked, other = _parsed(position), _parsed(by)
    if type(asked) is not type(other):
        raise InvalidArgument(
            f"`{position}` is no position of the same kind as `{by}`", hint=f"write it like {by}, which is one"
        )
    if isinstance(asked, MariaDbPosition | MySqlPosition):
        return bool(other.covers(asked))
    return _covers(other, asked)


def _parsed(text: str) -> Any:
    """A number, a set of transactions, or offsets."""
    body = _json(text)
    if isinstance(body, dict):
        return body
    high, slash, low = text.strip().partition("/")
    try:
        if slash:
            return (int(high, 16) << 32) | int(low, 16)
        return MySqlPosition.parse(text) if ":" in text else MariaDbPosition.parse(text)
    except (InvalidData, ValueError) as error:
        raise InvalidArgument(
            f"`{text}` is no position of a source",
            hint="write it like 16/B374D848 (PostgreSQL), 0-1-1234 (MariaDB) or 3e11fa47-…:1-77 (MySQL)",
        ) from error


def _covers(mine: Any, other: Any) -> bool:
    """Whether numbers, or all numbers in objects, are at least as great as those of another."""
    if isinstance(other, dict):
        return isinstance(mine, dict) and all(_covers(mine.get(key, 0), value) for key, value in other.items())
    return isinstance(mine, int) and isinstance(other, int) and mine >= other


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


# --- Positions in a binary log, by global transaction ids: independent of files and servers -----------------------
#
# MariaDB counts transactions per domain (`0-1-1234,7-2-9`), MySQL keeps a set of intervals per server
# (`3e11fa47-…:1-77`). Both answer the same three questions: does this transaction lie before, is one position at or
# past another, and how is it written.
#
# INVARIANT: a position always stands behind a complete transaction. Ids are all that it knows: one that is in it is not
# read again, so the rest of a transaction that was read in part would be lost.


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


__all__ = ["MariaDbPosition", "MySqlPosition", "Position", "is_reached", "own_words"]
