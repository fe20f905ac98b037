"""Rows of the copy and of the stream as chunks of the envelope: texts become values, kinds and times go with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import COPY, ROWS, STREAM, Chunk, Description, copied_rows, encode_rows, payload_rows
from lakebed.cdc.sources.postgres.log.pgoutput import DecodedRows
from lakebed.cdc.sources.postgres.log.relations import FollowedTable
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.values.values import Place, parse_values
from lakebed.types.logical import with_nullable
from lakebed.types.row_kind import RowKind


def streamed_chunk(rows: DecodedRows, table: FollowedTable, settings: PostgresSettings, ordinal: int) -> Chunk:
    """Decoded changes as a chunk."""
    columns = _values(rows.columns, table, settings)
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
    times = pa.array(rows.commit_us // 1000).cast(pa.timestamp("ms", tz="UTC"))
    payload = payload_rows(rows.kinds, times, dict(zip(names, columns, strict=True)), marks)
    text = _relaxed(table.description, holes).to_text()
    return Chunk(ordinal, table.name, ROWS, text, STREAM, encode_rows(payload))


def copied_chunk(texts: Sequence[pa.Array], table: FollowedTable, settings: PostgresSettings, ordinal: int) -> Chunk:
    """Rows of the copy as a chunk."""
    columns = _values(texts, table, settings)
    values: Mapping[str, pa.Array] = dict(zip(table.description.names, columns, strict=True))
    holes = [place for place, column in enumerate(columns) if column.null_count]
    payload = encode_rows(copied_rows(values, len(columns[0])), "lz4")
    return Chunk(ordinal, table.name, ROWS, _relaxed(table.description, holes).to_text(), COPY, payload)


def _values(texts: Sequence[pa.Array], table: FollowedTable, settings: PostgresSettings) -> list[pa.Array]:
    names = table.description.names

    def key_of(row: int) -> str:
        return ", ".join(f"{names[place]}={texts[place][row].as_py()}" for place in table.key) or "(none)"

    keeps_null = settings.values_that_do_not_fit == "null"
    return [
        parse_values(text, form, Place(table.full_name, name, keeps_null and place not in table.key, key_of))
        for place, (name, text, form) in enumerate(zip(names, texts, table.forms, strict=True))
    ]


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


__all__ = ["copied_chunk", "streamed_chunk"]
