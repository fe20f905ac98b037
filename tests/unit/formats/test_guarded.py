"""Damage inside data files: any bit of any file of ours is noticed before its rows are seen, or changes nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.errors import CorruptFile
from lakebed.formats import FORMATS, WriteSettings
from lakebed.formats.guarded import BlockSums, Broken, find_guard
from lakebed.types.logical import DataField, parse_type

FIELDS = [
    DataField(0, "id", parse_type("BIGINT NOT NULL")),
    DataField(1, "s", parse_type("STRING")),
    DataField(2, "b", parse_type("BOOLEAN")),
    DataField(3, "a", parse_type("ARRAY<INT>")),
]
GUARDED = [
    *(("parquet", codec) for codec in ("zstd", "snappy", "none")),
    *(("orc", codec) for codec in ("zstd", "snappy", "none")),
    *(("avro", codec) for codec in ("zstd", "snappy", "deflate")),
]
FLIPS = 150


def _rows(count: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "s": [f"text {number * 7919 % 1009}" if number % 9 else None for number in range(count)],
            "b": [number % 3 == 0 for number in range(count)],
            "a": pa.array([[number, None] for number in range(count)], pa.list_(pa.int32())),
        }
    )


def _file(name: str, codec: str, rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    writer = FORMATS[name].open_writer(sink, FIELDS, WriteSettings(compression=codec))
    for start in range(0, rows.num_rows, 5000):
        writer.write(rows.slice(start, 5000))
    writer.close()
    return bytes(sink.getvalue().to_pybytes())


def _read(name: str, source: pa.NativeFile, fields: list[DataField]) -> pa.Table:
    with FORMATS[name].open_reader(source, "some/path") as reader:
        return pa.Table.from_batches([batch for _, batch in reader.read(fields)])


@pytest.mark.parametrize(("name", "codec"), GUARDED)
def test_flipped_bits(name: str, codec: str) -> None:
    """A flip anywhere in a file is refused, or the rows are those that were written."""
    rows = _rows(60)
    sound = _file(name, codec, rows)
    right = _read(name, pa.BufferReader(sound), FIELDS)
    assert right.to_pylist() == rows.to_pylist()
    chance = random.Random(7)
    refused = 0
    for bit in chance.sample(range(len(sound) * 8), FLIPS):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            assert _read(name, pa.BufferReader(bytes(damaged)), FIELDS).equals(right), bit
        except CorruptFile as error:
            refused += "some/path" in error.message
    assert refused > FLIPS // 2


@pytest.mark.parametrize("name", ["parquet", "orc"])
def test_columns_of_a_large_file_on_disk(tmp_path: Path, name: str) -> None:
    """Of a file that is not read as a whole, what a column needs is verified: damage elsewhere is not its business."""
    sound = _file(name, "none", _rows(40_000))
    assert len(sound) > 4 * 65536
    path = tmp_path / "file"
    path.write_bytes(sound)
    right = {field.name: _read(name, pa.OSFile(str(path)), [field]) for field in FIELDS}
    refusals: dict[str, int] = dict.fromkeys(right, 0)
    chance = random.Random(3)
    for bit in chance.sample(range(len(sound) * 8), 12):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        for field in FIELDS:
            try:
                assert _read(name, pa.OSFile(str(path)), [field]).equals(right[field.name])
            except CorruptFile:
                refusals[field.name] += 1
    assert 0 < sum(refusals.values()) < 12 * len(FIELDS)


def test_cut_files_are_refused() -> None:
    """A guarded file that lost its end, or a part in front, is not taken for one without a guard."""
    sound = _file("orc", "zstd", _rows(60))
    for cut in (1, 20, 100, len(sound) // 2):
        for damaged in (sound[:-cut], sound[cut:]):
            with pytest.raises(CorruptFile):
                _read("orc", pa.BufferReader(damaged), FIELDS)


def test_a_guarded_file_inside_another_is_a_value() -> None:
    """A mark that belongs to a file stored in a column of somebody else's file is not the guard of that file."""
    sums = BlockSums()
    sums.add(b"content")
    inner = b"content" + sums.guard(b"tail") + b"tail"
    assert find_guard(pa.BufferReader(inner), lambda end: 4) is not None
    assert find_guard(pa.BufferReader(b"more" + inner + b"footer"), lambda end: 6) is None
    with pytest.raises(Broken, match="footer"):
        find_guard(pa.BufferReader(inner[:-1] + b"L"), lambda end: 4)
    with pytest.raises(Broken, match="damaged"):
        find_guard(pa.BufferReader(b"more" + inner), lambda end: 4)
