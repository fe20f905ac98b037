"""Writes rows into a table: many batches, one commit. Nothing is visible until `commit`; an error or `abort` removes
every file made. Writers of streams commit by themselves whenever it is time, and then begin anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from lakebed.cleanup import on_failure
from lakebed.clock import Clock
from lakebed.commit.attempt import Attempt
from lakebed.commit.replay import CommitIdentity, last_identifiers
from lakebed.definition.context import TableContext
from lakebed.definition.elsewhere import place_of_work
from lakebed.definition.incoming import arrow_rows, reader_of
from lakebed.definition.partition_spec import Overwrite
from lakebed.errors import InvalidArgument
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    SINK_ROLLING_POLICY_CHECK_INTERVAL,
    SINK_ROLLING_POLICY_ROLLOVER_INTERVAL,
    WRITE_MERGE_SCHEMA,
    WRITE_MODE,
    Options,
)
from lakebed.table.alter import make_room
from lakebed.table.follow_up import FollowUp, catch_up
from lakebed.table.opened import Holder, opened_of
from lakebed.table.plans import plan_write
from lakebed.write.commit import WriteCommit
from lakebed.write.files import FileMaker
from lakebed.write.placement.postponed import for_stream
from lakebed.write.read_state import ReadState


class TableWriter:
    """One commit in the making. Use it in a `with` block: committed at its end, nothing left behind on an error.

    `read` is the state of the table that the rows were computed from, if others must not have changed that meanwhile.
    With a `timer` the rows so far are committed whenever it says so, under identifiers that count on. `make_room` is
    told the columns of the first rows of a commit, and gives the table as it is to be written to then. `properties` are
    what the snapshot says beside.
    """

    def __init__(
        self,
        context: TableContext,
        *,
        row_kind: str | None = None,
        overwrite: bool | Mapping[str, Any] | Overwrite | None = None,
        identity: CommitIdentity,
        read: ReadState | None = None,
        timer: CommitTimer | None = None,
        make_room: Callable[[pa.Schema], TableContext] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._context = context
        self._row_kind = row_kind
        if overwrite is None or isinstance(overwrite, Overwrite):
            self._overwrite = overwrite
        else:
            self._overwrite = Overwrite.parse(context, overwrite)
        self._read = read
        self._timer = timer
        self._make_room = make_room
        self._properties = dict(properties or {})
        self._begin(identity)

    def _begin(self, identity: CommitIdentity) -> None:
        self._attempt = Attempt(self._context.fileio)
        self._identity = identity
        self._commit = WriteCommit(
            self._context,
            overwrite=self._overwrite,
            identity=identity,
            attempt=self._attempt,
            read=self._read,
        )
        self._commit.properties |= self._properties
        self._files = FileMaker(
            self._context,
            row_kind=self._row_kind,
            overwrite=self._overwrite,
            states=self._commit.states,
            fileio=self._attempt.fileio,
            commit_user=identity.user,
            clusters=not identity.is_replayable,  # what is committed again and again is wanted soon
        )
        self._is_open = True
        self._has_rows = False

    def write(self, data: Any) -> None:
        """Adds rows. A row that does not fit raises before any row of its batch is taken."""
        self._check_open()
        data = arrow_rows(data, self._context.schema.arrow_schema)
        if self._make_room is not None and not self._has_rows:
            data = reader_of(data)
            self._context = self._make_room(data.schema)
            self._begin(self._identity)
        self._has_rows = True
        self._files.write(data, self.abort)
        if self._timer is not None and self._timer.is_due():
            self.commit()
            self._timer.restart()
            self._begin(CommitIdentity(self._identity.user, self._identity.identifier + 1))

    def commit(self) -> Snapshot | None:
        """Makes the rows visible as one snapshot; None when there was nothing to commit."""
        self._check_open()
        with on_failure(self.abort):
            if self._commit.is_committed():
                self.abort()
                catch_up(self._context, self._identity)
                return None
            messages = self._files.finish()
            committed = self._commit.run(messages)
        self._is_open = False
        if committed is None:
            return None
        self._files.remember(committed.snapshot)
        FollowUp(committed).run(place_of_work(committed.context))
        return committed.snapshot

    def abort(self) -> None:
        """Gives everything up and removes the files, unless they may be part of the table. Nothing after a commit."""
        if not self._is_open:
            return
        self._is_open = False
        self._files.abort()
        self._attempt.give_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            if self._is_open:
                self.commit()
        else:
            self.abort()

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidArgument(
                f"this writer of table `{self._context.name}` is done", hint="open another one with t.writer()"
            )


def write_rows(
    table: Holder,
    data: Any,
    row_kind: str | None = None,
    overwrite: bool | Mapping[str, Any] | None = None,
    properties: Mapping[str, str] | None = None,
) -> Snapshot | None:
    """Writes rows as one commit; None when there was nothing to write. Arguments are those of `Table.write`."""
    with opened_of(table).at_a_glance():
        current = opened_of(table).current()
        data = arrow_rows(data, current.schema.arrow_schema)
        if current.options[WRITE_MERGE_SCHEMA]:
            data = reader_of(data)
            make_room(table, data.schema, row_kind)
        context, identity = plan_write(table)
        wanted = None if overwrite is False else overwrite
        writer = TableWriter(context, row_kind=row_kind, overwrite=wanted, identity=identity, properties=properties)
        with writer:
            writer.write(data)
            return writer.commit()


def remove_all_rows(table: Holder, properties: Mapping[str, str] | None = None) -> Snapshot | None:
    """Leaves the table empty, with its history."""
    nothing = opened_of(table).current().schema.arrow_schema.empty_table()
    return write_rows(table, nothing, overwrite={}, properties=properties)


def open_writer(
    table: Holder,
    row_kind: str | None,
    overwrite: bool | Mapping[str, Any] | None,
    commit_user: str | None,
    commit_identifier: int | None,
) -> TableWriter:
    """A writer as the table's options ask for it. Arguments are those of `Table.writer`."""
    context, identity = plan_write(table, commit_user, commit_identifier)
    wanted = None if overwrite is False else overwrite
    timer = None
    if is_stream(context.options) and wanted is None:
        timer = CommitTimer(context.options, context.clock)
        if not identity.is_replayable:
            context, identity = for_stream(context), _next_identity(context, identity.user)
    base = context

    def room_made(incoming: pa.Schema) -> TableContext:
        make_room(table, incoming, row_kind)
        return base.under_latest_schema()

    merges = room_made if context.options[WRITE_MERGE_SCHEMA] else None
    return TableWriter(context, row_kind=row_kind, overwrite=wanted, identity=identity, timer=timer, make_room=merges)


