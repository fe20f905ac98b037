"""The Spark streaming source of a PostgreSQL: hands Spark's questions to the planner, and pieces to tasks.

Its rows are envelopes, whose schema never changes. Options hold the settings, no secret, and the state's place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from lakebed.cdc.envelope import ENVELOPE_DDL
from lakebed.cdc.sources.postgres.names import Offset
from lakebed.cdc.sources.postgres.planner import CopyPiece, LogPiece, StreamPlanner, read_piece
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.state import SourceState
from lakebed.cdc.storage import PLAIN, Storage
from lakebed.errors import InvalidOption
from lakebed.records import dataclass
from lakebed.spark.session import prepare_worker


class PostgresDataSource(DataSource):  # type: ignore[misc]
    """Changes of a PostgreSQL by the format name `lakebed-postgres`."""

    storage: ClassVar[Storage] = PLAIN

    @classmethod
    def name(cls) -> str:
        """The word in `format(...)`."""
        return "lakebed-postgres"

    def schema(self) -> str:
        """The envelope's columns."""
        return ENVELOPE_DDL

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """The reader of the stream."""
        for name in ("settings", "state"):
            if name not in self.options:
                raise InvalidOption(f"option `{name}` is missing", hint="start the stream with lakebed.cdc.sync(...)")
        settings = PostgresSettings.from_text(self.options["settings"])
        return _PostgresStreamReader(settings, self.options["state"], self.storage)


@dataclass
class _Piece(InputPartition):  # type: ignore[misc]
    """What one task reads."""

    piece: CopyPiece | LogPiece


class _PostgresStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Made twice by Spark: one plans on the driver, one is sent to tasks. Only the first connects."""

    def __init__(self, settings: PostgresSettings, state: str, storage: Storage) -> None:
        self._settings = settings
        self._state = state
        self._storage = storage
        self._planner_made: StreamPlanner | None = None

    @property
    def _planner(self) -> StreamPlanner:
        if self._planner_made is None:
            self._planner_made = StreamPlanner(self._settings, SourceState(self._state, self._storage))
        return self._planner_made

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where a new stream begins."""
        return self._planner.initial().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """How much of the log a batch has at most."""
        return ReadMaxBytes(self._settings.max_wal_bytes_per_batch)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """How far the next batch goes."""
        limit_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        if not isinstance(limit, ReadMaxBytes | ReadAllAvailable):
            limit_bytes = self._settings.max_wal_bytes_per_batch
        return self._planner.latest(Offset.from_json(start), limit_bytes).to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """The stream ends with what is there now."""
        self._planner.end_at_now()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """What tasks read for a batch."""
        return [_Piece(piece) for piece in self._planner.pieces(Offset.from_json(start), Offset.from_json(end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The envelope rows of one piece; in a task."""
        assert isinstance(partition, _Piece)
        prepare_worker()
        state, piece = SourceState(self._state, self._storage), partition.piece
        rows = read_piece(self._settings, state, piece)
        yield from state.payload_file(piece.end).through(rows) if isinstance(piece, LogPiece) else rows

    def commit(self, end: dict[str, Any]) -> None:
        """A batch is in the lake."""
        self._planner.commit(Offset.from_json(end))

    def stop(self) -> None:
        """The query ended."""
        if self._planner_made is not None:
            self._planner_made.stop()


__all__ = ["PostgresDataSource"]
