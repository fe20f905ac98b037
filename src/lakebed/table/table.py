"""The handle users hold: read, write, travel in time, change the schema."""

from __future__ import annotations

import datetime as dt
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.changes.follow import ChangeStream
from lakebed.changes.position import StreamPosition
from lakebed.changes.range import asked_range, is_incremental, read_changes, state_named
from lakebed.changes.read import ChangeRead, ChangeReading, change_reading
from lakebed.changes.scan_modes import batch_snapshot, plan_batch
from lakebed.changes.stream import StreamScan
from lakebed.changes.views import ROWKIND_FIELD, DiffRows, packed_changes, shows_changes, view_of
from lakebed.commit.committer import CommitIdentity
from lakebed.definition.aggregate_names import stored_options
from lakebed.definition.arguments import (
    changes_argument,
    identity_arguments,
    names_argument,
    options_argument,
    options_by_keyword,
    snapshot_argument,
    tag_argument,
)
from lakebed.definition.branch import branch_argument, context_on_branch
from lakebed.definition.context import BINLOG, TableContext, once_per_context
from lakebed.definition.elsewhere import jobs_of
from lakebed.definition.guards import warn_of_unguarded
from lakebed.definition.incoming import reader_of
from lakebed.definition.moments import is_travelling, resolve_snapshot, snapshot_at_time, snapshot_of_tag, to_millis
from lakebed.definition.new_settings import check_new_settings
from lakebed.definition.row_rules import shows_waiting_rows
from lakebed.definition.validate import check_fixed_options, validate_table
from lakebed.errors import InvalidArgument, InvalidOption, MissingDependency, NotFound, Unsupported, did_you_mean
from lakebed.maintenance.check import check_snapshots, check_table
from lakebed.maintenance.expiry import Expired, expire_table
from lakebed.maintenance.tags import refuse_callbacks
from lakebed.maintenance.tidy_up import tidy_up
from lakebed.metadata.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from lakebed.options import (
    BRANCH,
    COMMIT_USER_PREFIX,
    CONTINUOUS_DISCOVERY_INTERVAL,
    PARTITION,
    POSTPONE_MERGE_ON_READ,
    PRIMARY_KEY,
    TAG_AUTOMATIC_CREATION,
    WRITE_MERGE_SCHEMA,
    Options,
    check_options,
    unhonoured_for_read,
    unhonoured_for_write,
)
from lakebed.read.lookup import KeyLookup
from lakebed.read.plan import FileSieve, ScanPlan, check_other_branch, plan_scan, with_other_branch
from lakebed.read.reader import SplitReader, projected_fields
from lakebed.read.scan_options import in_scanned_partitions
from lakebed.rewrite import background
from lakebed.rewrite.bucket import Compactor
from lakebed.rewrite.fold_first import fold_stored, prepare_change
from lakebed.rewrite.rows_by_place import RowChanges, rows_matching
from lakebed.rewrite.small_files import AppendCompactor
from lakebed.rewrite.sorting import sort_compact
from lakebed.schema.changes import RemoveOption, SchemaChange, SetOption
from lakebed.schema.table_schema import TableSchema
from lakebed.table.compact_follow import Follower, Stop, follow, interval_argument
from lakebed.table.follow_up import after_rows_changed
from lakebed.table.upkeep import TableUpkeep
from lakebed.table.writer import CommitTimer, TableWriter, is_stream, next_identity
from lakebed.types.arrow import from_arrow_schema, to_arrow_schema
from lakebed.types.predicate import Predicate
from lakebed.types.predicate import columns as predicate_columns
from lakebed.types.predicate_parse import to_predicate
from lakebed.write.make_room import SchemaMerge, relaxed
from lakebed.write.placement.waiting import for_stream
from lakebed.write.waiting_rows import WaitingRows, plan_with_waiting

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery


