"""Brings to light what reads do not show yet, for those who replace rows by what they have read.

Some rows are stored and not shown: new files of tables whose compaction decides which rows count (first-row, deletion
vectors), and rows that wait for their bucket. Whoever rewrites a table from what a read shows would lose them. So who
rewrites settles first, reads the settled state, and commits only if nothing was added to it meanwhile.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable

from lakebed.changes.splits import lowest_level_told
from lakebed.commit.committer import CommitIdentity
from lakebed.definition.changelog_rules import FULL_COMPACTION, producer
from lakebed.definition.context import TableContext, num_levels
from lakebed.definition.elsewhere import Elsewhere
from lakebed.errors import CommitConflict
from lakebed.lsm.levels import is_one_run
from lakebed.metadata.entries import Bucket, Keep, live_files
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import COMPACTION_FORCE_UP_LEVEL_0, WRITE_ONLY, Options
from lakebed.rewrite.bucket import Compactor
from lakebed.write.waiting_rows import WaitingRows

_log = logging.getLogger(__name__)
_MOST_ROUNDS = 20


def settled(
    context: TableContext,
    *,
    one_row_per_key: bool = False,
    keep: Keep | None = None,
    run_pieces: Elsewhere | None = None,
) -> Snapshot | None:
    """The latest snapshot, once a read of it shows all rows that are stored; None for a table without any.

    `keep` chooses among live entries, by partition; all by default. With `one_row_per_key` the rows are merged too, so
    that what is stored of a key is its row.
    """
    if not context.has_key:
        return context.stores.snapshots.latest()

    def settle() -> None:
        placed = WaitingRows(context, keep, run_pieces).place(_identity(context))
        if placed is None or not is_settled(context, placed, one_row_per_key=one_row_per_key, keep=keep):
            Compactor(_lifting(context), one_row_per_key, keep, run_pieces).run(_identity(context))

    return latest_once(
        context,
        lambda snapshot: is_settled(context, snapshot, one_row_per_key=one_row_per_key, keep=keep),
        settle,
        CommitConflict(
            f"table `{context.name}`: others kept adding rows that have to be compacted first",
            hint="run the statement again when fewer jobs write to the table; nothing was changed",
        ),
    )


def lift_untold(context: TableContext, identity: CommitIdentity) -> None:
    """Compacts what waits for it to be shown, or told to who follows the table, as a writer does after a commit."""
    if not context.has_key or context.options[WRITE_ONLY]:
        return
    lowest = max(lowest_level_told(context), context.lowest_visible_level)
    live = live_files(context.stores, context.stores.snapshots.latest())
    if any(entry.bucket >= 0 and entry.file.level < lowest for entry in live):
        is_full = producer(context.options) == FULL_COMPACTION
        Compactor(_lifting(context), is_full).run_quietly(identity)


def is_settled(
    context: TableContext, snapshot: Snapshot | None, *, one_row_per_key: bool = False, keep: Keep | None = None
) -> bool:
    """Whether a read of the snapshot shows all rows that are stored; with `one_row_per_key`, unmerged."""
    live = live_files(context.stores, snapshot, keep_entries=keep)
    if any(entry.bucket < 0 or entry.file.level < context.lowest_visible_level for entry in live):
        return False
    if not one_row_per_key:
        return True
    levels: dict[Bucket, set[int]] = defaultdict(set)
    for entry in live:
        levels[entry.partition, entry.bucket].add(entry.file.level)
    return all(is_one_run(found, num_levels(context.options)) for found in levels.values())


def latest_once(
    context: TableContext,
    is_ready: Callable[[Snapshot | None], bool],
    make_ready: Callable[[], None],
    gave_up: CommitConflict,
) -> Snapshot | None:
    """The latest snapshot as soon as it is ready. Others write meanwhile, so it may have to be made ready again."""
    for _ in range(_MOST_ROUNDS):
        snapshot = context.stores.snapshots.latest()
        if is_ready(snapshot):
            return snapshot
        try:
            make_ready()
        except CommitConflict as conflict:
            _log.info("table %s: somebody else was faster: %s", context.name, conflict.message)
    raise gave_up


def _identity(context: TableContext) -> CommitIdentity:
    return CommitIdentity(context.ids.new_id())


def _lifting(context: TableContext) -> TableContext:
    """The same table for a compaction that leaves nothing on level 0."""
    return context.with_schema(
        context.schema, Options({**context.options.raw, COMPACTION_FORCE_UP_LEVEL_0.key: "true"})
    )
