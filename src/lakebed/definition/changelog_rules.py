"""What a table's options say about its changelog: who writes it, and what stands in it."""

from __future__ import annotations

import logging
from functools import cache

from lakebed.errors import InvalidOption, did_you_mean
from lakebed.merge.deduplicate import Deduplicate
from lakebed.merge.events import EventRules
from lakebed.merge.first_row import FirstRow
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.options import (
    BUCKET,
    CHANGELOG_PRODUCER,
    CHANGELOG_PRODUCER_IGNORE_DELETE,
    CHANGELOG_PRODUCER_INPUT_NORMALIZE,
    CHANGELOG_PRODUCER_ROW_DEDUPLICATE,
    CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS,
    DELETION_VECTORS_ENABLED,
    FORCE_LOOKUP,
    FULL_COMPACTION_DELTA_COMMITS,
    IGNORE_DELETE,
    MERGE_ENGINE,
    SEQUENCE_SNAPSHOT_ORDERING,
    STREAMING_READ_APPEND_OVERWRITE,
    STREAMING_READ_OVERWRITE,
    Options,
)
from lakebed.schema.table_schema import TableSchema

_log = logging.getLogger(__name__)

NONE = "none"
INPUT = "input"
LOOKUP = "lookup"
FULL_COMPACTION = "full-compaction"


def producer(options: Options) -> str:
    """Who writes the changelog."""
    return options[CHANGELOG_PRODUCER]


def looks_up(options: Options) -> bool:
    """Whether compactions merge new rows with the old row of their key, wherever it lies.

    Rows above level 0 are complete then: of several levels that hold a key, the lowest counts. First-row tables look up
    too, but only to throw away what is known.
    """
    return options[MERGE_ENGINE] != FirstRow.name and (
        producer(options) == LOOKUP or options[FORCE_LOOKUP] or options[DELETION_VECTORS_ENABLED]
    )


def normalises_input(options: Options) -> bool:
    """Whether the changelog tells what the rows that come in change, instead of the rows themselves."""
    return producer(options) == INPUT and options[CHANGELOG_PRODUCER_INPUT_NORMALIZE]


def event_rules(options: Options) -> EventRules | None:
    """What compactions tell of changes; None if nothing."""
    return told_events(options) if producer(options) in (LOOKUP, FULL_COMPACTION) else None


def tells_everything(options: Options) -> bool:
    """Whether the changelog tells every change of the table, with old values."""
    return producer(options) in (LOOKUP, FULL_COMPACTION) or normalises_input(options)


def told_events(options: Options) -> EventRules:
    """Which events are left out of the changelog, whoever writes it."""
    return EventRules(
        options[CHANGELOG_PRODUCER_ROW_DEDUPLICATE],
        frozenset(options[CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS]),
        options[CHANGELOG_PRODUCER_IGNORE_DELETE],
    )


def full_compaction_every(options: Options) -> int | None:
    """After how many commits a full compaction is due; with its producer after each, if nothing else is said."""
    every = options[FULL_COMPACTION_DELTA_COMMITS]
    return 1 if every is None and producer(options) == FULL_COMPACTION else every


