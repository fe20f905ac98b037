"""Keeps tables of a lake in line with a source: one table, many into one, or a whole database; on one Spark query.

import lakebed.cdc
run = lakebed.cdc.sync(lake, "postgres", source_options={...}, database="shop", checkpoint="...")
run.progress; run.stop()
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lakebed.cdc.pipeline import Pipeline
from lakebed.cdc.progress import ProgressBoard, ProgressFile, SyncProgress
from lakebed.cdc.routing import KEEP_CASE, PatternValue, Routing
from lakebed.cdc.rows.computed import ComputedColumn
from lakebed.cdc.rows.metadata import metadata_columns
from lakebed.cdc.rules import DELETE_ROWS, SyncRules, type_modes, type_rules
from lakebed.cdc.schema.sync import FAIL, KEEP, Policies
from lakebed.cdc.sources import ChangeSource, open_source
from lakebed.errors import InvalidArgument, LakebedError
from lakebed.options import check_options
from lakebed.spark.errors import cause_of
from lakebed.spark.late_workers import started
from lakebed.spark.stream.query import batch_errors, query_id_of, trigger_of

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

    from lakebed.lake import Lake

_STOP_S = 60.0
_LOOK_S = 0.05


class SyncRun:
    """A sync that is under way."""

    def __init__(
        self,
        query: StreamingQuery,
        source: ChangeSource,
        pipeline: Pipeline,
        board: ProgressBoard,
        told: ProgressFile | None = None,
    ) -> None:
        self.query = query
        """The Spark query behind it."""
        self._told = told
        self._source = source
        self._pipeline = pipeline
        self._board = board

    @property
    def progress(self) -> SyncProgress:
        """How far it is: rows, rates and lags, for each table and for all."""
        now = self._board.now if self._told is None else self._told.read()
        try:
            ahead = self._source.progress(now.position)
        except LakebedError:
            return now  # who only looks must not be stopped by a source that does not answer
        return replace(now, lag_bytes=ahead.lag_bytes, phase=ahead.phase or now.phase)

    @property
    def is_active(self) -> bool:
        """Whether it is still running."""
        return bool(self.query.isActive)

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Waits for the end, and raises what went wrong; False if the time is over before."""
        try:
            ended = self.query.awaitTermination(timeout_seconds)
        except Exception as error:
            raise self._cause(error) from error
        if ended is None or ended:
            self.check()
            self._close()
            return True
        return False

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
        self.query.stop()
        self._close(in_haste=True)

    def _close(self, *, in_haste: bool = False) -> None:
        self._pipeline.close(in_haste=in_haste)
        self._source.close()

    def _cause(self, error: Exception) -> Exception:
        known = cause_of(self._pipeline.failure or error)
        return known if isinstance(known, Exception) else error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def sync(
    lake: Lake,
    source: ChangeSource | str,
    database: str | None = None,
    table: str | None = None,
    *,
    checkpoint: str | os.PathLike[str],
    trigger: str | Mapping[str, Any] | None = None,
    source_options: Mapping[str, Any] | None = None,
    including: str = ".*",
    excluding: str | None = None,
    including_databases: str = ".*",
    excluding_databases: str | None = None,
    prefix: str = "",
    suffix: str = "",
    prefixes_db: Mapping[str, str] | None = None,
    suffixes_db: Mapping[str, str] | None = None,
    mapping: Mapping[str, str] | None = None,
    merge_shards: bool | None = None,
    case: str = KEEP_CASE,
    primary_keys: Sequence[str] = (),
    sync_primary_keys_from_source_schema: bool = True,
    partition_keys: Sequence[str] = (),
    computed_columns: Sequence[str] = (),
    metadata_columns: Sequence[str] = (),
    metadata_column_prefix: str = "",
    type_mapping: Sequence[str] = (),
    table_conf: Mapping[str, Any] | None = None,
    rename: str = KEEP,
    drop: str = KEEP,
    incompatible: str = FAIL,
    ignore_incompatible: bool = False,
    truncate: str = DELETE_ROWS,
    query_name: str | None = None,
    on_step: Callable[[str], None] | None = None,
    here_bytes: int | None = None,
) -> SyncRun:
    """Starts a sync and returns it; everything is checked, at the source and in the lake, before anything is made.

    `source` is a source or its name (`postgres`, `mysql`, `kafka`, `files`), with its arguments in `source_options`.
    `database` is that of the lake. With `table` everything that the patterns let through goes into that one table;
    without it each table goes into one of its own, and new ones are picked up while the sync runs.

    `table_conf` holds options of the tables, or maps patterns to options: `{"orders|lines": {"bucket": "4"}}`.
    `trigger` is an interval such as "10 seconds", or {"availableNow": True} to catch up and end. `rename`, `drop`,
    `incompatible` and `truncate` say what happens then; see `lakebed.cdc.schema.sync.Policies`.
    """
    if lake is None or not hasattr(lake, "create_table"):
        raise InvalidArgument("the first argument is no lake", hint="pass what lakebed.connect(...) returns")
    how_often = None if trigger is None else trigger_of(trigger)
    modes = type_modes(type_mapping)
    opened = _opened(source, source_options, including, excluding, type_mapping, table)
    rules = SyncRules(
        Routing(
            database or lake.current_database,
            table,
            including,
            excluding,
            including_databases,
            excluding_databases,
            prefix,
            suffix,
            dict(prefixes_db or {}),
            dict(suffixes_db or {}),
            dict(mapping or {}),
            merge_shards is not False,
            case,
        ),
        Policies(rename, drop, incompatible, type_rules(modes)),
        _names(primary_keys, "primary_keys"),
        sync_primary_keys_from_source_schema,
        _names(partition_keys, "partition_keys"),
        tuple(ComputedColumn.parse(text) for text in _names(computed_columns, "computed_columns")),
        _metadata(metadata_columns, metadata_column_prefix, opened),
        _table_conf(table_conf),
        modes,
        truncate,
        ignore_incompatible,
        table is not None,
        merge_shards,
    )
    opened.follow_only(rules.routing.patterns)
    opened.check()
    board = ProgressBoard()
    place = os.fspath(checkpoint)
    size = {} if here_bytes is None else {"here_bytes": here_bytes}
    pipeline = Pipeline(lake, rules, place, source=opened.name, board=board, on_step=on_step, **size)
    pipeline.prepare(opened.tables(), _former_user(lake, place))
    opened.keep_state_in(f"{place.rstrip('/')}/source-state")
    opened.prepare()
    told = ProgressFile(place) if _is_connect(lake) else None
    if told is not None:
        told.remove()
    query = _start(lake, opened, pipeline, place, how_often, query_name)
    return SyncRun(query, opened, pipeline, board, told)


