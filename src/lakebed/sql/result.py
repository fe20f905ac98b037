"""What a statement without Spark returns: looks like a DataFrame, starts nothing.

The rows are there already. What people do with small results (collect, show, first, columns, to pandas or Arrow) works
on them; any other attribute is that of a real DataFrame, made when it is first asked for.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import MissingDependency, did_you_mean
from lakebed.left_out import take_pandas_back

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import StructType

_ASKED_BY_TOOLS = ("__", "_repr_", "_ipython_")
"""How names begin that notebooks and the interpreter look for on whatever they meet; no Spark may start for that."""

_QUERY = "lake.query(...) in place of lake.sql(...)"
_HABITS = {
    "df": f"toPandas(), or {_QUERY}",
    "to_pandas": f"toPandas(), or {_QUERY}",
    "to_df": f"toPandas(), or {_QUERY}",
    "fetchdf": f"toPandas(), or {_QUERY}",
    "pl": f"polars.from_arrow(result.toArrow()), or {_QUERY}",
    "to_polars": f"polars.from_arrow(result.toArrow()), or {_QUERY}",
    "arrow": f"toArrow(), or {_QUERY}",
    "to_arrow": f"toArrow(), or {_QUERY}",
    "fetchall": f"collect(), or {_QUERY}",
    "fetchone": f"first(), or {_QUERY}",
    "batches": _QUERY,
    "shape": "(result.count(), len(result.columns))",
    "to_csv": "toPandas().to_csv(path)",
}
"""Words that users of pandas, DuckDB and `lake.query` try."""


class SmallResult:
    """Rows that are known, in the shape of a Spark DataFrame."""

    _zone: str | None = None
    """The time zone in which moments are shown; None for that of the machine."""

    def __init__(self, schema: pa.Schema, rows: Sequence[Sequence[Any]], spark_of: Callable[[], Any]) -> None:
        """`spark_of` gives the Spark session; it is called only if a real DataFrame is needed."""
        self._arrow_schema = schema
        self._rows = [tuple(row) for row in rows]
        self._spark_of = spark_of
        self._frame: DataFrame | None = None

    def __repr__(self) -> str:
        # A notebook prints it after the deed is done: an error here would look as if the statement had failed.
        is_there = find_spec("pyspark") is not None
        kinds = self.dtypes if is_there else [(field.name, str(field.type)) for field in self._arrow_schema]
        return f"DataFrame[{', '.join(f'{name}: {kind}' for name, kind in kinds)}]"

    def __getattr__(self, name: str) -> Any:
        if name.startswith(_ASKED_BY_TOOLS):
            raise AttributeError(name)
        if not self._has(name):
            hint = f"write {_HABITS[name]}" if name in _HABITS else did_you_mean(name, dir(SmallResult))
            raise AttributeError(f"a DataFrame has no attribute `{name}`\n  -> {hint}", name=name, obj=self)
        return getattr(self._real(), name)

    def _has(self, name: str) -> bool:
        """Whether a DataFrame has such a member or column: no session is started to hear that it has not."""
        if name.lower() in (column.lower() for column in self.columns):
            return True
        if find_spec("pyspark") is None:
            return name not in _HABITS
        return hasattr(_imported("pyspark.sql.dataframe").DataFrame, name)

    def __getitem__(self, item: Any) -> Any:
        return self._real()[item]

    # --- what it is ----------------------------------------------------------------------------------------------

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._arrow_schema.names)

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """Names and types of the columns."""
        return [(field.name, field.dataType.simpleString()) for field in self.schema.fields]

    @property
    def schema(self) -> StructType:
        """The schema as Spark has it."""
        types = _imported("pyspark.sql.pandas.types")
        schema: StructType = types.from_arrow_schema(self._arrow_schema)
        return schema

    # --- the rows ------------------------------------------------------------------------------------------------

    def collect(self) -> list[Row]:
        """All rows."""
        shape = _imported("pyspark.sql").Row(*self.columns)
        return [shape(*row) for row in self._rows]

    def count(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def isEmpty(self) -> bool:  # noqa: N802 - Spark's name
        """Whether there are no rows."""
        return not self._rows

    def first(self) -> Row | None:
        """The first row, if there is one."""
        found = self.take(1)
        return found[0] if found else None

    def head(self, n: int | None = None) -> Any:
        """The first row, or a list of the first n."""
        return self.first() if n is None else self.take(n)

    def take(self, num: int) -> list[Row]:
        """The first rows."""
        return self.collect()[:num]

    def tail(self, num: int) -> list[Row]:
        """The last rows."""
        return self.collect()[max(0, len(self._rows) - num) :]

    def toLocalIterator(self, prefetchPartitions: bool = False) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """All rows, one by one."""
        return iter(self.collect())

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        """All rows as an Arrow table."""
        columns = [list(column) for column in zip(*self._rows, strict=True)] or [[] for _ in self.columns]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, self._arrow_schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self._arrow_schema)

    def toPandas(self) -> pandas.DataFrame:  # noqa: N802 - Spark's name
        """All rows as a pandas DataFrame."""
        return self.toArrow().to_pandas()

    # --- showing -------------------------------------------------------------------------------------------------

    def show(self, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> None:
        """Prints the rows as Spark does."""
        if vertical:
            self._real().show(n, truncate, vertical)
            return
        width = 20 if truncate is True else int(truncate)
        text = drawn(self.columns, self._rows[:n], width, has_more=len(self._rows) > n, zone=self._zone)
        print(text)  # noqa: T201 - that is its task

    def printSchema(self, level: int | None = None) -> None:  # noqa: N802 - Spark's name
        """Prints the columns as Spark does."""
        tree = self.schema.treeString() if level is None else self.schema.treeString(level)
        print(tree)  # noqa: T201 - that is its task

    # --- Spark ---------------------------------------------------------------------------------------------------

    def _real(self) -> DataFrame:
        if self._frame is None:
            self._frame = self._spark_of().createDataFrame(self._rows, self.schema)
        return self._frame


class LazyResult(SmallResult):
    """Rows that are computed here when somebody wants them, in the shape of a Spark DataFrame.

    What only a DataFrame can do starts Spark, which then carries out the same query on the same snapshots.
    """

    def __init__(
        self,
        schema: pa.Schema,
        table_of: Callable[[], pa.Table],
        frame_of: Callable[[], Any],
        zone: str | None = None,
    ) -> None:
        """`table_of` computes the rows; `frame_of` the query as a DataFrame; `zone` is the session's."""
        self._arrow_schema = schema
        self._table_of = table_of
        self._frame_of = frame_of
        self._zone = zone
        self._frame: DataFrame | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """A DataFrame to whoever asks `isinstance(result, DataFrame)`: it can be used as one."""
        module = sys.modules.get("pyspark.sql")
        return LazyResult if module is None else module.DataFrame

    @cached_property
    def _table(self) -> pa.Table:
        return self._table_of()

    @cached_property
    def _rows(self) -> list[tuple[Any, ...]]:  # type: ignore[override]
        columns = [column.to_pylist() for column in self._table.columns]
        return list(zip(*columns, strict=True)) if columns else [()] * self._table.num_rows

    def collect(self) -> list[Row]:
        """All rows."""
        conversion = _imported("pyspark.sql.conversion").ArrowTableToRowsConversion
        rows: list[Row] = conversion.convert(self._table, self.schema)
        return rows

    def count(self) -> int:
        """How many rows there are."""
        return int(self._table.num_rows)

    def isEmpty(self) -> bool:  # noqa: N802 - Spark's name
        """Whether there are no rows."""
        return bool(self._table.num_rows == 0)

    def tail(self, num: int) -> list[Row]:
        """The last rows."""
        return self.collect()[max(0, self.count() - num) :]

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        """All rows as an Arrow table."""
        return self._table

    def toPandas(self) -> pandas.DataFrame:  # noqa: N802 - Spark's name
        """All rows as a pandas DataFrame; moments are wall-clock times of the session's zone, as Spark gives them."""
        columns = [_on_the_wall(column, self._zone) for column in self._table.columns]
        return pa.Table.from_arrays(columns, names=self.columns).to_pandas()

    def _real(self) -> DataFrame:
        if self._frame is None:
            self._frame = self._frame_of()
        return self._frame


