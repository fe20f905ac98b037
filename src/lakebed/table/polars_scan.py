"""A table as a polars LazyFrame: columns, conditions and limits of its query go down into the read.

polars asks a source for columns, rows that match an expression, and no more than so many. It does not filter again, so
the whole expression is applied to the rows that were read, by polars itself; what the table understands of it only
decides which files and rows are read at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.definition.polars_filter import understood_part
from lakebed.table.dataset import Scanned, TableDataset

if TYPE_CHECKING:
    import polars


def lazy_frame(scanned: Scanned, columns: Sequence[str] | None, filter: Any) -> polars.LazyFrame:  # noqa: A002
    """The matching rows, read when the frame is collected."""
    import polars
    from polars.io.plugins import register_io_source

    dataset = TableDataset(scanned, columns, filter)
    schema: pa.Schema = dataset.schema
    empty = polars.from_arrow(schema.empty_table())

    def source(
        names: list[str] | None, predicate: polars.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[polars.DataFrame]:
        wanted = list(schema.names) if names is None else names
        looked_at = [] if predicate is None else [name for name in predicate.meta.root_names() if name not in wanted]
        condition = None if predicate is None else understood_part(predicate, schema)
        left = n_rows
        for batch in dataset.scan((wanted + looked_at) or schema.names[:1], condition, batch_size).to_batches():
            frame = polars.from_arrow(batch)
            assert isinstance(frame, polars.DataFrame)
            if predicate is not None:
                frame = frame.filter(predicate)
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            yield frame.select(wanted)
            if left == 0:
                return

    assert isinstance(empty, polars.DataFrame)
    return register_io_source(source, schema=empty.schema, explain_name="lakebed")


__all__ = ["lazy_frame"]
