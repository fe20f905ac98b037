"""The buffer in front of level 0: numbers, order, folding, local disk, deletes as barriers."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakebed.lsm import sorted_rows, spill
from lakebed.lsm import write_buffer as growing_rows
from lakebed.lsm.spill import Spill, SpillRules
from lakebed.lsm.write_buffer import RetractsFirst, WriteBuffer
from lakebed.merge.aggregation import Aggregation
from lakebed.merge.base import MergeEngine, MergeOrder, MergeSetup
from lakebed.merge.deduplicate import Deduplicate
from lakebed.options import Options
from lakebed.types.key_value import SEQUENCE_NUMBER, VALUE_KIND
from lakebed.types.logical import DataField, parse_type

ORDER = MergeOrder(("k",))
RULES = SpillRules(1 << 30, "zstd", 1, 4)


def rows(*keys: int) -> tuple[pa.RecordBatch, pa.Array]:
    """Added rows with these keys."""
    return pa.RecordBatch.from_pydict({"k": pa.array(keys, pa.int64())}), pa.array([0] * len(keys), pa.int8())


def changes(*given: tuple[str, int, int | None]) -> tuple[pa.RecordBatch, pa.Array]:
    """Rows of (kind, key, value)."""
    kinds = pa.array([["+I", "-U", "+U", "-D"].index(kind) for kind, _, _ in given], pa.int8())
    columns = {
        "k": pa.array([key for _, key, _ in given], pa.int64()),
        "v": pa.array([v for _, _, v in given], pa.int32()),
    }
    return pa.RecordBatch.from_pydict(columns), kinds


def summing(**options: str) -> MergeEngine:
    """An engine that adds up `v`."""
    fields = (DataField(0, "k", parse_type("BIGINT")), DataField(1, "v", parse_type("INT")))
    return Aggregation(MergeSetup(fields, ("k",), Options({"fields.v.aggregate-function": "sum", **options})))


def run_rows(run: spill.Run, *names: str) -> list[tuple[object, ...]]:
    """These columns of each row of a run."""
    return [tuple(row[name] for name in names) for batch in run for row in batch.to_pylist()]


def numbers(buffer: WriteBuffer, on_disk: Spill | None = None) -> list[tuple[object, ...]]:
    """Key and number of each row of the only run."""
    (run,) = buffer.runs(on_disk)
    return run_rows(run, "k", SEQUENCE_NUMBER)


def test_rows_come_out_sorted_and_folded_with_numbers_in_arrival_order() -> None:
    """Numbers go on across batches from the start that was given."""
    filled = WriteBuffer(ORDER, Deduplicate(), 40)
    filled.add(*rows(3, 1))
    filled.add(*rows(1, 2))
    assert numbers(filled) == [(1, 42), (2, 43), (3, 40)]


def test_numbers_go_on_after_a_flush_and_the_buffer_is_empty() -> None:
    """A second flush of the same writer is newer than the first; size counts what is in memory."""
    filled = WriteBuffer(ORDER, Deduplicate(), 0)
    filled.add(*rows(1))
    assert filled.size_bytes == 9
    assert numbers(filled) == [(1, 0)]
    assert filled.size_bytes == 0
    assert list(filled.runs()) == []
    filled.add(*rows(1))
    assert numbers(filled) == [(1, 1)]


def test_keys_that_do_not_fit_beside_a_place() -> None:
    """Keys of full width are sorted as well, and the later row of a key wins."""
    filled = WriteBuffer(ORDER, Deduplicate(), 0)
    filled.add(*rows(2**62, -(2**62), 0, 2**62))
    assert numbers(filled) == [(-(2**62), 1), (0, 2), (2**62, 3)]


def test_windows_end_at_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows leave in windows; a key is never cut in two, however many rows it has."""
    monkeypatch.setattr(sorted_rows, "WINDOW_ROWS", 3)
    filled = WriteBuffer(ORDER, summing(), 0)
    keys = np.random.default_rng(1).integers(0, 6, 40).tolist()
    filled.add(*changes(*(("+I", key, 1) for key in keys)))
    (run,) = filled.runs()
    batches = list(run)
    assert len(batches) > 1
    found = [(row["k"], row["v"]) for batch in batches for row in batch.to_pylist()]
    assert found == [(key, keys.count(key)) for key in sorted(set(keys))]


def test_spilled_rows_are_merged_with_those_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More runs than may be open at a time give one run with every key once, and leave no file behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(spill, "_BATCH_BYTES", 64)
    on_disk = Spill(RULES)
    filled = WriteBuffer(ORDER, summing(), 0)
    keys = np.random.default_rng(1).integers(0, 50, 300).tolist()
    for start in range(0, 300, 20):
        filled.add(*changes(*(("+I", key, 1) for key in keys[start : start + 20])))
        if start < 280:
            filled.spill(on_disk)
            assert filled.size_bytes == 0
    assert len(list(tmp_path.rglob("*.arrows"))) == 14
    assert on_disk.used_bytes == sum(path.stat().st_size for path in tmp_path.rglob("*.arrows"))
    (run,) = filled.runs(on_disk)
    last = {key: place for place, key in enumerate(keys)}
    expected = [(key, keys.count(key), last[key]) for key in sorted(set(keys))]
    assert run_rows(run, "k", "v", SEQUENCE_NUMBER) == expected
    assert list(tmp_path.rglob("*.arrows")) == []
    assert on_disk.used_bytes == 0
    on_disk.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("compression", ["zstd", "lz4", "none"])
