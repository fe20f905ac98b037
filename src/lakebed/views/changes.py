"""What changed in a table between two cuts: from its changelog where that tells all, else by comparing states."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.changes.told import is_told
from lakebed.definition.changelog_rules import INPUT, producer, tells_everything, told_events
from lakebed.definition.context import TableContext
from lakebed.definition.moments import History
from lakebed.definition.row_rules import shows_waiting_rows
from lakebed.definition.views import is_view
from lakebed.errors import NotFound, Unsupported
from lakebed.metadata.entries import delta_entries
from lakebed.metadata.manifest import EntryKind
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import (
    DELETION_VECTORS_MERGE_ON_READ,
    FIELD_DEFAULT_VALUE,
    POSTPONE_MERGE_ON_READ,
    RECORD_LEVEL_EXPIRE_TIME,
    RECORD_LEVEL_TIME_FIELD,
    SCAN_FALLBACK_BRANCH,
    SCAN_PRIMARY_BRANCH,
)
from lakebed.records import dataclass
from lakebed.sql.query.pushdown import cheapest_column
from lakebed.table.opened import opened_of
from lakebed.table.table import Table
from lakebed.types.transfer import to_transfer, transfer_schema
from lakebed.views.store import Place

_DECIDE_WHAT_IS_SHOWN = (
    *(RECORD_LEVEL_EXPIRE_TIME, RECORD_LEVEL_TIME_FIELD, SCAN_FALLBACK_BRANCH, SCAN_PRIMARY_BRANCH),
    *(POSTPONE_MERGE_ON_READ, DELETION_VECTORS_MERGE_ON_READ),
)
"""Beside defaults of columns: the same snapshot shows something else when one of them is set or dropped."""
CHANGE = "__w"
"""The column of changes that says whether a row came (1) or went (-1)."""


class ChangesGone(Exception):
    """Why what changed in a table can not be told any more, or never can."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Steps:
    """How the changes between two snapshots are told: `none`, `changelog`, `appends` or `comparison`."""

    way: str
    before: Snapshot | None
    after: Snapshot | None
    reason: str = ""
    rows: int = 0
    """How many rows the snapshots in between have written down, before any is read."""


def steps_between(table: Table, before: Place, after: Snapshot | None) -> Steps:
    """How to tell the changes of a table since a place; raises ChangesGone if that can not be."""
    context = opened_of(table).current()
    _refuse_untold(context)
    if before.shown_by not in (None, shown_by(context)):
        raise ChangesGone(f"other options decide what `{table.name}` shows than when it was seen last")
    if Place.of(after) == before:
        return Steps("none", after, after)
    old = _state_at(context, before)
    if after is None or after.id < before.id:
        raise ChangesGone(f"`{table.name}` was rolled back to before what was seen of it")
    between = _between(context, before.id, after.id)
    overwritten = between is None or any(each.commit_kind is CommitKind.OVERWRITE for each in between)
    if not context.has_key:
        if between is not None and not overwritten and not _deletes(context, between):
            return Steps("appends", old, after, rows=_written(between))
        why = "rows were deleted or replaced"
        return Steps("comparison", _needed(table, old, before), after, why, _written(between))
    reason = _why_incomplete(context, before, old, after)
    if reason is None and between is not None and not overwritten:
        return Steps("changelog", old, after, rows=sum(each.changelog_record_count or 0 for each in between))
    if reason is None:
        reason = "it was overwritten" if between is not None else "changes have expired"
    return Steps("comparison", _needed(table, old, before), after, reason, _written(between))


