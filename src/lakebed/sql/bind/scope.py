"""What names mean at a place of a query: tables and their columns, with those of the queries around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

import pyarrow as pa
from sqlglot import exp

from lakebed.algebra.relations import Relation
from lakebed.errors import InvalidArgument, did_you_mean
from lakebed.expressions.functions import FUNCTIONS
from lakebed.expressions.nodes import Column, Expression, NotProven
from lakebed.records import dataclass
from lakebed.sql.bind.literals import text_constant


@dataclass(frozen=True, slots=True)
class Named:
    """A column as users name it."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Source:
    """What stands in FROM under one name: `path` is that name, with the database in front if it is a table's own."""

    path: tuple[str, ...]
    columns: tuple[Named, ...]
    hidden: tuple[Named, ...] = ()
    """Columns that it shows only if they are asked for."""

    def answers_to(self, qualifier: Sequence[str]) -> bool:
        """Whether `t` or `db.t` in front of a column means it."""
        return bool(qualifier) and [part.lower() for part in self.path[-len(qualifier) :]] == [
            part.lower() for part in qualifier
        ]


class Ids:
    """Names of columns that are unique in a query."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self, kind: pa.DataType, *, nullable: bool = True) -> Column:
        """A column that nobody else has."""
        return Column(type=kind, nullable=nullable, id=f"c{next(self._numbers)}")

    def view(self) -> str:
        """A name for a table."""
        return f"source_{next(self._numbers)}"


@dataclass(frozen=True, slots=True)
class Names:
    """The sources of a SELECT, and columns that joins with USING have made one."""

    sources: tuple[Source, ...] = ()
    merged: tuple[Named, ...] = ()
    """Columns of USING: named without a qualifier they mean these."""

    def find(self, path: Sequence[str]) -> Expression | None:
        """The value that a path of names means: [db.][table.]column[.member ...]; None if nothing is meant."""
        for length in range(min(3, len(path) - 1), -1, -1):
            qualifier, name, members = path[:length], path[length], path[length + 1 :]
            found = self._columns(qualifier, name)
            if len(found) > 1:
                raise InvalidArgument(
                    f"column `{'.'.join(path)}` is ambiguous: {len(found)} tables of the query have it",
                    hint="put the name of its table in front",
                )
            if found:
                return member_of(found[0], members)
        return None

    def qualifiers(self, path: Sequence[str]) -> int:
        """How many of the names of a path are those of the table and its database."""
        lengths = range(min(3, len(path) - 1), -1, -1)
        return next((length for length in lengths if self._columns(path[:length], path[length])), 0)

    def _columns(self, qualifier: Sequence[str], name: str) -> list[Expression]:
        if not qualifier:
            merged = [each.value for each in self.merged if each.name.lower() == name.lower()]
            if merged:
                return merged
        sources = [source for source in self.sources if not qualifier or source.answers_to(qualifier)]
        found = [each.value for source in sources for each in source.columns if each.name.lower() == name.lower()]
        if not found:
            found = [each.value for source in sources for each in source.hidden if each.name.lower() == name.lower()]
        return found

    def all_names(self) -> list[str]:
        """Every name that a column has here."""
        return [each.name for source in self.sources for each in source.columns]


def member_of(value: Expression, members: Sequence[str]) -> Expression:
    """A member of a struct, of a member, ..."""
    for member in members:
        access = FUNCTIONS.get(".")
        if access is None:
            raise NotProven(f"member `{member}`")
        value = access(".", [value, text_constant(member)])
    return value


_MOMENTS = {
    "localtimestamp": "localtimestamp()",
    "localtime": "date_format(localtimestamp(), 'HH:mm:ss')",
    "sysdate": "current_timestamp",
}
"""What others write for the time without brackets."""


def missing_column(path: Sequence[str], names: Names) -> InvalidArgument:
    """What is said of a name that means nothing."""
    known = names.all_names()
    hint = did_you_mean(path[-1], known) if known else "the query reads no table"
    if path[-1].lower() in _MOMENTS:
        hint = f"write {_MOMENTS[path[-1].lower()]}"
    elif path[-1].startswith("$"):
        hint = f"write :{path[-1][1:]} for a value in args"
    return InvalidArgument(f"there is no column `{'.'.join(path)}` in what the query reads", hint=hint)


OuterColumn = Callable[[Sequence[str]], Expression | None]
"""What a name means in the queries around; None if nothing."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A query that is understood: its relation, and the names of its columns."""

    relation: Relation
    names: tuple[str, ...]

    def columns(self) -> tuple[Named, ...]:
        """Its columns under their names."""
        return tuple(Named(name, each) for name, each in zip(self.names, self.relation.columns, strict=True))

    def renamed(self, names: Sequence[str]) -> Bound:
        """The same under other names."""
        return replace(self, names=tuple(names))


def is_aggregate(node: exp.Expression) -> bool:
    """Whether an expression holds an aggregate function that is not over a window."""
    from lakebed.expressions.aggregates import AGGREGATES

    for each in node.walk(prune=lambda n: isinstance(n, exp.Query)):
        if isinstance(each, exp.Anonymous) and str(each.this).lower() in {*AGGREGATES, "grouping", "grouping_id"}:
            around: exp.Expression | None = each.parent
            while isinstance(around, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
                around = around.parent
            if (
                not isinstance(around, exp.Window)
                or around.this is None
                or each.find_ancestor(exp.Window) is not around
            ):
                return True
    return False
