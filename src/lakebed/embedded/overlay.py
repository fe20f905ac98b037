"""Rows of large old runs under newer ones: DuckDB reads the old files itself and leaves out what is replaced.

Most tables are a large compacted part and a few small runs over it. To merge them, all rows would have to pass through
us; an anti join with the keys of the newer rows shows the same, and only those few do (`read/as_stored` says
where). What the newer runs hold is merged by us, retracts included: they hide old rows, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from lakebed.read.as_stored import key_to_compare
from lakebed.read.reader import SplitReader, pieces_of, threads_for
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.types import key_value
from lakebed.types.logical import DataField
from lakebed.types.predicate_evaluate import evaluate
from lakebed.types.row_kind import is_retract
from lakebed.types.transfer import to_transfer, transfer_schema

_KEPT_BYTES = 64 << 20
"""Newer rows of files up to so many bytes are read once and kept for the query; of more they are read for their keys,
and once more for their values."""


@dataclass(frozen=True)
class NewerRows:
    """The newest row of each key that lies over an old run, with Spark's types, and whether it takes the key away."""

    reader: SplitReader
    splits: tuple[Split, ...]

    @property
    def key(self) -> tuple[DataField, ...]:
        """Columns by which old rows are found to be replaced."""
        return key_to_compare(self.reader.context)

    @property
    def fields(self) -> tuple[DataField, ...]:
        """The columns that the query needs, and the key."""
        return tuple(dict.fromkeys((*self.reader.fields, *self.key)))

    @property
    def gone(self) -> str:
        """Name of the column that says whether the row takes its key away."""
        name = "is_gone"
        while name in self._rows_schema.names:
            name += "_"
        return name

    @property
    def arrow_schema(self) -> pa.Schema:
        """All columns."""
        return self._rows_schema.append(pa.field(self.gone, pa.bool_(), nullable=False))

    @property
    def hidden_schema(self) -> pa.Schema:
        """None: what is needed is named."""
        return pa.schema([])

    @property
    def _rows_schema(self) -> pa.Schema:
        return transfer_schema(self.fields)

    @property
    def size_bytes(self) -> int:
        """Bytes of the files."""
        return sum(split.size_bytes for split in self.splits)

    def kept(self) -> pa.Table | None:
        """All of them, if they are few; None if they are not."""
        if self.size_bytes > _KEPT_BYTES:
            return None
        pieces = [piece for split in self.splits for piece in pieces_of(split)]
        threads = min(len(pieces), threads_for(self.reader.context, (piece.size_bytes for piece in pieces)))
        if threads <= 1:
            batches = [batch for piece in pieces for batch in self._of(piece)]
        else:
            with ThreadPoolExecutor(threads, thread_name_prefix="lakebed-read") as pool:
                found = pool.map(lambda piece: list(self._of(piece)), pieces)
                batches = [batch for part in found for batch in part]
        return pa.Table.from_batches(batches, schema=self.arrow_schema)

    def to_reader(self, columns: Sequence[str] | None = None, filter: Any = None) -> pa.RecordBatchReader:  # noqa: A002
        """Matching rows as a stream of batches."""
        schema = self.arrow_schema
        names = list(schema.names if columns is None else columns)

        def batches() -> Iterator[pa.RecordBatch]:
            for split in self.splits:
                for rows in self._of(split):
                    yield (rows if filter is None else rows.filter(evaluate(filter, rows))).select(names)

        return pa.RecordBatchReader.from_batches(pa.schema([schema.field(name) for name in names]), batches())

    def _of(self, split: Split) -> Iterator[pa.RecordBatch]:
        reader, schema = replace(self.reader, fields=self.fields), self._rows_schema
        for batch in reader.read_newest(split):
            if batch.num_rows:
                rows = to_transfer(batch.select(schema.names), schema)
                is_gone = np.asarray(is_retract(key_value.kinds(batch)))
                yield pa.RecordBatch.from_arrays([*rows.columns, pa.array(is_gone)], schema=self.arrow_schema)
