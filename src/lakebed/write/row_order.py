"""An order of rows that helps filters, and how to bring rows into it that do not fit into memory.

`order` sorts by the columns one after another; `zorder` and `hilbert` follow a curve on which rows that are close in
all columns lie together. What is too large for the memory for writing goes to local files first, one for each stretch
of the order. Compactions that sort (`rewrite/sorting`) and writes that cluster (`write/clustering`) both use it.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.options import WRITE_BUFFER_SIZE, ZORDER_VAR_LENGTH_CONTRIBUTION, Options
from lakebed.records import dataclass
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


# --- Orders in which rows that are close in several columns lie close together: z-order and Hilbert curve ---------
#
# A column's values become small numbers that are ordered as the values are, and spread evenly by a sample of them, so
# that every column counts as much as the others. The bits of all numbers, taken in turns from the highest on, are the
# place of a row on the z-curve. On the Hilbert curve the bits are turned first, so that neighbours on the curve are
# neighbours in space. All of it works on whole arrays, and gives the same for a row in whatever batch it comes.


Numbers = npt.NDArray[np.uint64]

BITS = 16
"""Bits of a column: more stretches of one column than there are files are of no use."""

_WORD_BITS = 63
_ONE = np.uint64(1)
_TEXT_BYTES = 8
_LEAST = np.iinfo(np.int64).min


def value_codes(column: pa.Array, text_bytes: int = _TEXT_BYTES) -> ordering.Codes:
    """Integers in the order of the values, the same in every batch; null is least. Texts count by their first bytes."""
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        codes = _first_bytes(column, min(text_bytes, _TEXT_BYTES))
    elif pa.types.is_decimal(column.type):
        codes = ordering.sort_codes(column.cast(pa.float64()).fill_null(0.0))
    else:
        # Codes of numbers and times are their values; null would make them ranks.
        codes = ordering.sort_codes(_without_nulls(column))
    codes = np.maximum(codes, _LEAST + 1)
    if column.null_count:
        codes[~pc.is_valid(column).to_numpy(zero_copy_only=False)] = _LEAST
    return codes


@dataclass(frozen=True)
class Spread:
    """Where the values of a column lie, by a sample: numbers of a column so spread are about equally frequent."""

    bounds: ordering.Codes

    @staticmethod
    def of(sample: ordering.Codes) -> Spread:
        """Learns from codes of some of the values."""
        distinct = np.unique(sample)
        steps = min(len(distinct), 1 << BITS)
        places = np.linspace(0, len(distinct) - 1, steps).astype(np.int64) if steps else np.empty(0, np.int64)
        return Spread(distinct[places])

    def numbers(self, codes: ordering.Codes) -> Numbers:
        """Numbers below 2**BITS in the order of the codes."""
        places = np.searchsorted(self.bounds, codes, side="right").astype(np.float64)
        scaled: Numbers = (places * (((1 << BITS) - 1) / max(1, len(self.bounds)))).astype(np.uint64)
        return scaled


def z_words(columns: Sequence[Numbers]) -> list[Numbers]:
    """Places on the z-curve, as words to be compared one after the other."""
    words: list[Numbers] = []
    used = _WORD_BITS
    for bit in range(BITS - 1, -1, -1):
        for numbers in columns:
            if used == _WORD_BITS:
                words.append(np.zeros(len(numbers), dtype=np.uint64))
                used = 0
            words[-1] <<= _ONE
            words[-1] |= (numbers >> np.uint64(bit)) & _ONE
            used += 1
    return words


def hilbert_words(columns: Sequence[Numbers]) -> list[Numbers]:
    """Places on the Hilbert curve, as words to be compared one after the other."""
    axes = [numbers.copy() for numbers in columns]
    # From the highest bit down, undo the swaps and flips that the curve makes at each scale (after Skilling, 2004).
    for shift in range(BITS - 1, 0, -1):
        bit = _ONE << np.uint64(shift)
        below = bit - _ONE
        for place, axis in enumerate(axes):
            is_set = (axis & bit) != 0
            swapped = np.where(is_set, np.uint64(0), (axes[0] ^ axis) & below)
            axes[0] ^= np.where(is_set, below, swapped)
            if place:
                axis ^= swapped
    for before, axis in itertools.pairwise(axes):
        axis ^= before
    turned = np.zeros_like(axes[0])
    for shift in range(BITS - 1, 0, -1):
        bit = _ONE << np.uint64(shift)
        turned ^= np.where((axes[-1] & bit) != 0, bit - _ONE, np.uint64(0))
    for axis in axes:
        axis ^= turned
    return z_words(axes)


def _without_nulls(column: pa.Array) -> pa.Array:
    if not column.null_count:
        return column
    is_short = pa.types.is_date32(column.type) or pa.types.is_time32(column.type)
    return column.fill_null(pa.scalar(0, pa.int32() if is_short else pa.int64()).cast(column.type))


def _first_bytes(column: pa.Array, count: int) -> ordering.Codes:
    """The first bytes as one number, shifted so that signed numbers compare as the bytes do."""
    padded = pc.binary_join_element_wise(column.cast(pa.binary()).fill_null(b""), b"\0" * count, b"")
    data = pc.binary_slice(padded, 0, count).cast(pa.binary(count))
    words = np.zeros((len(column), _TEXT_BYTES), dtype=np.uint8)
    if len(column):
        start = data.offset * count
        found = np.frombuffer(data.buffers()[1], dtype=np.uint8)[start : start + len(column) * count]
        words[:, :count] = found.reshape(len(column), count)
    numbers = words.view(">u8").reshape(-1).astype(np.uint64)
    return (numbers ^ (_ONE << np.uint64(63))).view(np.int64)


__all__ = [
    "BITS",
    "HILBERT",
    "ORDER",
    "STRATEGIES",
    "ZORDER",
    "Numbers",
    "RowOrder",
    "Spread",
    "hilbert_words",
    "value_codes",
    "z_words",
]
