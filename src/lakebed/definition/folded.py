"""Whether all rows of a table are folded: then they mean the same under any option that asks for a compaction first."""

from __future__ import annotations

from collections import defaultdict

from lakebed.commit.index_changes import current_entries
from lakebed.definition.context import TableContext, num_levels
from lakebed.errors import CommitConflict
from lakebed.lsm.compaction.full import pick_full
from lakebed.lsm.levels import Levels
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import live_files
from lakebed.metadata.index_manifest import DELETION_VECTORS_INDEX
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import Options
from lakebed.options.later import Later
from lakebed.schema.later import judged


def is_folded(context: TableContext, snapshot: Snapshot | None) -> bool:
    """Whether every key is there once, on the highest level, and no row is marked as deleted or waits."""
    buckets: dict[tuple[bytes, int], list[DataFile]] = defaultdict(list)
    for entry in live_files(context.stores, snapshot):
        if entry.bucket == POSTPONE_BUCKET:
            return False
        buckets[entry.partition, entry.bucket].append(entry.file)
    kinds = {entry.index_type for entry in current_entries(context.stores, snapshot)}
    if DELETION_VECTORS_INDEX in kinds:
        return False
    if not context.has_key:
        return True
    levels = (Levels.of(files, context.key_types, num_levels(context.options)) for files in buckets.values())
    return all(pick_full(found, force_rewrite=False) is None for found in levels)


def check_folded(context: TableContext, snapshot: Snapshot | None) -> None:
    """Raises if a compaction would fold rows that were written under another meaning than the table has now."""
    if snapshot is None or snapshot.schema_id == context.schema.id:
        return
    then = context.schemas.get(snapshot.schema_id)
    meant = context.with_schema(then, Options(then.options))
    for verdict in judged(then, context.schema):
        if verdict.later is Later.COMPACTION and not is_folded(meant, snapshot):
            raise CommitConflict(
                f"table `{context.name}`: rows were written before somebody let {verdict.what} {verdict.step}, and are "
                f"not folded yet: {verdict.reason}",
                hint="compact the table with t.compact(): it folds them as they were meant",
            )


def is_meant_otherwise(context: TableContext, snapshot: Snapshot) -> bool:
    """Whether rows of a snapshot have to be folded, or placed, before they mean the same under the table's options."""
    if snapshot.schema_id == context.schema.id:
        return False
    verdicts = judged(context.schemas.get(snapshot.schema_id), context.schema)
    return any(verdict.later in (Later.COMPACTION, Later.PLACING) for verdict in verdicts)


__all__ = ["check_folded", "is_folded", "is_meant_otherwise"]
