"""Rewrites partitions into another number of buckets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from lakebed.commit.attempt import Attempt
from lakebed.commit.committer import CommitIdentity
from lakebed.commit.message import CommitMessage
from lakebed.definition.context import TableContext
from lakebed.definition.elsewhere import Elsewhere
from lakebed.definition.partition_spec import Overwrite
from lakebed.errors import CommitConflict, InvalidArgument
from lakebed.fileio.base import FileIO
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import BUCKET, Options
from lakebed.read.plan import plan_scan
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.rewrite.settle import settled
from lakebed.write.commit import Committed, WriteCommit
from lakebed.write.files import FileMaker
from lakebed.write.pieces import PieceWork
from lakebed.write.sequence import BucketStates


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
    context: TableContext,
    bucket_count: int,
    specs: Sequence[Mapping[str, Any]] | None,
    identity: CommitIdentity,
    run_pieces: Elsewhere | None = None,
) -> Committed | None:
    """Rewrites the partitions that agree with one of the specs (all); None when they have no files."""
    _check_bucket_count(context, bucket_count)
    chosen = None if specs is None else [Overwrite.parse(context, dict(spec)) for spec in specs]

    def keep(entries: list[ManifestEntry]) -> list[ManifestEntry]:
        if chosen is None:
            return entries
        kept = {entry.partition for spec in chosen for entry in spec.replaced(entries, set())}
        return [entry for entry in entries if entry.partition in kept]

    snapshot = settled(context, keep=keep, run_pieces=run_pieces)
    live = live_files(context.stores, snapshot, keep_entries=keep)
    if snapshot is None or not live:
        return None
    partitions = frozenset(entry.partition for entry in live)
    target = context.with_schema(context.schema, Options({**context.options.raw, BUCKET.key: str(bucket_count)}))
    replaced = Rewrite(target, {}, partitions, frozenset(entry.identity for entry in live))
    with Attempt(target.fileio) as attempt:
        commit = WriteCommit(target, overwrite=replaced, identity=identity, attempt=attempt)
        work = PieceWork(target, attempt, run_pieces)
        splits = _splits(context, snapshot, partitions)
        size_bytes = sum(entry.file.size_bytes for entry in live)
        messages = work.run(splits, size_bytes, partial(_rewritten, replaced=replaced))
        return commit.run(messages)


def _splits(context: TableContext, snapshot: Snapshot, partitions: Collection[bytes]) -> list[list[Split]]:
    """What to read, by partition."""
    found: dict[bytes, list[Split]] = defaultdict(list)
    for split in plan_scan(context, snapshot, None).splits:
        if split.partition in partitions:
            found[split.partition].append(split)
    return list(found.values())


def _rewritten(
    context: TableContext, splits: Sequence[Split], fileio: FileIO, *, replaced: Overwrite
) -> list[CommitMessage]:
    """The rows of one partition in new files. May run in a task."""
    reader = SplitReader(context.showing_nulls, context.schema.fields, use_threads=False)
    with FileMaker(context, row_kind=None, overwrite=replaced, states=BucketStates, fileio=fileio) as maker:
        for split in splits:
            for batch in reader.read(split):
                maker.write_stored(batch, pa.array(np.zeros(batch.num_rows, dtype=np.int8)))
        return maker.finish()


def _check_bucket_count(context: TableContext, bucket_count: int) -> None:
    if isinstance(bucket_count, bool) or not isinstance(bucket_count, int) or bucket_count < 1:
        raise InvalidArgument(f"bucket_num is {bucket_count!r}", hint="pass a number of buckets from 1")
    if context.options[BUCKET] < 1 and not context.bucket_mode.postpones:
        raise InvalidArgument(
            f"table `{context.name}` has no fixed buckets: `{BUCKET.key}` is {context.options[BUCKET]}",
            hint="only fixed buckets are rescaled",
        )
