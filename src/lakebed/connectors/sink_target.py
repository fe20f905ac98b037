"""A sink as the target of a streaming INSERT: changes of any query over tables of the lake go to another system.

The sink keeps how far the INSERT is, in words that it does not read, beside the rows that led there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa

from lakebed.connectors.outputs import ROW_KIND
from lakebed.connectors.registry import Sink, sink
from lakebed.errors import InvalidArgument
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.table.table import Table
from lakebed.types.logical import DataField, with_nullable
from lakebed.views.apply import KIND
from lakebed.views.inserts.sent import as_rows_of
from lakebed.views.inserts.sink import OtherSink, Takes
from lakebed.views.inserts.state import InsertState
from lakebed.views.inserts.targets import Standing
from lakebed.write.conform import Conformer

_REMEDY = "use connector `upsert-kafka`, or `kafka` with format `debezium-json`, and give the table a primary key"


def sent_fields(table: ConnectorTable) -> tuple[DataField, ...]:
    """The columns that are written; those of the key are never null."""
    return tuple(
        replace(field, type=with_nullable(field.type, field.type.nullable and field.name not in table.primary_key))
        for field in table.columns
    )


def with_kinds(table: ConnectorTable, rows: pa.Table, kinds: pa.ChunkedArray) -> pa.Table:
    """Rows as a sink takes them: their kinds first, then the columns, of the types that are defined."""
    conformer = Conformer(table.full_name, sent_fields(table))
    batches = [conformer.conform(batch)[0] for batch in rows.to_batches()]
    whole = pa.Table.from_batches(batches, schema=conformer.arrow_schema)
    return whole.add_column(0, ROW_KIND, kinds)


class SinkInsertTarget:
    """Where a `StreamingInsert` of this name sends the changes of a query."""

    def __init__(self, table: ConnectorTable, insert: str) -> None:
        self._table = table
        self._insert = insert
        self._sink = sink(table, insert)

    @property
    def anew(self) -> str:
        """What has to be done for all rows to be sent again."""
        return self._sink.anew

    @property
    def says(self) -> str:
        """How rows get there."""
        return self._sink.says

    def look(self, reads: Collection[str], *, begins: bool) -> Standing:
        """The sink as it is now."""
        words = self._sink.begin() if begins else self._sink.known()
        if words is not None and "cut" not in words:
            raise InvalidArgument(
                f"INSERT `{self._insert}` into `{self._table.full_name}` has read {words.get('source')}, not tables "
                "of the lake",
                hint=self.anew,
            )
        return _SinkStanding(self._table, self._sink, None if words is None else InsertState.of_words(words))

    def close(self) -> None:
        """Lets go of the sink."""
        self._sink.close()


class _SinkStanding:
    def __init__(self, table: ConnectorTable, into: Sink, state: InsertState | None) -> None:
        self._table = table
        self._into = into
        self.fields = sent_fields(table)
        self.state = state
        self.number = 1 if state is None else state.step + 1

    @property
    def sink(self) -> OtherSink:
        is_keyed = self._into.takes in (Takes.LAST_ROWS, Takes.CHANGES)
        key = self._table.primary_key if is_keyed else ()
        return OtherSink(self._table.full_name, self._into.takes, key, _REMEDY)

    def stored(self) -> Table | None:
        return None

    def send(self, rows: pa.Table, state: InsertState) -> tuple[bool, int | None]:
        whole = as_rows_of(rows, self.fields, has_key=True)
        kinds = whole.column(KIND)
        self._into.write(with_kinds(self._table, whole.drop_columns([KIND]), kinds), state.to_words())
        return True, None


__all__ = ["SinkInsertTarget", "sent_fields", "with_kinds"]
