"""One column under one aggregate function, merged as a table would merge it, at once or in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa

from lakebed.merge.aggregation import Aggregation
from lakebed.merge.base import MergeOrder, MergeSetup
from lakebed.options import Options
from lakebed.types import logical as lt
from lakebed.types.arrow import to_arrow_type
from lakebed.types.key_value import KIND_FIELD, SEQUENCE_FIELD, VALUE_KIND
from lakebed.types.logical import DataField, DataType
from lakebed.types.row_kind import TEXTS

Record = tuple[str, Any]
"""Kind and value of one row of a key."""

HIDDEN = "hidden"
"""Stands for a key whose merged row is a retract."""


@dataclass(frozen=True)
class Column:
    """A column `v` with its function and the rest of its options."""

    type: DataType
    function: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def setup(self) -> MergeSetup:
        options = {"fields.v.aggregate-function": self.function}
        options |= {f"fields.v.{name}": value for name, value in self.options.items()}
        return MergeSetup((DataField(0, "k", lt.INT), DataField(1, "v", self.type)), ("k",), Options(options))

    @property
    def engine(self) -> Aggregation:
        return Aggregation(self.setup)

    def rows(self, keys: Iterable[int], kinds: Iterable[str], values: Iterable[Any] | pa.Array) -> pa.RecordBatch:
        """Rows in key-value shape, numbered as they come."""
        arrow = to_arrow_type(self.type)
        key_column = pa.array(keys, pa.int32())
        schema = pa.schema([SEQUENCE_FIELD, KIND_FIELD, pa.field("k", pa.int32()), pa.field("v", arrow)])
        kind_column = pa.array([TEXTS.index(kind) for kind in kinds], pa.int8())
        value_column = values if isinstance(values, pa.Array) else pa.array(values, arrow)
        numbers = pa.array(range(len(key_column)), pa.int64())
        return pa.RecordBatch.from_arrays([numbers, kind_column, key_column, value_column], schema=schema)

    def merged(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The merge of these rows, oldest first."""
        return self.engine.merge(rows, MergeOrder(("k",)).group(rows))

    def merged_in_pieces(self, rows: pa.RecordBatch, cuts: Iterable[int]) -> pa.RecordBatch:
        """The same, where what was merged of the rows before each cut is merged with those after it."""
        result = rows.slice(0, 0)
        bounds = [0, *sorted(cuts), rows.num_rows]
        for start, end in pairwise(bounds):
            result = self.merged(pa.concat_batches([result, rows.slice(start, end - start)]))
        return result

    def after_each(self, *records: Record) -> list[Any]:
        """What a reader sees of a key after each of its records; merging at once must not differ from in steps."""
        rows = self.rows([1] * len(records), *zip(*records, strict=True))
        seen = []
        for count in range(1, len(records) + 1):
            at_once = self.merged(rows.slice(0, count))
            in_steps = self.merged_in_pieces(rows.slice(0, count), range(1, count))
            assert exactly(at_once) == exactly(in_steps)
            seen.append(visible(at_once)[0])
        return seen

    def of(self, *values: Any) -> Any:
        """What the function makes of inserted values."""
        return self.after_each(*(("+I", value) for value in values))[-1]


def visible(rows: pa.RecordBatch) -> list[Any]:
    """The values of merged rows, HIDDEN for retracts."""
    kinds, values = rows.column(VALUE_KIND).to_pylist(), rows.column("v").to_pylist()
    return [HIDDEN if kind % 2 else value for kind, value in zip(kinds, values, strict=True)]


def exactly(rows: pa.RecordBatch) -> list[tuple[int, int, str]]:
    """Keys, kinds and values in a form that tells -0.0 from 0.0 and finds NaN equal to itself."""
    columns = (rows.column(name).to_pylist() for name in ("k", VALUE_KIND, "v"))
    return [(key, kind, repr(value)) for key, kind, value in zip(*columns, strict=True)]


def folded(
    records: Sequence[Record], add: Callable[[Any, Any], Any], take: Callable[[Any, Any], Any]
) -> tuple[int, Any]:
    """Kind and value of a key, row by row: the plain definition that the vectorised functions must meet.

    `add` and `take` get what there is so far, which may be None, and a value that is not None.
    """
    if len(records) == 1:
        return TEXTS.index(records[0][0]), records[0][1]
    total = None
    for kind, value in records:
        if value is not None:
            total = add(total, value) if kind.startswith("+") else take(total, value)
    return 0, total
