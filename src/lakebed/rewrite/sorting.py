"""Compaction that sorts: the rows of a table without a primary key, rewritten in an order that helps filters.

Each partition is sorted as a whole (`row_order`). No row changes, so this is a compaction like any other: rows
keep their ids, and others may append meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lakebed.commit.attempt import Attempt
from lakebed.commit.message import CommitMessage
from lakebed.commit.replay import CommitIdentity
from lakebed.definition.context import TableContext
from lakebed.definition.elsewhere import Elsewhere
from lakebed.definition.row_rules import vectors_at
from lakebed.errors import InvalidArgument, NotFound, Unsupported, did_you_mean
from lakebed.fileio.base import FileIO
from lakebed.metadata.entries import live_files
from lakebed.metadata.snapshot import Snapshot
from lakebed.metrics.families import COMPACTION_DURATION
from lakebed.options import BUCKET, CLUSTERING_INCREMENTAL, DATA_EVOLUTION_ENABLED
from lakebed.read.plan import FileSieve
from lakebed.rewrite.small_files import PickedFiles, commit_rewritten, replaced_by, rewriter, stored_bytes, stored_rows
from lakebed.types.logical import is_nested
from lakebed.types.predicate import Predicate
from lakebed.write.pieces import PieceWork
from lakebed.write.row_order import STRATEGIES, RowOrder


def sort_compact(
    context: TableContext,
    strategy: str,
    columns: Sequence[str],
    where: Predicate | None,
    identity: CommitIdentity,
    run_pieces: Elsewhere | None = None,
) -> Snapshot | None:
    """Sorts the partitions that a filter on partition columns chooses (all); None when they have no rows."""
    snapshot = context.stores.snapshots.latest()
    context = context.under_latest_schema()
    _check(context, strategy, columns)
    picked = _partitions(context, snapshot, where)
    if not picked:
        return None
    with COMPACTION_DURATION.timed(context.name), Attempt(context.fileio) as attempt:
        work = PieceWork(context, attempt, run_pieces)
        messages = work.run(
            picked, stored_bytes(picked), partial(sorted_files, strategy=strategy, columns=tuple(columns))
        )
        return commit_rewritten(context, picked, messages, identity, attempt)


def _partitions(context: TableContext, snapshot: Snapshot | None, where: Predicate | None) -> list[PickedFiles]:
    vectors = vectors_at(context, snapshot)
    entries = live_files(context.stores, snapshot, keep_entries=FileSieve(context, where).keep_entries)
    picked = []
    for partition in dict.fromkeys(entry.partition for entry in entries):
        files = tuple(entry.file for entry in entries if entry.partition == partition)
        masked = {file.file_name: vectors[file.file_name] for file in files if file.file_name in vectors}
        picked.append(PickedFiles(partition, entries[0].bucket, entries[0].total_buckets, files, masked))
    return picked


def sorted_files(
    context: TableContext, picked: PickedFiles, fileio: FileIO, *, strategy: str, columns: Sequence[str]
) -> list[CommitMessage]:
    """The rows of picked files of a partition, in files that follow each other in the order."""
    row_count = sum(file.row_count for file in picked.files)
    order = RowOrder.learned(stored_rows(context, picked), row_count, context.options, strategy, columns)
    with rewriter(context, picked, fileio) as writer:
        for batch in order.sorted_rows(stored_rows(context, picked)):
            writer.write(batch)
        return [replaced_by(picked, writer.close())]


def _check(context: TableContext, strategy: str, columns: Sequence[str]) -> None:
    if strategy not in STRATEGIES:
        raise InvalidArgument(f"rows can not be sorted by `{strategy}`", hint=did_you_mean(strategy, STRATEGIES))
    if context.has_key or context.options[BUCKET] > 0:
        has_key = context.has_key
        raise Unsupported(
            f"table `{context.name}` has {'a primary key' if has_key else 'buckets'}: its rows are in an order already",
            hint="compact it without sorting",
        )
    if context.options[DATA_EVOLUTION_ENABLED]:
        raise Unsupported(
            f"table `{context.name}` has `{DATA_EVOLUTION_ENABLED.key}`: its rows lie in the order of their ids",
            hint="compact it without sorting",
        )
    if context.options[CLUSTERING_INCREMENTAL]:
        raise Unsupported(
            f"table `{context.name}` has `{CLUSTERING_INCREMENTAL.key}`: its files are sorted step by step",
            hint="compact it without an order of your own; fully, to sort all of it at once",
        )
    if not columns:
        raise InvalidArgument("sorting needs columns to sort by", hint="name them, for example order_by => 'a,b'")
    names = context.schema.field_names
    for name in columns:
        if name not in names:
            raise NotFound(f"table `{context.name}` has no column `{name}` to sort by", hint=did_you_mean(name, names))
        if name in context.schema.partition_keys:
            raise InvalidArgument(
                f"partition column `{name}` has one value in each partition", hint="sort by other columns"
            )
        if is_nested(context.schema.field(name).type):
            raise InvalidArgument(f"column `{name}` is nested and has no order", hint="sort by other columns")


__all__ = ["STRATEGIES", "sort_compact", "sorted_files"]
