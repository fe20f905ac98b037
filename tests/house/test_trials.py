"""What is said to take one file and one line does: each is added here, and works without a change anywhere else."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import lakebed
from lakebed.definition.bucket_mode import BUCKET_MODES, BucketMode, TaskNeeds
from lakebed.write.placement import PLACEMENTS, PlacedRows, Placement

EVEN_AND_ODD = BucketMode(
    "even-and-odd", lambda schema, _: "parity_of" in schema.field_names, TaskNeeds.WHOLE_BUCKETS, hashes_keys=False
)


class EvenAndOdd(Placement):
    """Even keys in one bucket, odd ones in the other."""

    mode = EVEN_AND_ODD

    def place(self, rows: pa.RecordBatch, kinds: pa.Array) -> PlacedRows:
        keys = np.asarray(rows.column("parity_of"))
        return PlacedRows(rows, kinds, (keys % 2).astype(np.int64))


@pytest.fixture
def registered() -> Iterator[None]:
    """The one line."""
    BUCKET_MODES.insert(0, EVEN_AND_ODD)
    PLACEMENTS[EVEN_AND_ODD] = EvenAndOdd
    yield
    BUCKET_MODES.remove(EVEN_AND_ODD)
    del PLACEMENTS[EVEN_AND_ODD]


@pytest.mark.usefixtures("registered")
def test_a_bucket_mode() -> None:
    """Rows are written, merged, compacted and read through it, and the table is in order."""
    lake = lakebed.connect("memory://trial-mode")
    table = lake.create_table("t", {"parity_of": "INT NOT NULL", "v": "INT"}, primary_key=["parity_of"])
    for round_number in range(3):
        keys = list(range(round_number, round_number + 4))
        table.write(pa.table({"parity_of": pa.array(keys, pa.int32()), "v": pa.array([round_number] * 4, pa.int32())}))
    assert {split.bucket for split in table.scan().splits} == {0, 1}
    table.compact(full=True)
    rows = sorted(table.to_arrow().to_pylist(), key=lambda row: row["parity_of"])
    assert [row["v"] for row in rows] == [0, 1, 2, 2, 2, 2]
    assert not table.check()
