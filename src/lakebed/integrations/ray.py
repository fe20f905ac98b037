"""A table as a Ray Dataset: its splits are read by the workers of a Ray cluster.

    from lakebed.integrations.ray import read_table

    read_table(lake["orders"], ["id", "price"], "price > 10").map_batches(...)

The lake has to lie where all workers reach it. Ray is installed by its user: `pip install "ray[data]"`.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lakebed.errors import MissingDependency
from lakebed.table.reading import TableReading


def read_table(table: TableReading, columns: Sequence[str] | None = None, filter: Any = None) -> Any:  # noqa: A002
    """Matching rows as a `ray.data.Dataset`, read when it is used; arguments are those of `to_arrow`."""
    try:
        from ray import data
    except ImportError as error:
        raise MissingDependency("ray is not installed", hint='install it with: pip install "ray[data]"') from error
    plan = table.plan(columns, filter)
    if not plan.splits:
        return data.from_arrow(plan.schema.empty_table())
    reader = plan.alone

    def read(parts: pa.Table) -> Iterator[pa.Table]:
        for part in parts.column("split"):
            yield reader.schema.empty_table()  # or nothing would tell the columns of a split without matching rows
            for batch in reader.read(pickle.loads(part.as_py())):
                yield pa.Table.from_batches([batch])

    parts = [{"split": pickle.dumps(split)} for split in plan.splits]
    items = data.from_items(parts, override_num_blocks=len(parts))
    return items.map_batches(read, batch_size=1, batch_format="pyarrow")


__all__ = ["read_table"]
