"""Rows of change messages: from inserts, updates and deletes, with their rows before and after, to a chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import (
    CHANGED_AT,
    COPY,
    MOST_ROWS,
    RAW_KEY,
    ROWS,
    STREAM,
    Chunk,
    Description,
    SourceName,
    encode_rows,
    moments,
    payload_rows,
)
from lakebed.errors import InvalidData
from lakebed.records import dataclass
from lakebed.types.row_kind import RowKind

INSERT: Final = 0
UPDATE: Final = 1
DELETE: Final = 2
UPSERT: Final = 3
"""A row that takes the place of the one with its key, if there is one: nobody says what that was."""

Actions = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class TableChanges:
    """Changes of one table: what was done, when, and the rows before and after (rows that do not count may be NULL)."""

    source: SourceName
    description: Description
    actions: Actions
    times_ms: npt.NDArray[np.int64]
    before: Mapping[str, pa.Array]
    after: Mapping[str, pa.Array]
    unchanged: Mapping[str, pa.Array]
    """Columns of `after` whose value was not sent, and where."""
    is_copied: npt.NDArray[np.bool_]
    places: pa.Array
    """The message of each change, by its place among all that were read."""

    def chunks(self, first: int, about: pa.RecordBatch | None = None) -> Iterator[Chunk]:
        """The chunks, numbered from `first`. `about` tells something of each message."""
        rows = self._rows(about)
        text = self.description.to_text()
        phase = COPY if bool(np.all(self.is_copied)) else STREAM
        number = start = 0
        kinds = rows.column(0).to_numpy()
        while start < rows.num_rows:
            end = min(start + MOST_ROWS, rows.num_rows)
            if end < rows.num_rows and kinds[end] == RowKind.UPDATE_AFTER and end - start > 1:
                end -= 1  # both rows of an update are in one chunk
            yield Chunk(first + number, self.source, ROWS, text, phase, encode_rows(rows.slice(start, end - start)))
            number, start = number + 1, end

    def _is_new_state(self, actions: Actions) -> npt.NDArray[np.bool_]:
        """Rows of which it is sure that the one before had the same key, if there was one: a table whose key has other
        columns needs to know that. Where nobody tells the key, the table's is meant."""
        found: npt.NDArray[np.bool_] = (actions == UPSERT) & bool(self.description.primary_key)
        return found

    def _rows(self, about: pa.RecordBatch | None) -> pa.RecordBatch:
        """An update is two rows, the old one first."""
        count = len(self.actions)
        is_update = self.actions == UPDATE
        places = np.repeat(np.arange(count), np.where(is_update, 2, 1))
        is_second = np.zeros(len(places), np.bool_)
        is_second[1:] = places[1:] == places[:-1]
        actions = self.actions[places]
        is_old = (actions == DELETE) | ((actions == UPDATE) & ~is_second)
        kinds = np.select(
            [actions == DELETE, (actions == UPDATE) & is_old, (actions == UPDATE) | self._is_new_state(actions)],
            [RowKind.DELETE, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER],
            RowKind.INSERT,
        ).astype(np.int8)
        take = pa.array(np.where(is_old, places, places + count))
        columns = {
            name: pa.concat_arrays([self.before[name], self.after[name]]).take(take) for name in self.description.names
        }
        marks = {name: pc.and_(mark.take(pa.array(places)), pa.array(~is_old)) for name, mark in self.unchanged.items()}
        times = pa.array(np.where(self.is_copied, 0, self.times_ms)[places]).cast(pa.timestamp("ms", tz="UTC"))
        told = {}
        if self.is_copied.any():
            told[CHANGED_AT] = moments(self.times_ms[places] * 1000)  # the time above says of such rows that they are
        if about is not None:
            of_rows = self.places.take(pa.array(places))
            told |= {name: about.column(name).take(of_rows) for name in about.schema.names if name != RAW_KEY}
        return payload_rows(kinds, times, columns, marks, told)


def overlaid(old: pa.Array, new: pa.Array, is_given: pa.Array | None) -> pa.Array:
    """The row before: what it says itself, else what the row after says."""
    if is_given is None:
        return old
    count = len(old)
    places = np.where(is_given.to_numpy(zero_copy_only=False), np.arange(count), np.arange(count) + count)
    return pa.concat_arrays([old, new]).take(pa.array(places))


def action_numbers(kinds: pa.Array, known: dict[str, int], form: str) -> Actions:
    """What each message did, or an error that names the word nobody knows."""
    places = pc.index_in(kinds, value_set=pa.array(list(known)))
    if places.null_count:
        bad = kinds.filter(pc.is_null(places))[0].as_py()
        raise InvalidData(
            f"a {form} message says that it is {bad!r}", hint=f"known are {', '.join(known)}; is this the right format?"
        )
    numbers: Actions = np.array(list(known.values()), np.int8)[places.to_numpy()]
    return numbers


_IN_FULL: Final = "(PostgreSQL: ALTER TABLE ... REPLICA IDENTITY FULL)"


def check_present(objects: pa.Array, where: npt.NDArray[np.bool_], member: str, form: str, how: str = _IN_FULL) -> None:
    """Raises an error if a member that is needed is missing somewhere; `how` the source is told to write it."""
    missing = pc.is_null(objects).to_numpy(zero_copy_only=False) & where
    if np.any(missing):
        raise InvalidData(
            f"a {form} message comes without `{member}`",
            hint=f"have the source write `{member}` in full {how}",
        )


def whole_column(table: pa.Table, name: str) -> pa.Array:
    """A column in one piece."""
    whole = table.column(name).combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def milliseconds(column: pa.Array) -> npt.NDArray[np.int64]:
    """Numbers, 0 for NULL."""
    values: npt.NDArray[np.int64] = column.fill_null(0).to_numpy(zero_copy_only=False)
    return values


__all__ = [
    "DELETE",
    "INSERT",
    "UPDATE",
    "UPSERT",
    "Actions",
    "TableChanges",
    "action_numbers",
    "check_present",
    "milliseconds",
    "overlaid",
    "whole_column",
]
