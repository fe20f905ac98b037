"""Makes a query ready for the embedded engine: which tables it means, what of each has to be read, in one snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakebed.algebra.relations import Relation, scans, used_ids
from lakebed.changes.read import ChangeRead
from lakebed.embedded.engine import Embedded
from lakebed.embedded.tables import parts_of, scanned, threads_here
from lakebed.expressions import kinds
from lakebed.expressions.functions.clocks import proven_zone
from lakebed.expressions.nodes import NotProven
from lakebed.sql.bind.queries import TableColumns
from lakebed.sql.bind.select import bind_query
from lakebed.sql.bind.syntax import verbatim
from lakebed.sql.query.pins import Pins
from lakebed.sql.query.pushdown import cheapest_column, comparable_types, needs_of
from lakebed.sql.query.references import reference_of
from lakebed.sql.session import SqlLake
from lakebed.sql.settings import session_zone
from lakebed.sql.statements import Sql
from lakebed.table.plans import plan_read
from lakebed.table.system.handle import DefinedTable
from lakebed.table.table import Table
from lakebed.types.arrow import from_arrow_schema
from lakebed.types.logical import TypeRoot, is_root
from lakebed.types.predicate_evaluate import evaluate
from lakebed.types.transfer import to_transfer, transfer_schema

_NAME = re.compile(r"[A-Za-z_]+(/[A-Za-z0-9_+-]+)*")
"""Names of zones; what else a session may be set to is of no concern to queries without moments."""


def prepared(lake: SqlLake, sql: Sql, pins: Pins) -> Embedded:
    """The query, bound and planned; NotProven if it is one that only Spark is sure to answer rightly."""
    bound = bind_query(verbatim(sql.text), _Tables(lake, pins).columns)
    if any(each.type == kinds.YEAR_MONTH for each in bound.relation.columns):
        raise NotProven("a result of months", "Arrow has no type for it that Spark hands out")
    used = used_ids(bound.relation)
    for scan in scans(bound.relation):
        scan.source.plan(scan.narrowed(used).names)
    zone = session_zone(lake)
    if zone is not None and has_moments(bound.relation):
        proven_zone(zone)
    return Embedded(bound.relation, bound.names, zone if zone is not None and _NAME.fullmatch(zone) else None)


def has_moments(relation: Relation) -> bool:
    """Whether a value of the query is a moment: only those depend on a zone."""
    values = (value for part in relation.walk() for value in (*part.columns, *part.expressions))
    return any(each.type == kinds.TIMESTAMP for value in values for each in value.walk())


@dataclass(frozen=True)
class _Tables:
    """Finds the tables of a query."""

    lake: SqlLake
    pins: Pins

    def columns(self, node: exp.Table) -> TableColumns:
        """What a table shows, under the types of the engine."""
        reference = reference_of(self.lake, node)
        if reference is None:
            raise NotProven(f"`{node.sql('spark')}`", "it is no table of the lake")
        table = self.pins.shared(reference)
        path = tuple(reference.name.split(".")) if not isinstance(node.this, exp.Func) else ()
        return TableColumns(_Source(table, node), path, *_shown(table))


def _shown(table: Table) -> tuple[tuple[pa.Field, ...], tuple[pa.Field, ...]]:
    """Columns of a table, and those that have to be asked for."""
    if isinstance(table, DefinedTable):
        return tuple(transfer_schema(table.schema.fields)), ()
    return _fields(table.arrow_schema), _fields(table.hidden_schema)


def _fields(schema: pa.Schema) -> tuple[pa.Field, ...]:
    return tuple(transfer_schema(from_arrow_schema(schema)))


@dataclass
class _Source:
    """A table of a query: first what it is, then, once the whole query is known, what is read of it."""

    table: Table
    node: exp.Table
    parts: Any = None

    def plan(self, names: Sequence[str]) -> None:
        """Plans a read of these columns."""
        table = self.table
        if isinstance(table, DefinedTable):
            self.parts = _Made(table, tuple(names))
            return
        for each in table.schema.fields:
            if each.name in names and is_root(each.type, TypeRoot.CHAR):
                raise NotProven(f"column `{each.name}` of {table.name}", "CHAR is compared regardless of its padding")
        needs = needs_of(self.node, comparable_types(table))
        chosen = list(names) or [cheapest_column(table.arrow_schema)]
        planned = plan_read(table, chosen, needs.predicate)
        if isinstance(planned, ChangeRead):
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

    def define(self, connection: Any, view: str) -> None:
        """Shows the rows to DuckDB under a name."""
        rows = self.table.to_arrow(list(self.names) or None)
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
