"""What a read, a stream or a write of a table needs that is carried out elsewhere: by tasks of a job, or by SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from lakebed.changes.scan_modes import batch_snapshot, plan_batch, shows_a_part
from lakebed.changes.views import ROWKIND_FIELD, shows_changes
from lakebed.commit.replay import CommitIdentity
from lakebed.definition.arguments import filter_argument, identity_arguments, names_argument, options_argument
from lakebed.definition.branch import branch_read_besides
from lakebed.definition.context import TableContext
from lakebed.definition.moments import asked_time_ms, is_travelling
from lakebed.definition.row_rules import shows_waiting_rows
from lakebed.definition.scan_mode import is_incremental
from lakebed.definition.validate import check_fixed_options
from lakebed.definition.views import refuse_view
from lakebed.errors import InvalidArgument, Unsupported
from lakebed.metadata.entries import live_files
from lakebed.metadata.snapshot import BATCH_COMMIT_IDENTIFIER
from lakebed.options import (
    BRANCH,
    COMMIT_USER_PREFIX,
    POSTPONE_MERGE_ON_READ,
    READ_ALLOW_FULLSCAN,
    SCAN_FALLBACK_BRANCH,
    SCAN_MODE,
    SCAN_PRIMARY_BRANCH,
    Option,
    Options,
    check_options,
)
from lakebed.read.other_branch import with_other_branch
from lakebed.read.plan import FileSieve, ScanPlan, plan_scan
from lakebed.read.reader import SplitReader, projected_fields
from lakebed.read.scan_options import in_scanned_partitions
from lakebed.records import dataclass
from lakebed.table.opened import Holder, OpenedTable, opened_of
from lakebed.types.predicate import Predicate

if TYPE_CHECKING:
    from lakebed.changes.read import ChangeRead
    from lakebed.changes.stream import StreamScan

PlannedRead: TypeAlias = "tuple[SplitReader, ScanPlan] | ChangeRead"
"""What a read opens, and how; of a view or options that show changes, their read."""


def plan_read(table: Holder, columns: Sequence[str] | None = None, filter: Any = None) -> PlannedRead:  # noqa: A002
    """A read in parts. Arguments are those of `Table.to_arrow`."""
    opened = opened_of(table)
    with opened.at_a_glance():
        return _plan_read(opened, columns, filter)


def _plan_read(opened: OpenedTable, columns: Sequence[str] | None, filter: Any) -> PlannedRead:  # noqa: A002
    context = opened.readable()
    if not shows_only_changes(context):
        return _plan_state(_State(opened), context, columns, filter)
    from lakebed.changes.range import asked_range  # what tells changes is loaded only where it is needed
    from lakebed.changes.read import change_reading

    reading = change_reading(context, _names(columns), filter)
    if is_incremental(context.options):
        return reading.of_range(asked_range(context, opened.pinned))
    state = _State(opened)
    return reading.of_state(
        state.with_other_branch(context, state.plan(context, reading.table_part), reading.table_part)
    )


def fixed_now(table: Holder) -> OpenedTable:
    """The table opened at the snapshot that a read shows now; as it is where options ask for changes, or for a part."""
    opened = opened_of(table)
    context = opened.readable()
    if opened.pinned is not None or is_incremental(context.options) or shows_a_part(context):
        return opened
    return OpenedTable(context, opened.overrides, batch_snapshot(context), opened.as_of_ms)


def shows_only_changes(context: TableContext) -> bool:
    """Whether reads give changes: the view shows them, or options ask for some."""
    return is_incremental(context.options) or shows_changes(context)


def _plan_state(
    state: _State,
    context: TableContext,
    columns: Sequence[str] | None,
    filter: Any,  # noqa: A002
) -> tuple[SplitReader, ScanPlan]:
    predicate = filter_argument(filter, context.arrow_schema_with_hidden)
    names = _names(columns)
    plan = state.plan(context, predicate)
    _refuse_full_scan(context, plan, predicate)
    meant = context.as_meant_in(plan.snapshot)
    if meant is not context:
        context, plan = meant, state.plan(meant, predicate)
    if shows_waiting_rows(context):
        from lakebed.write.waiting_rows import plan_with_waiting  # what writes is loaded only where it is needed

        _refuse_parts(context, POSTPONE_MERGE_ON_READ)
        narrowed = in_scanned_partitions(context, plan.snapshot, predicate)
        context, plan = plan_with_waiting(context, plan.snapshot, narrowed)
    plan = state.with_other_branch(context, plan, predicate)
    return SplitReader(context, projected_fields(context, names), predicate), plan


@dataclass(frozen=True)
class _State:
    """Which state of a table a read shows."""

    opened: OpenedTable

    def plan(self, context: TableContext, predicate: Predicate | None) -> ScanPlan:
        """What is read of the table itself."""
        pinned = self.opened.pinned
        if pinned is not None:
            return plan_scan(context, pinned, in_scanned_partitions(context, pinned, predicate))
        return plan_batch(context, predicate)

    def with_other_branch(self, context: TableContext, plan: ScanPlan, predicate: Predicate | None) -> ScanPlan:
        """The plan with what the options ask for of another branch."""
        if branch_read_besides(context) is None:
            return plan
        _refuse_parts(context, SCAN_FALLBACK_BRANCH if context.options[SCAN_FALLBACK_BRANCH] else SCAN_PRIMARY_BRANCH)
        as_of_ms = self.opened.as_of_ms
        if as_of_ms is None and is_travelling(context.options) and plan.snapshot is not None:
            asked_ms = asked_time_ms(context.options)
            as_of_ms = plan.snapshot.time_millis if asked_ms is None else asked_ms
        return with_other_branch(context, plan, predicate, as_of_ms)


def _refuse_parts(context: TableContext, option: Option[Any]) -> None:
    """Raises if a read shows a part of a state: what an option adds to it is known of whole states only."""
    if shows_a_part(context):
        raise Unsupported(
            f"table `{context.name}`: `{option.key}` does not go with `{SCAN_MODE.key}` = "
            f"`{context.options.raw.get(SCAN_MODE.key)}`, which shows a part of the table",
            hint="open the table without one of the options",
        )


def _refuse_full_scan(context: TableContext, plan: ScanPlan, predicate: Predicate | None) -> None:
    """Where reads of a whole partitioned table are forbidden, the filter has to leave a partition out."""
    if context.options[READ_ALLOW_FULLSCAN] or not context.schema.partition_keys:
        return
    entries = live_files(context.stores, plan.snapshot)
    kept = FileSieve(context, predicate).keep_partitions(entries)
    if entries and {entry.partition for entry in entries} == {entry.partition for entry in kept}:
        raise InvalidArgument(
            f"this reads all partitions of table `{context.name}`, and `{READ_ALLOW_FULLSCAN.key}` is false",
            hint=f"filter by ({', '.join(context.schema.partition_keys)})",
        )


def plan_stream(
    table: Holder,
    columns: Sequence[str] | None = None,
    filter: Any = None,  # noqa: A002
    options: Mapping[str, object] | None = None,
    *,
    schema_id: int | None = None,
) -> StreamScan:
    """A stream in parts, under an earlier version of the schema if asked. Arguments are those of `Table.follow`."""
    from lakebed.changes.stream import StreamScan

    opened = opened_of(table)
    if opened.pinned is not None and not is_travelling(opened.current().options):
        raise InvalidArgument(
            f"table `{opened.name}` is opened at snapshot {opened.pinned.id}, which does not change",
            hint="open the table without at(...) to follow it",
        )
    given = dict(options_argument(options))
    unpinned = OpenedTable(opened.context, opened.overrides)
    if BRANCH.key in given:
        unpinned = unpinned.on_branch(str(given.pop(BRANCH.key)))
    context = unpinned.readable()
    if schema_id is not None:
        context = unpinned.under(context.schemas.get(schema_id))
    if given:
        checked = check_options(given, for_create=False, columns=context.schema.field_names)
        context = context.with_schema(context.schema, Options({**context.options.raw, **checked}))
        check_fixed_options(context.schema, context.options, context.name)
    predicate = filter_argument(filter, pa.schema([ROWKIND_FIELD, *context.schema.arrow_schema]))
    return StreamScan(context, _names(columns), predicate)


def _names(columns: Sequence[str] | None) -> Sequence[str] | None:
    return None if columns is None else names_argument(columns, "columns")


def plan_write(
    table: Holder, commit_user: str | None = None, commit_identifier: int | None = None
) -> tuple[TableContext, CommitIdentity]:
    """What a write needs that makes its files elsewhere. Arguments are those of `Table.writer`."""
    from lakebed.write.placement.postponed import for_stream

    refuse_view(opened_of(table).current())
    context = opened_of(table).folded()
    identity_arguments(commit_user, commit_identifier)
    if commit_identifier is None:
        return context, new_identity(context, commit_user)
    return for_stream(context), CommitIdentity(commit_user or new_identity(context).user, commit_identifier)


def new_identity(context: TableContext, user: str | None = None) -> CommitIdentity:
    """Of a commit that nobody repeats: of this user, or one who makes no other."""
    user = user or (context.options[COMMIT_USER_PREFIX] or "") + context.ids.new_id()
    return CommitIdentity(user, BATCH_COMMIT_IDENTIFIER)


__all__ = ["PlannedRead", "fixed_now", "new_identity", "plan_read", "plan_stream", "plan_write", "shows_only_changes"]
