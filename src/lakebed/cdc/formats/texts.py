"""Values that messages carry as text, as values of their column's type."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import SourceColumn
from lakebed.cdc.rows.json_values import from_json
from lakebed.errors import InvalidData
from lakebed.schema.casts import cast_array
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import STRING, TIMESTAMPS, ArrayType, AtomicType, TypeRoot, is_root, timestamp_ltz

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


def moments_ms(texts: pa.Array) -> npt.NDArray[np.int64]:
    """Milliseconds since the epoch of moments in text; one without a zone is one of UTC, NULL is 0."""
    moments = from_json(texts, timestamp_ltz(3)).cast(pa.timestamp("ms", tz="UTC"))
    found: npt.NDArray[np.int64] = moments.cast(pa.int64()).fill_null(0).to_numpy()
    return found


def names_in(text: str | None) -> tuple[str, ...]:
    """The names in a list of JSON; none where there is none."""
    return tuple(str(name) for name in json.loads(text) or ()) if text else ()


__all__ = ["from_text", "moments_ms", "names_in"]
