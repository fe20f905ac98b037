"""Which function a column has, by the table's options, and that function ready for use."""

from __future__ import annotations

from lakebed.errors import InvalidOption, did_you_mean
from lakebed.merge.aggregates import AGGREGATES, Aggregate, AggregateSettings
from lakebed.options import (
    FIELD_AGGREGATE_FUNCTION,
    FIELD_COUNT_LIMIT,
    FIELD_DISTINCT,
    FIELD_IGNORE_RETRACT,
    FIELD_LIST_AGG_DELIMITER,
    FIELD_NESTED_KEY,
    FIELD_NESTED_KEY_NULL_STRATEGY,
    FIELD_NESTED_SEQUENCE_FIELD,
    FIELD_TS_FIELD,
    FIELDS_DEFAULT_AGGREGATE_FUNCTION,
    Options,
)
from lakebed.types.logical import DataField

DEFAULT_FUNCTION = "last_non_null_value"
_OLD_NAMES = {"first_not_null_value": "first_non_null_value"}


def canonical_name(name: str) -> str:
    """The name of a function however it is spelled: with `-` or `_`, or by an older name."""
    plain = name.strip().lower().replace("-", "_")
    return _OLD_NAMES.get(plain, plain)


def function_of(column: str, options: Options, default: str | None, *, own_only: bool = False) -> str | None:
    """The name of a column's function: its own, else the table's default, else `default`."""
    own = options.field(FIELD_AGGREGATE_FUNCTION, column)
    if own is not None:
        return canonical_name(own)
    if own_only:
        return default
    table_wide = options[FIELDS_DEFAULT_AGGREGATE_FUNCTION]
    return default if table_wide is None else canonical_name(table_wide)


def settings_of(column: str, options: Options) -> AggregateSettings:
    """The `fields.<column>.…` options that functions look at."""
    return AggregateSettings(
        ignore_retract=options.field(FIELD_IGNORE_RETRACT, column),
        distinct=options.field(FIELD_DISTINCT, column),
        list_agg_delimiter=options.field(FIELD_LIST_AGG_DELIMITER, column),
        nested_key=tuple(options.field(FIELD_NESTED_KEY, column) or ()),
        nested_sequence_field=tuple(options.field(FIELD_NESTED_SEQUENCE_FIELD, column) or ()),
        nested_key_null_strategy=options.field(FIELD_NESTED_KEY_NULL_STRATEGY, column),
        count_limit=options.field(FIELD_COUNT_LIMIT, column),
        ts_field=options.field(FIELD_TS_FIELD, column),
    )


def aggregate_for(field: DataField, name: str, options: Options) -> Aggregate:
    """The function of that name for a column, checked against its type and settings."""
    function = AGGREGATES.get(name)
    if function is None:
        raise InvalidOption(
            f"column `{field.name}`: aggregate function `{name}` is not known", hint=did_you_mean(name, AGGREGATES)
        )
    settings = settings_of(field.name, options)
    function.check(field, settings)
    return function(field, settings)
