"""Compares tables of the lake with the database that they follow, while both are in use.

A range of keys is read in the database, under one snapshot; then it is waited until the lake is past that position, and
the same range is read there. What differs may have changed in between: such rows are read again, on both sides and in
the same order. A row counts as different only if it is the same on each side, and another on the other, as often as it
is looked at; one that changes all the time is said to be untold. So nothing that is merely under way is reported.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.checkpoint import SyncRecord
from lakebed.cdc.operate import source_of, synced_tables
from lakebed.cdc.parked import read_parked
from lakebed.cdc.rows.keeping import CHANGES, HISTORY, MARKS
from lakebed.cdc.sources import ChangeSource
from lakebed.cdc.sources.base import KeyRange, SourceRows
from lakebed.cdc.storage import Storage
from lakebed.errors import InvalidArgument, NotFound, StorageError, did_you_mean
from lakebed.options import LAKEBED_CDC_KEEPS
from lakebed.records import dataclass

if TYPE_CHECKING:
    from lakebed.lake import Lake

_LOOKS: Final = 3
"""So often a row is looked at before it counts as different."""
_ROUNDS: Final = 8
_PAUSE_S: Final = 0.2
_MOST_KEYS: Final = 10_000

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class VerifiedTable:
    """What a comparison has found in a table."""

    table: str
    rows: int
    differences: list[str] = field(default_factory=list)
    """What differs: a sentence for each key."""
    untold: int = 0
    """Rows that changed whenever they were looked at."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def verify(
    lake: Lake,
    warehouse: str,
    sync: SyncRecord,
    tables: Sequence[str] = (),
    password_env: str | None = None,
    patience_s: float = 60.0,
) -> list[VerifiedTable]:
    """Compares tables of a sync, all that are not parked if none are named. Changes nothing."""
    storage = Storage(lake.storage_options)
    known = synced_tables(warehouse, sync, storage)
    parked = read_parked(sync.checkpoint, storage)
    names = [name if "." in name else f"{sync.database}.{name}" for name in tables]
    for name in names:
        if name not in known:
            raise NotFound(f"the sync has no table `{name}`", hint=did_you_mean(name, known))
        if name in parked:
            raise InvalidArgument(f"table `{name}` is parked", hint=f"see lakebed cdc resume {name}")
    source = source_of(sync, password_env, storage)
    found = []
    for name in names or [name for name in sorted(known) if name not in parked]:
        if _keeps(lake, name) in (CHANGES, HISTORY):
            if names:
                raise InvalidArgument(
                    f"table `{name}` holds the past of its source, which the source itself does not have",
                    hint="compare the table beside it that has the newest rows",
                )
        elif len(known[name]) == 1:
            found.append(_Comparison(lake, source, name, known[name][0], patience_s).run())
        elif names:
            raise InvalidArgument(
                f"table `{name}` holds rows of {len(known[name])} tables", hint="compare tables of one source each"
            )
    return found


def _keeps(lake: Lake, name: str) -> str:
    """What a table keeps of the past; empty if it has the newest rows alone."""
    return lake.table(name).schema.options.get(LAKEBED_CDC_KEEPS.key) or ""


