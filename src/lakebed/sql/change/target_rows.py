"""The table that a statement changes, as a relation for whoever finds its rows: under the name that conditions use."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from sqlglot import exp

from lakebed.cleanup import on_failure
from lakebed.definition.branch import branch_read_besides
from lakebed.definition.statement_rules import Rule, Sets, Statement, Way, rule_of
from lakebed.errors import CommitConflict, InvalidArgument, Unsupported
from lakebed.expressions.nodes import NotProven
from lakebed.options import IGNORE_DELETE, POSTPONE_MERGE_ON_READ, ROWKIND_FIELD
from lakebed.records import dataclass
from lakebed.rewrite.rows_by_key import settled_for_rewrite
from lakebed.rewrite.settle import is_settled
from lakebed.sql.change.embedded_finder import EmbeddedFinder
from lakebed.sql.change.embedded_rows import leave_to_spark, may_run_embedded
from lakebed.sql.change.finder import Finder, Found
from lakebed.sql.change.fine_moments import check_nothing_is_cut
from lakebed.sql.change.spark_finder import SparkFinder
from lakebed.sql.change.write_rows import ChangedRows
from lakebed.sql.query.plan import stored_name
from lakebed.sql.query.pushdown import Needs, comparable_types, condition_of
from lakebed.sql.query.references import open_target
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Sql, Target
from lakebed.sql.words.names import quoted
from lakebed.table.opened import OpenedTable, opened_of
from lakebed.table.plans import plan_write
from lakebed.table.system.handle import DefinedTable
from lakebed.table.table import Table
from lakebed.write.waiting_rows import place_waiting_rows

_log = logging.getLogger(__name__)

FindRows = Callable[["TargetRows"], Found]
"""Finds what a statement makes of a table's rows, as `ChangedRows` takes them."""
_MOST_ATTEMPTS = 10
_IGNORED = f"it ignores deletes (`{IGNORE_DELETE.key}`)"


def change_rows(lake: SqlLake, target: Target, alias: str | None, change: Callable[[TargetRows], None]) -> None:
    """Changes rows of a table: without Spark if that is proven to do the same, and no session is in use."""
    if may_run_embedded(lake):
        try:
            # INVARIANT: NotProven is raised by finders alone, which change nothing: what follows begins from scratch.
            _change_rows(lambda: TargetRows.open(lake, target, alias, EmbeddedFinder(lake)), change)
            return
        except NotProven as unproven:
            leave_to_spark(unproven)
    _change_rows(lambda: TargetRows.open(lake, target, alias, SparkFinder.start(lake)), change)


def _change_rows(opened: Callable[[], TargetRows], change: Callable[[TargetRows], None]) -> None:
    """Changes rows, anew on what is there then if others have changed the same rows meanwhile."""
    for attempts_left in reversed(range(_MOST_ATTEMPTS)):
        rows = opened()
        began_at = rows.table.latest_snapshot()
        try:
            change(rows)
            return
        except CommitConflict:
            if not attempts_left or rows.table.latest_snapshot() == began_at:
                raise


