"""A table as an `IterableDataset` of PyTorch: each worker of a DataLoader reads splits of its own.

    from torch.utils.data import DataLoader
    from lakebed.integrations.torch import TableBatches

    for batch in DataLoader(TableBatches(lake["orders"], ["id", "price"], "price > 10"), batch_size=None): ...

A batch is a dict of columns, so that no row becomes an object of its own: numbers and booleans without nulls are
tensors, everything else is a list. PyTorch is installed by its user: `pip install torch`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lakebed.definition.arguments import count_argument
from lakebed.errors import MissingDependency
from lakebed.table.reading import TableReading

try:
    import torch
    from torch.utils.data import IterableDataset, get_worker_info
except ImportError as error:
    raise MissingDependency("torch is not installed", hint="install it with: pip install torch") from error


class TableBatches(IterableDataset):  # type: ignore[misc]
    """Matching rows as dicts of columns, at most `batch_rows` at a time; other arguments are those of `to_arrow`."""

    def __init__(
        self,
        table: TableReading,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002
        *,
        batch_rows: int = 1024,
    ) -> None:
        super().__init__()
        self._batch_rows = max(1, count_argument(batch_rows, "batch_rows"))
        self._plan = table.plan(columns, filter)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker = get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        for split in self._plan.splits[first::step]:
            for batch in self._plan.read(split):
                for start in range(0, batch.num_rows, self._batch_rows):
                    yield _columns(batch.slice(start, self._batch_rows))


def _columns(batch: pa.RecordBatch) -> dict[str, Any]:
    return {name: _values(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}


def _values(column: pa.Array) -> Any:
    kind = column.type
    is_plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not is_plain or column.null_count:
        return column.to_pylist()
    return torch.from_numpy(column.to_numpy(zero_copy_only=False).copy())


__all__ = ["TableBatches"]