class _Comparison:
    """One table of the lake, and the one of the source that it holds."""

    def __init__(self, lake: Lake, source: ChangeSource, name: str, origin: str, patience_s: float) -> None:
        self._lake, self._source, self._name, self._origin = lake, source, name, origin
        self._patience_s = patience_s

    def run(self) -> VerifiedTable:
        """All ranges of the table."""
        rows, untold = 0, 0
        differences: list[str] = []
        for part in self._source.key_ranges(self._origin):
            there = self._source.rows_of(self._origin, part)
            here = self._here(there, part)
            rows += there.rows.num_rows
            told, unclear = self._settled(there, _different(there, here))
            differences += told
            untold += unclear
        return VerifiedTable(self._name, rows, differences, untold)

    def _here(self, there: SourceRows, part: KeyRange | Sequence[Row]) -> pa.Table:
        """Rows of the lake as of a position that is not before that of the source's rows."""
        deadline = time.monotonic() + self._patience_s
        while True:
            now = self._lake.consistent(self._name)
            if now.position is not None and self._source.is_past(now.position, there.position):
                break
            if time.monotonic() > deadline:
                raise StorageError(
                    f"the lake is at {now.position} and did not come to {there.position} in {self._patience_s:g} s",
                    hint="is the sync running? see lakebed cdc status; try again when it has caught up",
                )
            time.sleep(_PAUSE_S)
        table = now.table(self._name)
        known = {each.name for each in table.schema.fields}
        columns = [name for name in there.rows.schema.names if name in known]
        conditions = []
        if isinstance(part, KeyRange):
            kind = there.rows.schema.field(there.key[0]).type
            for sign, border in ((">=", part.lower), ("<", part.upper)):
                if border is not None:
                    conditions.append((part.column, sign, pa.scalar(border).cast(kind).as_py()))
        else:
            values = sorted({row[0] for row in part})
            conditions.append((there.key[0], "in", values))
        kind, _, mark = (table.schema.options.get(LAKEBED_CDC_KEEPS.key) or "").partition(":")
        if kind != MARKS:
            return table.to_arrow(columns, conditions or None)
        with_deleted = table.to_arrow([*columns, mark], conditions or None)
        return with_deleted.filter(pc.is_null(with_deleted.column(mark))).select(columns)

    def _settled(self, there: SourceRows, suspects: dict[Row, tuple[Row | None, Row | None]]) -> tuple[list[str], int]:
        """Which of the rows that differ do so for good, and how many never came to rest."""
        if len(suspects) > _MOST_KEYS:
            return [f"{len(suspects):,} rows differ: the table should be copied anew"], 0
        seen = dict.fromkeys(suspects, 1)
        for _ in range(_ROUNDS):
            waiting = [key for key in suspects if seen[key] < _LOOKS]
            if not waiting:
                break
            time.sleep(_PAUSE_S)
            again = self._source.rows_of(self._origin, [_texts(key) for key in waiting])
            different = _different(again, self._here(again, waiting), set(waiting))
            for key in waiting:
                if key not in different:
                    del suspects[key]
                elif different[key] == suspects[key]:
                    seen[key] += 1
                else:
                    suspects[key], seen[key] = different[key], 1
        told = [_sentence(there.key, key, pair) for key, pair in suspects.items() if seen[key] >= _LOOKS]
        return told, len(suspects) - len(told)


def _different(
    there: SourceRows, here: pa.Table, only: set[Row] | None = None
) -> dict[Row, tuple[Row | None, Row | None]]:
    """Rows that are not the same on both sides, by key: as the source has them, and as the lake does."""
    columns = here.schema.names
    ours = there.rows.select(columns)
    if ours.num_rows == here.num_rows and _sorted(ours, there.key).equals(_sorted(here, there.key, ours.schema)):
        return {}
    key = [columns.index(name) for name in there.key]
    sides: list[dict[Row, Row]] = []
    for table in (ours, here):
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        sides.append({tuple(_plain(row[place]) for place in key): tuple(map(_plain, row)) for row in rows})
    theirs, mine = sides
    keys = theirs.keys() | mine.keys() if only is None else only
    return {each: (theirs.get(each), mine.get(each)) for each in keys if theirs.get(each) != mine.get(each)}


def _sorted(table: pa.Table, key: Sequence[str], schema: pa.Schema | None = None) -> pa.Table:
    order = pc.sort_indices(table, [(name, "ascending") for name in key])
    ordered = table.take(order).combine_chunks()
    if schema is None or schema.types == ordered.schema.types:
        return pa.table(dict(zip(ordered.schema.names, ordered.columns, strict=True)))
    columns = [column.cast(kind) for column, kind in zip(ordered.columns, schema.types, strict=True)]
    return pa.table(dict(zip(ordered.schema.names, columns, strict=True)))


def _plain(value: Any) -> Any:
    """A value that can be compared and be part of a key."""
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def _texts(key: Row) -> tuple[str | None, ...]:
    return tuple(None if part is None else "\\x" + part.hex() if isinstance(part, bytes) else str(part) for part in key)


def _sentence(names: Sequence[str], key: Row, pair: tuple[Row | None, Row | None]) -> str:
    which = ", ".join(f"{name}={value}" for name, value in zip(names, key, strict=True))
    theirs, mine = pair
    if mine is None:
        return f"{which} is missing in the lake"
    return f"{which} is in the lake only" if theirs is None else f"{which} differs"


__all__ = ["VerifiedTable", "verify"]
