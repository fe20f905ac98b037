"""Which tables may mark rows as deleted, and which may give their rows ids."""

from __future__ import annotations

from lakebed.errors import InvalidOption
from lakebed.merge.first_row import FirstRow
from lakebed.options import (
    BUCKET,
    CHANGELOG_PRODUCER,
    DATA_EVOLUTION_ENABLED,
    DELETION_VECTORS_BITMAP64,
    DELETION_VECTORS_ENABLED,
    DELETION_VECTORS_MERGE_ON_READ,
    MERGE_ENGINE,
    ROW_TRACKING_ENABLED,
    Options,
)
from lakebed.schema.table_schema import TableSchema
from lakebed.table.producers import FULL_COMPACTION, producer


def check_row_options(schema: TableSchema, options: Options, table: str) -> None:
    """Raises if deletion vectors or row ids do not go with the rest of the table."""
    if options[DELETION_VECTORS_ENABLED]:
        _check_vectors(schema, options, table)
    else:
        for option in (DELETION_VECTORS_MERGE_ON_READ, DELETION_VECTORS_BITMAP64):
            if options[option]:
                raise InvalidOption(
                    f"table `{table}`: `{option.key}` has no effect without `{DELETION_VECTORS_ENABLED.key}`",
                    hint=f"set `{DELETION_VECTORS_ENABLED.key}` to true as well, or leave it out",
                )
    if options[DATA_EVOLUTION_ENABLED]:
        _check_evolution(options, table)
    if options[ROW_TRACKING_ENABLED] and (schema.primary_keys or options[BUCKET] != -1):
        raise InvalidOption(
            f"table `{table}`: `{ROW_TRACKING_ENABLED.key}` is for tables without primary key and without buckets",
            hint="leave it out: the primary key tells rows apart"
            if schema.primary_keys
            else f"leave `{BUCKET.key}` out",
        )


def _check_evolution(options: Options, table: str) -> None:
    if not options[ROW_TRACKING_ENABLED]:
        raise InvalidOption(
            f"table `{table}`: `{DATA_EVOLUTION_ENABLED.key}` needs rows with ids",
            hint=f"set `{ROW_TRACKING_ENABLED.key}` to true as well",
        )


def _check_vectors(schema: TableSchema, options: Options, table: str) -> None:
    if not schema.primary_keys:
        return
    if options[MERGE_ENGINE] == FirstRow.name:
        raise InvalidOption(
            f"table `{table}`: merge engine `{FirstRow.name}` never replaces a row, so there are none to mark",
            hint=f"leave `{DELETION_VECTORS_ENABLED.key}` out: reads of such tables need no merge anyway",
        )
    if producer(options) == FULL_COMPACTION:
        raise InvalidOption(
            f"table `{table}`: `{DELETION_VECTORS_ENABLED.key}` does not go with `{CHANGELOG_PRODUCER.key}` = "
            f"`{FULL_COMPACTION}`",
            hint="use `lookup`, which tells of changes as soon as rows are marked",
        )


__all__ = ["check_row_options"]
