"""Which names in a query mean tables of the lake, and which table each of them opens.

A name may be a common table expression, a view of Spark, a function, or a table: in this order, as Spark looks names
up. Whatever is not the lake's stays as it is, for Spark to find.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from lakebed.catalog.names import SYSTEM_DATABASE
from lakebed.definition.moments import to_millis
from lakebed.definition.views import refuse_view
from lakebed.errors import InvalidArgument, LakebedError, NotFound
from lakebed.options import SCAN_TIMESTAMP_MILLIS, SCAN_VERSION, WRITE_MERGE_SCHEMA
from lakebed.records import dataclass
from lakebed.sql.query.other_tables import other_table
from lakebed.sql.query.views import view_text
from lakebed.sql.session import SqlLake
from lakebed.sql.settings import dynamic_options, settings_of_one_statement
from lakebed.sql.statements import Sql, Target
from lakebed.sql.words.names import CATALOGS
from lakebed.table.opened import opened_of
from lakebed.table.table import Table

_INCREMENTAL = {
    "paimon_incremental_query": (3, "incremental-between"),
    "paimon_incremental_between_timestamp": (3, "incremental-between-timestamp"),
    "paimon_incremental_to_auto_tag": (2, "incremental-to-auto-tag"),
}
"""Table functions: how many arguments each takes, and the option that says the same."""
_READ_OPTIONS = ("scan.", "incremental-", "read.")
_OF_NO_STATE = ("options", "schemas", "snapshots", "tags", "branches", "consumers", "aggregation_fields")
"""System tables that show the same whichever state is read."""
_STATEMENT_OPTIONS = WRITE_MERGE_SCHEMA.key
"""What a hint says to the statement rather than to the table."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A place in a query that names a table of the lake."""

    node: exp.Table
    table: Table
    name: str
    """As written, without the catalog."""

    @property
    def span(self) -> tuple[int, int]:
        """Where it stands in the text, without its alias."""
        start, end = self.node.meta["span"]
        return start, end

    @property
    def alias(self) -> str | None:
        """The name given to it in the query."""
        return self.node.alias or None


def references(lake: SqlLake, sql: Sql) -> list[Reference]:
    """The tables of the lake in a query, in the order of the text."""
    with settings_of_one_statement():
        found = [reference_of(lake, node) for node in sql.tables()]
    return [reference for reference in found if reference is not None]


def open_table(lake: SqlLake, name: str, options: dict[str, str]) -> Table:
    """A table with what SET says about it, and the options of a hint on top."""
    table = lake.table(name)
    settings = dynamic_options(lake, name)
    if name.rpartition("$")[2].lower() in _OF_NO_STATE:
        settings = {key: value for key, value in settings.items() if not key.startswith(_READ_OPTIONS)}
    given = {**settings, **options}
    return table.with_options(given) if given else table


def open_target(lake: SqlLake, target: Target) -> Table:
    """A table that a statement changes: what SET says about reading does not concern it."""
    table = lake.table(target.name)
    refuse_view(opened_of(table).current())
    settings = dynamic_options(lake, target.name)
    given = {key: value for key, value in settings.items() if not key.startswith(_READ_OPTIONS)} | dict(target.options)
    given = {key: value for key, value in given.items() if not key.startswith(_STATEMENT_OPTIONS)}
    return table.with_options(given) if given else table


def reference_of(lake: SqlLake, node: exp.Table) -> Reference | None:
    """The table that a node means; None if it is not the lake's."""
    if isinstance(node.this, exp.Func):
        return _function(lake, node)
    parts = tuple(part.name for part in node.parts)
    if not is_common_expression(node) and other_table(lake, node) is not None:
        return None
    if len(parts) == 1 and (is_common_expression(node) or _is_view(lake, parts[0])):
        return None
    name = _lake_name(lake, parts)
    if name is None:
        return None
    options = {**node.meta.get("options", {}), **_travel_options(lake, node.meta.get("version"))}
    return Reference(node, open_table(lake, name, options), name)


def _lake_name(lake: SqlLake, parts: tuple[str, ...]) -> str | None:
    """The name as the lake knows it; None if it can only be Spark's."""
    if len(parts) == 3:
        return ".".join(parts[1:]) if parts[0].lower() in CATALOGS else None
    if len(parts) == 2:
        is_ours = parts[0] == SYSTEM_DATABASE or parts[0] in lake.databases()
        return ".".join(parts) if is_ours else None
    name = parts[0]
    if "$" not in name and not lake.has_table(name):
        if _is_spark_table(lake, name):
            return None
        raise _missing(lake, name)
    return name


