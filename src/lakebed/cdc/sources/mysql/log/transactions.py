"""Transactions of the binary log: which rows of a stretch are committed, in which order, and what happens between them.

Most transactions are plain: an id, rows, a commit. They are recognised with numpy, many at once. The others
(statements, savepoints, rollbacks, two-phase commits, transactions longer than a stretch) are looked at one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final
from uuid import UUID

import numpy as np

from lakebed.cdc.sources.mysql.log.events import (
    HEADER,
    IS_GTID,
    IS_MYSQL_GTID,
    IS_ROWS,
    Kind,
    Segment,
    Statement,
    statement,
)
from lakebed.cdc.sources.mysql.tagged_ids import tagged_id
from lakebed.cdc.sources.mysql.values.gather import Array
from lakebed.errors import InvalidData
from lakebed.metadata.source_position import MariaDbPosition, MySqlPosition
from lakebed.records import dataclass

_STANDALONE: Final = 0x01
_SPILL_BYTES: Final = 64 << 20
_COMMITTED_AT: Final = 42
"""Where in the body of MySQL's id the moment of the commit stands, in seven bytes."""
_HAS_ORIGINAL: Final = 1 << 55
"""A bit of it that says that another moment follows."""
_XA_ID: Final = re.compile(r"XA (COMMIT|ROLLBACK) X'([0-9a-f]*)',X'([0-9a-f]*)',(\d+)", re.IGNORECASE)
_SAVEPOINT: Final = re.compile(r"SAVEPOINT (.+)", re.IGNORECASE | re.DOTALL)
_ROLLBACK_TO: Final = re.compile(r"ROLLBACK TO (?:SAVEPOINT )?(.+)", re.IGNORECASE | re.DOTALL)
_STEPS: Final = re.compile(r"(BEGIN|COMMIT|RELEASE SAVEPOINT .*|XA (START|END|PREPARE) .*)", re.IGNORECASE | re.DOTALL)

XaId = tuple[int, bytes, bytes]


@dataclass(frozen=True, slots=True)
class Rows:
    """Row events of a segment, by their numbers, all committed."""

    segment: Segment
    events: Array
    begins: Array | None = None
    """For each of them the event in `ids` that begins its transaction, and says which one it is."""
    ids: Segment | None = None


Piece = Rows | Statement
Part = tuple[Segment, int, int]
"""A stretch of events of a segment, the last one not included."""


