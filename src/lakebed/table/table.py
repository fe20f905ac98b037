"""The handle users hold: read, write, travel in time, change the schema, look after the table.

Methods check their arguments and hand over. What other parts of Lakebed ask of a table is not here: `plans` has reads,
streams and writes in parts, `opened` what a table may be used for as it was opened.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from lakebed.calls import explains_calls
from lakebed.changes.scan_modes import batch_snapshot
from lakebed.changes.views import shows_changes, view_of
from lakebed.definition.arguments import (
    filter_argument,
    names_argument,
    options_argument,
    options_by_keyword,
    snapshot_argument,
    tag_argument,
)
from lakebed.definition.context import BINLOG
from lakebed.definition.elsewhere import jobs_of
from lakebed.definition.incoming import is_spark_frame
from lakebed.definition.moments import is_moment, snapshot_at_time, snapshot_of_tag, to_millis
from lakebed.errors import InvalidArgument, NotFound, Unsupported
from lakebed.metadata.snapshot import Snapshot, Snapshots
from lakebed.notebook import html_table, short_list
from lakebed.options import CONTINUOUS_DISCOVERY_INTERVAL
from lakebed.read.plan import ScanPlan
from lakebed.schema.changes import SchemaChange
from lakebed.schema.table_schema import TableSchema
from lakebed.table.opened import OpenedTable
from lakebed.table.plans import PlannedRead, fixed_now, plan_read, plan_stream, shows_only_changes
from lakebed.table.reading import TableReading
from lakebed.table.upkeep import TableUpkeep
from lakebed.types.arrow import to_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from lakebed.changes.follow import ChangeStream
    from lakebed.changes.read import ChangeRead
    from lakebed.explain.advise.advice import Advice
    from lakebed.explain.health import Health
    from lakebed.explain.scan import ScanExplained
    from lakebed.explain.why import Why
    from lakebed.read.lookup import KeyLookup
    from lakebed.read.value_lookup import ValueLookup
    from lakebed.table.pictures.lsm import LsmPicture
    from lakebed.table.pictures.timeline import Timeline
    from lakebed.table.writer import TableWriter

_REPLACING = "overwrite=True to replace the rows; without it they are added, or replace those of the same key"
_ARGUMENTS = {
    **{name: {"mode": _REPLACING, "if_exists": _REPLACING} for name in ("write", "write_spark", "writer")},
    "write_stream": {
        "checkpoint_location": "checkpoint=...",
        "checkpointLocation": "checkpoint=...",
        "mode": "output_mode='append', 'update' or 'complete'",
        "outputMode": "output_mode='append', 'update' or 'complete'",
    },
    "at": {
        **dict.fromkeys(("version", "version_as_of", "snapshot_id"), "at(snapshot=...), or at(tag=...)"),
        **dict.fromkeys(("time", "timestamp_as_of", "as_of"), "at(timestamp='2024-05-14 13:45:00')"),
    },
    "changes": {
        **dict.fromkeys(
            ("start", "start_version", "starting_version", "from_", "after"), "changes(since=..., until=...)"
        ),
        **dict.fromkeys(("end", "end_version", "ending_version", "to", "before"), "changes(since=..., until=...)"),
    },
    "snapshots": {"limit": "t.snapshots()[-n:] for the newest"},
    "with_options": {"*": "with_options({'scan.snapshot-id': 1})"},
}
"""Arguments that users of other libraries try."""


@explains_calls(_ARGUMENTS)
class Table(TableReading, TableUpkeep):
    """One table of a lake. Always shows the latest schema; `at(...)` gives a read-only view of an earlier state.

    What looks after it (compaction, tags, rollback, cleaning, partitions, branches) is in `TableUpkeep`.
    """

    def __init__(self, opened: OpenedTable) -> None:
        self._opened = opened

    def __repr__(self) -> str:
        where = f" at snapshot {self._opened.pinned.id}" if self._opened.pinned else ""
        return f"<lakebed table {self.name}{where}: {short_list(self.columns)}>"

    def _repr_html_(self) -> str:
        where = f" at snapshot {self._opened.pinned.id}" if self._opened.pinned else ""
        return _shown(f"{self.name}{where}", self.arrow_schema, self.schema)

    # --- what it is ----------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """`database.table`."""
        return self._opened.context.name

    @property
    def schema(self) -> TableSchema:
        """Columns, keys and options as stored."""
        return self._opened.current().schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of what `to_arrow` returns."""
        context = self._opened.current()
        return view_of(context).schema if shows_changes(context) else to_arrow_schema(context.shown_fields)

    @property
    def hidden_schema(self) -> pa.Schema:
        """Columns that `to_arrow` returns only if they are asked for by name."""
        context = self._opened.current()
        if shows_changes(context):
            return pa.schema([])
        return to_arrow_schema((*context.hidden_fields, *context.kept_fields))

    @property
    def options(self) -> dict[str, str]:
        """Stored options, with those of this handle on top."""
        return dict(self._opened.current().options.raw)

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Names of the primary-key columns; empty for an append table."""
        return self._opened.current().schema.primary_keys

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Names of the partition columns."""
        return self._opened.current().schema.partition_keys

    @property
    def comment(self) -> str | None:
        """The table's comment."""
        return self._opened.current().schema.comment

    @property
    def location(self) -> str:
        """Where the table's files lie."""
        return self._opened.context.paths.root

    # --- reading -------------------------------------------------------------------------------------------------

    def _planned(self, columns: Sequence[str] | None, filter: Any) -> PlannedRead | pa.Table:  # noqa: A002
        return plan_read(self, columns, filter)

    def _fixed(self) -> Table:
        return self._as(fixed_now(self))

    def to_spark(self, columns: Sequence[str] | None = None, filter: Any = None) -> DataFrame:  # noqa: A002
        """Matching rows as a Spark DataFrame of the current snapshot.

        Files that need no merge are read by Spark itself, the rest is merged in Arrow by Spark's Python workers.
        """
        return jobs_of(self.name, self._opened.context.jobs).read(self, columns, filter)

    def lookup(
        self,
        keys: Any,
        columns: Sequence[str] | None = None,
        *,
        by: Sequence[str] | None = None,
        null_safe: bool = False,
    ) -> pa.Table:
        """The current rows of these keys of a primary-key table, in the order of the keys; keys without one give none.

        `keys` is anything with the columns of the primary key, others are ignored: pyarrow, pandas, polars, a list of
        dicts; or, for a key of one column, its values. A key that is given twice brings its row twice. Only files that
        may hold the keys are read, and those that are asked for again get a local copy, in which keys are found fast.

        With `by`, rows are looked up by the values of these columns instead, of any table: every row whose values are
        among those given comes once, in any order. By the first columns of the key that is about as fast as by all of
        it; by others, what statistics and indexes can not exclude is read. A null finds nothing, unless `null_safe`:
        then it finds null.
        """
        finder = self.key_lookup(columns, by=by, null_safe=null_safe)
        return finder.rows(keys)

    @overload
    def key_lookup(self, columns: Sequence[str] | None = None) -> KeyLookup: ...

    @overload
    def key_lookup(
        self, columns: Sequence[str] | None = None, *, by: Sequence[str] | None, null_safe: bool = False
    ) -> KeyLookup | ValueLookup: ...

    def key_lookup(
        self, columns: Sequence[str] | None = None, *, by: Sequence[str] | None = None, null_safe: bool = False
    ) -> KeyLookup | ValueLookup:
        """Finds rows of the current snapshot as often as asked: `rows(keys)`, or `find(keys)` to hear which are there.

        With `by` it finds them by these columns, with `rows` only. It can be pickled, so the tasks of a Spark job can
        use it.
        """
        from lakebed.read.lookup import KeyLookup
        from lakebed.read.value_lookup import ValueLookup

        context = self._opened.readable()
        if shows_only_changes(context):
            raise InvalidArgument(f"`{self.name}` shows changes, which have no key", hint="look up in the table itself")
        names = None if columns is None else names_argument(columns, "columns")
        snapshot = self._opened.pinned or batch_snapshot(context)
        meant = context.as_meant_in(snapshot)
        if by is not None:
            return ValueLookup.of(meant, snapshot, names, names_argument(by, "by"), null_safe)
        if null_safe:
            raise InvalidArgument(
                "null_safe goes with `by`: keys have no nulls", hint="name the columns to look up by in `by`"
            )
        return KeyLookup.of(meant, snapshot, names)

    def why(self, keys: Any, *, history: bool = True) -> Why:
        """Why the rows of these keys of a primary-key table are as they are; `keys` are those of `lookup`.

        For each key every stored version, in the order in which they are merged, with its file and the snapshot that
        brought it, and for each column which version its value comes from and by which rule. With `history`, also what
        earlier snapshots held of the key. A single key may be given as a value, or as a dict of its columns.
        """
        from lakebed.explain.why import explain_keys

        context = self._opened.readable()
        if shows_only_changes(context):
            raise InvalidArgument(f"`{self.name}` shows changes, which have no key", hint="ask the table itself")
        snapshot = self._opened.pinned or batch_snapshot(context)
        given = [keys] if isinstance(keys, _LONE_KEYS) else keys
        return explain_keys(context.as_meant_in(snapshot), snapshot, given, history=history)

    def explain(self, columns: Sequence[str] | None = None, filter: Any = None) -> ScanExplained:  # noqa: A002
        """What a read of these columns with this filter opens, and what each rule has left out before.

        Manifests, partitions, buckets, files and row groups that are left after each step; which splits are merged and
        which are read as stored; bytes.
        """
        from lakebed.explain.scan import explain_scan

        planned = plan_read(self, columns, filter)
        if not isinstance(planned, tuple):
            raise InvalidArgument(f"`{self.name}` shows changes", hint="explain a read of the table itself")
        return explain_scan(*planned)

    def health(self, *, deep: bool = False) -> Health:
        """What of the table will cost its readers or writers, how much, and the command that mends it.

        From metadata alone; `deep` also lists the table's directories, to find files that nothing refers to.
        """
        from lakebed.explain.health import health

        return health(self._opened.current(), deep=deep)

    def advise(
        self, days: float = 7, *, reads: float = 24, settings: Sequence[Mapping[str, str]] | None = None
    ) -> Advice:
        """What the commits of the last days would have cost under other settings, and how to set the best of them.

        Replays the history as far as snapshots are kept: sizes, rows and times, from metadata alone. `reads` is how
        often a day somebody reads the whole table, which the cost counts with; `settings` are options to try instead of
        those that may help.
        """
        from lakebed.explain.advise.advice import advise

        snapshot = self._opened.pinned or batch_snapshot(self._opened.current())
        return advise(self._opened.current(), snapshot, days=days, reads=reads, settings=settings)

    def scan(self, filter: Any = None) -> ScanPlan:  # noqa: A002
        """Which files a read with this filter would open."""
        planned = plan_read(self, None, filter)
        return planned[1] if isinstance(planned, tuple) else planned.plan()

    def changes(self, since: int = 0, until: int | None = None, *, columns: Sequence[str] | None = None) -> pa.Table:
        """Rows added after snapshot `since` up to `until`, in commit order, with a `rowkind` column in front."""
        from lakebed.changes.range import read_changes
        from lakebed.changes.views import packed_changes

        context = self._opened.readable()
        pinned = self._opened.pinned
        names = None if columns is None else names_argument(columns, "columns")
        if context.view == BINLOG:
            if names is not None:
                raise Unsupported(f"`{self.name}` shows all columns, as arrays", hint="select from what is given")
            names = context.schema.field_names
        changes = read_changes(context, since, pinned.id if until is None and pinned else until, names)
        return packed_changes(context, changes) if context.view == BINLOG else changes

    def diff(
        self,
        before: int | str | dt.datetime | dt.date,
        after: int | str | dt.datetime | dt.date | None = None,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002
    ) -> pa.Table:
        """What makes the state of one snapshot, tag or moment that of another, with a `rowkind` column in front.

        Without `after` it is what the table shows now. New rows are `+I`, rows that are gone `-D`, others that differ
        `-U` with the old row and `+U` with the new one. Snapshot 0 is the empty table.
        """
        return self._difference(before, after, columns, filter).to_table()

    def _difference(
        self,
        before: int | str | dt.datetime | dt.date,
        after: int | str | dt.datetime | dt.date | None,
        columns: Sequence[str] | None,
        filter: Any,  # noqa: A002
    ) -> ChangeRead:
        from lakebed.changes.range import state_named
        from lakebed.changes.read import ChangeReading
        from lakebed.changes.views import DiffRows

        context = self._opened.readable()
        shown = [each.name for each in context.schema.fields if each not in context.kept_fields]
        names = ["rowkind", *(shown if columns is None else names_argument(columns, "columns"))]
        reading = ChangeReading.asked(DiffRows(context), names, filter)
        shown_now = self._opened.pinned or context.stores.snapshots.latest()
        then = shown_now if after is None else state_named(context, after)
        return reading.of_difference(state_named(context, before), then)

    def changes_to_spark(
        self, since: int = 0, until: int | None = None, *, columns: Sequence[str] | None = None
    ) -> DataFrame:
        """What `changes` tells as a Spark DataFrame. Several tasks read it; its partitions are in commit order."""
        from lakebed.changes.range import planned_changes

        context, pinned = self._opened.readable(), self._opened.pinned
        if context.view == BINLOG:
            raise Unsupported(
                f"`{self.name}` shows changes one by one, each in one row, which Spark's tasks can not tell apart",
                hint="take the changes of the table itself, or read `t$binlog` with option `incremental-between`",
            )
        names = None if columns is None else names_argument(columns, "columns")
        reader, splits = planned_changes(context, since, pinned.id if until is None and pinned else until, names)
        return jobs_of(self.name, self._opened.context.jobs).read_changes((reader, list(splits)))

    def diff_to_spark(
        self,
        before: int | str | dt.datetime | dt.date,
        after: int | str | dt.datetime | dt.date | None = None,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002
    ) -> DataFrame:
        """What `diff` tells as a Spark DataFrame, read by several tasks. A `-U` comes directly before its `+U`."""
        jobs = jobs_of(self.name, self._opened.context.jobs)
        return jobs.read_changes(self._difference(before, after, columns, filter))

    def follow(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002
        *,
        options: Mapping[str, object] | None = None,
        position: Mapping[str, Any] | None = None,
        wait: bool = False,
    ) -> ChangeStream:
        """The table as a stream: an iterator of Arrow tables, one for each snapshot with changes, `rowkind` in front.

        By default the whole table comes first, as inserts; `options` such as `scan.mode` choose another start, and
        `consumer-id` keeps progress in the table. The iterator ends when it has caught up, or waits for more if asked
        to. Its `position` is plain data with which a later call goes on. `filter` chooses events by their own values
        and their `rowkind`: an update that takes a row out of it brings the old row only.
        """
        from lakebed.changes.follow import ChangeStream
        from lakebed.changes.position import StreamPosition

        scan = plan_stream(self, columns, filter, options)
        start = None if position is None else StreamPosition.from_members(position)
        poll_ms = scan.context.options[CONTINUOUS_DISCOVERY_INTERVAL]
        return ChangeStream(scan, scan.context.clock, poll_ms, start, wait)

    def read_stream(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002
        *,
        options: Mapping[str, object] | None = None,
        **scan_options: object,
    ) -> DataFrame:
        """The table as a streaming DataFrame, `rowkind` in front: `+I`, `-U`, `+U` or `-D`.

        By default the whole table comes first, as inserts, and then every change. Options choose another start, how
        much a micro-batch takes, and more: by their own names in `options`, or as keywords (`scan_mode="latest"` is
        `scan.mode`). `filter` chooses events, as in `follow`. Columns are those the table has now: one that is added
        later is not shown, one that is dropped is null from then on, a renamed one goes on.
        """
        given = {**options_argument(options), **options_by_keyword(scan_options)}
        return jobs_of(self.name, self._opened.context.jobs).read_stream(self, columns, filter, given)

    # --- reading it at another time, under other options, on another branch --------------------------------------

    def at(
        self,
        point: int | str | dt.datetime | dt.date | None = None,
        /,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        timestamp: int | str | dt.datetime | dt.date | None = None,
    ) -> Table:
        """The table as it was at a snapshot, a tag or a moment, under the schema it had then. Read only.

        Without a name a number is a snapshot, text a tag, and a datetime or date a moment.
        """
        given = [value for value in (point, snapshot, tag, timestamp) if value is not None]
        if len(given) != 1:
            raise InvalidArgument(
                f"at() takes exactly one of snapshot, tag and timestamp, not {len(given)}", hint="name one point"
            )
        if isinstance(point, dt.date):  # or a datetime, which is one
            timestamp = point
        elif isinstance(point, str):
            tag = point
            if not self._opened.context.stores.tags.exists(tag_argument(tag)) and is_moment(tag):
                raise NotFound(
                    f"table `{self.name}` has no tag `{tag}`", hint=f"for a time write t.at(timestamp={tag!r})"
                )
        elif point is not None:
            snapshot = point
        stores = self._opened.context.stores
        if snapshot is not None:
            found = stores.snapshots.get(snapshot_argument(snapshot))
        elif tag is not None:
            found = snapshot_of_tag(stores, tag_argument(tag), self.name)
        else:
            assert timestamp is not None
            time_ms = to_millis(timestamp)
            return self._as(self._opened.at(snapshot_at_time(stores, time_ms, self.name), time_ms))
        return self._as(self._opened.at(found))

    @property
    def fixed_to(self) -> Snapshot | None:
        """The snapshot that this handle is opened at; None if it shows the latest one, or there is none."""
        return self._opened.pinned

    def pinned(self) -> Table:
        """The table as it is now, under its current schema: later commits do not show. Read only."""
        return self._as(self._opened.now())

    def with_options(self, options: Mapping[str, object]) -> Table:
        """The same table with options for this handle only, such as `scan.snapshot-id` or `target-file-size`."""
        return self._as(self._opened.with_options(options_argument(options)))

    def on_branch(self, name: str) -> Table:
        """The same table on another branch (`main` is the table itself), with the options of this handle."""
        return self._as(self._opened.on_branch(name))

    def snapshots(self) -> list[Snapshot]:
        """All snapshots that have not expired, oldest first."""
        stores = self._opened.current().stores
        return Snapshots(stores.snapshots.get(snapshot_id) for snapshot_id in stores.snapshots.ids())

    def latest_snapshot(self) -> Snapshot | None:
        """The newest snapshot; None before the first commit."""
        return self._opened.context.stores.snapshots.latest()

    def told_snapshot(self) -> Snapshot | None:
        """The newest snapshot whose changes are all told: `changes` up to it, folded, are its rows.

        With `changelog-producer` = `lookup` or `full-compaction` rows are shown by the write that brings them, and told
        by the compaction after it: the latest snapshot is told once nothing waits for that. With other producers, and
        without a key, the latest is. None if no snapshot is there of which all changes are told.
        """
        from lakebed.changes.told import told_snapshot

        context = self._opened.current()
        return told_snapshot(context, self._opened.pinned or context.stores.snapshots.latest())

    def lsm(self, *, buckets: int = 24, offset: int = 0, partition: str | None = None) -> LsmPicture:
        """Its files over the keys that they hold, by bucket and level: a picture in a notebook, `to_dict()` elsewhere.

        Of many buckets those from `offset` on are shown; `partition` (`dt=2026-01-01`) chooses those of one partition.
        """
        from lakebed.table.pictures.lsm import lsm_picture
        from lakebed.table.system.base import TableState

        state = TableState(self._opened.current(), self._opened.pinned)
        return lsm_picture(state, buckets=buckets, offset=offset, partition=partition)

    def timeline(self, *, limit: int = 200) -> Timeline:
        """Its newest snapshots over time, with their tags: a picture in a notebook, `to_dict()` elsewhere."""
        from lakebed.table.pictures.timeline import timeline
        from lakebed.table.system.base import TableState

        return timeline(TableState(self._opened.current()), limit)

    def _as(self, opened: OpenedTable) -> Table:
        """The same, opened otherwise."""
        return Table(opened)

    # --- writing -------------------------------------------------------------------------------------------------

    def write(
        self, data: Any, row_kind: str | None = None, overwrite: bool | Mapping[str, Any] | None = None
    ) -> Snapshot | None:
        """Writes rows as one commit and returns its snapshot (None when there was nothing to write).

        `data`: pyarrow, pandas, polars, anything with the Arrow PyCapsule interface, a dict of columns, or a list of
        dicts, dataclasses or pydantic models. `row_kind` names a column of it that holds +I, -U, +U or -D.
        `overwrite=True` replaces the table (or, if partitioned, the partitions of the new rows), a dict replaces the
        partitions it names. A Spark DataFrame is written by a Spark job: see `write_spark`.
        """
        if is_spark_frame(data):
            return self.write_spark(data, row_kind, overwrite)  # its rows do not come through this process
        from lakebed.table.writer import write_rows

        return write_rows(self, data, row_kind, overwrite)

    def writer(
        self,
        row_kind: str | None = None,
        overwrite: bool | Mapping[str, Any] | None = None,
        *,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> TableWriter:
        """A writer for many batches and one commit, to use in a `with` block.

        With `commit_user` and `commit_identifier` the commit can be replayed: a second one with the same or a smaller
        identifier of that user changes nothing. In `write-mode` `stream` the writer commits by itself, at every call of
        `write` or as the options `sink.rolling-policy.*` say, each time with the next identifier.
        """
        from lakebed.table.writer import open_writer

        return open_writer(self, row_kind, overwrite, commit_user, commit_identifier)

    def write_spark(
        self, frame: DataFrame, row_kind: str | None = None, overwrite: bool | Mapping[str, Any] | None = None
    ) -> Snapshot | None:
        """Writes a Spark DataFrame as one commit, in a Spark job. Arguments are those of `write`."""
        return jobs_of(self.name, self._opened.context.jobs).write(self, frame, row_kind, overwrite)

    def write_stream(
        self,
        frame: DataFrame,
        *,
        checkpoint: str | os.PathLike[str],
        trigger: str | Mapping[str, Any] | None = None,
        output_mode: str = "append",
        row_kind: str | None = None,
        query_name: str | None = None,
    ) -> StreamingQuery:
        """Writes a streaming DataFrame and returns the query: each micro-batch is one commit, made exactly once.

        `trigger` is an interval ("10 seconds") or {"availableNow": True}; `output_mode` is append, update (rows replace
        those of the same key) or complete (rows replace the table). `row_kind` names a column with +I, -U, +U or -D.
        """
        jobs = jobs_of(self.name, self._opened.context.jobs)
        place = os.fspath(checkpoint)
        return jobs.write_stream(self, frame, place, trigger, output_mode, row_kind, query_name)

    # --- changing ------------------------------------------------------------------------------------------------

    def delete_where(self, filter: Any) -> Snapshot | None:  # noqa: A002
        """Deletes the rows for which the filter is true, of a table without a primary key; None when there are none.

        With `deletion-vectors.enabled` they are marked as deleted, else the files they lie in are rewritten.
        """
        from lakebed.rewrite.rows_by_place import RowChanges, rows_matching
        from lakebed.table.follow_up import after_rows_changed

        context = self._opened.folded()
        predicate = filter_argument(filter, context.arrow_schema_with_hidden)
        base = context.stores.snapshots.latest()
        return after_rows_changed(context, RowChanges(context, base).commit(rows_matching(context, base, predicate)))

    def truncate(self) -> Snapshot | None:
        """Removes all rows."""
        from lakebed.table.writer import remove_all_rows

        return remove_all_rows(self)

    def alter(self, *changes: SchemaChange) -> None:
        """Applies schema changes as one new schema version; all of them or none.

        A change of what stored rows mean is refused, or the table is compacted first: `docs/reference/changes.md`.
        """
        from lakebed.table.alter import alter_table

        alter_table(self, changes)


_LONE_KEYS = (dict, str, bytes, int, float, Decimal, dt.date, dt.time)
"""Values that are a key by themselves, rather than hold some."""


def _shown(caption: str, columns: pa.Schema, schema: TableSchema) -> str:
    """The columns of a table as HTML, with what is said of them."""
    types = {field.name: str(field.type) for field in schema.fields}
    parts = [(schema.primary_keys, "primary key"), (schema.partition_keys, "partition")]
    rows = (
        (
            field.name,
            types.get(field.name, str(field.type)),
            ", ".join(word for names, word in parts if field.name in names),
            (field.metadata or {}).get(b"comment", b"").decode(),
        )
        for field in columns
    )
    return html_table(caption, ("column", "type", "", "comment"), rows, len(columns))
