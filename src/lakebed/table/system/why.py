"""`t$why`: the stored versions of the keys that a filter names, with their part in what reads show."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from lakebed.definition.arguments import filter_argument, names_argument
from lakebed.definition.moments import resolve_snapshot
from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.schema.table_schema import TableSchema
from lakebed.table.opened import OpenedTable
from lakebed.table.system.base import SystemTable, TableState
from lakebed.table.system.handle import SystemTableHandle
from lakebed.table.table import Table
from lakebed.types import predicate as predicates
from lakebed.types.arrow import to_arrow_type
from lakebed.types.predicate import Predicate
from lakebed.types.predicate_evaluate import evaluate

WHY: SystemTable[TableState, object] = SystemTable("why", lambda _: (), ())
"""Its columns are those of the table, and more: see `WhyTable`."""
_MOST_KEYS = 10_000


class WhyTable(SystemTableHandle):
    """An opened `t$why`."""

    needs_condition = True

    def __init__(self, opened: OpenedTable) -> None:
        super().__init__(WHY, opened)

    @cached_property
    def schema(self) -> TableSchema:
        """The columns of the table, and what is told of each version."""
        from lakebed.explain.why import why_fields

        schema = self._opened.current().schema
        fields = why_fields(self._opened.current())
        return TableSchema(0, fields, max(field.id for field in fields), (), (), {}, None, schema.time_millis)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of what `to_arrow` returns."""
        return self.schema.arrow_schema

    def _as(self, opened: OpenedTable) -> Table:
        return WhyTable(opened)

    def _planned(self, columns: Sequence[str] | None, filter: Any) -> pa.Table:  # noqa: A002
        from lakebed.explain.why import explain_keys

        predicate = filter_argument(filter, self.arrow_schema)
        names = self.arrow_schema.names if columns is None else list(names_argument(columns, "columns"))
        for name in names:
            if name not in self.arrow_schema.names:
                hint = did_you_mean(name, self.arrow_schema.names)
                raise NotFound(f"system table `why` has no column `{name}`", hint=hint)
        context = self._opened.current()
        snapshot = self._opened.pinned or resolve_snapshot(context.stores, context.options, context.name)
        found = explain_keys(context.as_meant_in(snapshot), snapshot, self._keys(predicate)).to_arrow()
        rows = found.rename_columns(self.arrow_schema.names).cast(self.arrow_schema)
        if predicate is not None and rows.num_rows:
            rows = rows.filter(evaluate(predicate, rows.combine_chunks().to_batches()[0]))
        return rows.select(names)

    def _keys(self, predicate: Predicate | None) -> pa.Table:
        """The keys that a filter names."""
        context = self._opened.current()
        key = context.schema.primary_keys
        fixed = {} if predicate is None else predicates.equalities(predicate)
        lacking = [name for name in key if name not in fixed]
        if lacking:
            raise InvalidArgument(
                f"`{self.name}` tells of the keys that a filter names: it says nothing of `{lacking[0]}`",
                hint=f"compare every key column with a value, such as WHERE {' AND '.join(f'{n} = …' for n in key)}",
            )
        sizes = [len(fixed[name]) for name in key]
        if int(np.prod(sizes)) > _MOST_KEYS:
            raise InvalidArgument(
                f"`{self.name}`: the filter names {int(np.prod(sizes))} keys", hint=f"ask for up to {_MOST_KEYS}"
            )
        grids = np.meshgrid(*[np.arange(size) for size in sizes], indexing="ij")
        types = [to_arrow_type(context.schema.field(name).type) for name in key]
        return pa.table(
            {
                name: fixed[name].cast(kind).take(pa.array(grid.ravel()))
                for name, kind, grid in zip(key, types, grids, strict=True)
            }
        )


__all__ = ["WHY", "WhyTable"]
