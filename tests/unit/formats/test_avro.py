"""Avro: the dialect, compared with an independent implementation in both directions."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.formats.format_samples import SAMPLES, field, not_null, read, row, table, written

from lakebed.errors import CorruptFile, InvalidSchema, Unsupported
from lakebed.formats import FORMATS
from lakebed.formats.avro.encode import encode_long
from lakebed.formats.avro.schema import avro_schema
from lakebed.types import logical as lt
from lakebed.types.logical import ArrayType, DataField, DataType, MapType, MultisetType

DIALECT = [
    (not_null(lt.TINYINT), "int"),
    (lt.BIGINT, ["null", "long"]),
    (not_null(lt.binary(3)), "bytes"),
    (not_null(lt.char(3)), "string"),
    (not_null(lt.decimal(9, 2)), {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    (not_null(lt.DATE), {"type": "int", "logicalType": "date"}),
    (not_null(lt.time(0)), {"type": "int", "logicalType": "time-millis"}),
    (not_null(lt.timestamp(3)), {"type": "long", "logicalType": "timestamp-millis"}),
    (not_null(lt.timestamp(6)), {"type": "long", "logicalType": "timestamp-micros"}),
    (not_null(lt.timestamp_ltz(0)), {"type": "long", "logicalType": "local-timestamp-millis"}),
    (not_null(lt.timestamp_ltz(6)), {"type": "long", "logicalType": "local-timestamp-micros"}),
    (not_null(ArrayType(lt.INT)), {"type": "array", "items": ["null", "int"]}),
    (not_null(MapType(lt.STRING, not_null(lt.INT))), {"type": "map", "values": "int"}),
    (not_null(MultisetType(lt.char(1))), {"type": "map", "values": ["null", "int"]}),
]


@pytest.mark.parametrize(("data_type", "expected"), DIALECT, ids=str)
def test_types_in_the_header(data_type: DataType, expected: Any) -> None:
    """Each type is declared the way other readers of these tables expect."""
    assert avro_schema([field(data_type)])["fields"][0]["type"] == expected


def test_maps_with_other_keys_and_record_names() -> None:
    """A map without text keys is an array of entries, and no two records share a name."""
    fields = [
        field(not_null(MapType(lt.INT, row(("x", lt.INT)))), "m", 1),
        field(row(("x", row(("y", lt.INT)))), "r", 2),
    ]
    schema = avro_schema(fields)
    items = schema["fields"][0]["type"]["items"]
    assert [member["name"] for member in items["fields"]] == ["key", "value"]
    assert items["fields"][0]["type"] == "int"
    fastavro.parse_schema(json.loads(json.dumps(schema)))
    assert schema["fields"][1]["default"] is None


@pytest.mark.parametrize(
    "data_type", [lt.timestamp(7), lt.timestamp_ltz(9), lt.time(6), lt.VARIANT, ArrayType(lt.timestamp(9))], ids=str
)
def test_unfit_types_are_refused(data_type: DataType) -> None:
    """What Avro can not express is refused with the column's name."""
    with pytest.raises(InvalidSchema, match="`c`"):
        FORMATS["avro"].check([field(data_type)])


