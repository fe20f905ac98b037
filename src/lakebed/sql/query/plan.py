"""Makes a query ready for Spark: every table of the lake in it becomes a view of a DataFrame that we plan.

The rest of the text stays as the user wrote it. All references to one table see the same snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from lakebed.errors import Unsupported
from lakebed.read.plan import ScanPlan
from lakebed.read.reader import SplitReader
from lakebed.records import dataclass
from lakebed.sql.connectors.reading import reading_text
from lakebed.sql.query.other_tables import SourceRows, check_bounded, other_table
from lakebed.sql.query.pins import Pins
from lakebed.sql.query.pushdown import Needs, cheapest_column, comparable_types, has_star, needs_of, rows_needed
from lakebed.sql.query.references import Reference, is_common_expression, references
from lakebed.sql.query.views import Views, refresh
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Sql
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.names import quoted
from lakebed.sql.words.spelling import unnested_maps
from lakebed.table.plans import plan_read
from lakebed.table.system.handle import DefinedTable
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakebed.changes.read import ChangeRead


_SMALL_RANGE = 10_000


@dataclass
class Planner:
    """Plans the tables of one statement, which may consist of several texts (a MERGE has many)."""

    lake: SqlLake
    views: Views
    is_small: bool = True
    """Whether every relation that the statement reads is known to be small."""
    product_rows: int = 1
    """Rows that joining all of them without conditions would give."""
    pins: Pins = field(default_factory=Pins)

    @staticmethod
    def start(lake: SqlLake, pins: Pins | None = None) -> Planner:
        """A planner of its own for a statement; `pins` are snapshots that are chosen already."""
        return Planner(lake, Views(lake.spark), pins=pins or Pins())

    def text(self, sql: Sql, edits: Mapping[tuple[int, int], str] | None = None, shown: Collection[str] = ()) -> str:
        """The text with views in place of tables, and other edits of the caller.

        `shown`, in lower case: names that the statement around the text uses; `*` is to give them if they are hidden.
        """
        refuse_temporal(sql, "Spark answers the query, and has no such join")
        self._refresh_views(sql)
        found = references(self.lake, sql)
        self._note_others(sql, {id(reference.node) for reference in found})
        return sql.spliced({**self._replacements(sql, found, shown), **self._others(sql), **(edits or {})})

    def _others(self, sql: Sql) -> dict[tuple[int, int], str]:
        """Tables of other systems, as queries over views of their rows."""
        edits: dict[tuple[int, int], str] = {}
        for node in sql.tables():
            other = None if is_common_expression(node) else other_table(self.lake, node)
            if other is not None:
                from lakebed.spark.read import arrow_frame

                check_bounded(other)
                rows = arrow_frame(self.views.spark, SourceRows(other).rows(), other.columns)
                text = f"({reading_text(other, self.views.add(rows, other.name))})"
                edits[node.meta["span"]] = text if node.alias else f"{text} AS {quoted(node.name)}"
        return edits

    def frame(self, sql: Sql, *, keep: bool = False) -> DataFrame:
        """The query as a DataFrame."""
        return self.views.sql(self.text(sql), keep=keep)

    def _refresh_views(self, sql: Sql) -> None:
        for node in sql.tables():
            if len(node.parts) == 1 and not isinstance(node.this, exp.Func) and not is_common_expression(node):
                refresh(self.lake, node.name, lambda text: Planner.start(self.lake).frame(text))

    def _note_others(self, sql: Sql, ours: set[int]) -> None:
        """How much a relation of Spark's holds we do not know, but for a range."""
        for node in sql.tables():
            if id(node) not in ours and not is_common_expression(node):
                self._note_rows(_range_rows(node))

    def _note_rows(self, rows: int | None) -> None:
        self.is_small = self.is_small and rows is not None
        self.product_rows *= max(1, rows or 1)

    def also_reads(self, other: Planner) -> None:
        """Takes note of what another planner has planned for the same statement."""
        self.is_small = self.is_small and other.is_small
        self.product_rows *= other.product_rows

    def _replacements(self, sql: Sql, found: list[Reference], shown: Collection[str]) -> dict[tuple[int, int], str]:
        edits: dict[tuple[int, int], str] = {}
        stars: dict[int, list[str]] = {}
        for reference in found:
            hidden = _hidden_names(reference.table)
            used = used_hidden(reference.node, hidden)
            around = [name for name in hidden if name.lower() in shown and name not in used]
            if used or around:
                stars[id(reference.node)] = [*reference.table.arrow_schema.names, *around]
            shares = sum(other.table.name == reference.table.name for other in found) > 1
            edits[reference.span] = self._replacement(reference, shares, [*used, *around])
        for column in sql.tree.find_all(exp.Column):
            edits |= _without_database(column, found)
        maps = {
            field.name.lower()
            for reference in found
            for field in reference.table.arrow_schema
            if pa.types.is_map(field.type)
        }
        return {**edits, **star_edits(sql, stars), **unnested_maps(sql.text, lambda name: name.lower() in maps)}

    def _replacement(self, reference: Reference, shares: bool, hidden: Sequence[str]) -> str:
        table = self.pins.shared(reference, must_pin=shares)
        view = self.views.add(self.table_frame(table, reference.node, hidden=hidden), reference.name)
        has_alias = reference.alias is not None or reference.node.args.get("sample") is not None
        own_name = reference.node.name or reference.name.rpartition(".")[2]
        return view if has_alias else f"{view} AS {quoted(own_name)}"

    def pin(self, table: Table) -> Table:
        """The table as it is now, for all texts of the statement."""
        return self.pins.pin(table)

    def pin_anew(self, table: Table) -> Table:
        """The table as it is by now, for texts that follow."""
        return self.pins.pin_anew(table)

    def table_frame(
        self,
        table: Table,
        node: exp.Table | None = None,
        needs: Needs | None = None,
        hidden: Sequence[str] = (),
    ) -> DataFrame:
        """A table as the query around a reference needs it, with these of its hidden columns."""
        from lakebed.spark.read import arrow_frame  # pyspark is heavy: only when it is used

        if isinstance(table, DefinedTable):
            condition = None
            if table.needs_condition and node is not None:
                condition = rows_needed(node, comparable_types(table))
            return arrow_frame(self.views.spark, table.to_arrow(None, condition), table.schema.fields)
        visible = table.arrow_schema
        if needs is None:
            types = comparable_types(table)
            needs = needs_of(node, types) if node is not None else Needs(None)
            if hidden and needs.columns is None:
                needs = Needs(frozenset([*visible.names, *hidden]), needs.predicate)
        planned = plan_read(table, _columns(needs, visible, table.hidden_schema), needs.predicate)
        return self._planned_frame(table, planned)

    def frame_to_change(self, table: Table, needs: Needs) -> DataFrame:
        """The rows of a table as reads show them, and of columns that show a default in place of null what is stored.

        That is in columns of the names that `stored_name` gives: who writes a row again writes these.
        """
        from lakebed.spark.read import arrow_frame
        from lakebed.spark.store_assignment import padded_frame, with_shown_defaults

        planned = plan_read(table, _columns(needs, table.arrow_schema, table.hidden_schema), needs.predicate)
        shown = planned[0].context.shown_defaults if isinstance(planned, tuple) else {}
        if not isinstance(planned, tuple) or not shown:
            return self._planned_frame(table, planned)
        reader, plan = planned
        frame = self._planned_frame(table, (reader.showing_nulls, plan))
        fields = [field for field in table.schema.fields if field.name in shown and field.name in frame.columns]
        values = pa.table(
            {field.name: pa.array([shown[field.name].as_py()], shown[field.name].type) for field in fields}
        )
        defaults = padded_frame(arrow_frame(self.views.spark, values, fields), fields)
        return with_shown_defaults(frame, defaults, {field.name: stored_name(field.name) for field in fields})

    def _planned_frame(self, table: Table, planned: tuple[SplitReader, ScanPlan] | ChangeRead) -> DataFrame:
        from lakebed.spark.read import is_small, planned_frame
        from lakebed.spark.store_assignment import padded_frame

        self._note_rows(_rows_of(planned) if is_small(planned) else None)
        return padded_frame(planned_frame(self.views.spark, planned, must_filter=False), table.schema.fields)


