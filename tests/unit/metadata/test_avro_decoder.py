"""Decoders made from a writer's schema: fields go by name, and types must fit."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.metadata.avro_container import compile_decoder

ITEM = {"type": "record", "name": "Item", "fields": [{"name": "x", "type": "int"}]}
OURS = {
    "type": "record",
    "name": "Root",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "data", "type": ["null", "bytes"]},
        {"name": "items", "type": ["null", {"type": "array", "items": ["null", ITEM]}]},
        {"name": "item", "type": ITEM},
    ],
}
BUILDERS = {"Root": lambda *values: values, "Item": lambda x: ("item", x)}


def decoded(theirs: Any, *values: Any) -> list[Any]:
    """Encode values with fastavro, decode them with a compiled decoder."""
    expanded = fastavro.schema.expand_schema(theirs)
    block = io.BytesIO()
    for value in values:
        fastavro.schemaless_writer(block, theirs, value)
    return compile_decoder(expanded, OURS, BUILDERS)(block.getvalue(), len(values))


def theirs(*fields: dict[str, Any]) -> dict[str, Any]:
    """A writer's schema."""
    return {"type": "record", "name": "Anything", "fields": list(fields)}


ITEM_FIELD = {"name": "item", "type": ITEM}
ID_FIELD = {"name": "id", "type": "long"}
NAME_FIELD = {"name": "name", "type": "string"}


@given(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.text(max_size=200),
    st.none() | st.binary(max_size=200),
    st.none() | st.lists(st.none() | st.integers(-(1 << 31), (1 << 31) - 1), max_size=150),
    st.integers(-(1 << 31), (1 << 31) - 1),
)
def test_values_survive(number: int, text: str, data: bytes | None, items: list[int | None] | None, x: int) -> None:
    """Numbers of any size, text, bytes, nulls and arrays of nullable records come out as they went in."""
    listed = None if items is None else [None if i is None else {"x": i} for i in items]
    record = {"id": number, "name": text, "data": data, "items": listed, "item": {"x": x}}
    expected_items = None if items is None else tuple(None if i is None else ("item", i) for i in items)
    expected = (number, text, data, expected_items, ("item", x))
    names: dict[str, Any] = {}
    # fastavro wants a record's name defined once and referred to after that.
    fields = [*OURS["fields"][:4], {"name": "item", "type": "Item"}]
    schema = fastavro.parse_schema({"type": "record", "name": "Root", "fields": fields}, names)
    assert decoded(schema, record, record) == [expected, expected]


def test_fields_go_by_name() -> None:
    """Reordered fields find their place, unknown ones of any type are skipped, optional ones may be missing."""
    unknown = [
        {"name": "u1", "type": ["null", "string", "double"]},
        {"name": "u2", "type": {"type": "map", "values": "long"}},
        {"name": "u3", "type": {"type": "fixed", "name": "F", "size": 3}},
        {"name": "u4", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "u5", "type": "boolean"},
        {"name": "u6", "type": "float"},
        {"name": "u7", "type": {"type": "array", "items": {"type": "array", "items": "string"}}},
        {"name": "u8", "type": "null"},
        {"name": "u9", "type": {"type": "record", "name": "Sub", "fields": [{"name": "y", "type": "double"}]}},
    ]
    schema = theirs(*unknown[:4], ITEM_FIELD, *unknown[4:], NAME_FIELD, {"name": "id", "type": "int"})
    record = {"u1": 2.5, "u2": {"a": 1, "b": -5}, "u3": b"abc", "u4": "B", "u5": True, "u6": 1.5, "u7": [["p"], []]}
    record |= {"u8": None, "u9": {"y": 0.5}, "item": {"x": 9}, "name": "n", "id": 4}
    assert decoded(schema, record, record | {"u1": None}) == [(4, "n", None, None, ("item", 9))] * 2


def test_a_type_may_be_named_and_used_again() -> None:
    """A writer may define a record once, in a namespace, and refer to it."""
    first = {"name": "first", "type": ITEM | {"namespace": "a.b"}}
    schema = theirs(first, {"name": "item", "type": "a.b.Item"}, NAME_FIELD, ID_FIELD)
    record = {"first": {"x": 1}, "item": {"x": 2}, "name": "", "id": 0}
    assert decoded(schema, record) == [(0, "", None, None, ("item", 2))]


