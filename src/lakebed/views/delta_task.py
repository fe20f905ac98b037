"""What a task of Spark's does with its part of the changes: it runs the program of the refresh, as this process would.

What is wrong with the rows is an answer, too, and no failure: running the task again would not mend it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from lakebed.algebra.relations import Project, Relation, Scan
from lakebed.embedded.engine import share_machine, version_here
from lakebed.embedded.program import Run, running
from lakebed.errors import LakebedError, Unsupported
from lakebed.expressions import kinds
from lakebed.records import dataclass
from lakebed.views.apply import COUNT, HASH, KIND, TARGET, given_rows
from lakebed.views.changes import CHANGE, ChangesGone, Steps, read_changes
from lakebed.views.deltas import consolidate, give_changes
from lakebed.views.difference import Difference
from lakebed.views.found_rows import looked_up
from lakebed.views.plan.build import ViewPlan
from lakebed.views.plan.split import PART, By, part_text
from lakebed.views.row_hashes import BITS, part_of
from lakebed.views.rules.compile import Compiled
from lakebed.views.rules.weighted import WEIGHT
from lakebed.views.sources import source_of

NUMBER, SOURCE, TOLD = "__part", "__source", "__told"
"""Columns of rows on their way: the part that they belong to, the table that they come from, and what else is said."""
ERROR, NOTE = "!", "#"
"""Kinds of rows that tell the driver something: what is wrong, and how many rows a part has touched."""
_GIVEN, _RAW, _SUMMED = "given", "raw_given", "summed"

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class SharedScan:
    """A table whose changes are shared by values of its rows."""

    scan: Scan
    by: By

    def names(self, place: int) -> tuple[str, str, str, str, tuple[str, ...]]:
        """The columns of numbered changes; the last has the members of the rows, since each table has others."""
        return NUMBER, SOURCE, CHANGE, f"s{place}", tuple(self.scan.names)

    def numbered(self, place: int, parts: int, zone: str | None) -> Callable[[Batches], Batches]:
        """Says of changes to which part they belong, and whether rows came or went."""
        names, columns, by = self.scan.names, self.scan.columns, self.by
        number = part_text(by, [each.spelled() for each in by], parts)
        chosen = ", ".join(f"{kinds.quoted(name)} AS {each.id}" for name, each in zip(names, columns, strict=True))
        kind = "CASE WHEN rowkind IN ('+I', '+U') THEN 1 ELSE -1 END"
        text = f"SELECT {number} AS p, w FROM (SELECT {kind} AS w, {chosen} FROM {_GIVEN})"
        values = Project(columns=columns, input=self.scan, values=by)

        def work(batches: Batches) -> Batches:
            with _running([values], zone) as run:
                for batch in batches:
                    run.give(_GIVEN, pa.Table.from_batches([batch]))
                    found = run.table(text, pa.schema([("p", pa.int32()), ("w", pa.int64())])).combine_chunks()
                    rows = [batch.column(name) for name in names]
                    columns = [
                        *(_one(found.column("p")), pa.repeat(pa.scalar(place, pa.int32()), batch.num_rows)),
                        *(_one(found.column("w")), pa.StructArray.from_arrays(rows, _members(names))),
                    ]
                    yield pa.RecordBatch.from_arrays(columns, names=[NUMBER, SOURCE, CHANGE, f"s{place}"])

        return work

    def show(self, run: Run, place: int) -> None:
        """Puts the changes that came with the task under the name that the program knows."""
        raw = f"raw_{self.scan.view}"
        members = zip(_members(self.scan.names), self.scan.names, strict=True)
        chosen = ", ".join(f"s{place}.{member} AS {kinds.quoted(name)}" for member, name in members)
        run.execute(f"CREATE TEMP VIEW {raw} AS SELECT {chosen}, {CHANGE} FROM {_GIVEN} WHERE {SOURCE} = {place}")
        consolidate(run, self.scan, raw)


@dataclass(frozen=True)
class DeltaTask:
    """The work of a part. Plain data: it is sent to tasks.

    A refresh has one turn if groups are replaced, which are whole in their parts. Else rows of the first turn are
    shared by the key of the result, and a second turn compares them with what is stored.
    """

    program: Compiled
    plan: ViewPlan
    difference: Difference
    zone: str
    parts: int
    shared: tuple[SharedScan, ...]
    known: tuple[tuple[Scan, Steps], ...]
    """Tables whose changes each part has to know: it reads them itself."""
    version: str
    """Of DuckDB, as whoever planned has it: others put rows into other parts."""

    # --- the first turn ------------------------------------------------------------------------------------------

    def first(self, batches: Batches) -> Batches:
        """Changes of the result, or events if that is all."""
        relations = [*(each.relation for each in self.program.statements), self.plan.root]
        schema = self.event_schema() if self.program.replaced is not None else self.first_schema()
        yield from self._in_parts(batches, relations, schema, self._follow)

    def _follow(self, run: Run, part: int) -> Iterator[pa.Table]:
        run.execute(f"SET VARIABLE {PART} = {part}")
        for place, shared in enumerate(self.shared):
            shared.show(run, place)
        for scan, steps in self.known:
            give_changes(run, scan, read_changes(source_of(scan).table, steps, tuple(scan.names)))
        touched = 0
        for statement in self.program.statements:
            found = looked_up(run, statement)
            touched = max(touched, run.make(statement) if found is None else found)
        yield _note({"touched": touched}, NOTE)
        if self.program.replaced is not None:
            yield _fitting(self.difference.of(run, self.program, self.plan))
        else:
            yield self._changed(run)

    def _changed(self, run: Run) -> pa.Table:
        """The rows of the first turn, with the parts of the second."""
        result, layout = self.program.result, self.difference.layout
        assert result is not None, "a program without a result has nothing to follow"
        if self.program.added is not None:
            number = part_of([(each.id, each.type) for each in self._group_keys()], self.parts)
            return run.table(f"SELECT {number} AS {NUMBER}, * FROM {result.name}")
        given_rows(run, layout, result.name, [each.id for each in self.plan.root.columns], weight=WEIGHT.id)
        types = layout.stored_schema()
        key = [HASH] if layout.is_numbered else layout.primary_key
        number = part_of([(kinds.quoted(name), types.field(name).type) for name in key], self.parts)
        return run.table(f"SELECT {number} AS {NUMBER}, * FROM {TARGET}")

    # --- the second turn -----------------------------------------------------------------------------------------

    def second(self, batches: Batches) -> Batches:
        """Events, from all changes of some rows of the result."""
        yield from self._in_parts(batches, [self.plan.root], self.event_schema(), self._compare)

    def _compare(self, run: Run, part: int) -> Iterator[pa.Table]:
        yield run.table(f"SELECT {KIND}, {TOLD} FROM {_GIVEN} WHERE {TOLD} IS NOT NULL")
        states = self.program.added
        rows = f"FROM {_GIVEN} WHERE {TOLD} IS NULL"
        if not run.table(f"SELECT count(*) AS n {rows}").column("n")[0].as_py():
            return
        if states is None:
            names = [each.name for each in self.first_schema() if each.name not in (NUMBER, KIND, TOLD)]
            listed = ", ".join(map(kinds.quoted, names))
            run.execute(f"CREATE TEMP TABLE {TARGET} AS SELECT {listed} {rows}")
            yield _fitting(self.difference.of_weighted(run))
            return
        keys, parts = self._group_keys(), states.columns[len(states.keys) :]
        sums = [f"CAST(sum({each.id}) AS {kinds.duckdb_name(each.type)}) AS {each.id}" for each in parts]
        grouped = f" GROUP BY {', '.join(each.id for each in keys)}" if keys else ""
        chosen = ", ".join([*(each.id for each in keys), *sums])
        run.execute(f"CREATE TEMP TABLE {_SUMMED} AS SELECT {chosen} {rows}{grouped}")
        yield _fitting(self.difference.of_added(run, _SUMMED, states, self.plan))

    # --- what goes between ---------------------------------------------------------------------------------------

    def _group_keys(self) -> Sequence[Any]:
        states = self.program.added
        assert states is not None, "asked of groups"
        return states.columns[: len(states.keys)]

    def first_schema(self) -> pa.Schema:
        """Rows between the turns: parts of groups, or rows with their weights."""
        own = [pa.field(NUMBER, pa.int32()), pa.field(KIND, pa.string()), pa.field(TOLD, pa.string())]
        if self.program.added is not None:
            return pa.schema([*own, *(pa.field(each.id, each.type) for each in self.program.added.columns)])
        layout = self.difference.layout
        more = [pa.field(HASH, pa.string())] if layout.has_hash else []
        columns = [each.with_nullable(True) for each in layout.columns]
        return pa.schema([*own, *columns, *more, pa.field(COUNT, pa.int64())])

    def event_schema(self) -> pa.Schema:
        """Rows that are written, and what else is told."""
        stored = [each.with_nullable(True) for each in self.difference.layout.stored_schema()]
        return pa.schema([pa.field(KIND, pa.string()), pa.field(TOLD, pa.string()), *stored])

    def _in_parts(
        self,
        batches: Batches,
        relations: Sequence[Relation],
        schema: pa.Schema,
        work: Callable[[Run, int], Iterator[pa.Table]],
    ) -> Batches:
        """Does work with the rows of each part; whatever is wrong is told in a row."""
        first = next(batches, None)
        if first is None:
            return
        try:
            if version_here() != self.version:
                raise Unsupported(
                    f"workers have DuckDB {version_here()}, and who asks has {self.version}",
                    hint="install the same version everywhere",
                )
            with _running(relations, self.zone) as run:
                run.give(_RAW, pa.RecordBatchReader.from_batches(first.schema, _chained(first, batches)))
                run.execute(f"CREATE TEMP TABLE {_GIVEN} AS SELECT * FROM {_RAW}")
                parts = run.table(f"SELECT DISTINCT {NUMBER} AS p FROM {_GIVEN}").column("p").to_pylist()
                if len(parts) == 1:
                    yield from _shaped(work(run, parts[0]), schema)
                    return
                apart = [(part, run.table(f"SELECT * FROM {_GIVEN} WHERE {NUMBER} = {part}")) for part in parts]
            for part, rows in apart:  # Spark has put some together
                with _running(relations, self.zone) as run:
                    run.give(_GIVEN, rows)
                    yield from _shaped(work(run, part), schema)
        except ChangesGone as gone:
            yield from _shaped([_note({"gone": gone.reason}, ERROR)], schema)
        except LakebedError as error:
            told = {"class": type(error).__name__, "message": error.message, "hint": error.hint}
            yield from _shaped([_note({"error": told}, ERROR)], schema)


@contextmanager
def _running(relations: Sequence[Relation], zone: str | None) -> Iterator[Run]:
    """A connection in a task, which has the machine not for itself."""
    from pyspark import TaskContext  # runs where Spark is

    from lakebed.spark.session import prepare_worker

    prepare_worker()
    with running(relations, zone, (BITS,)) as run:
        if TaskContext.get() is not None:
            share_machine(run.execute)
        yield run


def _chained(first: pa.RecordBatch, others: Batches) -> Batches:
    yield first
    yield from others


def _members(names: Sequence[str]) -> list[str]:
    return [f"f{n}" for n in range(len(names))]


def _one(values: pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if values.num_chunks else pa.array([], values.type)


def _fitting(rows: pa.Table | None) -> pa.Table:
    if rows is None:
        raise ChangesGone("what is stored does not fit the changes")
    return rows


def _note(said: dict[str, Any], kind: str) -> pa.Table:
    return pa.table({KIND: [kind], TOLD: [json.dumps(said)]})


def _shaped(tables: Iterator[pa.Table] | Sequence[pa.Table], schema: pa.Schema) -> Batches:
    """Rows with all columns of a schema; what a table lacks is null."""
    for table in tables:
        for batch in table.to_batches(max_chunksize=1 << 16):
            nothing = {each.name: pa.nulls(batch.num_rows, each.type) for each in schema}
            nothing[NUMBER] = pa.repeat(pa.scalar(0, pa.int32()), batch.num_rows)
            given = {name: batch.column(name) for name in batch.schema.names}
            columns = [
                given[each.name].cast(each.type) if each.name in given else nothing[each.name] for each in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


__all__ = ["ERROR", "NOTE", "NUMBER", "SOURCE", "TOLD", "DeltaTask", "SharedScan"]