def refuse_temporal(sql: Sql, why: str) -> None:
    """Raises if a query that Spark would answer has a join as of a time of rows."""
    for node in sql.partners():
        raise Unsupported(
            f"a join FOR SYSTEM_TIME AS OF {node.meta['as_of'].sql('spark')} is answered in this process only: {why}",
            hint="keep the join as a materialized table, and read that; or write what needs Spark otherwise",
        )


def stored_name(column: str) -> str:
    """The column that has what is stored, where the column itself shows a default in place of null."""
    return f"_lakebed_stored_{column}"


def _rows_of(planned: tuple[SplitReader, ScanPlan] | ChangeRead) -> int:
    plan = planned[1] if isinstance(planned, tuple) else planned.plan()
    return sum(file.row_count for file in plan.files)


def _range_rows(node: exp.Table) -> int | None:
    """Rows of `range(start, end)`; None for all other relations of Spark's."""
    function = node.this
    if not isinstance(function, exp.Anonymous) or str(function.this).lower() != "range":
        return None
    if not all(isinstance(argument, exp.Literal) and argument.name.isdigit() for argument in function.expressions):
        return None
    bounds = [int(argument.name) for argument in function.expressions[:2]]
    rows = bounds[-1] - (bounds[0] if len(bounds) == 2 else 0)
    return rows if 0 <= rows <= _SMALL_RANGE else None


