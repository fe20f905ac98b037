"""What a statement says, as plain data: the way from the parser to whoever carries it out.

Text that Spark shall evaluate (queries, conditions, values) stays text, already in Spark's spelling, with its syntax
tree beside it: the tree is for looking (which tables, which columns), the text for running. So nothing is lost or
rephrased between the user and Spark. This module knows nothing about tables or engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Any

from sqlglot import exp

from lakebed.records import dataclass
from lakebed.sql.words.values import Value


# --- parts of statements ---------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Sql:
    """A query, relation, condition or value in Spark's spelling.

    Table nodes of `tree` carry `meta["span"]`, the (start, end) of the whole reference in `text`: name, hint and time
    travel, without the alias. `meta["options"]` are those of `/*+ OPTIONS(...) */`, `meta["version"]` is the node of
    `VERSION AS OF ...` or `TIMESTAMP AS OF ...` (`this` says which, `expression` is the value). Of a temporal join
    `meta["as_of"]` is the time of rows that `FOR SYSTEM_TIME AS OF o.ts` names, `meta["as_of_span"]` where that stands,
    behind the span of the table; a query in brackets may have them, too.
    """

    text: str
    tree: exp.Expression

    def tables(self) -> tuple[exp.Table, ...]:
        """All table references, in the order of the text; names of common table expressions are among them.

        Those in a hint of Spark's (`BROADCAST(a)`) are names of the query, and mean no table.
        """
        nodes = (node for node in self.tree.find_all(exp.Table) if "span" in node.meta)
        found = [node for node in nodes if node.find_ancestor(exp.Hint) is None]
        return tuple(sorted(found, key=lambda node: node.meta["span"]))

    def partners(self) -> tuple[exp.Expression, ...]:
        """Tables and queries that are joined as of a time of rows, `FOR SYSTEM_TIME AS OF o.ts`."""
        found = (node for node in self.tree.find_all(exp.Table, exp.Subquery) if "as_of" in node.meta)
        return tuple(sorted(found, key=lambda node: node.meta["as_of_span"]))

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


# --- Statements that need no Spark, as plain data: definitions, alterations, SHOW, CALL, SET ----------------------
#
# Names of tables are texts as `Lake.table` takes them, types are texts of Paimon's types.


PartitionSpec = Mapping[str, Any]
"""Values of some partition columns, as the literals say them: text, int, Decimal, bool, date or None."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column's definition."""

    path: tuple[str, ...]
    type: str
    """Nullability included."""
    comment: str | None = None
    default: Sql | None = None
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """FIRST when there is no `after`."""

    after: str | None = None


# --- databases -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class CreateDatabase:
    """CREATE DATABASE."""

    name: str
    if_not_exists: bool = False
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """DROP DATABASE."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class UseDatabase:
    """USE."""

    name: str


@dataclass(frozen=True, slots=True)
class UseCatalog:
    """USE CATALOG."""

    name: str


# --- tables ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE, REPLACE TABLE, CREATE OR REPLACE TABLE."""

    name: str
    columns: tuple[Column, ...] = ()
    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    if_not_exists: bool = False
    replace: bool = False
    must_exist: bool = False
    """REPLACE TABLE without CREATE: there has to be one."""
    query: Sql | None = None
    like: str | None = None
    like_leaves: frozenset[str] = frozenset()
    """What is not taken over from there: CONSTRAINTS, PARTITIONS, OPTIONS."""
    is_flink: bool = field(default=False, compare=False)
    """Whether it is written as Flink writes it, with options after WITH."""


