"""Makes a query ready for the embedded engine: which tables it means, what of each has to be read, in one snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from lakebed.algebra.relations import Relation, Scan, scans, used_ids
from lakebed.embedded.engine import Embedded
from lakebed.embedded.tables import parts_of, scanned, threads_here
from lakebed.expressions import kinds
from lakebed.expressions.functions.clocks import proven_zone
from lakebed.expressions.nodes import NotProven
from lakebed.expressions.spark_functions import is_known_function, no_function
from lakebed.records import dataclass
from lakebed.sql.bind.queries import TableColumns
from lakebed.sql.bind.scope import Bound
from lakebed.sql.bind.select import bind_query
from lakebed.sql.bind.syntax import functions_called, verbatim
from lakebed.sql.query.known_totals import Totals, with_known_totals
from lakebed.sql.query.other_tables import (
    SourceRows,
    check_bounded,
    other_table,
    raw_name,
    raw_table,
    seen_as,
)
from lakebed.sql.query.pins import Pins
from lakebed.sql.query.pushdown import cheapest_column, comparable_types, rows_needed
from lakebed.sql.query.references import reference_of
from lakebed.sql.query.views import view_text
from lakebed.sql.session import SqlLake
from lakebed.sql.settings import session_zone
from lakebed.sql.statements import Sql
from lakebed.table.few_rows import known_count, known_extremes
from lakebed.table.plans import plan_read
from lakebed.table.system.handle import DefinedTable
from lakebed.table.table import Table
from lakebed.types.arrow import from_arrow_schema
from lakebed.types.logical import TypeRoot, is_root
from lakebed.types.predicate import Predicate
from lakebed.types.predicate_evaluate import evaluate
from lakebed.types.transfer import to_transfer, transfer_schema

if TYPE_CHECKING:
    from lakebed.changes.read import ChangeRead

_NAME = re.compile(r"[A-Za-z_]+(/[A-Za-z0-9_+-]+)*")
"""Names of zones; what else a session may be set to is of no concern to queries without moments."""


def prepared(lake: SqlLake, sql: Sql, pins: Pins) -> Embedded:
    """The query, bound and planned; NotProven if it is one that only Spark is sure to answer rightly."""
    return planned(lake, bound_text(lake, sql.text, pins))


def bound_text(lake: SqlLake, text: str, pins: Pins, given: Mapping[str, TableColumns] | None = None) -> Bound:
    """The query of a text. `given` are tables of it that are known already, by names that no other table has."""
    tables = _Tables(lake, pins, given or {})
    try:
        return bind_query(verbatim(text), tables.columns, tables.view)
    except NotProven:
        _check_functions(lake, text)
        raise


def _check_functions(lake: SqlLake, text: str) -> None:
    """Says which function nobody knows before Spark is started to say so. A session may have functions of its own."""
    if lake.is_spark_started:
        return
    for name in functions_called(text):
        if not is_known_function(name):
            raise no_function(name)


def planned(lake: SqlLake, bound: Bound) -> Embedded:
    """The query with reads of its tables, ready to run."""
    if any(each.type == kinds.YEAR_MONTH for each in bound.relation.columns):
        raise NotProven("a result of months", "Arrow has no type for it that Spark hands out")
    relation = with_known_totals(bound.relation, _known_totals)
    used = used_ids(relation)
    for scan in scans(relation):
        scan.source.plan(scan.narrowed(used).names)
    zone = session_zone(lake)
    if zone is not None and has_moments(relation):
        proven_zone(zone)
    return Embedded(relation, bound.names, zone if zone is not None and _NAME.fullmatch(zone) else None)


def _known_totals(scan: Scan, names: Sequence[str]) -> Totals | None:
    """What metadata tell of a table's rows. REQUIRES: nothing is said of them but the table's name."""
    source = scan.source
    if not isinstance(source, _Source) or isinstance(source.table, DefinedTable):
        return None
    found = plan_read(source.table, [])
    if not isinstance(found, tuple):
        return None
    rows = known_count(*found)
    if rows is None:
        return None
    columns = known_extremes(*found, names, rows) if names else {}
    return None if columns is None else Totals(rows, columns)


def has_moments(relation: Relation) -> bool:
    """Whether a value of the query is a moment: only those depend on a zone."""
    values = (value for part in relation.walk() for value in (*part.columns, *part.expressions))
    return any(each.type == kinds.TIMESTAMP for value in values for each in value.walk())


@dataclass(frozen=True)
class _Tables:
    """Finds the tables of a query."""

    lake: SqlLake
    pins: Pins
    given: Mapping[str, TableColumns]

    def view(self, node: exp.Table) -> exp.Expression | None:
        """The query of a temporary view, or the one through which a table of another system is seen."""
        if (other := other_table(self.lake, node)) is not None:
            if raw_name(other) not in self.given:
                check_bounded(other)
            return verbatim(seen_as(other))
        if self.lake.is_spark_started or len(node.parts) > 1 or isinstance(node.this, exp.Func):
            return None  # with a session, views are its own
        text = view_text(self.lake, node.name)
        if text is None:
            return None
        if node.meta.keys() & {"options", "version"}:
            raise NotProven(f"`{node.name}`", "it is a view")
        return verbatim(text.text)

    def columns(self, node: exp.Table) -> TableColumns:
        """What a table shows, under the types of the engine."""
        if node.name in self.given:
            return self.given[node.name]
        if (raw := raw_table(self.lake, node)) is not None:
            rows = SourceRows(raw)
            return TableColumns(rows, (), tuple(rows.schema))
        reference = reference_of(self.lake, node)
        if reference is None:
            raise NotProven(f"`{node.sql('spark')}`", "it is no table of the lake", _taken_in(node))
        table = self.pins.shared(reference)
        path = tuple(reference.name.split(".")) if not isinstance(node.this, exp.Func) else ()
        return TableColumns(_Source(table, node), path, *_shown(table))


def _taken_in(node: exp.Table) -> str:
    """What to do with a file that a query names, where no Spark reads it."""
    if node.db.lower() in ("csv", "json", "parquet", "orc"):
        return f"take its rows in: lake.create_table(name, pandas.read_{node.db.lower()}({node.name!r}))"
    return "write that part otherwise"


def _shown(table: Table) -> tuple[tuple[pa.Field, ...], tuple[pa.Field, ...]]:
    """Columns of a table, and those that have to be asked for."""
    if isinstance(table, DefinedTable):
        return tuple(transfer_schema(table.schema.fields)), ()
    return _fields(table.arrow_schema), _fields(table.hidden_schema)


def _fields(schema: pa.Schema) -> tuple[pa.Field, ...]:
    return tuple(transfer_schema(from_arrow_schema(schema)))


@dataclass(eq=False)
class _Source:
    """A table of a query: first what it is, then, once the whole query is known, what is read of it."""

    table: Table
    node: exp.Table
    parts: Any = None

    def __eq__(self, other: object) -> bool:
        """Whether it is the same place of the query's text, and the table that was found for it is the same, too."""
        return isinstance(other, _Source) and self.node is other.node and self.table is other.table

    def __hash__(self) -> int:
        return hash((id(self.node), id(self.table)))

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of its primary key."""
        return () if isinstance(self.table, DefinedTable) else self.table.primary_key

    def plan(self, names: Sequence[str]) -> None:
        """Plans a read of these columns."""
        table = self.table
        if isinstance(table, DefinedTable):
            asked = rows_needed(self.node, comparable_types(table)) if table.needs_condition else None
            self.parts = _Made(table, tuple(names), asked)
            return
        for each in table.schema.fields:
            if each.name in names and is_root(each.type, TypeRoot.CHAR):
                raise NotProven(f"column `{each.name}` of {table.name}", "CHAR is compared regardless of its padding")
        chosen = list(names) or [cheapest_column(table.arrow_schema)]
        planned = plan_read(table, chosen, rows_needed(self.node, comparable_types(table)))
        if not isinstance(planned, tuple):
            self.parts = _Changes(planned)
            return
        reader, plan = planned
        self.parts = parts_of(reader, plan, threads_here())

    def define(self, connection: Any, view: str) -> None:
        """Shows the rows to DuckDB under a name."""
        self.parts.define(connection, view)


@dataclass(frozen=True)
class _Made:
    """Rows of a system table, made when they are read."""

    table: DefinedTable
    names: tuple[str, ...]
    condition: Predicate | None = None

    def define(self, connection: Any, view: str) -> None:
        """Shows the rows to DuckDB under a name."""
        rows = self.table.to_arrow(list(self.names) or None, self.condition)
        fields = {each.name: each for each in self.table.schema.fields}
        schema = transfer_schema([fields[name] for name in rows.schema.names])
        batches = [to_transfer(batch, schema) for batch in rows.to_batches()]
        connection.register(view, pa.Table.from_batches(batches, schema=schema))


@dataclass(frozen=True)
class _Changes:
    """Rows of a read of changes, in their order."""

    changes: ChangeRead

    @property
    def arrow_schema(self) -> pa.Schema:
        """Its columns, with Spark's types."""
        return transfer_schema(from_arrow_schema(self.changes.schema))

    @property
    def hidden_schema(self) -> pa.Schema:
        """None."""
        return pa.schema([])

    def to_reader(self, columns: Sequence[str] | None = None, filter: Any = None) -> pa.RecordBatchReader:  # noqa: A002
        """Matching rows as a stream of batches."""
        schema = self.arrow_schema
        names = list(schema.names if columns is None else columns)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in self.changes.batches():
                rows = to_transfer(batch, schema)
                if filter is not None:
                    rows = rows.filter(evaluate(filter, rows))
                yield rows.select(names)

        return pa.RecordBatchReader.from_batches(pa.schema([schema.field(name) for name in names]), batches())

    def define(self, connection: Any, view: str) -> None:
        """Shows the rows to DuckDB under a name."""
        size_bytes = sum(file.size_bytes for file in self.changes.plan().files)
        connection.register(view, scanned(self, size_bytes))
