"""One table's part of a batch: its chunks, how their rows fit in, what it keeps of the past, and its commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.batch.batch import Counts
from lakebed.cdc.batch.commit import TableCommit
from lakebed.cdc.batch.job import ChunkPlace, piece_of_cut, whole_table
from lakebed.cdc.envelope import ROWS, TRUNCATE, Chunk, Description, SourceName, SourceTable
from lakebed.cdc.routing import Target
from lakebed.cdc.rows.past import Past
from lakebed.cdc.rows.shape import Cut, ShapedRows
from lakebed.cdc.rules import SyncRules
from lakebed.cdc.schema.evolve import EvolvedTable
from lakebed.cdc.storage import Storage
from lakebed.records import dataclass
from lakebed.table.plans import plan_write

if TYPE_CHECKING:
    from lakebed.table.table import Table


@dataclass(frozen=True)
class TablePart:
    """One table's part of a batch."""

    target: Target
    chunks: tuple[Chunk, ...]
    evolved: EvolvedTable
    commit: TableCommit
    past: Past | None = None
    """What the table keeps of the past, if it does."""

    @property
    def is_whole(self) -> bool:
        """Whether rows of different keys depend on one another."""
        later = self.past is not None and any(shape.filled_names for shape in self.evolved.shapes)
        return later or any(chunk.kind == TRUNCATE for chunk in self.chunks)

    def write_here(self, payloads: Mapping[int, bytes], storage: Storage) -> Counts:
        """Writes all rows in this process."""
        pieces: list[ShapedRows | Cut | None] = []
        times: list[pa.Array] = []
        for chunk in self.chunks:
            if chunk.kind not in (ROWS, TRUNCATE):
                continue
            shape = self.evolved.shapes[self.evolved.shape_of[chunk.ordinal]]
            payload = chunk.payload or payloads.get(chunk.ordinal)
            place = ChunkPlace(chunk.ordinal, chunk.kind, payload, chunk.place)
            if chunk.kind == TRUNCATE:
                pieces.append(piece_of_cut(self.past, shape, place.rows(storage) if payload else None))
            else:
                rows = place.rows(storage)
                times.append(rows.column(1))
                pieces.append(shape.shaped(rows))
        rows_to_write = whole_table(self.commit.context, self.past, pieces)
        if rows_to_write is not None:
            self.commit.write(rows_to_write)
        return Counts(sum(len(each) for each in times), _latest_ms(times))


def past_of(rules: SyncRules, target: Target, table: Table, state: Table | None) -> Past | None:
    """What a table keeps of the past, under the columns that it has now; `state` is the one with the newest rows."""
    columns = rules.keeping.columns(target.form)
    if not columns:
        return None
    added = {column.name for column in columns}
    key = tuple(name for name in (state or table).primary_key if name not in added)
    return Past(target.form, key, columns, None if state is None else plan_write(state)[0])


def _latest_ms(times: Sequence[pa.Array]) -> int | None:
    latest = [pc.max(each).cast(pa.int64()).as_py() for each in times if len(each)]
    known = [moment for moment in latest if moment]
    return max(known, default=None)


def first_descriptions(chunks: Sequence[Chunk]) -> list[SourceTable]:
    """What the sources looked like at the beginning of a batch: later columns have to be seen as added."""
    found: dict[SourceName, SourceTable] = {}
    for chunk in chunks:
        if chunk.name not in found or found[chunk.name].description.partial:
            described = Description.from_text(chunk.columns)
            if described.changes is None or described.changes.is_new_table:
                found[chunk.name] = SourceTable(chunk.name, described)
    return list(found.values())


def chunk_places(chunks: Sequence[Chunk], most_bytes: int) -> tuple[ChunkPlace, ...] | None:
    """Where tasks find all payloads; None if some are only in Spark's rows, or too many would go along with the job."""
    each = {chunk.ordinal: chunk for chunk in chunks}
    if any(chunk.kind == ROWS and chunk.payload is None and chunk.place is None for chunk in each.values()):
        return None
    if sum(len(chunk.payload or b"") for chunk in each.values()) > most_bytes:
        return None
    ordered = [each[ordinal] for ordinal in sorted(each)]
    return tuple(ChunkPlace(chunk.ordinal, chunk.kind, chunk.payload, chunk.place) for chunk in ordered)


__all__ = ["TablePart", "chunk_places", "first_descriptions", "past_of"]
