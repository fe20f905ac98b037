"""What a statement says, as plain data: the way from the parser to whoever carries it out.

Text that Spark shall evaluate (queries, conditions, values) stays text, already in Spark's spelling, with its syntax
tree beside it: the tree is for looking (which tables, which columns), the text for running. So nothing is lost or
rephrased between the user and Spark. This module knows nothing about tables or engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from sqlglot import exp

from lakebed.sql.values import Value

# --- parts of statements ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sql:
    """A query, relation, condition or value in Spark's spelling.

    Table nodes of `tree` carry `meta["span"]`, the (start, end) of the whole reference in `text`: name, hint and time
    travel, without the alias. `meta["options"]` are those of `/*+ OPTIONS(...) */`, `meta["version"]` is the node of
    `VERSION AS OF ...` or `TIMESTAMP AS OF ...` (`this` says which, `expression` is the value).
    """

    text: str
    tree: exp.Expression

    def tables(self) -> tuple[exp.Table, ...]:
        """All table references, in the order of the text; names of common table expressions are among them."""
        found = [node for node in self.tree.find_all(exp.Table) if "span" in node.meta]
        return tuple(sorted(found, key=lambda node: node.meta["span"]))

    def spliced(self, edits: Mapping[tuple[int, int], str]) -> str:
        """The text with each span replaced by other text."""
        parts, done = [], 0
        for start, end in sorted(edits):
            parts += [self.text[done:start], edits[start, end]]
            done = end
        return "".join([*parts, self.text[done:]])


@dataclass(frozen=True, slots=True)
class PlainRows:
    """`VALUES ...` with nothing but plain literals in it: the text, and the values."""

    text: str
    rows: list[list[Value]]


@dataclass(frozen=True, slots=True)
class Target:
    """The table that a statement changes, as written: `db.t`, `t$branch_b`; with options of a hint."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assignment:
    """`SET path = value`; the path reaches into ROW columns: `("d", "c2")`. A qualifier of the target is left out."""

    path: tuple[str, ...]
    value: Sql


class When(Enum):
    """Which rows a clause of MERGE is about."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


@dataclass(frozen=True, slots=True)
class MergeUpdate:
    """`UPDATE SET ...`; no assignments at all mean `UPDATE SET *`."""

    assignments: tuple[Assignment, ...]

    @property
    def is_star(self) -> bool:
        """Whether every column is taken from the source."""
        return not self.assignments


@dataclass(frozen=True, slots=True)
class MergeInsert:
    """`INSERT (columns) VALUES (values)`; None for the values means `INSERT *`, None for the columns all of them."""

    columns: tuple[str, ...] | None
    values: tuple[Sql, ...] | None

    @property
    def is_star(self) -> bool:
        """Whether every column is taken from the source."""
        return self.values is None


@dataclass(frozen=True, slots=True)
class MergeDelete:
    """`DELETE`."""


@dataclass(frozen=True, slots=True)
class MergeClause:
    """`WHEN ... [AND condition] THEN action`."""

    when: When
    condition: Sql | None
    action: MergeUpdate | MergeInsert | MergeDelete


# --- statements for Spark --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT, WITH, VALUES, FROM, TABLE."""

    sql: Sql


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO / OVERWRITE."""

    target: Target
    source: Sql | PlainRows
    """A query or `VALUES ...`; common table expressions written before INSERT are in front of it."""
    overwrite: bool = False
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    partition: Mapping[str, Sql | None] = field(default_factory=dict)
    """`PARTITION (p = 1, q)`: fixed values, and None for those that the rows bring."""
    replace_where: Sql | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """UPDATE."""

    target: Target
    alias: str | None
    assignments: tuple[Assignment, ...]
    where: Sql | None


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE FROM; without a condition all rows go."""

    target: Target
    alias: str | None
    where: Sql | None


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE INTO."""

    target: Target
    alias: str | None
    source: Sql
    """The relation after USING with its alias: `feed AS f`, `(SELECT ...) AS src`."""
    source_alias: str | None
    on: Sql
    clauses: tuple[MergeClause, ...]
    with_schema_evolution: bool = False


@dataclass(frozen=True, slots=True)
class SparkStatement:
    """What is not ours: handed to Spark (views, functions, caching, EXPLAIN, ...).

    A query in it, as in `CREATE VIEW v AS SELECT ...`, may name tables of the lake; it follows `text`.
    """

    text: str
    query: Sql | None = None
