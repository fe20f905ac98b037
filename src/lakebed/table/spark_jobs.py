"""What a table asks of Spark. The table layer knows no Spark: a lake hands each of its tables an implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from lakebed.errors import InvalidArgument
from lakebed.metadata.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from lakebed.table.compact import RunPlans
    from lakebed.table.pieces import RunPieces
    from lakebed.table.table import Table


class SparkJobs(Protocol):
    """Reads and writes of whole tables as Spark jobs."""

    def read(self, table: Table, columns: Sequence[str] | None, filter: Any) -> DataFrame:  # noqa: A002
        """The table as a DataFrame."""
        ...

    def read_stream(
        self,
        table: Table,
        columns: Sequence[str] | None,
        filter: Any,  # noqa: A002
        options: Mapping[str, object],
    ) -> DataFrame:
        """The table as a streaming DataFrame."""
        ...

    def write(
        self,
        table: Table,
        frame: DataFrame,
        row_kind: str | None = None,
        overwrite: bool | Mapping[str, Any] | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Writes a DataFrame as one commit."""
        ...

    def compaction(self) -> RunPlans:
        """Runs compactions as Spark jobs."""
        ...

    def pieces(self) -> RunPieces:
        """Runs other work on files as Spark jobs."""
        ...

    def write_stream(
        self,
        table: Table,
        frame: DataFrame,
        checkpoint: str,
        trigger: str | Mapping[str, Any] | None,
        output_mode: str,
        row_kind: str | None,
        query_name: str | None,
    ) -> StreamingQuery:
        """Writes a streaming DataFrame, each micro-batch as one commit."""
        ...


def jobs_of(table: str, jobs: SparkJobs | None) -> SparkJobs:
    """The jobs of a table that was opened through a lake."""
    if jobs is None:
        raise InvalidArgument(
            f"table `{table}` was not opened through a lake, so it has no Spark session",
            hint="open it with lakebed.connect(path).table(name)",
        )
    return jobs
