"""Debezium's messages: rows before and after, with or without a schema beside them.

With a schema columns have their types; without one they are texts. Large values that an update did not touch come as
a placeholder, which is never written: the pipeline keeps the value that the row has.
"""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import Chunk, Description, SourceColumn, SourceName
from lakebed.cdc.formats.base import (
    PLACE,
    Group,
    MessageFormat,
    column_texts,
    exact_numbers,
    groups_of,
    member_marks,
    member_names,
    placed,
    transformed,
)
from lakebed.cdc.formats.connect_types import ConnectColumn, connect_column
from lakebed.cdc.formats.messages import (
    DELETE,
    INSERT,
    UPDATE,
    TableChanges,
    action_numbers,
    check_present,
    milliseconds,
    overlaid,
    whole_column,
)
from lakebed.types.logical import STRING

_CHANGE: Final[dict[str, Any]] = {
    "op": "VARCHAR",
    "ts_ms": "BIGINT",
    "source": {"db": "VARCHAR", "schema": "VARCHAR", "table": "VARCHAR", "ts_ms": "BIGINT", "collection": "VARCHAR"},
    "before": "JSON",
    "after": "JSON",
    "pkNames": "JSON",
    "ddl": "VARCHAR",
    "status": "VARCHAR",
}
ACTIONS: Final = {"c": INSERT, "r": INSERT, "u": UPDATE, "d": DELETE}
PLACEHOLDER: Final = "__debezium_unavailable_value"
_PLACEHOLDERS: Final = (PLACEHOLDER, base64.b64encode(PLACEHOLDER.encode()).decode())


class DebeziumJson(MessageFormat):
    """`debezium-json`."""

    name = "debezium-json"

    def chunks(self, bodies: pa.Array, ordinal: int, about: pa.RecordBatch | None = None) -> list[Chunk]:
        """The changes; messages of schema changes and of transactions are left out."""
        members = placed(_members(exact_numbers(pc.drop_null(bodies))), bodies)
        without_rows = pc.and_(pc.is_null(members["op"]), pc.or_(*(pc.is_valid(members[n]) for n in ("ddl", "status"))))
        members = members.filter(pc.invert(without_rows)).combine_chunks()
        found: list[Chunk] = []
        for group in groups_of(members, ("db", "schema_name", "table"), ("schema", "pkNames")):
            found += self._changes(members, group).chunks(ordinal + len(found), about)
        return found

    def _changes(self, members: pa.Table, group: Group) -> TableChanges:
        database, schema, table, described, key = group.common
        rows = members.take(pa.array(group.rows))
        ops, before, after = (whole_column(rows, name) for name in ("op", "before", "after"))
        actions = action_numbers(ops, ACTIONS, self.name)
        check_present(after, actions != DELETE, "after", self.name)
        check_present(before, actions != INSERT, "before", self.name)
        columns = _described(described) if described else None
        if columns is None:
            columns = [ConnectColumn.untyped(name) for name in member_names([after, before])]
        names = [column.name for column in columns]
        kinds = [column.json_type for column in columns]
        new, old = column_texts(after, names, kinds), column_texts(before, names, kinds)
        given = member_marks(before, names)
        keys = tuple(json.loads(key) or ()) if key else ()
        is_update = pa.array(actions == UPDATE)
        unchanged = {
            name: mark
            for name in names
            if pa.types.is_string(new[name].type)
            and pc.any(mark := pc.fill_null(pc.is_in(new[name], pa.array(_PLACEHOLDERS)), False)).as_py()
        }
        new |= {name: pc.if_else(mark, pa.scalar(None, pa.string()), new[name]) for name, mark in unchanged.items()}
        former = {name: overlaid(old[name], new[name], pc.or_(given[name], pc.invert(is_update))) for name in names}
        return TableChanges(
            SourceName(database or "", schema or "", table or ""),
            Description(
                tuple(_source_column(column) for column in columns),
                keys,
                typed=described is not None,
                base64=described is None,
            ),
            actions,
            milliseconds(whole_column(rows, "ts_ms")),
            {column.name: column.values(former[column.name]) for column in columns},
            {column.name: column.values(new[column.name]) for column in columns},
            unchanged,
            pc.equal(ops, "r").to_numpy(zero_copy_only=False),
            whole_column(rows, PLACE),
        )


def _members(bodies: pa.Array) -> pa.Table:
    """What each message says, whether or not it comes with a schema."""
    found = transformed(bodies, {**_CHANGE, "payload": _CHANGE, "schema": "JSON"}).combine_chunks()
    has_payload = pc.is_valid(pc.struct_field(whole_column(found, "payload"), "op"))
    payload = whole_column(found, "payload")

    def member(*path: str) -> pa.Array:
        plain = whole_column(found, path[0])
        for name in path[1:]:
            plain = pc.struct_field(plain, name)
        return pc.if_else(has_payload, pc.struct_field(payload, list(path)), plain)

    return pa.table(
        {
            "op": member("op"),
            "db": member("source", "db"),
            "schema_name": member("source", "schema"),
            "table": pc.coalesce(member("source", "table"), member("source", "collection")),
            "ts_ms": pc.coalesce(member("source", "ts_ms"), member("ts_ms")),
            "before": member("before"),
            "after": member("after"),
            "pkNames": pc.coalesce(member("pkNames"), whole_column(found, "pkNames")),
            "schema": pc.if_else(has_payload, whole_column(found, "schema"), pa.scalar(None, pa.string())),
            "ddl": member("ddl"),
            "status": member("status"),
        }
    )


def _described(text: str) -> list[ConnectColumn] | None:
    """Columns from a schema that stands beside the rows; None if it says nothing of them."""
    for part in (json.loads(text) or {}).get("fields", []):
        if part.get("field") == "after" and "fields" in part:
            return [connect_column(column) for column in part["fields"]]
    return None


def _source_column(column: ConnectColumn) -> SourceColumn:
    return SourceColumn(column.name, column.type or STRING)


__all__ = ["ACTIONS", "PLACEHOLDER", "DebeziumJson"]
