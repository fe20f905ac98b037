"""Clustering on write: rows of one commit are sorted before they are cut into files, so that filters skip files.

For tables without a key and without buckets, as in Paimon, and for batch writes: rows of a stream are wanted soon. Rows
are held back until the commit, in memory and then in local files, and sorted within each partition (`row_order`).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pyarrow as pa

from lakebed.definition.context import TableContext, once_per_context
from lakebed.definition.validate import check_clustering_columns
from lakebed.metadata.entries import Bucket
from lakebed.options import (
    BUCKET,
    CLUSTERING_COLUMNS,
    CLUSTERING_INCREMENTAL,
    CLUSTERING_STRATEGY,
    WRITE_BUFFER_SIZE,
    Options,
)
from lakebed.records import dataclass
from lakebed.write.row_order import HILBERT, ORDER, ZORDER, RowOrder

_LEAST_HILBERT_COLUMNS = 5


@dataclass(frozen=True, slots=True)
class Clustering:
    """How rows are sorted."""

    strategy: str
    columns: tuple[str, ...]


def clustering_of(context: TableContext) -> Clustering | None:
    """How a write sorts its rows; None if the table asks for nothing, or its rows have an order of their own."""
    return _clustering(context) if context.options[BUCKET] == -1 else None


def stepwise_clustering_of(context: TableContext) -> Clustering | None:
    """How compactions sort files, step by step; None if they are not to. Buckets may be sorted if the table says so."""
    return _clustering(context) if context.options[CLUSTERING_INCREMENTAL] else None


@once_per_context
def _clustering(context: TableContext) -> Clustering | None:
    schema, options = context.schema, context.options
    named = options[CLUSTERING_COLUMNS]
    # A partition column has one value in each partition.
    columns = tuple(name for name in named if name not in schema.partition_keys)
    if not columns or schema.primary_keys:
        return None
    check_clustering_columns(schema, options, context.name)
    strategy = options[CLUSTERING_STRATEGY]
    if strategy == "auto":
        strategy = ORDER if len(named) == 1 else HILBERT if len(named) >= _LEAST_HILBERT_COLUMNS else ZORDER
    return Clustering(strategy, columns)


class ClusteredRows:
    """Rows that are held back until all are there; more than the memory for writing go to local files."""

    def __init__(self, clustering: Clustering, options: Options) -> None:
        self._clustering = clustering
        self._options = options
        self._budget_bytes = options[WRITE_BUFFER_SIZE]
        self._rows: dict[Bucket, list[pa.RecordBatch]] = {}
        self._bytes: dict[Bucket, int] = {}
        self._held_bytes = 0
        self._counts: dict[Bucket, int] = {}
        self._paths: dict[Bucket, list[str]] = {}
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._made = 0

    def add(self, bucket: Bucket, rows: pa.RecordBatch) -> None:
        """Takes rows of a partition."""
        self._rows.setdefault(bucket, []).append(rows)
        self._bytes[bucket] = self._bytes.get(bucket, 0) + rows.nbytes
        self._counts[bucket] = self._counts.get(bucket, 0) + rows.num_rows
        self._held_bytes += rows.nbytes
        while self._held_bytes > self._budget_bytes:
            self._put_away(max(self._bytes, key=lambda key: self._bytes[key]))

    def _put_away(self, bucket: Bucket) -> None:
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="lakebed-cluster-")
        path = os.path.join(self._directory.name, f"{self._made}.arrow")
        self._made += 1
        rows = self._rows.pop(bucket)
        with pa.ipc.new_file(path, rows[0].schema) as writer:
            for batch in rows:
                writer.write_batch(batch)
        self._paths.setdefault(bucket, []).append(path)
        self._held_bytes -= self._bytes.pop(bucket)

    def take(self) -> Iterator[tuple[Bucket, Iterator[pa.RecordBatch]]]:
        """The rows of each partition, in their order. They are gone afterwards."""
        for bucket, count in self._counts.items():
            order = RowOrder.learned(
                self._read(bucket), count, self._options, self._clustering.strategy, self._clustering.columns
            )
            yield bucket, order.sorted_rows(self._read(bucket))
            self._rows.pop(bucket, None)
        self.close()

    def _read(self, bucket: Bucket) -> Iterator[pa.RecordBatch]:
        for path in self._paths.get(bucket, ()):
            with pa.memory_map(path) as source:
                reader = pa.ipc.open_file(source)
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number)
        yield from self._rows.get(bucket, ())

    def close(self) -> None:
        """Gives the rows up."""
        self._rows, self._bytes, self._counts, self._paths = {}, {}, {}, {}
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None


__all__ = ["ClusteredRows", "Clustering", "clustering_of", "stepwise_clustering_of"]
