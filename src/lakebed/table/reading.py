"""Every way to read rows: into Arrow, pandas, polars or DuckDB, at once, as a stream or in parts.

`Table` and what `where` makes of it read alike, so the methods are here, and stand on the few that each of them answers
for itself. What is lazy (DuckDB, polars' lazy frames) shows the table as it was when it was asked for: a later commit
does not change the rows of half a query.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, Literal, NoReturn, overload

import pyarrow as pa

from lakebed.calls import explains_calls
from lakebed.definition.arguments import count_argument, filter_argument
from lakebed.errors import MissingDependency
from lakebed.notebook import no_member
from lakebed.table.plans import PlannedRead
from lakebed.types.arrow import with_hidden
from lakebed.types.predicate import LONG_LIST, Predicate, conjunction, most_values

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars

    from lakebed.table.parts import ReadPlan


_HABITS = {
    "append": "t.write(rows)",
    "insert": "t.write(rows)",
    "upsert": "t.write(rows): rows of a primary-key table replace those of the same key",
    "merge": "t.write(rows) for rows by key, or lake.sql('MERGE INTO ...')",
    "update": "t.write(rows) for rows by key, or lake.sql('UPDATE ...')",
    "overwrite": "t.write(rows, overwrite=True)",
    "delete": "lake.sql('DELETE FROM ... WHERE ...')",
    "filter": "t.where(filter)",
    "select": "t.to_arrow(columns=[...]), or any other way to read",
    "show": "t.head()",
    "limit": "t.head(n)",
    "collect": "t.to_arrow()",
    "df": "t.to_pandas()",
    "pl": "t.to_polars()",
    "arrow": "t.to_arrow()",
    "tail": "t.follow() for the changes, or lake.query('SELECT ... ORDER BY ... LIMIT n')",
    "to_csv": "t.to_pandas().to_csv(path)",
    "write_csv": "t.to_polars().write_csv(path)",
    "to_parquet": "pyarrow.parquet.write_table(t.to_arrow(), path), or t.scan_polars().sink_parquet(path)",
    "write_parquet": "pyarrow.parquet.write_table(t.to_arrow(), path), or t.scan_polars().sink_parquet(path)",
    "add_column": "t.alter(lakebed.AddColumn(name, type)), or lake.sql('ALTER TABLE ... ADD COLUMN ...')",
    "drop_column": "t.alter(lakebed.DropColumn(name)), or lake.sql('ALTER TABLE ... DROP COLUMN ...')",
    "rename_column": "t.alter(lakebed.RenameColumn(name, new_name)), or lake.sql('ALTER TABLE ... RENAME COLUMN ...')",
    "rename": "lake.rename_table(old, new); of a column: t.alter(lakebed.RenameColumn(name, new_name))",
    "drop": "lake.drop_table(name); of a column: t.alter(lakebed.DropColumn(name))",
    "undo": "t.rollback_to(snapshot), one that t.snapshots() lists",
    "describe": "lake.sql('DESCRIBE ...').show()",
    "info": "print(t.arrow_schema)",
    "dtypes": "t.arrow_schema",
    "print_schema": "print(t.arrow_schema)",
    "printSchema": "print(t.arrow_schema)",
    "shape": "(t.count(), len(t.columns))",
    "history": "t.snapshots()",
    "optimize": "t.compact()",
    "vacuum": "t.expire_snapshots()",
    "restore": "t.rollback_to(snapshot)",
    "time_travel": "t.at(snapshot=...)",
    **dict.fromkeys(("query", "sql", "join", "merge_asof"), "lake.query('SELECT ... FROM t ...')"),
    **dict.fromkeys(("groupby", "group_by", "groupBy", "agg"), "lake.query('SELECT a, sum(b) FROM t GROUP BY a')"),
    **dict.fromkeys(("sort", "sort_values", "order_by", "orderBy"), "lake.query('SELECT ... FROM t ORDER BY ...')"),
    **dict.fromkeys(("iloc", "loc", "plot", "values", "iterrows"), "t.to_pandas() first"),
    "toDF": "t.to_spark()",
    "toPandas": "t.to_pandas()",
    "createTempView": "t.to_spark().createOrReplaceTempView(name)",
    "createOrReplaceTempView": "t.to_spark().createOrReplaceTempView(name)",
    "rows": "t.to_arrow().to_pylist()",
    "to_list": "t.to_arrow().to_pylist()",
    "to_pylist": "t.to_arrow().to_pylist()",
    "to_dicts": "t.to_arrow().to_pylist()",
}
"""Words that users of other libraries try."""

_ARGUMENTS = {
    "*": {
        **dict.fromkeys(("where", "filters", "predicate", "condition", "query"), "filter='amount > 10'"),
        **dict.fromkeys(("select", "cols", "usecols", "projection", "column"), "columns=['a', 'b']"),
        **dict.fromkeys(("limit", "n_rows", "nrows"), "t.head(n) for the first rows that are found"),
        **dict.fromkeys(("snapshot", "snapshot_id", "version"), "t.at(snapshot=...) and read that"),
        "tag": "t.at(tag=...) and read that",
        "timestamp": "t.at(timestamp=...) and read that",
        "order_by": "lake.query('SELECT ... ORDER BY ...')",
    },
    "head": {"limit": "head(n)", "rows": "head(n)"},
    "sample": {
        **dict.fromkeys(("frac", "fraction"), "sample(n) with a number of rows"),
        "random_state": "sample(n, seed=...)",
    },
    "where": {"*": "where(\"amount > 10 AND state = 'paid'\")"},
}
"""Arguments that users of other libraries try."""


def _of_column(name: str) -> str:
    return f't.to_arrow(columns=[{name!r}]), or any other way to read; conditions are text: t.where("{name} = ...")'


@explains_calls(_ARGUMENTS)
class TableReading(ABC):
    """The methods that read rows.

    `columns` are all by default. `filter` is SQL text (`"amount > 10 AND state = 'paid'"`, as Spark understands it), a
    pyarrow or polars expression, a list of (column, operator, value) tuples, or a lakebed predicate.
    """

    @property
    @abstractmethod
    def arrow_schema(self) -> pa.Schema:
        """The schema of what `to_arrow` returns."""

    @property
    @abstractmethod
    def hidden_schema(self) -> pa.Schema:
        """Columns that `to_arrow` returns only if they are asked for by name."""

    @abstractmethod
    def _planned(self, columns: Sequence[str] | None, filter: Any) -> PlannedRead | pa.Table:  # noqa: A002
        """What to read. What is wrong with the call is said now, not when rows are taken."""

    @abstractmethod
    def _repr_html_(self) -> str:
        """For notebooks: what it is, without reading a row."""

    @abstractmethod
    def _fixed(self) -> TableReading:
        """The same at the snapshot that it shows now."""

    if not TYPE_CHECKING:  # or a checker of types would take any name for a member

        def __getattr__(self, name: str) -> Any:
            is_column = not name.startswith("_") and not hasattr(type(self), name) and name in self.columns
            raise no_member(self, name, {name: _of_column(name)} if is_column else _HABITS)

    def __getitem__(self, key: object) -> NoReturn:
        """Says how to read: a table in use by others is no DataFrame, and each look at it would be a read."""
        instead = _of_column(key) if isinstance(key, str) else "t.to_pandas(), or t.to_arrow().to_pylist() for the rows"
        raise TypeError(f"a table is not read by [...]\n  -> write {instead}")

    __iter__ = None  # or Python would call the method above for each row

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.arrow_schema.names)

    # --- all of it -----------------------------------------------------------------------------------------------

    def to_arrow(self, columns: Sequence[str] | None = None, filter: Any = None) -> pa.Table:  # noqa: A002
        """All matching rows as one Arrow table.

        `filter` is SQL text such as `"amount > 10 AND state = 'paid'"`, a pyarrow or polars expression, a list of
        (column, operator, value) tuples, or a lakebed predicate.
        """
        planned = self._planned(columns, filter)
        if isinstance(planned, pa.Table):
            return planned
        if not isinstance(planned, tuple):
            return planned.to_table()
        reader, plan = planned
        # A long list is turned into a set for each batch: few large ones then cost less than many.
        is_long = reader.predicate is not None and most_values(reader.predicate) > LONG_LIST
        reader = replace(reader, keeps_everything=reader.predicate is None or is_long)
        return pa.Table.from_batches(reader.read_all(plan.splits), schema=reader.schema)

    def to_pandas(self, columns: Sequence[str] | None = None, filter: Any = None) -> pandas.DataFrame:  # noqa: A002
        """Matching rows as a pandas DataFrame."""
        _needs("pandas")
        return self.to_arrow(columns, filter).to_pandas()

    @overload
    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,
        *,
        lazy: Literal[False] = False,
    ) -> polars.DataFrame: ...

    @overload
    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,
        *,
        lazy: Literal[True],
    ) -> polars.LazyFrame: ...

    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002
        *,
        lazy: bool = False,
    ) -> polars.DataFrame | polars.LazyFrame:
        """Matching rows as a polars DataFrame; with `lazy` as a LazyFrame that reads what its query needs."""
        if lazy:
            return self.scan_polars(columns, filter)
        return _needs("polars").from_arrow(self.to_arrow(columns, filter))

    # --- as much as is needed ------------------------------------------------------------------------------------

    def to_batches(self, columns: Sequence[str] | None = None, filter: Any = None) -> Iterator[pa.RecordBatch]:  # noqa: A002
        """Matching rows batch by batch; memory does not grow with the table."""
        return _batches(self._planned(columns, filter))

    def to_reader(self, columns: Sequence[str] | None = None, filter: Any = None) -> pa.RecordBatchReader:  # noqa: A002
        """Matching rows as a pyarrow stream of batches, whose schema is known first; memory does not grow with them."""
        from lakebed.types.arrow import under_schema

        planned = self._planned(columns, filter)
        schema = planned[0].schema if isinstance(planned, tuple) else planned.schema
        return pa.RecordBatchReader.from_batches(schema, (under_schema(batch, schema) for batch in _batches(planned)))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for whoever takes Arrow's PyCapsule interface, read while they are taken."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The columns for whoever takes Arrow's PyCapsule interface."""
        return self.arrow_schema.__arrow_c_schema__()

    def scan_polars(self, columns: Sequence[str] | None = None, filter: Any = None) -> polars.LazyFrame:  # noqa: A002
        """Matching rows as a polars LazyFrame. Nothing is read before it is collected, and then what its query needs.

        Columns, conditions and limits of the query go down into the read, which polars may stream.
        """
        _needs("polars")
        from lakebed.table.polars_scan import lazy_frame  # polars is heavy

        return lazy_frame(self._fixed(), columns, filter)

    def to_duckdb(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002
        *,
        connection: duckdb.DuckDBPyConnection | None = None,
    ) -> duckdb.DuckDBPyRelation:
        """Matching rows as a DuckDB relation, of a connection if one is given.

        Nothing is read before the relation is used, and then no more than the columns and rows that it needs.
        """
        from lakebed.table.dataset import TableDataset  # pyarrow's datasets are only for those who use them

        duck = _needs("duckdb") if connection is None else connection
        return duck.from_arrow(TableDataset(self._fixed(), columns, filter))

    # --- a little of it ------------------------------------------------------------------------------------------

    def head(self, n: int = 10, columns: Sequence[str] | None = None, filter: Any = None) -> pa.Table:  # noqa: A002
        """The first rows that are found, in no particular order. No more files are opened than it takes."""
        from lakebed.table.few_rows import first_rows

        count_argument(n, "n")
        reader = self.to_reader(columns, filter)
        return pa.Table.from_batches(first_rows(reader, n), schema=reader.schema)

    def count(self, filter: Any = None) -> int:  # noqa: A002
        """How many rows match. Where nothing has to be merged or filtered, metadata tell it and no file is opened."""
        from lakebed.table.few_rows import count_rows

        return count_rows(self._planned([], filter))

    def sample(
        self,
        n: int,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002
        *,
        seed: int | None = None,
    ) -> pa.Table:
        """So many of the matching rows (all, if there are no more), each as likely as any other; `seed` repeats a draw.

        Without a filter only files that a drawn row lies in are opened, as far as metadata tell how many rows each has.
        """
        from lakebed.table.few_rows import sampled_rows

        count_argument(n, "n")
        return sampled_rows(self._planned(columns, filter), n, seed)

    def where(self, filter: Any) -> TableView:  # noqa: A002
        """The rows for which the filter is true, to read in all these ways. Nothing is read yet."""
        return TableView(self, self._checked(filter))

    def plan(self, columns: Sequence[str] | None = None, filter: Any = None) -> ReadPlan:  # noqa: A002
        """A read in parts that can be pickled: `splits`, and `read(split)` for its batches, in any process."""
        from lakebed.table.parts import ReadPlan

        return ReadPlan.of(self._fixed()._planned(columns, filter))

    def _checked(self, filter: Any) -> Predicate | None:  # noqa: A002
        return filter_argument(filter, with_hidden(self.arrow_schema, self.hidden_schema))


