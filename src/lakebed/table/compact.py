"""Compacts a table when it is asked to: what waits is placed, files are merged or sorted, and what is due is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lakebed.commit.replay import CommitIdentity
from lakebed.definition.arguments import names_argument
from lakebed.definition.elsewhere import place_of_work
from lakebed.maintenance.tidy_up import tidy_up
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import COMMIT_USER_PREFIX
from lakebed.read.plan import FileSieve, partition_filter
from lakebed.rewrite import background
from lakebed.rewrite.bucket import Compactor
from lakebed.rewrite.small_files import AppendCompactor
from lakebed.rewrite.sorting import sort_compact
from lakebed.table.opened import Holder, opened_of
from lakebed.write.waiting_rows import WaitingRows


def compact_table(
    table: Holder,
    full: bool,
    where: Any,
    order_by: Sequence[str],
    order_strategy: str,
    progress: Callable[[int, int], None] | None,
    on_spark: bool | None,
) -> Snapshot | None:
    """Merges files; None when there was nothing to do. Arguments are those of `Table.compact`."""
    opened = opened_of(table)
    background.wait_for(opened.context.paths.root)
    context = opened.folded()
    predicate = partition_filter(context, where)
    sieve = FileSieve(context, predicate)
    user = (context.options[COMMIT_USER_PREFIX] or "") + context.ids.new_id()
    run_pieces = place_of_work(context, on_spark)
    if order_by:
        columns = names_argument(order_by, "order_by")
        snapshot = sort_compact(context, order_strategy, columns, predicate, CommitIdentity(user), run_pieces)
    else:
        placed = WaitingRows(context, sieve.keep_partitions, run_pieces).place(CommitIdentity(user))
        compactor = (
            Compactor(context, full, sieve.keep_entries, run_pieces, tell=progress)
            if context.has_key
            else AppendCompactor(context, full, sieve.keep_entries, run_pieces, tell=progress)
        )
        snapshot = compactor.run(CommitIdentity(user)) or placed
    if snapshot is not None:
        tidy_up(context)
    return snapshot


__all__ = ["compact_table"]
