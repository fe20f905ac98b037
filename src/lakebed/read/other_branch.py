"""Reads of two branches as one table: a partition comes from the first branch that has it.

`scan.fallback-branch` names the second branch, `scan.primary-branch` the first; the table itself is the other one. Only
reads of a state look there. Streams and writes do not, and statements that change rows by what they read are refused.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from lakebed.definition.branch import branch_read_besides, context_on_branch
from lakebed.definition.context import TableContext
from lakebed.errors import InvalidOption, InvalidSchema
from lakebed.metadata.entries import live_files
from lakebed.metadata.paths import MAIN_BRANCH
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import SCAN_FALLBACK_BRANCH, SCAN_PRIMARY_BRANCH, Options
from lakebed.read.plan import ScanPlan, plan_scan
from lakebed.read.scan_options import in_named_partitions
from lakebed.types.logical import with_nullable
from lakebed.types.predicate import Predicate


def with_other_branch(
    context: TableContext, plan: ScanPlan, predicate: Predicate | None, as_of_ms: int | None
) -> ScanPlan:
    """The plan with the partitions of the other branch that the options name; the plan itself if they name none.

    The other branch is read as it was at a time; as it is now for None.
    """
    name = branch_read_besides(context)
    if name is None:
        return plan
    other = context_on_branch(context, name)
    _check_same_columns(context, other)
    snapshots = other.stores.snapshots
    snapshot = snapshots.latest() if as_of_ms is None else snapshots.at_or_before_time(as_of_ms)
    found = plan_scan(other, snapshot, in_named_partitions(context, predicate))
    theirs = [replace(split, branch=name) for split in found.splits]
    ours = plan.splits
    if context.options[SCAN_FALLBACK_BRANCH]:
        known = _partitions(context, plan.snapshot)
        theirs = [split for split in theirs if split.partition not in known]
    else:
        known = _partitions(other, snapshot)
        ours = tuple(split for split in ours if split.partition not in known)
    return replace(plan, splits=(*ours, *theirs))


def check_other_branch(options: Options, branches: Collection[str], table: str) -> None:
    """Raises if an option names a branch to read from that does not exist."""
    for option in (SCAN_FALLBACK_BRANCH, SCAN_PRIMARY_BRANCH):
        name = options[option]
        if name is not None and name != MAIN_BRANCH and name not in branches:
            raise InvalidOption(
                f"table `{table}`: `{option.key}` names branch `{name}`, which does not exist",
                hint=f"create the branch first, then set `{option.key}`",
            )


def _partitions(context: TableContext, snapshot: Snapshot | None) -> set[bytes]:
    """The partitions that a branch has, whether or not any of their rows match."""
    return {entry.partition for entry in live_files(context.stores, snapshot)}


def _check_same_columns(context: TableContext, other: TableContext) -> None:
    ours, theirs = (
        {field.name: with_nullable(field.type, True) for field in side.schema.fields} for side in (context, other)
    )
    if ours != theirs or context.schema.partition_keys != other.schema.partition_keys:
        raise InvalidSchema(
            f"`{context.name}` and `{other.name}` have other columns or partitions, so they are not one table",
            hint="alter one of the branches until both have the same columns",
        )


__all__ = ["check_other_branch", "with_other_branch"]
