"""Compacts a table when it is asked to: what waits is placed, files are merged or sorted, and what is due is done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from lakebed.commit.replay import CommitIdentity
from lakebed.definition.arguments import names_argument
from lakebed.definition.elsewhere import place_of_work
from lakebed.errors import InvalidArgument
from lakebed.maintenance.partitions import unexpired
from lakebed.maintenance.tidy_up import tidy_up
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import BUCKET, COMMIT_USER_PREFIX
from lakebed.read.plan import FileSieve, partition_filter
from lakebed.rewrite import background
from lakebed.rewrite.bucket import Compactor
from lakebed.rewrite.clustering import keyless_compactor
from lakebed.rewrite.sorting import sort_compact
from lakebed.table.opened import Holder, opened_of
from lakebed.write.waiting_rows import WaitingRows


def compact_table(
    table: Holder,
    full: bool,
    where: Any,
    buckets: Collection[int] | None,
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
    lasting = unexpired(context)
    user = (context.options[COMMIT_USER_PREFIX] or "") + context.ids.new_id()
    run_pieces = place_of_work(context, on_spark)

    def keep(entries: list[ManifestEntry]) -> list[ManifestEntry]:
        kept = sieve.keep_entries(entries if lasting is None else lasting(entries))
        return kept if buckets is None else [entry for entry in kept if entry.bucket in buckets]

    if buckets is not None and (order_by or (not context.has_key and context.options[BUCKET] < 1)):
        raise InvalidArgument(
            f"table `{context.name}`: buckets are chosen only where files are merged bucket by bucket",
            hint="leave `buckets` out",
        )
    if order_by:
        columns = names_argument(order_by, "order_by")
        snapshot = sort_compact(context, order_strategy, columns, predicate, CommitIdentity(user), run_pieces)
    else:
        placed = WaitingRows(context, sieve.keep_partitions, run_pieces).place(CommitIdentity(user))
        compactor = (
            Compactor(context, full, keep, run_pieces, tell=progress)
            if context.has_key
            else keyless_compactor(context, full, keep, run_pieces, tell=progress)
        )
        snapshot = compactor.run(CommitIdentity(user)) or placed
    if snapshot is not None:
        tidy_up(context)
    return snapshot


__all__ = ["compact_table"]