@dataclass(frozen=True)
class TargetRows:
    """A table whose rows are to be changed."""

    finder: Finder
    table: Table
    alias: str
    is_rehearsal: bool = False
    """Whether the table is only looked at."""

    @staticmethod
    def open(lake: SqlLake, target: Target, alias: str | None, finder: Finder) -> TargetRows:
        """The target of a statement."""
        table = open_target(lake, target)
        if isinstance(table, DefinedTable) or table.fixed_to is not None:
            raise InvalidArgument(f"`{target.name}` is read only", hint="name the table itself")
        return TargetRows(finder, table, alias or target.name.rpartition(".")[2])

    @cached_property
    def pinned(self) -> Table:
        """What the statement reads of the table: all that is stored, waiting rows, too, if they can be read here."""
        waiting = self.is_rehearsal and self.finder.reads_waiting(self.table)
        return self.finder.pin_anew(_showing_all_stored(self.table, waiting=waiting))

    @property
    def column_names(self) -> list[str]:
        """Columns of the table."""
        return [field.name for field in self.table.schema.fields]

    @property
    def kind_field(self) -> str | None:
        """The column that says the kind of each row, if one does."""
        return self.table.options.get(ROWKIND_FIELD.key)

    def refuse_rows_of_others(self, statement: Statement) -> None:
        """Raises if reads show rows of another branch, which are not to be changed here."""
        if branch_read_besides(opened_of(self.table).writable()) is not None:
            self.rule(statement)

    def rule(self, statement: Statement, sets: Sets | None = None, *, deletes: bool = False) -> Rule:
        """How a statement is carried out on this table; raises if it can not be."""
        context = opened_of(self.table).writable()
        other = branch_read_besides(context)
        rule = rule_of(statement, context.options, sets, deletes=deletes, has_key=context.has_key, other_branch=other)
        if rule.way is Way.REFUSED:
            raise Unsupported(f"{statement} of table `{self.table.name}`: {rule.why}", hint=rule.hint)
        if context.has_key and context.options[IGNORE_DELETE] and (deletes or rule.way is Way.NOTHING):
            _log.warning("%s: no row of table `%s` is deleted: %s", statement, self.table.name, _IGNORED)
        return rule

    def change(self, statement: Statement, find: FindRows, *, is_unique: bool, rewrites: bool) -> None:
        """Commits the rows that `find` gives, in place of what is stored of their keys if it `rewrites`.

        What is stored may have to be placed, and for a rewrite compacted, before. So a statement that fails, or finds
        nothing, is to leave the table alone, its rows are looked for beforehand too.
        """
        check_nothing_is_cut(self.pinned, statement)
        if not self._is_ready(rewrites):
            rehearsal = self._anew(is_rehearsal=True)
            rows = rehearsal._found(find)
            if not rehearsal._changes(statement, is_unique, rewrites).is_needed(rows):
                self.nothing_changed()
                return
            if rewrites:
                context, _ = plan_write(self.table)
                settled_for_rewrite(context, statement)
            else:
                place_waiting_rows(opened_of(self.table).folded())
        target = self._anew()
        rows = target._found(find)
        target._changes(statement, is_unique, rewrites).write(rows)

    def nothing_changed(self) -> None:
        """The end of a statement that has found nothing."""
        ChangedRows(self.table, self.table, "").note_nothing()

    def _changes(self, statement: Statement, is_unique: bool, rewrites: bool) -> ChangedRows:
        return ChangedRows(self.table, self.pinned, statement, is_unique, rewrites)

    def _is_ready(self, rewrites: bool) -> bool:
        context = opened_of(self.table).writable()
        if not context.has_key:
            return True
        snapshot = self.table.latest_snapshot()
        return is_settled(replace(context, shows_hidden=True), snapshot, one_row_per_key=rewrites)

    def _found(self, find: FindRows) -> Found:
        with on_failure(self.finder.drop):
            return find(self)

    def _anew(self, *, is_rehearsal: bool = False) -> TargetRows:
        found = replace(self, finder=self.finder.anew(), is_rehearsal=is_rehearsal)
        _ = found.pinned  # now, before texts of the statement name the table
        return found

    def view(self, conditions: list[Sql], *, is_alone: bool, columns: list[str] | None = None) -> str:
        """The rows as a relation of a text, without those that a condition rules out for sure."""
        used = {word.name.lower() for sql in conditions for word in sql.tree.find_all(exp.Identifier)}
        hidden = self.pinned.hidden_schema
        wanted = [*(self.column_names if columns is None else columns), *ChangedRows.place_columns(self.pinned)]
        wanted += [name for name in hidden.names if name.lower() in used and name not in wanted]
        types = comparable_types(self.pinned)
        predicate = condition_of(conditions[0].tree, types, {self.alias}, is_alone=is_alone) if conditions else None
        return self.finder.target(self.pinned, Needs(frozenset(wanted), predicate), self.table.name)

    def column(self, name: str) -> str:
        """A column of the table as the statement's text names it."""
        return f"{quoted(self.alias)}.{quoted(name)}"

    def stored_column(self, name: str) -> str:
        """What is stored in a column, which stays there if the statement does not set it. Reads may show a default."""
        return self.column(stored_name(name) if name in self._defaulted else name)

    @cached_property
    def _defaulted(self) -> frozenset[str]:
        return frozenset(opened_of(self.table).writable().shown_defaults)


def _showing_all_stored(table: Table, *, waiting: bool) -> Table:
    """The table with new files too that reads hide until they are compacted; with `waiting`, also with rows that wait
    for their bucket, if these can be read in this process.
    """
    opened = opened_of(table)
    if not opened.context.has_key:
        return table
    shown = {POSTPONE_MERGE_ON_READ.key: "true"} if waiting else {}
    return Table(OpenedTable(replace(opened.context, shows_hidden=True), {**opened.overrides, **shown}))