def _hidden_names(table: Table) -> list[str]:
    return [] if isinstance(table, DefinedTable) else list(table.hidden_schema.names)


def _columns(needs: Needs, visible: pa.Schema, hidden: pa.Schema) -> list[str] | None:
    if needs.columns is None:
        return None
    chosen = [name for name in [*visible.names, *hidden.names] if name in needs.columns]
    return chosen or [cheapest_column(visible)]


def _without_database(column: exp.Column, found: list[Reference]) -> dict[tuple[int, int], str]:
    """`db.t.a` as `t.a`: the view has no database."""
    database, table = column.args.get("db"), column.args.get("table")
    if not isinstance(database, exp.Identifier) or not isinstance(table, exp.Identifier):
        return {}
    for reference in found:
        same = reference.alias is None and reference.name == f"{database.name}.{table.name}"
        if same and "start" in database.meta and "start" in table.meta:
            return {(database.meta["start"], table.meta["start"]): ""}
    return {}


# --- `SELECT *, _ROW_ID FROM t`: hidden columns are there if named, and `*` does not mean them --------------------
#
# A view has no hidden columns, so where a query uses some, they become ordinary ones and `*` becomes the list of the
# others.


_BEFORE = ("SELECT", "DISTINCT", "ALL", ",")
_AFTER = ("FROM", ",", ")", "EXCEPT")


def used_hidden(node: exp.Table, hidden: list[str]) -> list[str]:
    """Hidden columns of a table that the query around it names."""
    words = {word.name.lower() for word in node.root().find_all(exp.Identifier)}
    return [name for name in hidden if name.lower() in words]


def star_edits(sql: Sql, shown: Mapping[int, list[str]]) -> dict[tuple[int, int], str]:
    """Edits that put lists of columns in place of stars. `shown`: what `*` means for table nodes, by their id."""
    concerned = [select for select in sql.tree.find_all(exp.Select) if has_star(select) and _sources_of(select, shown)]
    if not concerned:
        return {}
    if sum(has_star(select) for select in sql.tree.find_all(exp.Select)) > 1:
        raise Unsupported(
            "a query with several `*` can not use hidden columns", hint="list the columns in place of the stars"
        )
    tokens = Cursor(sql.text).tokens
    edits: dict[tuple[int, int], str] = {}
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.STAR and index and _is_projected(tokens, index):
            edits |= _edit(tokens, index, concerned[0], shown)
    return edits


def _sources_of(select: exp.Select, shown: Mapping[int, list[str]]) -> bool:
    return any(id(source) in shown for source in _sources(select))


def _sources(select: exp.Select) -> list[exp.Expression]:
    origin = select.args.get("from_")
    return [*([origin.this] if origin is not None else []), *(join.this for join in select.args.get("joins") or [])]


def _is_projected(tokens: list[Token], index: int) -> bool:
    before, after = tokens[index - 1], tokens[index + 1] if index + 1 < len(tokens) else None
    is_start = before.text.upper() in _BEFORE or before.text == "." or before.token_type == TokenType.HINT
    return is_start and (after is None or after.text.upper() in _AFTER)


def _edit(
    tokens: list[Token], index: int, select: exp.Select, shown: Mapping[int, list[str]]
) -> dict[tuple[int, int], str]:
    end = tokens[index].end + 1
    if tokens[index - 1].text != ".":
        return {(tokens[index].start, end): ", ".join(_list(source, shown) for source in _sources(select))}
    qualifier = tokens[index - 2]
    for source in _sources(select):
        if source.alias_or_name.lower() == qualifier.text.lower() and id(source) in shown:
            return {(qualifier.start, end): _list(source, shown)}
    return {}


def _list(source: exp.Expression, shown: Mapping[int, list[str]]) -> str:
    alias = quoted(source.alias_or_name)
    names = shown.get(id(source))
    return f"{alias}.*" if names is None else ", ".join(f"{alias}.{quoted(name)}" for name in names)
