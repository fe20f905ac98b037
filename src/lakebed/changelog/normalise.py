"""Turns a stream of upserts and deletes into a complete changelog.

A table without a changelog producer tells what was written, not what it replaced. A sum over it needs the old rows as
well: seeing 5 is one more if there was 4, and one less if there was 6. Whoever follows such a stream must remember the
latest row of every key; this does it, with bounded memory.

    before \\ event    +I, +U                      -U, -D
    nothing           +I new                      nothing
    a row             -U before, +U new           -D before

Events keep their order. A row that comes again as it was is no change.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

import numpy as np
import pyarrow as pa

from lakebed.changelog.events import EventRules, change_events
from lakebed.changelog.key_state import KeyState
from lakebed.errors import InvalidArgument, InvalidData, did_you_mean
from lakebed.types import key_value, ordering
from lakebed.types.key_value import KIND_FIELD, VALUE_KIND
from lakebed.types.row_kind import RowKind, is_retract, kinds_from_text, kinds_to_text

ROWKIND = "rowkind"
DEFAULT_MEMORY_BYTES = 256 << 20


class Normaliser:
    """Knows the latest row of every key of one stream.

    `schema` are the columns of the table, `key` its primary key. The rows it remembers take at most `max_memory_bytes`
    of memory; what is more lies on local disk.
    """

    def __init__(
        self,
        key: Sequence[str],
        schema: pa.Schema,
        max_memory_bytes: int = DEFAULT_MEMORY_BYTES,
        *,
        skips_unchanged: bool = True,
    ) -> None:
        if not key:
            raise InvalidArgument("key is empty", hint="name the primary key: rows without a key are never replaced")
        for name in key:
            if name not in schema.names:
                raise InvalidArgument(
                    f"key column `{name}` is not in the schema", hint=did_you_mean(name, schema.names)
                )
        self._key = tuple(key)
        self._stored = pa.schema([KIND_FIELD, *schema])
        self._rules = EventRules(skips_unchanged=skips_unchanged)
        self.schema = pa.schema([pa.field(ROWKIND, pa.string(), nullable=False), *schema])
        self.state = KeyState(self._key, self._stored, max_memory_bytes)

    def __enter__(self) -> Normaliser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forgets all rows, and removes them from disk."""
        self.state.close()

    def normalise(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """The changes that these events make to what came before, kind first. `events` has the shape of `changes`."""
        rows = self._rows(events)
        if not rows.num_rows:
            return self._told(rows)
        codes = ordering.key_codes([rows.column(name) for name in self._key])
        order = ordering.argsort(codes)
        is_first = ordering.changes([column[order] for column in codes])
        starts = np.flatnonzero(is_first)
        last = order[np.append(starts[1:], len(order)) - 1]
        had_row, stored = self.state.find(rows.select(list(self._key)).take(pa.array(order[starts])))
        # What each event meets: the event of its key right before it, or what is remembered.
        met = np.empty(rows.num_rows, dtype=np.int64)
        met[order[1:]] = stored.num_rows + order[:-1]
        met[order[starts]] = np.where(had_row, np.cumsum(had_row) - 1, -1)
        before = pa.concat_batches([stored, rows]).take(pa.array(np.maximum(met, 0)))
        told = change_events(before, rows, self._rules, known=met >= 0)
        self._remember(rows.take(pa.array(last)), had_row)
        return self._told(told)

    def _rows(self, events: pa.RecordBatch) -> pa.RecordBatch:
        if events.schema.names != self.schema.names:
            raise InvalidData(
                f"events have the columns {', '.join(events.schema.names)}",
                hint=f"pass {', '.join(self.schema.names)}, as t.changes() gives them",
            )
        for given, wanted in list(zip(events.schema, self._stored, strict=True))[1:]:
            if given.type != wanted.type:
                raise InvalidData(
                    f"column `{given.name}` of the events has type {given.type}", hint=f"pass it as {wanted.type}"
                )
        kinds = kinds_from_text(events.column(0), ROWKIND)
        return pa.RecordBatch.from_arrays([kinds, *events.columns[1:]], schema=self._stored)

    def _remember(self, rows: pa.RecordBatch, had_row: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        retracts = is_retract(key_value.kinds(rows))
        kinds = np.where(retracts, RowKind.DELETE, RowKind.INSERT).astype(np.int8)
        rows = rows.set_column(0, KIND_FIELD, pa.array(kinds))
        # Of a key that is gone and was never known there is nothing to forget.
        self.state.put(rows.filter(pa.array(had_row | ~retracts)))

    def _told(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        kinds = kinds_to_text(rows.column(VALUE_KIND))
        return pa.RecordBatch.from_arrays([kinds, *rows.columns[1:]], schema=self.schema)


__all__ = ["DEFAULT_MEMORY_BYTES", "Normaliser"]
