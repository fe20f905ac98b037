"""Rows with their kinds as messages of a topic: keys and values, as Flink's formats write them.

Texts are built column by column, some thousand rows at a time. A change of a row is one message of `debezium-json`
with the row before and after; Flink writes two, a `d` and a `c`, and reads either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.connectors.outputs import ROW_KIND, check_kinds
from lakebed.errors import InvalidData, InvalidOption, InvalidSchema, Unsupported
from lakebed.formats.text.columns import unspelled
from lakebed.formats.text.settings import text_settings
from lakebed.formats.text.spelling import joined, spelled_as_json
from lakebed.formats.text.writer import csv_lines
from lakebed.sql.connectors.kafka import KEY_FORMATS, ROW_FORMATS, UPSERT_KAFKA, message_format, message_key
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.types.logical import DataField, RowType
from lakebed.views.inserts.sink import Takes

_CHANGES: Final = "debezium-json"
_ROWS_AT_ONCE: Final = 16_384
_OPS: Final = ("c", "u", "d")
"""Words for a new row, a changed one, and one that is gone."""

Block = tuple[list[bytes | None], list[bytes | None]]
"""Keys and values of some messages; None where there is none."""


class Messages:
    """How rows of a table are written. Made before anything is sent: what can not be written is refused here."""

    def __init__(self, table: ConnectorTable) -> None:
        self._table = table
        self._fields = table.columns
        self._format = message_format(table)
        self._is_upsert = table.connector == UPSERT_KAFKA.name
        if table.options.get("key.format", "json") not in KEY_FORMATS:
            raise Unsupported(
                f"table `{table.full_name}`: keys of format `{table.options['key.format']}` are read, not written",
                hint=f"use one of {', '.join(KEY_FORMATS)}",
            )
        if self._format not in (*ROW_FORMATS, _CHANGES):
            raise Unsupported(
                f"table `{table.full_name}`: messages of format `{self._format}` are read, not written",
                hint="use `json`" if self._is_upsert else f"use `{_CHANGES}`, which tells changes as well",
            )
        stored = next((name for name, each in table.metadata.items() if not each.is_virtual), None)
        if stored is not None:
            raise Unsupported(
                f"table `{table.full_name}`: METADATA column `{stored}` is not written",
                hint="declare it VIRTUAL, or leave it out",
            )
        by_name = {field.name: field for field in self._fields}
        self._key = [by_name[name] for name in message_key(table)]
        self._key_format = table.option("key.format") or "json"
        self._check_types(self._fields, self._format)
        self._check_types(self._key, self._key_format)
        self._csv = text_settings(
            "csv",
            {key: value for key, value in table.options.items() if key.startswith("csv.field-")},
            f"table `{table.full_name}`",
            InvalidOption,
            "correct the option",
        )

    @property
    def takes(self) -> Takes:
        """Which rows there are messages for."""
        if self._is_upsert:
            return Takes.LAST_ROWS
        return Takes.CHANGES if self._format == _CHANGES else Takes.NEW_ROWS

    def blocks(self, rows: pa.Table) -> Iterator[Block]:
        """The messages of rows, in their order."""
        check_kinds(rows)
        if not rows.num_rows:
            return
        rows = rows.combine_chunks()
        kinds = np.asarray(rows.column(ROW_KIND).to_numpy())
        begin = 0
        while begin < len(kinds):
            end = min(begin + _ROWS_AT_ONCE, len(kinds))
            end += int(end < len(kinds) and kinds[end - 1] == "-U")  # a change is one message
            yield self._block(rows.slice(begin, end - begin), kinds[begin:end])
            begin = end

    def _block(self, rows: pa.Table, kinds: np.ndarray) -> Block:
        columns = rows.drop_columns([ROW_KIND])
        if self.takes is Takes.CHANGES:
            values, is_sent = self._changes(columns, kinds)
            columns = columns.filter(pa.array(is_sent))
        else:
            values = self._texts(columns, self._fields, self._format)
            if self.takes is Takes.LAST_ROWS:
                values = pc.if_else(pa.array(kinds == "-D"), pa.scalar(None, values.type), values)
        keys: list[bytes | None] = [None] * columns.num_rows
        if self._key:
            own = columns.select([field.name for field in self._key])
            keys = _bytes(self._texts(own, self._key, self._key_format))
        return keys, _bytes(values)

    def _changes(self, columns: pa.Table, kinds: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        """A message for each change, and the rows that these stand for: the new one of a change, else the only one."""
        is_sent = kinds != "-U"
        places = np.flatnonzero(is_sent)
        is_change = kinds[places] == "+U"
        if np.any(kinds[places[is_change] - 1] != "-U") or np.count_nonzero(~is_sent) != np.count_nonzero(is_change):
            raise InvalidData("a changed row came without its old one", hint="send -U right before +U")
        texts = self._texts(columns, self._fields, "json")
        is_gone = kinds[places] == "-D"
        null = pa.scalar("null", texts.type)
        one = texts.take(pa.array(places))
        old = pc.if_else(pa.array(is_change), texts.take(pa.array(np.maximum(places - 1, 0))), one)
        before = pc.if_else(pa.array(is_change | is_gone), old, null)
        after = pc.if_else(pa.array(is_gone), null, one)
        op = pa.array(_OPS, texts.type).take(pa.array(np.where(is_change, 1, np.where(is_gone, 2, 0))))
        return joined('{"before":', before, ',"after":', after, ',"op":"', op, '"}'), is_sent

    def _texts(self, columns: pa.Table, fields: Sequence[DataField], form: str) -> pa.Array:
        try:
            if form == "csv":
                return csv_lines(columns, fields, self._csv)
            whole = [_one_array(column) for column in columns.columns]
            rows = pa.StructArray.from_arrays(whole, [field.name for field in fields])
            return spelled_as_json(rows, RowType(tuple(fields)), "", bare=True)
        except InvalidData as error:
            raise InvalidData(
                f"table `{self._table.full_name}`: {error.message}",
                hint="leave such values out in the query, or write them as another type"
                + ("; or use a format of JSON" if form == "csv" else ""),
            ) from error

    def _check_types(self, fields: Sequence[DataField], form: str) -> None:
        is_json = form != "csv"
        for field in fields:
            reason = unspelled(field.type, nested=is_json, zoned=is_json)
            if reason:
                raise InvalidSchema(
                    f"table `{self._table.full_name}`: column `{field.name}` {reason}, so messages of format `{form}` "
                    "can not hold it",
                    hint="declare another type" if is_json else "declare another type, or use a format of JSON",
                )


def _bytes(texts: pa.Array) -> list[bytes | None]:
    found: list[bytes | None] = texts.cast(pa.large_binary()).to_pylist()
    return found


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


__all__ = ["Block", "Messages"]