def _missing(lake: SqlLake, name: str) -> LakebedError:
    """The lake's own words for a table that is not there."""
    try:
        lake.table(name)
    except LakebedError as error:
        return error
    return NotFound(f"table `{name}` does not exist", hint="look at SHOW TABLES")


def is_common_expression(node: exp.Table) -> bool:
    """Whether the name is that of a common table expression which can be seen from there."""
    name = node.name.lower()
    return any(expression.alias.lower() == name for expression in _visible_expressions(node))


def _visible_expressions(node: exp.Expression) -> Iterator[exp.CTE]:
    child: exp.Expression = node
    while child.parent is not None:
        parent = child.parent
        if isinstance(parent, exp.With):
            # From inside a list of common expressions only those before can be seen, unless it is recursive.
            for expression in parent.expressions:
                if expression is child and not parent.recursive:
                    break
                yield expression
        else:
            clause = parent.args.get("with_")
            if isinstance(clause, exp.With) and clause is not child:
                yield from clause.expressions
        child = parent


def _is_view(lake: SqlLake, name: str) -> bool:
    if not lake.is_spark_started:
        return view_text(lake, name) is not None
    if "$" in name:
        return False
    catalog = lake.spark.catalog
    return bool(catalog.tableExists(name)) and bool(catalog.getTable(name).isTemporary)


def _is_spark_table(lake: SqlLake, name: str) -> bool:
    return lake.is_spark_started and bool(lake.spark.catalog.tableExists(name))


# --- table functions -------------------------------------------------------------------------------------------------
def _function(lake: SqlLake, node: exp.Table) -> Reference | None:
    function = node.this
    if not isinstance(function, exp.Anonymous) or str(function.this).lower() not in _INCREMENTAL:
        return None
    called = str(function.this).lower()
    count, option = _INCREMENTAL[called]
    arguments = [_argument(argument, called) for argument in function.expressions]
    if len(arguments) != count:
        raise InvalidArgument(
            f"{called} takes {count} arguments, {len(arguments)} are given",
            hint=f"write {called}('table', 'from', 'to')" if count == 3 else f"write {called}('table', 'tag')",
        )
    name = arguments[0].replace("`", "")
    for catalog in CATALOGS:
        name = name.removeprefix(f"{catalog}.") if name.count(".") == 2 else name
    return Reference(node, open_table(lake, name, {option: ",".join(arguments[1:])}), name)


def _argument(node: exp.Expression, function: str) -> str:
    if isinstance(node, exp.Literal):
        return str(node.this)
    raise InvalidArgument(f"an argument of {function} is no literal", hint="pass texts and numbers, as in ('t', 1, 3)")


# --- Points in time in queries: `VERSION AS OF`, `TIMESTAMP AS OF`, `FOR SYSTEM_TIME AS OF`, as options of a read -


def _travel_options(lake: SqlLake, version: exp.Version | None) -> dict[str, str]:
    """The options that say what the clause says; none without a clause."""
    if version is None:
        return {}
    value = version.args.get("expression")
    if str(version.name or version.this).upper() == "VERSION":
        return {SCAN_VERSION.key: _version(value)}
    return {SCAN_TIMESTAMP_MILLIS.key: str(_moment_ms(lake, value))}


def _version(value: exp.Expression | None) -> str:
    if isinstance(value, exp.Literal):
        return str(value.this)
    raise InvalidArgument("VERSION AS OF needs a literal", hint="name a snapshot, as 3, or a tag, as 'monthly'")


def _moment_ms(lake: SqlLake, value: exp.Expression | None) -> int:
    """Epoch milliseconds: a text or TIMESTAMP literal of the local zone, or whole seconds; else Spark computes it."""
    if isinstance(value, exp.Literal) and not value.is_string:
        return int(float(value.this) * 1000)
    literal = value.this if isinstance(value, exp.Cast) else value
    if isinstance(literal, exp.Literal) and literal.is_string:
        return to_millis(str(literal.this))
    if value is None or value.find(exp.Column, exp.Query):
        raise InvalidArgument("TIMESTAMP AS OF needs a moment", hint="write it like '2024-05-14 13:45:00'")
    row = lake.spark.sql(f"SELECT unix_micros(CAST({value.sql('spark')} AS TIMESTAMP))").first()
    if row is None or row[0] is None:
        raise InvalidArgument("TIMESTAMP AS OF is null", hint="write it like '2024-05-14 13:45:00'")
    return int(row[0]) // 1000
