"""Reads that show rows which still wait for their bucket (`postpone.merge-on-read`), as if they had just been placed.

They are placed, in files on this machine that no table ever refers to; from there on it is a read like any other.
"""

from __future__ import annotations

from dataclasses import replace

from lakebed.errors import Unsupported
from lakebed.fileio.scratch import ScratchFileIO
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import EntryKind
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import POSTPONE_MERGE_ON_READ
from lakebed.table.bucket_state import BucketStates
from lakebed.table.context import TableContext
from lakebed.table.postpone_compact import WaitingRows
from lakebed.table.scan import FileSieve, ScanPlan, splits_of
from lakebed.table.shown_defaults import stored_part
from lakebed.table.vectors import vectors_at
from lakebed.types.predicate import Predicate


def shows_waiting_rows(context: TableContext) -> bool:
    """Whether reads of the table include rows that wait."""
    return context.options[POSTPONE_MERGE_ON_READ] and context.bucket_mode.postpones


def plan_with_waiting(
    context: TableContext, snapshot: Snapshot | None, predicate: Predicate | None
) -> tuple[TableContext, ScanPlan]:
    """The plan of such a read, and the context in which its files are found."""
    if context.lowest_visible_level > 0:
        raise Unsupported(
            f"table `{context.name}`: `{POSTPONE_MERGE_ON_READ.key}` does not go with a merge engine or deletion "
            "vectors that show rows after compaction only",
            hint="compact the table, or read it without the option",
        )
    sieve = FileSieve(context, stored_part(predicate, context.schema, context.shown_defaults))
    context = replace(context, fileio=ScratchFileIO.over(context.fileio))
    rows = WaitingRows(context, sieve.keep_partitions)
    messages = rows.write(rows.files(snapshot), BucketStates.load(context.stores, snapshot), context.fileio)
    placed = [entry for message in messages for entry in message.entries(EntryKind.ADD, message.new_files)]
    entries = live_files(context.stores, snapshot, keep_metas=sieve.keep_metas, keep_entries=sieve.keep_entries)
    live = sieve.keep_live([*entries, *sieve.keep_entries(placed)])
    return context, ScanPlan(snapshot, tuple(splits_of(context, live, sieve, vectors_at(context, snapshot))))
