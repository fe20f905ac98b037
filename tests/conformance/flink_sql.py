"""Statements of the conformance cases, in Flink's spelling, carried out with calls of the table API.

Only what the cases say is understood: create, alter, insert, delete, compact, and queries of single tables that keep,
choose, filter, sort, count or unnest rows. There is no query engine here: anything else raises `CannotDrive`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp, parse_one
from sqlglot.dialects.trino import Trino
from sqlglot.tokens import TokenType

import lakebed

Row = dict[str, Any]
Value = Any

BUCKETS = "2"
"""What a table gets whose case leaves the number of buckets to dynamic assignment, which is no matter of merging."""


class CannotDrive(Exception):
    """The statement needs an SQL engine."""


class Flink(Trino):
    """Flink's spelling: that of Trino for types and values, with backticks, BYTES and ALTER TABLE .. MODIFY."""

    class Tokenizer(Trino.Tokenizer):
        """Words and quotes."""

        IDENTIFIERS = ("`",)
        KEYWORDS = {**Trino.Tokenizer.KEYWORDS, "BYTES": TokenType.VARBINARY}  # noqa: RUF012

    class Parser(Trino.Parser):
        """Statements."""

        ALTER_PARSERS = {  # noqa: RUF012
            **Trino.Parser.ALTER_PARSERS,
            "MODIFY": lambda self: self.expression(
                exp.AlterColumn(this=self._parse_column(), dtype=self._parse_types())
            ),
        }


TYPE_NAMES = {"TEXT": "STRING", "VARBINARY": "BYTES", "TIMESTAMPLTZ": "TIMESTAMP_LTZ", "STRUCT": "ROW"}


