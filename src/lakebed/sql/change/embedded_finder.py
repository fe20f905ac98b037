"""Finds rows of a statement in this process: its texts are bound like queries, and run by the embedded engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import count
from typing import Any

import pyarrow as pa

from lakebed.algebra.relations import Join, Project, Relation, Scan, Sort, Subquery, scans
from lakebed.changes.read import ChangeRead
from lakebed.embedded.tables import Connection, TableParts, parts_of, threads_here
from lakebed.errors import InvalidArgument
from lakebed.expressions import kinds
from lakebed.expressions.casts import null_of
from lakebed.expressions.functions import FUNCTIONS
from lakebed.expressions.nodes import Column, Constant, Expression, NotProven, Ordering
from lakebed.read.plan import ScanPlan
from lakebed.read.reader import SplitReader, projected_fields
from lakebed.records import dataclass
from lakebed.sql.bind.literals import text_constant
from lakebed.sql.bind.queries import TableColumns
from lakebed.sql.bind.scope import Bound
from lakebed.sql.change.embedded_rows import check_engine, check_few, collected_here
from lakebed.sql.change.finder import CLAUSE, KIND, Changed, Merged
from lakebed.sql.change.store import carried_kind, padded_text, projected, stored, values_of
from lakebed.sql.query.embedded import bound_text
from lakebed.sql.query.pins import Pins
from lakebed.sql.query.plan import stored_name
from lakebed.sql.query.pushdown import Needs, cheapest_column
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Sql
from lakebed.sql.words.names import quoted
from lakebed.table.plans import plan_read
from lakebed.table.table import Table
from lakebed.types.arrow import from_arrow_schema
from lakebed.types.logical import DataField, TypeRoot, is_root
from lakebed.types.transfer import transfer_schema

_NUMBERS = count(1)


@dataclass(frozen=True)
class EmbeddedSource:
    """The source of a MERGE: a query in brackets."""

    finder: EmbeddedFinder
    text: str

    @cached_property
    def columns(self) -> list[str]:
        """Names of its columns."""
        return list(self.finder.bound(f"SELECT * FROM {self.text}").names)

    @property
    def fields(self) -> tuple[DataField, ...]:
        """Columns that a table is to get from it: that is left to Spark."""
        raise NotProven("a MERGE that adds columns")


@dataclass(frozen=True)
class EmbeddedFinder:
    """The way without a JVM. `given` are relations that texts name."""

    lake: SqlLake
    pins: Pins = field(default_factory=Pins)
    given: dict[str, TableColumns] = field(default_factory=dict)

    def anew(self) -> EmbeddedFinder:
        """Another one, for tables as they are by then."""
        return EmbeddedFinder(self.lake)

    def reads_waiting(self, table: Table) -> bool:
        """Always: all is read in this process."""
        return True

    def pin_anew(self, table: Table) -> Table:
        """The table as it is by now, for all texts that follow."""
        return self.pins.pin_anew(table)

    def text(self, sql: Sql, edits: Mapping[tuple[int, int], str] | None = None) -> str:
        """The text as it is: names of tables are looked up when it is bound."""
        return sql.spliced(edits or {})

    def target(self, table: Table, needs: Needs, shown: str) -> str:
        """The table to change, with what is stored beside defaults that reads show."""
        visible, hidden = table.arrow_schema, table.hidden_schema
        names = [name for name in [*visible.names, *hidden.names] if needs.columns is None or name in needs.columns]
        planned = plan_read(table, names, needs.predicate)
        if isinstance(planned, ChangeRead):
            raise NotProven("a table that shows changes")
        source = _Target(table, *planned)
        known = {each.name: each for each in transfer_schema(from_arrow_schema(pa.schema([*visible, *hidden])))}
        columns = [known[name] for name in names]
        columns += [known[name].with_name(stored_name(name)) for name in names if name in source.defaults]
        return self._added(source, tuple(columns))

    def source(self, sql: Sql, shown: Collection[str]) -> EmbeddedSource:
        """The source of a MERGE; hidden columns are there if the statement names them."""
        found = EmbeddedSource(self, f"(SELECT * FROM {sql.text})")
        hidden = sorted(set(shown) - {name.lower() for name in found.columns})
        if not hidden:
            return found
        found = EmbeddedSource(self, f"(SELECT *, {', '.join(map(quoted, hidden))} FROM {sql.text})")
        try:
            _ = found.columns
        except InvalidArgument as error:
            raise NotProven(f"column `{hidden[0]}` of the source") from error
        return found

    def relation_of(self, source: EmbeddedSource, shown: str) -> str:
        """The query."""
        return source.text

    def matching(self, rows: pa.Table, fields: Sequence[DataField], alias: str, where: Sql) -> list[dict[str, Any]]:
        """Those of the given rows that meet a condition."""
        if any(is_root(each.type, TypeRoot.CHAR) for each in fields):
            raise NotProven("a condition on CHAR", "it is compared regardless of its padding")
        for each in fields:
            carried_kind(each)
        name = self._added(_GivenRows(rows), tuple(rows.schema))
        columns = ", ".join(f"{quoted(alias)}.{quoted(each.name)}" for each in fields)
        text = f"SELECT {columns} FROM {name} AS {quoted(alias)} WHERE {where.text}"
        found: list[dict[str, Any]] = collected_here(self.lake, self.bound(text), ()).to_pylist()
        return found

    def changed(self, text: str, rows: Changed) -> pa.Table:
        """The rows of an UPDATE or DELETE."""
        relation, values = values_of(self.bound(text))
        if isinstance(relation, Scan) and isinstance(relation.source, _Target):  # no condition: all of its rows
            check_few(sum(file.row_count for file in relation.source.splits.files))
        fitted = [
            stored(value, each) if each.name in rows.set else _kept(value, each)
            for value, each in zip(values, rows.fields, strict=False)
        ]
        kind: Expression = text_constant(rows.kind)
        names = [each.name for each in rows.fields]
        if rows.kind_field in rows.set:
            kind = _told_kind(fitted[names.index(str(rows.kind_field))], kind)
        places = values[len(fitted) :]
        return self._collected(relation, [*fitted, *places, kind], [*names, *rows.places, KIND], rows.fields)

    def merged(self, text: str, rows: Merged) -> pa.Table:
        """The rows of a MERGE."""
        bound = self.bound(text)
        if any(isinstance(part, Join) and _asks(part.condition) for part in bound.relation.walk()):
            raise NotProven("a query in ON")
        known = dict(zip(bound.names, bound.relation.columns, strict=True))
        clause = known[CLAUSE]
        names = [each.name for each in rows.fields]
        columns = []
        for index, each in enumerate(rows.fields):
            options = []
            for number, is_set in enumerate(each.name in found for found in rows.set):
                if is_set:
                    options.append(stored(known[f"_new_{number}_{index}"], each))
                elif rows.kinds[number] == "+I":
                    options.append(null_of(carried_kind(each)))
                else:
                    options.append(_kept(known[f"_old_{index}"], each))
            columns.append(_chosen(clause, options))
        told: list[Expression] = [text_constant(kind) for kind in rows.kinds]
        for number, found in enumerate(rows.set):
            if rows.kind_field in found:
                told[number] = _told_kind(columns[names.index(str(rows.kind_field))], told[number])
        hidden = [(index, name) for index, name in enumerate(rows.places) if name not in names]
        places = [known[f"_place_{index}"] for index, _ in hidden]
        values = [*columns, *places, _chosen(clause, told)]
        shown = [*names, *(name for _, name in hidden), KIND]
        return self._collected(bound.relation, values, shown, rows.fields, is_sorted=True)

    def drop(self) -> None:
        """Nothing was made."""

    def bound(self, text: str) -> Bound:
        """The query of a text."""
        check_engine()
        return bound_text(self.lake, text, self.pins, self.given)

    def _added(self, source: object, columns: tuple[pa.Field, ...]) -> str:
        name = f"lakebed_relation_{next(_NUMBERS)}"
        self.given[name] = TableColumns(source, (name,), columns)
        return name

    def _collected(
        self,
        relation: Relation,
        values: Sequence[Expression],
        names: Sequence[str],
        fields: Sequence[DataField],
        *,
        is_sorted: bool = False,
    ) -> pa.Table:
        _check_padded(relation)
        found = projected(relation, values, names)
        return collected_here(self.lake, _in_order(found) if is_sorted else found, fields)


# --- values ----------------------------------------------------------------------------------------------------------


def _kept(value: Expression, each: DataField) -> Expression:
    """What is stored already."""
    if value.type != carried_kind(each):
        raise NotProven(f"column `{each.name}` as {kinds.spark_name(value.type)}")
    return value


def _chosen(clause: Expression, options: Sequence[Expression]) -> Expression:
    """The value of the clause that takes the row."""
    parts: list[Expression] = []
    for number, value in enumerate(options):
        constant = Constant(type=kinds.INT, nullable=False, value=number, text=f"CAST({number} AS INTEGER)")
        parts += [FUNCTIONS["="]("=", [clause, constant]), value]
    return FUNCTIONS["case"]("case", [*parts, null_of(options[0].type)])


def _told_kind(column: Expression, kind: Expression) -> Expression:
    """The kind that a row tells itself; a row that is there already does not become a new one."""
    is_new = FUNCTIONS["="]("=", [column, text_constant("+I")])
    return FUNCTIONS["case"]("case", [is_new, kind, column])


def _in_order(rows: Bound) -> Bound:
    """The rows in the order of their values: a join gives them in any, and new rows get their ids in it."""
    columns = rows.relation.columns
    order = tuple(Ordering(each) for each in columns if not kinds.is_nested(each.type))
    return replace(rows, relation=Sort(columns=columns, input=rows.relation, order=order))


def _asks(condition: Expression | None) -> bool:
    return condition is not None and any(isinstance(each, Subquery) for each in condition.walk())


def _check_padded(relation: Relation) -> None:
    """Raises if a condition or value looks at text of fixed length, which is compared regardless of its padding.

    It may be handed on as it is.
    """
    carried = {
        column.id
        for scan in scans(relation)
        if isinstance(scan.source, _Target)
        for name, column in zip(scan.names, scan.columns, strict=True)
        if name in scan.source.padded
    }
    if not carried:
        return
    for part in reversed(list(relation.walk())):  # what is read first
        if isinstance(part, Scan):
            continue
        handed_on = list(zip(part.values, part.columns, strict=True)) if isinstance(part, Project) else []
        carried |= {new.id for old, new in handed_on if isinstance(old, Column) and old.id in carried}
        looked_at = [old for old, _ in handed_on if not isinstance(old, Column)]
        for value in looked_at if isinstance(part, Project) else part.expressions:
            if any(isinstance(each, Column) and each.id in carried for each in value.walk()):
                raise NotProven("a condition or value of CHAR", "it is compared regardless of its padding")


# --- relations -------------------------------------------------------------------------------------------------------


@dataclass
class _Target:
    """The table to change: first what it is, then, once the whole text is known, what is read of it."""

    table: Table
    reader: SplitReader
    splits: ScanPlan
    parts: TableParts | None = None

    @cached_property
    def defaults(self) -> dict[str, pa.Scalar]:
        """Defaults that reads show in place of null, by column."""
        return dict(self.reader.context.shown_defaults)

    @cached_property
    def padded(self) -> dict[str, DataField]:
        """Columns of fixed length, also under the names of what is stored in them."""
        found = [each for each in self.table.schema.fields if is_root(each.type, TypeRoot.CHAR)]
        return {name: each for each in found for name in (each.name, stored_name(each.name))}

    def plan(self, names: Sequence[str]) -> None:
        """Plans a read of these columns."""
        given = {stored_name(name): name for name in self.defaults}
        wanted = list(dict.fromkeys(given.get(name, name) for name in names))
        reader = self.reader.showing_nulls if self.defaults else self.reader
        fields = projected_fields(reader.context, wanted or [cheapest_column(self.table.arrow_schema)])
        self.parts = parts_of(replace(reader, fields=fields), self.splits, threads_here())

    def define(self, connection: Connection, view: str) -> None:
        """Shows the rows to DuckDB under a name."""
        assert self.parts is not None
        read = {each.name: each for each in self.parts.fields}
        if not (read.keys() & (self.defaults.keys() | self.padded.keys())):
            self.parts.define(connection, view)
            return
        self.parts.define(connection, f"{view}_read")
        chosen = []
        for name, each in read.items():
            column = kinds.quoted(name)
            value = padded_text(column, each) if name in self.padded else column
            if name in self.defaults:
                chosen.append(f"{value} AS {kinds.quoted(stored_name(name))}")
                value = f"coalesce({value}, {self._default(connection, f'{view}_{len(chosen)}', each)})"
            chosen.append(f"{value} AS {column}")
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT {', '.join(chosen)} FROM {view}_read")

    def _default(self, connection: Connection, name: str, each: DataField) -> str:
        shown = self.defaults[each.name]
        kind = transfer_schema([each]).field(0).type
        connection.register(name, pa.table({"shown": pa.array([shown.as_py()], shown.type).cast(kind)}))
        value = padded_text("shown", each) if each.name in self.padded else "shown"
        return f"(SELECT {value} FROM {name})"


@dataclass(frozen=True)
class _GivenRows:
    """Rows that are there."""

    rows: pa.Table

    def plan(self, names: Sequence[str]) -> None:
        """Nothing is left to plan."""

    def define(self, connection: Connection, view: str) -> None:
        """Shows the rows to DuckDB under a name."""
        connection.register(view, self.rows)
