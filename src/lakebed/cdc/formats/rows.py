"""Messages that are rows: each takes the place of the row with its key, and one without a body takes that away.

So a compacted topic is a table. The key's columns come from the key of the message, if it is said what that is; else
they are columns of the body, and a message without one tells nothing. The table is called like the topic.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import RAW_KEY, Chunk, Description, SourceColumn, SourceName
from lakebed.cdc.formats.avro_types import avro_type, avro_values
from lakebed.cdc.formats.base import MessageFormat, column_texts, exact_numbers, member_names, query
from lakebed.cdc.formats.keys import KeyColumn, key_columns, key_schemas
from lakebed.cdc.formats.messages import DELETE, UPSERT, TableChanges, milliseconds
from lakebed.cdc.formats.wire import HEAD_BYTES, NOTHING, schema_numbers
from lakebed.cdc.rows.shape import converted
from lakebed.errors import InvalidData
from lakebed.formats.avro.lockstep import decoded
from lakebed.records import dataclass
from lakebed.types.logical import STRING, DataType

_OBJECT = "OBJECT"
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Column:
    """Values of a column, with their type."""

    values: pa.Array
    type: DataType


class RowFormat(MessageFormat):
    """What formats of rows have in common."""

    takes_keys = True
    typed: ClassVar[bool]
    """Whether bodies say what types their values have."""

    def chunks(self, bodies: pa.Array, ordinal: int, about: pa.RecordBatch | None = None) -> list[Chunk]:
        """The rows. Messages whose body and key are written alike go together, in their order."""
        keys = pa.nulls(len(bodies), pa.binary()) if about is None else _column(about, RAW_KEY, pa.binary())
        is_gone = bodies.is_null().to_numpy(zero_copy_only=False)
        if self.reading.key is None and is_gone.any():
            raise InvalidData(
                "a message without a body deletes the row of its key, and nothing says what keys are",
                hint="set `key_format` to json, text or avro, and `key_columns` to the columns that a key is",
            )
        numbers = _carried(self.schemas(bodies))
        key_numbers = _carried(key_schemas(self.reading.key, keys))
        found: list[Chunk] = []
        for start, end in runs(numbers, key_numbers):
            part = slice(start, end)
            changes = self._changes(bodies[part], keys[part], int(numbers[start]), np.arange(start, end), about)
            found += changes.chunks(ordinal + len(found), about)
        return found

    @abstractmethod
    def schemas(self, bodies: pa.Array) -> Numbers:
        """A number for how each body is written; `NOTHING` where there is none."""

    @abstractmethod
    def columns(self, bodies: pa.Array, schema: int) -> dict[str, Column]:
        """The columns of bodies that are written in one way. All of them are there."""

    def _changes(
        self, bodies: pa.Array, keys: pa.Array, schema: int, places: Numbers, about: pa.RecordBatch | None
    ) -> TableChanges:
        is_there = bodies.is_valid().to_numpy(zero_copy_only=False)
        spread = pa.array(np.cumsum(is_there) - 1, mask=~is_there)
        has_bodies = bool(is_there.any())
        columns = self.columns(bodies.filter(pa.array(is_there)), schema) if has_bodies else {}
        columns = {name: Column(each.values.take(spread), each.type) for name, each in columns.items()}
        own: dict[str, KeyColumn] = {}
        if self.reading.key is not None:
            own = key_columns(self.reading.key, keys, self.reading.registry)
            columns = _with_key(columns, own)
            _check_keys(own, columns)
        # Types of keys that are text are those of the bodies' columns; without any body nobody knows them.
        typed = self.typed and (has_bodies or all(each.type is not None for each in own.values()))
        description = Description(
            tuple(SourceColumn(name, each.type) for name, each in columns.items()),
            tuple(own),
            typed=typed,
            base64=not self.typed,
            partial=not has_bodies,
        )
        values = {name: each.values for name, each in columns.items()}
        return TableChanges(
            SourceName("", "", _topic(about)),
            description,
            np.where(is_there, UPSERT, DELETE).astype(np.int8),
            _times_ms(about, places),
            values,
            values,
            {},
            np.zeros(len(places), np.bool_),
            pa.array(places),
        )


class JsonRows(RowFormat):
    """`json`: objects whose members are columns, without types."""

    name = "json"
    typed = False

    def schemas(self, bodies: pa.Array) -> Numbers:
        """All are written alike."""
        return np.where(bodies.is_valid().to_numpy(zero_copy_only=False), 0, NOTHING).astype(np.int64)

    def columns(self, bodies: pa.Array, schema: int) -> dict[str, Column]:
        """Members of all objects, as texts."""
        texts = exact_numbers(bodies)
        kinds = query("SELECT json_type(json) AS kind FROM given", texts).column(0)
        if not pc.all(pc.equal(kinds, _OBJECT)).as_py():
            raise InvalidData(
                "a message is no JSON object", hint="its members are the columns of a row; is this the right format?"
            )
        names = member_names([texts])
        return {name: Column(values, STRING) for name, values in column_texts(texts, names).items()}


class AvroRows(RowFormat):
    """`avro`: records whose schemas stand in a registry."""

    name = "avro"
    typed = True
    is_binary = True
    needs_registry = True

    def schemas(self, bodies: pa.Array) -> Numbers:
        """The numbers that stand in front."""
        return schema_numbers(bodies)

    def columns(self, bodies: pa.Array, schema: int) -> dict[str, Column]:
        """Fields of records."""
        node = self.registry.schema(schema)
        fields = decoded(node, bodies, HEAD_BYTES)
        return {
            name: Column(avro_values(fields[name], part, name), avro_type(part))
            for name, part in zip(node.names, node.parts, strict=True)
        }


def _with_key(columns: Mapping[str, Column], own: Mapping[str, KeyColumn]) -> dict[str, Column]:
    """The columns with those of the key, whose values count: the row goes by the same key as it came."""
    found = {name: Column(each.values, each.type or STRING) for name, each in own.items() if name not in columns}
    for name, column in columns.items():
        if name not in own:
            found[name] = column
            continue
        key = own[name]
        values = converted(key.values, key.type or STRING, column.type).cast(column.values.type)
        found[name] = Column(pc.coalesce(values, column.values), column.type)
    return found


def _check_keys(own: Mapping[str, KeyColumn], columns: Mapping[str, Column]) -> None:
    missing = next((name for name in own if columns[name].values.null_count), None)
    if missing is not None or not own:
        raise InvalidData(
            f"a message has no key column `{missing}`" if missing else "a message has no key",
            hint="every message of the topic needs a key of the given `key_format`",
        )


def _carried(numbers: Numbers) -> Numbers:
    """The numbers, with that of the message before in the place of `NOTHING`; at the beginning that of the first."""
    there = np.flatnonzero(numbers != NOTHING)
    if not len(there):
        return numbers
    last = np.searchsorted(there, np.arange(len(numbers)), side="right") - 1
    carried: Numbers = numbers[there[np.maximum(last, 0)]]
    return carried


def runs(*numbers: Numbers) -> Iterator[tuple[int, int]]:
    """Stretches in which none of the numbers changes."""
    count = len(numbers[0])
    differs = np.any([each[1:] != each[:-1] for each in numbers], axis=0)
    cuts = [0, *(np.flatnonzero(differs) + 1).tolist(), count]
    return ((start, end) for start, end in pairwise(cuts) if start < end)


def _column(about: pa.RecordBatch, name: str, data_type: pa.DataType) -> pa.Array:
    place = about.schema.get_field_index(name)
    return about.column(place) if place >= 0 else pa.nulls(about.num_rows, data_type)


def _topic(about: pa.RecordBatch | None) -> str:
    """The topic of a block, which is of one."""
    topics = _column(about, "topic", pa.string()) if about is not None else pa.array([], pa.string())
    return str(topics[0].as_py() or "") if len(topics) else ""


def _times_ms(about: pa.RecordBatch | None, places: Numbers) -> Numbers:
    """When the messages were written."""
    if about is None:
        return np.zeros(len(places), np.int64)
    times = _column(about, "timestamp", pa.timestamp("ms", tz="UTC")).take(pa.array(places))
    return milliseconds(times.cast(pa.int64()))


__all__ = ["AvroRows", "JsonRows", "RowFormat", "runs"]
