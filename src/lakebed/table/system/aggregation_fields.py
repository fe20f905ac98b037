"""`t$aggregation_fields`: one row for each column, with the options that say how its values are merged."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakebed.table.system.base import Column, SystemTable, TableState, each
from lakebed.types.logical import DataField


def _column_of(key: str) -> str | None:
    """The column that an option such as `fields.amount.aggregate-function` is about."""
    parts = key.split(".")
    return parts[1] if len(parts) > 2 and parts[0] == "fields" else None


def _listed(state: TableState, fields: Sequence[DataField], part: Callable[[tuple[str, str]], str]) -> list[str]:
    options = state.latest_schema.options.items()
    return [
        "[" + ", ".join(part(option) for option in options if _column_of(option[0]) == field.name) + "]"
        for field in fields
    ]


AGGREGATION_FIELDS = SystemTable[TableState, DataField](
    "aggregation_fields",
    lambda state: state.latest_schema.fields,
    (
        each("field_name", "STRING NOT NULL", lambda field: field.name),
        each("field_type", "STRING NOT NULL", lambda field: str(field.type)),
        Column("function", "STRING", lambda state, fields: _listed(state, fields, lambda option: option[1])),
        Column("function_options", "STRING", lambda state, fields: _listed(state, fields, lambda option: option[0])),
        each("comment", "STRING", lambda field: field.description),
    ),
)

__all__ = ["AGGREGATION_FIELDS"]
