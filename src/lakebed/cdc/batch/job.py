"""Writes a large batch of many tables in one Spark job: chunks become rows, rows find their bucket's task, tasks write.

Where payloads lie in files, and few tasks share the work, each of them looks through all payloads and takes the rows of
its buckets: to map a file and pass over half of its rows costs less than to move the other half. Otherwise a first step
shapes the rows of each chunk and splits them by bucket; what travels through the shuffle are blocks of rows, not rows.
A second step gets all blocks of a bucket in their order. Either way changes of a key keep theirs. Tables whose rows
depend on one another (values that were not sent, TRUNCATE, an index of all keys) are not split.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.bucket.fixed import assign_buckets
from lakebed.bucket.hashing import hash_rows
from lakebed.cdc.envelope import TRUNCATE, decode_rows, encode_rows, payload_at
from lakebed.cdc.rows.assemble import ROW_KIND, Piece, assembled, completed, needs_old_values, with_kinds, writable
from lakebed.cdc.rows.past import Past, past_assembled, past_completed
from lakebed.cdc.rows.shape import Cut, RowShape
from lakebed.cdc.storage import PLAIN, Storage
from lakebed.commit.message import CommitMessage
from lakebed.definition.bucket_mode import TaskNeeds, WritePart, shared_rules
from lakebed.definition.context import TableContext
from lakebed.fileio.base import FileIO
from lakebed.options import BUCKET, BUCKET_FUNCTION_TYPE
from lakebed.records import dataclass
from lakebed.spark.late_workers import until_workers_come
from lakebed.spark.session import prepare_worker
from lakebed.spark.tasks import answer_of, made_by
from lakebed.types.logical import DataField
from lakebed.write.files import FileMaker
from lakebed.write.sequence import BucketStates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BLOCKS: Final = "place int, number int, share int, ordinal bigint, shape int, block binary"
_BLOCK_SCHEMA: Final = pa.schema(
    [
        ("place", pa.int32()),
        ("number", pa.int32()),
        ("share", pa.int32()),
        ("ordinal", pa.int64()),
        ("shape", pa.int32()),
        ("block", pa.binary()),
    ]
)
_ANSWER: Final = "number int, answer string"
_GATHERED_ROWS: Final = 65_536
_GATHERED_BYTES: Final = 64 << 20
"""So much is written at a time; a column of long texts in one piece must stay far below two gigabytes."""
_SHAPED: Final = -1
_CUT: Final = -2
"""In place of a shape: rows that are shaped already, and a TRUNCATE, which the number of its shape is taken from."""


@dataclass(frozen=True)
class TableTask:
    """One table of the job: how its rows are shaped, where they go, how its files are made."""

    context: TableContext
    shapes: tuple[RowShape, ...]
    states: BucketStates | None
    job: str
    user: str
    is_whole: bool
    """Whether all rows go to one task, in which they are put together."""
    ways: int
    """How many tasks may share the table."""
    parts: int
    """How many of them share dynamic buckets; 0 if buckets are not handed out."""
    past: Past | None = None
    """What it keeps of the past, if it does."""

    @classmethod
    def of(
        cls,
        context: TableContext,
        shapes: tuple[RowShape, ...],
        states: BucketStates | None,
        job: str,
        user: str,
        is_whole: bool,
        workers: int,
        past: Past | None = None,
    ) -> TableTask:
        """The table, split into as many ways as its buckets allow."""
        mode = context.bucket_mode
        shares = mode.needs is TaskNeeds.SHARE_OF_KEYS and not is_whole
        parts = shared_rules(context.options, workers).assigners if shares else 0
        ways = parts or 1
        if mode.needs is TaskNeeds.WHOLE_BUCKETS and not is_whole:
            ways = int(context.options[BUCKET]) * (4 if context.partition_fields else 1)
        is_alone = is_whole or mode.needs not in (TaskNeeds.SHARE_OF_KEYS, TaskNeeds.WHOLE_BUCKETS)
        if past is not None and mode.needs is TaskNeeds.ANY_ROWS and not is_whole:
            is_alone, ways = False, workers  # rows of a key only have to be together
        ways, parts = (1, 0) if is_alone else (ways, parts)
        return cls(context, shapes, states, job, user, is_alone, ways, parts, past)

    def rows(self, shape: int, payload: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a chunk as they are written, but for values that others of their key have."""
        shaped = self.shapes[shape].shaped(payload)
        waits = self.past is not None or needs_old_values(self.context)
        return with_kinds(shaped) if waits else writable(self.context, shaped)

    def way_of(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Which of the ways each row goes."""
        if self.ways == 1:
            return np.zeros(rows.num_rows, np.int64)
        context = self.context
        keys: Sequence[DataField]
        if self.past is not None and not context.has_key:
            keys, count, function = context.schema.fields_of(self.past.key), self.ways, "default"
        elif self.parts:
            keys, count, function = context.key_fields, self.parts, "default"
        else:
            keys = tuple(context.schema.fields_of(context.schema.bucket_keys))
            count, function = int(context.options[BUCKET]), str(context.options[BUCKET_FUNCTION_TYPE])
        buckets = assign_buckets(
            [rows.column(key.name) for key in keys], [key.type for key in keys], count, function
        ).astype(np.int64)
        if context.partition_fields and context.has_key and not self.parts:
            columns = [rows.column(field.name) for field in context.partition_fields]
            buckets = buckets + hash_rows(columns, context.partition_types).astype(np.int64)
        return np.mod(buckets, self.ways)


Block = tuple[int, pa.RecordBatch | None]
"""Rows of a chunk, and their shape."""


@dataclass(frozen=True, slots=True)
class ChunkPlace:
    """Where a task finds the payload of a chunk: here, or in a file."""

    ordinal: int
    kind: str
    payload: bytes | None
    place: str | None

    def rows(self, storage: Storage) -> pa.RecordBatch:
        """The changes inside."""
        return decode_rows(payload_at(self.place, storage) if self.place is not None else self.payload or b"")


@dataclass(frozen=True)
class BatchJob:
    """The job: its tables, which of them each chunk belongs to, and how many tasks write."""

    tables: tuple[TableTask, ...]
    chunk_of: Mapping[int, tuple[tuple[int, int], ...]]
    """Tables of a chunk, each with the shape that it has there, by its ordinal. Others are nobody's."""
    places: int
    chunks: tuple[ChunkPlace, ...] = ()
    """All that are listed, in their order, if it is known where they lie."""
    storage: Storage = PLAIN
    """How files of payloads are opened."""

    def run(self, envelopes: DataFrame) -> dict[int, list[CommitMessage]]:
        """What was made, by the number of the table."""
        from pyspark.sql import functions as sf

        blocks = envelopes.select("ordinal", "kind", "payload", "place").mapInArrow(self.split, _BLOCKS)
        placed = blocks.repartitionById(self.places, sf.col("place"))
        ordered = placed.sortWithinPartitions("number", "share", "ordinal")
        return _made(ordered.mapInArrow(self.write, _ANSWER))

    def run_apart(self, spark: SparkSession) -> dict[int, list[CommitMessage]]:
        """The same without a shuffle: each task looks through `chunks`."""
        return _made(spark.range(0, self.places, 1, self.places).mapInArrow(self.write_apart, _ANSWER))

    # --- with a shuffle ------------------------------------------------------------------------------------------

    def split(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Blocks of rows with the places they go to."""
        prepare_worker()
        for batch in batches:
            ordinals, kinds, payloads, places = batch.columns
            small = zip(ordinals.to_pylist(), kinds.to_pylist(), places.to_pylist(), payloads, strict=True)
            for ordinal, kind, place, payload in small:
                found = self.chunk_of.get(ordinal, ())
                if found:
                    data = payload.as_buffer() if place is None else payload_at(place, self.storage)
                    for number, shape in found:
                        yield from self._blocks(number, shape, ordinal, kind, data)

    def _blocks(
        self, number: int, shape: int, ordinal: int, kind: str, payload: pa.Buffer | None
    ) -> Iterator[pa.RecordBatch]:
        table = self.tables[number]
        first = self._first_way(number)
        if kind == TRUNCATE:
            told = None if payload is None else payload.to_pybytes()
            yield _block(first % self.places, number, 0, ordinal, _CUT - shape, told)
            return
        assert payload is not None
        if table.is_whole:
            yield _block(first % self.places, number, 0, ordinal, shape, payload.to_pybytes())
            return
        rows = table.rows(shape, decode_rows(payload))
        ways = table.way_of(rows)
        order = np.argsort(ways, kind="stable")
        found, starts = np.unique(ways[order], return_index=True)
        for way, mine in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
            block = encode_rows(rows.take(pa.array(mine)))
            share = way if table.parts else 0
            yield _block((first + way) % self.places, number, share, ordinal, _SHAPED, block)

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Files of all blocks of this place, table by table."""
        prepare_worker()
        rows = (
            row
            for batch in batches
            for row in zip(*(batch.column(i) for i in range(1, batch.num_columns)), strict=True)
        )
        for (number, share), mine in itertools.groupby(rows, lambda row: (row[0].as_py(), row[1].as_py())):
            blocks = (
                (shape.as_py(), decode_rows(block.as_buffer()) if block.is_valid else None)
                for _, _, _, shape, block in mine
            )
            yield _answer_row(number, self._answer(self.tables[number], share, blocks))

    # --- without -------------------------------------------------------------------------------------------------

    def write_apart(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Files of all rows of the places whose numbers come."""
        prepare_worker()
        for batch in batches:
            for place in batch.column(0).to_pylist():
                for number, table in enumerate(self.tables):
                    first = self._first_way(number)
                    ways = [way for way in range(table.ways) if (first + way) % self.places == place]
                    # Those who hand out buckets know one share of the keys each; all others write what is theirs.
                    for share in [[way] for way in ways] if table.parts else [ways] if ways else []:
                        blocks = self._blocks_of(number, share)
                        yield _answer_row(number, self._answer(table, share[0] if table.parts else 0, blocks))

    def _blocks_of(self, number: int, ways: list[int]) -> Iterator[Block]:
        """Blocks of a table's rows that go one of those ways."""
        table = self.tables[number]
        for chunk in self.chunks:
            shape = dict(self.chunk_of[chunk.ordinal]).get(number)
            if shape is None:
                continue
            if chunk.kind == TRUNCATE:
                yield _CUT - shape, chunk.rows(self.storage) if chunk.payload is not None else None
            elif table.is_whole:
                yield shape, chunk.rows(self.storage)
            else:
                rows = table.rows(shape, chunk.rows(self.storage))
                if len(ways) < table.ways:
                    rows = rows.filter(pa.array(np.isin(table.way_of(rows), ways)))
                yield _SHAPED, rows

    # --- either way ----------------------------------------------------------------------------------------------

    def _first_way(self, number: int) -> int:
        return sum(each.ways for each in self.tables[:number])

    def _answer(self, table: TableTask, share: int, blocks: Iterator[Block]) -> dict[str, object]:
        def work(context: TableContext, fileio: FileIO) -> list[CommitMessage]:
            with FileMaker(
                context,
                row_kind=ROW_KIND if context.has_key else None,
                overwrite=None,
                states=lambda: table.states or BucketStates(),
                fileio=fileio,
                part=WritePart(share, table.parts) if table.parts else None,
                commit_user=table.user,
            ) as maker:
                for rows in _rows(table, context, blocks):
                    maker.write(rows, lambda: None)
                return maker.finish()

        return answer_of(table.context, table.job, work)


def _made(answers: DataFrame) -> dict[int, list[CommitMessage]]:
    made: dict[int, list[CommitMessage]] = {}
    for number, answer in until_workers_come(answers.collect):
        made.setdefault(number, []).extend(made_by([answer]))
    return made


def _rows(table: TableTask, context: TableContext, blocks: Iterator[Block]) -> Iterator[pa.RecordBatch]:
    if table.is_whole:
        whole = whole_table(context, table.past, [_piece(table, shape, rows) for shape, rows in blocks])
        if whole is not None:
            yield whole
    elif table.past is not None:
        some = [rows for _, rows in blocks if rows is not None and rows.num_rows]
        made = past_completed(context, table.past, some) if some else None
        if made is not None:
            yield made
    elif needs_old_values(context):
        found = [rows for _, rows in blocks if rows is not None and rows.num_rows]
        if found:
            yield completed(context, found)
    else:
        yield from _gathered(rows for _, rows in blocks if rows is not None and rows.num_rows)


def _piece(table: TableTask, shape: int, rows: pa.RecordBatch | None) -> Piece | Cut:
    if shape >= 0:
        assert rows is not None
        return table.shapes[shape].shaped(rows)
    return piece_of_cut(table.past, table.shapes[_CUT - shape], rows)


def piece_of_cut(past: Past | None, shape: RowShape, told: pa.RecordBatch | None) -> Piece | Cut:
    """A TRUNCATE among the rows of a table."""
    return None if past is None else Cut.of(shape, told)


def whole_table(context: TableContext, past: Past | None, pieces: Sequence[Piece | Cut]) -> pa.RecordBatch | None:
    """What is written for all chunks of a table; None if that is nothing."""
    if past is not None:
        return past_assembled(context, past, [piece for piece in pieces if piece is not None])
    return assembled(context, [piece for piece in pieces if not isinstance(piece, Cut)])


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in larger batches: what is done with one costs much the same for few rows as for many."""
    waiting: list[pa.RecordBatch] = []
    count = size_bytes = 0
    for batch in batches:
        count, size_bytes = count + batch.num_rows, size_bytes + batch.nbytes
        is_full = count > _GATHERED_ROWS or size_bytes > _GATHERED_BYTES
        if waiting and (is_full or batch.schema != waiting[0].schema):
            yield pa.concat_batches(waiting)
            waiting, count, size_bytes = [], batch.num_rows, batch.nbytes
        waiting.append(batch)
    if waiting:
        yield pa.concat_batches(waiting)


def _answer_row(number: int, answer: dict[str, object]) -> pa.RecordBatch:
    return pa.record_batch(
        {"number": pa.array([number], pa.int32()), "answer": pa.array([json.dumps(answer)], pa.string())}
    )


def _block(place: int, number: int, share: int, ordinal: int, shape: int, block: bytes | None) -> pa.RecordBatch:
    values = [[place], [number], [share], [ordinal], [shape], [block]]
    arrays = [pa.array(value, field.type) for value, field in zip(values, _BLOCK_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_BLOCK_SCHEMA)


__all__ = ["BatchJob", "ChunkPlace", "TableTask", "piece_of_cut", "whole_table"]
