"""What the statements of a pipeline come to: tried on a lake that is thrown away, then carried out on the real one.

Each statement is looked at once. What it would do is done to the rehearsal at once, so that the next statement finds
it; what it is to do to the real lake is kept as a deed for later.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from lakebed.catalog.names import parse_table_name
from lakebed.connectors import (
    CONNECTORS,
    RowInsert,
    SinkInsertTarget,
    is_row_by_row,
    is_synced,
    land,
    landed_name,
    landing_groups,
    landing_insert,
)
from lakebed.connectors.landing import create_landing
from lakebed.errors import AlreadyExists, LakebedError, Unsupported
from lakebed.pipelines.landed_text import check_versions, landed_text
from lakebed.pipelines.nodes import INSERT, SOURCE, InsertNode, Node, RowsNode, SyncNode, ViewNode
from lakebed.pipelines.rehearsal import adopt
from lakebed.records import dataclass
from lakebed.sql import statements as st
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.parse import Statement
from lakebed.sql.run import run_statement
from lakebed.sql.settings import CHECKPOINTS, MODE, check_interval_ms
from lakebed.sql.words.cursor import tokens_of
from lakebed.sql.words.names import quoted
from lakebed.views.define import ViewRequest, create_view
from lakebed.views.explain import explained
from lakebed.views.insert import StreamingInsert
from lakebed.views.lake_in import LakeIn, read_sql
from lakebed.views.live import LiveQuery
from lakebed.views.sources import tables_of

if TYPE_CHECKING:
    from lakebed.cdc import SyncRun
    from lakebed.lake import Lake
    from lakebed.table.table import Table

_AT_EACH_START = (
    *(st.CreateDatabase, st.UseDatabase, st.UseCatalog, st.SetSetting, st.ResetSetting),
    *(st.CreateTable, st.CreateConnectorTable, st.CreateMaterialized, st.Insert),
)
"""Statements that mean the same however often the pipeline is started."""
_CHECKPOINTS = "_pipelines"
"""Below the warehouse: where sources of a pipeline keep how far they are."""

Deed = Callable[[], Node | None]


@dataclass(frozen=True, slots=True)
class Planned:
    """A node as the rehearsal found it: what it reads and writes, and how it follows changes."""

    name: str
    kind: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    plan: str
    is_new: bool | None
    """Whether its table is still to be made, or its rows still to be sent; None if only another system knows."""


@dataclass(frozen=True, slots=True)
class Running:
    """How a pipeline is to run, as far as its sources are concerned."""

    name: str
    warehouse: str
    once: bool = False
    interval: str = "1 second"

    def checkpoint(self, tables: tuple[ConnectorTable, ...]) -> str:
        """Where a sync keeps how far it is: by the server and the slot, whichever tables it lands."""
        first = tables[0]
        words = [
            first.connector,
            *(first.option(name) or "" for name in ("hostname", "port", "slot.name", "server-id")),
        ]
        words += [first.full_name] if first.connector == "kafka" else [first.option("database-name") or ""]
        return f"{self.warehouse.rstrip('/')}/{_CHECKPOINTS}/{self.name}/{first.connector}-{_digest(words)}"

    @property
    def trigger(self) -> str | dict[str, bool]:
        """As a sync takes it."""
        return {"availableNow": True} if self.once else self.interval


class Parts:
    """The statements of a pipeline, looked at one after the other."""

    def __init__(self, lake: Lake, scratch: Lake, running: Running) -> None:
        self._lake = lake
        self._scratch = scratch
        self._running = running
        self._landed: dict[str, ConnectorTable] = {}
        self.planned: list[Planned] = []
        self.nodes: list[Node] = []
        """Those of the rehearsal: only their names, and what they read and write, are of use."""
        self.deeds: list[Deed] = []
        """What is to be done on the real lake, in order."""

    def look_every(self, interval_ms: int | None) -> int:
        """Has sources commit so often, or as often as the statements say; how often that is. Before the deeds."""
        pause_ms = check_interval_ms(self._scratch) if interval_ms is None else interval_ms
        self._running = replace(self._running, interval=f"{pause_ms} milliseconds")
        return pause_ms

    @property
    def _database(self) -> str:
        return self._scratch.current_database

    def add(self, statement: Statement) -> None:
        """Tries one statement."""
        _refuse_what_repeats(statement)
        if isinstance(statement, st.CreateMaterialized):
            self._view(statement)
        elif isinstance(statement, st.Insert):
            self._insert(statement)
        elif isinstance(statement, st.CreateTable):
            self._table(statement)
        elif isinstance(statement, st.CreateConnectorTable):
            run_statement(self._scratch, replace(statement, is_temporary=True, replace=not statement.if_not_exists))
        elif _is_mode(statement):
            run_statement(self._scratch, statement)
        else:
            run_statement(self._scratch, statement)
            self.deeds.append(lambda: run_statement(self._lake, statement))

    def finish(self) -> None:
        """Adds the syncs that land what the queries read: one for each server."""
        for group in landing_groups(list(self._landed.values())):
            writes = tuple(landed_name(table) for table in group)
            name = f"{group[0].connector} {', '.join(table.full_name for table in group)}"
            checkpoint = self._running.checkpoint(group)
            is_new = not any(self._lake.has_table(each) for each in writes)
            node = SyncNode(name, writes, self._sync(group, checkpoint), once=self._running.once)
            self._note(node, f"changes land in {', '.join(writes)}", is_new)
            self.deeds.append(partial(_given, node))

    def _sync(self, group: tuple[ConnectorTable, ...], checkpoint: str) -> Callable[[], SyncRun]:
        return lambda: land(self._lake, group, checkpoint, trigger=self._running.trigger, query_name=None)

    # --- tables and views ----------------------------------------------------------------------------------------

    def _table(self, statement: st.CreateTable) -> None:
        name = _full(statement.name, self._database)
        if statement.like is not None:
            adopt(self._scratch, self._lake, statement.like)
        wanted = replace(statement, if_not_exists=True)
        run_statement(self._scratch, wanted)
        if self._lake.has_table(name) and not statement.if_not_exists:
            _refuse_other_table(self._lake.table(name), self._scratch.table(name))
        self.deeds.append(lambda: run_statement(self._lake, wanted))

    def _view(self, statement: st.CreateMaterialized) -> None:
        name, database = _full(statement.name, self._database), self._database
        sql = read_sql(statement.query)
        others = self._landed_in(sql)
        inside = LakeIn(self._scratch, database)
        tried = replace(statement, query=self._spliced(self._scratch, sql, others))
        reads = tuple(tables_of(inside, read_sql(tried.query)))
        create_view(inside, _request(tried, name))
        is_new = not self._lake.has_table(name)
        if not is_new and not statement.if_not_exists and not statement.replace and not others:
            _refuse_other_query(self._lake, name, tried)
        self._note(ViewNode(self._scratch, name, reads), explained(self._scratch, name), is_new)

        def wanted() -> st.CreateMaterialized:
            return replace(statement, query=self._spliced(self._lake, sql, others))

        def deed() -> Node:
            if statement.replace and self._lake.has_table(name) and _differs(self._lake, name, wanted()):
                self._lake.alter_materialized(
                    name, query=wanted().query, policy=statement.policy, freshness=statement.freshness
                )
            real = LakeIn(self._lake, database)
            return ViewNode(self._lake, name, reads, lambda: create_view(real, _request(wanted(), name)))

        self.deeds.append(deed)

    # --- INSERTs -------------------------------------------------------------------------------------------------

    def _insert(self, statement: st.Insert) -> None:
        sql, database, columns = _followed(statement), self._database, statement.columns or ()
        target = _full(statement.target.name, database)
        sink = self._other(statement.target.name)
        if sink is None:
            adopt(self._scratch, self._lake, target)
        name = f"{target}-{_digest([database, target, *columns, *_meaning(sql.text)])}"
        rows = self._rows_insert(sql, target, name, columns)
        if rows is not None:
            insert = rows(self._scratch)
            insert.check()
            has_begun = sink is None and self._lake.has_table(target) and rows(self._lake).has_begun()
            self._note(RowsNode(insert, INSERT), insert.explain(), None if _keeps(sink) else not has_begun)

            def deed() -> Node:
                if sink is not None:
                    self._lake.other_tables[sink.database, sink.name] = sink
                return RowsNode(rows(self._lake), INSERT)

            self.deeds.append(deed)
            return
        others = self._landed_in(sql)

        def made(lake: Lake) -> StreamingInsert:
            text = self._spliced(lake, sql, others)
            into = None if sink is None else SinkInsertTarget(sink, name)
            return StreamingInsert(lake, target, text, name=name, database=database, columns=columns, into=into)

        tried = made(self._scratch)
        tried.check()
        reads = tried.reads
        is_new: bool | None = None if _keeps(sink) else True
        if sink is None and all(self._lake.has_table(each) for each in (target, *reads)):
            is_new = not any(seen for seen, _ in made(self._lake).lag().values())
        self._note(InsertNode(self._scratch, name, reads, target, lambda: tried), str(tried.explain()), is_new)
        self.deeds.append(lambda: InsertNode(self._lake, name, reads, target, lambda: made(self._lake)))

    def _rows_insert(
        self, sql: st.Sql, target: str, name: str, columns: tuple[str, ...]
    ) -> Callable[[Lake], RowInsert] | None:
        """If the query takes rows of one source one by one: what sends them without landing."""
        source, database = self.row_source(sql), self._database
        if source is None:
            return None
        return lambda lake: RowInsert(lake, source, target, sql.text, name=name, database=database, columns=columns)

    def row_source(self, sql: st.Sql) -> ConnectorTable | None:
        """The one source whose rows a query takes one by one, so that they need not land; None if it does otherwise."""
        others = self._others_in(sql)
        if len({each.full_name for each in others.values()}) != 1:
            return None
        source = next(iter(others.values()))
        return source if is_row_by_row(self._scratch, source, sql.text, self._database) else None

    @property
    def landed(self) -> list[ConnectorTable]:
        """The sources that land."""
        return list(self._landed.values())

    # --- a SELECT ------------------------------------------------------------------------------------------------

    def select(self, sql: st.Sql) -> tuple[LiveQuery, Callable[[], LiveQuery]]:
        """A SELECT over sources that land: tried on the rehearsal, and what makes it on the lake once they are there.

        Its landing is among the deeds.
        """
        others, database = self._landed_in(sql), self._database

        def made(lake: Lake) -> LiveQuery:
            return LiveQuery(lake, self._spliced(lake, sql, others), database=database)

        tried = made(self._scratch)
        tried.check()
        return tried, lambda: made(self._lake)

    # --- tables of other systems ---------------------------------------------------------------------------------

    def _other(self, name: str) -> ConnectorTable | None:
        place = parse_table_name(name, self._database)
        return self._scratch.other_tables.get((place.database, place.table))

    def _others_in(self, sql: st.Sql) -> dict[tuple[int, int], ConnectorTable]:
        """Where a query names tables of other systems; what it reads of the lake comes to the rehearsal on the way."""
        found: dict[tuple[int, int], ConnectorTable] = {}
        for node in sql.tables():
            parts = [part.name for part in node.parts]
            if len(parts) > 2 or isinstance(node.this, exp.Func):
                continue
            name = ".".join(quoted(part) for part in parts)
            other = self._other(name)
            if other is not None:
                found[node.meta["span"]] = other
            else:
                adopt(self._scratch, self._lake, name)
        return found

    def _landed_in(self, sql: st.Sql) -> dict[tuple[int, int], ConnectorTable]:
        """The same; each of them is to land."""
        found = self._others_in(sql)
        check_versions(sql, found)
        for table in found.values():
            if table.full_name in self._landed:
                continue
            if not CONNECTORS[table.connector].definition.is_source:
                raise Unsupported(
                    f"table `{table.full_name}` of connector `{table.connector}` is written, not read",
                    hint="read the table of the lake that its rows come from",
                )
            self._landed[table.full_name] = table
            create_landing(self._scratch, table)
            if not is_synced(table):
                tried = landing_insert(self._scratch, table)
                self._note(RowsNode(tried, SOURCE), tried.explain(), not self._lake.has_table(landed_name(table)))
                self.deeds.append(partial(self._landing, table))
        return found

    def _landing(self, table: ConnectorTable) -> Node:
        return RowsNode(landing_insert(self._lake, table), SOURCE)

    def _spliced(self, lake: Lake, sql: st.Sql, others: Mapping[tuple[int, int], ConnectorTable]) -> str:
        """The query with what has landed in the place of the sources."""
        return landed_text(lake, sql, others)

    def _note(self, node: Node, plan: str, is_new: bool | None) -> None:
        self.nodes.append(node)
        self.planned.append(Planned(node.name, node.kind, node.reads, node.writes, plan, is_new))


def _given(node: Node) -> Node:
    return node


def _keeps(sink: ConnectorTable | None) -> bool:
    """Whether a sink keeps how far an INSERT is, so that only its system knows whether that has begun."""
    return sink is not None and CONNECTORS[sink.connector].keeps


# --- what is refused -------------------------------------------------------------------------------------------------


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
            hint="run it by itself, before the pipeline; a pipeline has CREATE, SET, USE and INSERT INTO ... SELECT",
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
                hint="write INSERT INTO t SELECT ... FROM tables; what is done once is done before, in batch mode",
            )
    assert isinstance(statement.source, st.Sql)
    return statement.source


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
    return _meaning(lake.materialized(name).query) != _meaning(statement.query)


def _refuse_other_query(lake: Lake, name: str, statement: st.CreateMaterialized) -> None:
    if _differs(lake, name, statement):
        raise AlreadyExists(
            f"materialized table `{name}` is there with another query",
            hint="write CREATE OR REPLACE MATERIALIZED VIEW to give it this one, or IF NOT EXISTS to keep its own",
        )


# --- words -----------------------------------------------------------------------------------------------------------


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


def _full(name: str, database: str) -> str:
    place = parse_table_name(name, database)
    return f"{place.database}.{place.table}"


def _meaning(query: str) -> list[str]:
    """The words of a query, without what means nothing: spaces and comments.

    INVARIANT: an INSERT that is only laid out otherwise has the same words, and so the same name. Under another name it
    would begin with all rows, which a table may have already.
    """
    return [query[each.start : each.end + 1] for each in tokens_of(query)]


def _digest(words: list[str]) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:8]


def _is_mode(statement: Statement) -> bool:
    """Whether it says how the pipeline runs, which streams, whatever the lake does otherwise."""
    if not isinstance(statement, st.SetSetting | st.ResetSetting) or statement.key not in (MODE, CHECKPOINTS):
        return False
    if (
        isinstance(statement, st.SetSetting)
        and statement.key == MODE
        and statement.value is not None
        and statement.value.lower() == "batch"
    ):
        raise Unsupported("a pipeline does not run in batch mode", hint="leave the setting out")
    return True


def _words(statement: Statement) -> str:
    """The class of a statement as it is written: `DropTable` is DROP TABLE."""
    name = type(statement).__name__
    return "a SELECT" if isinstance(statement, st.Query) else re.sub(r"(?<!^)(?=[A-Z])", " ", name).upper()


def placed(error: LakebedError, place: str) -> LakebedError:
    """The same error, with the place in the pipeline that it is about."""
    return type(error)(f"{place}: {error.message}", hint=error.hint)


__all__ = ["Parts", "Planned", "Running", "placed"]
