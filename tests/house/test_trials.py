"""What is said to take one file and one line does: each is added here, and works without a change anywhere else."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import lakebed
from lakebed.changes.position import StreamPosition
from lakebed.changes.scan_modes import SCAN_MODES, ScanMode
from lakebed.definition.bucket_mode import BUCKET_MODES, BucketMode, TaskNeeds
from lakebed.options import SCAN_MODE
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


OLDEST = "oldest"


@pytest.fixture
def oldest() -> Iterator[None]:
    """The entry, and its word among the choices of the option."""
    words = SCAN_MODE.choices
    SCAN_MODES[OLDEST] = ScanMode(
        lambda context, history: StreamPosition(history.earliest_id() or 1),
        snapshot=lambda context: context.stores.snapshots.get(context.stores.snapshots.earliest_id() or 1),
    )
    object.__setattr__(SCAN_MODE, "choices", (*words, OLDEST))
    yield
    object.__setattr__(SCAN_MODE, "choices", words)
    del SCAN_MODES[OLDEST]


@pytest.mark.usefixtures("oldest")
def test_a_scan_mode() -> None:
    """Reads that end, lookups and streams begin where it says."""
    lake = lakebed.connect("memory://trial-scan-mode")
    table = lake.create_table("t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"])
    for value in (1, 2, 3):
        table.write(pa.table({"k": pa.array([1], pa.int32()), "v": pa.array([value], pa.int32())}))
    opened = table.with_options({"scan.mode": "Oldest"})
    assert opened.to_arrow()["v"].to_pylist() == [1]
    assert opened.lookup([1])["v"].to_pylist() == [1]
    assert [rows["v"].to_pylist() for rows in opened.follow()] == [[1], [2], [3]]
    assert [rows["v"].to_pylist() for rows in table.follow(options={"scan.mode": OLDEST})] == [[1], [2], [3]]
    assert table.to_arrow()["v"].to_pylist() == [3]
