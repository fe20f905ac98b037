"""The lookup store finds old rows in local copies of files, keeps them within limits, and reads no file in vain."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.clock import FixedClock
from lakebed.lsm.lookup import local_file
from lakebed.lsm.lookup.store import LookupLimits, LookupStore
from lakebed.lsm.sections import SortedRun
from lakebed.metadata.data_file import EMPTY_STATS, DataFile
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.binary_row import encode_row
from lakebed.types.logical import BIGINT, STRING, DataField

FIELDS = (DataField(0, "k", BIGINT), DataField(1, "v", STRING))
NO_LIMIT = LookupLimits(1 << 60, 1 << 60)


class Shelf:
    """Files of rows that say which of them were read."""

    def __init__(self, files: dict[str, list[int]]) -> None:
        self.rows = files
        self.read_names: list[str] = []

    def file(self, name: str) -> DataFile:
        keys = self.rows[name]
        low, high = (encode_row([key], [BIGINT]) for key in (keys[0], keys[-1]))
        return DataFile(name, 10, len(keys), low, high, EMPTY_STATS, EMPTY_STATS, 0, 0, 0, 1)

    def read(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        self.read_names.append(file.file_name)
        keys = self.rows[file.file_name]
        for start in range(0, len(keys), 3):
            part = keys[start : start + 3]
            values = [f"{file.file_name}{key}" for key in part]
            yield pa.RecordBatch.from_arrays(
                [pa.array(part, pa.int64()), pa.array(values)], schema=to_arrow_schema(FIELDS)
            )


def _find(store: LookupStore, shelf: Shelf, runs: list[list[str]], keys: list[int]) -> dict[int, str]:
    asked = pa.RecordBatch.from_arrays([pa.array(keys, pa.int64())], names=["k"])
    sorted_runs = [SortedRun(tuple(shelf.file(name) for name in run)) for run in runs]
    found, rows = store.find(sorted_runs, asked, [BIGINT], FIELDS, shelf.read)
    assert rows["k"].to_pylist() == [key for key, is_found in zip(keys, found.tolist(), strict=True) if is_found]
    return dict(zip(rows["k"].to_pylist(), rows["v"].to_pylist(), strict=True))


KEYS = st.lists(st.integers(0, 30), min_size=1, max_size=25, unique=True).map(sorted)


@given(first=KEYS, second=KEYS, asked=KEYS, chunk_rows=st.integers(1, 8))
def test_first_run_counts(first: list[int], second: list[int], asked: list[int], chunk_rows: int) -> None:
    """A key is found in the first run that holds it, in its order, whatever the size of chunks."""
    shelf = Shelf({"a": first, "b": second})
    store = LookupStore(NO_LIMIT, FixedClock(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_file, "CHUNK_ROWS", chunk_rows)
        found = _find(store, shelf, [["a"], ["b"]], asked)
    expected = {key: f"b{key}" for key in second} | {key: f"a{key}" for key in first}
    assert found == {key: value for key, value in expected.items() if key in asked}


def test_copies_are_made_once() -> None:
    """A second question reads no file again; files without a key that is asked for are never read."""
    shelf = Shelf({"a": [1, 2, 3], "b": [5, 9], "c": [20]})
    store = LookupStore(NO_LIMIT, FixedClock(0))
    for _ in range(2):
        assert _find(store, shelf, [["a", "b", "c"]], [2, 4, 9]) == {2: "a2", 9: "b9"}
    assert shelf.read_names == ["a", "b"]
    assert _find(store, shelf, [["a", "b", "c"]], [20]) == {20: "c20"}
    assert shelf.read_names == ["a", "b", "c"]


def test_space_is_limited() -> None:
    """What was used longest ago goes first when space runs out, and is copied anew when it is asked for again."""
    shelf = Shelf({"a": [1], "b": [2]})
    store = LookupStore(LookupLimits(1, 1 << 60), FixedClock(0))
    for key, value in ((1, "a1"), (2, "b2"), (1, "a1")):
        assert _find(store, shelf, [["a"], ["b"]], [key]) == {key: value}
        assert len(os.listdir(store.directory)) == 1
    assert shelf.read_names == ["a", "b", "a"]


def test_copies_age() -> None:
    """A copy that nobody used for the time that copies are kept is removed."""
    shelf = Shelf({"a": [1], "b": [2]})
    store = LookupStore(LookupLimits(1 << 60, 10), FixedClock(0, step_ms=6))
    for key in (1, 2, 1, 2):
        _find(store, shelf, [["a"], ["b"]], [key])
    assert shelf.read_names == ["a", "b", "a", "b"]


def test_failed_copy_leaves_nothing() -> None:
    """A file that can not be read leaves no half copy behind."""
    shelf = Shelf({"a": [1]})
    store = LookupStore(NO_LIMIT, FixedClock(0))

    def broken(file: DataFile) -> Iterator[pa.RecordBatch]:
        yield from shelf.read(file)
        raise OSError("gone")

    asked = pa.RecordBatch.from_arrays([pa.array([1], pa.int64())], names=["k"])
    with pytest.raises(OSError, match="gone"):
        store.find([SortedRun((shelf.file("a"),))], asked, [BIGINT], FIELDS, broken)
    assert os.listdir(store.directory) == []
    directory = store.directory
    del store
    assert not os.path.exists(directory)