class Table(TableUpkeep):
    """One table of a lake. Always shows the latest schema; `at(...)` gives a read-only view of an earlier state."""

    def __init__(
        self, context: TableContext, *, overrides: Mapping[str, str] | None = None, pinned: Snapshot | None = None
    ) -> None:
        self._context = context
        self._overrides = dict(overrides or {})
        self._pinned = pinned
        self._last: TableContext | None = None
        """The context under the schema that was the latest when somebody last looked."""

    def __repr__(self) -> str:
        where = f" at snapshot {self._pinned.id}" if self._pinned else ""
        return f"<lakebed table {self.name}{where}: {', '.join(self.schema.field_names)}>"

    # --- what it is ----------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """`database.table`."""
        return self._context.name

    @property
    def schema(self) -> TableSchema:
        """Columns, keys and options as stored."""
        return self._current().schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of what `to_arrow` returns."""
        context = self._current()
        return view_of(context).schema if shows_changes(context) else to_arrow_schema(context.shown_fields)

    @property
    def hidden_schema(self) -> pa.Schema:
        """Columns that `to_arrow` returns only if they are asked for by name."""
        context = self._current()
        return pa.schema([]) if shows_changes(context) else to_arrow_schema(context.hidden_fields)

    @property
    def options(self) -> dict[str, str]:
        """Stored options, with those of this handle on top."""
        return dict(self._current().options.raw)

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Names of the primary-key columns; empty for an append table."""
        return self._current().schema.primary_keys

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Names of the partition columns."""
        return self._current().schema.partition_keys

    @property
    def comment(self) -> str | None:
        """The table's comment."""
        return self._current().schema.comment

    @property
    def location(self) -> str:
        """Where the table's files lie."""
        return self._context.paths.root

    # --- reading -------------------------------------------------------------------------------------------------

    def to_arrow(self, columns: Sequence[str] | None = None, filter: Any = None) -> pa.Table:  # noqa: A002
        """All matching rows as one Arrow table.

        `filter` is a pyarrow expression, a list of (column, operator, value) tuples, or a lakebed predicate.
        """
        context = self._readable()
        changes = self._changes(context, columns, filter)
        if changes is not None:
            return changes.to_table()
        reader, plan = self._plan(context, columns, filter)
        reader = replace(reader, keeps_everything=reader.predicate is None)
        return pa.Table.from_batches(reader.read_all(plan.splits), schema=reader.schema)

    def to_batches(self, columns: Sequence[str] | None = None, filter: Any = None) -> Iterator[pa.RecordBatch]:  # noqa: A002
        """Matching rows batch by batch; memory does not grow with the table."""
        context = self._readable()  # not in the generator: what is wrong with the call is said now
        changes = self._changes(context, columns, filter)
        if changes is not None:
            return changes.batches()
        reader, plan = self._plan(context, columns, filter)
        return (batch for split in plan.splits for batch in reader.read(split))

    def to_pandas(self, columns: Sequence[str] | None = None, filter: Any = None) -> pandas.DataFrame:  # noqa: A002
        """Matching rows as a pandas DataFrame."""
        _needs("pandas")
        return self.to_arrow(columns, filter).to_pandas()

    def to_polars(self, columns: Sequence[str] | None = None, filter: Any = None) -> polars.DataFrame:  # noqa: A002
        """Matching rows as a polars DataFrame."""
        return _needs("polars").from_arrow(self.to_arrow(columns, filter))

    def to_duckdb(self, columns: Sequence[str] | None = None, filter: Any = None) -> duckdb.DuckDBPyRelation:  # noqa: A002
        """Matching rows as a DuckDB relation."""
        return _needs("duckdb").from_arrow(self.to_arrow(columns, filter))

    def to_spark(self, columns: Sequence[str] | None = None, filter: Any = None) -> DataFrame:  # noqa: A002
        """Matching rows as a Spark DataFrame of the current snapshot.

        Files that need no merge are read by Spark itself, the rest is merged in Arrow by Spark's Python workers.
        """
        return jobs_of(self.name, self._context.jobs).read(self, columns, filter)

    def lookup(self, keys: Any, columns: Sequence[str] | None = None) -> pa.Table:
        """The current rows of these keys of a primary-key table, in the order of the keys; keys without one give none.

        `keys` is anything with the columns of the primary key, others are ignored: pyarrow, pandas, polars, a list of
        dicts; or, for a key of one column, its values. A key that is given twice brings its row twice. Only files that
        may hold the keys are read, and those that are asked for again get a local copy, in which keys are found fast.
        """
        return self.key_lookup(columns).rows(keys)

    def key_lookup(self, columns: Sequence[str] | None = None) -> KeyLookup:
        """Finds rows of the current snapshot as often as asked: `rows(keys)`, or `find(keys)` to hear which are there.

        It can be pickled, so the tasks of a Spark job can use it.
        """
        context = self._readable()
        if is_incremental(context.options) or shows_changes(context):
            raise InvalidArgument(f"`{self.name}` shows changes, which have no key", hint="look up in the table itself")
        names = None if columns is None else names_argument(columns, "columns")
        snapshot = self._pinned or batch_snapshot(context)
        return KeyLookup.of(context.as_meant_in(snapshot), snapshot, names)

    def scan(self, filter: Any = None) -> ScanPlan:  # noqa: A002
        """Which files a read with this filter would open."""
        context = self._readable()
        changes = self._changes(context, None, filter)
        return self._plan(context, None, filter)[1] if changes is None else changes.plan()

    def check(self, deep: bool = False) -> list[str]:
        """Whether the table keeps its own rules: one sentence for every broken one, none if all is well.

        Of all retained snapshots: manifests that agree with one another in whatever order they are added up, record
        counts, index files that speak of files that are there, levels whose files do not overlap. Only metadata is
        read. With `deep` the data is read as well: rows, order and range of keys, sequence numbers, statistics, marked
        rows, the bucket of every key, and whether changelogs that are complete make each state the next one. Snapshots,
        tags and changelogs of all branches are looked at too, unless this is a view of the past: `repair_metadata`
        mends what others can not read.
        """
        context = self._readable()
        snapshots = context.stores.snapshots
        if self._pinned is not None:
            return check_table(context, self._pinned, deep=deep)
        history = [found for each in snapshots.kept_ids() if (found := snapshots.find(each)) is not None]
        findings = check_table(context, history[-1] if history else None, history, deep=deep)
        return [*check_snapshots(context), *findings]

    def changes(self, since: int = 0, until: int | None = None) -> pa.Table:
        """Rows added after snapshot `since` up to `until`, in commit order, with a `rowkind` column in front."""
        context = self._readable()
        changes = read_changes(context, since, self._pinned.id if until is None and self._pinned else until)
        return packed_changes(context, changes) if context.view == BINLOG else changes

    def diff(
        self,
        before: int | str,
        after: int | str,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002
    ) -> pa.Table:
        """What makes the state of one snapshot or tag that of another, with a `rowkind` column in front.

        New rows are `+I`, rows that are gone `-D`, others that differ `-U` with the old row and `+U` with the new one.
        Snapshot 0 is the empty table.
        """
        context = self._readable()
        names = None if columns is None else ["rowkind", *names_argument(columns, "columns")]
        reading = ChangeReading.asked(DiffRows(context), names, filter)
        return reading.of_difference(state_named(context, before), state_named(context, after)).to_table()

    def _changes(
        self,
        context: TableContext,
        columns: Sequence[str] | None,
        filter: Any,  # noqa: A002
    ) -> ChangeRead | None:
        """The read of a view that shows changes, or of options that ask for some; None for a plain read."""
        if not (is_incremental(context.options) or shows_changes(context)):
            return None
        reading = change_reading(context, None if columns is None else names_argument(columns, "columns"), filter)
        if is_incremental(context.options):
            return reading.of_range(asked_range(context, self._pinned))
        return reading.of_state(self._state_plan(context, reading.table_part))

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
        scan = self.plan_stream(columns, filter, options)
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
        return jobs_of(self.name, self._context.jobs).read_stream(self, columns, filter, given)

    def plan_stream(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002
        options: Mapping[str, object] | None = None,
        *,
        schema_id: int | None = None,
    ) -> StreamScan:
        """A stream in parts, for those who read the parts elsewhere; under an earlier version of the schema if asked.

        Arguments are those of `follow`.
        """
        if self._pinned is not None and not is_travelling(self._current().options):
            raise InvalidArgument(
                f"table `{self.name}` is opened at snapshot {self._pinned.id}, which does not change",
                hint="open the table without at(...) to follow it",
            )
        given = dict(options_argument(options))
        table = Table(self._context, overrides=self._overrides)
        if BRANCH.key in given:
            return table.on_branch(str(given.pop(BRANCH.key))).plan_stream(columns, filter, given, schema_id=schema_id)
        context = table._readable()
        if schema_id is not None:
            context = table._under(context.schemas.get(schema_id))
        if given:
            checked = check_options(given, for_create=False, columns=context.schema.field_names)
            context = context.with_schema(context.schema, Options({**context.options.raw, **checked}))
            check_fixed_options(context.schema, context.options, self.name)
        predicate = to_predicate(filter, pa.schema([ROWKIND_FIELD, *context.schema.arrow_schema]))
        return StreamScan(context, None if columns is None else names_argument(columns, "columns"), predicate)

    def plan_read(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002
    ) -> tuple[SplitReader, ScanPlan] | ChangeRead:
        """A read in parts: what it opens, and how. For those who read the parts elsewhere."""
        context = self._readable()
        changes = self._changes(context, columns, filter)
        return self._plan(context, columns, filter) if changes is None else changes

    def _plan(
        self,
        context: TableContext,
        columns: Sequence[str] | None,
        filter: Any,  # noqa: A002
    ) -> tuple[SplitReader, ScanPlan]:
        predicate = to_predicate(filter, context.arrow_schema_with_hidden)
        names = None if columns is None else names_argument(columns, "columns")
        plan = self._state_plan(context, predicate)
        meant = context.as_meant_in(plan.snapshot)
        if meant is not context:
            context, plan = meant, self._state_plan(meant, predicate)
        if shows_waiting_rows(context):
            context, plan = plan_with_waiting(context, plan.snapshot, predicate)
        return SplitReader(context, projected_fields(context, names), predicate), plan

    def _state_plan(self, context: TableContext, predicate: Predicate | None) -> ScanPlan:
        if self._pinned is not None:
            plan = plan_scan(context, self._pinned, in_scanned_partitions(context, self._pinned, predicate))
        else:
            plan = plan_batch(context, predicate)
        return with_other_branch(context, plan, predicate)

    # --- time travel ---------------------------------------------------------------------------------------------

    def at(
        self,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        timestamp: int | str | dt.datetime | dt.date | None = None,
    ) -> Table:
        """The table as it was at a snapshot, a tag or a moment, under the schema it had then. Read only."""
        given = [value for value in (snapshot, tag, timestamp) if value is not None]
        if len(given) != 1:
            raise InvalidArgument(
                f"at() takes exactly one of snapshot, tag and timestamp, not {len(given)}", hint="name one point"
            )
        stores = self._context.stores
        if snapshot is not None:
            found = stores.snapshots.get(snapshot_argument(snapshot))
        elif tag is not None:
            found = snapshot_of_tag(stores, tag_argument(tag), self.name)
        else:
            assert timestamp is not None
            found = snapshot_at_time(stores, to_millis(timestamp), self.name)
        return Table(self._under(self._context.schemas.get(found.schema_id)), overrides=self._overrides, pinned=found)

    @property
    def fixed_to(self) -> Snapshot | None:
        """The snapshot that this handle is opened at; None if it shows the latest one, or there is none."""
        return self._pinned

    def pinned(self) -> Table:
        """The table as it is now, under its current schema: later commits do not show. Read only."""
        context = self._current()
        latest = context.stores.snapshots.latest() if self._pinned is None else self._pinned
        return Table(context, overrides=self._overrides, pinned=latest)

    def showing_all_stored(self, *, waiting: bool = False) -> Table:
        """The same table for statements that change what they read: reads show new files too that are hidden until
        they are compacted; with `waiting`, also rows that wait for their bucket, if these can be read in this process.
        """
        if not self._context.has_key:
            return self
        shown = {POSTPONE_MERGE_ON_READ.key: "true"} if waiting else {}
        return Table(replace(self._context, shows_hidden=True), overrides={**self._overrides, **shown})

    def place_waiting_rows(self) -> None:
        """Brings rows that wait for their bucket there."""
        context = self._folded()
        if context.has_key:
            WaitingRows(context).place(CommitIdentity(context.ids.new_id()))

    def context_to_write(self) -> TableContext:
        """What a write is judged by; unlike `plan_write` it changes nothing."""
        return self._writable()

    def snapshots(self) -> list[Snapshot]:
        """All snapshots that have not expired, oldest first."""
        stores = self._current().stores
        return [stores.snapshots.get(snapshot_id) for snapshot_id in stores.snapshots.ids()]

    def latest_snapshot(self) -> Snapshot | None:
        """The newest snapshot; None before the first commit."""
        return self._context.stores.snapshots.latest()

    # --- writing -------------------------------------------------------------------------------------------------

    def write(
        self, data: Any, row_kind: str | None = None, overwrite: bool | Mapping[str, Any] | None = None
    ) -> Snapshot | None:
        """Writes rows as one commit and returns its snapshot (None when there was nothing to write).

        `data`: pyarrow, pandas, polars or anything with the Arrow PyCapsule interface. `row_kind` names a column of it
        that holds +I, -U, +U or -D. `overwrite=True` replaces the table (or, if partitioned, the partitions of the new
        rows), a dict replaces the partitions it names.
        """
        if self._current().options[WRITE_MERGE_SCHEMA]:
            data = reader_of(data)
            self.make_room(data.schema, row_kind)
        context, identity = self.plan_write()
        wanted = None if overwrite is False else overwrite
        writer = TableWriter(context, row_kind=row_kind, overwrite=wanted, identity=identity)
        with writer:
            writer.write(data)
            return writer.commit()

    def make_room(self, incoming: pa.Schema, row_kind: str | None = None) -> None:
        """Adds the columns that rows of this schema have and the table has not, if `write.merge-schema` is set.

        `write.merge-schema.type-widening` and `write.merge-schema.explicit-cast` change types of columns as well.
        """
        merge = SchemaMerge.of_options(self._current().options)
        if merge.adds:
            given = from_arrow_schema(pa.schema([field for field in incoming if field.name != row_kind]))
            changes = merge.changes_of(self.schema, [replace(field, type=relaxed(field.type)) for field in given])
            if changes:
                self.alter(*changes)

    def write_spark(
        self, frame: DataFrame, row_kind: str | None = None, overwrite: bool | Mapping[str, Any] | None = None
    ) -> Snapshot | None:
        """Writes a Spark DataFrame as one commit, in a Spark job. Arguments are those of `write`."""
        return jobs_of(self.name, self._context.jobs).write(self, frame, row_kind, overwrite)

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
        jobs = jobs_of(self.name, self._context.jobs)
        place = os.fspath(checkpoint)
        return jobs.write_stream(self, frame, place, trigger, output_mode, row_kind, query_name)

    def plan_write(
        self, commit_user: str | None = None, commit_identifier: int | None = None
    ) -> tuple[TableContext, CommitIdentity]:
        """What a write needs that makes its files elsewhere."""
        context = self._folded()
        identity_arguments(commit_user, commit_identifier)
        user = commit_user or (context.options[COMMIT_USER_PREFIX] or "") + context.ids.new_id()
        if commit_identifier is None:
            return context, CommitIdentity(user, BATCH_COMMIT_IDENTIFIER)
        return for_stream(context), CommitIdentity(user, commit_identifier)

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
        context, identity = self.plan_write(commit_user, commit_identifier)
        wanted = None if overwrite is False else overwrite
        timer = None
        if is_stream(context.options) and wanted is None:
            timer = CommitTimer(context.options, context.clock)
            if not identity.is_replayable:
                context, identity = for_stream(context), next_identity(context, identity.user)
        base = context

        def make_room(incoming: pa.Schema) -> TableContext:
            self.make_room(incoming, row_kind)
            return base.under_latest_schema()

        merges = make_room if context.options[WRITE_MERGE_SCHEMA] else None
        return TableWriter(
            context, row_kind=row_kind, overwrite=wanted, identity=identity, timer=timer, make_room=merges
        )

    def delete_where(self, filter: Any) -> Snapshot | None:  # noqa: A002
        """Deletes the rows for which the filter is true, of a table without a primary key; None when there are none.

        With `deletion-vectors.enabled` they are marked as deleted, else the files they lie in are rewritten.
        """
        context = self._folded()
        predicate = to_predicate(filter, context.arrow_schema_with_hidden)
        base = context.stores.snapshots.latest()
        return after_rows_changed(context, RowChanges(context, base).commit(rows_matching(context, base, predicate)))

    def truncate(self) -> Snapshot | None:
        """Removes all rows."""
        return self.write(self.schema.arrow_schema.empty_table(), overwrite={})

    def compact(
        self,
        full: bool = False,
        where: Any = None,
        *,
        order_by: Sequence[str] = (),
        order_strategy: str = "order",
        progress: Callable[[int, int], None] | None = None,
        on_spark: bool = False,
    ) -> Snapshot | None:
        """Merges files; None when there was nothing to do.

        With a primary key, `full` merges all files of each bucket into its highest level; otherwise only what is due is
        merged. Without one, small files are joined and deleted rows are left out, as soon as there are enough of them
        or, with `full`, wherever there are any. `where` is a filter on partition columns that chooses the partitions.

        With `order_by` the rows of a table without a key are sorted by these columns: one after the other (`order`), or
        along a curve that keeps rows together which are close in all of them (`zorder`, `hilbert`).

        `progress` is told how many buckets, or groups of files, are done, and how many there are to do. `on_spark`
        merges large buckets in a Spark job instead of in threads of this process.

        Rows that wait because buckets are postponed are brought to their buckets first: then readers see them. What
        streams of this process are still compacting is waited for.
        """
        background.wait_for(self.location)
        context = self._folded()
        predicate = self._partition_filter(context, where)
        sieve = FileSieve(context, predicate)
        user = (context.options[COMMIT_USER_PREFIX] or "") + context.ids.new_id()
        jobs = jobs_of(self.name, self._context.jobs) if on_spark else None
        run_pieces = None if jobs is None else jobs.elsewhere()
        if order_by:
            columns = names_argument(order_by, "order_by")
            snapshot = sort_compact(context, order_strategy, columns, predicate, CommitIdentity(user), run_pieces)
            if snapshot is not None:
                tidy_up(context)
            return snapshot
        placed = WaitingRows(context, sieve.keep_partitions, run_pieces).place(CommitIdentity(user))
        compactor = (
            Compactor(context, full, sieve.keep_entries, run_pieces, tell=progress)
            if context.has_key
            else AppendCompactor(context, full, sieve.keep_entries, run_pieces, tell=progress)
        )
        snapshot = compactor.run(CommitIdentity(user)) or placed
        if snapshot is not None:
            tidy_up(context)
        return snapshot

    def compact_follow(
        self,
        stop: threading.Event | Callable[[], bool] | None = None,
        *,
        interval: str | float = "1 s",
        where: Any = None,
        report: Callable[[Snapshot], None] | None = None,
        on_spark: bool = False,
    ) -> int:
        """Compacts what is due whenever somebody has committed, until `stop`; how many compactions there were.

        This is the job beside writers of a table with `write-only`, and it also expires what such writers leave. It
        looks for new snapshots every `interval` and begins again if another job changed the same files. `stop` is a
        `threading.Event` or a function; what is under way is finished first. `report` is told of each compaction.
        Other arguments are those of `compact`.
        """
        followers = [self.follower(where, on_spark=on_spark)]
        tell = report or (lambda snapshot: None)
        interval_ms, clock = interval_argument(interval), self._context.clock
        return follow(lambda: followers, Stop.of(stop), interval_ms, lambda _, snapshot: tell(snapshot), clock)

    def follower(self, where: Any = None, *, on_spark: bool = False) -> Follower:
        """Compacts round by round, for those who follow several tables at once."""
        context = self._writable()
        sieve = FileSieve(context, self._partition_filter(context, where))
        jobs = jobs_of(self.name, self._context.jobs) if on_spark else None
        return Follower(
            self.name,
            self._folded,
            sieve.keep_entries,
            sieve.keep_partitions,
            None if jobs is None else jobs.elsewhere(),
        )

    def _partition_filter(self, context: TableContext, where: Any) -> Predicate | None:
        """A filter that chooses whole partitions."""
        predicate = to_predicate(where, context.schema.arrow_schema)
        others = predicate_columns(predicate) - set(context.schema.partition_keys) if predicate else frozenset()
        if others:
            raise InvalidArgument(
                f"where names `{min(others)}`, which is not a partition column of table `{self.name}`",
                hint=f"choose whole partitions by {', '.join(context.schema.partition_keys) or 'nothing'}",
            )
        return predicate

    def expire_snapshots(
        self,
        older_than: int | str | dt.datetime | dt.date | None = None,
        retain_max: int | None = None,
        retain_min: int | None = None,
        max_deletes: int | None = None,
    ) -> Expired:
        """Removes old snapshots with the files that only they need, and says what went.

        Without arguments the table's options decide, as after each commit. `older_than` is a moment: snapshots that
        were replaced before it go, except the newest `retain_min`; of all, no more than `retain_max` stay. Tags keep
        their files, and what a consumer has yet to read stays. If anything is unreadable, nothing is deleted.

        No more than `max_deletes` (option `snapshot.expire.limit`) go at once; `remaining` of the result says how many
        more are due.
        """
        return expire_table(self._writable(), older_than, retain_max, retain_min, max_deletes)

    # --- changing ------------------------------------------------------------------------------------------------

    def alter(self, *changes: SchemaChange) -> None:
        """Applies schema changes as one new schema version; all of them or none.

        A change of what stored rows mean is refused, or the table is compacted first: `docs/reference/changes.md`.
        """
        context = self._writable()
        changes = tuple(kept for change in changes_argument(changes) if (kept := _canonical(change)) is not None)
        known = {*context.schema.options, *(change.key for change in changes if isinstance(change, SetOption))}
        for change in changes:
            if isinstance(change, RemoveOption) and change.key not in known:
                hint = did_you_mean(change.key, known)
                raise NotFound(f"table `{self.name}` has no option `{change.key}`", hint=hint)

        def check(before: TableSchema, after: TableSchema) -> None:
            added = {key: value for key, value in after.options.items() if before.options.get(key) != value}
            check_options(added, for_create=False, columns=after.field_names)
            validate_table(after, Options(after.options), context.name)
            check_other_branch(Options(added), self.branches(), context.name)
            # An option that goes may leave another without what it needs.
            moved = {*added, *(key for key in before.options if key not in after.options)}
            check_new_settings(Options(after.options), context.name, moved)
            prepare_change(context, before, after)

        has_snapshots = context.stores.snapshots.latest_id() is not None
        changed = context.schemas.commit_changes(changes, has_snapshots, context.clock.now_ms(), check)
        # What others have committed between the last look and the change was written under the old schema.
        fold_stored(context.with_schema(changed, Options(changed.options)))
        warn_of_unguarded(context.name, Options(changed.options), Options(context.schema.options))

    def with_options(self, options: Mapping[str, object]) -> Table:
        """The same table with options for this handle only, such as `scan.snapshot-id` or `target-file-size`."""
        given = dict(options_argument(options))
        if BRANCH.key in given:
            return self.on_branch(str(given.pop(BRANCH.key))).with_options(given)
        context = self._current()
        checked = check_options(given, for_create=False, columns=context.schema.field_names)
        overrides = {**self._overrides, **checked}
        table = Table(self._context, overrides=overrides, pinned=self._pinned)
        current = table._current()
        validate_table(current.schema, current.options, self.name)
        if self._pinned is None and is_travelling(current.options):
            pinned = resolve_snapshot(current.stores, current.options, self.name)
            if pinned is not None:
                schema = current.schemas.get(pinned.schema_id)
                return Table(table._under(schema), overrides=overrides, pinned=pinned)
        return table

    def on_branch(self, name: str) -> Table:
        """The same table on another branch (`main` is the table itself), with the options of this handle."""
        if self._pinned is not None:
            raise InvalidArgument(f"table `{self.name}` is opened at a snapshot", hint="choose the branch first")
        return Table(context_on_branch(self._context, branch_argument(name)), overrides=self._overrides)

    # --- inside --------------------------------------------------------------------------------------------------

    def _under(self, schema: TableSchema) -> TableContext:
        return self._context.with_schema(schema, Options({**schema.options, **self._overrides}))

    def _current(self) -> TableContext:
        """The context under the latest schema (of the pinned snapshot, for a view of the past)."""
        if self._pinned is not None:
            return self._under(self._context.schema)
        latest = self._context.schemas.latest()
        if latest is None:
            raise NotFound(f"table `{self.name}` does not exist any more", hint="it was dropped; create it again")
        if self._last is not None and self._last.schema is latest:
            return self._last  # with all that was worked out from it
        context = self._last = self._under(latest)
        if self._overrides:
            check_fixed_options(latest, context.options, self.name)  # the table may have changed since they were given
        return context

    def _readable(self) -> TableContext:
        context = self._current()
        _refuse_unhonoured(context, "read")
        return context

    def _refuse_pinned(self) -> None:
        if self._context.view:
            table = self.name.removesuffix(f"${self._context.view}")
            raise InvalidArgument(f"`{self.name}` is a read-only view", hint=f"open `{table}` to change the table")
        if self._pinned is not None:
            raise InvalidArgument(
                f"table `{self.name}` is opened at snapshot {self._pinned.id}, which is read only",
                hint="open the table without at(...) to write to it",
            )

    def _writable(self) -> TableContext:
        self._refuse_pinned()
        context = self._current()
        _refuse_unhonoured(context, "write")
        if context.options[TAG_AUTOMATIC_CREATION] != "none":
            refuse_callbacks(context)
        return context

    def _folded(self) -> TableContext:
        """To write rows: those that are there are folded first, if they were written under another meaning."""
        context = self._writable()
        fold_stored(context)
        return context


