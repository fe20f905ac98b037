"""Avro records side by side: what fastavro reads one by one, and an error for every byte that is wrong."""

from __future__ import annotations

import io
import json
import math
import random
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.errors import InvalidData, InvalidSchema, Unsupported
from lakebed.formats.avro.lockstep import decoded
from lakebed.formats.avro.named import parsed_schema


class _Random:
    """A schema of any shape, and values of it."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._names = 0

    def name(self) -> str:
        self._names += 1
        return f"n{self._names}"

    def record(self, depth: int) -> dict[str, Any]:
        fields = [{"name": self.name(), "type": self.type(depth + 1)} for _ in range(self._chance.randint(1, 4))]
        return {"type": "record", "name": self.name(), "fields": fields}

    def type(self, depth: int) -> Any:
        plain = ["boolean", "int", "long", "float", "double", "bytes", "string"]
        kinds = [*plain, "enum", "fixed", "optional"]
        kind = self._chance.choice(kinds if depth > 3 else [*kinds, "record", "array", "map"])
        match kind:
            case "enum":
                return {"type": "enum", "name": self.name(), "symbols": ["A", "B", "C"]}
            case "fixed":
                return {"type": "fixed", "name": self.name(), "size": self._chance.randint(1, 9)}
            case "optional":
                inner = self._chance.choice(plain)
                return ["null", inner] if self._chance.random() < 0.8 else [inner, "null"]
            case "record":
                return self.record(depth)
            case "array":
                return {"type": "array", "items": self.type(depth + 1)}
            case "map":
                return {"type": "map", "values": self.type(depth + 1)}
        return kind

    def value(self, kind: Any) -> Any:
        chance = self._chance
        if isinstance(kind, list):
            return None if chance.random() < 0.4 else self.value(next(each for each in kind if each != "null"))
        match kind if isinstance(kind, str) else kind["type"]:
            case "boolean":
                return chance.random() < 0.5
            case "int":
                return chance.choice([0, -1, 63, 64, -(1 << 31), (1 << 31) - 1, chance.randint(-9999, 9999)])
            case "long":
                return chance.choice([0, -(1 << 63), (1 << 63) - 1, chance.randint(-(1 << 40), 1 << 40)])
            case "float":
                return chance.choice([0.0, 1.5, -2.25, math.inf])
            case "double":
                return chance.choice([0.0, 0.1, -1e300, math.inf])
            case "bytes":
                return chance.randbytes(chance.choice([0, 1, 5, 200]))
            case "string":
                return chance.choice(["", "a", "ü€😀", "x" * 300])
            case "enum":
                return chance.choice(kind["symbols"])
            case "fixed":
                return chance.randbytes(kind["size"])
            case "record":
                return {each["name"]: self.value(each["type"]) for each in kind["fields"]}
            case "array":
                return [self.value(kind["items"]) for _ in range(chance.choice([0, 0, 1, 3]))]
        return {f"k{n}": self.value(kind["values"]) for n in range(chance.choice([0, 1, 3]))}


def _written(schema: Any, record: Any) -> bytes:
    output = io.BytesIO()
    fastavro.schemaless_writer(output, fastavro.parse_schema(schema, {}), record)
    return output.getvalue()


def _plain(value: Any) -> Any:
    """Arrow's maps are lists of pairs, fastavro's are dicts."""
    if isinstance(value, list):
        if value and all(isinstance(each, tuple) for each in value):
            return {key: _plain(each) for key, each in value}
        return [_plain(each) for each in value]
    return {key: _plain(each) for key, each in value.items()} if isinstance(value, dict) else value


def _no_empty(value: Any) -> Any:
    """An empty map and an empty list look alike in Arrow's Python values."""
    if isinstance(value, dict):
        return {key: _no_empty(each) for key, each in value.items()} or []
    return [_no_empty(each) for each in value] if isinstance(value, list) else value


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 30))
def test_any_records_of_any_schema_are_what_fastavro_reads(seed: int, count: int) -> None:
    """Random schemas with all types in one another give the same values, whatever stands in front of a record."""
    made = _Random(seed)
    schema = made.record(0)
    records = [made.value(schema) for _ in range(count)]
    bodies = pa.array([b"12345" + _written(schema, record) for record in records], pa.binary())
    for part in (bodies, bodies.slice(count // 2)):
        found = decoded(parsed_schema(json.dumps(schema)), part, 5)
        rows = pa.table(found).to_pylist() if found else []
        expected = [
            fastavro.schemaless_reader(io.BytesIO(body[5:]), fastavro.parse_schema(schema, {}))
            for body in part.to_pylist()
        ]
        assert _no_empty([_plain(row) for row in rows]) == _no_empty(expected)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 32), st.binary(max_size=60))
