"""From a micro-batch of envelope rows to commits of the tables they are for: what Spark calls for each batch.

    which tables and columns are in the batch → their tables in the lake → schema changes → rows → one commit per table
    → a note that all tables have the batch

All of it can be repeated at any point: a table that has the batch already is left out, a schema change that was made
changes nothing a second time.

INVARIANT: only when every table has its rows does Spark note the batch, and only then may the source forget. A batch
that is noted is never asked for again: what is missing in a table then is lost.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from lakebed.cdc.batch.batch import POSITION, SOURCE, Batch, Counts, Marks, SparkBatch, position_of
from lakebed.cdc.batch.commit import TableCommit, is_committed
from lakebed.cdc.batch.dead_letters import put_aside
from lakebed.cdc.batch.job import BatchJob, TableTask
from lakebed.cdc.batch.notes import SyncNotes
from lakebed.cdc.batch.parts import TablePart, chunk_places, first_descriptions, past_of
from lakebed.cdc.envelope import (
    COPY,
    ROWS,
    SKIPPED,
    STREAM,
    TROUBLE,
    TRUNCATE,
    Chunk,
    SourceName,
    SourceTable,
    trouble_of,
)
from lakebed.cdc.parked import ParkedTables
from lakebed.cdc.progress import ProgressBoard, ProgressFile
from lakebed.cdc.routing import Target
from lakebed.cdc.rows.keeping import CHANGES, STATE, table_name
from lakebed.cdc.rules import FAIL_TRUNCATE, IGNORE_TRUNCATE, STOP, SyncRules
from lakebed.cdc.schema.backfill import fill_waiting
from lakebed.cdc.schema.evolve import EvolvedTable, evolve
from lakebed.cdc.schema.links import TableLinks
from lakebed.cdc.schema.targets import check_beginning, quoted, target_table
from lakebed.cdc.storage import Storage
from lakebed.cleanup import on_failure
from lakebed.clock import SystemClock
from lakebed.errors import CommitConflict, InvalidArgument, InvalidData, InvalidSchema, LakebedError, StorageError
from lakebed.metrics.families import (
    CDC_BATCH_DURATION,
    CDC_DEAD_LETTERS,
    CDC_LAG,
    CDC_PARKED_TABLES,
    CDC_ROWS,
    CDC_SIZE,
    CDC_SKIPPED_RECORDS,
)
from lakebed.options import LAKEBED_CDC_COLUMNS
from lakebed.spark.stream.follow_ups import FollowUps
from lakebed.spark.stream.query import query_id_of
from lakebed.spark.tasks import run_pieces
from lakebed.table.follow_up import FollowUp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakebed.lake import Lake
    from lakebed.table.table import Table

_log = logging.getLogger(__name__)

_HERE_BYTES: Final = 16 << 20
"""Batches up to this size are written on the driver: a job would take longer to start."""
_BLOCKS_AT_A_TIME: Final = 16
"""Chunks that Spark hands to a worker together: each may have megabytes."""

_BEHIND_S: Final = 10.0
"""A sync whose changes are older has more to do than to compact, as long as there are not too many runs of files."""
_MOST_WAITING: Final = 32
"""So many commits are followed up together at most: where each goes to new buckets, runs alone would set no limit."""

_MOST_READERS: Final = 4
"""As many tasks look through all payloads for the rows of their buckets; with more of them, rows are moved instead."""

Step = Callable[[str], None]
"""Told of each step of a batch before it is made; tests let it fail."""


class Pipeline:
    """Applies batches of one source to one lake. With Spark Connect a copy of it does so, in a process of the server:
    it tells its progress through a file, and leaves nothing to be done behind its last batch."""

    def __init__(
        self,
        lake: Lake,
        rules: SyncRules,
        checkpoint: str,
        *,
        source: str,
        board: ProgressBoard | None = None,
        here_bytes: int = _HERE_BYTES,
        on_step: Step | None = None,
        notes: SyncNotes | None = None,
    ) -> None:
        self._lake = lake
        self.rules = rules
        self._checkpoint = checkpoint
        self._storage = Storage(lake.storage_options, checkpoint or None)
        self._source = source
        self._notes = notes or SyncNotes(source)
        self.board = board or ProgressBoard()
        self._here_bytes = here_bytes
        self._on_step: Step = on_step or (lambda _: None)
        self._user: str | None = None
        self._tables: dict[Target, Table] = {}
        self._sources_of: dict[Target, set[str]] = {}
        self._form_of: dict[str, str] = {}
        self._skipped: set[str] = set()
        self._parked = ParkedTables(checkpoint, self._storage)
        self.failure: Exception | None = None
        """What made the last batch fail: Spark tells only its text."""
        self._follow_ups = FollowUps()
        self._waiting: list[Callable[[], None]] = []
        self._is_copy = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._is_copy = True

    def prepare(self, sources: Sequence[SourceTable], user: str = "") -> None:
        """Makes the tables of the lake that are known to be needed, and says what is wrong with them before a start."""
        together: dict[Target, list[SourceTable]] = {}
        for source in sources:
            for target in self._targets(source.name):
                together.setdefault(target, []).append(source)
        for target, members in together.items():
            with self._parking(target, None):
                self._open(target, members, user)
        self._show_parked()

    def park(self, source: SourceName, error: LakebedError) -> None:
        """Told before the start: a table that can not be followed."""
        for target in self._targets(source):
            self._park(target, error, None)

    def process(self, batch: DataFrame, batch_id: int) -> None:
        """Applies one micro-batch, exactly once."""
        spark = batch.sparkSession
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_BLOCKS_AT_A_TIME))
        if self._user is None:
            self._user = query_id_of(spark, self._checkpoint)
        position = position_of(spark, self._checkpoint, batch_id)
        kept = batch.persist()
        self.failure = None
        try:
            self.apply(SparkBatch(kept), self._user, batch_id + 1, position)
        except Exception as error:
            self.failure = error
            raise
        finally:
            kept.unpersist()
            if self._is_copy:
                with suppress(LakebedError):  # it is there for those who watch
                    ProgressFile(self._checkpoint, self._storage).write(self.board.now)

    def close(self, *, in_haste: bool = False) -> None:
        """Sees to what the last commits made due; `in_haste` leaves to the next run what has not begun."""
        if self._waiting and not in_haste:
            self._run_behind([])
        self._follow_ups.wait()

    def apply(self, batch: Batch, user: str, identifier: int, position: str | None) -> None:
        """Applies one batch, which is the commit `identifier` of `user`."""
        with CDC_BATCH_DURATION.timed(*self.labels):
            self._apply(batch, user, identifier, position)

    @property
    def labels(self) -> tuple[str, str]:
        """What metrics call this sync: its source, and the database of the lake."""
        return self._source, self.rules.routing.database

    def reads_and_writes(self) -> tuple[list[str], list[Table]]:
        """Names of the tables of the source that are known, and the tables of the lake that they go to."""
        sources = {name for names in list(self._sources_of.values()) for name in list(names)}
        return sorted(sources), list(self._tables.values())

    def _apply(self, batch: Batch, user: str, identifier: int, position: str | None) -> None:
        self._on_step("read")
        chunks, sizes = batch.chunks()
        properties = {SOURCE: self._source} | ({} if position is None else {POSITION: position})
        by_target = self._by_target(chunks, position)
        parts: list[TablePart] = []

        def abort() -> None:
            for part in parts:
                part.commit.abort()

        with on_failure(abort):
            for target, mine in by_target.items():
                with self._parking(target, position):
                    part = self._planned(batch, target, mine, user, identifier, properties)
                    if part is not None:
                        parts.append(part)
            written = [part for part in parts if any(chunk.kind != "schema" for chunk in part.chunks)]
            size_of = {part.target: sum(sizes[chunk.ordinal] for chunk in part.chunks) for part in written}
            size_bytes = sum(size_of.values())
            self._on_step("write")
            if size_bytes <= self._here_bytes:
                counts = self._write_here(batch, written, position)
            else:
                counts = self._write_in_tasks(batch, written, user, position)
            self._follow_ups.wait()
            self._begin_note(user, [part.target.table for part in written])
            self._commit(
                batch.spark, [(part, counts[part.target]) for part in written if part.target in counts], position
            )
            for target in counts:
                CDC_SIZE.tell(size_of[target], str(target))
        self._put_aside(chunks, user, identifier, properties)
        self._take_back(by_target)
        self._on_step("note")
        touched = [target for target in by_target if target in self._tables and str(target) not in self._parked]
        self._notes.end(identifier, position, {target.table: self._tables[target] for target in touched})

    # --- tables that are parked ------------------------------------------------------------------------------------

    @contextmanager
    def _parking(self, target: Target, position: str | None) -> Iterator[None]:
        """Parks the table if what is done for it fails for a reason that is its own."""
        try:
            yield
        except LakebedError as error:
            # What passes, or may be repeated, is nobody's trouble: the batch comes again.
            if self.rules.on_error == STOP or isinstance(error, StorageError | CommitConflict):
                raise
            self._park(target, error, position)

    def _park(self, target: Target, error: LakebedError, position: str | None) -> None:
        is_news = str(target) not in self._parked
        self._parked.park(str(target), self._sources_of.get(target, ()), error, position)
        self._tables.pop(target, None)
        self._notes.leave_out(target.table, error.message)
        self._show_parked()
        if is_news:
            _log.warning("table %s is parked, the others go on: %s", target, error.message)

    def _show_parked(self) -> None:
        parked = {name: parked.why for name, parked in self._parked.all().items()}
        self.board.tables_parked(parked)
        CDC_PARKED_TABLES.tell(len(parked), *self.labels)

    def _take_back(self, by_target: Mapping[Target, Sequence[Chunk]]) -> None:
        """Tables that were parked and have got the beginning of a new copy follow their sources again.

        INVARIANT: this comes behind the commit of that beginning. A table that is taken back before would get changes
        of later batches without what it lacks.
        """
        back = [target for target in by_target if str(target) in self._parked and target in self._tables]
        for target in back:
            self._notes.take_back(target.table)
        self._parked.take_back(str(target) for target in back)
        self._show_parked()

    def _put_aside(self, chunks: Sequence[Chunk], user: str, identifier: int, properties: dict[str, str]) -> None:
        """Rows that could not be read, and that the source has sent as they are, go to the dead letters."""
        mine = [chunk for chunk in chunks if chunk.kind == TROUBLE and chunk.payload is not None]
        if mine:
            count = put_aside(self._lake, self.rules.routing.database, mine, user, identifier, properties)
            self.board.rows_put_aside(count)
            CDC_DEAD_LETTERS.tell(count, *self.labels)

    def _begin_note(self, user: str, touched: Sequence[str]) -> None:
        tables = {target.table: table for target, table in self._tables.items()}
        self._notes.begin(user, tables, {target.table: names for target, names in self._sources_of.items()}, touched)
        for name, why in self.board.now.skipped.items():
            target = next((each for each in self._tables if str(each) == name), None)
            if target is not None:
                self._notes.leave_out(target.table, why)

    def _by_target(self, chunks: Sequence[Chunk], position: str | None) -> dict[Target, list[Chunk]]:
        """Chunks of each table of the lake, in their order; of one that is parked, those from a new copy on."""
        found: dict[Target, list[Chunk]] = {}
        for chunk in chunks:
            if chunk.kind == SKIPPED:
                self._note_skipped(chunk)
                continue
            for target in self._targets(chunk.name, is_begun=True):
                found.setdefault(target, []).append(chunk)
        return {target: kept for target, mine in found.items() if (kept := self._unparked(target, mine, position))}

    def _unparked(self, target: Target, chunks: list[Chunk], position: str | None) -> list[Chunk]:
        for number, chunk in reversed(list(enumerate(chunks))):
            if chunk.kind == TROUBLE and chunk.payload is None:
                error = trouble_of(chunk)
                if self.rules.on_error == STOP:
                    raise error
                self._park(target, error, position)
                return []
            if chunk.kind == TRUNCATE and chunk.phase == COPY and str(target) in self._parked:
                self._tables.pop(target, None)  # the cure may have been to make it anew
                return [each for each in chunks[number:] if each.kind != TROUBLE]
        return [] if str(target) in self._parked else [chunk for chunk in chunks if chunk.kind != TROUBLE]

    def _note_skipped(self, chunk: Chunk) -> None:
        body = json.loads(chunk.columns)
        self.board.records_skipped(int(body["count"]), str(body["why"]))
        CDC_SKIPPED_RECORDS.tell(int(body["count"]), *self.labels)
        _log.warning("a message was left out: %s", body["why"])

    def _targets(self, source: SourceName, *, is_begun: bool = False) -> list[Target]:
        """The tables of the lake that a table of the source goes to, the one with its newest rows first."""
        state = self._target(source, is_begun=is_begun)
        if state is None:
            return []
        targets = [
            replace(state, table=table_name(state.table, form), form=form)
            for form in self.rules.keeping.forms_of(source)
        ]
        if not self._is_free(state, source, is_begun=is_begun):
            del self._sources_of[state]
            return []
        return [state, *(each for each in targets[1:] if self._is_free(each, source, is_begun=is_begun))]

    def _is_free(self, target: Target, source: SourceName, *, is_begun: bool) -> bool:
        """Whether no other table of the source has the name, for another purpose; if not, the first one has it."""
        form = self._form_of.setdefault(str(target), target.form)
        if form == target.form:
            self._sources_of.setdefault(target, set()).add(str(source))
            return True
        error = InvalidArgument(
            f"table `{target}` would hold both the {target.form} of {source} and the {form} of another table",
            hint="map one of them to another name, or keep the past of fewer tables",
        )
        if not is_begun or self.rules.on_error == STOP:
            raise error
        self._leave_out(str(source), error)
        return False

    def _target(self, source: SourceName, *, is_begun: bool = False) -> Target | None:
        target = self.rules.routing.target(source)
        if target is None:
            return None
        known = self._sources_of.setdefault(target, set())
        together = sorted({*known, str(source)})
        if len(together) > 1 and self.rules.merge_shards is None and self.rules.routing.table is None:
            error = InvalidArgument(
                f"{' and '.join(together[:2])} would both go to table `{target}`",
                hint="set merge_shards to true to have them there together, to false for a table each, or map one of "
                "them to another name",
            )
            if not is_begun or self.rules.on_error == STOP:
                raise error
            self._leave_out(str(source), error)  # one that came while the sync runs: the other goes on
            return None
        known.add(str(source))
        return target

    # --- tables --------------------------------------------------------------------------------------------------

    def _planned(
        self,
        batch: Batch,
        target: Target,
        chunks: Sequence[Chunk],
        user: str,
        identifier: int,
        properties: dict[str, str],
    ) -> TablePart | None:
        """The table's part of the batch, with its columns as the batch needs them; None if there is nothing to do."""
        if str(target) in self._skipped:
            return None
        table = self._tables.get(target) or self._open_for(target, chunks, user)
        if table is None:
            return None
        state = self._state_beside(target, chunks)
        self._on_step("check")
        if is_committed(table, user, identifier):
            return None
        if state is not None and is_committed(state, user, identifier):
            # What rows were before is not to be had any more: whoever asks for changes gets those of later batches.
            return None
        self._on_step("schema")
        past = past_of(self.rules, target, table, state)
        evolved = self._evolved(table, target, chunks, user, identifier, None if past is None else past.key)
        if evolved is None:
            return None
        if fill_waiting(table, user, identifier, batch.spark, past):
            self._on_step("backfill")
        commit = TableCommit(table, user, identifier, properties)
        past = past_of(self.rules, target, table, state)  # with the columns of now
        links = TableLinks.from_text(table.schema.options.get(LAKEBED_CDC_COLUMNS.key), user)
        kept: list[Chunk] = []
        has_rows: set[SourceName] = set()
        is_anew = str(target) in self._parked
        for chunk in chunks:
            if chunk.kind == ROWS:
                has_rows.add(chunk.name)
            elif chunk.kind == TRUNCATE and not (is_anew and not kept):
                is_known = links.shape(chunk.name).before_commit(identifier) and table.latest_snapshot() is not None
                if not self._truncates(target, chunk.name, is_new=not is_known and chunk.name not in has_rows):
                    continue
            kept.append(chunk)
        return TablePart(target, tuple(kept), evolved, commit, past)

    def _state_beside(self, target: Target, chunks: Sequence[Chunk]) -> Table | None:
        """The table with the newest rows, of whose changes another one tells. It has the columns of this batch.

        INVARIANT: it has no rows of this batch before those who ask it what rows were have theirs: see `_commit`.
        """
        if target.form != CHANGES:
            return None
        of_source = {self.rules.routing.target(chunk.name) for chunk in chunks}
        state = next((each for each in self._tables if each in of_source), None)
        is_new_copy = bool(chunks) and chunks[0].kind == TRUNCATE and chunks[0].phase == COPY
        if state is None or (str(state) in self._parked and not is_new_copy):
            raise InvalidData(
                f"table `{target}` can not tell what rows were: that of the newest rows is not followed now",
                hint=f"cure that one; the new copy of it, which its cure needs, brings back `{target}` as well",
            )
        return self._tables[state]

    def _evolved(
        self,
        table: Table,
        target: Target,
        chunks: Sequence[Chunk],
        user: str,
        identifier: int,
        key: tuple[str, ...] | None,
    ) -> EvolvedTable | None:
        try:
            return evolve(table, target, chunks, self.rules.of_form(target.form), user, identifier, key)
        except InvalidSchema as error:
            if not self.rules.skips_incompatible:
                raise
            self._skip(target, error)
            return None

    def _open_for(self, target: Target, chunks: Sequence[Chunk], user: str) -> Table | None:
        """The table of the lake for some chunks; None if they only tell of a table that is none of ours yet."""
        sources = first_descriptions(chunks)
        is_told = any(not source.description.partial for source in sources)
        if sources and not is_told and not self._lake.has_table(quoted(target)):
            return None  # deletes of rows that never came
        return self._open(target, sources, user) if sources else None

    def _open(self, target: Target, sources: Sequence[SourceTable], user: str) -> Table | None:
        """The table of the lake; None if it is not to be had, and that is no reason to stop."""
        if str(target) not in self._parked:
            check_beginning(self._lake, target, sources, self.rules)
        try:
            table = target_table(self._lake, target, sources, self.rules.of_form(target.form), user)
        except InvalidSchema as error:
            if self.rules.is_for_one_table or self._lake_has(target):
                raise
            self._skip(target, error)
            return None
        self._tables[target] = table
        return table

    def _lake_has(self, target: Target) -> bool:
        return not self.rules.skips_incompatible and self._lake.has_table(quoted(target))

    def _skip(self, target: Target, error: LakebedError) -> None:
        self._skipped.add(str(target))
        self._leave_out(str(target), error)

    def _leave_out(self, name: str, error: LakebedError) -> None:
        if name not in self.board.now.skipped:
            self.board.table_skipped(name, error.message)
            _log.warning("table %s is not followed: %s", name, error.message)

    def _truncates(self, target: Target, source: SourceName, *, is_new: bool) -> bool:
        """Whether a TRUNCATE counts: if it is allowed, and the table is nobody else's. A new source has no rows."""
        is_shared = len(self._sources_of[target]) > 1
        if self.rules.truncate == IGNORE_TRUNCATE or (is_new and is_shared):
            return False
        if self.rules.truncate == FAIL_TRUNCATE and not is_new:
            raise InvalidData(f"{source} was truncated", hint="start again with truncate set to `delete` or `ignore`")
        if is_shared:
            raise InvalidData(
                f"{source} was truncated, and table `{target}` has rows of other sources too",
                hint="delete its rows in the lake, and start again with truncate set to `ignore`",
            )
        return True

    # --- rows ----------------------------------------------------------------------------------------------------

    def _write_here(self, batch: Batch, parts: Sequence[TablePart], position: str | None) -> dict[Target, Counts]:
        missing = [
            chunk.ordinal
            for part in parts
            for chunk in part.chunks
            if chunk.kind == ROWS and chunk.payload is None and chunk.place is None
        ]
        payloads = batch.payloads(missing) if missing else {}
        counts = {}
        for part in parts:
            with self._parking(part.target, position), on_failure(part.commit.abort):
                counts[part.target] = part.write_here(payloads, self._storage)
        return counts

    def _write_in_tasks(
        self, batch: Batch, parts: Sequence[TablePart], user: str, position: str | None
    ) -> dict[Target, Counts]:
        """All tables in one job. If it fails for a reason of one of them, which a job does not tell, one by one."""
        try:
            return self._written_in_tasks(batch, parts, user)
        except LakebedError as error:
            if self.rules.on_error == STOP or isinstance(error, StorageError | CommitConflict):
                raise
        counts: dict[Target, Counts] = {}
        for part in parts:
            with self._parking(part.target, position), on_failure(part.commit.abort):
                counts |= self._written_in_tasks(batch, [part], user)
        return counts

    def _written_in_tasks(self, batch: Batch, parts: Sequence[TablePart], user: str) -> dict[Target, Counts]:
        marks = Marks.told_by([chunk for part in parts for chunk in part.chunks]) or batch.marks()
        workers = batch.workers
        tasks = tuple(
            TableTask.of(
                part.commit.context,
                part.evolved.shapes,
                part.commit.states(),
                part.commit.job,
                user,
                part.is_whole or any(chunk.ordinal in marks.unchanged for chunk in part.chunks),
                workers,
                part.past,
            )
            for part in parts
        )
        chunk_of: dict[int, tuple[tuple[int, int], ...]] = {}
        for number, part in enumerate(parts):
            for chunk in part.chunks:
                if chunk.kind in (ROWS, TRUNCATE):
                    mine = (number, part.evolved.shape_of[chunk.ordinal])
                    chunk_of[chunk.ordinal] = (*chunk_of.get(chunk.ordinal, ()), mine)
        ways = max(1, sum(task.ways for task in tasks))
        members = [chunk for part in parts for chunk in part.chunks if chunk.ordinal in chunk_of]
        found = chunk_places(members, _HERE_BYTES)
        for part in parts:
            part.commit.take([])  # whatever tasks leave behind is looked for from now on
        if found is not None and workers <= _MOST_READERS:
            made = batch.run_apart(BatchJob(tasks, chunk_of, min(ways, workers), found, self._storage))
        else:
            made = batch.run(BatchJob(tasks, chunk_of, min(ways, 2 * workers), storage=self._storage))
        for number, part in enumerate(parts):
            part.commit.take(made.get(number, []))
        return {part.target: marks.counts(part.chunks) for part in parts}

    def _commit(
        self, spark: SparkSession | None, parts: Sequence[tuple[TablePart, Counts]], position: str | None
    ) -> None:
        due: list[Callable[[], None]] = []
        now_ms = SystemClock().now_ms()
        phases = set()
        # INVARIANT: changes are there before the newest rows are. A batch that is repeated asks the newest rows what
        # they were before it, and would get what it has made of them.
        for part, count in sorted(parts, key=lambda each: each[0].target.form == STATE):
            self._on_step("commit")
            committed = None
            with self._parking(part.target, position):
                committed = part.commit.run()
            self._on_step("committed")
            if part.target not in self._tables:
                continue  # parked just now
            phase = STREAM if any(chunk.phase == STREAM for chunk in part.chunks) else COPY
            phases.add(phase)
            lag = max(0.0, (now_ms - count.latest_ms) / 1000) if phase == STREAM and count.latest_ms else None
            self.board.table_committed(str(part.target), count.rows, phase, part.evolved.changes, lag)
            CDC_ROWS.tell(count.rows, str(part.target))
            if lag is not None:
                CDC_LAG.tell(lag, str(part.target))
            if committed is None:
                continue
            follow_up = FollowUp(committed)
            run = partial(follow_up.run, None if spark is None else run_pieces(lambda: spark))
            if follow_up.is_awaited or self._is_copy:
                run()
            elif lag is not None and lag > _BEHIND_S and self._has_room and follow_up.may_wait:
                self._waiting.append(run)
            else:
                due.append(run)
        if due:
            self._run_behind(due)
        phase = COPY if phases == {COPY} else STREAM if phases else ""
        # The same changes may go to tables that keep the past: they are counted once.
        rows = sum(count.rows for part, count in parts if part.target.form == STATE)
        self.board.batch_done(rows, phase, position)

    @property
    def _has_room(self) -> bool:
        return len(self._waiting) < _MOST_WAITING

    def _run_behind(self, due: Sequence[Callable[[], None]]) -> None:
        """Begins what is due, and what has waited for it."""
        everything, self._waiting = [*self._waiting, *due], []
        self._follow_ups.run(lambda: _run_all(everything))


def _run_all(due: Sequence[Callable[[], None]]) -> None:
    for follow_up in due:
        try:
            follow_up()
        except LakebedError as error:
            _log.warning("what follows a commit was not finished: %s", error.message)


__all__ = ["Pipeline", "Step"]