def _canonical(change: SchemaChange) -> SchemaChange | None:
    """The change with an option's canonical key and text, as a schema file keeps it; None if it means nothing."""
    if isinstance(change, SetOption):
        is_key = change.key in (PRIMARY_KEY.key, PARTITION.key)  # a table without data may still get its keys
        checked = stored_options(check_options({change.key: change.value}, for_create=is_key, columns=None), ())
        if len(checked) > 1:
            raise InvalidOption(
                f"option `{change.key}`: a column can not begin to count once the table exists",
                hint="create the table with aggregate function `count`, or count with `sum` over ones",
            )
        return next((SetOption(key, value) for key, value in checked.items()), None)
    return change


@once_per_context
def _refuse_unhonoured(context: TableContext, deed: str) -> None:
    """Raises if another engine's table asks for what this version can not do."""
    raw = context.options.raw
    options = unhonoured_for_read(raw) if deed == "read" else unhonoured_for_write(raw)
    if options:
        key = options[0].key
        raise Unsupported(
            f"table `{context.name}` has `{key}` = `{context.options.raw.get(key)}`, which this version can not {deed}",
            hint=options[0].instead or "use an engine that honours the option",
        )


def _needs(package: str) -> Any:
    """The optional package, or an error that names the extra to install."""
    try:
        return __import__(package)
    except ImportError as error:
        raise MissingDependency(
            f"{package} is not installed", hint=f'install it with: pip install "lakebed[{package}]"'
        ) from error