def test_bytes_that_are_no_records_are_an_error_or_values(seed: int, noise: bytes) -> None:
    """Cut, changed and made-up bodies end in `InvalidData` or in values, never in another error and never endlessly."""
    made = _Random(seed)
    schema = made.record(0)
    good = _written(schema, made.value(schema))
    chance = random.Random(seed)
    cut = good[: chance.randint(0, len(good))]
    changed = bytearray(good)
    if changed:
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    node = parsed_schema(json.dumps(schema))
    for body in (cut, bytes(changed), noise, good + b"\0"):
        try:
            decoded(node, pa.array([good, body, good], pa.binary()))
        except InvalidData:
            continue
        assert fastavro.schemaless_reader(io.BytesIO(body), fastavro.parse_schema(schema, {})) is not None


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("long", b"\xff" * 10 + b"\x01"),
        ("long", b"\x80"),
        ("int", b"\xff\xff\xff\xff\xff\x01"),
        ("string", b"\x04a"),
        ("string", b"\x03"),
        ("string", b"\x02\xff"),
        ("bytes", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ("boolean", b"\x02"),
        ("double", b"\0\0"),
        (["null", "int"], b"\x04"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, b"\x02"),
        ({"type": "array", "items": "int"}, b"\xfe\xff\xff\xff\x0f"),
        ({"type": "array", "items": "int"}, b"\x02\x02"),
        ("int", b"\x02\x02"),
    ],
)
def test_what_is_wrong_with_bytes_is_said(kind: Any, body: bytes) -> None:
    """Numbers too long, lengths beyond the end, branches and symbols that are not there, bytes that are left over."""
    node = parsed_schema(json.dumps({"type": "record", "name": "r", "fields": [{"name": "f", "type": kind}]}))
    with pytest.raises(InvalidData):
        decoded(node, pa.array([body], pa.binary()))


def test_items_in_blocks_with_their_size_are_read() -> None:
    """Writers may put an array into several blocks, each with its size in bytes."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "f", "type": {"type": "array", "items": "int"}}]}
    body = b"\x03\x04\x02\x04" + b"\x02\x06" + b"\x00"  # 2 items in 2 bytes, then 1 item
    found = decoded(parsed_schema(json.dumps(schema)), pa.array([body, b"\0", body], pa.binary()))
    assert found["f"].to_pylist() == [[1, 2, 3], [], [1, 2, 3]]


def test_names_stand_for_types_that_were_told_before() -> None:
    """A record may be used again by its name, in its own space or with it in full; references bring theirs."""
    address = {"type": "record", "name": "Address", "namespace": "a.b", "fields": [{"name": "zip", "type": "int"}]}
    fields = [
        {"name": "home", "type": ["null", "a.b.Address"]},
        {"name": "own", "type": {"type": "record", "name": "Own", "fields": [{"name": "x", "type": "int"}]}},
        {"name": "more", "type": "Own"},
    ]
    node = parsed_schema(json.dumps({"type": "record", "name": "c.d.Person", "fields": fields}), [json.dumps(address)])
    found = decoded(node, pa.array([b"\x02\x0e\x02\x04", b"\x00\x02\x04"], pa.binary()))
    assert pa.table(found).to_pylist() == [
        {"home": {"zip": 7}, "own": {"x": 1}, "more": {"x": 2}},
        {"home": None, "own": {"x": 1}, "more": {"x": 2}},
    ]


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        ('{"type": "record", "name": "r", "fields": [{"name": "f", "type": "r"}]}', "contains itself"),
        ('{"type": "record", "name": "r", "fields": [{"name": "f", "type": "nothing"}]}', "nothing says"),
        ('{"type": "record"}', "no schema of Avro"),
        ("[", "no schema of Avro"),
    ],
)
def test_schemas_that_make_no_sense_are_refused(schema: str, part: str) -> None:
    """A type without an end, a name of nothing, and what is no schema at all are errors that say so."""
    with pytest.raises(InvalidSchema, match=part):
        parsed_schema(schema)


def test_what_no_column_can_be_is_refused() -> None:
    """Unions of several types, arrays of nothing, and a schema that is no record are named."""
    for kind in (["int", "string"], {"type": "array", "items": "null"}):
        node = parsed_schema(json.dumps({"type": "record", "name": "r", "fields": [{"name": "f", "type": kind}]}))
        with pytest.raises(Unsupported):
            decoded(node, pa.array([b"\x02\x02"], pa.binary()))
    with pytest.raises(Unsupported, match="no columns"):
        decoded(parsed_schema('"int"'), pa.array([b"\x02"], pa.binary()))
