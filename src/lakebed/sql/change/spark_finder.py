"""Finds rows of a statement with Spark: tables become views, and rows that may be many stay DataFrames."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.metadata.entries import live_files
from lakebed.records import dataclass
from lakebed.spark.errors import spark_errors
from lakebed.spark.late_workers import until_workers_come
from lakebed.sql.change.finder import KIND, Changed, Found, Merged
from lakebed.sql.query.plan import Planner
from lakebed.sql.query.pushdown import Needs
from lakebed.sql.query.run import incoming_fields
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Sql
from lakebed.sql.words.names import quoted
from lakebed.table.opened import opened_of
from lakebed.table.table import Table
from lakebed.types.logical import DataField
from lakebed.types.transfer import to_precision

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class SparkSource:
    """The source of a MERGE as a DataFrame, and who has planned it."""

    frame: DataFrame
    planner: Planner

    @property
    def columns(self) -> list[str]:
        """Names of its columns."""
        return list(self.frame.columns)

    @property
    def fields(self) -> tuple[DataField, ...]:
        """Its columns as columns of a table."""
        return incoming_fields(self.frame)


@dataclass(frozen=True)
class SparkFinder:
    """The way of all statements that nothing else is proven to carry out."""

    planner: Planner

    @staticmethod
    def start(lake: SqlLake) -> SparkFinder:
        """One for a statement; starts Spark."""
        return SparkFinder(Planner.start(lake))

    def anew(self) -> SparkFinder:
        """Another one, for tables as they are by then."""
        return SparkFinder.start(self.planner.lake)

    def reads_waiting(self, table: Table) -> bool:
        """If they are few: they are placed in this process to be read."""
        from lakebed.spark.read import are_few  # pyspark is heavy: only when it is used

        context = opened_of(table).writable()
        return are_few([entry.file for entry in live_files(context.stores, table.latest_snapshot())])

    def pin_anew(self, table: Table) -> Table:
        """The table as it is by now, for all texts that follow."""
        return self.planner.pin_anew(table)

    def text(self, sql: Sql, edits: Mapping[tuple[int, int], str] | None = None) -> str:
        """The text with views in place of tables."""
        return self.planner.text(sql, edits)

    def target(self, table: Table, needs: Needs, shown: str) -> str:
        """A view of the table to change."""
        return self.planner.views.add(self.planner.frame_to_change(table, needs), shown)

    def source(self, sql: Sql, shown: Collection[str]) -> SparkSource:
        """The source of a MERGE."""
        text = self.planner.text(sql, shown=shown)
        return SparkSource(self.planner.views.sql(f"SELECT * FROM {text}", keep=True), self.planner)

    def relation_of(self, source: SparkSource, shown: str) -> str:
        """A view of the source, also of one that another finder has planned: the table itself may be in it."""
        if source.planner is not self.planner:
            self.planner.also_reads(source.planner)
        return self.planner.views.add(source.frame, shown)

    def matching(self, rows: pa.Table, fields: Sequence[DataField], alias: str, where: Sql) -> list[dict[str, Any]]:
        """Those of the given rows that meet a condition."""
        from lakebed.spark.read import arrow_frame

        view = self.planner.views.add(arrow_frame(self.planner.views.spark, rows, fields), alias)
        columns = ", ".join(f"{quoted(alias)}.{quoted(field.name)}" for field in fields)
        condition = self.planner.text(where)
        frame = self.planner.views.sql(f"SELECT {columns} FROM {view} AS {quoted(alias)} WHERE {condition}")
        with spark_errors():
            found: list[dict[str, Any]] = until_workers_come(frame.toArrow).to_pylist()
        return found

    def changed(self, text: str, rows: Changed) -> Found:
        """The rows of an UPDATE or DELETE."""
        from lakebed.spark.store_assignment import changed_rows

        frame = self.planner.views.sql(text)
        with spark_errors():
            found = changed_rows(frame, rows.fields, set(rows.set), rows.places, KIND, rows.kind, rows.kind_field)
        return self._found(found, rows.fields)

    def merged(self, text: str, rows: Merged) -> Found:
        """The rows of a MERGE."""
        from lakebed.spark.store_assignment import merged_rows

        frame = self.planner.views.sql(text)
        with spark_errors():
            found = merged_rows(
                frame,
                rows.fields,
                [set(names) for names in rows.set],
                rows.kinds,
                rows.places,
                KIND,
                may_lack=rows.may_lack,
                stars=rows.stars,
                kind_field=rows.kind_field,
            )
        return self._found(found, rows.fields)

    def drop(self) -> None:
        """Takes the views away."""
        self.planner.views.drop()

    def _found(self, frame: DataFrame, fields: Sequence[DataField]) -> Found:
        return collected(frame, fields) if self.planner.is_small else frame


def collected(frame: DataFrame, fields: Sequence[DataField]) -> pa.Table:
    """The rows of a DataFrame, with the precision of a table's columns."""
    with spark_errors():
        rows = until_workers_come(frame.toArrow)
    return to_precision(rows, fields)
