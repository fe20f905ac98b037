"""Debezium's messages in Avro: rows before and after as records, whose schemas stand in a registry.

Types are those of the schema, with the notes that Connect leaves in it. The columns of the message's key, if that is of
Avro too, are the primary key.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import RAW_KEY, Chunk, Description, SourceColumn, SourceName
from lakebed.cdc.formats.avro_types import avro_type, avro_values
from lakebed.cdc.formats.base import Group, MessageFormat, grouped
from lakebed.cdc.formats.debezium import ACTIONS, PLACEHOLDER
from lakebed.cdc.formats.keys import avro_key_names
from lakebed.cdc.formats.messages import (
    DELETE,
    INSERT,
    TableChanges,
    action_numbers,
    check_present,
    milliseconds,
)
from lakebed.cdc.formats.wire import HEAD_BYTES, NOTHING, schema_numbers
from lakebed.errors import InvalidData
from lakebed.formats.avro.lockstep import decoded
from lakebed.formats.avro.named import Node
from lakebed.records import dataclass

_WANTED: Final = ("before", "after", "source", "op", "ts_ms")
_NAMES: Final = (("db",), ("schema",), ("table", "collection"))
_ABOUT_OTHERS: Final = ("ddl", "status")
"""Fields of messages of schema changes and of transactions."""
_PLACEHOLDERS: Final = {"string": PLACEHOLDER, "bytes": PLACEHOLDER.encode()}


@dataclass(frozen=True, slots=True)
class _Decoded:
    """Messages of one schema: their places among all, and their fields."""

    schema: Node
    places: np.ndarray
    fields: dict[str, pa.Array]
    names: tuple[pa.Array, ...]
    """Database, schema and table of each."""


class DebeziumAvro(MessageFormat):
    """`debezium-avro`."""

    name = "debezium-avro"
    is_binary = True
    needs_registry = True

    def chunks(self, bodies: pa.Array, ordinal: int, about: pa.RecordBatch | None = None) -> list[Chunk]:
        """The changes; messages of schema changes, of transactions and heartbeats are left out."""
        numbers = schema_numbers(bodies)
        parts = {
            int(number): part
            for number in np.unique(numbers)
            if number != NOTHING and (part := self._decoded(bodies, numbers, int(number))) is not None
        }
        if not parts:
            return []
        # In their order again, whichever schema they have.
        places = np.concatenate([part.places for part in parts.values()])
        order = np.argsort(places, kind="stable")
        take = pa.array(order)
        names = [pa.concat_arrays([part.names[n] for part in parts.values()]).take(take) for n in range(len(_NAMES))]
        places = places[order]
        found: list[Chunk] = []
        for group in grouped(names, [pa.array(numbers[places])]):
            there = places[group.rows]
            part = parts[int(group.common[-1])]
            keys = self._key_names(about, there)
            changes = self._changes(part, np.searchsorted(part.places, there), group, keys)
            found += changes.chunks(ordinal + len(found), about)
        return found

    def _decoded(self, bodies: pa.Array, numbers: np.ndarray, number: int) -> _Decoded | None:
        schema = self.registry.schema(number)
        if schema.field("op") is None or schema.field("after") is None:
            if any(name in schema.names for name in _ABOUT_OTHERS) or schema.names == ("ts_ms",):
                return None
            raise InvalidData(
                f"schema {number} is none of Debezium's changes: it has no `op` and no `after`",
                hint="rows without an envelope are of the format `avro`",
            )
        places = np.flatnonzero(numbers == number)
        fields = decoded(schema, bodies.take(pa.array(places)), HEAD_BYTES, _WANTED)
        source = schema.field("source")
        if "source" not in fields or source is None:
            raise InvalidData(f"schema {number} has no `source`", hint="is this the right format?")
        names = tuple(_member(fields["source"], source, *spellings) for spellings in _NAMES)
        return _Decoded(schema, places, fields, names)

    def _key_names(self, about: pa.RecordBatch | None, places: np.ndarray) -> tuple[str, ...]:
        if about is None or RAW_KEY not in about.schema.names:
            return ()
        return avro_key_names(about.column(RAW_KEY).take(pa.array(places)), self.registry)

    def _changes(self, part: _Decoded, rows: np.ndarray, group: Group, keys: tuple[str, ...]) -> TableChanges:
        database, schema, table, _ = group.common
        take = pa.array(rows)
        ops, before, after = (part.fields[name].take(take) for name in ("op", "before", "after"))
        actions = action_numbers(ops, ACTIONS, self.name)
        check_present(after, actions != DELETE, "after", self.name)
        check_present(before, actions != INSERT, "before", self.name)
        node = _row(part.schema, "after")
        new, old = _columns(after, node), _columns(before, _row(part.schema, "before"))
        unchanged = _placeholders(new, node)
        new |= {name: pc.if_else(mark, pa.scalar(None, new[name].type), new[name]) for name, mark in unchanged.items()}
        types = dict(zip(node.names, node.parts, strict=True))
        source = part.schema.field("source")
        assert source is not None
        times = _member(part.fields["source"], source, "ts_ms").take(take)
        if "ts_ms" in part.fields:
            times = pc.coalesce(times.cast(pa.int64()), part.fields["ts_ms"].take(take).cast(pa.int64()))
        return TableChanges(
            SourceName(database or "", schema or "", table or ""),
            Description(
                tuple(SourceColumn(name, avro_type(each)) for name, each in types.items()),
                tuple(name for name in keys if name in types),
            ),
            actions,
            milliseconds(times.cast(pa.int64())),
            {
                name: avro_values(old.get(name, pa.nulls(len(rows), new[name].type)), types[name], name)
                for name in types
            },
            {name: avro_values(new[name], types[name], name) for name in types},
            unchanged,
            pc.equal(ops, "r").to_numpy(zero_copy_only=False),
            pa.array(part.places[rows]),
        )


def _row(schema: Node, name: str) -> Node:
    """The type of the rows in a field."""
    found = schema.field(name)
    if found is None or found.plain.kind != "record":
        raise InvalidData(f"the schema has no row in `{name}`", hint="is this the right format?")
    return found.plain


def _columns(rows: pa.Array, node: Node) -> dict[str, pa.Array]:
    """Members of rows, NULL where there is no row."""
    return dict(zip(node.names, rows.flatten(), strict=True))


def _placeholders(columns: dict[str, pa.Array], node: Node) -> dict[str, pa.Array]:
    """Where a value was not sent, of columns in which that is so somewhere."""
    found = {}
    for name, part in zip(node.names, node.parts, strict=True):
        sign = _PLACEHOLDERS.get(part.plain.kind)
        if sign is not None:
            mark = pc.equal(columns[name], pa.scalar(sign, columns[name].type)).fill_null(False)
            if pc.any(mark).as_py():
                found[name] = mark
    return found


def _member(rows: pa.Array, node: Node, *spellings: str) -> pa.Array:
    """The first member of a record that is there; NULL without any."""
    columns = _columns(rows, node.plain)
    kind = pa.int64() if spellings == ("ts_ms",) else pa.string()
    found = [columns[name].cast(kind) for name in spellings if name in columns]
    return pc.coalesce(*found) if found else pa.nulls(len(rows), kind)


__all__ = ["DebeziumAvro"]
