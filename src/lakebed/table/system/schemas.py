"""`t$schemas`: one row for each version of the schema, its parts as JSON texts."""

from __future__ import annotations

import json
from collections.abc import Iterator

from lakebed.schema.table_schema import TableSchema
from lakebed.table.system.base import SystemTable, TableState, each
from lakebed.table.system.texts import local_time_ms


def _schemas(state: TableState) -> Iterator[TableSchema]:
    return (state.context.schemas.get(schema_id) for schema_id in state.context.schemas.ids())


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


SCHEMAS = SystemTable(
    "schemas",
    _schemas,
    (
        each("schema_id", "BIGINT NOT NULL", lambda schema: schema.id),
        each("fields", "STRING NOT NULL", lambda schema: _json([field.to_json() for field in schema.fields])),
        each("partition_keys", "STRING NOT NULL", lambda schema: _json(list(schema.partition_keys))),
        each("primary_keys", "STRING NOT NULL", lambda schema: _json(list(schema.primary_keys))),
        each("options", "STRING NOT NULL", lambda schema: _json(dict(schema.options))),
        each("comment", "STRING", lambda schema: schema.comment),
        each("update_time", "TIMESTAMP(3) NOT NULL", lambda schema: local_time_ms(schema.time_millis)),
    ),
)

__all__ = ["SCHEMAS"]