def _opened(
    source: ChangeSource | str,
    options: Mapping[str, Any] | None,
    including: str,
    excluding: str | None,
    type_mapping: Sequence[str],
    table: str | None,
) -> ChangeSource:
    """The source. One that is named gets the patterns too: a database need not send what is left out here."""
    if not isinstance(source, str):
        return source
    given = dict(options or {})
    if source in ("postgres", "mysql"):
        given.setdefault("including", including)
        if excluding is not None:
            given.setdefault("excluding", excluding)
        if table is None:
            given.setdefault("tables_without_key", "skip")
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
    except Exception:  # noqa: BLE001 - whatever a store says about a file that is not there
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


def _names(given: Sequence[str], what: str) -> tuple[str, ...]:
    if isinstance(given, str) or not all(isinstance(name, str) and name for name in given):
        raise InvalidArgument(f"{what} is {given!r}", hint=f'pass a list of texts: {what}=["id"]')
    return tuple(given)


def _metadata(kinds: Sequence[str], prefix: str, source: ChangeSource) -> Any:
    return metadata_columns(_names(kinds, "metadata_columns"), prefix, source.metadata_columns)


def _table_conf(given: Mapping[str, Any] | None) -> tuple[PatternValue, ...]:
    """Options for all tables, or for those that a pattern matches; checked now, not in the first batch."""
    general: dict[str, str] = {}
    patterns: list[PatternValue] = []
    for key, value in (given or {}).items():
        if isinstance(value, Mapping):
            checked = check_options(dict(value), for_create=True, columns=None)
            patterns.append(PatternValue(key, checked))
        else:
            general |= check_options({key: value}, for_create=True, columns=None)
    return (PatternValue(".*", general), *patterns) if general else tuple(patterns)


__all__ = ["SyncRun", "sync"]