def _imported(name: str) -> Any:
    """A module of pyspark: it is heavy, so only when it is used, and it may be missing."""
    take_pandas_back()
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependency(
            "rows of Spark need pyspark, which is not installed",
            hint='install it with: pip install "lakebed[spark]", or take the result with toArrow()',
        ) from error


def _on_the_wall(column: pa.ChunkedArray, zone: str | None) -> pa.ChunkedArray:
    """Moments as what a clock of the zone shows; other columns, and moments of a zone without name, stay."""
    if zone is None and not time.timezone and not time.daylight:
        zone = "UTC"
    if zone is None or not pa.types.is_timestamp(column.type) or column.type.tz is None:
        return column
    return pc.local_timestamp(column.cast(pa.timestamp(column.type.unit, zone)))


def _clock(zone: str | None) -> Callable[[datetime], datetime]:
    """What a clock shows at a moment: of a zone, or of the machine; the moment itself if nobody knows the zone."""
    try:
        there = None if zone is None else ZoneInfo(zone)
    except (ValueError, ZoneInfoNotFoundError):
        return lambda moment: moment
    return lambda moment: moment.astimezone(there).replace(tzinfo=None)


def drawn(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    width: int = 20,
    *,
    has_more: bool = False,
    zone: str | None = None,
) -> str:
    """Rows as Spark draws them: cells of at most that width, to the left if it is 0; moments on clocks of the zone."""
    clock = _clock(zone)
    texts = [[_cut(_shown(value, clock), width) for value in row] for row in rows]
    widths = [max(3, *(len(text) for text in column)) for column in zip(columns, *texts, strict=True)]
    line = "+" + "+".join("-" * wide for wide in widths) + "+"

    def row_of(row: Sequence[str]) -> str:
        cells = [text.rjust(wide) if width else text.ljust(wide) for text, wide in zip(row, widths, strict=True)]
        return "|" + "|".join(cells) + "|"

    more = f"only showing top {len(rows)} rows\n" if has_more else ""
    return "\n".join([line, row_of(columns), line, *map(row_of, texts), line, more])


def _shown(value: Any, clock: Callable[[datetime], datetime]) -> str:
    """A value as Spark writes it down."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case datetime():
            local = value if value.tzinfo is None else clock(value)
            return str(local).rstrip("0") if local.microsecond and local.tzinfo is None else str(local)
        case bytes():
            return f"[{value.hex(' ').upper()}]"
        case [tuple(), *_]:  # a map, as Arrow gives it
            return "{" + ", ".join(f"{_shown(key, clock)} -> {_shown(item, clock)}" for key, item in value) + "}"
        case list():
            return "[" + ", ".join(_shown(item, clock) for item in value) + "]"
        case dict():
            return "{" + ", ".join(_shown(item, clock) for item in value.values()) + "}"
        case _:
            return str(value)


def _cut(text: str, width: int) -> str:
    if width and len(text) > width:
        return text[: width - 3] + "..." if width > 3 else text[:width]
    return text
