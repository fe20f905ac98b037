"""Carries a history out on a real table and on its meaning, and asks all oracles after every step.

An operation is a name and plain arguments, so that a history can be printed, kept, cut down and run again. What does
not apply (a column that is gone, a snapshot that has expired) is passed over: a shorter history is still a history.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.properties.admission import Objection
from tests.properties.combinations import elsewhere, oracles
from tests.properties.combinations.configuration import Configuration
from tests.properties.combinations.findings import Finding
from tests.properties.combinations.meaning import Key, Meaning, Saved, distinct
from tests.properties.combinations.script import code_of
from tests.properties.row_statements import update_where

import lakebed
from lakebed.catalog.filesystem import FilesystemCatalog
from lakebed.clock import RandomIds, SystemClock
from lakebed.errors import CorruptFile, FileMissing, LakebedError
from lakebed.fileio import open_fileio
from lakebed.lake import Lake
from lakebed.metadata.entries import live_files
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.spark.session import Session
from lakebed.testing.conditions import Filter, comparison
from lakebed.testing.faulty_io import MUTATIONS, FaultyFileIO, SimulatedCrash
from lakebed.testing.model import ModelSchema, Record, Row, Value
from lakebed.testing.model_arrow import from_arrow, tally, to_arrow_array, to_arrow_table, types_of
from lakebed.testing.model_engines import FirstRow
from lakebed.types.logical import AtomicType, parse_type

OP = "op"
MEMORY = Path("/dev/shm")
"""A history writes thousands of files that nobody keeps."""


@dataclass(frozen=True)
class Operation:
    """One step of a history."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def to_members(self) -> list[Any]:
        """Plain data."""
        return [self.name, dict(self.arguments)]


@dataclass(frozen=True)
class Step:
    """An operation made ready: what to do with the table, and what it means."""

    real: Callable[[lakebed.Table], object]
    meaning: Callable[[], None] = lambda: None
    may_refuse: bool = False
    must_refuse: bool = False
    can_crash: bool = False
    may_miss: bool = False
    """Whether files that it has to read may have expired meanwhile."""
    settles: bool = False
    """Whether a compaction may follow the commit by itself."""


@dataclass
class Line:
    """A branch: its meaning, and what each of its snapshots showed when it was new."""

    meaning: Meaning
    saved: dict[int, Saved] = field(default_factory=dict)
    rows: dict[int, list[Row]] = field(default_factory=dict)
    forgotten: set[int] = field(default_factory=set)
    """Snapshots whose rows would read otherwise by now."""


class NoSpark(Session):
    """A session that is never started: every statement of a history has to do without."""

    def get(self) -> Any:
        """None."""
        raise Finding("a statement asks for Spark", "it is meant to be carried out in this process")