class FlinkSession:
    """Runs statements on a lake; queries answer with rows, everything else with None."""

    def __init__(self, lake: lakebed.Lake, leave_out: frozenset[str] = frozenset()) -> None:
        """`leave_out` names options that statements set and that are not passed on."""
        self._lake = lake
        self._leave_out = leave_out

    def run(self, statement: str) -> list[tuple[Value, ...]] | None:
        """Carries out one statement."""
        tree = parse_one(statement, dialect=Flink)
        if isinstance(tree, exp.Select):
            return self._query(tree)
        deeds: dict[type[exp.Expression], Callable[[Any], None]] = {
            exp.Create: self._create,
            exp.Insert: self._insert,
            exp.Delete: self._delete,
            exp.Alter: self._alter,
            exp.Command: self._call,
        }
        if type(tree) not in deeds:
            raise CannotDrive(statement)
        deeds[type(tree)](tree)
        return None

    # --- tables --------------------------------------------------------------------------------------------------

    def _create(self, tree: exp.Create) -> None:
        schema = tree.this
        columns = {column.name: _column_type(column) for column in schema.find_all(exp.ColumnDef) if _is_top(column)}
        key = schema.find(exp.PrimaryKey)
        keys = [part.name for part in key.expressions] if key else []
        properties = tree.args["properties"].expressions if tree.args.get("properties") else []
        options = {item.name: item.args["value"].name for item in properties if type(item) is exp.Property}
        partitions = [item for item in properties if isinstance(item, exp.PartitionedByProperty)]
        if keys or "primary-key" in options:
            options = {"bucket": BUCKETS, **options}
        self._lake.create_table(
            schema.this.name,
            {name: f"{kind} NOT NULL" if name in keys else kind for name, kind in columns.items()},
            primary_key=keys,
            partition_by=[part.name for item in partitions for part in item.this.expressions],
            options={key: value for key, value in options.items() if key not in self._leave_out},
        )

    def _alter(self, tree: exp.Alter) -> None:
        changes: list[Any] = []
        for action in tree.args["actions"]:
            if isinstance(action, exp.AlterSet):
                pairs = [(pair.this.name, pair.expression.name) for pair in action.expressions]
                changes += [lakebed.SetOption(key, value) for key, value in pairs if key not in self._leave_out]
            elif isinstance(action, exp.ColumnDef):
                changes.append(lakebed.AddColumn(action.name, _column_type(action)))
            elif isinstance(action, exp.AlterColumn):
                changes.append(lakebed.UpdateColumnType(action.this.name, _type_text(action.args["dtype"])))
            else:
                raise CannotDrive(tree.sql())
        if changes:
            self._lake.table(tree.this.name).alter(*changes)

    def _call(self, tree: exp.Command) -> None:
        call = parse_one(tree.expression.name, dialect=Flink) if tree.name == "CALL" else None
        if call is None or not call.sql().lower().startswith("sys.compact("):
            raise CannotDrive(tree.sql())
        given = {pair.this.name: pair.expression.name for pair in call.find_all(exp.PropertyEQ, exp.Kwarg)}
        self._lake.table(given["table"]).compact(full=given.get("compact_strategy", "full") == "full")

    # --- rows ----------------------------------------------------------------------------------------------------

    def _insert(self, tree: exp.Insert) -> None:
        target = tree.this
        named = [name.name for name in target.expressions] if isinstance(target, exp.Schema) else None
        table = self._lake.table(target.this.name if named else target.name)
        fixed = _partition(target)
        names = named or [name for name in table.arrow_schema.names if name not in fixed]
        rows = [dict(zip(names, row, strict=True)) | fixed for row in self._rows_of(tree.expression)]
        overwrite = (fixed or True) if tree.args.get("overwrite") else None
        found = to_arrow([[row.get(name) for name in table.arrow_schema.names] for row in rows], table)
        table.write(found, overwrite=overwrite)

    def _rows_of(self, source: exp.Expression) -> list[list[Value]]:
        if isinstance(source, exp.Values):
            return [[_value(item, {}) for item in row.expressions] for row in source.expressions]
        if isinstance(source, exp.Union) and not source.args["distinct"]:
            return self._rows_of(source.this) + self._rows_of(source.expression)
        if isinstance(source, exp.Select):
            found = self._found(source) if source.args.get("from_") else [{}]
            return [[_value(item, row) for item in source.expressions] for row in found]
        raise CannotDrive(source.sql())

    def _delete(self, tree: exp.Delete) -> None:
        table = self._lake.table(tree.this.name)
        where = tree.args["where"].this
        gone = table.to_arrow(filter=_condition(where))
        table.write(gone.append_column("_kind", pa.array(["-D"] * gone.num_rows, pa.string())), row_kind="_kind")

    def _query(self, tree: exp.Select) -> list[tuple[Value, ...]]:
        table = tree.args["from_"].this.name
        wanted = tree.expressions
        if [type(item) for item in wanted] == [exp.Count]:
            name, _, system = table.partition("$")
            return [(self._count(name, system) if system else len(self._found(tree)),)]
        if [type(item) for item in wanted] == [exp.Star]:
            return [tuple(row.values()) for row in self._found(tree)]
        return [tuple(_value(item, row) for item in wanted) for row in self._found(tree)]

    def _count(self, name: str, system: str) -> int:
        table = self._lake.table(name)
        return {"snapshots": lambda: len(table.snapshots()), "files": lambda: len(table.scan().files)}[system]()

    def _found(self, tree: exp.Select) -> list[Row]:
        """Rows of the one table of a query. Columns, filter and options go to the reader, so that it prunes."""
        source, where, order = tree.args["from_"].this, tree.args.get("where"), tree.args.get("order")
        if source.name.endswith("$snapshots"):
            found = self._snapshots(source.name.removesuffix("$snapshots"))
            return _limited(_rows(_sorted(found, order)), tree)
        table = self._lake.table(source.name)
        hints = _hints(source)
        condition = _condition(where.this) if where else None
        used = {column.name for column in tree.find_all(exp.Column)} & set(table.arrow_schema.names)
        columns = None if tree.find(exp.Star) or not used else [n for n in table.arrow_schema.names if n in used]
        found = (table.with_options(hints) if hints else table).to_arrow(columns, condition)
        rows = _rows(_sorted(found, order))
        for join in tree.args.get("joins") or ():
            rows = list(_unnested(rows, join.this))
        return _limited(rows, tree)

    def _snapshots(self, table: str) -> pa.Table:
        """The columns of `t$snapshots` that cases ask for."""
        found = self._lake.table(table).snapshots()
        return pa.table(
            {
                "snapshot_id": [snapshot.id for snapshot in found],
                "commit_kind": [str(snapshot.commit_kind) for snapshot in found],
                "total_record_count": [snapshot.total_record_count for snapshot in found],
            }
        )


def to_arrow(rows: list[list[Value]], table: lakebed.Table) -> pa.Table:
    """Rows of plain values as the table takes them."""
    schema = table.arrow_schema
    columns = [pa.array([shaped(row[i], field.type) for row in rows], field.type) for i, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=pa.schema([field.with_nullable(True) for field in schema]))


def shaped(value: Value, kind: pa.DataType) -> Value:
    """The value as pyarrow wants it for the type; literals of SQL take the type of their column."""
    if value is None:
        return None
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return Decimal(value).quantize(Decimal(1).scaleb(-kind.scale))
    if pa.types.is_struct(kind):
        values = value.values() if isinstance(value, Mapping) else value
        return {part.name: shaped(item, part.type) for part, item in zip(kind, values, strict=True)}
    if pa.types.is_map(kind):
        return [(shaped(key, kind.key_type), shaped(item, kind.item_type)) for key, item in value]
    if pa.types.is_list(kind):
        return [shaped(item, kind.value_type) for item in value]
    return value


