"""What may not be done with a materialized table: its rows and columns are those of its query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakebed.definition.changelog_rules import INPUT, producer
from lakebed.definition.context import TableContext
from lakebed.errors import InvalidArgument, InvalidOption
from lakebed.merge.deduplicate import Deduplicate
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.options import (
    BUCKET,
    CHANGELOG_PRODUCER,
    CHANGELOG_PRODUCER_IGNORE_DELETE,
    CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS,
    FIELD_DEFAULT_VALUE,
    IGNORE_DELETE,
    IGNORE_UPDATE_BEFORE,
    LAKEBED_VIEW_QUERY,
    MERGE_ENGINE,
    PARTITION_EXPIRATION_TIME,
    PRIMARY_KEY_NULLABLE,
    RECORD_LEVEL_EXPIRE_TIME,
    ROWKIND_FIELD,
    SCAN_FALLBACK_BRANCH,
    SCAN_PRIMARY_BRANCH,
    SEQUENCE_FIELD,
    SEQUENCE_SNAPSHOT_ORDERING,
    VIEW_OPTIONS,
    Option,
    Options,
)
from lakebed.schema.changes import RemoveOption, SchemaChange, SetOption, UpdateComment

_OTHER_MEANING: tuple[Option[object], ...] = (
    *(IGNORE_DELETE, IGNORE_UPDATE_BEFORE, SEQUENCE_FIELD, SEQUENCE_SNAPSHOT_ORDERING, ROWKIND_FIELD),
    *(CHANGELOG_PRODUCER_IGNORE_DELETE, CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS, PRIMARY_KEY_NULLABLE),
    *(RECORD_LEVEL_EXPIRE_TIME, PARTITION_EXPIRATION_TIME, SCAN_FALLBACK_BRANCH, SCAN_PRIMARY_BRANCH),
)
"""Options under which a table does not keep, show or tell all rows as they are written."""


class ViewOptions(dict[str, object]):
    """Options of a table that is made to be a materialized one: nobody else gives it a query."""


def refuse_view_options(options: Mapping[str, object], name: str) -> None:
    """Raises if options would make an ordinary table look like a materialized one."""
    own = next((key for key in options if key in VIEW_OPTIONS), None)
    if own is not None and not isinstance(options, ViewOptions):
        raise InvalidArgument(
            f"table `{name}`: option `{own}` is not set by hand",
            hint="use CREATE MATERIALIZED TABLE ... AS SELECT ...",
        )


def check_view_rules(options: Options, table: str) -> None:
    """Raises if options of a materialized table give the rows that its refresh writes another meaning.

    INVARIANT: what is read is what was written, and the changelog tells all of it. The next refresh adds its changes to
    that, and other materialized tables follow it.
    """
    if options[LAKEBED_VIEW_QUERY] is None:
        return
    wanted = ((MERGE_ENGINE, options[MERGE_ENGINE], Deduplicate.name), (CHANGELOG_PRODUCER, producer(options), INPUT))
    found = next((option.key for option, is_now, must in wanted if is_now != must), None)
    found = found or next((each.key for each in _OTHER_MEANING if options[each] != each.default), None)
    found = found or next(
        (FIELD_DEFAULT_VALUE.key_for(*names) for names in options.fields_with(FIELD_DEFAULT_VALUE)), None
    )
    if found is None and options[BUCKET] == POSTPONE_BUCKET:
        found = BUCKET.key
    if found is not None:
        raise InvalidOption(
            f"materialized table `{table}`: `{found}` = `{options.raw.get(found)}` would keep or tell other rows than "
            "its query gives",
            hint="leave the option out; what it does can be said in the query, or by a table that is filled from it",
        )


def is_view(context: TableContext) -> bool:
    """Whether a table is the result of a query."""
    return context.options[LAKEBED_VIEW_QUERY] is not None


def refuse_view(context: TableContext) -> None:
    """Raises if somebody else than its refresh would write a materialized table."""
    if is_view(context):
        raise InvalidArgument(
            f"`{context.name}` is a materialized table: its rows are those of its query",
            hint=f"change the tables that it reads, then REFRESH MATERIALIZED VIEW {context.name}",
        )


def refuse_view_changes(context: TableContext, changes: Sequence[SchemaChange]) -> None:
    """Raises if changes would give a materialized table other columns, or make a table one."""
    for change in changes:
        if isinstance(change, SetOption | RemoveOption):
            if change.key not in VIEW_OPTIONS:
                continue
            raise InvalidArgument(
                f"table `{context.name}`: option `{change.key}` is not set by hand",
                hint="use CREATE MATERIALIZED TABLE, or ALTER MATERIALIZED TABLE ... AS SELECT ...",
            )
        if is_view(context) and not isinstance(change, UpdateComment):
            raise InvalidArgument(
                f"`{context.name}` is a materialized table: its columns are those of its query",
                hint=f"ALTER MATERIALIZED TABLE {context.name} AS SELECT ... gives it another query",
            )
