"""Which keys older runs hold: against Python sets, with any cut into batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakebed.lsm.compaction.stored_keys import StoredKeys

KEYS = st.lists(st.tuples(st.integers(0, 20), st.sampled_from([None, "", "a", "b", "é"])), unique=True, max_size=40)


def batches(keys: list[tuple[int, str | None]], size: int) -> Iterator[pa.RecordBatch]:
    ordered = sorted(keys, key=lambda key: (key[0], key[1] is not None, key[1] or ""))
    for start in range(0, len(ordered), size):
        part = ordered[start : start + size]
        columns = [pa.array([key[0] for key in part], pa.int64()), pa.array([key[1] for key in part], pa.string())]
        yield pa.RecordBatch.from_arrays(columns, names=["n", "t"])


@given(asked=KEYS, runs=st.lists(KEYS, max_size=3), sizes=st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_membership(
    asked: list[tuple[int, str | None]], runs: list[list[tuple[int, str | None]]], sizes: tuple[int, int]
) -> None:
    """A key is found if and only if some run holds it, nulls included, however questions and runs are cut."""
    stored = StoredKeys([batches(run, sizes[0]) for run in runs], ["n", "t"])
    held = {key for run in runs for key in run}
    for batch in batches(asked, sizes[1]):
        expected = [(row["n"], row["t"]) in held for row in batch.to_pylist()]
        assert stored.contain(batch).tolist() == expected


def test_only_what_is_needed_is_read() -> None:
    """Batches behind the last question stay unread."""
    read = []

    def run() -> Iterator[pa.RecordBatch]:
        for batch in batches([(n, "a") for n in range(10)], 1):
            read.append(batch.column(0)[0].as_py())
            yield batch

    stored = StoredKeys([run()], ["n", "t"])
    assert stored.contain(next(batches([(2, "a"), (3, "b")], 2))).tolist() == [True, False]
    assert read == [0, 1, 2, 3, 4]