def _partition(target: exp.Expression) -> Row:
    """The partition that an INSERT names: `PARTITION (p = 1)`."""
    named = target.args.get("partition")
    return {pair.this.name: _value(pair.expression, {}) for pair in named.expressions} if named else {}


def _sorted(found: pa.Table, order: exp.Expression | None) -> pa.Table:
    if order is None:
        return found
    return found.sort_by([(item.this.name, _direction(item)) for item in order.expressions])


def _rows(found: pa.Table) -> list[Row]:
    columns = zip(*map(_plain, found.columns), strict=True)
    return [dict(zip(found.column_names, row, strict=True)) for row in columns]


def _limited(rows: list[Row], tree: exp.Select) -> list[Row]:
    limit = tree.args.get("limit")
    return rows[: int(limit.expression.name)] if limit else rows


def _plain(column: pa.ChunkedArray) -> list[Value]:
    return column.to_pylist()


def _is_top(column: exp.ColumnDef) -> bool:
    return isinstance(column.parent, exp.Schema)


def _column_type(column: exp.ColumnDef) -> str:
    limits = [constraint.args["kind"] for constraint in column.args.get("constraints") or ()]
    is_required = any(isinstance(kind, exp.NotNullColumnConstraint) for kind in limits)
    if any(not isinstance(kind, exp.NotNullColumnConstraint) for kind in limits):
        raise CannotDrive(column.sql())  # comments and defaults: no case has one
    return _type_text(column.args["kind"]) + (" NOT NULL" if is_required else "")


def _type_text(kind: exp.DataType) -> str:
    name = TYPE_NAMES.get(kind.this.name, kind.this.name)
    parts = kind.expressions
    if not parts:
        return name
    if kind.args.get("nested"):
        inner = [
            f"{part.name} {_column_type(part)}" if isinstance(part, exp.ColumnDef) else _type_text(part)
            for part in parts
        ]
        return f"{name}<{', '.join(inner)}>"
    return f"{name}({', '.join(part.name for part in parts)})"


def _value(item: exp.Expression, row: Row) -> Value:
    """What an expression of literals, constructors and columns is for a row."""
    if isinstance(item, exp.Column):
        return row[item.name]
    if isinstance(item, exp.Null):
        return None
    if isinstance(item, exp.Boolean):
        return bool(item.this)
    if isinstance(item, exp.Neg):
        return -_value(item.this, row)
    if isinstance(item, exp.Literal):
        return item.this if item.is_string else int(item.this) if item.is_int else Decimal(item.this)
    if isinstance(item, exp.HexString):
        return bytes.fromhex(item.this)
    if isinstance(item, exp.Array | exp.Struct):
        return [_value(part, row) for part in item.expressions]
    if isinstance(item, exp.Bracket) and item.this.name == "MAP":
        parts = [_value(part, row) for part in item.expressions]
        return list(zip(parts[::2], parts[1::2], strict=True))
    if isinstance(item, exp.Cast):
        return _cast(_value(item.this, row), item.to.this)
    raise CannotDrive(item.sql())


def _cast(value: Value, kind: exp.DataType.Type) -> Value:
    if isinstance(value, str) and kind in (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP):
        return (dt.date if kind == exp.DataType.Type.DATE else dt.datetime).fromisoformat(value)
    return value  # numbers take the type of their column, nulls have none


def _condition(item: exp.Expression) -> pc.Expression:
    if isinstance(item, exp.And):
        return _condition(item.left) & _condition(item.right)
    if isinstance(item, exp.EQ):
        return pc.field(item.this.name) == _value(item.expression, {})
    if isinstance(item, exp.Is) and isinstance(item.expression, exp.Null):
        return pc.field(item.this.name).is_null()
    raise CannotDrive(item.sql())


def _hints(source: exp.Expression) -> dict[str, str]:
    """Options given to one query: `t /*+ OPTIONS('key' = 'value') */`."""
    found: dict[str, str] = {}
    for comment in source.comments or ():
        call = parse_one(comment.strip().removeprefix("+").strip(), dialect=Flink)
        found |= {pair.this.name: pair.expression.name for pair in call.find_all(exp.EQ)}
    return found


def _direction(item: exp.Ordered) -> str:
    return "descending" if item.args.get("desc") else "ascending"


def _unnested(rows: list[Row], source: exp.Expression) -> Iterator[Row]:
    """`FROM t, UNNEST(column) AS alias(names)`: one row for each row in the array."""
    if not isinstance(source, exp.Unnest):
        raise CannotDrive(source.sql())
    (column,) = source.expressions
    names = [name.name for name in source.args["alias"].args["columns"]]
    for row in rows:
        for element in row[column.name] or ():
            yield row | dict(zip(names, element.values(), strict=True))
