"""Keeps tables of a lake in line with a source: one table, many into one, or a whole database; on one Spark query.

import lakebed.cdc
run = lakebed.cdc.sync(lake, "postgres", source_options={...}, database="shop", checkpoint="...")
run.progress; run.stop()
"""

from __future__ import annotations

import logging
import os
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from lakebed.cdc.arguments import SyncArguments, check_names, sync_rules
from lakebed.cdc.batch.notes import SyncNotes
from lakebed.cdc.checkpoint import CheckpointLock, SyncRecord
from lakebed.cdc.patience import Patience, span_seconds
from lakebed.cdc.pipeline import Pipeline
from lakebed.cdc.progress import ProgressBoard, ProgressFile, SyncProgress
from lakebed.cdc.rules import SyncRules, type_modes
from lakebed.cdc.sources import ChangeSource, open_source, source_class
from lakebed.cdc.storage import Storage
from lakebed.cleanup import on_failure
from lakebed.errors import InvalidArgument, LakebedError
from lakebed.lineage import Dataset, Job, Run, begun, table_dataset
from lakebed.metrics.families import CDC_LOG_LAG, CDC_RECONNECTS
from lakebed.spark.cluster import check_seen_by_tasks
from lakebed.spark.errors import cause_of
from lakebed.spark.late_workers import started
from lakebed.spark.stream.query import batch_errors, query_id_of, trigger_of

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

    from lakebed.lake import Lake

_log = logging.getLogger(__name__)

_STOP_S = 60.0
_CALM_S = 10.0
"""A query that was started again and has nothing to do counts as well after so long."""
_LOOK_S = 0.05
_LEAST_S = 0.001
_NO_FILE_SYSTEM = ("No FileSystem for scheme", "UnsupportedFileSystemException", "S3AFileSystem not found")
"""What Hadoop says of URLs that it has no module for."""


