"""An order of rows that helps filters, and how to bring rows into it that do not fit into memory.

`order` sorts by the columns one after another; `zorder` and `hilbert` follow a curve on which rows that are close in
all columns lie together. What is too large for the memory for writing goes to local files first, one for each stretch
of the order. Compactions that sort (`sort_compact`) and writes that cluster (`clustering`) both use it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.append.curves import Numbers, Spread, hilbert_words, value_codes, z_words
from lakebed.options import WRITE_BUFFER_SIZE, ZORDER_VAR_LENGTH_CONTRIBUTION, Options
from lakebed.types import ordering

ORDER, ZORDER, HILBERT = "order", "zorder", "hilbert"
STRATEGIES = (ORDER, ZORDER, HILBERT)

_MOST_SAMPLES = 1 << 20
_WRITE_ROWS = 1 << 16
_SHARE = 4
"""Rows that are sorted take their room several times: as they came, in order, and with the numbers that order them."""


@dataclass(frozen=True)
class RowOrder:
    """An order of rows, and where to cut it so that each stretch fits into memory."""

    strategy: str
    columns: tuple[str, ...]
    text_bytes: int
    spreads: tuple[Spread, ...]
    cuts: Numbers

    @staticmethod
    def learned(
        batches: Iterable[pa.RecordBatch],
        row_count: int,
        options: Options,
        strategy: str,
        columns: Sequence[str],
    ) -> RowOrder:
        """Looks at the rows once: how their values are spread, and how large they are."""
        step = max(1, row_count // _MOST_SAMPLES)
        text_bytes = options[ZORDER_VAR_LENGTH_CONTRIBUTION]
        samples: list[list[ordering.Codes]] = []
        size_bytes = 0
        for batch in batches:
            size_bytes += batch.nbytes
            samples.append([value_codes(batch.column(name), text_bytes)[::step] for name in columns])
        codes = [np.concatenate(parts) for parts in zip(*samples, strict=True)] or [np.empty(0, np.int64)]
        count = -(-size_bytes // max(1, options[WRITE_BUFFER_SIZE] // _SHARE))
        return RowOrder.of_codes(codes, options, strategy, columns, count)

    @staticmethod
    def of_codes(
        codes: Sequence[ordering.Codes], options: Options, strategy: str, columns: Sequence[str], stretches: int
    ) -> RowOrder:
        """The same from codes of some rows, column by column."""
        text_bytes = options[ZORDER_VAR_LENGTH_CONTRIBUTION]
        spreads = tuple(map(Spread.of, codes))
        order = RowOrder(strategy, tuple(columns), text_bytes, spreads, np.empty(0, np.uint64))
        words = np.sort(order._words(codes)[0])
        cuts = words[np.linspace(0, len(words), max(1, stretches), endpoint=False).astype(np.int64)[1:]]
        return RowOrder(strategy, tuple(columns), text_bytes, spreads, np.unique(cuts))

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
                numbers = self.stretch_of(batch)
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

    def stretch_of(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The number of the stretch that each row belongs to."""
        return np.searchsorted(self.cuts, self._words(self._codes(batch))[0], side="right")

    def sorted_rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All rows in their order."""
        for rows in self.stretches(batches):
            places = self.sorted_places(rows)
            for start in range(0, len(places), _WRITE_ROWS):
                part = rows.take(pa.array(places[start : start + _WRITE_ROWS])).combine_chunks()
                yield from part.to_batches()

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


__all__ = ["HILBERT", "ORDER", "STRATEGIES", "ZORDER", "RowOrder"]
