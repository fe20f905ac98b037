"""A read in parts, for runtimes of other kinds: each part can be pickled and read in any process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import Any

import pyarrow as pa

from lakebed.changes.read import ChangeRead
from lakebed.errors import InvalidArgument
from lakebed.metadata.snapshot import Snapshot
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.table.plans import PlannedRead
from lakebed.types.arrow import under_schema


@dataclass(frozen=True)
class ReadPlan:
    """`splits` together hold all matching rows, each of them once; `read` gives the rows of one as Arrow batches."""

    schema: pa.Schema
    splits: tuple[Any, ...]
    snapshot: Snapshot | None = None
    """The state that is read; none of an empty table, or of one without states."""
    _reader: SplitReader | None = field(default=None, repr=False)

    @staticmethod
    def of(planned: PlannedRead | pa.Table) -> ReadPlan:
        """A planned read. Changes come in the order of their commits, so they are one part, as is a system table."""
        if isinstance(planned, pa.Table):
            return ReadPlan(planned.schema, (planned,))
        if not isinstance(planned, tuple):
            return ReadPlan(planned.schema, (planned,), planned.snapshot)
        reader, plan = planned
        return ReadPlan(reader.schema, plan.splits, plan.snapshot, reader)

    def read(self, split: Any) -> Iterator[pa.RecordBatch]:
        """The matching rows of a split; no empty batches."""
        if isinstance(split, pa.Table):
            batches = iter(split.to_batches())
        elif isinstance(split, ChangeRead):
            batches = split.batches()
        elif isinstance(split, Split) and self._reader is not None:
            batches = self._reader.read(split)
        else:
            raise InvalidArgument(f"{split!r} is no split of this plan", hint="pass one of plan.splits")
        return (under_schema(batch, self.schema) for batch in batches)

    @property
    def alone(self) -> ReadPlan:
        """The plan without its splits: small, to send along with each of them."""
        return replace(self, splits=())


__all__ = ["ReadPlan"]
