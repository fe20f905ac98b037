"""Keys to look up, from whatever a caller has: a table, a DataFrame, dicts, or the values of a key of one column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lakebed.errors import InvalidData, did_you_mean
from lakebed.table.conform import to_batches
from lakebed.table.context import TableContext
from lakebed.table.fit import Place, fit
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import DataField, with_nullable


def asked_keys(context: TableContext, keys: Any) -> pa.RecordBatch:
    """The key columns of whatever a caller hands over, under their types. Other columns are left out.

    A null in a column that has none is a key that is not there, as in a join.
    """
    parts = context.schema.fields_of(context.schema.primary_keys)
    given = _as_table(context, keys, parts)
    lacking = [part.name for part in parts if part.name not in given.column_names]
    if lacking:
        raise InvalidData(
            f"keys for table `{context.name}` lack column `{lacking[0]}`",
            hint=f"the key columns are {', '.join(part.name for part in parts)}; "
            f"{did_you_mean(lacking[0], given.column_names)}",
        )
    columns = []
    for part in parts:
        if given.column_names.count(part.name) > 1:
            raise InvalidData(f"keys have column `{part.name}` twice", hint="rename or drop one of them")
        column = given.column(part.name).combine_chunks()
        columns.append(fit(column, with_nullable(part.type, True), Place(context.name, part.name)))
    return pa.RecordBatch.from_arrays(columns, names=[part.name for part in parts])


def _as_table(context: TableContext, keys: Any, parts: Sequence[DataField]) -> pa.Table:
    names = [part.name for part in parts]
    is_listed = isinstance(keys, list | tuple) and not all(isinstance(item, pa.RecordBatch) for item in keys)
    if isinstance(keys, list | tuple) and not keys:
        return pa.table({name: [] for name in names})
    try:
        if is_listed and all(isinstance(item, dict) for item in keys):
            found = [name for name in names if any(name in item for item in keys)]
            return pa.Table.from_pydict({name: [item.get(name) for item in keys] for name in found})
        if is_listed or not _are_columns(keys):
            if len(parts) > 1:
                raise InvalidData(
                    f"the key of table `{context.name}` has {len(parts)} columns, one list of values is given",
                    hint=f"pass a table or dicts with {', '.join(names)}",
                )
            values = keys if isinstance(keys, pa.Array | pa.ChunkedArray) else pa.array(keys)
            return pa.table({names[0]: values})
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidData(
            f"keys for table `{context.name}` can not be read: {error}",
            hint=f"pass a table, a DataFrame, dicts, or values of {to_arrow_type(parts[0].type)}",
        ) from error
    batches = list(to_batches(keys))
    return pa.Table.from_batches(batches) if batches else pa.table({name: [] for name in names})


def _are_columns(keys: Any) -> bool:
    """Whether keys come in named columns, rather than as the values of one."""
    is_column = isinstance(keys, pa.Array | pa.ChunkedArray | np.ndarray) or type(keys).__name__ in ("Series", "Index")
    return not is_column


__all__ = ["asked_keys"]
