"""MERGE INTO: the table and the source are joined once; each row of the join goes to the first clause that takes it.

Every clause computes its values in columns of its own, in the names and with the types that the user's text has there.
Only then are they fitted to the table's columns, as for INSERT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from lakebed.definition.statement_rules import Sets, Statement, Way
from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.records import dataclass
from lakebed.sql.change.finder import CLAUSE, Found, Merged, MergeSource
from lakebed.sql.change.insert import find_column, named_columns
from lakebed.sql.change.new_columns import SchemaMerge
from lakebed.sql.change.target_rows import TargetRows, change_rows
from lakebed.sql.change.update import assigned_texts, is_default, sets_of
from lakebed.sql.change.write_rows import ChangedRows
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Merge, MergeClause, MergeDelete, MergeInsert, MergeUpdate, Sql, When
from lakebed.sql.words.names import quoted
from lakebed.types.logical import DataField

_IN_TARGET, _IN_SOURCE = "_lakebed_in_target", "_lakebed_in_source"
_HAPPENS = {
    When.MATCHED: f"{_IN_TARGET} AND {_IN_SOURCE}",
    When.NOT_MATCHED: f"{_IN_TARGET} IS NULL",
    When.NOT_MATCHED_BY_SOURCE: f"{_IN_SOURCE} IS NULL",
}


def merge(lake: SqlLake, statement: Merge) -> None:
    """MERGE."""
    change_rows(lake, statement.target, statement.alias, lambda target: _merge(lake, target, statement))


def _merge(lake: SqlLake, target: TargetRows, statement: Merge) -> None:
    merge_of = SchemaMerge.of(lake, statement.target)
    evolves = merge_of.adds or statement.with_schema_evolution
    way, known = _way(target, statement, evolves), None
    if evolves:
        known = _source(target, statement)
        incoming = _new_columns(target, statement, known.fields)
        if incoming and replace(merge_of, adds=True).apply(target.table, incoming):
            way = _way(target, statement, evolves)
    first = target.finder

    def find(target: TargetRows) -> Found:
        # The table itself may be in what is known, without its new columns.
        source = _source(target, statement) if known is None else known
        return Merging(target, statement, source, _source_name(statement), evolves).rows()

    is_unique = _is_unique(statement)
    try:
        target.change(Statement.MERGE, find, is_unique=is_unique, rewrites=way is Way.REWRITE)
    finally:
        first.drop()  # of the source that told its columns


def _source_name(statement: Merge) -> str:
    return statement.source_alias or "source"


def _source(target: TargetRows, statement: Merge) -> MergeSource:
    _ = target.pinned  # before the text, which may name the table
    return target.finder.source(statement.source, _named_of_source(statement, _source_name(statement)))


def _is_unique(statement: Merge) -> bool:
    """Deleting a row twice is deleting it; anything else depends on which source row it was."""
    matched = [clause for clause in statement.clauses if clause.when is When.MATCHED]
    return not matched or (
        len(matched) == 1 and matched[0].condition is None and isinstance(matched[0].action, MergeDelete)
    )


def _way(target: TargetRows, statement: Merge, evolves: bool) -> Way:
    """How the statement is carried out: as all of its clauses allow. Columns that it is to add are not there yet."""
    known = {name.lower() for name in target.column_names}
    updates = [clause.action for clause in statement.clauses if isinstance(clause.action, MergeUpdate)]
    deletes = any(isinstance(clause.action, MergeDelete) for clause in statement.clauses)
    sets: dict[str, bool] = {}
    for update in updates:
        if update.is_star:
            sets |= {field.name: field.type.nullable for field in target.table.schema.fields}
        else:
            there = [each for each in update.assignments if not evolves or each.path[0].lower() in known]
            found = sets_of(target, there).columns
            sets |= {name: may_be_null or sets.get(name, False) for name, may_be_null in found.items()}
    return target.rule(Statement.MERGE, Sets(sets) if updates else None, deletes=deletes).way


@dataclass(frozen=True)
class Merging:
    """One MERGE under way."""

    target: TargetRows
    statement: Merge
    source: MergeSource
    source_name: str
    may_lack_columns: bool
    """Whether `*` means the columns that the source has, and rows may lack members."""

    def rows(self) -> Found:
        """Joins, chooses, fits."""
        fields = self.target.table.schema.fields
        clauses = self.statement.clauses
        values = [self._values(clause) for clause in clauses]
        places = [*self.target.table.primary_key, *ChangedRows.place_columns(self.target.pinned)]
        merged = Merged(
            fields,
            [frozenset(found) for found in values],
            [_kind(clause) for clause in clauses],
            places,
            may_lack=self.may_lack_columns,
            stars=[_is_star(clause) for clause in clauses],
            kind_field=self.target.kind_field,
        )
        return self.target.finder.merged(self._text(values, places), merged)

    # --- the text ------------------------------------------------------------------------------------------------

    def _text(self, values: list[dict[str, str]], places: list[str]) -> str:
        """All rows that a clause takes: which one, the places of old rows, old values, and the values of each clause.

        The number of the clause is used by name further on in the same SELECT, which Spark allows.
        """
        target, statement = self.target, self.statement
        whens = " ".join(
            f"WHEN {self._condition(clause)} THEN {number}" for number, clause in enumerate(statement.clauses)
        )
        columns = [f"CASE {whens} END AS {CLAUSE}"]
        columns += [f"{target.column(name)} AS _place_{index}" for index, name in enumerate(places)]
        columns += [f"{target.stored_column(name)} AS _old_{index}" for index, name in enumerate(target.column_names)]
        order = {name: index for index, name in enumerate(target.column_names)}
        for number, found in enumerate(values):
            for name, text in found.items():
                guarded = f"CASE WHEN {CLAUSE} = {number} THEN {text} END"
                columns.append(f"{guarded} AS _new_{number}_{order[name]}")
        return f"SELECT * FROM (SELECT {', '.join(columns)} FROM {self._join()}) WHERE {CLAUSE} IS NOT NULL"

    def _join(self) -> str:
        statement, target = self.statement, self.target
        kinds = {clause.when for clause in statement.clauses}
        is_outer = (When.NOT_MATCHED_BY_SOURCE in kinds, When.NOT_MATCHED in kinds)
        join = {(False, False): "JOIN", (False, True): "RIGHT JOIN", (True, False): "LEFT JOIN"}.get(
            is_outer, "FULL JOIN"
        )
        # Rows that a literal in ON rules out match nothing; they count only for NOT MATCHED BY SOURCE.
        conditions = [statement.on, *self._texts()] if not is_outer[0] else [_NO_CONDITION, *self._texts()]
        left = target.view(conditions, is_alone=False)
        right = target.finder.relation_of(self.source, self.source_name)
        return (
            f"(SELECT *, TRUE AS {_IN_TARGET} FROM {left}) AS {quoted(target.alias)} {join} "
            f"(SELECT *, TRUE AS {_IN_SOURCE} FROM {right}) AS {quoted(self.source_name)} "
            f"ON {target.finder.text(statement.on)}"
        )

    def _texts(self) -> Iterator[Sql]:
        """All conditions and values, to see what they use."""
        for clause in self.statement.clauses:
            if clause.condition is not None:
                yield clause.condition
            if isinstance(clause.action, MergeUpdate):
                yield from (assignment.value for assignment in clause.action.assignments)

    def _condition(self, clause: MergeClause) -> str:
        happens = _HAPPENS[clause.when]
        return happens if clause.condition is None else f"{happens} AND ({self._scoped(clause.when)(clause.condition)})"

    # --- values --------------------------------------------------------------------------------------------------

    def _values(self, clause: MergeClause) -> dict[str, str]:
        """The new values of a clause by column; what is not there stays (UPDATE) or is null (INSERT)."""
        target, fields = self.target, self.target.table.schema.fields
        match clause.action:
            case MergeUpdate() as action if action.is_star:
                found = self._all_from_source(clause)
                self._refuse_key_update(dict.fromkeys(found))
                return found
            case MergeUpdate(assignments):
                scoped = self._scoped(clause.when)
                found = assigned_texts(assignments, fields, target.table.name, target.column, scoped)
                paths = {find_column(a.path[0], fields, target.table.name).name: a.value for a in assignments}
                self._refuse_key_update(dict(paths))
                return found
            case MergeInsert() as action if action.is_star:
                return self._all_from_source(clause)
            case MergeInsert(columns, values):
                names = list(columns) if columns is not None else target.column_names
                given = values or ()
                if len(names) != len(given):
                    raise InvalidArgument(
                        f"INSERT of table `{target.table.name}` has {len(given)} values for {len(names)} columns",
                        hint="give one value for each column",
                    )
                scoped = self._scoped(clause.when)
                named = named_columns(names, fields, target.table.name)
                return {name: f"({scoped(sql)})" for name, sql in zip(named, given, strict=True)}
            case _:
                return {}

    def _all_from_source(self, clause: MergeClause) -> dict[str, str]:
        known = {name.lower(): name for name in self.source.columns}
        found = {}
        for name in self.target.column_names:
            if name.lower() in known:
                found[name] = f"{quoted(self.source_name)}.{quoted(known[name.lower()])}"
            elif not self.may_lack_columns:
                raise NotFound(
                    f"the source of MERGE has no column `{name}`, which `*` stands for",
                    hint=f"list the columns, or set `write.merge-schema`; {did_you_mean(name, self.source.columns)}",
                )
        return found

    def _refuse_key_update(self, values: dict[str, Sql | None]) -> None:
        """A key may be set to what the ON clause says it equals, and to nothing else."""
        for name in self.target.table.primary_key:
            if name not in values:
                continue
            sql = values[name]
            column = self._source_column(name) if sql is None else _as_column(sql.tree)
            if column is None or not self._is_equated(name, column):
                raise InvalidArgument(
                    f"`{name}` belongs to the primary key of table `{self.target.table.name}`, "
                    "which can not be updated",
                    hint="leave the column out of SET, or match rows by it in ON",
                )

    def _source_column(self, name: str) -> tuple[str, str]:
        return self.source_name.lower(), name.lower()

    def _is_equated(self, name: str, column: tuple[str, str]) -> bool:
        """Whether ON says that the column of the table and the other one have the same value."""
        own = (self.target.alias.lower(), name.lower())
        if column == own:
            return True
        sides = {own, ("", own[1])}
        values = {column, ("", column[1])} if column[0] in ("", self.source_name.lower()) else {column}
        pairs = [
            (_as_column(node.this), _as_column(node.expression))
            for node in _conjuncts(self.statement.on.tree)
            if isinstance(node, exp.EQ | exp.NullSafeEQ)
        ]
        return any(
            (left in sides and right in values - {own}) or (right in sides and left in values - {own})
            for left, right in pairs
        )

    # --- names ---------------------------------------------------------------------------------------------------

    def _scoped(self, when: When) -> Callable[[Sql], str]:
        """The text of a value; plain names mean the one side that a row without a partner has."""
        sides = {When.NOT_MATCHED: self.source_name, When.NOT_MATCHED_BY_SOURCE: self.target.alias}
        side = sides.get(when)

        def text(sql: Sql) -> str:
            if is_default(sql):
                return "NULL"
            return self.target.finder.text(sql, {} if side is None else self._qualified(sql, side))

        return text

    def _qualified(self, sql: Sql, side: str) -> dict[tuple[int, int], str]:
        known = {self.target.alias.lower(), self.source_name.lower()}
        edits = {}
        for column in sql.tree.find_all(exp.Column):
            first = column.parts[0]
            is_own = column.find_ancestor(exp.Select) is None and not _is_lambda_variable(column)
            has_qualifier = len(column.parts) > 1 and first.name.lower() in known
            if is_own and not has_qualifier and "start" in first.meta:
                start = first.meta["start"]
                edits[start, start] = f"{quoted(side)}."
        return edits


def _new_columns(target: TargetRows, statement: Merge, incoming: Sequence[DataField]) -> list[DataField]:
    """Columns of the source that the table is to have: all for `*`, else those that are set or listed and are new."""
    visible = [field for field in incoming if field.name not in target.pinned.hidden_schema.names]
    if any(_is_star(clause) for clause in statement.clauses):
        return visible
    named: set[str] = set()
    for clause in statement.clauses:
        match clause.action:
            case MergeUpdate(assignments):
                named |= {assignment.path[0].lower() for assignment in assignments}
            case MergeInsert(columns, _):
                named |= {name.lower() for name in columns or ()}
    known = {name.lower() for name in target.column_names}
    return [field for field in visible if field.name.lower() in named - known]


def _named_of_source(statement: Merge, source: str) -> set[str]:
    """Columns of the source that the statement names, in lower case: hidden ones are there only if they are named."""
    texts = [statement.on]
    for clause in statement.clauses:
        texts += [clause.condition] if clause.condition is not None else []
        match clause.action:
            case MergeUpdate(assignments):
                texts += [assignment.value for assignment in assignments]
            case MergeInsert(_, values):
                texts += values or ()
    columns = [column for text in texts for column in text.tree.find_all(exp.Column)]
    return {column.name.lower() for column in columns if column.table.lower() == source.lower()}


_NO_CONDITION = Sql("TRUE", exp.true())


def _is_star(clause: MergeClause) -> bool:
    return isinstance(clause.action, MergeUpdate | MergeInsert) and clause.action.is_star


def _kind(clause: MergeClause) -> str:
    match clause.action:
        case MergeUpdate():
            return "+U"
        case MergeInsert():
            return "+I"
        case _:
            return "-D"


def _conjuncts(node: exp.Expression) -> Iterator[exp.Expression]:
    node = node.unnest()
    if isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    else:
        yield node


def _as_column(node: exp.Expression) -> tuple[str, str] | None:
    """Qualifier and name of a plain column."""
    node = node.unnest()
    return (node.table.lower(), node.name.lower()) if isinstance(node, exp.Column) else None


def _is_lambda_variable(column: exp.Column) -> bool:
    node = column.find_ancestor(exp.Lambda)
    while node is not None:
        if any(variable.name == column.parts[0].name for variable in node.expressions):
            return True
        node = node.find_ancestor(exp.Lambda)
    return False
