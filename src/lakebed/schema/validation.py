"""Structural rules of a schema: names, ids, keys, buckets, and options that name columns.

Both ways to a new schema (creation and change) end here. Rules that need to know what a merge engine or a changelog
producer can do are not structural; the parts that implement those check them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lakebed.errors import InvalidData, InvalidOption, InvalidSchema, did_you_mean
from lakebed.schema import column_options as co
from lakebed.schema.casts import default_scalar
from lakebed.schema.system_columns import KEY_ID_OFFSET, KEY_PREFIX, SYSTEM_NAMES, is_reserved
from lakebed.types.logical import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    is_nested,
    walk_fields,
    with_nullable,
)


def check_structure(
    fields: Sequence[DataField],
    partition_keys: Sequence[str],
    primary_keys: Sequence[str],
    options: Mapping[str, str],
) -> None:
    """Raise `InvalidSchema` or `InvalidOption` for the first structural rule that is broken."""
    check_names(fields)
    _check_ids(tuple(fields))
    _check_keys("partition", partition_keys, fields)
    _check_keys("primary", primary_keys, fields)
    if primary_keys and set(primary_keys) <= set(partition_keys):
        raise InvalidSchema(
            f"primary key ({', '.join(primary_keys)}) consists of partition columns only",
            hint="add a column that tells rows of one partition apart, or partition by other columns",
        )
    if not primary_keys and co.is_true(options, co.PRIMARY_KEY_NULLABLE):
        raise InvalidOption(
            f"option `{co.PRIMARY_KEY_NULLABLE}` is set on a table without primary key",
            hint="declare a primary key, or remove the option",
        )
    _check_mentions([field.name for field in fields], options)
    _check_buckets(fields, partition_keys, primary_keys, options)


def check_names(fields: Sequence[DataField]) -> None:
    """Names of columns and of ROW members are there and unique; those of columns are not taken by the engine."""
    if not fields:
        raise InvalidSchema("a table needs at least one column", hint="declare its columns")
    for field in fields:
        check_column_name(field.name)
    _check_unique(fields, "the table")
    for field in fields:
        for row in _rows(field.type):
            if not row.fields:
                raise InvalidSchema(f"column `{field.name}` has a ROW without members", hint="give the ROW a member")
            if any(not member.name.strip() for member in row.fields):
                raise InvalidSchema(
                    f"a ROW in column `{field.name}` has a member without name", hint="name every member"
                )
            _check_unique(row.fields, f"a ROW in column `{field.name}`")


def check_column_name(name: str) -> None:
    """A name that a table column may have."""
    if not name.strip():
        raise InvalidSchema("a column has no name", hint="name every column")
    if is_reserved(name):
        raise InvalidSchema(
            f"column name `{name}` is reserved",
            hint=f"choose another; `{KEY_PREFIX}...` and {', '.join(sorted(SYSTEM_NAMES))} belong to the engine",
        )


def check_default(column: DataField) -> None:
    """A column's DEFAULT text has to spell a value of its type."""
    try:
        default_scalar(column)
    except InvalidData as error:
        raise InvalidSchema(
            f"DEFAULT {column.default_value!r} of column `{column.name}` is no {column.type}",
            hint="give a default that the type holds",
        ) from error


def keys_from_options(
    partition_keys: Iterable[str], primary_keys: Iterable[str], options: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]:
    """Partition keys, primary keys and options, with keys given as options moved to where they belong."""
    remaining = dict(options)
    for key, value in remaining.items():
        check_option_text(key, value)
    partition = _merged_keys(tuple(partition_keys), co.PARTITION, remaining)
    primary = _merged_keys(tuple(primary_keys), co.PRIMARY_KEY, remaining)
    return partition, primary, remaining


def with_key_nullability(
    fields: Iterable[DataField], primary_keys: Sequence[str], options: Mapping[str, str]
) -> tuple[DataField, ...]:
    """The columns with primary-key columns NOT NULL, unless an option says that keys may be null."""
    if co.is_true(options, co.PRIMARY_KEY_NULLABLE):
        return tuple(fields)
    return tuple(
        _retyped(field, with_nullable(field.type, False)) if field.name in primary_keys else field for field in fields
    )


def check_option_text(key: object, value: object) -> None:
    """Options are texts on disk; a number or boolean given instead is a slip that other readers would stumble over."""
    if not isinstance(key, str) or not isinstance(value, str):
        raise InvalidOption(f"option `{key}` is {value!r}", hint=f'give it as text: "{value}"')