# --- Writers that commit again and again (`write-mode` = `stream`): when, and as which commit of theirs -----------
#
# Rows wait for their commit no longer than `sink.rolling-policy.rollover-interval`, looked at whenever rows come, but
# not more often than every `sink.rolling-policy.check-interval`. Without an interval every call is a commit.


STREAM = "stream"


def is_stream(options: Options) -> bool:
    """Whether a writer is asked to commit again and again."""
    return options[WRITE_MODE] == STREAM


def _next_identity(context: TableContext, user: str) -> CommitIdentity:
    """The commit after all that this user has made."""
    snapshots = context.stores.snapshots
    return CommitIdentity(user, last_identifiers(snapshots, snapshots.latest()).get(user, 0) + 1)


class CommitTimer:
    """Tells when the rows written so far have waited long enough."""

    def __init__(self, options: Options, clock: Clock) -> None:
        self._longest_ms = options[SINK_ROLLING_POLICY_ROLLOVER_INTERVAL]
        self._check_ms = options[SINK_ROLLING_POLICY_CHECK_INTERVAL] or 0
        self._clock = clock
        self._since_ms: int | None = None
        self._checked_ms: int | None = None

    def is_due(self) -> bool:
        """To be asked when rows have come: whether to commit them, and all before them."""
        if self._longest_ms is None:
            return True
        now_ms = self._clock.now_ms()
        if self._since_ms is None:
            self._since_ms = self._checked_ms = now_ms
        if self._checked_ms is not None and now_ms - self._checked_ms < self._check_ms:
            return False
        self._checked_ms = now_ms
        return now_ms - self._since_ms >= self._longest_ms

    def restart(self) -> None:
        """To be called when everything is committed."""
        self._since_ms = None


__all__ = [
    "CommitTimer",
    "TableWriter",
    "is_stream",
    "open_writer",
    "remove_all_rows",
    "write_rows",
]
