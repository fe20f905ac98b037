"""Decodes the messages of `pgoutput` to columns, thousands at a time.

Values stand behind one another in each message, so a column's place is known only once those before it are read. The
decoder walks all rows of a table in step: for each column, one array of positions moves on in all rows at once. What
it yields are texts, cut out of the messages by Arrow; their meaning is the matter of `values`. There is no loop over
messages or rows here, only over columns, tables and the rare messages that describe or truncate a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.sources.postgres.log.messages import MICROSECONDS_1970_TO_2000, Bytes, Messages, Numbers, Relation
from lakebed.errors import InvalidData
from lakebed.records import dataclass
from lakebed.types.row_kind import RowKind

_BEGIN, _INSERT, _UPDATE, _DELETE = b"BIUD"
_RELATION, _TRUNCATE = b"RT"
_NEW, _OLD_ROW = b"NO"
_TEXT, _UNCHANGED = b"tu"


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """Changes of one table in one shape, in order. One element of each array for each row of the changelog.

    `columns` are texts with nulls; `unchanged` marks, by column, rows whose value the server did not send.
    """

    relation: Relation
    kinds: np.ndarray[Any, np.dtype[np.int8]]
    commit_lsns: Numbers
    commit_us: Numbers
    xids: Numbers
    numbers: Numbers
    """Which change of its transaction each row is, counted from 1; both rows of an update are one."""
    columns: list[pa.Array]
    unchanged: dict[int, np.ndarray[Any, np.dtype[np.bool_]]]

    def filter(self, keep: np.ndarray[Any, np.dtype[np.bool_]]) -> DecodedRows:
        """Only those rows."""
        mask = pa.array(keep)
        return DecodedRows(
            self.relation,
            self.kinds[keep],
            self.commit_lsns[keep],
            self.commit_us[keep],
            self.xids[keep],
            self.numbers[keep],
            [column.filter(mask) for column in self.columns],
            {place: marks[keep] for place, marks in self.unchanged.items() if marks[keep].any()},
        )


@dataclass(frozen=True, slots=True)
class Truncation:
    """Tables that were emptied together."""

    relations: tuple[Relation, ...]
    commit_lsn: int
    commit_us: int
    xid: int
    number: int = 0


@dataclass(slots=True)
class _Transaction:
    commit_lsn: int = -1
    commit_us: int = 0
    xid: int = 0
    changes: int = 0
    """How many have come."""


class PgOutputDecoder:
    """Remembers, from call to call, the tables that were described and the transaction that is open.

    `key_of` says which columns identify a row. Only transactions with `start <= commit_lsn < end` are given out, where
    `commit_lsn` is where the commit record begins: with its end, a position inside a record would lose a transaction.
    """

    def __init__(self, key_of: Callable[[Relation], Sequence[int]], start: int = 0, end: int = 1 << 63) -> None:
        self._key_of = key_of
        self._start = start
        self._end = end
        self._open = _Transaction()
        self.relations: dict[int, Relation] = {}

    def decode(self, messages: Messages) -> Iterator[DecodedRows | Truncation]:
        """The changes in some messages, which follow those of the last call."""
        if not len(messages):
            return
        times = self._transactions(messages)
        is_member = (times.commit_lsns >= self._start) & (times.commit_lsns < self._end)
        first = 0
        for index in np.flatnonzero((messages.tags == _RELATION) | (messages.tags == _TRUNCATE)).tolist():
            if messages.tags[index] == _RELATION:
                relation = messages.one(index).relation()
                known = self.relations.get(relation.oid)
                if known is not None and known != relation:
                    yield from self._rows(messages, times, is_member, first, index)
                    first = index
                self.relations[relation.oid] = relation
            else:
                yield from self._rows(messages, times, is_member, first, index)
                first = index
                if is_member[index]:
                    yield self._truncation(messages, times, index)
        yield from self._rows(messages, times, is_member, first, len(messages))

    def _transactions(self, messages: Messages) -> _Times:
        """Position, time and id of the transaction that each message belongs to."""
        begins = np.flatnonzero(messages.tags == _BEGIN)
        at = messages.starts[begins]
        which = np.cumsum(messages.tags == _BEGIN)
        lsns = np.concatenate([[self._open.commit_lsn], messages.int64(at + 1)])
        times = np.concatenate([[self._open.commit_us], messages.int64(at + 9) + MICROSECONDS_1970_TO_2000])
        xids = np.concatenate([[self._open.xid], messages.uint32(at + 17)])
        # Counted are changes alone: which descriptions come between them depends on what the connection has sent.
        counts = np.cumsum(_is_change(messages.tags) | (messages.tags == _TRUNCATE)).astype(np.int64)
        before = np.concatenate([[-self._open.changes], counts[begins]])
        numbers = counts - before[which]
        self._open = _Transaction(int(lsns[-1]), int(times[-1]), int(xids[-1]), int(numbers[-1]))
        return _Times(lsns[which], times[which], xids[which], numbers)

    def _truncation(self, messages: Messages, times: _Times, index: int) -> Truncation:
        relations = tuple(self._relation(oid) for oid in messages.one(index).truncated())
        lsn, us, xid = times.commit_lsns[index], times.commit_us[index], times.xids[index]
        return Truncation(relations, int(lsn), int(us), int(xid), int(times.numbers[index]))

    def _relation(self, oid: int) -> Relation:
        relation = self.relations.get(oid)
        if relation is None:
            raise InvalidData(
                f"the stream changes the table with id {oid} without having described it",
                hint="restart the sync: a new connection describes every table again",
            )
        return relation

    def _rows(
        self, messages: Messages, times: _Times, is_member: np.ndarray[Any, Any], first: int, last: int
    ) -> Iterator[DecodedRows]:
        tags = messages.tags[first:last]
        changes = np.flatnonzero(_is_change(tags) & is_member[first:last]) + first
        if not len(changes):
            return
        tables = messages.uint32(messages.starts[changes] + 1)
        _, firsts = np.unique(tables, return_index=True)
        for place in np.sort(firsts):  # in the order in which the tables show up
            table = tables[place]
            own = changes if len(firsts) == 1 else changes[tables == table]
            relation = self._relation(int(table))
            yield _decode_rows(messages, times, relation, own, self._key_of(relation))


def _is_change(tags: Bytes) -> np.ndarray[Any, np.dtype[np.bool_]]:
    found: np.ndarray[Any, np.dtype[np.bool_]] = (tags == _INSERT) | (tags == _UPDATE) | (tags == _DELETE)
    return found


@dataclass(frozen=True, slots=True)
class _Times:
    commit_lsns: Numbers
    commit_us: Numbers
    xids: Numbers
    numbers: Numbers


@dataclass(frozen=True, slots=True)
class _Tuples:
    """Where the values of some rows lie: one array per column, one element per row."""

    tags: list[Bytes]
    starts: list[Numbers]
    lengths: list[Numbers]
    ends: Numbers


def _walk(messages: Messages, at: Numbers, relation: Relation) -> _Tuples:
    """Goes through rows that begin at those places, column by column."""
    width = len(relation.columns)
    if len(at) and (messages.int16(at) != width).any():
        raise InvalidData(
            f"a row of `{relation.schema}.{relation.name}` has not the {width} columns of its description",
            hint="restart the sync: a new connection describes every table again",
        )
    tags, starts, lengths = [], [], []
    position = at + 2
    for _ in range(width):
        tag = messages.bytes[position]
        is_sent = tag == _TEXT
        if is_sent.all():
            length = messages.int32(position + 1)
            start = position + 5
        else:
            # Behind the mark of a value that is not sent comes the next mark, or the end of the buffer: read nothing.
            length = np.zeros(len(position), np.int64)
            length[is_sent] = messages.int32(position[is_sent] + 1)
            start = position + np.where(is_sent, 5, 1)
        tags.append(tag)
        starts.append(start)
        lengths.append(length)
        position = start + length
    return _Tuples(tags, starts, lengths, position)


def _decode_rows(
    messages: Messages, times: _Times, relation: Relation, own: Numbers, key: Sequence[int]
) -> DecodedRows:
    at, tags = messages.starts[own], messages.tags[own]
    sub = messages.bytes[at + 5]
    has_old = (tags == _DELETE) | ((tags == _UPDATE) & (sub != _NEW))
    has_new = tags != _DELETE
    olds, news = np.flatnonzero(has_old), np.flatnonzero(has_new)
    old = _walk(messages, at[olds] + 6, relation)
    new_at = at + 6
    new_at[olds] = old.ends + 1  # behind the letter N; of no meaning for deletes
    new = _walk(messages, new_at[news], relation)

    # Rows in order: each message's old row, then its new one.
    rank = np.concatenate([2 * olds, 2 * news + 1])
    order = np.argsort(rank, kind="stable") if len(olds) else np.arange(len(news))
    is_old = order < len(olds)
    message = (rank[order] >> 1).astype(np.int64)
    both = is_old & (tags[message] == _UPDATE)  # old rows of updates; the new one is the next
    pairs = np.flatnonzero(both)

    columns: list[pa.Array] = []
    unchanged: dict[int, np.ndarray[Any, np.dtype[np.bool_]]] = {}
    is_moved = np.zeros(len(pairs), bool)
    for place in range(len(relation.columns)):
        tag, start, length = new.tags[place], new.starts[place], new.lengths[place]
        if len(olds):
            tag = np.concatenate([old.tags[place], tag])[order]
            start = np.concatenate([old.starts[place], start])[order]
            length = np.concatenate([old.lengths[place], length])[order]
        slots = 2 * np.arange(len(order))
        if len(pairs):
            # What an update left alone is in its old row, if that was sent.
            is_kept = (tag[pairs + 1] == _UNCHANGED) & (tag[pairs] == _TEXT)
            kept = pairs[is_kept]
            slots[kept + 1] = slots[kept]
            tag[kept + 1] = _TEXT
        column = _cut(messages, start, length, slots, tag == _TEXT)
        is_unsent = tag == _UNCHANGED
        if is_unsent.any():
            unchanged[place] = is_unsent
        if place in key and len(pairs):
            is_moved |= _differ(column, pairs) & ~is_unsent[pairs + 1]
        columns.append(column)

    kinds = np.full(len(order), RowKind.INSERT, np.int8)
    kinds[tags[message] == _DELETE] = RowKind.DELETE
    kinds[~is_old & (tags[message] == _UPDATE)] = RowKind.UPDATE_AFTER
    kinds[pairs] = np.where(is_moved, RowKind.DELETE, RowKind.UPDATE_BEFORE)
    kinds[pairs[is_moved] + 1] = RowKind.INSERT
    which = own[message]
    rows = DecodedRows(
        relation,
        kinds,
        times.commit_lsns[which],
        times.commit_us[which],
        times.xids[which],
        times.numbers[which],
        columns,
        unchanged,
    )
    # An old key without its row tells nothing if the key is the same (it is sent when it is very long).
    is_hollow = ~is_moved & (sub[message[pairs]] != _OLD_ROW)
    if not is_hollow.any():
        return rows
    keep = np.ones(len(order), bool)
    keep[pairs[is_hollow]] = False
    return rows.filter(keep)


def _cut(
    messages: Messages, start: Numbers, length: Numbers, slots: Numbers, is_there: np.ndarray[Any, Any]
) -> pa.Array:
    """Texts cut out of the messages: values and the gaps between them form one array, of which every second is taken.

    This works because values of one column lie in the order of their rows.
    """
    count = len(start)
    edges = np.empty(2 * count + 1, np.int32)
    edges[0:-1:2] = start
    edges[1::2] = start + length
    edges[-1] = edges[-2] if count else 0
    whole = pa.StringArray.from_buffers(2 * count, pa.py_buffer(edges), messages.buffer)
    return whole.take(pa.array(slots, mask=None if is_there.all() else ~is_there))


def _differ(column: pa.Array, pairs: Numbers) -> np.ndarray[Any, Any]:
    before, after = column.take(pa.array(pairs)), column.take(pa.array(pairs + 1))
    differ: np.ndarray[Any, Any] = pc.fill_null(pc.not_equal(before, after), False).to_numpy(zero_copy_only=False)
    return differ


__all__ = ["DecodedRows", "PgOutputDecoder", "Truncation"]
