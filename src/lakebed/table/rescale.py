"""Rewrites partitions into another number of buckets."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakebed.commit.committer import CommitIdentity
from lakebed.errors import CommitConflict, InvalidArgument
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import BUCKET, Options
from lakebed.table.compact import Compactor
from lakebed.table.context import TableContext
from lakebed.table.overwrite import Overwrite
from lakebed.table.rows_of import rows_of
from lakebed.table.write import TableWriter


@dataclass(frozen=True)
class Rewrite(Overwrite):
    """Replaces exactly these files by what their rows were rewritten to, or nothing if others were there meanwhile."""

    partitions: frozenset[bytes] = frozenset()
    files: frozenset[Hashable] = frozenset()

    def check(self, partition: bytes) -> None:
        """Rows are where they were."""

    def replaced(self, live: Sequence[ManifestEntry], new_partitions: set[bytes]) -> list[ManifestEntry]:
        """The live entries that go."""
        gone = [entry for entry in live if entry.partition in self.partitions]
        if {entry.identity for entry in gone} != self.files:
            raise CommitConflict(
                f"table `{self.context.name}` was written to while its partitions were rewritten",
                hint="rewrite them again when nothing else writes to them; nothing was changed",
            )
        return gone

    def emptied(self, known: set[bytes], written: set[bytes]) -> set[bytes]:
        """Partitions of which nothing is left but what the commit writes."""
        return known & self.partitions


def rescale(
    context: TableContext, bucket_count: int, specs: Sequence[Mapping[str, Any]] | None, identity: CommitIdentity
) -> Snapshot | None:
    """Rewrites the partitions that agree with one of the specs (all); None when they have no files."""
    _check_bucket_count(context, bucket_count)
    chosen = None if specs is None else [Overwrite.parse(context, dict(spec)) for spec in specs]
    if context.is_first_row:
        # Which rows of new files count is known after compaction only, and reads leave them out until then.
        Compactor(context, True).run(CommitIdentity(identity.user, identity.identifier))
    snapshot = context.stores.snapshots.latest()
    live = live_files(context.stores, snapshot)
    if chosen is not None:
        live = [entry for spec in chosen for entry in spec.replaced(live, set())]
    if snapshot is None or not live:
        return None
    partitions = frozenset(entry.partition for entry in live)
    target = context.with_schema(context.schema, Options({**context.options.raw, BUCKET.key: str(bucket_count)}))
    replaced = Rewrite(target, {}, partitions, frozenset(entry.identity for entry in live))
    with TableWriter(target, overwrite=replaced, identity=identity) as writer:
        for batch in rows_of(context, snapshot, partitions=partitions):
            writer.write_stored(batch)
        return writer.commit()


def _check_bucket_count(context: TableContext, bucket_count: int) -> None:
    if isinstance(bucket_count, bool) or not isinstance(bucket_count, int) or bucket_count < 1:
        raise InvalidArgument(f"bucket_num is {bucket_count!r}", hint="pass a number of buckets from 1")
    if context.options[BUCKET] < 1:
        raise InvalidArgument(
            f"table `{context.name}` has no fixed buckets: `{BUCKET.key}` is {context.options[BUCKET]}",
            hint="only fixed buckets are rescaled",
        )
