"""Taking rows by their places."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakebed.lsm.sorted_rows import Gather


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["aa", "bb", "cc", "dd"]),
        pa.array([b"\x00a", b"bb", b"\xffc", b"dd"], pa.binary()),
        pa.array(["a", "bb", "cc", "dd"]),
        pa.array(["aa", None, "cc", "dd"]),
        pa.array(["", "", "", ""]),
        pa.array([1, 2, None, 4], pa.int16()),
    ],
    ids=["texts of one length", "bytes of one length", "several lengths", "a null", "empty", "numbers"],
)
def test_rows_come_as_asked(values: pa.Array) -> None:
    """Whole batches and slices give what Arrow's own take gives."""
    whole = pa.record_batch({"v": values})
    for rows in (whole, whole.slice(1), whole.slice(1, 2)):
        places = np.array([rows.num_rows - 1, 0, 0], dtype=np.int64)
        taken = Gather(rows).take(places)
        taken.validate(full=True)
        assert taken.equals(rows.take(pa.array(places)))
