"""What `lake.query` returns: the rows of a query, in whatever form they are wanted."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.calls import explains_calls
from lakebed.errors import InvalidArgument, MissingDependency
from lakebed.notebook import no_member
from lakebed.spark.errors import spark_errors
from lakebed.sql.query.choose import Choice
from lakebed.sql.result import drawn

if TYPE_CHECKING:
    import pandas
    import polars
    from pyspark.sql import DataFrame

_SHOWN_ROWS = 20
_HABITS = {
    "to_arrow": "result.arrow()",
    "toArrow": "result.arrow()",
    "fetch_arrow_table": "result.arrow()",
    **dict.fromkeys(("to_pandas", "toPandas", "pandas", "to_df", "fetchdf", "fetch_df"), "result.df()"),
    **dict.fromkeys(("to_polars", "polars"), "result.pl()"),
    "collect": "result.fetchall()",
    "to_batches": "result.batches()",
    "head": "result.show(n), or LIMIT n in the query",
    "limit": "LIMIT n in the query",
    "filter": "WHERE in the query",
    "where": "WHERE in the query",
    "count": "SELECT count(*) in the query, or result.arrow().num_rows",
    **dict.fromkeys(("num_rows", "rowcount", "row_count"), "result.arrow().num_rows"),
    **dict.fromkeys(("rows", "to_pylist", "to_dicts", "to_list"), "result.arrow().to_pylist()"),
    **dict.fromkeys(("fetchmany", "fetch_record_batch"), "result.batches()"),
    "shape": "result.arrow().shape",
    "dtypes": "result.schema",
    "printSchema": "print(result.schema)",
    "to_csv": "result.df().to_csv(path)",
    "write_csv": "result.pl().write_csv(path)",
    "to_parquet": "pyarrow.parquet.write_table(result.arrow(), path)",
    "write_parquet": "pyarrow.parquet.write_table(result.arrow(), path)",
    "write": "lake.create_table(name, result), or lake.table(name).write(result)",
}
"""Words that users of other libraries, and of tables, try."""

_ARGUMENTS = {
    "show": {"limit": "show(n)", "num_rows": "show(n)", "max_rows": "show(n)", "vertical": "show(n, truncate=False)"},
    "fetchone": {"*": "LIMIT n in the query, and fetchall()"},
    "fetchall": {"*": "LIMIT n in the query"},
    "batches": {"*": "batches()"},
}
"""Arguments that users of other libraries try."""


@explains_calls(_ARGUMENTS)
class QueryResult:
    """Rows of a query. Tables are read as they were when it was asked; nothing is computed before rows are wanted.

    `arrow()` is computed once and kept; `batches()` and the Arrow stream run the query anew each time and keep nothing.
    """

    def __init__(self, choice: Choice, frame: Callable[[], DataFrame]) -> None:
        """`frame` gives the query as a DataFrame of Spark's."""
        self._choice = choice
        self._frame = frame

    if not TYPE_CHECKING:  # or a checker of types would take any name for a member

        def __getattr__(self, name: str) -> Any:
            raise no_member(self, name, _HABITS)

    # --- what it is ----------------------------------------------------------------------------------------------

    @property
    def engine(self) -> str:
        """Who answers: `duckdb` in this process, or `spark`."""
        return self._choice.engine.value

    @property
    def reason(self) -> str:
        """Why that engine."""
        return self._choice.reason

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        if self._choice.embedded is not None:
            return self._choice.embedded.schema
        return import_module("pyspark.sql.pandas.types").to_arrow_schema(self._spark.schema)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    @cached_property
    def _spark(self) -> DataFrame:
        return self._frame()

    # --- the rows ------------------------------------------------------------------------------------------------

    @cached_property
    def _table(self) -> pa.Table:
        if self._choice.embedded is not None:
            return self._choice.embedded.table()
        with spark_errors():
            return self._spark.toArrow()

    def arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return self._table

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows batch by batch; memory does not grow with their number where the query allows that."""
        if self._choice.embedded is not None:
            return self._choice.embedded.batches()
        return iter(self.arrow().to_batches())

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream that pyarrow, polars and DuckDB take."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def df(self) -> pandas.DataFrame:
        """All rows as a pandas DataFrame."""
        _needs("pandas")
        return self.arrow().to_pandas()

    def pl(self) -> polars.DataFrame:
        """All rows as a polars DataFrame."""
        return _needs("polars").from_arrow(self.arrow())

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows as tuples."""
        return _tuples(self.arrow())

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row, if there is one."""
        found = _tuples(self._first(1))
        return found[0] if found else None

    def spark(self) -> DataFrame:
        """The query as a Spark DataFrame, whoever answers it here; starts a session if there is none."""
        return self._spark

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for batch in self.batches():
            yield from _tuples(pa.Table.from_batches([batch]))

    def _first(self, rows: int) -> pa.Table:
        """The first rows; no more is computed than they need, if nothing is yet."""
        if "_table" in self.__dict__:
            return self._table.slice(0, rows)
        found, left = [], rows
        batches = self.batches()
        while left > 0 and (batch := next(batches, None)) is not None:
            found.append(batch.slice(0, left))
            left -= batch.num_rows
        close = getattr(batches, "close", None)
        if close is not None:
            close()
        return pa.Table.from_batches(found, schema=self.schema)

    # --- showing -------------------------------------------------------------------------------------------------

    def show(self, n: int = _SHOWN_ROWS, truncate: bool | int = True) -> None:
        """Prints the first rows. Values are cut to 20 characters, or to `truncate` of them; False leaves them whole."""
        if not isinstance(n, int) or isinstance(n, bool) or n < 0:
            raise InvalidArgument(f"n is {n!r}", hint="pass how many rows to print")
        print(self._text(n, 20 if truncate is True else int(truncate)))  # noqa: T201 - that is its task

    def __repr__(self) -> str:
        return f"{self._text(_SHOWN_ROWS)}\n({self.engine})"

    def _text(self, n: int, width: int = 20) -> str:
        found = self._first(n + 1)
        return drawn(self.columns, _tuples(found.slice(0, n)), width, has_more=found.num_rows > n, zone=self._zone())

    def _zone(self) -> str | None:
        """The time zone in which moments are shown."""
        if self._choice.embedded is not None:
            return self._choice.embedded.zone
        return str(self._spark.sparkSession.conf.get("spark.sql.session.timeZone"))

    def _repr_html_(self) -> str:
        found = self._first(_SHOWN_ROWS + 1)
        head = "".join(
            f"<th>{html.escape(field.name)}<br><small>{html.escape(str(field.type))}</small></th>"
            for field in self.schema
        )
        body = "".join(
            f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>"
            for row in _tuples(found.slice(0, _SHOWN_ROWS))
        )
        more = f"<p>the first {_SHOWN_ROWS} rows</p>" if found.num_rows > _SHOWN_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: Any) -> str:
    if value is None:
        return "<i>null</i>"
    text = str(value)
    return html.escape(text if len(text) <= 80 else f"{text[:77]}...")


def _tuples(rows: pa.Table) -> list[tuple[Any, ...]]:
    columns: Sequence[list[Any]] = [column.to_pylist() for column in rows.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows


def _needs(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingDependency(
            f"this needs {package}, which is not installed", hint=f'install it with: pip install "lakebed[{package}]"'
        ) from error