class Transactions:
    """Takes segments one after another and gives committed pieces up to a position."""

    def __init__(
        self,
        position: MariaDbPosition | MySqlPosition,
        find_prepared: Callable[[XaId], list[Piece]],
    ) -> None:
        self.position: MariaDbPosition | MySqlPosition = position
        self.prepared: dict[XaId, list[Piece]] = {}
        self._find_prepared = find_prepared
        self._open: list[Part] = []

    def take(self, segment: Segment, at: int, end: MariaDbPosition | MySqlPosition | None) -> tuple[list[Piece], int]:
        """Pieces of the transactions from event `at` on, and the number of the first event that lies past `end`."""
        ids = np.flatnonzero(IS_GTID[segment.kinds[at:]]) + at
        pieces: list[Piece] = []
        if self._open:
            until = int(ids[0]) if len(ids) else len(segment)
            self._go_on((segment, at, until))
            if not len(ids) and not self._is_finished(self._open):
                return pieces, until
            pieces += self._finish(self._open)
            self._open = []
        if not len(ids):
            return pieces, len(segment)
        count = self._within(segment, ids, end)
        stop = int(ids[count]) if count < len(ids) else len(segment)
        if count == len(ids) and not self._is_finished([(segment, int(ids[-1]), len(segment))]):
            count -= 1
            self._open = [(segment, int(ids[-1]), len(segment))]
        if count:
            bounds = [*ids[:count].tolist(), int(ids[count]) if count < len(ids) else len(segment)]
            pieces += self._finished(segment, np.array(bounds))
        return pieces, stop

    def start_over(self) -> None:
        """Forgets the transaction that is not complete: it will come again from its beginning."""
        self._open = []

    def _go_on(self, part: Part) -> None:
        if sum(segment.size_bytes for segment, _, _ in self._open) > _SPILL_BYTES:
            self._open = [
                (segment if isinstance(segment.bytes.data, np.memmap) else segment.spilled(), low, high)
                for segment, low, high in self._open
            ]
        self._open.append(part)

    def _within(self, segment: Segment, ids: Array, end: MariaDbPosition | MySqlPosition | None) -> int:
        """How many of these transactions lie before the first one past `end`."""
        if end is None:
            return len(ids)
        if isinstance(end, MySqlPosition):
            past = np.array([not end.has(*_mysql_id(segment, index)) for index in ids.tolist()])
        else:
            domains, _, sequences = _mariadb_ids(segment, ids)
            known, which = np.unique(domains, return_inverse=True)
            limits = end.sequences()
            past = sequences > np.array([limits.get(domain, 0) for domain in known.tolist()])[which]
        return int(past.argmax()) if past.any() else len(ids)

    def _finished(self, segment: Segment, bounds: Array) -> list[Piece]:
        """Whole transactions of one segment; `bounds` are where they begin, and where the last one ends."""
        begins, kinds = bounds[:-1], segment.kinds[bounds[0] : bounds[-1]]
        within = begins - bounds[0]
        plain = np.bitwise_or.reduceat(kinds == Kind.XID, within)
        plain &= ~np.bitwise_or.reduceat((kinds == Kind.QUERY) & ~_is_begin(segment, bounds[0], bounds[-1]), within)
        plain &= ~np.bitwise_or.reduceat(kinds == Kind.XA_PREPARE, within)
        of_event = np.repeat(np.arange(len(begins)), np.diff(bounds))
        rows = np.flatnonzero(IS_ROWS[kinds] & plain[of_event]) + bounds[0]
        pieces: list[Piece] = []
        done = 0
        for number in np.flatnonzero(~plain).tolist():
            upto = int(np.searchsorted(rows, begins[number]))
            _add_rows(pieces, _rows_of(segment, rows[done:upto], begins))
            done = upto
            for piece in self._special([(segment, int(bounds[number]), int(bounds[number + 1]))]):
                if isinstance(piece, Rows):
                    _add_rows(pieces, piece)
                else:
                    pieces.append(piece)
        _add_rows(pieces, _rows_of(segment, rows[done:], begins))
        self.position = _behind(self.position, segment, begins)
        return pieces

    def _finish(self, parts: list[Part]) -> list[Piece]:
        pieces = self._special(parts)
        self.position = _behind(self.position, parts[0][0], np.array([parts[0][1]]))
        return pieces

    def _special(self, parts: list[Part]) -> list[Piece]:
        """One transaction, step by step."""
        pieces: list[Piece] = []
        savepoints: dict[str, int] = {}
        xa_id: XaId | None = None
        first, begin, _ = parts[0]
        for segment, low, high in parts:
            kinds = segment.kinds[low:high]
            at = low
            for index in (np.flatnonzero((kinds == Kind.QUERY) | (kinds == Kind.XA_PREPARE)) + low).tolist():
                pieces += _rows(segment, at, index)
                at = index + 1
                if segment.kinds[index] == Kind.XA_PREPARE:
                    body = segment.body(index)
                    # MySQL ends a transaction that is committed in one phase with this event, too.
                    xa_id = None if body[0] else _xa_id(body)
                else:
                    self._step(statement(segment, index), pieces, savepoints)
            pieces += _rows(segment, at, high)
        if xa_id is not None:
            self.prepared[xa_id] = pieces
            return []
        # Rows that were prepared before are those of the transaction that commits them.
        return [_begun_by(piece, first, begin) for piece in pieces]

    def _step(self, said: Statement, pieces: list[Piece], savepoints: dict[str, int]) -> None:
        text = said.text.strip().rstrip(";")
        if (found := _XA_ID.match(text)) is not None:
            xa_id = (int(found[4]), bytes.fromhex(found[2]), bytes.fromhex(found[3]))
            prepared = self.prepared.pop(xa_id, None)
            if found[1].upper() == "COMMIT":
                pieces += self._find_prepared(xa_id) if prepared is None else prepared
        elif text.upper() == "ROLLBACK":
            pieces.clear()
        elif (found := _ROLLBACK_TO.fullmatch(text)) is not None:
            del pieces[savepoints.get(found[1], 0) :]
        elif (found := _SAVEPOINT.fullmatch(text)) is not None:
            savepoints[found[1]] = len(pieces)
        elif _STEPS.fullmatch(text) is None:
            pieces.append(said)

    def _is_finished(self, parts: list[Part]) -> bool:
        """Whether the log holds the end of a transaction: its commit, or the one statement it consists of."""
        first, begin, _ = parts[0]
        alone = IS_MYSQL_GTID[first.kinds[begin]] or bool(_flags(first, begin) & _STANDALONE)
        for segment, low, high in parts:
            kinds = segment.kinds[low:high]
            if ((kinds == Kind.XID) | (kinds == Kind.XA_PREPARE)).any():
                return True
            for index in (np.flatnonzero(kinds == Kind.QUERY) + low).tolist():
                text = statement(segment, index).text.strip().upper()
                if text in ("COMMIT", "ROLLBACK") or (alone and _STEPS.fullmatch(text) is None and index == begin + 1):
                    return True
        return False


def _rows_of(segment: Segment, events: Array, begins: Array) -> Rows:
    """Rows of whole transactions of a segment, which begin at those events."""
    return Rows(segment, events, begins[np.searchsorted(begins, events, "right") - 1], segment)


def _begun_by(piece: Piece, ids: Segment, begin: int) -> Piece:
    """The piece as one of a transaction."""
    if isinstance(piece, Statement):
        return replace(piece, transaction=transaction_ids(ids, [begin])[0])
    return replace(piece, begins=np.full(len(piece.events), begin), ids=ids)


