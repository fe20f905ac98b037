"""Which indexes the files of a table get: the `file-index.*` options."""

from __future__ import annotations

from lakebed.datafiles.index.bitmap import KIND as BITMAP
from lakebed.datafiles.index.bloom import KIND as BLOOM
from lakebed.datafiles.index.bsi import KIND as BSI
from lakebed.datafiles.index.build import IndexSpec
from lakebed.datafiles.index.range_bitmap import KIND as RANGE_BITMAP
from lakebed.errors import InvalidOption, did_you_mean
from lakebed.options import (
    FILE_INDEX_BITMAP_COLUMNS,
    FILE_INDEX_BLOOM_FILTER_COLUMNS,
    FILE_INDEX_BSI_COLUMNS,
    FILE_INDEX_RANGE_BITMAP_COLUMNS,
    Names,
    Option,
    Options,
)
from lakebed.schema.table_schema import TableSchema

_LISTS: dict[str, Option[Names]] = {
    BLOOM: FILE_INDEX_BLOOM_FILTER_COLUMNS,
    BITMAP: FILE_INDEX_BITMAP_COLUMNS,
    RANGE_BITMAP: FILE_INDEX_RANGE_BITMAP_COLUMNS,
    BSI: FILE_INDEX_BSI_COLUMNS,
}


def index_specs(schema: TableSchema, options: Options) -> tuple[IndexSpec, ...]:
    """The indexes of each new file."""
    specs = []
    for kind, option in _LISTS.items():
        settings = _settings(kind, options[option], options)
        for name in options[option]:
            column, key = _column_and_key(name)
            chosen = settings.get(column, {}) | settings[name]
            specs.append(IndexSpec(schema.field(column), kind, chosen, key))
    return tuple(specs)


def check_index_options(schema: TableSchema, options: Options, table: str) -> None:
    """Raises on the first index that can not be made, naming its option."""
    for option in _LISTS.values():
        for name in options[option]:
            column, _ = _column_and_key(name)
            if column not in schema.field_names:
                raise InvalidOption(
                    f"table `{table}`: `{option.key}` names `{column}`, which is not a column",
                    hint=did_you_mean(column, schema.field_names),
                )
    for spec in index_specs(schema, options):
        try:
            spec.check()
        except InvalidOption as error:
            raise InvalidOption(f"table `{table}`: {error.message}", hint=error.hint) from error


def _column_and_key(name: str) -> tuple[str, str | None]:
    """`m[key]` is one key of a MAP column."""
    column, bracket, key = name.partition("[")
    return (column, key[:-1]) if bracket and name.endswith("]") else (name, None)


def _settings(kind: str, names: Names, options: Options) -> dict[str, dict[str, str]]:
    """`file-index.<kind>.<column>.<setting>`, by column, or by key of a map."""
    prefix = f"file-index.{kind}."
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    found |= {_column_and_key(name)[0]: {} for name in names}
    for key, text in options.raw.items():
        column, dot, setting = key.removeprefix(prefix).rpartition(".")
        if not key.startswith(prefix) or not dot:
            continue
        if column not in found:
            raise InvalidOption(
                f"option `{key}` is about an index that column `{column}` does not have",
                hint=f"name it in `{_LISTS[kind].key}`, or leave the option out",
            )
        found[column][setting] = text
    return found
