"""A refresh of everything as Spark jobs: of what only Spark answers, and of what is too large for this process.

The new rows are a frame, the stored ones are, too; what differs is written by tasks and committed here, under the same
identity and with the same properties as any refresh. Only counts come to the driver.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.algebra.relations import Window
from lakebed.commit.replay import CommitIdentity
from lakebed.definition.context import TableContext
from lakebed.embedded.program import running
from lakebed.errors import InvalidOption
from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.snapshot import Snapshot
from lakebed.records import dataclass
from lakebed.sql.session import SqlLake
from lakebed.sql.settings import session_changes_meaning
from lakebed.table.opened import opened_of
from lakebed.table.table import Table
from lakebed.views.apply import HASH, KIND, NUMBER, Layout, refused_twice
from lakebed.views.plan.build import ViewPlan
from lakebed.views.row_hashes import BITS
from lakebed.views.sources import pinned_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS, CHANGES = "LAKEBED_VIEW_ROWS", "LAKEBED_VIEW_CHANGES"
"""Environment variables that say how many rows this process may refresh: of everything, and of what changes touch."""
_MOST_ROWS = 50_000_000
_MOST_CHANGES = 5_000_000
"""About two gigabytes: 400,000 changed rows of a join took 170 MB. On one machine tasks need several times the CPU."""


def most_rows() -> int:
    """Rows of tables and result up to which everything is computed in this process."""
    return _said(ROWS, _MOST_ROWS)


def most_changes(lake: SqlLake) -> int:
    """Rows that changed, or that belong to those, up to which changes are followed in this process.

    Where no session is in use there is no cluster either: Spark is not started for less than everything may have.
    """
    return _said(CHANGES, _MOST_CHANGES if lake.is_spark_started else max(_MOST_CHANGES, most_rows()))


def _said(variable: str, usual: int) -> int:
    text = os.environ.get(variable)
    if text is None:
        return usual
    if not text.strip().isdigit():
        raise InvalidOption(f"{variable}={text!r} is no number of rows", hint=f"set it to a whole number: {usual}")
    return int(text)


def why_here(lake: SqlLake, plan: ViewPlan, table: Table) -> str | None:
    """Why a query that this process answers can not be left to Spark; None if it can."""
    if len(plan.names) > plan.shown:
        return "it keeps columns of its own"
    if not plan.is_full and any(isinstance(each, Window) for each in plan.root.walk()):
        return "rows that are equal in an order may come in another one there"
    if isinstance(opened_of(table).current().fileio, MemoryFileIO):
        return "its tables are in the memory of this process"
    if find_spec("pyspark") is None:
        return "there is no pyspark"
    return session_changes_meaning(lake)


@dataclass(frozen=True)
class Written:
    """What a refresh by Spark has done."""

    snapshot: Snapshot | None
    """None if another refresh was first."""
    kinds: Mapping[str, int]


@dataclass(frozen=True)
class SparkRefresh:
    """The difference between the rows of a query and what is stored at a snapshot (None: nothing)."""

    spark: Any
    table: Table
    base: Snapshot | None
    layout: Layout
    is_checked: bool
    """Whether the key was named by the user, and has to be looked at."""

    def write(
        self,
        query: DataFrame,
        context: TableContext,
        identity: CommitIdentity,
        properties: Callable[[], Mapping[str, str]],
    ) -> Written:
        """Computes, compares, writes and commits. `properties` are asked for once everything is computed."""
        from lakebed.spark import view_rows

        names = list(self.layout.stored_schema().names)
        stored = self._stored(names)
        new = view_rows.typed_like(query, list(self.layout.columns.names), stored)
        if self.layout.has_hash:
            new = self._with_hashes(new)
        if self.layout.is_numbered:
            new = view_rows.numbered(new, HASH, NUMBER)
        if self.is_checked:
            new = view_rows.kept(new)
        events = view_rows.kept(view_rows.difference(new, stored, names, self.layout.primary_key, KIND))
        try:
            if self.is_checked and (twice := view_rows.row_twice(new, self.layout.primary_key)) is not None:
                raise refused_twice(self.layout, twice)
            kinds = view_rows.kinds_of(events, KIND)
            told = properties()
            return Written(view_rows.write_events(self.spark, context, events, KIND, identity, told), kinds)
        finally:
            for frame in (events, new) if self.is_checked else (events,):
                frame.unpersist()

    def _stored(self, names: list[str]) -> DataFrame:
        if self.base is None:
            return self.table.to_spark(names).where("FALSE")
        return pinned_at(self.table, self.base).to_spark(names)

    def _with_hashes(self, frame: DataFrame) -> DataFrame:
        """The hash of each row, made by the same code as in this process."""
        schema = frame.selectExpr("*", f"CAST(NULL AS STRING) AS `{HASH}`").schema
        layout = self.layout

        def hashed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with running([], None, (BITS,)) as run:
                for number, batch in enumerate(batches):
                    run.give(f"given_{number}", pa.Table.from_batches([batch]))
                    found = run.table(f"SELECT {layout.hash_of()} AS {HASH} FROM given_{number}").column(HASH)
                    values = found.combine_chunks() if found.num_chunks else pa.array([], pa.string())
                    yield batch.append_column(HASH, values)

        return frame.mapInArrow(hashed, schema)


__all__ = ["CHANGES", "ROWS", "SparkRefresh", "Written", "most_changes", "most_rows", "why_here"]
