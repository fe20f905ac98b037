"""Compaction that sorts: the rows of a table without a primary key, rewritten in an order that helps filters.

`order` sorts by the columns one after another; `zorder` and `hilbert` follow a curve on which rows that are close in
all columns lie together. Each partition is sorted as a whole. If it is too large for the memory for writing, its rows
go to local files first, one for each stretch of the order. No row changes, so this is a compaction like any other: rows
keep their ids, and others may append meanwhile.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.append.curves import Numbers, Spread, hilbert_words, value_codes, z_words
from lakebed.commit.committer import Progress
from lakebed.commit.message import CommitMessage
from lakebed.commit.replay import CommitIdentity
from lakebed.commit.written_files import WrittenFiles
from lakebed.errors import InvalidArgument, NotFound, Unsupported, did_you_mean
from lakebed.fileio.base import FileIO
from lakebed.metadata.entries import live_files
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import BUCKET, DATA_EVOLUTION_ENABLED, WRITE_BUFFER_SIZE, ZORDER_VAR_LENGTH_CONTRIBUTION
from lakebed.table.append_compact import (
    PickedFiles,
    commit_rewritten,
    replaced_by,
    rewriter,
    stored_bytes,
    stored_rows,
)
from lakebed.table.context import TableContext
from lakebed.table.pieces import PieceWork, RunPieces
from lakebed.table.scan import FileSieve
from lakebed.table.vectors import vectors_at
from lakebed.types import ordering
from lakebed.types.logical import is_nested
from lakebed.types.predicate import Predicate

ORDER, ZORDER, HILBERT = "order", "zorder", "hilbert"
STRATEGIES = (ORDER, ZORDER, HILBERT)

_MOST_SAMPLES = 1 << 20
_WRITE_ROWS = 1 << 16
_SHARE = 4
"""Rows that are sorted take their room several times: as they came, in order, and with the numbers that order them."""


def sort_compact(
    context: TableContext,
    strategy: str,
    columns: Sequence[str],
    where: Predicate | None,
    identity: CommitIdentity,
    run_pieces: RunPieces | None = None,
) -> Snapshot | None:
    """Sorts the partitions that a filter on partition columns chooses (all); None when they have no rows."""
    snapshot = context.stores.snapshots.latest()
    context = context.under_latest_schema()
    _check(context, strategy, columns)
    picked = _partitions(context, snapshot, where)
    if not picked:
        return None
    fileio, written = WrittenFiles.watch(context.fileio)
    progress = Progress()
    try:
        work = PieceWork(context, fileio, written, run_pieces)
        messages = work.run(picked, stored_bytes(picked), partial(_sorted, strategy=strategy, columns=tuple(columns)))
        return commit_rewritten(context, picked, messages, identity, progress)
    except BaseException:
        if not progress.may_be_visible:
            written.take_back()
        raise


def _partitions(context: TableContext, snapshot: Snapshot | None, where: Predicate | None) -> list[PickedFiles]:
    vectors = vectors_at(context, snapshot)
    entries = live_files(context.stores, snapshot, keep_entries=FileSieve(context, where).keep_entries)
    picked = []
    for partition in dict.fromkeys(entry.partition for entry in entries):
        files = tuple(entry.file for entry in entries if entry.partition == partition)
        masked = {file.file_name: vectors[file.file_name] for file in files if file.file_name in vectors}
        picked.append(PickedFiles(partition, entries[0].bucket, entries[0].total_buckets, files, masked))
    return picked


def _sorted(
    context: TableContext, picked: PickedFiles, fileio: FileIO, *, strategy: str, columns: Sequence[str]
) -> list[CommitMessage]:
    """The rows of a partition, in files that follow each other in the order."""
    order = _Order.learned(context, picked, strategy, columns)
    writer = rewriter(context, picked, fileio)
    try:
        for rows in order.stretches(stored_rows(context, picked)):
            places = order.sorted_places(rows)
            for start in range(0, len(places), _WRITE_ROWS):
                part = rows.take(pa.array(places[start : start + _WRITE_ROWS])).combine_chunks()
                for batch in part.to_batches():
                    writer.write(batch)
        return [replaced_by(picked, writer.close())]
    except BaseException:
        writer.abort()
        raise


@dataclass(frozen=True)
class _Order:
    """An order of rows, and where to cut it so that each stretch fits into memory."""

    strategy: str
    columns: tuple[str, ...]
    text_bytes: int
    spreads: tuple[Spread, ...]
    cuts: Numbers

    @staticmethod
    def learned(context: TableContext, picked: PickedFiles, strategy: str, columns: Sequence[str]) -> _Order:
        """Looks at the partition once: how its values are spread, and how large its rows are."""
        step = max(1, sum(file.row_count for file in picked.files) // _MOST_SAMPLES)
        text_bytes = context.options[ZORDER_VAR_LENGTH_CONTRIBUTION]
        samples: list[list[ordering.Codes]] = []
        size_bytes = 0
        for batch in stored_rows(context, picked):
            size_bytes += batch.nbytes
            samples.append([value_codes(batch.column(name), text_bytes)[::step] for name in columns])
        codes = [np.concatenate(parts) for parts in zip(*samples, strict=True)] or [np.empty(0, np.int64)]
        spreads = tuple(map(Spread.of, codes))
        order = _Order(strategy, tuple(columns), text_bytes, spreads, np.empty(0, np.uint64))
        count = -(-size_bytes // max(1, context.options[WRITE_BUFFER_SIZE] // _SHARE))
        words = np.sort(order._words(codes)[0])
        cuts = words[np.linspace(0, len(words), max(1, count), endpoint=False).astype(np.int64)[1:]]
        return _Order(strategy, tuple(columns), text_bytes, spreads, np.unique(cuts))

    def stretches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """All rows, stretch by stretch, in any order within each."""
        if not len(self.cuts):
            rows = list(batches)
            if rows:
                yield pa.Table.from_batches(rows)
            return
        with tempfile.TemporaryDirectory(prefix="lakebed-sort-") as directory:
            writers: dict[int, pa.ipc.RecordBatchFileWriter] = {}

            def path_of(number: int) -> str:
                return os.path.join(directory, f"{number}.arrow")

            for batch in batches:
                numbers = np.searchsorted(self.cuts, self._words(self._codes(batch))[0], side="right")
                for number in np.unique(numbers).tolist():
                    if number not in writers:
                        writers[number] = pa.ipc.new_file(path_of(number), batch.schema)
                    writers[number].write_batch(batch.filter(pa.array(numbers == number)))
            for writer in writers.values():
                writer.close()
            for number in sorted(writers):
                with pa.memory_map(path_of(number)) as source:
                    yield pa.ipc.open_file(source).read_all()
                os.remove(path_of(number))

    def sorted_places(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """Where each next row of the order is."""
        columns = [rows.column(name).combine_chunks() for name in self.columns]
        if self.strategy == ORDER:
            return ordering.argsort([ordering.sort_codes(column) for column in columns])
        words = self._words([value_codes(column, self.text_bytes) for column in columns])
        return np.lexsort(words[::-1])

    def _codes(self, batch: pa.RecordBatch) -> list[ordering.Codes]:
        return [value_codes(batch.column(name), self.text_bytes) for name in self.columns]

    def _words(self, codes: Sequence[ordering.Codes]) -> list[Numbers]:
        """Places in the order as far as they are needed to cut it; on a curve, all that orders the rows."""
        if self.strategy == ORDER:
            # Below the first column only exact values can tell: those who have the same value stay together.
            return [self.spreads[0].numbers(codes[0])]
        numbers = [spread.numbers(column) for spread, column in zip(self.spreads, codes, strict=True)]
        return hilbert_words(numbers) if self.strategy == HILBERT else z_words(numbers)


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


__all__ = ["STRATEGIES", "sort_compact"]