def test_nullable_roots_and_members_are_read_but_not_nulls() -> None:
    """Some writers declare everything nullable; a null where a value is needed is refused."""
    schema = [
        "null",
        theirs({"name": "item", "type": ["null", ITEM]}, {"name": "name", "type": ["string", "null"]}, ID_FIELD),
    ]
    good = {"item": {"x": 3}, "name": "n", "id": 1}
    assert decoded(schema, good) == [(1, "n", None, None, ("item", 3))]
    for bad in (None, good | {"item": None}, good | {"name": None}):
        with pytest.raises(ValueError, match="null"):
            decoded(schema, bad)


@pytest.mark.parametrize(
    "fields",
    [
        (ID_FIELD, NAME_FIELD),
        (ID_FIELD, ITEM_FIELD),
        ({"name": "id", "type": "string"}, NAME_FIELD, ITEM_FIELD),
        (ID_FIELD, {"name": "name", "type": "bytes"}, ITEM_FIELD),
        (ID_FIELD, NAME_FIELD, {"name": "item", "type": {"type": "array", "items": "int"}}),
        (ID_FIELD, NAME_FIELD, ITEM_FIELD, {"name": "data", "type": ["null", "long"]}),
        (ID_FIELD, NAME_FIELD, ITEM_FIELD, {"name": "items", "type": {"type": "array", "items": "string"}}),
        (ID_FIELD, NAME_FIELD, ITEM_FIELD, {"name": "u", "type": {"type": "array", "items": "null"}}),
        (ID_FIELD, NAME_FIELD, ITEM_FIELD, {"name": "u", "type": "nonsense"}),
        (ID_FIELD, NAME_FIELD, {"name": "item", "type": theirs({"name": "y", "type": "int"})}),
    ],
)
def test_schemas_that_do_not_fit_are_refused(fields: tuple[dict[str, Any], ...]) -> None:
    """A missing required field, another type, or items without size never turn into wrong values."""
    with pytest.raises(ValueError):
        compile_decoder(theirs(*fields), OURS, BUILDERS)


def test_endless_nesting_is_refused() -> None:
    """A schema deep enough to exhaust the stack is no metadata."""
    kind: Any = "int"
    for _ in range(100):
        kind = {"type": "array", "items": kind}
    with pytest.raises(ValueError, match="deep"):
        compile_decoder(theirs(ID_FIELD, NAME_FIELD, ITEM_FIELD, {"name": "u", "type": kind}), OURS, BUILDERS)


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"\x02",
        b"\x80" * 12,
        b"\x02\x01",
        b"\x02\x7f" + b"a" * 5,
        b"\x02\x00\x02\x00",
        b"\x02\x02\xff\x02",
    ],
)
def test_bytes_that_do_not_fit_are_refused(block: bytes) -> None:
    """Too short, too long, endless numbers, negative lengths, text that is not UTF-8."""
    decode = compile_decoder(theirs(ID_FIELD, NAME_FIELD, ITEM_FIELD), OURS, BUILDERS)
    with pytest.raises((LookupError, ValueError)):
        decode(block, 1)


def test_an_array_may_come_in_parts() -> None:
    """Parts may state their size in bytes, which Avro marks by a negative count."""
    decode = compile_decoder(
        theirs(ID_FIELD, NAME_FIELD, {"name": "items", "type": {"type": "array", "items": ITEM}}, ITEM_FIELD),
        OURS,
        BUILDERS,
    )
    block = b"\x02\x00" + b"\x03\x04\x02\x04" + b"\x02\x06" + b"\x00" + b"\x0a"
    assert decode(block, 1) == [(1, "", None, (("item", 1), ("item", 2), ("item", 3)), ("item", 5))]


def test_an_unknown_union_branch_is_refused() -> None:
    """An index outside the union is damage, also a negative one."""
    decode = compile_decoder(
        theirs(ID_FIELD, NAME_FIELD, {"name": "data", "type": ["null", "bytes"]}, ITEM_FIELD), OURS, BUILDERS
    )
    for index in (1, 4, 0x80):
        with pytest.raises(ValueError, match="branch"):
            decode(bytes([2, 0, index, 0, 2]), 1)
