"""A pipeline as its author writes it: statements of SQL, or functions of Python that give queries.

    pipeline = lakebed.pipeline(lake)
    pipeline.sql("CREATE TABLE wide (...); INSERT INTO wide SELECT ...")

    @pipeline.materialized_table(freshness="5 s")
    def totals():
        return "SELECT cust, sum(amount) AS total FROM wide GROUP BY cust"

    pipeline.run()

What is written is only noted. `check` tries all of it on a lake that is thrown away; `run` does so, too, before it
makes the tables that are missing and starts the nodes. Tables that are there must be as they are written: a pipeline
is run again and again, and goes on where it was.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lakebed.catalog.names import parse_table_name
from lakebed.errors import AlreadyExists, InvalidArgument, LakebedError, Unsupported
from lakebed.pipelines.graph import Graph
from lakebed.pipelines.nodes import InsertNode, Node, ViewNode
from lakebed.pipelines.rehearsal import adopt, rehearsed
from lakebed.pipelines.runner import NodeState, Runner, Told
from lakebed.sql import statements as st
from lakebed.sql.parse import Statement, parse_lines
from lakebed.sql.run import run_statement
from lakebed.table.compact_follow import Stop, interval_argument
from lakebed.views.define import ViewRequest, create_view
from lakebed.views.explain import explained
from lakebed.views.insert import StreamingInsert
from lakebed.views.lake_in import LakeIn, read_sql
from lakebed.views.sources import tables_of

if TYPE_CHECKING:
    from lakebed.lake import Lake
    from lakebed.table.table import Table

Query = Callable[[], str]

_AT_EACH_START = (
    *(st.CreateDatabase, st.UseDatabase, st.UseCatalog, st.SetSetting, st.ResetSetting),
    *(st.CreateTable, st.CreateMaterialized, st.Insert),
)
"""Statements that mean the same however often the pipeline is started."""


@dataclass(frozen=True, slots=True)
class Written:
    """A statement, and where it stands."""

    statement: Statement
    place: str


@dataclass(frozen=True, slots=True)
class Planned:
    """A node as the rehearsal found it: what it reads and writes, and how it follows changes."""

    name: str
    kind: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    plan: str
    is_new: bool
    """Whether its table is still to be made, or its rows still to be sent."""


class Pipeline:
    """Statements and queries that run together on one lake. Names say which state in the lake is theirs."""

    def __init__(self, lake: Lake, name: str = "pipeline") -> None:
        self._lake = lake
        self._written: list[Written] = []
        self.name = name

    def __repr__(self) -> str:
        return f"<pipeline {self.name}: {len(self._written)} statements>"

    # --- what is written -----------------------------------------------------------------------------------------

    def sql(self, text: str, *, place: str = "line {line}") -> Self:
        """Adds the statements of a text."""
        lines = parse_lines(text)
        line = 1
        while True:
            try:
                line, statement = next(lines)
            except StopIteration:
                return self
            except LakebedError as error:
                raise _placed(error, place.format(line=line)) from error
            self._written.append(Written(statement, place.format(line=line)))

    def materialized_table(
        self,
        query: Query | None = None,
        *,
        name: str | None = None,
        freshness: str | None = None,
        policy: str = "auto",
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: dict[str, str] | None = None,
        comment: str | None = None,
    ) -> Any:
        """Decorates a function that gives a query: a materialized table of its name, kept up to date."""

        def add(function: Query) -> Query:
            made = st.CreateMaterialized(
                name or function.__name__,
                _text_of(function),
                tuple(primary_key),
                tuple(partition_by),
                dict(options or {}),
                comment if comment is not None else function.__doc__,
                freshness,
                policy,
            )
            self._written.append(Written(made, f"function `{function.__name__}`"))
            return function

        return add if query is None else add(query)

    materialized_view = materialized_table

    def insert_into(self, target: str, *, columns: Sequence[str] = ()) -> Callable[[Query], Query]:
        """Decorates a function that gives a query: its changes are sent into a table."""

        def add(function: Query) -> Query:
            made = st.Insert(st.Target(target), read_sql(_text_of(function)), columns=tuple(columns) or None)
            self._written.append(Written(made, f"function `{function.__name__}`"))
            return function

        return add

    append_flow = insert_into

    # --- what it does --------------------------------------------------------------------------------------------

    def check(self) -> list[Planned]:
        """Tries all of it on a lake that is thrown away; the nodes in the order in which they depend on each other."""
        with rehearsed(self._lake) as scratch:
            parts = _Parts(self._lake, scratch)
            for each in self._written:
                try:
                    parts.rehearse(each.statement)
                except LakebedError as error:
                    raise _placed(error, each.place) from error
            order = Graph(parts.nodes).nodes
            return [parts.planned[node.name] for node in order]

    def run(
        self,
        *,
        once: bool = False,
        interval: str | float = "1 s",
        stop: threading.Event | Callable[[], bool] | None = None,
        told: Told | None = None,
    ) -> Runner:
        """Runs it until `stop` says so, or `once` until all has caught up; the runner knows how each node fared."""
        runner = self.prepared(interval=interval, told=told)
        if once:
            runner.once(Stop.of(stop))
        else:
            runner.run(Stop.of(stop))
        return runner

    def start(self, *, interval: str | float = "1 s", told: Told | None = None) -> PipelineRun:
        """Runs it in the background."""
        return PipelineRun(self.prepared(interval=interval, told=told))

    def prepared(self, *, interval: str | float = "1 s", told: Told | None = None) -> Runner:
        """Checks all of it, makes the tables that are missing, and gives what runs the nodes."""
        pause_ms = interval_argument(interval)
        reads = {each.name: each.reads for each in self.check()}
        database, settings = self._lake.current_database, dict(self._lake.settings)
        nodes: list[Node] = []
        try:
            for each in self._written:
                node = _carried_out(self._lake, each.statement, reads)
                if node is not None:
                    nodes.append(node)
        finally:
            self._lake.use(database)
            self._lake.settings.clear()
            self._lake.settings.update(settings)
        return Runner(Graph(nodes), self._lake.has_table, pause_ms, told or (lambda state, what: None))


def pipeline(lake: Lake, sql: str | None = None, *, name: str = "pipeline") -> Pipeline:
    """A pipeline of statements and queries that run together; `sql` are the first of them."""
    if lake is None or not hasattr(lake, "create_table"):
        raise InvalidArgument("the first argument is no lake", hint="pass what lakebed.connect(...) returns")
    made = Pipeline(lake, name)
    return made if sql is None else made.sql(sql)


class PipelineRun:
    """A pipeline that runs in the background: `stop()` ends it, `states` says how each node is doing."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=runner.run, args=(Stop.of(self._stop),), name="lakebed pipeline", daemon=True
        )
        self._thread.start()

    @property
    def states(self) -> dict[str, NodeState]:
        """How each node is doing."""
        return self._runner.states

    @property
    def is_active(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Ends it behind the steps that are under way."""
        self._stop.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


# --- the rehearsal ---------------------------------------------------------------------------------------------------


class _Parts:
    """What the statements of a pipeline come to, found on a lake that is thrown away."""

    def __init__(self, lake: Lake, scratch: Lake) -> None:
        self._lake = lake
        self._scratch = scratch
        self.nodes: list[Node] = []
        self.planned: dict[str, Planned] = {}

    def rehearse(self, statement: Statement) -> None:
        """Carries out one statement where it does no harm."""
        _refuse_what_repeats(statement)
        if isinstance(statement, st.CreateMaterialized):
            self._view(statement)
        elif isinstance(statement, st.Insert):
            self._insert(statement)
        elif isinstance(statement, st.CreateTable):
            self._table(statement)
        elif not _is_mode(statement):
            run_statement(self._scratch, statement)

    def _table(self, statement: st.CreateTable) -> None:
        name = _full(statement.name, self._scratch.current_database)
        if statement.like is not None:
            adopt(self._scratch, self._lake, statement.like)
        run_statement(self._scratch, replace(statement, if_not_exists=True))
        if self._lake.has_table(name) and not statement.if_not_exists:
            _refuse_other_table(self._lake.table(name), self._scratch.table(name))

    def _view(self, statement: st.CreateMaterialized) -> None:
        name = _full(statement.name, self._scratch.current_database)
        self._adopt_tables(statement.query)
        inside = LakeIn(self._scratch, self._scratch.current_database)
        reads = tuple(tables_of(inside, read_sql(statement.query)))
        create_view(inside, _request(statement, name))
        is_new = not self._lake.has_table(name)
        if not is_new and not statement.if_not_exists and not statement.replace:
            _refuse_other_query(self._lake, name, statement)
        self._note(ViewNode(self._scratch, name, reads), explained(self._scratch, name), is_new)

    def _insert(self, statement: st.Insert) -> None:
        sql = _followed(statement)
        self._adopt_tables(sql.text)
        adopt(self._scratch, self._lake, statement.target.name)
        insert = _streaming_insert(self._scratch, self._scratch.current_database, statement)
        insert.check()
        self._note(InsertNode(self._scratch, insert), insert.explain(), not self._has_begun(statement, insert))

    def _has_begun(self, statement: st.Insert, insert: StreamingInsert) -> bool:
        """Whether the real lake has rows of it."""
        if not all(self._lake.has_table(name) for name in (insert.target, *insert.reads)):
            return False
        real = _streaming_insert(self._lake, self._scratch.current_database, statement)
        return any(seen for seen, _ in real.lag().values())

    def _adopt_tables(self, query: str) -> None:
        for node in read_sql(query).tables():
            parts = [part.name for part in node.parts]
            if len(parts) <= 2:
                adopt(self._scratch, self._lake, ".".join(f"`{part}`" for part in parts))

    def _note(self, node: Node, plan: str, is_new: bool) -> None:
        self.nodes.append(node)
        self.planned[node.name] = Planned(node.name, node.kind, node.reads, node.writes, plan, is_new)


def _refuse_what_repeats(statement: Statement) -> None:
    """Raises for what would be done again at each start of the pipeline."""
    if isinstance(statement, st.CreateTable) and (statement.query is not None or statement.replace):
        raise Unsupported(
            "a pipeline would fill or replace the table again at each start",
            hint="write CREATE MATERIALIZED TABLE ... AS SELECT, or CREATE TABLE and INSERT INTO ... SELECT",
        )
    if not isinstance(statement, _AT_EACH_START):
        raise Unsupported(
            f"{_words(statement)} would be done again at each start of the pipeline",
            hint="run it by itself, with lake.sql(...); a pipeline has CREATE, SET, USE and INSERT INTO ... SELECT",
        )


def _followed(statement: st.Insert) -> st.Sql:
    """The query of an INSERT that runs for ever; an error for what can not."""
    refused = {
        "INSERT OVERWRITE": statement.overwrite or statement.replace_where is not None,
        "INSERT ... PARTITION": bool(statement.partition),
        "INSERT ... BY NAME": statement.by_name,
        "a hint at the table of an INSERT": bool(statement.target.options),
        "INSERT ... VALUES": not isinstance(statement.source, st.Sql) or not statement.source.tables(),
    }
    for what, is_there in refused.items():
        if is_there:
            raise Unsupported(
                f"{what} does not go on for ever",
                hint="write INSERT INTO t SELECT ... FROM tables; what is done once is for lake.sql(...)",
            )
    assert isinstance(statement.source, st.Sql)
    return statement.source


# --- on the real lake ------------------------------------------------------------------------------------------------


def _carried_out(lake: Lake, statement: Statement, reads: dict[str, tuple[str, ...]]) -> Node | None:
    """Makes what is missing; gives the node that runs, if it is one."""
    if isinstance(statement, st.CreateMaterialized):
        name = _full(statement.name, lake.current_database)
        request, inside = _request(statement, name), LakeIn(lake, lake.current_database)
        if statement.replace and lake.has_table(name) and _differs(lake, name, statement):
            lake.alter_materialized(name, query=statement.query, policy=statement.policy, freshness=statement.freshness)
        return ViewNode(lake, name, reads[name], lambda: create_view(inside, request))
    if isinstance(statement, st.Insert):
        return InsertNode(lake, _streaming_insert(lake, lake.current_database, statement))
    if isinstance(statement, st.CreateTable):
        run_statement(lake, replace(statement, if_not_exists=True))
    elif not _is_mode(statement):
        run_statement(lake, statement)
    return None


def _request(statement: st.CreateMaterialized, name: str) -> ViewRequest:
    return ViewRequest(
        name,
        statement.query,
        statement.freshness,
        statement.policy or "auto",
        statement.primary_key,
        statement.partition_by,
        statement.options,
        statement.comment,
    )


def _streaming_insert(lake: Lake, database: str, statement: st.Insert) -> StreamingInsert:
    target, columns = _full(statement.target.name, database), statement.columns or ()
    text = _followed(statement).text
    told = "\n".join([target, ",".join(columns), " ".join(text.split())])
    name = f"{target}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"
    return StreamingInsert(lake, target, text, name=name, database=database, columns=columns)


# --- what is there already -------------------------------------------------------------------------------------------


def _refuse_other_table(there: Table, written: Table) -> None:
    """Raises if a table is not as a pipeline writes it: rows would go where they do not belong."""
    columns = [[(each.name, str(each.type)) for each in table.schema.fields] for table in (there, written)]
    options = {key: value for key, value in written.schema.options.items() if there.schema.options.get(key) != value}
    for what, is_other in (
        ("other columns", columns[0] != columns[1]),
        ("another primary key", there.primary_key != written.primary_key),
        ("other partitions", there.partition_by != written.partition_by),
        (f"another value of option `{next(iter(options), '')}`", bool(options)),
    ):
        if is_other:
            raise AlreadyExists(
                f"table `{there.name}` is there with {what} than the pipeline writes",
                hint="write CREATE TABLE IF NOT EXISTS to take it as it is, or ALTER it by hand first",
            )


def _differs(lake: Lake, name: str, statement: st.CreateMaterialized) -> bool:
    return lake.materialized(name).query.split() != statement.query.split()


def _refuse_other_query(lake: Lake, name: str, statement: st.CreateMaterialized) -> None:
    if _differs(lake, name, statement):
        raise AlreadyExists(
            f"materialized table `{name}` is there with another query",
            hint="write CREATE OR REPLACE MATERIALIZED VIEW to give it this one, or IF NOT EXISTS to keep its own",
        )


# --- words -----------------------------------------------------------------------------------------------------------


def _full(name: str, database: str) -> str:
    place = parse_table_name(name, database)
    return f"{place.database}.{place.table}"


def _is_mode(statement: Statement) -> bool:
    """SET 'execution.runtime-mode': a pipeline streams, whatever the lake does otherwise."""
    if not isinstance(statement, st.SetSetting) or statement.key != "execution.runtime-mode":
        return False
    if statement.value is not None and statement.value.lower() == "batch":
        raise Unsupported("a pipeline does not run in batch mode", hint="leave the setting out, or use lake.sql(...)")
    return True


def _words(statement: Statement) -> str:
    """The class of a statement as it is written: `DropTable` is DROP TABLE."""
    name = type(statement).__name__
    return "a SELECT" if isinstance(statement, st.Query) else re.sub(r"(?<!^)(?=[A-Z])", " ", name).upper()


def _text_of(function: Query) -> str:
    text = function()
    if not isinstance(text, str):
        raise InvalidArgument(
            f"function `{function.__name__}` gives {type(text).__name__}, not a query",
            hint='let it return SQL text: return "SELECT ..."; changes of a DataFrame can not be followed',
        )
    return text


def _placed(error: LakebedError, place: str) -> LakebedError:
    """The same error, with the place in the pipeline that it is about."""
    return type(error)(f"{place}: {error.message}", hint=error.hint)
