"""What changed between two snapshots, commit by commit: the rows each one added, with their kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lakebed.errors import InvalidArgument, NotFound
from lakebed.metadata.entries import changelog_entries, delta_entries
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.schema import system_columns
from lakebed.table.context import TableContext
from lakebed.table.producers import NONE, producer
from lakebed.table.read import SplitReader
from lakebed.table.shown_defaults import with_defaults
from lakebed.table.splits import BucketFiles, SplitRules, append_splits
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.key_value import VALUE_KIND
from lakebed.types.row_kind import kinds_to_text

ROWKIND = "rowkind"


def read_changes(context: TableContext, since: int, until: int | None) -> pa.Table:
    """Rows added by the snapshots after `since` up to `until` (the latest), in commit order, kind first.

    Compactions change no row and overwrites replace rather than change; both are passed over.
    """
    schema = pa.schema([pa.field(ROWKIND, pa.string(), nullable=False), *to_arrow_schema(context.schema.fields)])
    batches = [batch for snapshot in _between(context, since, until) for batch in _changes_of(context, snapshot)]
    return pa.Table.from_batches(batches, schema=schema)


def _between(context: TableContext, since: int, until: int | None) -> Iterator[Snapshot]:
    snapshots = context.stores.snapshots
    latest, earliest = snapshots.latest_id(), snapshots.earliest_id()
    if isinstance(since, bool) or not isinstance(since, int) or since < 0:
        raise InvalidArgument(f"since={since!r} is no snapshot id", hint="pass 0 for all changes, or a snapshot id")
    if until is not None and (isinstance(until, bool) or not isinstance(until, int) or until < since):
        raise InvalidArgument(
            f"until={until!r} is no snapshot id at or after since={since}",
            hint="leave it out for all changes there are",
        )
    if latest is None or earliest is None:
        return
    end = latest if until is None else until
    if since > latest or end > latest:
        raise NotFound(
            f"table `{context.name}` has no snapshot {max(since, end)} yet: its latest is {latest}",
            hint=f"choose a range that ends at {latest}, or leave `until` out",
        )
    if since < end and since + 1 < earliest:
        raise NotFound(
            f"table `{context.name}`: changes after snapshot {since} have expired; the earliest snapshot is {earliest}",
            hint=f"read the whole table at snapshot {earliest}, then go on with changes(since={earliest})",
        )
    for snapshot_id in range(since + 1, end + 1):
        yield snapshots.get(snapshot_id)


def _changes_of(context: TableContext, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    fields = (system_columns.VALUE_KIND, *context.schema.fields) if context.has_key else context.schema.fields
    reader = SplitReader(context, fields)
    unlimited = SplitRules(1 << 62, 0)
    for entry in _entries(context, snapshot):
        files = BucketFiles(entry.partition, entry.bucket, entry.total_buckets, (entry.file,))
        for split in append_splits(files, unlimited):
            for batch in reader.read_stored(split):
                yield _with_kind_first(with_defaults(batch, context.shown_defaults), context.has_key)


def _entries(context: TableContext, snapshot: Snapshot) -> list[ManifestEntry]:
    """Files that hold the changes of a snapshot: its changelog, or the rows it added if the table has none."""
    if producer(context.options) != NONE:
        return changelog_entries(context.stores, snapshot)
    if snapshot.commit_kind != CommitKind.APPEND:
        return []
    return [entry for entry in delta_entries(context.stores, snapshot) if entry.kind == EntryKind.ADD]


def _with_kind_first(batch: pa.RecordBatch, has_key: bool) -> pa.RecordBatch:
    if has_key:
        kinds = kinds_to_text(batch.column(VALUE_KIND))
        rows = batch.drop_columns([VALUE_KIND])
    else:
        kinds, rows = pa.repeat("+I", batch.num_rows), batch
    schema = pa.schema([pa.field(ROWKIND, pa.string(), nullable=False), *rows.schema])
    return pa.RecordBatch.from_arrays([kinds, *rows.columns], schema=schema)