class SyncRun:
    """A sync that is under way."""

    def __init__(
        self,
        query: StreamingQuery,
        source: ChangeSource,
        pipeline: Pipeline,
        board: ProgressBoard,
        told: ProgressFile | None = None,
        again: Callable[[], StreamingQuery] | None = None,
        patience: Patience | None = None,
        lock: CheckpointLock | None = None,
        trace: Run | None = None,
    ) -> None:
        self.query = query
        """The Spark query behind it; another one after a failure that `wait` has made up for."""
        self._told = told
        self._again = again
        self._patience = patience or Patience(0.0)
        self._batches = 0
        self._trouble = ""
        self._lock = lock
        self._trace = trace
        if lock is not None:
            this = weakref.ref(self)
            lock.is_used = lambda: (run := this()) is not None and run._is_used()
        self._source = source
        self._pipeline = pipeline
        self._board = board

    @property
    def progress(self) -> SyncProgress:
        """How far it is: rows, rates and lags, for each table and for all."""
        now = self._board.now if self._told is None else self._told.read()
        try:
            now = replace(now, skipped={**now.skipped, **self._source.left_out()})
            ahead = self._source.progress(now.position)
        except LakebedError as error:
            # Who only looks must not be stopped by a source that does not answer.
            self._trouble = error.message
            return replace(now, trouble=self.trouble)
        self._trouble = ""
        if ahead.lag_bytes is not None:
            CDC_LOG_LAG.tell(ahead.lag_bytes, *self._pipeline.labels)
        return replace(now.at(ahead.phase, ahead.lag_bytes), trouble=self.trouble)

    @property
    def trouble(self) -> str:
        """What it waits for, such as a server that is away; empty while all is well."""
        return self._patience.why or self._trouble

    @property
    def is_active(self) -> bool:
        """Whether it is still running, or waits to go on."""
        return bool(self.query.isActive) or self._patience.again_at is not None

    def _is_used(self) -> bool:
        try:
            return self.is_active
        except Exception:  # noqa: BLE001 - Spark is gone, with all its queries
            return False

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Waits for the end, and raises what went wrong; False if the time is over before.

        If the sync is to go on trying (`give_up_after`), a failure that passes, such as a server that restarts, does
        not end it: here the query is started again.
        """
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:
            try:
                if not self._restarted(deadline):
                    return False
                ended = self.query.awaitTermination(_left(deadline))
                if ended is not None and not ended:
                    self._note_success()
                    return False
                self.check()
            except LakebedError as error:
                if not self._patience.endures(error):
                    self._trace_failure(error)
                    raise
            except Exception as error:
                cause = self._cause(error)
                if not self._patience.endures(cause):
                    self._trace_failure(cause)
                    raise cause from error
            else:
                self._close()
                return True

    def _restarted(self, deadline: float | None) -> bool:
        """Starts the query again once that is due; False if the time is over before."""
        patience = self._patience
        if patience.again_at is None or self._again is None:
            return True
        left = _left(deadline)
        pause_s = max(patience.again_at - time.monotonic(), 0.0)
        time.sleep(pause_s if left is None else min(pause_s, left))
        if left is not None and left < pause_s:
            return False
        self._batches = self._board.now.batches
        self._source.probe()
        self.query = self._again()
        CDC_RECONNECTS.tell(1, *self._pipeline.labels)
        patience.again_at = None
        return True

    def _note_success(self) -> None:
        """All is well again once a batch is through, or the query runs and the source answers."""
        patience = self._patience
        if patience.since is not None and patience.again_at is None:
            is_calm = time.monotonic() > patience.since + _CALM_S and self.query.isActive
            if self._board.now.batches > self._batches or is_calm:
                patience.succeeded()

    def check(self) -> None:
        """Raises what made the sync stop, if something did."""
        error = None if self.query.isActive else self.query.exception()
        if error is not None:
            raise self._cause(error) from error

    def stop(self) -> None:
        """Ends the sync, after the batch that is under way if that takes no more than a minute.

        A later sync with the same checkpoint goes on from there, wherever this one was stopped.
        """
        deadline = time.monotonic() + _STOP_S
        while self.query.isActive and self.query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        self._patience.again_at = None
        self.query.stop()
        self._close(in_haste=True)

    def _trace_failure(self, error: Exception) -> None:
        if self._trace is not None:
            self._trace.fail(error)

    def _close(self, *, in_haste: bool = False) -> None:
        if self._trace is not None:
            self._trace.complete()
        self._pipeline.close(in_haste=in_haste)
        self._source.close()
        if self._lock is not None:
            self._lock.release()

    def _cause(self, error: Exception) -> Exception:
        known = cause_of(self._pipeline.failure or error)
        return known if isinstance(known, Exception) else error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def _left(deadline: float | None) -> float | None:
    """Never nothing: Spark takes that for a mistake, and to start a query again may take as long as there was."""
    return None if deadline is None else max(deadline - time.monotonic(), _LEAST_S)


def sync(
    lake: Lake,
    source: ChangeSource | str,
    database: str | None = None,
    table: str | None = None,
    *,
    checkpoint: str | os.PathLike[str],
    trigger: str | Mapping[str, Any] | None = None,
    source_options: Mapping[str, Any] | None = None,
    query_name: str | None = None,
    **rules: Unpack[SyncArguments],
) -> SyncRun:
    """Starts a sync and returns it; everything is checked, at the source and in the lake, before anything is made.

    `source` is a source or its name (`postgres`, `mysql`, `kafka`, `files`), with its arguments in `source_options`.
    `database` is that of the lake. With `table` everything that the patterns let through goes into that one table;
    without it each table goes into one of its own, and new ones are picked up while the sync runs.

    `table_conf` holds options of the tables, or maps patterns to options: `{"orders|lines": {"bucket": "4"}}`.
    `trigger` is an interval such as "10 seconds", or {"availableNow": True} to catch up and end. `rename`, `drop`,
    `incompatible` and `truncate` say what happens then; see `lakebed.cdc.schema.sync.Policies`. All `rules` that there
    are stand in `lakebed.cdc.arguments.SyncArguments`; what is kept of the past (`deletes`, `history`, `audit`) in
    `PastArguments` beside it. With `give_up_after`, such as "1 hour" or "forever", `wait` goes on trying for so long
    when the source is away.
    """
    check_names(rules)
    patience = Patience(span_seconds(rules.get("give_up_after")))
    if lake is None or not hasattr(lake, "create_table"):
        raise InvalidArgument("the first argument is no lake", hint="pass what lakebed.connect(...) returns")
    how_often = None if trigger is None else trigger_of(trigger)
    type_modes(rules.get("type_mapping", ()))  # a slip is found before the source is asked anything
    opened = _opened(source, source_options, table, rules)
    wanted = sync_rules(database or lake.current_database, table, opened, rules)
    opened.follow_only(wanted.routing.patterns)
    if wanted.keeping.needs_times:
        opened.tell_times(changes=wanted.keeping.audit is not None)
    place = os.fspath(checkpoint)
    former_user = _former_user(lake, place)
    if former_user:
        _await_source(opened, patience)  # at the very first start a slip is more likely than a server that is away
    opened.check()
    lock = None if _is_connect(lake) else CheckpointLock.take(place)
    with on_failure(lambda: lock.release() if lock is not None else None):
        pipeline = _pipeline(lake, opened, wanted, place, rules)
        pipeline.prepare(opened.tables(), former_user)

        def start() -> StreamingQuery:
            return _start(lake, opened, pipeline, place, how_often, query_name)

        return _begun(lake, opened, pipeline, place, start, patience, lock)


def _pipeline(lake: Lake, opened: ChangeSource, wanted: SyncRules, place: str, rules: SyncArguments) -> Pipeline:
    here_bytes = rules.get("here_bytes")
    size = {} if here_bytes is None else {"here_bytes": here_bytes}
    notes = SyncNotes(opened.name, opened.settled_at, keeps_transactions=opened.keeps_transactions)
    step, board = rules.get("on_step"), ProgressBoard()
    return Pipeline(lake, wanted, place, source=opened.name, board=board, on_step=step, notes=notes, **size)


def _begun(
    lake: Lake,
    opened: ChangeSource,
    pipeline: Pipeline,
    place: str,
    start: Callable[[], StreamingQuery],
    patience: Patience,
    lock: CheckpointLock | None,
) -> SyncRun:
    storage = Storage(lake.storage_options, place)
    for source, error in opened.troubles():
        pipeline.park(source, error)
    opened.keep_state_in(f"{place.rstrip('/')}/source-state", storage)
    if opened.shares_state:
        _check_place(lake, storage, f"{place.rstrip('/')}/source-state")
    opened.prepare()
    record = SyncRecord.now(place, opened.name, pipeline.rules.routing.database, dict(opened.reader_options()))
    record.write(storage)
    told = ProgressFile(place, storage) if _is_connect(lake) else None
    if told is not None:
        told.remove()
    trace = begun(lambda: _job(opened, pipeline))
    return SyncRun(start(), opened, pipeline, pipeline.board, told, start, patience, lock, trace)


def _job(source: ChangeSource, pipeline: Pipeline) -> Job:
    """What lineage tells of a sync."""
    return Job(
        ".".join(("sync", *pipeline.labels)),
        "SYNC",
        lambda: [Dataset(source.origin, name) for name in pipeline.reads_and_writes()[0]],
        lambda: map(table_dataset, pipeline.reads_and_writes()[1]),
        is_stream=True,
    )


def _check_place(lake: Lake, storage: Storage, directory: str) -> None:
    check_seen_by_tasks(lake.spark, *storage.open(directory), "the checkpoint's directory")


def _await_source(source: ChangeSource, patience: Patience) -> None:
    """Returns once the source answers; raises what stands against it when that takes too long."""
    while True:
        try:
            source.probe()
        except LakebedError as error:
            is_told = patience.since is not None
            if not patience.endures(error):
                raise
            if not is_told:
                _log.warning("waiting: %s", error.message)
            time.sleep(max((patience.again_at or 0.0) - time.monotonic(), 0.0))
        else:
            patience.succeeded()
            return


def _opened(
    source: ChangeSource | str, options: Mapping[str, Any] | None, table: str | None, rules: SyncArguments
) -> ChangeSource:
    """The source. One that is named gets the patterns too: a database need not send what is left out here."""
    if not isinstance(source, str):
        return source
    given = dict(options or {})
    if source_class(source).takes_patterns:
        given.setdefault("including", rules.get("including", ".*"))
        excluding = rules.get("excluding")
        if excluding is not None:
            given.setdefault("excluding", excluding)
        if table is None:
            given.setdefault("tables_without_key", "skip")
        if "on_error" in rules:
            given.setdefault("on_error", rules["on_error"])
    type_mapping = rules.get("type_mapping", ())
    if type_mapping:
        given.setdefault("type_mapping", tuple(type_mapping))
    return open_source(source, **given)


def _is_connect(lake: Lake) -> bool:
    """Whether batches are made in another process, on the server of Spark Connect."""
    return type(lake.spark).__module__.startswith("pyspark.sql.connect")


def _former_user(lake: Lake, checkpoint: str) -> str:
    """The commit user of the sync that the checkpoint belongs to; empty if it is a new one."""
    local = Path(checkpoint.removeprefix("file://").removeprefix("file:"))
    if "://" not in checkpoint or checkpoint.startswith("file:"):
        return query_id_of(lake.spark, checkpoint) if (local / "metadata").exists() else ""
    try:
        return query_id_of(lake.spark, checkpoint)
    except Exception as error:
        if any(sign in str(error) for sign in _NO_FILE_SYSTEM):
            scheme = checkpoint.partition(":")[0]
            raise InvalidArgument(
                f"Spark can not keep a checkpoint at {checkpoint}: it knows no file system for `{scheme}`",
                hint="give Spark the module for it, hadoop-aws for s3 (see docs/cluster.md); or choose a directory, "
                "which all machines of a cluster see",
            ) from error
        return ""


def _start(
    lake: Lake,
    source: ChangeSource,
    pipeline: Pipeline,
    checkpoint: str,
    trigger: Mapping[str, Any] | None,
    query_name: str | None,
) -> StreamingQuery:
    stream = source.stream(lake.spark)

    def process(batch: Any, batch_id: int) -> None:
        with batch_errors(batch_id):
            pipeline.process(source.envelopes(batch), batch_id)

    writer = stream.writeStream.option("checkpointLocation", checkpoint).foreachBatch(process)
    if query_name is not None:
        writer = writer.queryName(query_name)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    return started(writer)


__all__ = ["SyncRun", "sync"]