def read_changes(table: Table, steps: Steps, names: tuple[str, ...]) -> pa.Table:
    """The changes of some columns, with their weights, as Spark's types."""
    by_name = {each.name: each for each in table.schema.fields}
    schema = transfer_schema([by_name[name] for name in names])
    empty = pa.schema([*schema, pa.field(CHANGE, pa.int64())]).empty_table()
    if steps.way == "none" or steps.after is None:
        return empty
    since = 0 if steps.before is None else steps.before.id
    try:
        if steps.way in ("changelog", "appends"):
            chosen = list(names) or [cheapest_column(table.arrow_schema)]
            rows = table.changes(since, steps.after.id, columns=chosen)
        else:
            rows = table.diff(since, steps.after.id, list(names))
    except (Unsupported, NotFound) as error:
        raise ChangesGone(error.message) from error
    if not rows.num_rows:
        return empty
    kinds = rows.column("rowkind").combine_chunks()
    adds = pc.is_in(kinds.cast(pa.string()), pa.array(["+I", "+U"]))
    weights = pc.if_else(adds, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
    if not names:
        return pa.table({CHANGE: weights})
    given = rows.select(list(names)).combine_chunks()
    batches = [to_transfer(batch, schema) for batch in given.to_batches()]
    found = pa.Table.from_batches(batches, schema=schema)
    return found.append_column(CHANGE, weights)


def shown_by(context: TableContext) -> str:
    """The options of a table that decide which rows and values a snapshot shows; empty for most."""
    own = {option.key for option in _DECIDE_WHAT_IS_SHOWN}
    raw = context.options.raw
    found = [key for key in raw if key in own or FIELD_DEFAULT_VALUE.names_in(key) is not None]
    return ", ".join(f"{key}={raw[key]}" for key in sorted(found))


def _refuse_untold(context: TableContext) -> None:
    """Tables that show something else by themselves, without a commit."""
    if context.options.has(RECORD_LEVEL_EXPIRE_TIME):
        raise ChangesGone(f"rows of `{context.name}` expire by themselves", f"drop `{RECORD_LEVEL_EXPIRE_TIME.key}`")
    for option in (SCAN_FALLBACK_BRANCH, SCAN_PRIMARY_BRANCH):
        if context.options.has(option):
            raise ChangesGone(f"`{context.name}` shows rows of another branch", f"drop `{option.key}`")
    if context.shown_defaults:
        raise ChangesGone(f"`{context.name}` shows defaults in place of nulls", "store the values")
    if shows_waiting_rows(context):
        raise ChangesGone(f"`{context.name}` shows rows that wait for their bucket", "compact the table")


def _state_at(context: TableContext, place: Place) -> Snapshot | None:
    """The snapshot at a place, or what its changelog keeps of it. Raises if it is another one by now."""
    if place.id == 0:
        return None
    found = History(context.stores).changes(place.id)
    if found is None:
        raise ChangesGone(
            f"snapshot {place.id} of `{context.name}`, which was seen last, has expired or was rolled back",
            "keep snapshots longer (`snapshot.time-retained`), or refresh more often",
        )
    if Place.of(found) != place:
        raise ChangesGone(f"`{context.name}` was rolled back to before snapshot {place.id}, which was seen last")
    return found


def _needed(table: Table, old: Snapshot | None, place: Place) -> Snapshot | None:
    """The old snapshot, if its whole state can be read."""
    if place.id and opened_of(table).current().stores.snapshots.find(place.id) is None:
        raise ChangesGone(
            f"snapshot {place.id} of `{table.name}` has expired, and its changelog does not tell everything",
            "set `changelog-producer` = `lookup`, or keep snapshots longer",
        )
    return old


def _between(context: TableContext, since: int, until: int) -> list[Snapshot] | None:
    """The snapshots after one up to another; None if one of them has expired."""
    history = History(context.stores)
    found = [history.changes(number) for number in range(since + 1, until + 1)]
    kept = [each for each in found if each is not None]
    return kept if len(kept) == len(found) else None


def _written(between: list[Snapshot] | None) -> int:
    """Rows that commits brought; those of a compaction were there before."""
    rows = [each for each in between or () if each.commit_kind is not CommitKind.COMPACT]
    return sum(abs(each.delta_record_count) for each in rows)


def _deletes(context: TableContext, between: list[Snapshot]) -> bool:
    """Whether a commit took rows of an append table away: files, or rows in them."""
    masks = {each.index_manifest for each in between}
    if len(masks) > 1 or any(each is not None for each in masks):
        return True
    appends = [each for each in between if each.commit_kind is CommitKind.APPEND]
    return any(entry.kind is EntryKind.DELETE for each in appends for entry in delta_entries(context.stores, each))


def _why_incomplete(context: TableContext, place: Place, old: Snapshot | None, new: Snapshot) -> str | None:
    """Why the changelog does not tell everything between two snapshots; None if it does."""
    if is_view(context):
        return None
    reason = why_untold(context)
    if reason is not None:
        return reason
    if _was_told_otherwise(context, old):
        return "its changelog was made otherwise before"
    if not (place.is_told and is_told(context, new)):
        return "compactions have not told of its last rows yet"
    return None


def why_untold(context: TableContext) -> str | None:
    """Why the changelog of a table with a key does not tell everything; None if it does, or the table has no key."""
    if is_view(context) or not context.has_key:
        return None
    options = context.options
    if not tells_everything(options):
        made_by = producer(options)
        return f"`changelog-producer` = `{made_by}` {'has no old rows' if made_by == INPUT else 'tells nothing'}"
    rules = told_events(options)
    if rules.ignored_columns or rules.skips_deletes:
        return "some changes are left out of its changelog"
    return None


def _was_told_otherwise(context: TableContext, old: Snapshot | None) -> bool:
    """Whether the table's changelog was made by other rules at a snapshot, or at one since."""
    first = 0 if old is None else old.schema_id
    versions = [context.schemas.get(number) for number in range(first, context.schema.id + 1)]
    made = {tuple(sorted(_rules_of(each.options).items())) for each in versions}
    return len(made) > 1


def _rules_of(options: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in options.items() if key.startswith(("changelog-producer", "merge-engine"))}
