"""Turns whatever a user hands over into rows of the table, or says what does not fit.

Columns are matched by name. A missing or extra column, a null where none may be, a value that does not fit its type:
each is an error that names the column, before anything is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa

from lakebed.definition.aggregate_names import counted
from lakebed.definition.fit import Place, fit
from lakebed.errors import InvalidData, did_you_mean
from lakebed.records import dataclass
from lakebed.schema.casts import default_scalar, filled
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.logical import DataField
from lakebed.write.make_room import completed

_PANDAS_INDEX = "__index_level_"


@dataclass(frozen=True)
class Conformer:
    """Fits batches to a table's columns. `extra` names a column that may come along (the row kind)."""

    table: str
    fields: tuple[DataField, ...]
    extra: str | None = None
    counting: frozenset[str] = frozenset()
    completes: bool = False
    """Whether columns that the data lack are null, and names differ in case only by mistake."""

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """Of what comes out."""
        return to_arrow_schema(self.fields)

    def conform(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array | None]:
        """The batch with the table's columns in their order and types, and the extra column."""
        if self.completes:
            batch = completed(batch, self.fields, self.extra)
        self._check_names(batch.schema.names)
        columns = [self._column(field, batch.column(field.name)) for field in self.fields]
        rows = pa.RecordBatch.from_arrays(columns, schema=self.arrow_schema)
        return rows, batch.column(self.extra) if self.extra else None

    def _check_names(self, given: Sequence[str]) -> None:
        wanted = [field.name for field in self.fields]
        twice = {name for name in given if given.count(name) > 1} if len(set(given)) < len(given) else set()
        if twice:
            raise InvalidData(
                f"data for table `{self.table}` has column `{min(twice)}` twice", hint="rename or drop one of them"
            )
        extra = [name for name in given if name not in wanted and name != self.extra]
        if extra:
            raise InvalidData(
                f"data for table `{self.table}` has column `{extra[0]}`, which the table has not",
                hint="it is the index of a pandas DataFrame: write df.reset_index(drop=True)"
                if extra[0].startswith(_PANDAS_INDEX)
                else f"drop the column, or add it to the table first; {did_you_mean(extra[0], wanted)}",
            )
        missing = [name for name in [*wanted, *([self.extra] if self.extra else [])] if name not in given]
        if missing:
            raise InvalidData(
                f"data for table `{self.table}` lacks column `{missing[0]}`",
                hint="row_kind names the column of the data that holds +I, -U, +U or -D"
                if missing[0] == self.extra
                else f"add it (null where there is no value); the table's columns are {', '.join(wanted)}",
            )

    def _column(self, field: DataField, column: pa.Array) -> pa.Array:
        if field.name in self.counting:
            return counted(column, field)
        fitted = fit(column, field.type, Place(self.table, field.name))
        if field.default_value is not None and fitted.null_count:
            fitted = filled(fitted, default_scalar(field))
        return fitted
