"""The Spark data source: offsets, steps of the copy, stretches of the log.

A batch is either a step of the copy, of several parts of tables side by side, or a stretch of the log, read by one
task. While tables are being copied the two take turns, so that a part is copied as of a position that is hardly past.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from lakebed.cdc.envelope import COPY, ENVELOPE_DDL, SourceName, chunks_to_arrow, trouble_chunk
from lakebed.cdc.sources.mysql.copy.arrivals import copied_chunks
from lakebed.cdc.sources.mysql.copy.chunk import ChunkReader
from lakebed.cdc.sources.mysql.copy.keys import KeyRange
from lakebed.cdc.sources.mysql.copy.state import CopyState, next_step
from lakebed.cdc.sources.mysql.log.dump import PIECE
from lakebed.cdc.sources.mysql.log.reader import LogReader, borrow_reader
from lakebed.cdc.sources.mysql.server.check import check_server, check_tables
from lakebed.cdc.sources.mysql.server.follow import Follow
from lakebed.cdc.sources.mysql.server.known_booleans import Booleans, KnownBooleans
from lakebed.cdc.sources.mysql.server.server import Server, covers, is_alive, rows
from lakebed.cdc.sources.mysql.settings import ServerSettings
from lakebed.cdc.sources.mysql.stream import StreamReader
from lakebed.cdc.sources.requests import CopyRequests
from lakebed.cdc.storage import PLAIN, Storage
from lakebed.errors import LakebedError, StorageError
from lakebed.metadata.source_position import MariaDbPosition, MySqlPosition
from lakebed.records import dataclass

FORMAT: Final = "lakebed-mysql-changes"
STATE: Final = "state"
"""Option: a directory beside the checkpoint."""
_ORDINALS_OF_A_TASK: Final = 1 << 40
_REPLICA_IDS: Final = 200
_SMALLEST_PIECE: Final = 16 << 10


@dataclass(frozen=True, slots=True)
class Offset:
    """Where the stream is: behind a transaction of the log, with so much copied."""

    position: str
    copy: CopyState

    def to_dict(self) -> dict[str, str]:
        """As Spark keeps it."""
        return {"position": self.position, "copy": self.copy.to_text()}

    @classmethod
    def from_dict(cls, body: dict[str, str]) -> Offset:
        """Inverse of `to_dict`."""
        return cls(body["position"], CopyState.from_text(body["copy"]))


@dataclass
class CopyPart(InputPartition):  # type: ignore[misc]
    """A part of a table, as of a position."""

    number: int
    part: KeyRange
    position: str


@dataclass
class LogPart(InputPartition):  # type: ignore[misc]
    """A stretch of the log."""

    start: str
    end: str
    copied: CopyState
    booleans: Booleans


class MySqlChanges(DataSource):  # type: ignore[misc]
    """Envelope rows of the changes of a MySQL or MariaDB server."""

    storage: ClassVar[Storage] = PLAIN

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> str:
        """The envelope's."""
        return ENVELOPE_DDL

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """The reader of a stream."""
        options = dict(self.options)
        settings, follow = ServerSettings.from_options(options), Follow.from_options(options)
        return MySqlStreamReader(settings, follow, options.get(STATE), self.storage)


class MySqlStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Plans batches on the driver and reads them in tasks."""

    def __init__(
        self, settings: ServerSettings, follow: Follow, state: str | None = None, storage: Storage = PLAIN
    ) -> None:
        self._settings = settings
        self._state = state
        self._storage = storage
        self._booleans: KnownBooleans | None = None
        self._follow = follow.with_replica_id(settings)
        self._target: MariaDbPosition | MySqlPosition | None = None
        self._connection: Any = None
        self._scout: LogReader | None = None
        self._asked_at: dict[str, MariaDbPosition | MySqlPosition] = {}

    def __getstate__(self) -> dict[str, Any]:
        names = ("_settings", "_follow", "_state", "_storage")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_settings"], state["_follow"], state["_state"], state["_storage"])  # type: ignore[misc]

    # --- driver -----------------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        """Everything is still to be copied, as of now or later."""
        with self._server() as server:
            check_server(server.connection, self._settings)
            # The position first: a table that is made after it is in the log, whether it is found below or not.
            position = server.position()
            self._known_booleans().refresh(server, self._follow)
            tables = check_tables(server, self._settings, self._follow) if self._follow.copy else []
            names = tuple((table.database, table.table) for table in tables)
            return Offset(str(position), CopyState(names)).to_dict()

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        """The end of the next batch."""
        offset = Offset.from_dict(start)
        with self._server() as server:
            for request in offset.copy.requests:
                self._forget_request(request)  # it is in an offset that counts
            begin = server.parse(offset.position)
            copy = self._with_requests(server, begin, offset.copy)
            if (
                copy.is_done or offset.copy.step
            ) and not copy.requests:  # after a step of the copy the log has its turn
                end = self._end(server, begin, limit)
                if str(end) != str(begin):
                    self._known_booleans().refresh(server, self._follow)
                    return Offset(str(end), copy).to_dict()
            if copy.is_done:
                return start
            return Offset(offset.position, next_step(copy, server, self._follow)).to_dict()

    def _with_requests(self, server: Server, begin: MariaDbPosition | MySqlPosition, before: CopyState) -> CopyState:
        """With tables that somebody has asked to be copied anew, once others are copied.

        A copy is one as of the stream's position: that has to be past the moment at which it was asked for, or the
        copy would have what was cured before that.
        """
        copy = before.without_step()
        if self._state is None or not copy.is_done or self._target is not None:
            return copy
        for request, names in CopyRequests(self._state, self._storage).all().items():
            asked_at = self._asked_at.setdefault(request, server.position())
            if request not in before.requests and covers(begin, asked_at):
                copy = copy.with_anew(request, names)
        return copy

    def _forget_request(self, request: str) -> None:
        if self._state is not None:
            CopyRequests(self._state, self._storage).forget(request)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """As much of the log as a batch may hold."""
        return ReadMaxBytes(self._follow.max_log_bytes_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remembers where the log ends now."""
        with self._server() as server:
            self._target = server.position()

    def reportLatestOffset(self) -> dict[str, str]:  # noqa: N802
        """Where the log ends."""
        with self._server() as server:
            return {"position": str(server.position())}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        """The tasks of a batch."""
        first, last = Offset.from_dict(start), Offset.from_dict(end)
        if first.position != last.position:
            return [LogPart(first.position, last.position, last.copy, self._known_booleans().names)]
        if start == end:
            return []
        return [CopyPart(i, part, last.position) for i, part in enumerate(last.copy.step)]

    def stop(self) -> None:
        """Lets go of connections."""
        if self._scout is not None:
            self._scout.close()
            self._scout = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _end(
        self, server: Server, begin: MariaDbPosition | MySqlPosition, limit: ReadLimit
    ) -> MariaDbPosition | MySqlPosition:
        """Where a batch that begins there should end: at the log's end, if that is not too far."""
        latest = server.position()
        if self._target is not None and covers(latest, self._target):
            latest = self._target
        if covers(begin, latest):
            return begin
        if not isinstance(limit, ReadMaxBytes):
            return latest
        if sum(int(row[1]) for row in rows(server.connection, "SHOW BINARY LOGS")) <= limit.max_bytes:
            return latest
        return self._scouted(begin, latest, limit.max_bytes)

    def _scouted(
        self, begin: MariaDbPosition | MySqlPosition, latest: MariaDbPosition | MySqlPosition, most: int
    ) -> MariaDbPosition | MySqlPosition:
        """Reads ahead without decoding, to find the transaction behind which a batch is large enough."""
        if self._scout is None or str(self._scout.position) != str(begin):
            if self._scout is not None:
                self._scout.close()
            replica_id = self._follow.replica_id + _REPLICA_IDS + 2
            self._scout = LogReader(self._settings, begin, replica_id, min(PIECE, max(most // 4, _SMALLEST_PIECE)))
        return self._scout.skip_to(latest, most)

    def _known_booleans(self) -> KnownBooleans:
        # Made when needed: the object is sent to tasks, which have no use for it.
        if self._booleans is None:
            self._booleans = KnownBooleans(self._state, self._storage)
        return self._booleans

    def _server(self) -> _Borrowed:
        return _Borrowed(self)

    # --- tasks ------------------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Envelope rows of a task."""
        if isinstance(partition, CopyPart):
            yield from self._copy(partition)
        elif isinstance(partition, LogPart):
            yield from self._stream(partition)

    def _copy(self, task: CopyPart) -> Iterator[pa.RecordBatch]:
        first = task.number * _ORDINALS_OF_A_TASK
        try:
            for chunk in copied_chunks(self._chunk_reader(task.number), task.part, _parse(task.position)):
                yield chunks_to_arrow([replace(chunk, ordinal=first + chunk.ordinal)])
        except LakebedError as error:
            if self._follow.on_error == "stop" or isinstance(error, StorageError):
                raise
            trouble = trouble_chunk(SourceName(task.part.database, "", task.part.table), COPY, error)
            yield chunks_to_arrow([replace(trouble, ordinal=first + _ORDINALS_OF_A_TASK - 1)])

    def _chunk_reader(self, number: int) -> ChunkReader:
        follow = self._follow
        replica_id = follow.replica_id + 2 + number % _REPLICA_IDS
        tells = follow.tells_times
        return ChunkReader(self._settings, follow.type_mapping, follow.zone, replica_id, tells_times=tells)

    def _stream(self, task: LogPart) -> Iterator[pa.RecordBatch]:
        start, end = _parse(task.start), _parse(task.end)
        connection = self._settings.connect_patiently()
        try:
            stream = StreamReader(connection, self._follow, task.copied, task.booleans)
            with borrow_reader(self._settings, start, self._follow.replica_id) as reader:
                for chunks in stream.read(reader, end):
                    yield chunks_to_arrow(chunks)
            for chunks in stream.read_arrivals(self._chunk_reader(0), end):
                yield chunks_to_arrow(chunks)
        finally:
            connection.close()


class _Borrowed:
    """The driver's connection, opened anew if the server has ended it."""

    def __init__(self, owner: MySqlStreamReader) -> None:
        self._owner = owner

    def __enter__(self) -> Server:
        owner = self._owner
        if owner._connection is not None and not is_alive(owner._connection):
            owner._connection = None
        if owner._connection is None:
            owner._connection = owner._settings.connect_patiently()
        return Server.of(owner._connection)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._owner._connection is not None:
            self._owner._connection.close()
            self._owner._connection = None


def _parse(text: str) -> MariaDbPosition | MySqlPosition:
    return MySqlPosition.parse(text) if ":" in text else MariaDbPosition.parse(text)


__all__ = ["FORMAT", "STATE", "CopyPart", "LogPart", "MySqlChanges", "MySqlStreamReader", "Offset"]