def test_unfit_names_are_refused() -> None:
    """Avro restricts names."""
    with pytest.raises(InvalidSchema, match="`a-b`"):
        FORMATS["avro"].check([field(lt.INT, "a-b")])


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_are_encoded_as_elsewhere(value: int) -> None:
    """Variable-length integers equal those of another implementation."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", value)
    assert encode_long(value) == out.getvalue()


def test_another_implementation_reads_the_same_values() -> None:
    """fastavro decodes our files to the values that went in."""
    fields = [DataField(i, label, SAMPLES["avro"][label][0]) for i, label in enumerate(SAMPLES["avro"])]
    columns = [([None, *SAMPLES["avro"][f.name][1]] * 9)[:9] for f in fields]
    rows = table(fields, *columns)
    content, _ = written("avro", fields, rows)
    decoded = list(fastavro.reader(io.BytesIO(content)))
    simple = ("boolean", "bigint", "decimal9", "decimal38", "string", "bytes", "array", "row_in_row", "array_of_array")
    for label in simple:
        assert [record[label] for record in decoded] == rows[label].to_pylist(), label
    assert [None if r["map"] is None else list(r["map"].items()) for r in decoded] == rows["map"].to_pylist()
    entries = [
        None if r["map_int_key"] is None else [(e["key"], e["value"]) for e in r["map_int_key"]] for r in decoded
    ]
    assert entries == rows["map_int_key"].to_pylist()


VALUES = {
    "i": st.none() | st.integers(-(2**31), 2**31 - 1),
    "d": st.none() | st.decimals(-(10**10), 10**10, places=2),
    "s": st.none() | st.text(max_size=8).filter(lambda s: s.isascii() or s.encode("utf-8", "ignore").decode() == s),
    "l": st.none() | st.lists(st.none() | st.integers(-9, 9), max_size=3),
    "m": st.none() | st.dictionaries(st.sampled_from("abc"), st.none() | st.binary(max_size=3), max_size=2),
}
RANDOM_FIELDS = [
    field(lt.INT, "i", 1),
    field(lt.decimal(14, 2), "d", 2),
    field(lt.STRING, "s", 3),
    field(ArrayType(lt.TINYINT), "l", 4),
    field(MapType(not_null(lt.STRING), lt.BYTES), "m", 5),
]


@given(st.lists(st.tuples(*VALUES.values()), max_size=20), st.integers(0, 5))
@settings(max_examples=100, deadline=None)
def test_random_rows_survive(rows: list[Any], start: int) -> None:
    """Random nested rows come back equal, from slices too."""
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in RANDOM_FIELDS]
    columns[4] = [None if v is None else list(v.items()) for v in columns[4]]
    stored = table(RANDOM_FIELDS, *columns).slice(start)
    content, _ = written("avro", RANDOM_FIELDS, stored)
    assert read("avro", content, RANDOM_FIELDS).to_pydict() == stored.to_pydict()


def foreign(schema: Any, records: list[Any], codec: str = "null") -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec=codec)
    return out.getvalue()


def test_root_unions_and_either_timestamp_name() -> None:
    """Files whose root is optional, and timestamps under either name, read alike."""
    record = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "a", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "b", "type": ["null", {"type": "long", "logicalType": "local-timestamp-micros"}]},
            {"name": "skipped", "type": "string"},
        ],
    }
    content = foreign(["null", record], [{"a": 5, "b": 7, "skipped": "x"}, {"a": -1, "b": None, "skipped": ""}])
    for kind in (lt.timestamp, lt.timestamp_ltz):
        result = read("avro", content, [field(kind(6), "b"), field(kind(3), "a")])
        assert result["a"].cast(pa.int64()).to_pylist() == [5, -1]
        assert result["b"].cast(pa.int64()).to_pylist() == [7, None]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "zstandard"])
def test_codecs_of_other_writers(codec: str) -> None:
    """Blocks of every common codec are read."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": "string"}]}
    content = foreign(schema, [{"c": "x" * 50}] * 40, codec)
    assert read("avro", content, [field(lt.STRING)])["c"].to_pylist() == ["x" * 50] * 40


def test_unknown_things_are_unsupported() -> None:
    """Unions of several types are refused by name rather than misread."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": ["null", "string", "int"]}]}
    with pytest.raises(Unsupported, match="union"):
        read("avro", foreign(schema, [{"c": 1}]), [field(lt.STRING)])


def test_damaged_files_are_reported() -> None:
    """Truncation inside a block, damage to markers and foreign content are reported with the file's name."""
    fields = [field(lt.STRING)]
    content, _ = written("avro", fields, table(fields, [f"v{i}" for i in range(1000)]))
    broken = [content[:size] for size in (0, 3, 30, len(content) // 2, len(content) - 1)]
    broken += [content[:-1] + bytes([content[-1] ^ 1]), b"Obj\x02" + content[4:]]
    for damaged in broken:
        with pytest.raises(CorruptFile, match="some/file"):
            read("avro", damaged, fields)
