"""Who finds the rows that UPDATE, DELETE and MERGE are about: the one seam between these statements and the engines.

A statement says what it looks for as the text of a SELECT, in Spark's spelling, with names that the finder gave it for
the table and the source. What comes back are rows as `ChangedRows` takes them, whoever has found them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa

from lakebed.records import dataclass
from lakebed.sql.query.pushdown import Needs
from lakebed.sql.statements import Sql
from lakebed.table.table import Table
from lakebed.types.logical import DataField

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KIND = "_lakebed_kind"
"""The column that says what to do with a row: `+I` new, `+U` new version of an old one, `-D` delete."""
CLAUSE = "_lakebed_clause"
"""The column that says which clause of a MERGE takes a row."""

Found: TypeAlias = "pa.Table | DataFrame"
"""Rows in this process; or, if they may be many, a DataFrame that jobs write."""


@dataclass(frozen=True, slots=True)
class Changed:
    """What the columns of a SELECT are to become: all of the table, some of them `set`, then places of old rows."""

    fields: tuple[DataField, ...]
    set: frozenset[str]
    places: Sequence[str]
    kind: str
    kind_field: str | None = None
    """The column of the table that says the kinds of its rows; if it is set, it says this one."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What rows of a MERGE are to become, from columns CLAUSE, `_place_*`, `_old_*` and `_new_<clause>_*`."""

    fields: tuple[DataField, ...]
    set: Sequence[frozenset[str]]
    """Columns that each clause sets."""
    kinds: Sequence[str]
    places: Sequence[str]
    may_lack: bool = False
    """Whether rows may lack members."""
    stars: Sequence[bool] = ()
    """Which clauses set all columns that the source has."""
    kind_field: str | None = None


class MergeSource(Protocol):
    """The source of a MERGE."""

    @property
    def columns(self) -> list[str]:
        """Names of its columns."""
        ...

    @property
    def fields(self) -> tuple[DataField, ...]:
        """Its columns as columns of a table."""
        ...


class Finder(Protocol):
    """Finds rows of one statement, which may consist of several texts. NotProven: only Spark is sure to find them."""

    def anew(self) -> Finder:
        """Another one, for tables as they are by then."""
        ...

    def reads_waiting(self, table: Table) -> bool:
        """Whether rows that wait for their bucket can be read, too."""
        ...

    def pin_anew(self, table: Table) -> Table:
        """The table as it is by now, for all texts that follow."""
        ...

    def text(self, sql: Sql, edits: Mapping[tuple[int, int], str] | None = None) -> str:
        """A condition or value as part of a text."""
        ...

    def target(self, table: Table, needs: Needs, shown: str) -> str:
        """The name of the table to change in a text; `shown` is what errors call it."""
        ...

    def source(self, sql: Sql, shown: Collection[str]) -> MergeSource:
        """The source of a MERGE; `shown`: names of its columns in the statement, hidden ones among them."""
        ...

    def relation_of(self, source: Any, shown: str) -> str:
        """The source as a relation of a text."""
        ...

    def matching(self, rows: pa.Table, fields: Sequence[DataField], alias: str, where: Sql) -> list[dict[str, Any]]:
        """Those of the given rows that meet a condition, which names them by the alias."""
        ...

    def changed(self, text: str, rows: Changed) -> Found:
        """The rows of an UPDATE or DELETE."""
        ...

    def merged(self, text: str, rows: Merged) -> Found:
        """The rows of a MERGE."""
        ...

    def drop(self) -> None:
        """Takes away what was made for the statement."""
        ...
