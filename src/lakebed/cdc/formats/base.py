"""What a format of messages is: from a block of bodies to chunks of changes.

JSON is taken apart by DuckDB, a whole block at a time: no message is a Python object. A block's messages are brought
together by table; within a table they keep their order.
"""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import SKIPPED, STREAM, Chunk, SourceName
from lakebed.cdc.formats.reading import Reading
from lakebed.cdc.formats.registry import Registry
from lakebed.errors import InvalidData, MissingDependency
from lakebed.records import dataclass

_LONG_NUMBER: Final = r'([^\\:,\[{\s]":\s*)(-?[0-9][0-9.]{15,}(?:[eE][+-]?[0-9]+)?)(\s*[,}\]])'
"""A member whose value is a number with more digits than a double keeps. The quote before the colon can not be that of
a text's beginning, so texts are never matched inside."""

PLACE: Final = "_place"
"""A column beside the members of messages: which of those that were read it is."""
_WHY_CHARACTERS: Final = 300

_LOCAL = threading.local()


class MessageFormat(ABC):
    """A way to write changes, or rows, as messages."""

    name: ClassVar[str]
    is_binary: ClassVar[bool] = False
    """Whether messages are bytes, rather than texts."""
    takes_keys: ClassVar[bool] = False
    """Whether it may be said what keys of messages are."""
    needs_registry: ClassVar[bool] = False

    def __init__(self, modes: Collection[str] = (), reading: Reading | None = None) -> None:
        self.modes = frozenset(modes)
        """Modes of the type mapping."""
        self.reading = reading or Reading()
        """What is said of keys and schemas."""

    @property
    def registry(self) -> Registry:
        """Where the schemas of messages stand."""
        assert self.reading.registry is not None
        return self.reading.registry

    @abstractmethod
    def chunks(self, bodies: pa.Array, ordinal: int, about: pa.RecordBatch | None = None) -> list[Chunk]:
        """The changes of some messages, in their order; chunks are numbered from `ordinal`. NULL is no message.

        `about` has a row for each message, whose columns the changes carry on.
        """

    def all_chunks(self, bodies: pa.Array, ordinal: int, about: pa.RecordBatch | None = None) -> list[Chunk]:
        """`chunks`; an error says which message it is about."""
        try:
            return self.chunks(bodies, ordinal, about)
        except InvalidData as error:
            found = self._first_bad(bodies, about)
            if found is None:
                raise
            place, why = found
            raise InvalidData(f"{_where(about, place)}{why.message}", hint=why.hint) from error

    def _first_bad(self, bodies: pa.Array, about: pa.RecordBatch | None) -> tuple[int, InvalidData] | None:
        """The place of the first message that can not be read, by halves, and why; None if each by itself can."""
        start, end = 0, len(bodies)
        why = None
        while end - start > 1 or why is None:
            for first, last in ((start, (start + end) // 2), ((start + end) // 2, end)):
                try:
                    self.chunks(bodies[first:last], 0, about[first:last] if about is not None else None)
                except InvalidData as error:
                    start, end, why = first, last, error
                    break
            else:
                return None
        return start, why

    def readable_chunks(self, bodies: pa.Array, ordinal: int, about: pa.RecordBatch | None = None) -> list[Chunk]:
        """`chunks`, without the messages that can not be read; a chunk of its own says of each why it is left out."""
        try:
            return self.chunks(bodies, ordinal, about)
        except InvalidData as error:
            if len(bodies) == 1:
                told = f"{_where(about)}{error.message}"[:_WHY_CHARACTERS]
                why = json.dumps({"count": 1, "why": told}, ensure_ascii=False)
                return [Chunk(ordinal, SourceName("", "", ""), SKIPPED, why, STREAM)]
        # Halves of halves: one bad message among thousands costs a dozen more readings.
        middle = len(bodies) // 2
        found: list[Chunk] = []
        for start, count in ((0, middle), (middle, len(bodies) - middle)):
            part = about.slice(start, count) if about is not None else None
            found += self.readable_chunks(bodies.slice(start, count), ordinal + len(found), part)
        return found


def _where(about: pa.RecordBatch | None, place: int = 0) -> str:
    """Which message it is, for an error; nothing where nobody knows."""
    if about is None or not {"topic", "partition", "offset"} <= set(about.schema.names):
        return ""
    topic, partition, offset = (about.column(name)[place].as_py() for name in ("topic", "partition", "offset"))
    return f"topic `{topic}`, partition {partition}, offset {offset}: "


@dataclass(frozen=True, slots=True)
class Group:
    """Messages of one table: their places in the block, and what they have in common."""

    common: tuple[Any, ...]
    rows: npt.NDArray[np.int64]


def grouped(of_table: Sequence[pa.Array], described: Sequence[pa.Array] = ()) -> list[Group]:
    """Rows of one table that are described alike, groups by their first row, rows of a group in order.

    INVARIANT: a group ends where the description of its table changes, and another begins when the old one is back:
    changes of a table keep their order, whichever way they are described.
    """
    columns = (*of_table, *described)
    tables = _numbers(of_table)
    order = np.argsort(tables, kind="stable")
    tables, kinds = tables[order], _numbers(columns)[order]
    cuts = np.flatnonzero((tables[1:] != tables[:-1]) | (kinds[1:] != kinds[:-1])) + 1
    groups = [
        Group(tuple(column[int(rows[0])].as_py() for column in columns), rows)
        for rows in np.split(order, cuts)
        if len(rows)
    ]
    return sorted(groups, key=lambda group: int(group.rows[0]))


def groups_of(members: pa.Table, of_table: Sequence[str], described: Sequence[str]) -> list[Group]:
    """The same, of columns of the members of messages."""
    if not members.num_rows:
        return []
    return grouped(*([_whole(members.column(name)) for name in names] for names in (of_table, described)))


def _numbers(columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
    """A number for each row; rows with the same values have the same one."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, numbers = np.unique(numbers * (len(encoded.dictionary) + 1) + codes, return_inverse=True)
    return numbers


def placed(members: pa.Table, bodies: pa.Array) -> pa.Table:
    """Members of all messages that are none, with their places among all."""
    return members.append_column(PLACE, pa.array(np.flatnonzero(bodies.is_valid().to_numpy(zero_copy_only=False))))


def exact_numbers(bodies: pa.Array) -> pa.Array:
    """The messages with quotes around numbers that would otherwise be rounded."""
    texts = bodies.cast(pa.string())
    found = pc.any(pc.match_substring_regex(texts, _LONG_NUMBER)).as_py()
    return pc.replace_substring_regex(texts, _LONG_NUMBER, r'\1"\2"\3') if found else texts


def transformed(bodies: pa.Array, shape: Any, extra: str = "") -> pa.Table:
    """Members of each JSON text as columns; `shape` names them with their types. A text that is no JSON is an error."""
    fields = ", ".join(f"s.{_identifier(name)} AS {_identifier(name)}" for name in shape)
    text = _literal(json.dumps(shape))
    return query(f"SELECT {fields}{extra} FROM (SELECT json, json_transform(json, {text}) AS s FROM given)", bodies)


def query(sql: str, bodies: pa.Array) -> pa.Table:
    """A query over `given(json)`, in the order of its rows."""
    duckdb = _duckdb()
    connection = getattr(_LOCAL, "connection", None)
    if connection is None:
        connection = _LOCAL.connection = duckdb.connect()
        connection.execute(
            "SET threads = 1; SET preserve_insertion_order = true; SET autoinstall_known_extensions = false"
        )
    given = pa.table({"json": bodies})
    connection.register("given", given)
    try:
        return connection.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        raise InvalidData(
            f"messages can not be read: {str(error).splitlines()[0][:300]}",
            hint="every message is one JSON object of the format that the source was given",
        ) from error
    finally:
        connection.unregister("given")


def column_texts(objects: pa.Array, names: Sequence[str], types: Sequence[str] | None = None) -> dict[str, pa.Array]:
    """Members of JSON objects as text, or as what `types` says; NULL where there is none."""
    if not names:
        return {}
    kinds = list(types or ["VARCHAR"] * len(names))
    found: dict[str, pa.Array] = {}
    for some in _apart(names):
        shape = {name: kinds[names.index(name)] for name in some}
        text = _literal(json.dumps(shape, ensure_ascii=False))
        table = query(f"SELECT json_transform(json, {text}) AS s FROM given", objects)
        found |= dict(zip(some, _whole(table.column(0)).flatten(), strict=True))
    return found


def _apart(names: Sequence[str]) -> list[list[str]]:
    """Groups of names without two that differ in case only: members of a struct can not."""
    groups: list[dict[str, str]] = []
    for name in names:
        group = next((group for group in groups if name.lower() not in group), None)
        if group is None:
            groups.append(group := {})
        group[name.lower()] = name
    return [list(group.values()) for group in groups]


def member_marks(objects: pa.Array, names: Sequence[str]) -> dict[str, pa.Array]:
    """Whether each JSON object has a member of the name, be it null."""
    found = query("SELECT json_keys(json) AS keys FROM given", objects).column(0)
    keys = _whole(found)
    parents, values = pc.list_parent_indices(keys), keys.flatten()
    marks = {}
    for name in names:
        mark = np.zeros(len(objects), np.bool_)
        mark[parents.filter(pc.equal(values, name)).to_numpy(zero_copy_only=False)] = True
        marks[name] = pa.array(mark)
    return marks


def member_names(objects: Sequence[pa.Array]) -> list[str]:
    """Names of all members of JSON objects, by their first appearance."""
    names: dict[str, None] = {}
    for part in objects:
        keys = query("SELECT DISTINCT json_keys(json) AS keys FROM given WHERE json IS NOT NULL", part)
        for found in keys.column(0).to_pylist():
            names |= dict.fromkeys(found)
    return list(names)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _duckdb() -> Any:
    try:
        import duckdb  # optional: the extra `cdc`
    except ImportError as error:
        raise MissingDependency(
            "duckdb, which reads change messages, is not installed", hint='install it with: pip install "lakebed[cdc]"'
        ) from error
    return duckdb


__all__ = [
    "PLACE",
    "Group",
    "MessageFormat",
    "column_texts",
    "exact_numbers",
    "grouped",
    "groups_of",
    "member_marks",
    "member_names",
    "placed",
    "query",
    "transformed",
]