def _add_rows(pieces: list[Piece], more: Rows) -> None:
    """Adds rows, to the piece before if it is of the same segment: large pieces are decoded faster."""
    if not len(more.events):
        return
    last = pieces[-1] if pieces else None
    if isinstance(last, Rows) and last.segment is more.segment and last.ids is more.ids:
        assert last.begins is not None
        assert more.begins is not None
        begins = np.concatenate([last.begins, more.begins])
        pieces[-1] = Rows(more.segment, np.concatenate([last.events, more.events]), begins, more.ids)
    else:
        pieces.append(more)


def _rows(segment: Segment, low: int, high: int) -> list[Piece]:
    events = np.flatnonzero(IS_ROWS[segment.kinds[low:high]]) + low
    return [Rows(segment, events)] if len(events) else []


def _is_begin(segment: Segment, low: int, high: int) -> Array:
    """Which events end with BEGIN: MySQL's first statement of a transaction."""
    ends = segment.ends[low:high]
    begins: Array = segment.bytes.big(np.maximum(ends - 5, 0), 5) == int.from_bytes(b"BEGIN", "big")
    return begins


def _flags(segment: Segment, index: int) -> int:
    return int(segment.bytes.data[segment.starts[index] + HEADER + 12])


def _mariadb_ids(segment: Segment, ids: Array) -> tuple[Array, Array, Array]:
    """Domains, servers and sequence numbers of transactions."""
    starts = segment.starts[ids]
    data = segment.bytes
    domains, servers = data.little(starts + HEADER + 8, 4), data.little(starts + 5, 4)
    return domains.astype(np.int64), servers.astype(np.int64), data.little(starts + HEADER, 8).astype(np.int64)


def _mysql_id(segment: Segment, index: int) -> tuple[str, int]:
    """Server and number of a transaction."""
    body = segment.body(index)
    if segment.kinds[index] == Kind.MYSQL_TAGGED_GTID:
        return tagged_id(body)
    return str(UUID(bytes=body[1:17])), int.from_bytes(body[17:25], "little")


def transaction_ids(segment: Segment, begins: list[int]) -> list[str]:
    """What transactions are called that begin at those events."""
    if begins and not IS_MYSQL_GTID[segment.kinds[begins[0]]]:
        domains, servers, sequences = _mariadb_ids(segment, np.array(begins))
        each = zip(domains.tolist(), servers.tolist(), sequences.tolist(), strict=True)
        return [f"{domain}-{server}-{sequence}" for domain, server, sequence in each]
    return ["{}:{}".format(*_mysql_id(segment, begin)) for begin in begins]


def commit_times_us(segment: Segment, begins: list[int]) -> Array:
    """When they were committed: MySQL says so to the microsecond, MariaDB to the second."""
    times: Array = segment.times[begins].astype(np.int64) * 1_000_000
    for place, begin in enumerate(begins):
        body = segment.body(begin) if segment.kinds[begin] == Kind.MYSQL_GTID else b""
        if len(body) >= _COMMITTED_AT + 7:
            micros = int.from_bytes(body[_COMMITTED_AT : _COMMITTED_AT + 7], "little") & ~_HAS_ORIGINAL
            times[place] = micros or times[place]
    return times


def _behind(position: MariaDbPosition | MySqlPosition, segment: Segment, ids: Array) -> MariaDbPosition | MySqlPosition:
    """The position behind some more transactions."""
    if bool(IS_MYSQL_GTID[segment.kinds[ids[0]]]) is not isinstance(position, MySqlPosition):
        raise InvalidData(
            "the position is one of MariaDB and the log one of MySQL, or the other way round",
            hint="start again with a new checkpoint",
        )
    if isinstance(position, MySqlPosition):
        for index in ids.tolist():
            position = position.after(*_mysql_id(segment, index))
        return position
    domains, servers, sequences = _mariadb_ids(segment, ids)
    for domain in np.unique(domains).tolist():
        own = np.flatnonzero(domains == domain)
        before = position.sequences().get(domain, 0)
        if sequences[own[0]] <= before or (np.diff(sequences[own]) <= 0).any():
            raise InvalidData(
                f"sequence numbers of domain {domain} in the binary log go backwards after {before}",
                hint="SET GLOBAL gtid_strict_mode = ON, and start again with a new checkpoint",
            )
        position = position.after(domain, int(servers[own[-1]]), int(sequences[own[-1]]))
    return position


def _xa_id(body: bytes) -> XaId:
    first, second = int.from_bytes(body[5:9], "little"), int.from_bytes(body[9:13], "little")
    return (
        int.from_bytes(body[1:5], "little"),
        body[13 : 13 + first],
        body[13 + first : 13 + first + second],
    )


__all__ = ["Piece", "Rows", "Transactions", "XaId", "commit_times_us", "transaction_ids"]
