"""The one shape in which rows of a primary-key table travel between the parts of the engine.

    _SEQUENCE_NUMBER int64 · _VALUE_KIND int8 · all (or the projected) table columns, the key's among them

Sequence numbers say in which order rows of one key arrived; kinds say what each row stands for. Key columns are not
repeated in front as they are in files: `datafiles/` adds the `_KEY_` copies when it writes and never reads them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SEQUENCE_NUMBER = "_SEQUENCE_NUMBER"
VALUE_KIND = "_VALUE_KIND"
KEY_PREFIX = "_KEY_"

SEQUENCE_FIELD = pa.field(SEQUENCE_NUMBER, pa.int64(), nullable=False)
KIND_FIELD = pa.field(VALUE_KIND, pa.int8(), nullable=False)


def with_system_columns(rows: pa.RecordBatch, sequence_numbers: pa.Array, kinds: pa.Array) -> pa.RecordBatch:
    """Table rows in key-value shape."""
    schema = pa.schema([SEQUENCE_FIELD, KIND_FIELD, *rows.schema])
    return pa.RecordBatch.from_arrays([sequence_numbers, kinds, *rows.columns], schema=schema)


def without_system_columns(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The table columns alone."""
    return rows.select([name for name in rows.schema.names if name not in (SEQUENCE_NUMBER, VALUE_KIND)])


def sequence_numbers(rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Sequence numbers as numpy, without a copy."""
    return np.asarray(rows.column(SEQUENCE_NUMBER))


def kinds(rows: pa.RecordBatch) -> npt.NDArray[np.int8]:
    """Row kinds as numpy, without a copy."""
    return np.asarray(rows.column(VALUE_KIND))
