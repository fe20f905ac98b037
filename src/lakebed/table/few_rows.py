"""Counts, heads and samples of a planned read: what can be told or drawn without reading everything.

Of a file whose rows are read as they are stored, the manifest says how many there are, and its deletion vector how many
are gone. Files whose rows are merged with those of others, or that may hold retracts, are read, with no more columns
than a merge needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa

from lakebed.definition.context import TableContext
from lakebed.options import DATA_EVOLUTION_ENABLED
from lakebed.read.column_stats import stats_in_all
from lakebed.read.plan import ScanPlan
from lakebed.read.reader import SplitReader, pieces_of
from lakebed.read.splits import Split, needs_merge
from lakebed.table.plans import PlannedRead
from lakebed.types import predicate as predicates
from lakebed.types.logical import INTEGERS, TypeRoot, is_root
from lakebed.types.predicate import Predicate
from lakebed.types.predicate_stats import StatsColumns

_EXACT = INTEGERS | {TypeRoot.DATE}


def first_rows(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """Batches up to so many rows; the rest is not asked for."""
    left = limit
    while left > 0 and (batch := next(batches, None)) is not None:
        yield batch.slice(0, left)
        left -= batch.num_rows


def count_rows(planned: PlannedRead | pa.Table) -> int:
    """How many rows a read finds. REQUIRES: planned without columns, where that is possible."""
    if isinstance(planned, pa.Table):
        return int(planned.num_rows)
    if not isinstance(planned, tuple):
        return sum(batch.num_rows for batch in planned.batches())
    reader, plan = planned
    total = 0
    for piece in (piece for split in plan.splits for piece in pieces_of(split)):
        known = _stored_rows(reader, piece)
        total += sum(batch.num_rows for batch in reader.read(piece)) if known is None else known
    return total


def known_count(reader: SplitReader, plan: ScanPlan) -> int | None:
    """How many rows a read would find, if metadata tell it."""
    pieces = [piece for split in plan.splits for piece in pieces_of(split)]
    counts = list(_known_counts(reader, pieces))
    return sum(counts) if len(counts) == len(pieces) else None


def known_extremes(reader: SplitReader, plan: ScanPlan, names: Sequence[str], count: int) -> StatsColumns | None:
    """Least and greatest values and nulls of columns, file by file, if metadata tell them of just the rows of the read.

    Only of whole numbers and days: bounds of texts are cut, those of fractions leave NaN out, and moments are written
    with fewer digits by some. Of columns that no file stores, such as row ids, nothing is told. `count` is what
    `known_count` says.
    """
    context, files = reader.context, plan.files
    if not set(names) <= set(context.schema.field_names):
        return None
    fields = context.schema.fields_of(names)
    if (
        context.options[DATA_EVOLUTION_ENABLED]  # columns of a row lie in several files
        or not all(is_root(field.type, _EXACT) and field.name not in context.shown_defaults for field in fields)
        or count != sum(file.row_count for file in files)  # all rows of all files are shown
    ):
        return None
    return stats_in_all(context, files, fields)


def _stored_rows(reader: SplitReader, piece: Split) -> int | None:
    """How many rows of a piece match, if metadata tell it."""
    context = reader.context
    if piece.branch or not _tells_partitions_only(context, reader.predicate):
        return None
    if any(needs_merge(section) for section in piece.sections):
        return None
    total = 0
    for file in piece.files:
        if context.has_key and (file.delete_row_count != 0 or context.may_miscount_retracts(file)):
            return None
        place = piece.vectors.get(file.file_name)
        if place is not None and place.cardinality is None:
            return None
        total += file.row_count - (place.cardinality or 0 if place is not None else 0)
    return total


def _tells_partitions_only(context: TableContext, predicate: Predicate | None) -> bool:
    """Whether a plan has the rows of a filter and no others: one about partitions, which are chosen by their values."""
    if predicate is None:
        return True
    if not context.schema.partition_keys or predicates.is_opaque(predicate):
        return False  # such as a random number, which must see the rows
    looked_at = predicates.columns(predicate)
    return looked_at <= frozenset(context.schema.partition_keys) and looked_at.isdisjoint(context.shown_defaults)


# --- samples ------------------------------------------------------------------------------------------------------


def sampled_rows(planned: PlannedRead | pa.Table, size: int, seed: int | None) -> pa.Table:
    """So many rows, drawn without putting any back, in the order in which they are read."""
    chance = np.random.default_rng(seed)
    if isinstance(planned, pa.Table):
        return planned.take(_drawn(chance, planned.num_rows, size))
    if not isinstance(planned, tuple):
        return _drawn_from_stream(planned.batches(), planned.schema, size, chance)
    reader, plan = planned
    pieces = [piece for split in plan.splits for piece in pieces_of(split)]
    counts = list(islice(_known_counts(reader, pieces), len(pieces)))
    if len(counts) < len(pieces):
        batches = (batch for piece in pieces for batch in reader.read(piece))
        return _drawn_from_stream(batches, reader.schema, size, chance)
    ends = np.cumsum(np.array(counts, dtype=np.int64))
    drawn = _drawn(chance, int(ends[-1]) if len(ends) else 0, size)
    homes = np.searchsorted(ends, drawn, side="right")
    found = [reader.schema.empty_table()]
    for home in np.unique(homes).tolist():
        rows = pa.Table.from_batches(reader.read(pieces[home]), schema=reader.schema)
        found.append(rows.take(drawn[homes == home] - (ends[home] - counts[home])))
    return pa.concat_tables(found)


def _known_counts(reader: SplitReader, pieces: Sequence[Split]) -> Iterator[int]:
    """Rows of the pieces up to the first that metadata do not tell of."""
    for piece in pieces:
        known = _stored_rows(reader, piece)
        if known is None:
            return
        yield known


def _drawn(chance: np.random.Generator, rows: int, size: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Positions among so many rows, ascending."""
    return np.sort(chance.choice(rows, min(size, rows), replace=False)).astype(np.int64)


def _drawn_from_stream(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, size: int, chance: np.random.Generator
) -> pa.Table:
    """Every row gets a random number, and the rows with the smallest stay: as many as asked are held at a time."""
    kept, tickets = schema.empty_table(), np.empty(0)
    for batch in batches:
        rows = pa.concat_tables([kept, pa.Table.from_batches([batch]).cast(schema)])
        tickets = np.concatenate([tickets, chance.random(batch.num_rows)])
        if len(tickets) > size:
            best = np.sort(np.argpartition(tickets, size)[:size]) if size else np.empty(0, np.int64)
            rows, tickets = rows.take(best), tickets[best]
        kept = rows.combine_chunks()
    return kept


__all__ = ["count_rows", "first_rows", "known_count", "known_extremes", "sampled_rows"]
