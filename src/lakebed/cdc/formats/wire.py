"""Avro messages as registries of schemas have them: a zero, the number of a schema in four bytes, then the record."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidData

HEAD_BYTES: Final = 5
NOTHING: Final = -1
"""The number of a message that is none."""


def schema_numbers(bodies: pa.Array, what: str = "message") -> npt.NDArray[np.int64]:
    """The number of each message's schema; `NOTHING` for NULL."""
    is_there = bodies.is_valid().to_numpy(zero_copy_only=False)
    heads = pc.binary_slice(bodies.cast(pa.binary()), 0, HEAD_BYTES).fill_null(b"")
    lengths = pc.binary_length(heads).to_numpy()
    if np.any(is_there & (lengths < HEAD_BYTES)):
        raise InvalidData(
            f"a {what} is too short for one with the number of a schema in front",
            hint="was it written with a schema registry, and in Avro?",
        )
    numbers = np.full(len(bodies), NOTHING, np.int64)
    if not is_there.any():
        return numbers
    raw = np.frombuffer(heads.filter(pa.array(is_there)).cast(pa.binary(HEAD_BYTES)).buffers()[1], np.uint8)
    found = raw[: int(is_there.sum()) * HEAD_BYTES].reshape(-1, HEAD_BYTES)
    if np.any(found[:, 0]):
        raise InvalidData(
            f"a {what} does not begin with the zero that stands before the number of a schema",
            hint="was it written with a schema registry, and in Avro?",
        )
    numbers[is_there] = np.ascontiguousarray(found[:, 1:]).view(">u4")[:, 0]
    return numbers


__all__ = ["HEAD_BYTES", "NOTHING", "schema_numbers"]
