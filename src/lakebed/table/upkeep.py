"""What keeps a table in order, as methods of `Table`: compaction, tags, branches, rollback and cleaning.

A part of `Table` in a file of its own, so that reading and writing stay readable. Everything here checks its arguments
and hands over to `maintenance`, or to the module of this package that commits. Each loads what it hands over to when it
is called: queries, which are asked most, need none of it, and a cold command is all loading.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

from lakebed.calls import explains_calls
from lakebed.definition.arguments import names_argument, snapshot_argument
from lakebed.definition.branch import branch_argument, context_on_branch, list_branches
from lakebed.definition.elsewhere import place_of_work, told_place
from lakebed.definition.views import refuse_view
from lakebed.errors import InvalidArgument
from lakebed.metadata.consumer import Consumer
from lakebed.metadata.paths import MAIN_BRANCH
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.statistics import TableStatistics, read_statistics
from lakebed.metadata.tag import Tag
from lakebed.options import BUCKET, PARTITION_EXPIRATION_TIME
from lakebed.read.plan import FileSieve, partition_filter
from lakebed.table.opened import Holder
from lakebed.table.plans import new_identity
from lakebed.types.logical import DataField

if TYPE_CHECKING:
    from lakebed.maintenance.expiry import Expired
    from lakebed.maintenance.file_indexes import RewrittenIndexes
    from lakebed.maintenance.orphans import Orphans
    from lakebed.maintenance.partitions import DroppedPartitions, Partition
    from lakebed.maintenance.rollback import Revived, RolledBack
    from lakebed.maintenance.tags import DeletedTags, Duration
    from lakebed.rewrite.row_ids import ReassignedIds

Moment = int | str | dt.datetime | dt.date
"""Milliseconds since 1970, text like `2024-05-14 13:45:00` (of the local zone), a datetime or a date."""

_ARGUMENTS = {
    "create_tag": {"snapshot_id": "create_tag(name, snapshot=...)", "version": "create_tag(name, snapshot=...)"},
    "compact": {
        "partition": "where='day = 1'",
        "filter": "where='day = 1'",
        "zorder_by": "order_by=[...], order_strategy='zorder'",
    },
    "rollback_to": {"snapshot_id": "rollback_to(snapshot=...)", "version": "rollback_to(snapshot=...)"},
    "expire_snapshots": {"retain_last": "retain_max=...", "retention_hours": "older_than=..."},
}
"""Arguments that users of other libraries try."""


@explains_calls(_ARGUMENTS)
class TableUpkeep(Holder):
    """The methods of a table that look after it. All they need of the rest of `Table` is what it holds."""

    # --- compaction ----------------------------------------------------------------------------------------------

    def compact(
        self,
        full: bool = False,
        where: Any = None,
        *,
        buckets: Collection[int] | None = None,
        order_by: Sequence[str] = (),
        order_strategy: str = "order",
        progress: Callable[[int, int], None] | None = None,
        on_spark: bool | None = None,
    ) -> Snapshot | None:
        """Merges files; None when there was nothing to do.

        With a primary key, `full` merges all files of each bucket into its highest level; otherwise only what is due is
        merged. Without one, small files are joined and deleted rows are left out, as soon as there are enough of them
        or, with `full`, wherever there are any. `where` is a filter on partition columns that chooses the partitions,
        `buckets` are the numbers of those to look at, where there are fixed or dynamic ones.

        With `order_by` the rows of a table without a key are sorted by these columns: one after the other (`order`), or
        along a curve that keeps rows together which are close in all of them (`zorder`, `hilbert`).

        `progress` is told how many buckets, or groups of files, are done, and how many there are to do. `on_spark`
        says whether large buckets are merged in a Spark job (True) or in threads of this process (False); left out,
        where the lake's session is: in a job if that is a cluster. `explain_work` tells which it will be.

        Rows that wait because buckets are postponed are brought to their buckets first: then readers see them. What
        streams of this process are still compacting is waited for.
        """
        from lakebed.table.compact import compact_table

        return compact_table(self, full, where, buckets, order_by, order_strategy, progress, on_spark)

    def explain_work(self, on_spark: bool | None = None) -> str:
        """Where compactions, sorting and other rewriting of the table's files would be carried out now, and why."""
        return told_place(self._opened.context, on_spark)

    def compact_follow(
        self,
        stop: threading.Event | Callable[[], bool] | None = None,
        *,
        interval: str | float = "1 s",
        where: Any = None,
        report: Callable[[Snapshot], None] | None = None,
        on_spark: bool | None = None,
    ) -> int:
        """Compacts what is due whenever somebody has committed, until `stop`; how many compactions there were.

        This is the job beside writers of a table with `write-only`, and it also expires what such writers leave. It
        looks for new snapshots every `interval` and begins again if another job changed the same files. `stop` is a
        `threading.Event` or a function; what is under way is finished first. `report` is told of each compaction.
        Other arguments are those of `compact`.
        """
        from lakebed.table.compact_follow import Stop, follow, follower_of, interval_argument

        followers = [follower_of(self, where, on_spark=on_spark)]
        tell = report or (lambda snapshot: None)
        interval_ms, clock = interval_argument(interval), self._opened.context.clock
        return follow(lambda: followers, Stop.of(stop), interval_ms, lambda _, snapshot: tell(snapshot), clock)

    # --- tags ----------------------------------------------------------------------------------------------------

    def create_tag(self, name: str, snapshot: int | None = None, time_retained: Duration | None = None) -> None:
        """Names a snapshot (the latest) so that `at(tag=...)` finds it, also after the snapshot has expired.

        With `time_retained` (`1 d`, a timedelta) `expire_tags` removes the tag when that time is over.
        """
        from lakebed.maintenance.tags import tag_snapshot

        tag_snapshot(self._opened.changeable(), name, snapshot, time_retained)

    def replace_tag(self, name: str, snapshot: int | None = None, time_retained: Duration | None = None) -> None:
        """Puts an existing tag on another snapshot (the latest), with another time to live or none."""
        from lakebed.maintenance.tags import retag

        retag(self._opened.changeable(), name, snapshot, time_retained)

    def rename_tag(self, name: str, new_name: str) -> None:
        """Gives a tag another name."""
        from lakebed.maintenance.tags import rename_tag

        rename_tag(self._opened.changeable(), name, new_name)

    def delete_tag(self, *names: str) -> DeletedTags:
        """Removes tags, and the files that nothing but them kept. If something is unreadable, nothing is deleted."""
        from lakebed.maintenance.tags import remove_tags

        if not names:
            raise InvalidArgument("no tag is named", hint="pass the name of a tag, or several")
        return remove_tags(self._opened.changeable(), names)

    def expire_tags(self, older_than: Moment | None = None) -> DeletedTags:
        """Removes the tags whose time to live is over and, with `older_than`, all that were made before it."""
        from lakebed.maintenance.tags import remove_expired_tags

        return remove_expired_tags(self._opened.changeable(), older_than)

    def create_due_tags(self) -> list[str]:
        """Makes the tags that `tag.automatic-creation` asks for now, as each commit does; their names."""
        from lakebed.maintenance.auto_tags import create_due_tags

        return create_due_tags(self._opened.changeable(), is_batch=True)

    @overload
    def tags(self) -> list[str]: ...

    @overload
    def tags(self, detail: Literal[False]) -> list[str]: ...

    @overload
    def tags(self, detail: Literal[True]) -> list[Tag]: ...

    def tags(self, detail: bool = False) -> list[str] | list[Tag]:
        """Names of all tags; with `detail`, each with its snapshot, when it was made and for how long, by snapshot."""
        stores = self._opened.context.stores
        return list(stores.tags.list()) if detail else list(stores.tags.names())

    # --- rollback ------------------------------------------------------------------------------------------------

    def rollback_to(
        self,
        snapshot: int | None = None,
        *,
        tag: str | None = None,
        timestamp: Moment | None = None,
        watermark: int | None = None,
    ) -> RolledBack:
        """Makes an earlier snapshot the latest: newer snapshots, their changelogs and tags are gone for good.

        A tag whose snapshot has expired works too. Schemas stay as they are. The files of what is gone are left to
        `remove_orphan_files`.
        """
        from lakebed.maintenance.rollback import roll_back_table, target_snapshot

        context = self._opened.changeable()
        return roll_back_table(context, target_snapshot(context, snapshot, tag, timestamp, watermark))

    def rollback_to_as_latest(
        self,
        snapshot: int | None = None,
        *,
        tag: str | None = None,
        timestamp: Moment | None = None,
        watermark: int | None = None,
    ) -> Revived:
        """Commits a new snapshot that has the rows of an earlier one; nothing is deleted.

        It shows what the earlier one shows. Rows that were not compacted there, and are shown or told to those who
        follow the table after a compaction only, get one at once, as after any write (unless `write-only`). Rows from
        before a change of what rows mean are folded as they were meant, as ALTER TABLE does it.
        """
        from lakebed.maintenance.rollback import revive, target_snapshot
        from lakebed.rewrite.settle import lift_untold

        context = self._opened.writable()
        target = target_snapshot(context, snapshot, tag, timestamp, watermark)
        identity = new_identity(context)
        revived = revive(context, target, identity)
        lift_untold(self._opened.folded(), identity)
        return revived

    # --- cleaning and mending ------------------------------------------------------------------------------------

    def expire_snapshots(
        self,
        older_than: Moment | None = None,
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
        from lakebed.maintenance.expiry import expire_table

        return expire_table(self._opened.writable(), older_than, retain_max, retain_min, max_deletes)

    def check(self, deep: bool = False) -> list[str]:
        """Whether the table keeps its own rules: one sentence for every broken one, none if all is well.

        Of all retained snapshots: manifests that agree with one another in whatever order they are added up, record
        counts, index files that speak of files that are there, levels whose files do not overlap. Only metadata is
        read. With `deep` the data is read as well: rows, order and range of keys, sequence numbers, statistics, marked
        rows, the bucket of every key, and whether changelogs that are complete make each state the next one. Snapshots,
        tags and changelogs of all branches are looked at too, unless this is a view of the past: `repair_metadata`
        mends what others can not read.
        """
        from lakebed.maintenance.check import check_snapshots, check_table

        context = self._opened.readable()
        context = replace(context, memory=context.memory.for_upkeep())
        snapshots = context.stores.snapshots
        if self._opened.pinned is not None:
            return check_table(context, self._opened.pinned, deep=deep)
        history = [found for each in snapshots.kept_ids() if (found := snapshots.find(each)) is not None]
        findings = check_table(context, history[-1] if history else None, history, deep=deep)
        return [*check_snapshots(context), *findings]

    def remove_orphan_files(self, older_than: Moment | None = None, dry_run: bool = False) -> Orphans:
        """Removes files that no snapshot, tag or changelog of any branch needs, and says which.

        Only files older than a day, or than `older_than`: younger ones may be of a write that is not committed yet.
        If anything that may need files is unreadable, nothing is deleted. `dry_run` only says what would go.
        """
        from lakebed.maintenance.orphans import clean_orphans
        from lakebed.rewrite import background

        context = self._opened.changeable()
        background.wait_for(context.paths.root)  # what it has written may be committed only later
        return clean_orphans(context, older_than, dry_run)

    def remove_missing_files(self, dry_run: bool = False) -> list[str]:
        """Takes data files that are gone from the disk out of the table, and says which: for a table that lost some.

        Their rows are lost, and the rest can be read again. `dry_run` only says which files are gone.
        """
        from lakebed.maintenance.repair import remove_missing

        context = self._opened.writable()
        return remove_missing(context, dry_run, new_identity(context))

    def repair_metadata(self, dry_run: bool = False) -> list[str]:
        """Rewrites snapshots, tags and changelogs of all branches that Paimon can not read, and says which.

        Older versions of Lakebed wrote what a commit was in words that Paimon does not know. The rewritten files say
        the same here. `dry_run` only says which files it would be.
        """
        from lakebed.maintenance.repair import look_at_operations, mend_operations

        stores = self._opened.changeable().stores
        found = look_at_operations(stores).foreign if dry_run else mend_operations(stores)
        return [one.name for one in found]

    def purge_files(self) -> Orphans:
        """Empties the table for good: rows, history, tags, branches, consumers and all their files. No way back.

        The table stays, with its schema and options. Nobody may be writing to it: files that are not committed go too.
        """
        from lakebed.maintenance.purge import purge
        from lakebed.rewrite import background
        from lakebed.table.writer import remove_all_rows

        context = self._opened.writable()
        background.wait_for(context.paths.root)
        return purge(context, lambda: remove_all_rows(self))

    def rewrite_file_index(self, where: Any = None) -> RewrittenIndexes:
        """Gives all files the indexes that the table's `file-index.*` options ask for now, and says how many changed.

        `where` is a filter on partition columns that chooses the partitions.
        """
        from lakebed.maintenance.file_indexes import rewrite_indexes

        context = self._opened.folded()
        sieve = FileSieve(context, partition_filter(context, where))
        return rewrite_indexes(context, sieve.keep_partitions, new_identity(context))

    def reassign_row_ids(self, where: Any = None) -> ReassignedIds | None:
        """Gives the rows of partitions whose ids have gaps new ids that follow one another; None if there are none.

        For tables with `data-evolution.enabled`. No file is written: only what is said of files changes. `where` is a
        filter on partition columns that chooses the partitions.
        """
        from lakebed.rewrite.row_ids import reassign_ids

        context = self._opened.writable()
        sieve = FileSieve(context, partition_filter(context, where))
        return reassign_ids(context, sieve.keep_partitions, new_identity(context))

    def expire_changelogs(
        self,
        older_than: Moment | None = None,
        retain_max: int | None = None,
        retain_min: int | None = None,
        max_deletes: int | None = None,
        *,
        delete_all: bool = False,
    ) -> Expired:
        """Removes old changelogs that outlived their snapshots, and says what went; `delete_all` removes all of them.

        Without arguments the table's `changelog.*` options decide; with them it is as for `expire_snapshots`.
        """
        from lakebed.maintenance.expiry import expire_table_changelogs

        return expire_table_changelogs(
            self._opened.writable(), older_than, retain_max, retain_min, max_deletes, everything=delete_all
        )

    # --- partitions ----------------------------------------------------------------------------------------------

    def partitions(self) -> list[Partition]:
        """All partitions that have files, by name, with what their files add up to."""
        from lakebed.maintenance.partitions import list_partitions

        return list_partitions(
            self._opened.current(), self._opened.pinned or self._opened.context.stores.snapshots.latest()
        )

    def drop_partitions(self, specs: Sequence[Mapping[str, Any]], if_exists: bool = True) -> DroppedPartitions:
        """Removes the rows of all partitions that agree with one of the specs, in one commit.

        A spec is a dict of partition columns to values, such as `{"dt": "2024-01-01"}`, some of the columns or all.
        With `if_exists=False`, one that names no partition is an error and nothing goes.
        """
        from lakebed.maintenance.partitions import drop

        refuse_view(self._opened.current())
        context = self._opened.folded()
        if isinstance(specs, Mapping | str) or not isinstance(specs, Sequence):
            raise InvalidArgument(f"specs is {specs!r}", hint='pass a list of dicts: [{"dt": "2024-01-01"}]')
        return drop(context, specs, if_exists, new_identity(context))

    def expire_partitions(
        self,
        expiration_time: Duration | None = None,
        timestamp_formatter: str | None = None,
        timestamp_pattern: str | None = None,
        expire_strategy: str | None = None,
        max_expires: int | None = None,
    ) -> DroppedPartitions:
        """Drops the partitions that are older than `expiration_time`, at most `max_expires` of them.

        The age comes from the partition's values (`values-time`) by a pattern like `$dt $hour` and a Java format like
        `yyyy-MM-dd HH`, or from its last change (`update-time`). What is left out is as the table's options say.
        """
        from lakebed.maintenance.partitions import PartitionLife, expire
        from lakebed.maintenance.tags import duration_argument

        refuse_view(self._opened.current())
        context = self._opened.folded()
        default_ms = context.options[PARTITION_EXPIRATION_TIME]
        if expiration_time is not None:
            time_ms = duration_argument(expiration_time, "expiration_time") // dt.timedelta(milliseconds=1)
        elif default_ms is not None:
            time_ms = default_ms
        else:
            raise InvalidArgument(
                "expiration_time is missing", hint=f"pass it, or set option `{PARTITION_EXPIRATION_TIME.key}`"
            )
        life = PartitionLife.of(context.options, time_ms)
        life = replace(
            life,
            strategy=expire_strategy or life.strategy,
            pattern=timestamp_pattern or life.pattern,
            formatter=timestamp_formatter or life.formatter,
            max_count=life.max_count if max_expires is None else max_expires,
        )
        return expire(context, life, new_identity(context))

    def mark_partition_done(self, specs: Sequence[Mapping[str, Any]]) -> list[str]:
        """Tells others that partitions are complete, as `partition.mark-done-action` says; their directories.

        Each spec is a dict of all partition columns to values.
        """
        from lakebed.maintenance.mark_done import mark_done

        if isinstance(specs, Mapping | str) or not isinstance(specs, Sequence):
            raise InvalidArgument(f"specs is {specs!r}", hint='pass a list of dicts: [{"dt": "2024-01-01"}]')
        return mark_done(self._opened.changeable(), specs)

    # --- consumers, manifests, statistics ------------------------------------------------------------------------

    def consumers(self) -> list[Consumer]:
        """The stream readers that keep their progress in the table."""
        return list(self._opened.context.stores.consumers.list())

    def reset_consumer(self, consumer_id: str, next_snapshot: int | None = None) -> None:
        """Lets a consumer go on at a snapshot; without one, the consumer is deleted."""
        from lakebed.maintenance.consumers import reset_consumer

        number = None if next_snapshot is None else snapshot_argument(next_snapshot)
        reset_consumer(self._opened.changeable().stores, consumer_id, number)

    def clear_consumers(self, including: str | None = None, excluding: str | None = None) -> list[str]:
        """Deletes the consumers whose ids match the first regular expression (all) and not the second (none)."""
        from lakebed.maintenance.consumers import clear_consumers

        return clear_consumers(self._opened.changeable().stores, including, excluding)

    def compact_manifest(self) -> Snapshot | None:
        """Writes the table's manifests anew, as few and without deleted files; None when there is nothing to gain."""
        from lakebed.maintenance.manifests import compact_manifests

        context = self._opened.folded()
        return compact_manifests(context, new_identity(context))

    def analyze(self, columns: Sequence[str] | bool = False) -> Snapshot | None:
        """Counts rows and, for these columns (True: all), values, and commits what it finds as statistics.

        None for a table without snapshots. `t.statistics()` reads them back.
        """
        from lakebed.maintenance.analyze import analyzable, analyze

        context = self._opened.writable()
        chosen: list[DataField] = []
        if columns is not False:
            chosen = analyzable(context, None if columns is True else names_argument(columns, "columns"))
        snapshot = context.stores.snapshots.latest()
        if snapshot is None:
            return None
        return analyze(context, snapshot, chosen, new_identity(context))

    def statistics(self) -> TableStatistics | None:
        """What the last analysis found; None when there was none, or the schema changed since."""
        snapshot = self._opened.pinned or self._opened.context.stores.snapshots.latest()
        if snapshot is None or snapshot.statistics is None:
            return None
        return read_statistics(self._opened.context.fileio, self._opened.context.paths, snapshot.statistics)

    def rescale(
        self,
        bucket_num: int | None = None,
        partitions: Sequence[Mapping[str, Any]] | None = None,
        *,
        on_spark: bool | None = None,
    ) -> Snapshot | None:
        """Rewrites partitions (all) into `bucket_num` buckets (what the option `bucket` says), in one commit.

        Set the table's option `bucket` to the same number, or writes to these partitions are refused. Refused itself if
        somebody writes to the partitions meanwhile. None when there was nothing to rewrite. `on_spark` is as in
        `compact`.
        """
        from lakebed.rewrite.rescale import rescale
        from lakebed.table.follow_up import FollowUp

        context = self._opened.folded()
        count = context.options[BUCKET] if bucket_num is None else bucket_num
        run_pieces = place_of_work(context, on_spark)
        done = rescale(context, count, partitions, new_identity(context), run_pieces)
        if done is None:
            return None
        FollowUp(done).run(run_pieces)
        return done.snapshot

    # --- branches ------------------------------------------------------------------------------------------------

    def branches(self) -> list[str]:
        """Names of all branches but the main one. A branch is opened as `table$branch_<name>`."""
        return list_branches(self._opened.context)

    def create_branch(self, name: str, tag: str | None = None) -> None:
        """Makes a branch with the rows of a tag, or without rows. Writing to a branch never touches the others."""
        from lakebed.maintenance.branches import make_branch

        make_branch(self._opened.changeable(), branch_argument(name), tag)

    def delete_branch(self, *names: str) -> None:
        """Deletes branches. Their files are left to `remove_orphan_files`."""
        from lakebed.maintenance.branches import drop_branches

        if not names:
            raise InvalidArgument("no branch is named", hint="pass the name of a branch, or several")
        drop_branches(self._opened.changeable(), [branch_argument(name) for name in names])

    def rename_branch(self, name: str, new_name: str) -> None:
        """Gives a branch another name."""
        from lakebed.maintenance.branches import move_branch

        move_branch(self._opened.changeable(), branch_argument(name), branch_argument(new_name))

    def fast_forward(self, branch: str) -> None:
        """Lets this table go on as the branch does: from the branch's first snapshot on, theirs replace ours."""
        from lakebed.maintenance.branches import follow_branch

        follow_branch(self._opened.changeable(), branch_argument(branch))

    def merge_branch(self, source: str, target: str = MAIN_BRANCH) -> Snapshot | None:
        """Adds the rows that branch `source` has, and `target` lacks, to `target`; None if it lacks none.

        For tables without a primary key. Both branches must have all their snapshots, and none that took rows away.
        """
        from lakebed.maintenance.branch_merge import merge_branch

        context = self._opened.writable()
        here, there = (context_on_branch(context, branch_argument(name)) for name in (source, target))
        return merge_branch(here, there, new_identity(context))
