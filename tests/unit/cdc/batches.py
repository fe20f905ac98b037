"""Batches without Spark: chunks in memory, and jobs that run their two steps one after the other."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from lakebed.cdc.batch.batch import Marks, marks_of
from lakebed.cdc.batch.job import BatchJob
from lakebed.cdc.envelope import (
    ROWS,
    SCHEMA,
    STREAM,
    TRUNCATE,
    UNCHANGED,
    Chunk,
    Description,
    SourceColumn,
    SourceName,
    chunks_to_arrow,
    encode_rows,
    payload_rows,
)
from lakebed.cdc.payloads import payload_marks
from lakebed.commit.message import CommitMessage
from lakebed.types.arrow import to_arrow_type
from lakebed.types.row_kind import TEXTS

SOURCE = SourceName("shop", "public", "orders")


def description(
    columns: dict[str, str], key: Sequence[str] = ("id",), *, ids: bool = True, defaults: dict[str, str] | None = None
) -> Description:
    """A description of columns with these types; their ids are their places."""
    given = defaults or {}
    found = [
        SourceColumn(name, text, None, given.get(name), number if ids else None)  # type: ignore[arg-type]
        for number, (name, text) in enumerate(columns.items())
    ]
    return Description(tuple(found), tuple(key))


class ChunkMaker:
    """Makes chunks, numbered in their order."""

    def __init__(self) -> None:
        self._ordinals = itertools.count()

    def rows(
        self,
        described: Description,
        *rows: tuple[Any, ...],
        source: SourceName = SOURCE,
        phase: str = STREAM,
        unchanged: dict[int, Sequence[str]] | None = None,
        op_ts_ms: int = 1_000,
        about: dict[str, pa.Array] | None = None,
    ) -> Chunk:
        """A chunk of rows, each with its kind (`+I`, …) and its values in the order of the columns."""
        kinds = np.array([TEXTS.index(row[0]) for row in rows], np.int8)
        columns = {
            column.name: pa.array([row[1 + place] for row in rows], to_arrow_type(column.type))
            for place, column in enumerate(described.columns)
        }
        marked = sorted({name for names in (unchanged or {}).values() for name in names})
        marks = {
            name: pa.array([name in (unchanged or {}).get(number, ()) for number in range(len(rows))])
            for name in marked
        }
        times = pa.array(np.full(len(rows), op_ts_ms, np.int64)).cast(pa.timestamp("ms", tz="UTC"))
        payload = encode_rows(payload_rows(kinds, times, columns, marks, about))
        return Chunk(next(self._ordinals), source, ROWS, described.to_text(), phase, payload)

    def truncate(
        self, described: Description, source: SourceName = SOURCE, payload: bytes | None = None, phase: str = STREAM
    ) -> Chunk:
        """A TRUNCATE, with what is told of it."""
        return Chunk(next(self._ordinals), source, TRUNCATE, described.to_text(), phase, payload)

    def schema(self, described: Description, source: SourceName = SOURCE) -> Chunk:
        """A change of columns without rows."""
        return Chunk(next(self._ordinals), source, SCHEMA, described.to_text(), STREAM)


class LocalBatch:
    """A batch of chunks in memory."""

    spark = None
    workers = 2

    def __init__(self, chunks: Sequence[Chunk], *, inline: bool = True) -> None:
        self._chunks = list(chunks)
        self._inline = inline

    def chunks(self) -> tuple[list[Chunk], dict[int, int]]:
        """All chunks, with or without their payloads."""
        shown = [
            chunk if self._inline or chunk.kind == TRUNCATE else replace(chunk, payload=None) for chunk in self._chunks
        ]
        return shown, {chunk.ordinal: len(chunk.payload or b"") for chunk in self._chunks}

    def payloads(self, ordinals: Sequence[int]) -> dict[int, bytes]:
        """Payloads of some chunks."""
        return {chunk.ordinal: chunk.payload or b"" for chunk in self._chunks if chunk.ordinal in ordinals}

    def marks(self) -> Marks:
        """A look into all payloads."""
        rows = chunks_to_arrow(self._chunks).select(["ordinal", "payload"])
        return marks_of([row for batch in payload_marks([rows]) for row in batch.to_pylist()])

    def run(self, job: BatchJob) -> dict[int, list[CommitMessage]]:
        """Both steps of a job, with what the shuffle between them does."""
        rows = chunks_to_arrow(self._chunks).select(["ordinal", "kind", "payload", "place"])
        blocks = list(job.split([rows]))
        made: dict[int, list[CommitMessage]] = {}
        if not blocks:
            return made
        table = pa.Table.from_batches(blocks)
        for place in sorted(set(table["place"].to_pylist())):
            mine = table.filter(pa.compute.equal(table["place"], place))
            ordered = mine.sort_by([(name, "ascending") for name in ("number", "share", "ordinal")])
            _take(job.write(ordered.to_batches()), made)
        return made

    def run_apart(self, job: BatchJob) -> dict[int, list[CommitMessage]]:
        """What each place makes of the chunks that the job knows."""
        made: dict[int, list[CommitMessage]] = {}
        for place in range(job.places):
            _take(job.write_apart([pa.record_batch({"id": pa.array([place])})]), made)
        return made


def _take(answers: Iterable[pa.RecordBatch], made: dict[int, list[CommitMessage]]) -> None:
    for answer in answers:
        for number, text in zip(*(column.to_pylist() for column in answer.columns), strict=True):
            body = json.loads(text)
            assert "error" not in body, body
            made.setdefault(number, []).extend(CommitMessage.from_json(each) for each in body["messages"])


__all__ = ["SOURCE", "UNCHANGED", "ChunkMaker", "LocalBatch", "description"]
