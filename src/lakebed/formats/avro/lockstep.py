"""Many Avro records of one schema, each in bytes of its own, decoded side by side: a field of all records at a time.

Where one record ends nobody knows before it is read, so a container's block is read one after the other. Messages are
apart already: a cursor in each moves on by one field, which is a handful of operations on arrays whatever their number.
Texts and bytes are cut out by Arrow, of the one buffer in which all records lie. Logical types are left to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.errors import InvalidData, Unsupported
from lakebed.formats.avro.named import Node

_PAD: Final = 16
"""Bytes behind the last record that may be looked at before it is known that they are none of its."""
_LONGEST: Final = 10
"""Bytes of a number of 64 bits."""
_HINT: Final = "its bytes are damaged, or were written with another schema"

Places = npt.NDArray[np.int64]


def decoded(node: Node, bodies: pa.Array, skip: int = 0, wanted: Collection[str] | None = None) -> dict[str, pa.Array]:
    """The fields of records, by name: those in `wanted` or all. Each body holds `skip` other bytes, then a record.

    A body that is no whole record of the schema, and nothing else, is an `InvalidData`.
    """
    if node.kind != "record":
        raise Unsupported(f"a schema of kind `{node.kind}` has no columns", hint="use a schema whose type is a record")
    return _Cursors(bodies, skip).record(node, wanted)


def _size_at_least(node: Node) -> int:
    """How many bytes a value has at the least."""
    match node.kind:
        case "null":
            return 0
        case "float":
            return 4
        case "double":
            return 8
        case "fixed":
            return node.size
        case "record":
            return sum(_size_at_least(part) for part in node.parts)
    return 1


class _Cursors:
    """Where each record is read next."""

    def __init__(self, bodies: pa.Array, skip: int) -> None:
        bodies = bodies.cast(pa.large_binary())
        _, offsets, data = bodies.buffers()
        bounds = np.frombuffer(offsets, np.int64)[bodies.offset : bodies.offset + len(bodies) + 1]
        first, last = (int(bounds[0]), int(bounds[-1])) if len(bodies) else (0, 0)
        raw = np.frombuffer(data, np.uint8)[first:last] if data is not None else np.zeros(0, np.uint8)
        self._data = np.concatenate([raw, np.zeros(_PAD, np.uint8)])
        self._buffer = pa.py_buffer(self._data)
        self._at: Places = bounds[:-1] - first + skip
        self._ends: Places = bounds[1:] - first

    def record(self, node: Node, wanted: Collection[str] | None) -> dict[str, pa.Array]:
        """All of the records, which have to end where their bytes do."""
        rows = np.arange(len(self._at))
        self._check(rows)
        found = {}
        for name, part in zip(node.names, node.parts, strict=True):
            value = self._value(part, rows)
            if wanted is None or name in wanted:
                found[name] = value
        if np.any(self._at != self._ends):
            raise InvalidData("a message does not end with its last field", hint=_HINT)
        return found

    def _check(self, rows: Places) -> None:
        if np.any(self._at[rows] > self._ends[rows]):
            raise InvalidData("a message ends too early", hint=_HINT)

    def _value(self, node: Node, rows: Places) -> pa.Array:
        """The next value of some records, which are in their order."""
        reader: Callable[[Node, Places], pa.Array] = getattr(self, f"_{node.kind}")
        return reader(node, rows)

    # --- numbers ---------------------------------------------------------------------------------------------------

    def _numbers(self, rows: Places) -> Places:
        at = self._at[rows]
        byte = self._data[at].astype(np.uint64)
        value, at = byte & np.uint64(0x7F), at + 1
        goes_on = np.flatnonzero(byte > 0x7F)
        for number in range(1, _LONGEST):
            if not len(goes_on):
                break
            # Ten bytes at most behind the end of a record: what is read there is refused below.
            byte = self._data[np.minimum(at[goes_on], len(self._data) - 1)].astype(np.uint64)
            value[goes_on] |= (byte & np.uint64(0x7F)) << np.uint64(7 * number)
            at[goes_on] += 1
            goes_on = goes_on[byte > 0x7F]
        if len(goes_on):
            raise InvalidData("a number has more than 64 bits", hint=_HINT)
        self._at[rows] = at
        self._check(rows)
        return (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64)

    def _long(self, _: Node, rows: Places) -> pa.Array:
        return pa.array(self._numbers(rows))

    def _int(self, _: Node, rows: Places) -> pa.Array:
        numbers = self._numbers(rows)
        if len(numbers) and (numbers.min() < -(1 << 31) or numbers.max() >= 1 << 31):
            raise InvalidData("a number has more than 32 bits", hint=_HINT)
        return pa.array(numbers.astype(np.int32))

    def _null(self, _: Node, rows: Places) -> pa.Array:
        return pa.nulls(len(rows))

    def _boolean(self, _: Node, rows: Places) -> pa.Array:
        bytes_ = self._taken(rows, 1)[:, 0]
        if np.any(bytes_ > 1):
            raise InvalidData("a truth value is neither true nor false", hint=_HINT)
        return pa.array(bytes_.astype(np.bool_))

    def _float(self, _: Node, rows: Places) -> pa.Array:
        return pa.array(self._taken(rows, 4).view("<f4")[:, 0])

    def _double(self, _: Node, rows: Places) -> pa.Array:
        return pa.array(self._taken(rows, 8).view("<f8")[:, 0])

    def _taken(self, rows: Places, count: int) -> npt.NDArray[np.uint8]:
        """So many bytes of each record."""
        at = self._at[rows]
        self._at[rows] = at + count
        self._check(rows)
        return np.ascontiguousarray(self._data[at[:, None] + np.arange(count)])

    # --- texts and bytes -------------------------------------------------------------------------------------------

    def _bytes(self, _: Node, rows: Places) -> pa.Array:
        return self._cut(rows, self._numbers(rows))

    def _string(self, _: Node, rows: Places) -> pa.Array:
        values = self._cut(rows, self._numbers(rows))
        try:
            return values.cast(pa.string())
        except pa.ArrowInvalid as error:
            raise InvalidData("a text is no UTF-8", hint=_HINT) from error

    def _fixed(self, node: Node, rows: Places) -> pa.Array:
        return self._cut(rows, np.full(len(rows), node.size, np.int64))

    def _cut(self, rows: Places, lengths: Places) -> pa.Array:
        """Bytes of these lengths. They lie in the order of the records, so they and what is between them are one array
        of Arrow over all bytes, of which every other value is taken."""
        starts = self._at[rows]
        # Compared before they are added up: a length may be anything.
        if np.any((lengths < 0) | (lengths > self._ends[rows] - starts)):
            raise InvalidData("a message ends too early", hint=_HINT)
        self._at[rows] = starts + lengths
        if not len(rows):
            return pa.array([], pa.binary())
        bounds = np.empty(2 * len(rows), np.int64)
        bounds[0::2], bounds[1::2] = starts, starts + lengths
        pieces = pa.Array.from_buffers(
            pa.large_binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), self._buffer], null_count=0
        )
        return pieces.take(pa.array(np.arange(0, len(bounds), 2))).cast(pa.binary())

    def _enum(self, node: Node, rows: Places) -> pa.Array:
        numbers = self._numbers(rows)
        if np.any((numbers < 0) | (numbers >= len(node.names))):
            raise InvalidData("a value is none of its enum's", hint=_HINT)
        return pa.array(node.names, pa.string()).take(pa.array(numbers))

    # --- types with parts ------------------------------------------------------------------------------------------

    def _record(self, node: Node, rows: Places) -> pa.Array:
        values = [self._value(part, rows) for part in node.parts]
        if not values:
            return pa.array([{}] * len(rows), pa.struct([]))
        return pa.StructArray.from_arrays(values, list(node.names))

    def _union(self, node: Node, rows: Places) -> pa.Array:
        branches = self._numbers(rows)
        if np.any((branches < 0) | (branches >= len(node.parts))):
            raise InvalidData("a union has no such branch", hint=_HINT)
        others = [number for number, part in enumerate(node.parts) if part.kind != "null"]
        if len(others) != 1:
            raise Unsupported(
                f"a union of {len(others)} types is no type of a column",
                hint="only unions of null and one type are read: change the schema",
            )
        has_value = branches == others[0]
        values = self._value(node.parts[others[0]], rows[has_value])
        if has_value.all():
            return values
        return values.take(pa.array(np.cumsum(has_value) - 1, mask=~has_value))

    def _array(self, node: Node, rows: Places) -> pa.Array:
        (part,) = node.parts
        counts, places, order = self._items(rows, _size_at_least(part), lambda some: [self._value(part, some)])
        items = _joined(places[0], self._value(part, rows[:0])).take(order)
        return pa.ListArray.from_arrays(_offsets(counts), items)

    def _map(self, node: Node, rows: Places) -> pa.Array:
        (part,) = node.parts
        text = Node("string")
        counts, places, order = self._items(rows, 1, lambda some: [self._value(text, some), self._value(part, some)])
        empty = (self._value(text, rows[:0]), self._value(part, rows[:0]))
        columns = places if len(places) == 2 else [[], []]
        keys, items = (_joined(found, none).take(order) for found, none in zip(columns, empty, strict=True))
        return pa.MapArray.from_arrays(_offsets(counts), keys, items)

    def _items(
        self, rows: Places, least: int, read: Callable[[Places], list[pa.Array]]
    ) -> tuple[Places, list[list[pa.Array]], pa.Array]:
        """Items of arrays: how many each record has, their parts in the order in which they were read, and the order
        in which they belong. An item of each record is read at a time."""
        if not least:
            raise Unsupported("an array holds items of no size", hint="change the schema")
        counts = np.zeros(len(rows), np.int64)
        left = self._counts(rows)
        open_ = np.flatnonzero(left)
        parts: list[list[pa.Array]] = [[]]
        owners: list[Places] = []
        while len(open_):
            values = read(rows[open_])
            parts = parts if len(parts) == len(values) else [[] for _ in values]
            for part, value in zip(parts, values, strict=True):
                part.append(value)
            owners.append(open_)
            counts[open_] += 1
            left[open_] -= 1
            done = open_[left[open_] == 0]
            left[done] = self._counts(rows[done])
            open_ = open_[left[open_] > 0]
        whole = np.concatenate(owners) if owners else np.zeros(0, np.int64)
        return counts, parts, pa.array(np.argsort(whole, kind="stable"))

    def _counts(self, rows: Places) -> Places:
        """How many items come next; a negative number is followed by their size, which nobody needs."""
        counts = self._numbers(rows)
        negative = counts < 0
        if negative.any():
            self._numbers(rows[negative])
            counts[negative] = -counts[negative]
        if np.any((counts < 0) | (counts > self._ends[rows] - self._at[rows])):
            raise InvalidData("a message has less items than it says", hint=_HINT)
        return counts


def _joined(parts: list[pa.Array], empty: pa.Array) -> pa.Array:
    return pa.concat_arrays(parts) if parts else empty


def _offsets(counts: Places) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))


__all__ = ["decoded"]
