"""The files that one commit adds: rows of many buckets in, data files out.

Rows without a key go to files as they come, or sorted at the end. Rows with a key are buffered until the memory that
all buckets share is used up; then the largest buffer goes to local disk, or becomes files at once where that is not
wanted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np
import pyarrow as pa

from lakebed.datafiles.rolling_writer import RollingWriter
from lakebed.definition.changelog_rules import INPUT, normalises_input, producer
from lakebed.definition.context import TableContext
from lakebed.definition.row_rules import removes_records
from lakebed.errors import StorageError, Unsupported
from lakebed.lsm.sections import SortedRun, overlapping_runs
from lakebed.lsm.spill import Spill, SpillRules
from lakebed.lsm.write_buffer import RetractsFirst, WriteBuffer
from lakebed.merge.base import MergeOrder
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import Bucket
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.options import (
    CHANGELOG_PRODUCER_IGNORE_DELETE,
    LOCAL_SORT_MAX_NUM_FILE_HANDLES,
    SEQUENCE_AUTO_PADDING,
    SEQUENCE_SNAPSHOT_ORDERING,
    SPILL_COMPRESSION,
    SPILL_COMPRESSION_ZSTD_LEVEL,
    WRITE_BUFFER_SIZE,
    WRITE_BUFFER_SPILL_MAX_DISK_SIZE,
    WRITE_BUFFER_SPILLABLE,
    Options,
)
from lakebed.records import dataclass
from lakebed.types import key_value
from lakebed.types.row_kind import RowKind
from lakebed.write.clustering import ClusteredRows, Clustering
from lakebed.write.placement.postponed import UNNUMBERED
from lakebed.write.route import RoutedRows

_log = logging.getLogger(__name__)


_LEAST_PIECE_BYTES = 1 << 20
_MOST_BUFFER_BYTES = (1 << 31) - 1
"""What offsets of one column of text can count."""

_MERGE_SHARE_BYTES = 4 << 20
"""Memory to set aside for each run on disk that is merged: a batch of it, compressed, plain and in two windows."""


@dataclass(frozen=True, slots=True)
class BucketFiles:
    """New files of one bucket: with its rows, and with the rows as they came if the table keeps those."""

    data: tuple[DataFile, ...]
    changelog: tuple[DataFile, ...] = ()


class BucketWriters:
    """All buckets of one commit. `new_writer` opens a writer of files; `first_number` says where numbers start.

    `new_changelog_writer` opens one for the rows as they came, for tables that keep them. With `clustering` all rows
    are held back and sorted at the end.
    """

    def __init__(
        self,
        context: TableContext,
        new_writer: Callable[[Bucket], RollingWriter],
        first_number: Callable[[Bucket], int],
        new_changelog_writer: Callable[[Bucket], RollingWriter],
        clustering: Clustering | None = None,
    ) -> None:
        self._context = context
        self._clustered = ClusteredRows(clustering, context.options) if clustering is not None else None
        self._new_writer = new_writer
        self._first_number = first_number
        self._new_changelog_writer = new_changelog_writer
        self._budget_bytes = context.options[WRITE_BUFFER_SIZE]
        self._spill: Spill | None = None
        """Made when there is something to put there."""
        self._may_spill = context.options[WRITE_BUFFER_SPILLABLE]
        self._buffers: dict[Bucket, WriteBuffer] = {}
        self._buffered_bytes = 0
        self._writers: dict[Bucket, RollingWriter] = {}
        self._files: dict[Bucket, list[DataFile]] = {}
        self._changelogs: dict[Bucket, list[DataFile]] = {}

    def take(self, routed: RoutedRows) -> None:
        """Adds rows of one bucket."""
        bucket = (routed.partition, routed.bucket)
        if self._clustered is not None:
            self._clustered.add(bucket, routed.rows)
            return
        if not self._context.has_key:
            self._writer(bucket).write(routed.rows)
            return
        if routed.bucket == POSTPONE_BUCKET:
            self._write_waiting(routed)
            return
        buffer = self._buffers.get(bucket)
        if buffer is None:
            buffer = self._buffers[bucket] = self._new_buffer(bucket)
        for rows, kinds in _pieces(routed, max(_LEAST_PIECE_BYTES, self._budget_bytes // 8)):
            if buffer.size_bytes + rows.nbytes > _MOST_BUFFER_BYTES:
                self._empty(bucket)
            before = buffer.size_bytes
            buffer.add(rows, kinds)
            self._buffered_bytes += buffer.size_bytes - before
            while self._buffered_bytes > self._budget_bytes:
                self._empty(max(self._buffers, key=lambda key: self._buffers[key].size_bytes))

    def finish(self) -> dict[Bucket, BucketFiles]:
        """Writes everything to files, and returns those of each bucket that has any."""
        for bucket in self._buffers:
            self._flush(bucket)
        for bucket, batches in self._clustered.take() if self._clustered is not None else ():
            for batch in batches:
                self._writer(bucket).write(batch)
            self._close_writer(bucket)
        for bucket in list(self._writers):
            self._close_writer(bucket)
        self._let_go()
        return {
            bucket: BucketFiles(tuple(files), tuple(self._changelogs.get(bucket, ())))
            for bucket, files in self._files.items()
            if files
        }

    def abort(self) -> None:
        """Gives up open files and what is on local disk. Finished files are the caller's to remove."""
        for writer in self._writers.values():
            writer.abort()
        self._let_go()

    def _let_go(self) -> None:
        self._buffers = {}
        if self._clustered is not None:
            self._clustered.close()
        if self._spill is not None:
            self._spill.close()

    def _write_waiting(self, routed: RoutedRows) -> None:
        """Rows that wait for their bucket are neither sorted nor merged: they will be taken in the order they came."""
        numbers = pa.array(np.full(routed.rows.num_rows, UNNUMBERED, dtype=np.int64))
        rows = key_value.with_system_columns(routed.rows, numbers, routed.kinds)
        self._writer((routed.partition, routed.bucket)).write(rows)

    def _new_buffer(self, bucket: Bucket) -> WriteBuffer:
        return WriteBuffer(
            _write_order(self._context),
            self._context.merge_engine,
            self._first_number(bucket),
            deletes_are_barriers=removes_records(self._context),
            record=partial(self._record, bucket) if producer(self._context.options) == INPUT else None,
        )

    def _record(self, bucket: Bucket, rows: Iterator[pa.RecordBatch]) -> None:
        """Keeps rows as they came, in changelog files of their own."""
        writer = self._new_changelog_writer(bucket)
        options = self._context.options
        skips_deletes = options[CHANGELOG_PRODUCER_IGNORE_DELETE] and not normalises_input(options)
        for batch in rows:
            writer.write(_without_deletes(batch) if skips_deletes else batch)
        self._changelogs.setdefault(bucket, []).extend(writer.close())

    def _empty(self, bucket: Bucket) -> None:
        """Frees the memory of one buffer."""
        buffer = self._buffers[bucket]
        size_bytes = buffer.size_bytes
        if self._may_spill and self._spill is None:
            self._spill = Spill(_spill_rules(self._context.options))
        if self._spill is not None and self._may_spill and buffer.may_spill and self._spill.has_room_for(size_bytes):
            try:
                buffer.spill(self._spill)
            except StorageError as error:
                # Local disk is a convenience, and the rows are in memory still.
                self._may_spill = False
                _log.warning("rows go to more, smaller files of table `%s`: %s", self._context.name, error.message)
            else:
                self._buffered_bytes -= size_bytes
                return
        self._flush(bucket)

    def _flush(self, bucket: Bucket) -> None:
        """Each run makes files of its own: a later one may repeat a key."""
        buffer = self._buffers[bucket]
        self._buffered_bytes -= buffer.size_bytes
        before = len(self._files.get(bucket, ()))
        for run in buffer.runs(self._spill):
            writer = self._writer(bucket)
            for rows in run:
                writer.write(rows)
            self._close_writer(bucket)
        if before and self._context.orders_by_snapshot:
            self._check_order(self._files[bucket][:before], self._files[bucket][before:])

    def _check_order(self, earlier: list[DataFile], later: list[DataFile]) -> None:
        """Raises if files that memory could not hold together may have rows of one key.

        INVARIANT: snapshots number these rows, the same for all of a commit. So of two that were not merged before they
        were written none is the newer one: the older row could win, and one that was deleted come back.
        """
        if not overlapping_runs([SortedRun(tuple(earlier))], later, self._context.key_types):
            return
        raise Unsupported(
            f"table `{self._context.name}`: these rows do not fit into `{WRITE_BUFFER_SIZE.key}`, and with "
            f"`{SEQUENCE_SNAPSHOT_ORDERING.key}` rows of one commit have no order once they are in several files",
            hint=f"raise `{WRITE_BUFFER_SIZE.key}`, or commit fewer rows at a time"
            + ("" if self._may_spill else f", or leave `{WRITE_BUFFER_SPILLABLE.key}` true and room on the local disk"),
        )

    def _writer(self, bucket: Bucket) -> RollingWriter:
        writer = self._writers.get(bucket)
        if writer is None:
            writer = self._writers[bucket] = self._new_writer(bucket)
        return writer

    def _close_writer(self, bucket: Bucket) -> None:
        self._files.setdefault(bucket, []).extend(self._writers.pop(bucket).close())


