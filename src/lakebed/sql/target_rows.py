"""The table that a statement changes, as a relation of Spark's: under the name that conditions use for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from lakebed.errors import CommitConflict, InvalidArgument, Unsupported
from lakebed.options import MERGE_ENGINE
from lakebed.sql.changed_rows import ChangedRows
from lakebed.sql.planned import Planner, comparable_types
from lakebed.sql.pushdown import Needs, condition_of
from lakebed.sql.references import open_target
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Sql, Target
from lakebed.sql.views import quoted
from lakebed.table.system.handle import DefinedTable
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UPDATABLE = ("deduplicate", "partial-update")
_MOST_ATTEMPTS = 10


def change_rows(lake: SqlLake, target: Target, alias: str | None, change: Callable[[TargetRows], None]) -> None:
    """Changes rows of a table, anew on what is there then if others have changed the same rows meanwhile."""
    for attempts_left in reversed(range(_MOST_ATTEMPTS)):
        rows = TargetRows.open(lake, target, alias)
        try:
            change(rows)
            return
        except CommitConflict:
            if not attempts_left or rows.table.latest_snapshot() == rows.pinned.fixed_to:
                raise


@dataclass(frozen=True)
class TargetRows:
    """A table whose rows are to be changed; `pinned` is what the statement reads of it."""

    planner: Planner
    table: Table
    pinned: Table
    alias: str

    @staticmethod
    def open(lake: SqlLake, target: Target, alias: str | None) -> TargetRows:
        """The target of a statement."""
        table = open_target(lake, target)
        if isinstance(table, DefinedTable) or table.fixed_to is not None:
            raise InvalidArgument(f"`{target.name}` is read only", hint="name the table itself")
        planner = Planner.start(lake)
        return TargetRows(planner, table, planner.pin(table), alias or target.name.rpartition(".")[2])

    @property
    def merge_engine(self) -> str:
        """How rows of one key become one; empty without a primary key."""
        return str(self.table.options.get(MERGE_ENGINE.key, "deduplicate")) if self.table.primary_key else ""

    @property
    def column_names(self) -> list[str]:
        """Columns of the table."""
        return [field.name for field in self.table.schema.fields]

    def check_updatable(self, deed: str) -> None:
        """Raises if new versions of rows can not be written, because the merge engine would not take them as such."""
        if self.merge_engine and self.merge_engine not in _UPDATABLE:
            raise Unsupported(
                f"table `{self.table.name}` has merge engine `{self.merge_engine}`, which can not {deed} rows",
                hint=f"only {' and '.join(_UPDATABLE)} can; write new rows instead",
            )

    def view(self, conditions: list[Sql], *, is_alone: bool, columns: list[str] | None = None) -> str:
        """A view of the rows, without those that a condition rules out for sure."""
        used = {word.name.lower() for sql in conditions for word in sql.tree.find_all(exp.Identifier)}
        hidden = self.pinned.hidden_schema
        wanted = [*(self.column_names if columns is None else columns), *ChangedRows.place_columns(self.pinned)]
        wanted += [name for name in hidden.names if name.lower() in used and name not in wanted]
        types = comparable_types(self.pinned)
        predicate = condition_of(conditions[0].tree, types, {self.alias}, is_alone=is_alone) if conditions else None
        frame = self.planner.table_frame(self.pinned, needs=Needs(frozenset(wanted), predicate))
        return self.planner.views.add(frame, self.table.name)

    def column(self, name: str) -> str:
        """A column of the table as the statement's text names it."""
        return f"{quoted(self.alias)}.{quoted(name)}"

    def write(self, frame: DataFrame, operation: str, *, is_unique: bool) -> None:
        """Commits what was found, and takes the views away."""
        changes = ChangedRows(self.table, self.pinned, operation, is_unique)
        changes.write(frame, is_small=self.planner.is_small)