def check_producer(schema: TableSchema, options: Options, table: str) -> None:
    """Raises if the options of the changelog contradict each other or the table."""
    made_by = producer(options)
    if made_by != NONE and not schema.primary_keys:
        raise InvalidOption(
            f"table `{table}` has `{CHANGELOG_PRODUCER.key}` = `{made_by}` but no primary key: rows never change",
            hint="add a primary key, or leave the option out: what is appended is all there is to tell",
        )
    if made_by in (INPUT, FULL_COMPACTION) and options[MERGE_ENGINE] == FirstRow.name:
        raise InvalidOption(
            f"table `{table}`: merge engine `first-row` does not go with `{CHANGELOG_PRODUCER.key}` = `{made_by}`",
            hint=f"use `{LOOKUP}`, which tells of new keys only",
        )
    if made_by == LOOKUP and options.has(FULL_COMPACTION_DELTA_COMMITS):
        raise InvalidOption(
            f"table `{table}`: `{FULL_COMPACTION_DELTA_COMMITS.key}` does not go with `{CHANGELOG_PRODUCER.key}` = "
            f"`{LOOKUP}`, whose compactions follow every commit",
            hint=f"leave it out, or use `{FULL_COMPACTION}`",
        )
    if options[CHANGELOG_PRODUCER_INPUT_NORMALIZE]:
        _check_normalising(options, table)
    for option in (CHANGELOG_PRODUCER_ROW_DEDUPLICATE, CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS):
        if options.has(option) and options[option] and made_by in (NONE, INPUT) and not normalises_input(options):
            raise InvalidOption(
                f"table `{table}`: `{option.key}` has no effect with `{CHANGELOG_PRODUCER.key}` = `{made_by}`",
                hint=f"use `{LOOKUP}` or `{FULL_COMPACTION}`, which compare rows, or leave it out",
            )
    if options[CHANGELOG_PRODUCER_IGNORE_DELETE] and made_by == NONE:
        raise InvalidOption(
            f"table `{table}`: `{CHANGELOG_PRODUCER_IGNORE_DELETE.key}` is about changelog files, which it has none of",
            hint="set `ignore-delete` to keep deletes out of the table, or choose a changelog producer",
        )
    if options[CHANGELOG_PRODUCER_IGNORE_DELETE]:
        _warn_of_untold_deletes(table)
    if options[STREAMING_READ_OVERWRITE] and not schema.primary_keys:
        raise InvalidOption(
            f"table `{table}` has `{STREAMING_READ_OVERWRITE.key}` but no primary key: its rows are not taken back",
            hint=f"set `{STREAMING_READ_APPEND_OVERWRITE.key}` to read the new rows of overwrites",
        )
    if options[STREAMING_READ_OVERWRITE] and made_by in (LOOKUP, FULL_COMPACTION):
        raise InvalidOption(
            f"table `{table}`: with `{CHANGELOG_PRODUCER.key}` = `{made_by}` and `{STREAMING_READ_OVERWRITE.key}` a "
            "stream would read duplicated changes: those of the overwrite, and those of the compaction after it",
            hint="leave one of them out",
        )
    for name in options[CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS]:
        if name not in schema.field_names:
            raise InvalidOption(
                f"table `{table}`: `{CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS.key}` names column `{name}`, "
                "which does not exist",
                hint=did_you_mean(name, schema.field_names),
            )


@cache
def _warn_of_untold_deletes(table: str) -> None:
    """The name promises more than it does, so what it does is said once."""
    _log.warning(
        "table `%s`: `%s` leaves deletes out of the changelog only, the table still loses the rows; `%s` keeps them",
        table,
        CHANGELOG_PRODUCER_IGNORE_DELETE.key,
        IGNORE_DELETE.key,
    )


def _check_normalising(options: Options, table: str) -> None:
    key = CHANGELOG_PRODUCER_INPUT_NORMALIZE.key
    if producer(options) != INPUT:
        raise InvalidOption(
            f"table `{table}`: `{key}` has no effect with `{CHANGELOG_PRODUCER.key}` = `{producer(options)}`",
            hint=f"set `{CHANGELOG_PRODUCER.key}` to `{INPUT}`, or leave it out",
        )
    if options[MERGE_ENGINE] != Deduplicate.name:
        raise InvalidOption(
            f"table `{table}`: `{key}` does not go with merge engine `{options[MERGE_ENGINE]}`, whose rows are not "
            "those that come in: what a row changes is known when it is merged",
            hint=f"set `{CHANGELOG_PRODUCER.key}` to `{LOOKUP}`, which tells of merged rows",
        )
    if options[SEQUENCE_SNAPSHOT_ORDERING]:
        raise InvalidOption(
            f"table `{table}`: `{key}` does not go with `{SEQUENCE_SNAPSHOT_ORDERING.key}`: rows of one commit have no "
            "order among themselves",
            hint=f"set `{CHANGELOG_PRODUCER.key}` to `{LOOKUP}`, which tells of merged rows",
        )
    if options[BUCKET] == POSTPONE_BUCKET:
        raise InvalidOption(
            f"table `{table}`: `{key}` does not go with `{BUCKET.key}` = {POSTPONE_BUCKET}: rows that wait for their "
            "bucket have changed nothing yet",
            hint=f"set `{CHANGELOG_PRODUCER.key}` to `{LOOKUP}`, which tells of rows once they are in their buckets",
        )


__all__ = [
    "check_producer",
    "event_rules",
    "full_compaction_every",
    "looks_up",
    "normalises_input",
    "producer",
    "tells_everything",
    "told_events",
]