def _without_deletes(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.filter(pa.array(key_value.kinds(rows) != RowKind.DELETE))


def _pieces(routed: RoutedRows, piece_bytes: int) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """A batch that is large beside the memory goes in parts, so that it does not have to fit in whole."""
    count = routed.rows.num_rows
    step = max(1, count * piece_bytes // max(1, routed.rows.nbytes))
    for start in range(0, count, step):
        yield routed.rows.slice(start, step), routed.kinds.slice(start, step)


def _spill_rules(options: Options) -> SpillRules:
    handles = options[LOCAL_SORT_MAX_NUM_FILE_HANDLES]
    return SpillRules(
        options[WRITE_BUFFER_SPILL_MAX_DISK_SIZE],
        options[SPILL_COMPRESSION],
        options[SPILL_COMPRESSION_ZSTD_LEVEL],
        min(handles, options[WRITE_BUFFER_SIZE] // _MERGE_SHARE_BYTES),
    )


def _write_order(context: TableContext) -> MergeOrder:
    """The table's order, with retracts before adds of the same sequence value where the table asks for it."""
    wanted = {word.strip() for word in context.options[SEQUENCE_AUTO_PADDING].lower().split(",")}
    if wanted & {"true", "row-kind-flag"}:
        _warn_of_padding(context.name)
        if context.merge_order.sequence_fields:
            return RetractsFirst.among_equals_of(context.merge_order)
    return context.merge_order


@cache
def _warn_of_padding(table: str) -> None:
    _log.warning(
        "table `%s`: `sequence.auto-padding` is honoured by lakebed only; other engines order rows with equal sequence "
        "values by arrival",
        table,
    )
