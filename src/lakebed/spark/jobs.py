"""What tables ask of Spark, bound to one session. A lake hands it to its tables, which know only the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakebed.errors import InvalidArgument
from lakebed.spark.session import Session, import_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from lakebed.changes.read import ChangeRead
    from lakebed.changes.splits import ChangeReader, ChangeSplit
    from lakebed.definition.elsewhere import Elsewhere
    from lakebed.metadata.snapshot import Snapshot
    from lakebed.table.table import Table


class SparkJobs:
    """Reads and writes tables with Spark. Starts a session when it needs one.

    What does the work imports pyspark, which is heavy and may be missing: it is loaded when it is used, and asked for
    by the name of its extra first.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.session.get()

    def read(self, table: Table, columns: Sequence[str] | None, filter: Any) -> DataFrame:  # noqa: A002
        """The table as a DataFrame."""
        import_pyspark()
        from lakebed.spark.read import table_frame

        return table_frame(self.spark, table, columns, filter)

    def read_changes(self, planned: ChangeRead | tuple[ChangeReader, Sequence[ChangeSplit]]) -> DataFrame:
        """Changes that are planned already as a DataFrame."""
        import_pyspark()
        from lakebed.spark.read import changes_frame, planned_frame

        if isinstance(planned, tuple):
            return changes_frame(self.spark, *planned)
        return planned_frame(self.spark, planned)

    def read_stream(
        self,
        table: Table,
        columns: Sequence[str] | None,
        filter: Any,  # noqa: A002
        options: Mapping[str, object],
    ) -> DataFrame:
        """The table as a streaming DataFrame."""
        import_pyspark()
        from lakebed.spark.stream.source import stream_frame

        return stream_frame(self.spark, table, columns, filter, options)

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
        import_pyspark()
        from lakebed.spark.write import write_frame

        if not hasattr(frame, "sparkSession"):
            raise InvalidArgument(
                f"{type(frame).__name__} of {type(frame).__module__.partition('.')[0]} is no Spark DataFrame",
                hint="`write` takes what is in this process, `write_spark` what is on Spark",
            )
        return write_frame(self.spark, table, frame, row_kind, overwrite, commit_user, commit_identifier)

    def elsewhere(self) -> Elsewhere:
        """Runs work on files as Spark jobs."""
        from lakebed.spark.tasks import run_pieces

        return run_pieces(lambda: self.spark)

    def cluster(self) -> str:
        """The master of the session in use, if its tasks run on other machines; empty otherwise, or if none is."""
        return self.session.cluster()

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
        import_pyspark()
        from lakebed.spark.stream.sink import start_sink

        return start_sink(table, frame, checkpoint, trigger, output_mode, row_kind, query_name)