def bucket_count(options: Mapping[str, str]) -> int:
    """The number behind the bucket option: positive, -1 (dynamic or unaware) or -2 (postpone)."""
    text = options.get(co.BUCKET, "-1")
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < -2 or count == 0:
        raise InvalidOption(
            f"option `{co.BUCKET}` is `{text}`",
            hint="use a positive number, -1 for dynamic or unaware buckets, or -2 for postponed buckets",
        )
    return count


def _retyped(field: DataField, data_type: DataType) -> DataField:
    return DataField(field.id, field.name, data_type, field.description, default_value=field.default_value)


def _merged_keys(keys: tuple[str, ...], option: str, options: dict[str, str]) -> tuple[str, ...]:
    text = options.pop(option, None)
    if text is None:
        return keys
    named = co.split_names(text)
    if keys and named != keys:
        raise InvalidSchema(
            f"option `{option}` names ({', '.join(named)}), the schema declares ({', '.join(keys)})",
            hint=f"drop the option `{option}`, or make both the same",
        )
    return named


def _rows(data_type: DataType) -> Iterator[RowType]:
    match data_type:
        case RowType(fields):
            yield data_type
            for member in fields:
                yield from _rows(member.type)
        case ArrayType(element) | MultisetType(element):
            yield from _rows(element)
        case MapType(key, value):
            yield from _rows(key)
            yield from _rows(value)


def _check_unique(fields: Sequence[DataField], where: str) -> None:
    for name, count in Counter(field.name for field in fields).items():
        if count > 1:
            raise InvalidSchema(f"{where} has {count} columns named `{name}`", hint="rename all but one of them")


def _check_ids(fields: tuple[DataField, ...]) -> None:
    for field_id, count in Counter(field.id for field in walk_fields(fields)).items():
        if count > 1 or not 0 <= field_id < KEY_ID_OFFSET:
            raise InvalidSchema(
                f"field id {field_id} is used {count} times or out of range",
                hint="create the schema from columns and change it through schema changes; both number fields",
            )


def _check_keys(kind: str, keys: Sequence[str], fields: Sequence[DataField]) -> None:
    types = {field.name: field.type for field in fields}
    for name, count in Counter(keys).items():
        if name not in types:
            raise InvalidSchema(f"{kind} key column `{name}` does not exist", hint=did_you_mean(name, types))
        if count > 1:
            raise InvalidSchema(f"{kind} key names column `{name}` {count} times", hint="name it once")
        if is_nested(types[name]):
            raise InvalidSchema(
                f"{kind} key column `{name}` has type {types[name]}",
                hint="keys need a type with an order, not a nested one",
            )


def _check_mentions(names: Sequence[str], options: Mapping[str, str]) -> None:
    for mention in co.column_mentions(options):
        for name in mention.columns:
            if name not in names:
                raise InvalidOption(
                    f"option `{mention.key}` names column `{name}`, which does not exist",
                    hint=did_you_mean(name, names),
                )


def _check_buckets(
    fields: Sequence[DataField], partition_keys: Sequence[str], primary_keys: Sequence[str], options: Mapping[str, str]
) -> None:
    count = bucket_count(options)
    keys = co.split_names(options.get(co.BUCKET_KEY, ""))
    if count == -2 and not primary_keys:
        raise InvalidOption(
            f"option `{co.BUCKET}` is -2 on a table without primary key", hint="use -1, or declare a primary key"
        )
    if count == -1 and keys:
        raise InvalidOption(
            f"option `{co.BUCKET_KEY}` needs a fixed number of buckets, but `{co.BUCKET}` is -1",
            hint=f"set `{co.BUCKET}` to a positive number, or drop `{co.BUCKET_KEY}`",
        )
    if count > 0 and not primary_keys and not keys:
        raise InvalidOption(
            f"option `{co.BUCKET}` is {count} on a table without primary key and without `{co.BUCKET_KEY}`",
            hint=f"set `{co.BUCKET_KEY}`, or `{co.BUCKET}` to -1",
        )
    _check_keys("bucket", keys, fields)
    for name in keys:
        if name in partition_keys:
            raise InvalidOption(
                f"option `{co.BUCKET_KEY}` names partition column `{name}`",
                hint="leave it out: all rows of a partition share its value",
            )
        if primary_keys and name not in primary_keys:
            raise InvalidOption(
                f"option `{co.BUCKET_KEY}` names `{name}`, which is not part of the primary key",
                hint="rows of one key must share a bucket: use columns of the primary key",
            )