class TableView(TableReading):
    """Rows of a table for which a filter is true: made by `where`, read only."""

    def __init__(self, table: TableReading, condition: Predicate | None) -> None:
        self._table = table
        self._condition = condition

    def __repr__(self) -> str:
        return f"{self._table!r} where {self._condition}"

    def _repr_html_(self) -> str:
        return f"<div>{self._table._repr_html_()}<p>where {escape(str(self._condition))}</p></div>"

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of what `to_arrow` returns."""
        return self._table.arrow_schema

    @property
    def hidden_schema(self) -> pa.Schema:
        """Columns that `to_arrow` returns only if they are asked for by name."""
        return self._table.hidden_schema

    def _planned(self, columns: Sequence[str] | None, filter: Any) -> PlannedRead | pa.Table:  # noqa: A002
        both = [part for part in (self._condition, self._checked(filter)) if part is not None]
        return self._table._planned(columns, conjunction(both) if both else None)

    def _fixed(self) -> TableView:
        return TableView(self._table._fixed(), self._condition)


def _batches(planned: PlannedRead | pa.Table) -> Iterator[pa.RecordBatch]:
    if isinstance(planned, pa.Table):
        return iter(planned.to_batches())
    if not isinstance(planned, tuple):
        return planned.batches()
    reader, plan = planned
    batches: Iterator[pa.RecordBatch] = reader.read_each(plan.splits)
    return batches


def _needs(package: str) -> Any:
    """The optional package, or an error that names the extra to install."""
    try:
        return __import__(package)
    except ImportError as error:
        raise MissingDependency(
            f"{package} is not installed", hint=f'install it with: pip install "lakebed[{package}]"'
        ) from error


__all__ = ["TableReading"]
