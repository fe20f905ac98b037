"""Changelog files that tell what rows changed, made from files of the rows as they came.

For tables with `changelog-producer` = `input` and `changelog-producer.input.normalize`. What a row changes depends on
the snapshot it is committed on top of: when another one came in between, the files are made anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakebed.datafiles.rolling_writer import FileLayout, RollingWriter
from lakebed.definition.changelog_rules import told_events
from lakebed.definition.context import TableContext, num_levels
from lakebed.definition.file_rules import changelog_write_rules
from lakebed.fileio.base import FileIO
from lakebed.lsm.levels import Levels
from lakebed.lsm.merge_runs import windows
from lakebed.lsm.sections import Section, SortedRun
from lakebed.merge.events import InputChain
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import Bucket, live_files
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.read.keyed_reader import lookup_store
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.schema import system_columns
from lakebed.types import ordering
from lakebed.types.logical import DataField


class InputNormaliser:
    """Tells the changes of one table's commit, in files whose names begin with `prefix`.

    Always under the latest schema: stored rows may have columns that whoever writes has never heard of.
    """

    def __init__(self, context: TableContext, fileio: FileIO, prefix: str) -> None:
        self._context = context.under_latest_schema()
        self._fileio = fileio
        self._prefix = prefix
        self._rules = changelog_write_rules(self._context)
        self._counter = itertools.count()

    def told(self, bucket: Bucket, recorded: Sequence[DataFile], snapshot: Snapshot | None) -> tuple[DataFile, ...]:
        """Files with the changes that recorded rows make to a bucket as it is at a snapshot."""
        chain, stored = self._chain, _StoredRows(self._context, bucket, snapshot)
        reader = SplitReader(self._context, _stored_fields(self._context), use_threads=False)
        runs = [reader.read_stored(_alone(bucket, file)) for file in recorded]
        with self._new_writer(bucket) as writer:
            for rows in _whole_keys(runs, self._context):
                events = chain.events(stored.of_keys(rows), rows)
                if events.num_rows:
                    writer.write(events)
            return tuple(writer.close())

    def _new_writer(self, bucket: Bucket) -> RollingWriter:
        context = self._context
        return RollingWriter(
            self._fileio,
            lambda name: context.data_file_path(*bucket, name),
            lambda: f"{self._prefix}-{next(self._counter)}.{self._rules.format.name}",
            FileLayout(context.schema.id, context.schema.fields, context.key_fields),
            self._rules,
            context.clock,
        )

    @property
    def _chain(self) -> InputChain:
        order = self._context.merge_order
        return InputChain(order.key, order.sequence_fields, order.descending, told_events(self._context.options))


class _StoredRows:
    """The newest rows of a bucket's keys at a snapshot, found in local copies of the files that may hold them."""

    def __init__(self, context: TableContext, bucket: Bucket, snapshot: Snapshot | None) -> None:
        def keep(entries: list[ManifestEntry]) -> list[ManifestEntry]:
            return [entry for entry in entries if (entry.partition, entry.bucket) == bucket]

        files = [entry.file for entry in live_files(context.stores, snapshot, keep_entries=keep)]
        levels = Levels.of(files, context.key_types, num_levels(context.options))
        self._context = context
        self._bucket = bucket
        self._runs = [level.run for level in levels.runs]
        self._reader = SplitReader(context, _stored_fields(context), use_threads=False)

    def of_keys(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The newest stored row of each key of some rows, kind included, in key order; keys without one are left out.

        A row that takes away counts as long as it is there: a late row loses against it.
        """
        order, store = self._context.merge_order, lookup_store(self._context)
        keys = _distinct(rows.select(list(order.key)))
        parts = []
        for run in reversed(self._runs):  # oldest first
            _, found = store.find([run], keys, self._context.key_types, self._reader.fields, self._read)
            parts.append(found)
        if not parts:
            return rows.slice(0, 0)
        together = pa.concat_batches(parts)
        return together.take(pa.array(order.group(together).last))

    def _read(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        return self._reader.read_stored(_alone(self._bucket, file))


def _whole_keys(runs: Sequence[Iterator[pa.RecordBatch]], context: TableContext) -> Iterator[pa.RecordBatch]:
    """All rows of some keys at a time. The last key of a window may go on in the next one: it waits for that."""
    waiting: pa.RecordBatch | None = None
    for parts in windows(runs, context.merge_order):
        rows = pa.concat_batches(parts if waiting is None else [waiting, *parts])
        codes = ordering.key_codes([rows.column(name) for name in context.merge_order.key])
        order = ordering.argsort(codes)
        last = int(np.flatnonzero(ordering.changes([column[order] for column in codes]))[-1])
        waiting = rows.take(pa.array(order[last:]))
        if last:
            yield rows.take(pa.array(order[:last]))
    if waiting is not None:
        yield waiting


def _distinct(keys: pa.RecordBatch) -> pa.RecordBatch:
    codes = ordering.key_codes(list(keys.columns))
    order = ordering.argsort(codes)
    return keys.take(pa.array(order[ordering.changes([column[order] for column in codes])]))


def _alone(bucket: Bucket, file: DataFile) -> Split:
    return Split(*bucket, (Section((SortedRun((file,)),)),))


def _stored_fields(context: TableContext) -> tuple[DataField, ...]:
    return (system_columns.SEQUENCE_NUMBER, system_columns.VALUE_KIND, *context.schema.fields)


__all__ = ["InputNormaliser"]
