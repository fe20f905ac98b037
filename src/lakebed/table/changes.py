"""What changed between two snapshots, commit by commit: the rows each one added, with their kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lakebed.errors import InvalidArgument, NotFound
from lakebed.metadata.snapshot import Snapshot
from lakebed.table.context import TableContext
from lakebed.table.stream_history import History
from lakebed.table.stream_splits import ChangeReader, change_splits, refuse_unmergeable, sieve_of


def read_changes(context: TableContext, since: int, until: int | None) -> pa.Table:
    """What the snapshots after `since` up to `until` (the latest) changed, in commit order, kind first.

    Compactions change no row. Overwrites replace rather than change: they are passed over unless the table's options
    ask for them.
    """
    refuse_unmergeable(context)
    reader = ChangeReader(context, context.schema.fields)
    snapshots, sieve = _snapshots_between(context, since, until), sieve_of(context)
    return reader.read_all(split for found in snapshots for split in change_splits(context, found, sieve=sieve))


def _snapshots_between(context: TableContext, since: int, until: int | None) -> Iterator[Snapshot]:
    history = History(context.stores)
    latest, earliest = history.latest_id(), history.earliest_id()
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
        state = history.earliest_snapshot_id()
        raise NotFound(
            f"table `{context.name}`: changes after snapshot {since} have expired; the earliest snapshot is {state}",
            hint=f"read the whole table at snapshot {state}, then go on with changes(since={state})",
        )
    for snapshot_id in range(since + 1, end + 1):
        yield history.changes(snapshot_id) or context.stores.snapshots.get(snapshot_id)
