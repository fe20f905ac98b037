"""Values that messages carry as text, as values of their column's type."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import SourceColumn
from lakebed.errors import InvalidData
from lakebed.schema.casts import cast_array
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import STRING, TIMESTAMPS, ArrayType, AtomicType, TypeRoot, is_root

_ZERO_DATE = "0000-00-00"
"""MySQL's date that is none."""


def from_text(texts: pa.Array, column: SourceColumn, table: str | None) -> pa.Array:
    """The values; dates that do not exist are NULL."""
    if isinstance(column.type, ArrayType):
        return pc.split_pattern(texts, ",").cast(to_arrow_type(column.type))
    if not isinstance(column.type, AtomicType):
        raise InvalidData(
            f"column `{column.name}` of type {column.type} can not be read from text", hint="leave it out"
        )
    if is_root(column.type, TIMESTAMPS | {TypeRoot.DATE}):
        nothing = pc.fill_null(pc.starts_with(texts, _ZERO_DATE), False)
        texts = pc.if_else(nothing, pa.scalar(None, texts.type), texts)
    try:
        return cast_array(texts, STRING, column.type)
    except InvalidData as error:
        raise InvalidData(f"column `{column.name}` of `{table}`: {error.message}", hint=error.hint) from error


__all__ = ["from_text"]