@dataclass(frozen=True, slots=True)
class ConnectorColumn:
    """A column of a table of another system: of a type, computed (`value`), or METADATA (`metadata` is its key)."""

    name: str
    type: str | None = None
    value: str | None = None
    metadata: str | None = None
    is_virtual: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class CreateConnectorTable:
    """CREATE [TEMPORARY] TABLE ... WITH ('connector' = '...')."""

    name: str
    columns: tuple[ConnectorColumn, ...]
    primary_key: tuple[str, ...] = ()
    watermark: tuple[str, str] | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Secrets among them, so they are not shown."""
    comment: str | None = None
    is_temporary: bool = False
    if_not_exists: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE; DROP TEMPORARY TABLE is about tables of other systems only."""

    name: str
    if_exists: bool = False
    is_temporary: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE TABLE."""

    name: str
    partition: PartitionSpec | None = None


@dataclass(frozen=True, slots=True)
class Analyze:
    """ANALYZE TABLE ... COMPUTE STATISTICS; `columns` is empty for the table only, None for all columns."""

    name: str
    columns: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True)
class RefreshTable:
    """REFRESH TABLE; `text` is for Spark, when it is one of its tables."""

    name: str
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE with what is to be done, in order."""

    name: str
    actions: tuple[Action, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetOptions:
    """SET (...), SET TBLPROPERTIES (...)."""

    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UnsetOptions:
    """RESET (...), UNSET TBLPROPERTIES (...); Spark's form does not mind options that are not set."""

    keys: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetComment:
    """COMMENT ON TABLE ... IS."""

    comment: str | None


@dataclass(frozen=True, slots=True)
class AddColumns:
    """ADD COLUMN(S), ADD (...)."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class DropColumns:
    """DROP COLUMN(S), DROP name, DROP (...)."""

    paths: tuple[tuple[str, ...], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME COLUMN a TO b, RENAME a TO b."""

    path: tuple[str, ...]
    new_name: str


@dataclass(frozen=True, slots=True)
class RedefineColumns:
    """Flink's MODIFY and Spark's CHANGE COLUMN: a whole new definition."""

    columns: tuple[Column, ...]
    new_name: str | None = None
    keeps_nullability: bool = False


@dataclass(frozen=True, slots=True)
class AlterColumn:
    """ALTER COLUMN: each part that is given changes."""

    path: tuple[str, ...]
    type: str | None = None
    nullable: bool | None = None
    comment: str | None = None
    position: Position | None = None
    default: Sql | None = None
    drops_default: bool = False


@dataclass(frozen=True, slots=True)
class RenameTable:
    """RENAME TO."""

    new_name: str


@dataclass(frozen=True, slots=True)
class DropPrimaryKey:
    """DROP PRIMARY KEY, DROP CONSTRAINT."""


@dataclass(frozen=True, slots=True)
class AddPrimaryKey:
    """ADD PRIMARY KEY (...) NOT ENFORCED."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """ADD PARTITION."""

    partitions: tuple[PartitionSpec, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropPartitions:
    """DROP PARTITION."""

    partitions: tuple[PartitionSpec, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateTag:
    """CREATE TAG, CREATE OR REPLACE TAG, REPLACE TAG."""

    tag: str
    snapshot: int | None = None
    retain: str | None = None
    if_not_exists: bool = False
    creates: bool = True
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class DeleteTag:
    """DELETE TAG; the name may be a list with commas."""

    tag: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameTag:
    """RENAME TAG a TO b."""

    tag: str
    new_name: str


Action = (
    SetOptions
    | UnsetOptions
    | SetComment
    | AddColumns
    | DropColumns
    | RenameColumn
    | RedefineColumns
    | AlterColumn
    | RenameTable
    | DropPrimaryKey
    | AddPrimaryKey
    | AddPartitions
    | DropPartitions
    | CreateTag
    | DeleteTag
    | RenameTag
)


# --- asking ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ShowDatabases:
    """SHOW DATABASES."""

    like: str | None = None


@dataclass(frozen=True, slots=True)
class ShowCatalogs:
    """SHOW CATALOGS."""


@dataclass(frozen=True, slots=True)
class ShowCurrent:
    """SHOW CURRENT DATABASE / CATALOG / NAMESPACE."""

    what: str


@dataclass(frozen=True, slots=True)
class ShowTables:
    """SHOW TABLES, and SHOW TABLE EXTENDED [PARTITION (...)], which says more of each."""

    database: str | None = None
    like: str | None = None
    extended: bool = False
    partition: PartitionSpec | None = None


@dataclass(frozen=True, slots=True)
class ShowCreateTable:
    """SHOW CREATE TABLE."""

    name: str


@dataclass(frozen=True, slots=True)
class ShowColumns:
    """SHOW COLUMNS; `text` is for Spark, when it is one of its views. `is_not`: those that the pattern does not fit."""

    name: str
    text: str = field(default="", compare=False)
    like: str | None = None
    is_not: bool = False


@dataclass(frozen=True, slots=True)
class ShowPartitions:
    """SHOW PARTITIONS."""

    name: str
    partition: PartitionSpec = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShowTags:
    """SHOW TAGS."""

    name: str


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """SHOW TBLPROPERTIES."""

    name: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ShowProcedures:
    """SHOW PROCEDURES."""

    like: str | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE [EXTENDED] table [PARTITION (...)] [column]; `text` is for Spark, when it is one of its views."""

    name: str
    extended: bool = False
    column: tuple[str, ...] | None = None
    partition: PartitionSpec | None = None
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class DescribeDatabase:
    """DESCRIBE DATABASE."""

    name: str


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    """DESCRIBE HISTORY table [LIMIT n], of Delta."""

    name: str
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Restore:
    """RESTORE table TO VERSION | TIMESTAMP AS OF ..., of Delta; one of the three is given."""

    name: str
    snapshot: int | None = None
    tag: str | None = None
    timestamp: str | int | None = None


@dataclass(frozen=True, slots=True)
class Vacuum:
    """VACUUM table [RETAIN n HOURS], of Delta."""

    name: str
    retain_hours: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """CALL: arguments by name or, with None, by position."""

    procedure: str
    arguments: tuple[tuple[str | None, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class SetSetting:
    """SET key = value; without a value the setting is shown, without a key all of them."""

    key: str | None = None
    value: str | None = None
    text: str = field(default="SET", compare=False)


@dataclass(frozen=True, slots=True)
class ResetSetting:
    """RESET [key]."""

    key: str | None = None
    text: str = field(default="RESET", compare=False)


@dataclass(frozen=True, slots=True)
class ShowJobs:
    """SHOW JOBS."""


@dataclass(frozen=True, slots=True)
class StopJob:
    """STOP JOB 'id' [WITH SAVEPOINT]: how far a job is stands in its table, so that it is the same with and without."""

    id: str


# --- materialized tables ---------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class CreateMaterialized:
    """CREATE MATERIALIZED TABLE | VIEW ... AS query; the query is the text that was written."""

    name: str
    query: str
    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    freshness: str | None = None
    policy: str | None = None
    if_not_exists: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True)
class AlterMaterialized:
    """ALTER MATERIALIZED TABLE t SUSPEND | RESUME | AS query."""

    name: str
    deed: str
    query: str | None = None


@dataclass(frozen=True, slots=True)
class DropMaterialized:
    """DROP MATERIALIZED TABLE | VIEW."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RefreshMaterialized:
    """REFRESH MATERIALIZED VIEW t [FULL], ALTER MATERIALIZED TABLE t REFRESH."""

    name: str
    full: bool = False


@dataclass(frozen=True, slots=True)
class ShowMaterialized:
    """SHOW MATERIALIZED TABLES | VIEWS [IN database] [LIKE pattern]."""

    database: str | None = None
    like: str | None = None


@dataclass(frozen=True, slots=True)
class ShowCreateMaterialized:
    """SHOW CREATE MATERIALIZED TABLE | VIEW."""

    name: str


@dataclass(frozen=True, slots=True)
class ExplainMaterialized:
    """EXPLAIN CREATE MATERIALIZED TABLE | VIEW ... AS query."""

    create: CreateMaterialized