class Machine:
    """One table, one history."""

    def __init__(self, configuration: Configuration, spark: object = None) -> None:
        self.configuration = configuration
        base = MEMORY if MEMORY.is_dir() else None
        self.directory = tempfile.mkdtemp(prefix="lakebed-combinations-", dir=base)
        self.spark = spark
        self.url = f"{self.directory}/lake"
        self.lake = lakebed.connect(self.url, spark=spark or NoSpark())
        self.line = Line(Meaning(configuration))
        self.done: list[Operation] = []
        self.refused = 0
        self.writers: list[tuple[lakebed.TableWriter, list[Row], list[str], ModelSchema]] = []
        self.tags: dict[str, int] = {}
        self.tag_count = 0
        self.tag_states: dict[str, tuple[Saved, list[Row]]] = {}
        self.branches: dict[str, Line] = {}
        self.identifiers: dict[str, int] = {}
        self.stream: oracles.Stream | None = None
        self.has_diverged = False
        """Whether the table was rolled back to before the branch, which then is no longer where it would go on."""
        self.looked_at: object = None
        """What was published when the oracles were asked last."""
        self.resyncs = False
        """Whether everything is told now, so that changes can be replayed again from here on."""
        self.is_out_of_step = False
        """Whether the option `bucket` and the files differ, so that writes are refused until a rescale."""
        try:
            self.create()
        except BaseException:
            self.close()
            raise

    # --- the table ---

    def create(self) -> None:
        config = self.configuration
        table = self.lake.create_table(
            "t",
            dict(config.columns),
            primary_key=config.primary_key,
            partition_by=config.partition_by,
            options=dict(config.options),
        )
        self.handles = [table, self.open()]

    def open(self, name: str = "t") -> lakebed.Table:
        """A fresh handle, as another process would have it."""
        return lakebed.connect(self.url, spark=self.spark).table(name)

    def close(self) -> None:
        for writer, *_ in self.writers:
            with contextlib.suppress(Exception):
                writer.abort()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def meaning(self) -> Meaning:
        return self.line.meaning

    def _current(self) -> dict[Key, Record]:
        return self.meaning.current() if self.meaning.has_key else {}

    def code(self) -> str:
        """The history as calls that anybody can run."""
        return code_of(self.configuration, self.done)

    # --- running ---

    def run(self, operation: Operation) -> bool:
        """Does one operation and asks the oracles; whether it applied."""
        make = getattr(self, f"op_{operation.name}")
        step: Step | None = make(**operation.arguments)
        if step is None:
            return False
        self.done.append(operation)
        self.unsettled = (
            self.meaning.save()
        )  # what is shown between the snapshots of one step, unless it says otherwise
        self._carry_out(step, operation.name, int(operation.arguments.get("handle", 0)))
        oracles.after_step(self)
        return True

    def finish(self) -> None:
        """The questions that are asked once, at the end."""
        oracles.at_the_end(self)

    def _carry_out(self, step: Step, name: str, handle: int) -> None:
        table = self.handles[handle % 2]
        before = self._footprint()
        try:
            step.real(table)
        except (CorruptFile, FileMissing) as error:
            if isinstance(error, FileMissing) and step.may_miss:
                self._was_refused(step, name, error, before)
                return
            raise Finding(f"{name} can not read", f"{type(error).__name__}: {error}") from error
        except LakebedError as error:
            self._was_refused(step, name, error, before)
            return
        except Finding:
            raise
        except Exception as error:
            raise Finding(f"{name} raises {type(error).__name__}", f"{error}") from error
        if step.must_refuse:
            raise Finding(f"{name} is accepted", "rows that the merge engine can not take")
        step.meaning()

    def _was_refused(self, step: Step, name: str, error: LakebedError, before: tuple[int, int]) -> None:
        self.refused += 1
        if not (step.may_refuse or step.must_refuse or self.is_out_of_step):
            raise Finding(f"{name} is refused", f"{type(error).__name__}: {error}") from error
        after = self._footprint()
        may_compact = self.is_out_of_step or step.must_refuse
        if after != before and not (may_compact and self._has_only_compacted(before, after)):
            raise Finding(f"{name} is refused but changed something", f"{before} became {after}; {error}") from error

    def _has_only_compacted(self, before: tuple[int, int], after: tuple[int, int]) -> bool:
        """Whether old rows that came back were folded as they were meant, before new ones were refused beside them."""
        new = [snapshot for snapshot in self.handles[0].snapshots() if snapshot.id > before[0]]
        return before[1] == after[1] and all(snapshot.commit_kind == CommitKind.COMPACT for snapshot in new)

    def _footprint(self) -> tuple[int, int]:
        table = self.handles[0]
        latest = table.latest_snapshot()
        return (0 if latest is None else latest.id, table.schema.id)

    # --- writing ---

    def arrow(self, rows: Sequence[Row], kinds: Sequence[str] | None = None) -> pa.Table:
        """Rows for the table."""
        table = to_arrow_table(rows, types_of(self.meaning.model.schema))
        return table if kinds is None else table.append_column(OP, pa.array(kinds, pa.string()))

    def op_write(
        self, rows: list[Row], kinds: list[str] | None = None, handle: int = 0, process: bool = False
    ) -> Step | None:
        """A batch write."""
        rows, kinds = self._fitting(rows, kinds)
        if not rows:
            return None
        data = self.arrow(rows, kinds)

        def real(table: lakebed.Table) -> None:
            if process:
                elsewhere.write(self.url, data, OP if kinds else None)
            else:
                table.write(data, row_kind=OP if kinds else None)

        return Step(real, lambda: self._wrote(rows, kinds), can_crash=not process, settles=True)

    def _fitting(
        self, rows: list[Row], kinds: list[str] | None, *, replaces: bool = False
    ) -> tuple[list[Row], list[str] | None]:
        kinds = kinds if self.meaning.has_key else None
        found, fitting = self.meaning.fitting(rows, kinds or ["+I"] * len(rows), replaces=replaces)
        return found, fitting if kinds else None

    def _wrote(self, rows: Sequence[Row], kinds: Sequence[str] | None) -> bool:
        """Whether any of the rows came to a file: no commit is made of none."""
        meaning = self.meaning
        before = meaning.current() if meaning.has_key else {}
        written = meaning.write(rows, kinds)
        meaning.note()
        self._committed(before, {meaning.model.key_of(record.cells) for record in written})
        return bool(written)

    def _committed(self, before: Mapping[Key, Record], keys: set[Key] | None = None, *, compacts: bool = True) -> None:
        """A commit is there; a compaction of the buckets that it wrote to may have followed.

        `before`: what was there; `keys`: what was written, beside that which changed.
        """
        meaning = self.meaning
        self.unsettled = meaning.save()
        if not meaning.hides:
            meaning.settle(told=False)
        if compacts and meaning.compacts_at_once:
            after = meaning.current() if meaning.has_key else {}
            changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
            meaning.settle(keys=changed | (keys or set()))

    def op_bad_write(self, row: Row, kind: str, handle: int = 0) -> Step | None:
        """A row that the merge engine can not take: to be refused when it comes, not when it is read."""
        meaning = self.meaning
        if not meaning.has_key or self.configuration.crosses_partitions:
            return None
        row = meaning.fitted(row)
        if meaning.objection(row, kind) is not Objection.REFUSED or meaning.leaves_groups_alone(row):
            return None
        if meaning.takes_back_all():
            return None
        data = self.arrow([row], [kind])
        return Step(lambda table: table.write(data, row_kind=OP), must_refuse=True)

    def op_stream_write(
        self, rows: list[Row], kinds: list[str] | None = None, user: str = "job", replay: bool = False
    ) -> Step | None:
        """A commit of a job that numbers its commits, or the same one once more."""
        rows, kinds = self._fitting(rows, kinds)
        number = self.identifiers.get(user, 0) + (0 if replay else 1)
        if not rows or not number:
            return None
        data = self.arrow(rows, kinds)

        def real(table: lakebed.Table) -> None:
            with table.writer(row_kind=OP if kinds else None, commit_user=user, commit_identifier=number) as writer:
                writer.write(data)

        def mean() -> None:
            model = self.meaning.model
            given = zip(rows, kinds or ["+I"] * len(rows), strict=True)
            if replay or all(model.accept(model.schema, row, kind) is None for row, kind in given):
                return  # of rows that are ignored no commit is left to be known again
            if self._wrote(rows, kinds):
                self.identifiers[user] = number

        return Step(real, mean, can_crash=not replay, settles=True)

    def op_open_writer(self, rows: list[Row], kinds: list[str] | None = None, handle: int = 1) -> Step | None:
        """A writer that commits later, when others have written meanwhile."""
        if len(self.writers) >= 2:
            return None
        rows, kinds = self._fitting(rows, kinds)
        if not rows:
            return None
        data = self.arrow(rows, kinds)
        schema = self.meaning.model.schema

        def real(table: lakebed.Table) -> None:
            writer = table.writer(row_kind=OP if kinds else None)
            writer.write(data)
            self.writers.append((writer, rows, kinds or ["+I"] * len(rows), schema))

        return Step(real)

    def op_commit_writer(self) -> Step | None:
        """The oldest open writer commits."""
        if not self.writers:
            return None
        writer, rows, kinds, schema = self.writers.pop(0)
        meaning = self.meaning
        fits = schema == meaning.model.schema and not self.configuration.crosses_partitions
        if not fits or meaning.fitting(rows, kinds)[0] != rows:
            writer.abort()
            return None
        mode = meaning.options.get("bucket")
        return Step(
            lambda table: writer.commit(),
            lambda: self._wrote(rows, kinds if meaning.has_key else None),
            may_refuse=mode in ("-1", "-2"),
            may_miss=True,
            settles=True,
        )

    # --- replacing ---

    def op_overwrite(self, rows: list[Row], spec: dict[str, Value] | None = None, handle: int = 0) -> Step | None:
        """INSERT OVERWRITE of the table, of a partition, or of the partitions of the rows."""
        meaning, name = self.meaning, self.meaning.partition_name
        if spec and name is None:
            return None
        rows = [{**row, **spec} if spec else row for row in rows]
        rows, _ = self._fitting(rows, None, replaces=True)
        if spec:
            rows = [{**row, **spec} for row in rows]
        if self.configuration.crosses_partitions and spec != {}:
            # A key elsewhere stays where it is, or moves: other operations show that.
            taken = {
                meaning.model.key_of(record.cells)
                for record in meaning.live
                if not spec or record.cells[meaning.model._partition[0]][1] != spec.get(name or "")
            }
            rows = [
                row
                for row in rows
                if meaning.model.key_of(meaning.model.accept(meaning.model.schema, row, "+I")[1]) not in taken
            ]  # type: ignore[index]
            if isinstance(meaning.model.engine, FirstRow):
                # A row that is dropped for another one of its key replaces no partition.
                firsts = {meaning.key_of_row(row): row for row in reversed(rows)}
                rows = [row for row in rows if firsts[meaning.key_of_row(row)] is row]
        if not rows and spec is None:
            return None
        wanted: Any = True if spec is None else {key: self._scalar(key, value) for key, value in spec.items()}
        data = self.arrow(rows)

        def mean() -> None:
            before = meaning.current() if meaning.has_key else {}
            meaning.note(gone=meaning.overwrite(rows, spec))
            self._committed(before)

        return Step(lambda table: table.write(data, overwrite=wanted), mean, can_crash=True, settles=True)

    def _scalar(self, name: str, value: Value) -> pa.Scalar:
        return to_arrow_array([value], self.meaning.model.schema.column(name).type)[0]

    def op_truncate(self, handle: int = 0) -> Step:
        """All rows go."""

        def mean() -> None:
            before = self._current()
            self.meaning.remove(lambda record: True)
            self.meaning.note(gone=lambda record: True)
            self._committed(before)
            self.is_out_of_step = False

        return Step(lambda table: table.truncate(), mean, can_crash=True)

    def op_drop_partition(self, value: Value) -> Step | None:
        """The rows of a partition go."""
        name = self.meaning.partition_name
        if name is None:
            return None
        gone = self.meaning.in_partition(value)

        def mean() -> None:
            before = self._current()
            self.meaning.remove(gone)
            self.meaning.note(gone=gone)
            self._committed(before, compacts=False)
            if self.meaning.compacts_at_once:  # a key that was told elsewhere is taken back by a compaction there
                self.meaning.settle(partition=value)

        return Step(lambda table: table.drop_partitions([{name: value}]), mean, can_crash=True)

    # --- compaction ---

    def op_compact(self, full: bool = False, where: Value = None, handle: int = 0) -> Step | None:
        """Files merge; what was hidden shows, what was untold is told."""
        meaning, name = self.meaning, self.meaning.partition_name
        if where is not None and name is None:
            return None
        chosen = None if where is None else [(name, "==", where)]

        def mean() -> None:
            self.unsettled = meaning.save()
            tells = meaning.producer != "full-compaction" or full
            meaning.settle(told=tells, partition=where)
            self.resyncs = full and where is None and meaning.tells_all and meaning.told_rows is None

        return Step(lambda table: table.compact(full=full, where=chosen), mean, can_crash=True)

    def op_compact_manifest(self) -> Step:
        """Manifests are written anew."""
        return Step(lambda table: table.compact_manifest(), can_crash=True)

    def op_rescale(self, count: int) -> Step | None:
        """Another number of buckets, by ALTER and the rewrite that goes with it."""
        meaning = self.meaning
        if meaning.options.get("bucket", "-1") == "-1" and meaning.has_key:
            return None
        self._drop_writers()

        def real(table: lakebed.Table) -> None:
            if table.options.get("bucket") != str(count):
                table.alter(lakebed.SetOption("bucket", str(count)))
                self.is_out_of_step = True
                meaning.options["bucket"] = str(count)
            table.rescale()
            self.is_out_of_step = False

        def mean() -> None:
            meaning.options["bucket"] = str(count)
            self._committed(self._current(), compacts=False)

        return Step(real, mean, may_refuse=True)

    # --- going back ---

    def _retained(self) -> list[int]:
        return sorted(self.line.saved)

    def _restore(self, saved: Saved, *, told: bool) -> None:
        self.meaning.restore(saved, told=told)
        self.is_out_of_step = self._has_other_buckets()

    def _has_other_buckets(self, snapshot: Snapshot | None = None) -> bool:
        """Whether files of another number of buckets are there: writes beside them are refused until a rescale."""
        wanted = int(self.meaning.options.get("bucket", "-1"))
        stores = self.open()._opened.context.stores
        counts = {entry.total_buckets for entry in live_files(stores, snapshot or stores.snapshots.latest())}
        return wanted > 0 and not counts <= {wanted}

    def op_rollback_to(self, back: int) -> Step | None:
        """Later snapshots are gone."""
        ids = self._retained()
        if len(ids) < 2:
            return None
        target = ids[max(0, len(ids) - 1 - back)]

        def mean() -> None:
            self._restore(self.line.saved[target], told=True)
            for later in [each for each in ids if each > target]:
                del self.line.saved[later], self.line.rows[later]
            self.line.forgotten = {each for each in self.line.forgotten if each <= target}
            for tag in [name for name, snapshot in self.tags.items() if snapshot > target]:
                self._forget_tag(tag)
            self.stream = None
            self.identifiers = dict(self.line.saved[target].identifiers)
            self.has_diverged |= any(target < min(branch.saved) for branch in self.branches.values())

        return Step(lambda table: table.rollback_to(target), mean)

    def op_rollback_to_as_latest(self, back: int, handle: int = 0) -> Step | None:
        """The rows of an earlier snapshot once more."""
        ids = self._retained()
        if len(ids) < 2:
            return None
        target = ids[max(0, len(ids) - 1 - back)]

        def mean() -> None:
            meaning = self.meaning
            before = meaning.told
            saved = self.line.saved[target]
            self._restore(saved, told=False)
            meaning.told = {
                key: distinct(
                    (*before.get(key, (None,)), *saved.told.get(key, (None,)), *saved.visible.get(key, (None,)))
                )
                for key in {*before, *saved.visible, *saved.told}
            }
            self.unsettled = meaning.save()

        return Step(lambda table: table.rollback_to_as_latest(target), mean, can_crash=True)

    # --- tags, branches, cleaning ---

    def op_tag(self, back: int = 0) -> Step | None:
        """A name for a snapshot."""
        ids = self._retained()
        if not ids or len(self.tags) >= 3:
            return None
        target, name = ids[max(0, len(ids) - 1 - back)], f"tag{self.tag_count}"
        self.tag_count += 1

        def mean() -> None:
            self.tags[name] = target
            self.tag_states[name] = (self.line.saved[target], self.line.rows[target])

        return Step(lambda table: table.create_tag(name, target), mean)

    def _forget_tag(self, name: str) -> None:
        self.tags.pop(name, None)
        self.tag_states.pop(name, None)

    def op_delete_tag(self) -> Step | None:
        """A name less, and what only it kept."""
        free = sorted(set(self.tags))
        if not free:
            return None
        return Step(lambda table: table.delete_tag(free[0]), lambda: self._forget_tag(free[0]), may_refuse=True)

    def op_branch_off(self) -> Step | None:
        """A branch from a tag."""
        if not self.tags or self.branches:
            return None
        tag = sorted(self.tags)[-1]
        if self.tags[tag] not in self.line.saved:
            return None

        def mean() -> None:
            saved, rows = self.tag_states[tag]
            meaning = Meaning(self.configuration, dict(self.meaning.options))
            meaning.model.schema = saved.schema
            meaning.model._next_id = self.meaning.model._next_id
            meaning.model._next_number = self.meaning.model._next_number
            meaning.rebuild()
            meaning.restore(saved, told=True)
            self.branches["b"] = Line(meaning, {self.tags[tag]: saved}, {self.tags[tag]: rows})
            self.has_diverged = False

        def real(table: lakebed.Table) -> None:
            table.create_branch("b", tag)

        saved = self.tag_states[tag][0]
        if saved.schema != self.meaning.model.schema or saved.options != self.meaning.options or self.is_out_of_step:
            return None  # a branch has the options of its tag
        table = self.open()
        start = table.at(tag=tag).fixed_to
        assert start is not None
        if start.schema_id != table.schema.id:
            return None  # and the columns of its snapshot; statistics are committed under those of the rows
        if self._has_other_buckets(start):
            return None  # and its files: those of an old state that came back, maybe
        return Step(real, mean)

    def op_branch_write(self, rows: list[Row], kinds: list[str] | None = None, compact: bool = False) -> Step | None:
        """A write to the branch, and maybe a compaction."""
        if "b" not in self.branches:
            return None
        main, self.line = self.line, self.branches["b"]
        try:
            rows, kinds = self._fitting(rows, kinds)
            data = self.arrow(rows, kinds)
        finally:
            self.line = main
        if not rows:
            return None

        def real(table: lakebed.Table) -> None:
            branch = table.on_branch("b")
            branch.write(data, row_kind=OP if kinds else None)
            if compact:
                branch.compact(full=True)

        def mean() -> None:
            self.line, identifiers = self.branches["b"], self.identifiers
            self.identifiers = dict(self.line.saved[max(self.line.saved)].identifiers)
            try:
                self._wrote(rows, kinds)
                if compact:
                    self.meaning.settle()
                oracles.note_snapshots(self, self.handles[0].on_branch("b"))
                oracles.check_visible(self, self.handles[0].on_branch("b"))
            finally:
                self.line, self.identifiers = main, identifiers

        return Step(real, mean)

    def op_fast_forward(self) -> Step | None:
        """The table goes on as the branch does."""
        if "b" not in self.branches:
            return None
        branch = self.branches["b"]

        def mean() -> None:
            first = min(branch.saved)
            old = self.line
            number = max(old.meaning.model._next_number, branch.meaning.model._next_number)
            self.line = branch
            self.line.saved |= {each: saved for each, saved in old.saved.items() if each < first}
            self.line.rows |= {each: rows for each, rows in old.rows.items() if each < first}
            self.line.meaning.model._next_number = number
            self.line.meaning.told_rows = None
            del self.branches["b"]
            for tag in list(self.tags):
                if tag not in self.handles[0].tags() or self.tags[tag] > first:
                    self._forget_tag(tag)
            self.stream = None
            self.handles = [self.open(), self.open()]
            present = {snapshot.id for snapshot in self.handles[0].snapshots()}
            for gone in [each for each in self.line.saved if each not in present]:
                del self.line.saved[gone], self.line.rows[gone]
            # Commits of the line that was left are not known any more: they may come again.
            self.identifiers = dict(self.line.saved[max(self.line.saved)].identifiers)

        def real(table: lakebed.Table) -> None:
            for writer, *_ in self.writers:
                writer.abort()
            self.writers.clear()
            table.fast_forward("b")
            table.delete_branch("b")

        return Step(real, mean, may_refuse=self.has_diverged)

    def op_expire(self, keep: int) -> Step:
        """Old snapshots go."""
        return Step(lambda table: table.expire_snapshots(retain_max=keep, retain_min=1))

    def op_orphans(self) -> Step | None:
        """Files that nobody needs go. Nothing may be in the making: it would be taken for one."""
        if self.writers:
            return None
        return Step(lambda table: table.remove_orphan_files(older_than=int(time.time() * 1000) - 1))

    def op_analyze(self) -> Step:
        """Statistics."""
        return Step(lambda table: table.analyze(True))

    def op_reopen(self) -> Step:
        """Whatever handles remember is gone."""

        def real(table: lakebed.Table) -> None:
            self.handles = [self.open(), self.open()]

        return Step(real)

    # --- schema ---

    def op_add_column(self, name: str, kind: str) -> Step | None:
        """A column more."""
        meaning = self.meaning
        if name in meaning.model.schema.names or self.branches:
            return None
        data_type = parse_type(kind)
        assert isinstance(data_type, AtomicType)
        return Step(
            lambda table: table.alter(lakebed.AddColumn(name, data_type)),
            lambda: meaning.model.add_column(name, data_type),
            # A column in no sequence group can not have the function that all columns have.
            may_refuse=meaning.engine == "partial-update" and "fields.default-aggregate-function" in meaning.options,
        )

    def _bound(self) -> set[str]:
        names = {*self.meaning.key_names, *self.configuration.partition_by}
        for key, text in self.meaning.options.items():
            if key.startswith(
                ("fields.", "sequence", "partial", "rowkind", "file-index", "bucket-key", "clustering.columns")
            ):
                names |= {*text.split(","), *key.removeprefix("fields.").rpartition(".")[0].split(",")}
        return names

    def op_drop_column(self, name: str) -> Step | None:
        """A column less."""
        schema = self.meaning.model.schema
        if name not in schema.names or name in self._bound() or len(schema.names) < 3 or self.branches:
            return None
        self._drop_writers()
        return Step(lambda table: table.alter(lakebed.DropColumn(name)), lambda: self.meaning.model.drop_column(name))

    def op_rename_column(self, name: str, new_name: str) -> Step | None:
        """Another name."""
        schema = self.meaning.model.schema
        if name not in schema.names or new_name in schema.names or self.branches:
            return None
        if name in self.configuration.partition_by or name in self.configuration.primary_key:
            return None
        self._drop_writers()

        def mean() -> None:
            self.meaning.model.rename_column(name, new_name)
            self.meaning.renamed(name, new_name)

        return Step(lambda table: table.alter(lakebed.RenameColumn(name, new_name)), mean)

    def op_change_type(self, name: str, kind: str) -> Step | None:
        """Another type: a wider one, or one that changes what values are or how they compare."""
        schema = self.meaning.model.schema
        if name not in schema.names or name in self.configuration.partition_by or self.branches:
            return None
        old = str(schema.column(name).type).removesuffix(" NOT NULL")
        if (old, kind) not in {("INT", "BIGINT"), ("INT", "STRING"), ("BIGINT", "INT")}:
            return None
        if name in self.configuration.primary_key:
            return None
        is_wide = kind == "BIGINT" and name not in self.meaning.options.get("bucket-key", "").split(",")
        data_type = parse_type(kind)
        assert isinstance(data_type, AtomicType)
        self._drop_writers()

        def mean() -> None:
            self._retyped(name, data_type)

        return Step(lambda table: table.alter(lakebed.UpdateColumnType(name, data_type)), mean, may_refuse=not is_wide)

    def _retyped(self, name: str, data_type: AtomicType) -> None:
        """Stored rows keep their place in the order that they had; their values are cast."""
        meaning = self.meaning
        column = meaning.model.schema.column(name)
        if data_type.root != column.type.root and str(data_type) != "BIGINT":
            meaning.collapse()
            as_text = str(data_type) == "STRING"

            def cast(record: Record) -> Record:
                if column.id not in record.cells:
                    return record
                value = record.cells[column.id][1]
                if as_text and value is not None:
                    value = str(value)
                return Record(record.kind, {**record.cells, column.id: (data_type, value)}, record.number)

            meaning.set_live(cast(record) for record in meaning.live)
            meaning.told_rows = None
            meaning.model.widen_column(name, data_type)
            meaning.visible, told = (
                {
                    key: tuple(None if each is None else cast(each) for each in states)
                    for key, states in possible.items()
                }
                for possible in (meaning.visible, meaning.told)
            )
            # Where the change compacts first, that tells what nobody had told yet.
            current = meaning.current()
            meaning.told = {key: (*told.get(key, (None,)), current.get(key)) for key in {*told, *current}}
            self.line.forgotten |= set(self.line.saved)
            self.line.saved = {}
            self.line.rows = {}
            return
        meaning.model.widen_column(name, data_type)

    def _drop_writers(self) -> None:
        for writer, *_ in self.writers:
            writer.abort()
        self.writers.clear()

    # --- options ---

    def op_set_option(self, key: str, value: str | None) -> Step | None:
        """ALTER TABLE SET, RESET: refused, or made without changing what stored rows mean."""
        meaning = self.meaning
        if meaning.options.get(key) == value or self.branches:
            return None
        if key == "deletion-vectors.merge-on-read" and meaning.options.get(key) == "true" and meaning.has_key:
            return None  # which rows hide from then on, files say: those that are not compacted
        if key == "bucket" and self.configuration.crosses_partitions:
            return None  # with fixed buckets nobody looks for a key in other partitions
        change = lakebed.RemoveOption(key) if value is None else lakebed.SetOption(key, value)
        self._drop_writers()

        def mean() -> None:
            if key == "changelog-producer":
                meaning.told_rows = None
            meaning.set_option(key, value)
            self.stream = None
            if key == "bucket":
                self.is_out_of_step = self._has_other_buckets()

        return Step(lambda table: table.alter(change), mean, may_refuse=True)

    def op_write_with_options(
        self, rows: list[Row], options: dict[str, str], kinds: list[str] | None = None
    ) -> Step | None:
        """A write through a handle with options of its own: refused, or the same rows as through any other."""
        rows, kinds = self._fitting(rows, kinds)
        if not rows or not self.meaning.has_key:
            return None
        data = self.arrow(rows, kinds)

        def real(table: lakebed.Table) -> None:
            table.with_options(options).write(data, row_kind=OP if kinds else None)

        def mean() -> None:
            meaning = self.meaning
            before = self._current()
            written = meaning.write(rows, kinds)
            meaning.note()
            keys = {meaning.model.key_of(record.cells) for record in written}
            self._committed(before, keys, compacts=options.get("write-only", "false") == "false")
            if "changelog-producer" in options:
                meaning.told_rows = None
                self.stream = None

        return Step(real, mean, may_refuse=True, settles=True)

    # --- rows of tables without a key ---

    def _condition(self, column: str, sign: str, value: Value) -> Filter | None:
        schema = self.meaning.model.schema
        if column not in schema.names or value is None:
            return None
        kind = schema.column(column).type
        if isinstance(value, str) != ("STRING" in str(kind)) or isinstance(value, bool) != ("BOOLEAN" in str(kind)):
            return None
        return comparison(column, kind, sign, value)

    def op_delete_where(self, column: str, sign: str, value: Value) -> Step | None:
        """Rows without a key that match go."""
        condition = self._condition(column, sign, value)
        if self.meaning.has_key or condition is None:
            return None
        schema = self.meaning.model.schema

        def mean() -> None:
            self.meaning.remove(lambda record: condition.holds(schema.row(record)) is True)

        options = self.meaning.options
        marks = options.get("deletion-vectors.enabled") == "true"
        may_refuse = not marks and options.get("data-evolution.enabled") == "true"  # where rows can only be marked
        return Step(
            lambda table: table.delete_where(condition.expression),
            mean,
            may_refuse=may_refuse,
            can_crash=not may_refuse,
        )

    def op_update_where(self, column: str, sign: str, value: Value, name: str, new: Value) -> Step | None:
        """Rows without a key that match get a new value."""
        condition, target = self._condition(column, sign, value), self._condition(name, "==", new)
        schema = self.meaning.model.schema
        if self.meaning.has_key or condition is None or target is None or name in self.configuration.partition_by:
            return None
        kind = schema.column(name).type

        def change(rows: pa.Table) -> pa.Table:
            place = rows.schema.get_field_index(name)
            return rows.set_column(place, rows.schema.field(place), to_arrow_array([new] * rows.num_rows, kind))

        def mean() -> None:
            for record in self.meaning.live:
                row = schema.row(record)
                if condition.holds(row) is True:
                    self.meaning.replace_row(record, {**row, name: new})

        return Step(lambda table: update_where(table, condition.expression, change), mean, can_crash=True)

    def op_read(self, column: str, sign: str, value: Value) -> Step | None:
        """A filtered read gives what a filter gives afterwards."""
        condition = self._condition(column, sign, value)
        if condition is None:
            return None

        def real(table: lakebed.Table) -> None:
            expected = [row for row in from_arrow(table.to_arrow()) if condition.holds(row) is True]
            found = from_arrow(table.to_arrow(filter=condition.expression))
            if tally(found) != tally(expected):
                raise Finding("a filter that is pushed down", f"{condition}: {found}, expected {expected}")

        return Step(real)

    # --- statements ---

    def _statement(self, text: str, meaning: Callable[[], None], *, may_refuse: bool) -> Step | None:
        if "rowkind.field" in self.meaning.options:
            return None

        def mean() -> None:
            before = self._current()
            meaning()
            self.meaning.note()
            self._committed(before)

        return Step(lambda table: self.lake.sql(text), mean, may_refuse=may_refuse)

    def op_sql_update(self, column: str, sign: str, value: Value, name: str, new: Value) -> Step | None:
        """UPDATE t SET ... WHERE ..."""
        condition = self._condition(column, sign, value)
        schema = self.meaning.model.schema
        if condition is None or name not in schema.names or name in self.meaning.key_names:
            return None
        if new is not None and self._condition(name, "==", new) is None:
            return None
        if name in self.configuration.partition_by and new is None:
            return None

        def mean() -> None:
            for record in self._records():
                row = schema.row(record)
                if condition.holds(row) is True:
                    self.meaning.replace_row(record, {**row, name: new})

        where = f"{column} {sign.replace('==', '=')} {literal(value)}"
        text = f"UPDATE t SET {name} = {literal(new)} WHERE {where}"
        stays = self.meaning.has_key or self.meaning.options.get("data-evolution.enabled") == "true"
        moves = name in self.configuration.partition_by and stays
        return self._statement(text, mean, may_refuse=self._may_refuse_versions or moves)

    @property
    def _may_refuse_versions(self) -> bool:
        """Whether UPDATE and MERGE may be refused: rows have no new versions, or must be compacted by others first."""
        return self.meaning.is_write_only or self.meaning.engine in ("aggregation", "first-row")

    def _records(self) -> list[Record]:
        return list(self.meaning.current().values()) if self.meaning.has_key else list(self.meaning.live)

    def op_sql_delete(self, column: str, sign: str, value: Value) -> Step | None:
        """DELETE FROM t WHERE ..."""
        condition = self._condition(column, sign, value)
        schema = self.meaning.model.schema
        if condition is None:
            return None

        drops_partitions = column in self.configuration.partition_by

        def mean() -> None:
            if self.meaning.ignores_deletes and not drops_partitions:
                return
            for record in self._records():
                if condition.holds(schema.row(record)) is True:
                    self.meaning.delete_row(record, leaves_nothing=drops_partitions)

        text = f"DELETE FROM t WHERE {column} {sign.replace('==', '=')} {literal(value)}"
        options = self.meaning.options
        keeps_rows = (
            options.get("data-evolution.enabled") == "true" and options.get("deletion-vectors.enabled") != "true"
        )
        return self._statement(text, mean, may_refuse=self.meaning.is_write_only or keeps_rows)

    def op_sql_merge(self, rows: list[Row], name: str, delete: bool) -> Step | None:
        """MERGE INTO t: rows that are there are changed or deleted, others inserted."""
        meaning = self.meaning
        schema = meaning.model.schema
        if (
            not meaning.has_key
            or name not in schema.names
            or name in meaning.key_names
            or name == meaning.partition_name
        ):
            return None
        on = list(dict.fromkeys([*meaning.key_names, *self.configuration.partition_by]))
        single = {tuple(repr(row.get(each)) for each in on): row for row in rows}  # one row of a key, then what fits
        source, _ = meaning.fitting(list(single.values()), ["+I"] * len(single))
        by_key = {tuple(map(repr, (row[each] for each in on))): row for row in source}
        if len(by_key) < len(source):
            return None
        if not source or any(row[each] is None for row in source for each in on):
            return None
        if self.configuration.crosses_partitions:
            return None
        names = schema.names
        values = ", ".join(
            "(" + ", ".join(literal(row[each], str(schema.column(each).type)) for each in names) + ")" for row in source
        )
        matched = "DELETE" if delete else f"UPDATE SET {name} = s.{name}"
        condition = " AND ".join(f"t.{each} = s.{each}" for each in on)
        inserted = f"INSERT ({', '.join(names)}) VALUES ({', '.join('s.' + each for each in names)})"
        text = (
            f"MERGE INTO t USING (SELECT * FROM VALUES {values} AS s({', '.join(names)})) AS s ON {condition} "
            f"WHEN MATCHED THEN {matched} WHEN NOT MATCHED THEN {inserted}"
        )

        def mean() -> None:
            current = {tuple(repr(schema.row(record)[each]) for each in on): record for record in self._records()}
            for key, row in by_key.items():
                old = current.get(key)
                if old is None:
                    meaning.model.write([row], ["+I"])
                elif delete:
                    if not meaning.ignores_deletes:
                        meaning.delete_row(old)
                elif meaning.engine == "deduplicate":
                    meaning.model.write([{**schema.row(old), name: row[name]}], ["+I"])  # a smaller sequence loses
                else:
                    meaning.replace_row(old, {**schema.row(old), name: row[name]})

        return self._statement(text, mean, may_refuse=self._may_refuse_versions)

    def op_sql_overwrite(self, rows: list[Row]) -> Step | None:
        """INSERT OVERWRITE t of all rows."""
        meaning, schema = self.meaning, self.meaning.model.schema
        if self.configuration.partition_by:
            return None
        rows, _ = self._fitting(rows, None, replaces=True)
        if not rows:
            return None
        values = ", ".join(
            "(" + ", ".join(literal(row[each], str(schema.column(each).type)) for each in schema.names) + ")"
            for row in rows
        )

        def mean() -> None:
            before = self._current()
            meaning.note(gone=meaning.overwrite(rows, {}))
            self._committed(before)

        return Step(lambda table: self.lake.sql(f"INSERT OVERWRITE t VALUES {values}"), mean)

    # --- dying ---

    def op_crash(self, operation: list[Any], at: int) -> Step | None:
        """The process of an operation dies at one of its file operations; the next process finds all of it, or none."""
        name, arguments = operation
        step: Step | None = getattr(self, f"op_{name}")(**arguments)
        if step is None or not step.can_crash:
            return None
        before = self.handles[0].latest_snapshot()

        def real(table: lakebed.Table) -> None:
            inner, root = open_fileio(self.url, None)
            faulty = FaultyFileIO(inner, fail_at=at, mode="crash", only=MUTATIONS)
            lake = Lake(FilesystemCatalog(faulty, root, SystemClock(), RandomIds()))
            with contextlib.suppress(SimulatedCrash):
                step.real(lake.table("t"))
            self.handles = [self.open(), self.open()]

        def mean() -> None:
            start = 0 if before is None else before.id
            new = [snapshot for snapshot in self.handles[0].snapshots() if snapshot.id > start]
            kinds = [snapshot.commit_kind for snapshot in new]
            is_compaction = name in ("compact", "compact_manifest")
            if not new or (not is_compaction and all(kind == CommitKind.COMPACT for kind in kinds)):
                return
            if is_compaction:
                return  # may have told and shown what it did, or not: the next whole one settles it
            was_settled = kinds[-1] == CommitKind.COMPACT and self.meaning.compacts_at_once
            visible, told = self.meaning.visible, self.meaning.told
            step.meaning()
            if not was_settled and self.meaning.has_key:
                self._unsettle(visible, told)

        return Step(real, mean)

    def _unsettle(self, visible: Any, told: Any) -> None:
        """The commit is there, the compaction after it is not."""
        meaning = self.meaning
        unsettled = self.unsettled
        if meaning.hides:
            meaning.visible = unsettled.visible
        meaning.told = unsettled.told


def literal(value: Value, kind: str = "") -> str:
    """A value in SQL."""
    if value is None:
        return f"CAST(NULL AS {kind.removesuffix(' NOT NULL')})" if kind else "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if kind.startswith("BIGINT"):
        return f"CAST({value} AS BIGINT)"
    return str(value)


__all__ = ["OP", "Key", "Line", "Machine", "Operation", "Step", "from_arrow", "literal", "tally"]
