"""Merging one column of a small table in one go or in several, and the same done row by row in plain Python."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from lakebed.merge.aggregation import Aggregation
from lakebed.merge.base import MergeOrder, MergeSetup
from lakebed.options import Options
from lakebed.types import logical as lt
from lakebed.types.arrow import to_arrow_type
from lakebed.types.key_value import with_system_columns
from lakebed.types.logical import DataField, parse_type

KINDS = {"+I": 0, "-U": 1, "+U": 2, "-D": 3}
Change = tuple[int, str, Any]
"""The key, the row kind and the value of the aggregated column."""


class Column:
    """A table of key `k` and column `v` under the aggregation engine."""

    def __init__(self, type_text: str, function: str, **options: str) -> None:
        fields = (DataField(0, "k", lt.INT), DataField(1, "v", parse_type(type_text)))
        texts = {f"fields.v.{name.replace('_', '-')}": text for name, text in options.items()}
        texts |= {"merge-engine": "aggregation", "fields.v.aggregate-function": function}
        setup = MergeSetup(fields, ("k",), Options(texts))
        Aggregation.check(setup, "t")
        self.engine = Aggregation(setup)
        self.order = MergeOrder(("k",))
        self.arrow = to_arrow_type(fields[1].type)

    def rows(self, changes: Sequence[Change], first_sequence: int = 0) -> pa.RecordBatch:
        """Rows in key-value shape, in the order of the list."""
        columns = {
            "k": pa.array([change[0] for change in changes], pa.int32()),
            "v": pa.array([change[2] for change in changes], self.arrow),
        }
        kinds = pa.array([KINDS[change[1]] for change in changes], pa.int8())
        sequence = pa.array(np.arange(len(changes)) + first_sequence)
        return with_system_columns(pa.RecordBatch.from_pydict(columns), sequence, kinds)

    def merge(self, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
        """One row per key."""
        rows = pa.concat_batches(list(batches))
        return self.engine.merge(rows, self.order.group(rows))

    def after(self, changes: Sequence[Change], cuts: Iterable[int] = ()) -> dict[int, Any]:
        """The value of each key. What comes before a cut is merged first, then the result with what follows."""
        rows = self.rows(changes)
        merged, begin = rows.slice(0, 0), 0
        for end in [*sorted(cuts), len(changes)]:
            merged = self.merge([merged, rows.slice(begin, end - begin)])
            begin = end
        return dict(zip(merged.column("k").to_pylist(), merged.column("v").to_pylist(), strict=True))

    def after_parts(self, changes: Sequence[Change], cuts: Iterable[int]) -> dict[int, Any]:
        """The value of each key when every part is merged by itself first, and then the results."""
        rows = self.rows(changes)
        borders = [0, *sorted(cuts), len(changes)]
        parts = [self.merge([rows.slice(begin, end - begin)]) for begin, end in pairwise(borders)]
        merged = self.merge(parts)
        return dict(zip(merged.column("k").to_pylist(), merged.column("v").to_pylist(), strict=True))

    def history(self, *values: Any, kinds: Sequence[str] = ()) -> list[Any]:
        """What one key shows after each change, every change merged into the result of those before it."""
        kinds = kinds or ["+I"] * len(values)
        changes = [(1, kind, value) for kind, value in zip(kinds, values, strict=True)]
        return [self.after(changes[: end + 1], range(end))[1] for end in range(len(changes))]


Step = Callable[[Any, Any], Any]


def row_by_row(changes: Sequence[Change], add: Step, retract: Step | None = None) -> dict[int, Any]:
    """The value of each key, folded one change at a time; a key with one change keeps it as it is."""
    by_key: dict[int, list[Change]] = {}
    for change in changes:
        by_key.setdefault(change[0], []).append(change)
    result = {}
    for key, mine in by_key.items():
        if len(mine) == 1:
            result[key] = mine[0][2]
            continue
        state = None
        for _, kind, value in mine:
            if kind in ("-U", "-D"):
                assert retract is not None
                state = retract(state, value)
            else:
                state = add(state, value)
        result[key] = state
    return result


def frozen(value: Any) -> Any:
    """Something hashable that is equal where values are the same: NaN is itself, zeros differ by sign."""
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    if isinstance(value, dict):
        return ("row", tuple((name, frozen(member)) for name, member in value.items()))
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return ("map", frozenset((frozen(key), frozen(item)) for key, item in value))
    if isinstance(value, list):
        return ("list", tuple(map(frozen, value)))
    return value


def same(left: dict[int, Any], right: dict[int, Any]) -> bool:
    """Whether both hold the same values, element order included."""
    return repr(sorted(left.items(), key=lambda item: item[0])) == repr(sorted(right.items(), key=lambda item: item[0]))
