"""Which row groups of a Parquet file may hold matching rows.

pyarrow simplifies an expression by the statistics of each row group. It is trusted for columns whose statistics bound
every value; a filter that touches anything else (floats, where NaN lies outside all bounds; nested columns) prunes
nothing. Leaving out a row group too many would lose rows, keeping one too many costs time only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.formats.conform import as_corrupt
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.logical import DataField


def kept_row_groups(
    source: pa.NativeFile, schema: pa.Schema, fields: Sequence[DataField], keep: pc.Expression, path: str
) -> list[int]:
    """Numbers of the row groups that can not be excluded. `schema` is the file's own."""
    import pyarrow.dataset as ds  # at the top it would make `import lakebed` load pandas, which takes a second

    with as_corrupt(path):
        fragment = ds.ParquetFileFormat().make_fragment(source)
        every = [group.id for group in fragment.row_groups]
    if _mentions_unbounded(keep, schema):
        return every
    absent = [field for field in to_arrow_schema(fields) if field.name not in schema.names]
    try:
        return [group.id for group in fragment.subset(keep, schema=pa.schema([*schema, *absent])).row_groups]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        # A literal of another type, or a column that neither the file nor the request knows: no evidence, no pruning.
        return every


def _mentions_unbounded(keep: pc.Expression, schema: pa.Schema) -> bool:
    """Expressions can not be walked, only printed; a name that occurs by chance makes this err on the safe side."""
    text = str(keep)
    if "FieldPath(" in text:
        return True
    unbounded = [field.name for field in schema if pa.types.is_nested(field.type) or pa.types.is_floating(field.type)]
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in unbounded)
