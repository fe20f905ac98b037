"""Rows of the copy and of the stream as chunks of the envelope: texts become values, kinds and times go with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import (
    CHANGED_AT,
    COPY,
    LOG_POSITION,
    NUMBER,
    RAW,
    ROWS,
    STREAM,
    TRANSACTION,
    Chunk,
    Description,
    copied_rows,
    cut_payload,
    encode_rows,
    moments,
    payload_rows,
    trouble_chunk,
)
from lakebed.cdc.sources.postgres.log.messages import Numbers
from lakebed.cdc.sources.postgres.log.pgoutput import DecodedRows, Truncation
from lakebed.cdc.sources.postgres.log.relations import FollowedTable
from lakebed.cdc.sources.postgres.names import format_lsn
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.values.values import Place, parse_values
from lakebed.errors import InvalidData
from lakebed.types.logical import with_nullable
from lakebed.types.row_kind import RowKind, kinds_to_text


def streamed_chunks(rows: DecodedRows, table: FollowedTable, settings: PostgresSettings) -> Iterator[Chunk]:
    """Decoded changes as a chunk, without a number yet, and what is wrong with those that could not be read."""
    with_values = _Values(rows.columns, table, settings)
    try:
        columns = with_values.read()
    except InvalidData as error:
        if settings.on_error == "stop":
            raise
        yield trouble_chunk(table.name, STREAM, error)
        return
    times = pa.array(rows.commit_us // 1000).cast(pa.timestamp("ms", tz="UTC"))
    if with_values.error is not None:
        yield with_values.put_aside(STREAM, kinds_to_text(pa.array(rows.kinds, pa.int8())), times)
        is_good = ~with_values.misfits
        if not is_good.any():
            return
        rows, times = rows.filter(is_good), times.filter(pa.array(is_good))
        columns = [column.filter(pa.array(is_good)) for column in columns]
    names = table.description.names
    is_whole = rows.kinds != RowKind.DELETE  # a delete may name its key alone
    marks = {names[place]: pa.array(mask) for place, mask in rows.unchanged.items()}
    holes = []
    for place, column in enumerate(columns):
        if column.null_count:
            is_hole = pc.is_null(column).to_numpy(zero_copy_only=False) & is_whole
            if place in rows.unchanged:
                is_hole &= ~rows.unchanged[place]
            if is_hole.any():
                holes.append(place)
    about = (
        _transaction_facts(rows.commit_us, rows.xids, rows.commit_lsns, rows.numbers) if settings.tells_times else {}
    )
    payload = payload_rows(rows.kinds, times, dict(zip(names, columns, strict=True)), marks, about)
    text = _relaxed(table.description, holes).to_text()
    yield Chunk(0, table.name, ROWS, text, STREAM, encode_rows(payload))


def _transaction_facts(
    commit_us: Numbers, xids: Numbers, commit_lsns: Numbers, numbers: Numbers
) -> dict[str, pa.Array]:
    """What is told of changes beside their rows: when and by which transaction they were made, and where that is."""
    distinct, places = np.unique(commit_lsns, return_inverse=True)
    positions = pa.array([format_lsn(lsn) for lsn in distinct.tolist()], pa.string())
    return {
        CHANGED_AT: moments(commit_us),
        TRANSACTION: pa.array(xids).cast(pa.string()),
        LOG_POSITION: positions.take(pa.array(places)),
        NUMBER: pa.array(numbers),
    }


def cut_of(event: Truncation) -> bytes:
    """The payload that tells the same of a TRUNCATE."""
    numbers = (np.array([each], np.int64) for each in (event.commit_us, event.xid, event.commit_lsn, event.number))
    times = pa.array([event.commit_us // 1000], pa.int64()).cast(pa.timestamp("ms", tz="UTC"))
    return cut_payload(times, _transaction_facts(*numbers))


def copied_chunks(
    texts: Sequence[pa.Array], table: FollowedTable, settings: PostgresSettings, read_at_us: int | None = None
) -> Iterator[Chunk]:
    """Rows of the copy as a chunk, without a number yet, and what is wrong with those that could not be read."""
    with_values = _Values(texts, table, settings)
    try:
        columns = with_values.read()
    except InvalidData as error:
        if settings.on_error == "stop":
            raise
        yield trouble_chunk(table.name, COPY, error)
        return
    if with_values.error is not None:
        count = len(columns[0])
        times = pa.nulls(count, pa.timestamp("ms", tz="UTC"))
        yield with_values.put_aside(COPY, pa.array(["+I"] * count), times)
        columns = [column.filter(pa.array(~with_values.misfits)) for column in columns]
    values: Mapping[str, pa.Array] = dict(zip(table.description.names, columns, strict=True))
    holes = [place for place, column in enumerate(columns) if column.null_count]
    payload = encode_rows(copied_rows(values, len(columns[0]), read_at_us), "lz4")
    yield Chunk(0, table.name, ROWS, _relaxed(table.description, holes).to_text(), COPY, payload)


class _Values:
    """Texts of some rows of a table, read; with rows whose values do not fit found, where they are to be put aside."""

    def __init__(self, texts: Sequence[pa.Array], table: FollowedTable, settings: PostgresSettings) -> None:
        self._texts, self._table, self._settings = texts, table, settings
        self.misfits = np.zeros(len(texts[0]) if texts else 0, bool)
        self.error: InvalidData | None = None

    def read(self) -> list[pa.Array]:
        """The columns."""
        keeps_null = self._settings.values_that_do_not_fit == "null"
        found = self._found if self._settings.on_error == "dead-letter" else None
        table = self._table
        return [
            parse_values(
                text, form, Place(table.full_name, name, keeps_null and place not in table.key, self._key_of, found)
            )
            for place, (name, text, form) in enumerate(
                zip(table.description.names, self._texts, table.forms, strict=True)
            )
        ]

    def put_aside(self, phase: str, kinds: pa.Array, times: pa.Array) -> Chunk:
        """The rows whose values do not fit, as they came."""
        assert self.error is not None
        rows = np.flatnonzero(self.misfits)
        names = self._table.description.names
        raw = [
            json.dumps(
                {name: text[row].as_py() for name, text in zip(names, self._texts, strict=True)}, ensure_ascii=False
            )
            for row in rows.tolist()  # few, or somebody should look
        ]
        why = pa.array([self.error.message] * len(rows))
        columns = [kinds.take(pa.array(rows)), times.take(pa.array(rows)), why, pa.array(raw, pa.string())]
        batch = pa.RecordBatch.from_arrays(columns, schema=RAW)
        return trouble_chunk(self._table.name, phase, self.error, batch)

    def _found(self, misfits: np.ndarray[Any, np.dtype[np.bool_]], error: InvalidData) -> None:
        self.misfits |= misfits
        self.error = self.error or error

    def _key_of(self, row: int) -> str:
        names = self._table.description.names
        return ", ".join(f"{names[place]}={self._texts[place][row].as_py()}" for place in self._table.key) or "(none)"


def _relaxed(description: Description, holes: Sequence[int]) -> Description:
    """The description with columns nullable that hold nulls: the catalogue of today may be stricter than the row."""
    required = {place for place in holes if not description.columns[place].type.nullable}
    if not required:
        return description
    columns: list[Any] = [
        replace(column, type=with_nullable(column.type, True)) if place in required else column
        for place, column in enumerate(description.columns)
    ]
    return replace(description, columns=tuple(columns))


__all__ = ["copied_chunks", "cut_of", "streamed_chunks"]
