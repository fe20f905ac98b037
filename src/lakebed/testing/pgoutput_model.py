"""Messages of PostgreSQL's `pgoutput`, read one by one: the readable definition that the vectorised decoder must meet.

Slow on purpose. Gives changes as plain tuples; knows nothing of types beyond text.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from lakebed.records import dataclass

UNCHANGED = object()
"""Stands for a value that the server did not send because it did not change."""


@dataclass
class ModelRelation:
    """A table as its last Relation message described it."""

    schema: str
    name: str
    identity: str
    columns: list[str] = field(default_factory=list)


class _Cursor:
    def __init__(self, message: bytes) -> None:
        self.message = message
        self.at = 1

    def take(self, code: str) -> Any:
        values = struct.unpack_from(f">{code}", self.message, self.at)
        self.at += struct.calcsize(f">{code}")
        return values[0] if len(values) == 1 else values

    def text(self) -> str:
        end = self.message.index(0, self.at)
        found = self.message[self.at : end].decode()
        self.at = end + 1
        return found

    def row(self) -> list[Any]:
        values: list[Any] = []
        for _ in range(self.take("h")):
            kind = self.take("c")
            if kind == b"n":
                values.append(None)
            elif kind == b"u":
                values.append(UNCHANGED)
            else:
                length = self.take("i")
                values.append(self.message[self.at : self.at + length].decode())
                self.at += length
        return values


class PgOutputModel:
    """Reads messages in order; `keys` names the key columns of each table."""

    def __init__(self, keys: dict[str, Sequence[str]]) -> None:
        self.keys = keys
        self.relations: dict[int, ModelRelation] = {}
        self.transaction = (0, 0, 0)

    def read(self, messages: Iterable[bytes]) -> list[tuple[Any, ...]]:
        """Changes as (table, columns, kind, values, commit position, commit time, transaction id)."""
        changes: list[tuple[Any, ...]] = []
        for message in messages:
            changes += self._one(message)
        return changes

    def _one(self, message: bytes) -> list[tuple[Any, ...]]:
        cursor, tag = _Cursor(message), message[:1]
        if tag == b"B":
            self.transaction = cursor.take("qqI")
        elif tag == b"R":
            oid = cursor.take("I")
            relation = ModelRelation(cursor.text(), cursor.text(), cursor.take("c").decode())
            for _ in range(cursor.take("h")):
                cursor.take("c")
                relation.columns.append(cursor.text())
                cursor.take("Ii")
            self.relations[oid] = relation
        elif tag == b"T":
            count, _ = cursor.take("IB")
            return [self._change(cursor.take("I"), "T", []) for _ in range(count)]
        elif tag in (b"I", b"U", b"D"):
            return self._row(cursor, tag)
        return []

    def _row(self, cursor: _Cursor, tag: bytes) -> list[tuple[Any, ...]]:
        oid = cursor.take("I")
        part = cursor.take("c")
        old = None
        if part in (b"K", b"O"):
            old = cursor.row()
            if tag == b"D":
                return [self._change(oid, "-D", old)]
            cursor.take("c")
        new = cursor.row()
        if tag == b"I":
            return [self._change(oid, "+I", new)]
        if old is None:
            return [self._change(oid, "+U", new)]
        new = [before if value is UNCHANGED and before is not None else value for before, value in zip(old, new)]  # noqa: B905
        relation = self.relations[oid]
        places = [relation.columns.index(name) for name in self.keys[relation.name]]
        if any(old[place] != new[place] for place in places):
            return [self._change(oid, "-D", old), self._change(oid, "+I", new)]
        if part == b"K":
            return [self._change(oid, "+U", new)]
        return [self._change(oid, "-U", old), self._change(oid, "+U", new)]

    def _change(self, oid: int, kind: str, values: list[Any]) -> tuple[Any, ...]:
        relation = self.relations[oid]
        return (relation.name, tuple(relation.columns), kind, tuple(values), *self.transaction)


__all__ = ["UNCHANGED", "ModelRelation", "PgOutputModel"]
