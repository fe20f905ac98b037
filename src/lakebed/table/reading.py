"""Every way to read rows: into Arrow, pandas, polars, DuckDB or Spark, at once or as a stream.

`Table` and what `where` makes of it read alike, so the methods are here, and stand on the few that each of them answers
for itself. What is lazy (`to_reader`, the Arrow stream, DuckDB, polars' lazy frames) shows the table as it was when it
was asked for: a later commit does not change the rows of half a query.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.errors import MissingDependency

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars


class TableReading(ABC):
    """The methods that read rows."""

    @property
    @abstractmethod
    def arrow_schema(self) -> pa.Schema:
        """The schema of what `to_arrow` returns."""

    @property
    @abstractmethod
    def hidden_schema(self) -> pa.Schema:
        """Columns that `to_arrow` returns only if they are asked for by name."""

    @abstractmethod
    def to_arrow(self, columns: Sequence[str] | None = None, filter: Any = None) -> pa.Table:  # noqa: A002
        """All matching rows as one Arrow table."""

    @abstractmethod
    def _stream(self, columns: Sequence[str] | None, filter: Any) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:  # noqa: A002
        """Matching rows batch by batch, and their schema. What is wrong with the call is said now."""

    @abstractmethod
    def _fixed(self) -> TableReading:
        """The same at the snapshot that it shows now."""

    def to_batches(self, columns: Sequence[str] | None = None, filter: Any = None) -> Iterator[pa.RecordBatch]:  # noqa: A002
        """Matching rows batch by batch; memory does not grow with the table."""
        return self._stream(columns, filter)[1]

    def to_reader(self, columns: Sequence[str] | None = None, filter: Any = None) -> pa.RecordBatchReader:  # noqa: A002
        """Matching rows as a pyarrow stream of batches, whose schema is known first; memory does not grow with them."""
        schema, batches = self._stream(columns, filter)
        return pa.RecordBatchReader.from_batches(schema, (_under(schema, batch) for batch in batches))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for whoever takes Arrow's PyCapsule interface, read while they are taken."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The columns for whoever takes Arrow's PyCapsule interface."""
        return self.arrow_schema.__arrow_c_schema__()

    def to_pandas(self, columns: Sequence[str] | None = None, filter: Any = None) -> pandas.DataFrame:  # noqa: A002
        """Matching rows as a pandas DataFrame."""
        _needs("pandas")
        return self.to_arrow(columns, filter).to_pandas()

    def to_polars(self, columns: Sequence[str] | None = None, filter: Any = None) -> polars.DataFrame:  # noqa: A002
        """Matching rows as a polars DataFrame."""
        return _needs("polars").from_arrow(self.to_arrow(columns, filter))

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


def _under(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch under the schema of its stream: a merge may have lost the word that a column holds no nulls."""
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema) if batch.num_columns else batch


def _needs(package: str) -> Any:
    """The optional package, or an error that names the extra to install."""
    try:
        return __import__(package)
    except ImportError as error:
        raise MissingDependency(
            f"{package} is not installed", hint=f'install it with: pip install "lakebed[{package}]"'
        ) from error


__all__ = ["TableReading"]
