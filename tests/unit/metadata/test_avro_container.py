"""Avro container files: what others write is read, what is damaged is refused."""

from __future__ import annotations

import io
import json
import zlib
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lakebed.errors import CorruptFile, InvalidOption, Unsupported
from lakebed.metadata.avro_container import RecordSchema, UnknownVersion, decode, encode, optional, required

NAME = "test.record"


def build(version: int, name: str, note: str | None) -> tuple[str, str | None]:
    """What the tests make of a record."""
    if version != 1:
        raise UnknownVersion(f"version {version}")
    return name, note


SCHEMA = RecordSchema(
    NAME, [required("v", "int"), required("name", "string"), optional("note", "string")], {NAME: build}
)
RECORDS: list[dict[str, Any]] = [{"v": 1, "name": f"n{i}", "note": None if i % 3 else "x" * i} for i in range(300)]
EXPECTED = [(record["name"], record["note"]) for record in RECORDS]


def foreign(schema: Any, records: list[Any], codec: str = "null") -> bytes:
    """A file as fastavro writes it, with several blocks."""
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec=codec, sync_interval=500)
    return out.getvalue()


@pytest.mark.parametrize("compression", ["zstd", "ZSTD", "deflate", "none", "null"])
def test_round_trip(compression: str) -> None:
    """What is written comes back, with and without records."""
    assert decode(encode(SCHEMA, RECORDS, compression, 1), SCHEMA, "p") == EXPECTED
    assert decode(encode(SCHEMA, [], compression, 1), SCHEMA, "p") == []


@pytest.mark.parametrize("compression", ["zstd", "deflate", "none"])
def test_another_avro_library_reads_our_files(compression: str) -> None:
    """Our framing, header entries and frames are plain Avro to fastavro's own reader."""
    reader = fastavro.reader(io.BytesIO(encode(SCHEMA, RECORDS, compression, 1)))
    assert list(reader) == RECORDS
    assert reader.writer_schema["name"] == NAME


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard", "bzip2", "xz"])
def test_codecs_of_other_writers_are_read(codec: str) -> None:
    """Every codec that needs no further package is understood."""
    assert decode(foreign(SCHEMA.record, RECORDS, codec), SCHEMA, "p") == EXPECTED


def test_snappy_is_read() -> None:
    """A snappy block is raw snappy and a checksum, which is verified."""
    payload = b"".join(bytes([2, 4]) + record["name"].encode() + b"\0" for record in RECORDS[1:3])
    packed = pa.Codec("snappy").compress(payload, asbytes=True) + zlib.crc32(payload).to_bytes(4, "big")
    header, sync = foreign(SCHEMA.record, [], "deflate").replace(b"\x0edeflate", b"\x0csnappy"), bytes(16)
    file = header[:-16] + sync + bytes([4, 2 * len(packed)]) + packed + sync
    assert decode(file, SCHEMA, "p") == EXPECTED[1:3]
    broken = file[:-17] + bytes([file[-17] ^ 1]) + sync
    with pytest.raises(CorruptFile, match="checksum"):
        decode(broken, SCHEMA, "p")


def test_an_unwritable_compression_is_refused() -> None:
    """The message offers what works."""
    with pytest.raises(InvalidOption, match="zst"):
        encode(SCHEMA, RECORDS, "zsdt", 1)


def test_another_version_is_not_corruption() -> None:
    """A record of another version of the format is said to be newer."""
    with pytest.raises(Unsupported, match=r"p was written by a newer format: version 2"):
        decode(encode(SCHEMA, [{**RECORDS[0], "v": 2}], "zstd", 1), SCHEMA, "p")


@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_every_truncation_is_noticed(compression: str) -> None:
    """A file cut off anywhere is refused, except just after its header, where it is an empty file."""
    data = encode(SCHEMA, RECORDS, compression, 1)
    header = len(encode(SCHEMA, [], compression, 1))
    for length in (*range(0, header), *range(header + 1, len(data), 7), len(data) - 1):
        with pytest.raises(CorruptFile, match="some/path"):
            decode(data[:length], SCHEMA, "some/path")


@pytest.mark.parametrize("compression", ["zstd", "snappy", "deflate", "none"])
def test_every_flipped_bit_of_our_files_is_noticed_or_harmless(compression: str) -> None:
    """The checksum covers header and blocks of any codec: a flip is refused, or what is read is still right."""
    data = encode(SCHEMA, RECORDS[:40], compression, 1)
    harmless = 0
    for position in range(len(data)):
        for bit in (0, 3, 7):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            try:
                records = decode(bytes(damaged), SCHEMA, "p")
            except CorruptFile:
                continue
            assert records == EXPECTED[:40], (position, bit)
            harmless += 1
    # Only the header entry that holds the checksum's own name may change unnoticed.
    assert harmless < 3 * 40


@pytest.mark.parametrize("codec", ["null", "zstandard", "deflate"])
def test_no_flipped_bit_of_foreign_files_escapes_as_another_error(codec: str) -> None:
    """Whatever the bytes are, the outcome is records or one of our errors."""
    data = foreign(SCHEMA.record, RECORDS[:40], codec)
    refused = 0
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << (position % 8)
        try:
            decode(bytes(damaged), SCHEMA, "p")
        except (CorruptFile, Unsupported):
            refused += 1
    assert refused > len(data) // 4


@pytest.mark.parametrize(
    "data", [b"", b"Obj", b"Obj\x02", b"PAR1" * 10, b"Obj\x01" + b"\xff" * 30, b"Obj\x01\x00" + b"s" * 16]
)
def test_other_files_are_not_taken_for_avro(data: bytes) -> None:
    """Foreign bytes, and a container without a schema."""
    with pytest.raises(CorruptFile, match="some/path"):
        decode(data, SCHEMA, "some/path")


def test_a_wrong_record_count_is_noticed() -> None:
    """Fewer records than the block holds would be a silent loss."""
    data = encode(SCHEMA, RECORDS[:5], "none", 1)
    header = len(encode(SCHEMA, [], "none", 1))
    assert data[header] == 10
    for count in (8, 12, 0, 9):
        with pytest.raises(CorruptFile):
            decode(data[:header] + bytes([count]) + data[header + 1 :], SCHEMA, "p")


def test_an_unknown_codec_is_named() -> None:
    """The error says which codec it was."""
    data = foreign(SCHEMA.record, RECORDS, "zstandard").replace(b"zstandard", b"zstandarf", 1)
    with pytest.raises(CorruptFile, match="zstandarf"):
        decode(data, SCHEMA, "p")


def test_a_logical_type_stays_an_integer() -> None:
    """Times are not decoded: an instant beyond Python's calendar is still a number."""
    timed = RecordSchema(
        "test.timed", [optional("t", {"type": "long", "logicalType": "timestamp-millis"})], {"test.timed": lambda t: t}
    )
    assert decode(encode(timed, [{"t": 1 << 62}, {"t": None}], "zstd", 1), timed, "p") == [1 << 62, None]
    assert "timestamp-millis" in json.dumps(timed.record)