def test_spilled_rows_keep_their_order(compression: str) -> None:
    """A row on disk is older than one in memory, unless its sequence column says otherwise."""
    for order, winner in ((ORDER, 3), (MergeOrder(("k",), ("v",)), 9)):
        on_disk = Spill(SpillRules(1 << 30, compression, 3, 128))
        filled = WriteBuffer(order, Deduplicate(), 0)
        filled.add(*changes(("+I", 1, 9)))
        filled.spill(on_disk)
        filled.add(*changes(("+I", 1, 3)))
        (run,) = filled.runs(on_disk)
        assert run_rows(run, "v") == [(winner,)]
        on_disk.close()


def test_room_on_disk() -> None:
    """What is on disk counts against the limit until it is merged."""
    on_disk = Spill(SpillRules(2000, "none", 1, 128))
    assert on_disk.has_room_for(2000)
    filled = WriteBuffer(ORDER, Deduplicate(), 0)
    filled.add(*rows(1, 2))
    filled.spill(on_disk)
    assert not on_disk.has_room_for(2000)
    numbers(filled, on_disk)
    assert on_disk.has_room_for(2000)
    on_disk.close()


def test_a_spill_that_is_dropped_takes_its_files_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if nobody closes it, nothing stays on disk."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    on_disk = Spill(RULES)
    filled = WriteBuffer(ORDER, Deduplicate(), 0)
    filled.add(*rows(1, 2))
    filled.spill(on_disk)
    assert list(tmp_path.rglob("*.arrows")) != []
    del on_disk
    assert list(tmp_path.iterdir()) == []


def barrier_buffer() -> WriteBuffer:
    """A buffer of an engine whose -D rows remove what was before."""
    engine = summing(**{"aggregation.remove-record-on-delete": "true"})
    return WriteBuffer(ORDER, engine, 100, deletes_are_barriers=True)


def test_rows_after_a_delete_make_a_run_of_their_own() -> None:
    """The first run ends each key with its last delete; everything in the second is newer than all of the first."""
    filled = barrier_buffer()
    filled.add(*changes(("+I", 1, 1), ("-D", 1, 1), ("+I", 1, 5), ("-D", 1, 5), ("+I", 1, 7), ("+I", 1, 8)))
    filled.add(*changes(("+I", 2, 3), ("+I", 2, 4), ("-D", 3, 1), ("+I", 0, 2)))
    first, second = (run_rows(run, "k", VALUE_KIND, "v", SEQUENCE_NUMBER) for run in filled.runs())
    assert first == [(0, 0, 2, 100), (1, 3, 5, 101), (2, 0, 7, 102), (3, 3, 1, 103)]
    assert [row[:3] for row in second] == [(1, 0, 15)]
    assert 103 < second[0][3] < 110  # type: ignore[operator]
    filled.add(*changes(("+I", 1, 1)))
    assert numbers(filled) == [(1, 110)]


def test_deletes_that_nothing_follows_need_no_second_run() -> None:
    """Without rows after a delete there is one run, as ever."""
    filled = barrier_buffer()
    assert not filled.may_spill
    filled.add(*changes(("+I", 1, 1), ("-D", 1, 1), ("+I", 2, 1)))
    assert numbers(filled) == [(1, 101), (2, 102)]


def test_retracts_first_among_equals() -> None:
    """With equal sequence values a retract comes before an add, on disk and in memory; other rows keep their places."""
    order = RetractsFirst.among_equals_of(MergeOrder(("k",), ("v",)))
    for spilled in (False, True):
        on_disk = Spill(RULES)
        filled = WriteBuffer(order, Deduplicate(), 0)
        filled.add(*changes(("+I", 1, 5), ("+I", 2, 5), ("+I", 3, 5)))
        if spilled:
            filled.spill(on_disk)
        filled.add(*changes(("-D", 1, 5), ("-D", 2, 6), ("+U", 3, 5)))
        (run,) = filled.runs(on_disk)
        assert run_rows(run, "k", VALUE_KIND) == [(1, 0), (2, 3), (3, 2)]
        on_disk.close()


def test_rows_of_every_type_are_copied_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices with and without nulls, of all kinds of columns, come back as they were, and parents are let go."""
    monkeypatch.setattr(growing_rows, "_COPY_FROM_BYTES", 1)
    values = pa.table(
        {
            "number": pa.array([1, None, 3, 4, 5, 6], pa.int32()),
            "text": pa.array(["a", "", None, "dd", "e", "ff"]),
            "plain": pa.array([b"x", b"", b"yy", b"z", b"w", b"v"], pa.binary()),
            "flag": pa.array([True, None, False, True, True, False]),
            "amount": pa.array([1, 2, None, 4, 5, 6], pa.int64()).cast(pa.decimal128(20, 0)),
            "many": pa.array([[1], [], None, [2, 3], [4], [5]], pa.list_(pa.int8())),
            "day": pa.array([1, 2, 3, 4, 5, None], pa.int32()).cast(pa.date32()),
            "nothing": pa.array([None] * 6, pa.string()),
        }
    )
    (batch,) = values.to_batches()
    for cuts in ([0, 6], [0, 1, 2, 6], [0, 3, 5, 6], [2, 5, 6]):
        grown = growing_rows.GrowingRows()
        for start, end in itertools.pairwise(cuts):
            grown.add(batch.slice(start, end - start))
        joined = grown.joined()
        joined.validate(full=True)
        assert joined.equals(batch.slice(cuts[0]))
        assert grown.row_count == 6 - cuts[0]
