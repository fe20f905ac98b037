"""Values that reads show in place of null: `fields.<column>.default-value`.

The stored value stays null, so a later merge sees null and a later write still wins. Because files hold nulls where
reads show values, a filter on such a column says nothing about files: it is applied to the rows that are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from lakebed.errors import InvalidOption, InvalidSchema, Unsupported
from lakebed.options import FIELD_DEFAULT_VALUE, Options
from lakebed.schema.casts import default_scalar, filled
from lakebed.schema.table_schema import TableSchema
from lakebed.schema.validation import check_default
from lakebed.types import predicate as predicates
from lakebed.types.predicate import Predicate

Shown = Mapping[str, pa.Scalar]


def shown_defaults(schema: TableSchema, options: Options) -> dict[str, pa.Scalar]:
    """What to show in place of null, by column."""
    shown = {}
    for (name,), text in options.fields_with(FIELD_DEFAULT_VALUE).items():
        if text is not None and name in schema.field_names:
            shown[name] = default_scalar(replace(schema.field(name), default_value=text))
    return shown


def with_defaults(rows: pa.RecordBatch, shown: Shown) -> pa.RecordBatch:
    """The rows with nulls replaced."""
    for name in shown.keys() & set(rows.schema.names):
        column = rows.column(name)
        if column.null_count:
            place = rows.schema.get_field_index(name)
            rows = rows.set_column(place, rows.schema.field(place), filled(column, shown[name]))
    return rows


def stored_part(predicate: Predicate | None, schema: TableSchema, shown: Shown) -> Predicate | None:
    """What a filter says of the stored values."""
    if predicate is None or not shown:
        return predicate
    return predicates.project_onto(predicate, frozenset(schema.field_names) - shown.keys())


def check_shown_defaults(schema: TableSchema, options: Options, table: str) -> None:
    """Raises if an option names a column that can not have such a value, or a value that is none of its type."""
    for (name,), text in options.fields_with(FIELD_DEFAULT_VALUE).items():
        key = FIELD_DEFAULT_VALUE.key_for(name)
        if name in schema.primary_keys or name in schema.partition_keys:
            raise InvalidOption(
                f"table `{table}`: `{key}` is about a key or partition column, which says where a row belongs",
                hint="leave it out, and write the value you want",
            )
        column = schema.field(name)
        if column.default_value is not None:
            raise InvalidOption(
                f"table `{table}`: column `{name}` has a DEFAULT, which replaces null when written, and `{key}`, "
                "which replaces it when read",
                hint="keep one of the two",
            )
        try:
            check_default(replace(column, default_value=text))
        except (InvalidSchema, Unsupported) as error:
            raise InvalidOption(f"table `{table}`: `{key}`: {error.message}", hint=error.hint) from error
