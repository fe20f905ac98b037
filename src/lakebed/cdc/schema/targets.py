"""Makes tables of the lake for tables of a source, and says why one can not be made."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakebed.catalog.names import check_name
from lakebed.cdc.envelope import SourceTable
from lakebed.cdc.routing import Target, matches, values_for
from lakebed.cdc.rows.keeping import CHANGES, HISTORY, STATE
from lakebed.cdc.rows.past_columns import CHANGED_ON, ROW_VERSION
from lakebed.cdc.rules import SyncRules
from lakebed.cdc.schema.links import ColumnLink, LastShape, TableLinks, link_key, shape_text
from lakebed.cdc.schema.types import evolved
from lakebed.errors import AlreadyExists, InvalidArgument, InvalidSchema, LakebedError
from lakebed.options import (
    BUCKET,
    BUCKET_KEY,
    CHANGELOG_PRODUCER,
    LAKEBED_CDC_COLUMNS,
    LAKEBED_CDC_KEEPS,
    MERGE_ENGINE,
    Options,
)
from lakebed.options.later import Later
from lakebed.options.table import find_option
from lakebed.schema.changes import SetOption
from lakebed.schema.later import handle_verdicts
from lakebed.types.logical import STRING, DataField, DataType, renumbered, with_nullable

if TYPE_CHECKING:
    from lakebed.lake import Lake
    from lakebed.table.table import Table

_log = logging.getLogger(__name__)

_HISTORY_BUCKETS = "4"
"""Versions of a key lie in one bucket, so histories have a fixed number of them; this many if nobody says."""
_NEEDS_KEY = ("bucket", "changelog-producer", "merge-engine", "sequence.", "fields.", "partial-update.", "lookup")
_NEEDS_KEY_TOO = ("cdc.", "deletion-vectors", "dynamic-bucket", "ignore-delete", "postpone.", "aggregation.")
"""How options begin that a table without a key has no use for."""


def target_table(lake: Lake, target: Target, sources: Sequence[SourceTable], rules: SyncRules, user: str) -> Table:
    """The table of the lake that sources go to; made if it is not there."""
    name = quoted(target)
    try:
        check_name(target.table, "table")
    except InvalidArgument as error:
        raise InvalidSchema(
            f"{sources[0].name} can not have its name in the lake: {error.message}",
            hint="give it another one with a mapping, or leave it out with `excluding`",
        ) from error
    if not lake.has_table(name):
        lake.create_database(target.database, if_not_exists=True)
        try:
            return _create(lake, target, name, sources, rules, user)
        except AlreadyExists:
            _log.info("table %s was made by somebody else meanwhile", target)
    table = lake.table(name)
    _check_form(table, target, sources, rules)
    if not table.primary_key and target.form != CHANGES:
        raise InvalidSchema(
            f"table `{target}` has no primary key, so changes can not be applied to it",
            hint="create it with a primary key, or let the sync create it under another name",
        )
    _check_same_sync(table, sources, user)
    _set_options(table, target, sources, rules)
    return table


def quoted(target: Target) -> str:
    """The name of a table as statements have it."""
    return f"`{target.database}`.`{target.table}`"


def check_beginning(lake: Lake, target: Target, sources: Sequence[SourceTable], rules: SyncRules) -> None:
    """Refuses a history that would begin behind the first copy: rows that do not change would never be in it."""
    if target.form != HISTORY or lake.has_table(quoted(target)):
        return
    state = rules.routing.target(sources[0].name)
    if state is not None and lake.has_table(quoted(state)) and lake.table(quoted(state)).latest_snapshot() is not None:
        raise InvalidArgument(
            f"table `{target}` can not begin now: `{state}` has been followed without a history so far",
            hint=f"let on_error be `park`, and have the source copied anew: lakebed cdc resync {state}; or start again "
            "with a new checkpoint, and without the tables of the lake",
        )


def _check_form(table: Table, target: Target, sources: Sequence[SourceTable], rules: SyncRules) -> None:
    """Refuses a table that holds something else of its source than it is to hold."""
    keeps = table.schema.options.get(LAKEBED_CDC_KEEPS.key)
    mine = rules.keeping.mark(target.form)
    is_beside = keeps in (CHANGES, HISTORY)
    if (target.form == STATE and is_beside) or (target.form != STATE and keeps != mine):
        what = {CHANGES: "the changes of a table", HISTORY: "the history of a table"}
        raise InvalidArgument(
            f"table `{target}` is to hold {what.get(target.form, 'the newest rows')}, and holds "
            f"{what.get(keeps or '', 'something else')}",
            hint="drop or rename it, or give the table of the source another name with a mapping",
        )
    if target.form == STATE and keeps is not None and keeps != mine:
        column = keeps.partition(":")[2]
        raise InvalidArgument(
            f"table `{target}` has deleted rows, which its column `{column}` tells from the others",
            hint=f"go on with deletes set to mark and deleted_column to {column}; or delete these rows, and reset the "
            f"option `{LAKEBED_CDC_KEEPS.key}` of the table",
        )
    _check_marks(target, Options({**table.schema.options, **_conf(target, sources, rules)}), rules)


def _check_marks(target: Target, options: Options, rules: SyncRules) -> None:
    """Refuses options under which a row that is written again would not take the place of the one before."""
    if rules.keeping.mark(target.form) is None or target.form == CHANGES:
        return
    if options[MERGE_ENGINE] != "deduplicate" or options[CHANGELOG_PRODUCER] == "input":
        option = MERGE_ENGINE if options[MERGE_ENGINE] != "deduplicate" else CHANGELOG_PRODUCER
        raise InvalidArgument(
            f"table `{target}` keeps the past of its rows, which does not go with `{option.key}` = `{options[option]}`",
            hint="leave the merge engine as it is; for a changelog set `changelog-producer` to `lookup`",
        )


def _check_same_sync(table: Table, sources: Sequence[SourceTable], user: str) -> None:
    """Refuses to copy a source into a table that another sync of it has filled: what is deleted there would stay."""
    links = TableLinks.from_text(table.schema.options.get(LAKEBED_CDC_COLUMNS.key), user)
    if links.former_user in ("", user) or table.latest_snapshot() is None:
        return
    known = next((source.name for source in sources if links.of(source.name)), None)
    if known is not None:
        raise InvalidArgument(
            f"table `{table.name}` holds rows of {known} that a sync with another checkpoint has written",
            hint="go on with that checkpoint; or drop the table to have it copied anew; or, to keep its rows whatever "
            f"became of them in the source, reset the table's option `{LAKEBED_CDC_COLUMNS.key}`",
        )


def _create(
    lake: Lake, target: Target, name: str, sources: Sequence[SourceTable], rules: SyncRules, user: str
) -> Table:
    columns, comments = _merged_columns(target, sources, rules)
    of_source = key_of(target, sources, columns, rules)
    key = _own_key(target, of_source, rules)
    partition = _partition(target, of_source, columns, rules)
    ids = iter(range(1 << 30))
    fields = []
    for column, data_type in columns.items():
        field_id = next(ids)
        is_added = column in rules.added_names
        nullable = data_type.nullable and column not in key
        if target.form == CHANGES and not is_added:
            nullable = True  # what a row was before may not be known
        typed = renumbered(with_nullable(data_type, nullable), lambda: next(ids))
        fields.append(DataField(field_id, column, typed, comments.get(column)))
    options = _conf(target, sources, rules)
    _own_options(target, of_source, options, rules)
    links = TableLinks(user)
    by_name = {field.name: field.id for field in fields}
    for source in sources:
        found = {
            link_key(each): ColumnLink(by_name[rules.name(each.name)], each.default)
            for each in source.description.columns
        }
        links = links.with_links(source.name, found)
        links = links.with_shape(source.name, LastShape(0, shape_text(source.description)))
    comment = next((source.description.comment for source in sources if source.description.comment), None)
    return lake.create_table(
        name,
        tuple(fields),
        primary_key=key,
        partition_by=partition,
        options={**options, LAKEBED_CDC_COLUMNS.key: links.to_text()},
        comment=comment,
    )


def _own_key(target: Target, key: tuple[str, ...], rules: SyncRules) -> tuple[str, ...]:
    if target.form == HISTORY:
        return (*key, *(column.name for column in rules.keeping.columns(HISTORY) if column.kind == ROW_VERSION))
    return key if target.form == STATE else ()


def _partition(target: Target, key: tuple[str, ...], columns: dict[str, DataType], rules: SyncRules) -> tuple[str, ...]:
    """Of changes the day, if that was asked for; of versions only what all of a row have in common."""
    if target.form == CHANGES:
        return tuple(column.name for column in rules.keeping.columns(CHANGES) if column.kind == CHANGED_ON)
    known = tuple(column for column in rules.partition_keys if _is_known(column, columns, rules, "partition"))
    return known if target.form == STATE or set(known) <= set(key) else ()


def _conf(target: Target, sources: Sequence[SourceTable], rules: SyncRules) -> dict[str, str]:
    """Options of a table: of one with the newest rows by the names of its sources, of others by their own."""
    if target.form == STATE:
        return {key: value for source in sources for key, value in values_for(source.name, rules.table_conf).items()}
    names = [target.table, str(target)]
    found = {
        key: value for each in rules.table_conf if matches(each.pattern, names) for key, value in each.values.items()
    }
    if target.form == CHANGES:
        found = {key: value for key, value in found.items() if not key.startswith((*_NEEDS_KEY, *_NEEDS_KEY_TOO))}
    return found


def _own_options(target: Target, key: tuple[str, ...], options: dict[str, str], rules: SyncRules) -> None:
    keeps = rules.keeping.mark(target.form)
    if keeps is not None:
        options[LAKEBED_CDC_KEEPS.key] = keeps
    if target.form == HISTORY:
        options.setdefault(BUCKET.key, _HISTORY_BUCKETS)
        options[BUCKET_KEY.key] = ",".join(key)
        if not Options(options)[BUCKET] > 0:
            raise InvalidArgument(
                f"table `{target}` can not have `{BUCKET.key}` = `{options[BUCKET.key]}`: all versions of a row lie in "
                "one bucket",
                hint=f"give `{BUCKET.key}` a number from 1 for this table in table_conf, or leave it out",
            )
    _check_marks(target, Options(options), rules)


def _merged_columns(
    target: Target, sources: Sequence[SourceTable], rules: SyncRules
) -> tuple[dict[str, DataType], dict[str, str]]:
    """Columns that hold the rows of all sources, with those that the sync adds, and their comments."""
    columns: dict[str, DataType] = {}
    comments: dict[str, str] = {}
    for source in sources:
        for column in rules.mapped(source.description).columns:
            name = rules.name(column.name)
            known = columns.get(name)
            merged = column.type if known is None else evolved(known, column.type, rules.policies.types)
            if merged is None:
                raise InvalidSchema(
                    f"column `{name}` is {known} in one source of table `{target}` and {column.type} in {source.name}",
                    hint="send one of them elsewhere with a mapping, or leave it out with `excluding`",
                )
            columns[name] = merged
            if column.comment:
                comments.setdefault(name, column.comment)
    for name in rules.added_names:
        if name in columns:
            raise InvalidSchema(
                f"table `{target}`: the source has a column `{name}`, and the sync is to add one of that name",
                hint="give the computed or metadata column another name",
            )
    return columns | added_types(target, sources, rules), comments


def added_types(target: Target, sources: Sequence[SourceTable], rules: SyncRules) -> dict[str, DataType]:
    """Types of computed and metadata columns."""
    added: dict[str, DataType] = {}
    for computed in rules.computed:
        lower = rules.routing.lowers
        found = next((s for s in sources if not computed.is_missing_in(s.description, lower_case=lower)), None)
        if found is None and rules.is_for_one_table:
            raise InvalidArgument(
                f"computed column `{computed.name}` needs column `{computed.column}`, which {sources[0].name} has not",
                hint=f"its columns are {', '.join(sources[0].description.names)}",
            )
        description = (found or sources[0]).description
        added[computed.name] = with_nullable(computed.type_in(description, lower_case=lower) or STRING, True)
    return added | {column.name: column.type for column in rules.metadata}


def key_of(
    target: Target, sources: Sequence[SourceTable], columns: dict[str, DataType], rules: SyncRules
) -> tuple[str, ...]:
    """The primary key: the one that was asked for, else that of the source."""
    asked = tuple(name for name in rules.primary_keys if _is_known(name, columns, rules, "primary key"))
    if asked and len(asked) == len(rules.primary_keys):
        return asked
    keys = {tuple(rules.name(name) for name in source.description.primary_key) for source in sources}
    key = keys.pop() if len(keys) == 1 and rules.takes_source_keys else ()
    if not key:
        names = ", ".join(str(source.name) for source in sources)
        why = "have different primary keys" if keys else "has no primary key"
        raise InvalidSchema(
            f"{names} {why}, so table `{target}` would have none",
            hint="give the table a primary key in the source, or name one with primary_keys",
        )
    return key


def _is_known(name: str, columns: dict[str, DataType], rules: SyncRules, what: str) -> bool:
    if name in columns:
        return True
    if rules.is_for_one_table:
        raise InvalidArgument(
            f"{what} column `{name}` is neither in the source nor computed", hint=f"there are {', '.join(columns)}"
        )
    _log.warning("%s column %s is not in the source, and is ignored for this table", what, name)
    return False


def _set_options(table: Table, target: Target, sources: Sequence[SourceTable], rules: SyncRules) -> None:
    """Options for an existing table, as far as they may still change."""
    wanted = _conf(target, sources, rules)
    keeps = rules.keeping.mark(target.form)
    if keeps is not None:
        wanted[LAKEBED_CDC_KEEPS.key] = keeps
    changes = []
    for key, value in wanted.items():
        is_bucket = find_option(key) is BUCKET
        is_fixed = is_bucket or any(
            verdict.later in (Later.EMPTY, Later.NEVER) for verdict in handle_verdicts(table.schema, {key: value})
        )
        if not is_fixed and table.schema.options.get(key) != value:
            changes.append(SetOption(key, value))
    if changes:
        try:
            table.alter(*changes)
        except LakebedError as error:
            raise InvalidArgument(f"table `{table.name}`: {error.message}", hint=error.hint) from error


__all__ = ["added_types", "check_beginning", "key_of", "quoted", "target_table"]
