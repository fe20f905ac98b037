"""Messages that are rows, and keys that name them: JSON, texts, and Avro with a registry of schemas."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakebed.cdc.envelope import KIND, OP_TS, RAW_KEY, ROWS, SKIPPED, UNCHANGED, Chunk, Description
from lakebed.cdc.formats import MESSAGE_FORMATS, message_format
from lakebed.cdc.formats.reading import KeyForm, Reading
from lakebed.cdc.formats.registry import Registry
from lakebed.errors import AccessDenied, InvalidArgument, InvalidData, StorageError, Unsupported
from lakebed.testing.schema_registry import SchemaRegistry
from lakebed.types.row_kind import TEXTS

AT = dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as found:
        yield found


def row_schema(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Row", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def envelope(*fields: tuple[str, Any]) -> dict[str, Any]:
    value = {**row_schema(*fields), "name": "Value"}
    source = row_schema(("db", "string"), ("schema", ["null", "string"]), ("table", "string"), ("ts_ms", "long"))
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": "shop.t",
        "fields": [
            {"name": "before", "type": ["null", value], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "source", "type": {**source, "name": "Source"}},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"], "default": None},
        ],
    }


def change(op: str, before: Any = None, after: Any = None, table: str = "t") -> dict[str, Any]:
    source = {"db": "shop", "schema": "public", "table": table, "ts_ms": 1_700_000_000_000}
    return {"op": op, "before": before, "after": after, "source": source, "ts_ms": 5}


def about(keys: list[bytes | None]) -> pa.RecordBatch:
    count = len(keys)
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array(["things"] * count),
            "partition": pa.array([3] * count, pa.int32()),
            "offset": pa.array(range(100, 100 + count), pa.int64()),
            "timestamp": pa.array([AT] * count, pa.timestamp("ms", tz="UTC")),
            RAW_KEY: pa.array(keys, pa.binary()),
        }
    )


def chunks_of(
    form: str, messages: list[tuple[bytes | None, bytes | None]], reading: Reading, *, skips: bool = False
) -> list[Chunk]:
    """Chunks of keys and bodies."""
    made = message_format(form, reading=reading)
    bodies = pa.array([body for _, body in messages], pa.binary())
    bodies = bodies if made.is_binary else bodies.cast(pa.string())
    read = made.readable_chunks if skips else made.all_chunks
    return read(bodies, 0, about([key for key, _ in messages]))


def rows_of(chunks: list[Chunk], *names: str) -> list[tuple[Any, ...]]:
    return [
        (TEXTS[row[KIND]], *(row.get(name) for name in names))
        for chunk in chunks
        if chunk.kind == ROWS
        for row in chunk.rows().to_pylist()
    ]


def body(**row: Any) -> bytes:
    return json.dumps(row).encode()


JSON_KEYS = Reading(KeyForm("json"))
TEXT_KEYS = Reading(KeyForm("text", ("id",)))


def test_objects_are_rows_and_a_message_without_a_body_deletes() -> None:
    """Each row takes the place of the one with its key; the table is called like the topic, times are the messages'."""
    messages = [(body(id=1), body(id=1, v="a")), (body(id=1), body(id=1, v={"x": [1]})), (body(id=1), None)]
    (chunk,) = chunks_of("json", messages, JSON_KEYS)
    assert rows_of([chunk], "id", "v") == [("+U", "1", "a"), ("+U", "1", '{"x":[1]}'), ("-D", "1", None)]
    description = Description.from_text(chunk.columns)
    assert (description.primary_key, description.typed, description.partial) == (("id",), False, False)
    assert (str(chunk.name), chunk.rows().to_pylist()[0][OP_TS]) == ("things", AT)


@pytest.mark.parametrize(
    ("reading", "key", "expected"),
    [
        (TEXT_KEYS, b"k1", "k1"),
        (Reading(KeyForm("json", ("id",))), b"17", "17"),
        (Reading(KeyForm("json", ("id",))), b'"k"', "k"),
        (Reading(KeyForm("json", ("id",))), b'{"id": 5, "more": 1}', "5"),
    ],
)
def test_keys_that_are_one_value(reading: Reading, key: bytes, expected: str) -> None:
    """A text, a bare value of JSON and a member of an object are the one column that is named; the body needs none."""
    found = rows_of(chunks_of("json", [(key, b'{"v": 1}'), (key, None)], reading), "id", "v")
    assert found == [("+U", expected, "1"), ("-D", expected, None)]


def test_the_key_of_the_message_counts() -> None:
    """Where the body says another key, the row goes by that of the message, under which it can be deleted."""
    messages = [(body(id=1), body(id=2, v="a")), (body(id=1), None)]
    assert rows_of(chunks_of("json", messages, JSON_KEYS), "id", "v") == [("+U", "1", "a"), ("-D", "1", None)]


def test_deletes_alone_say_nothing_of_other_columns() -> None:
    """A block without any body tells the columns of the key, and that there are others."""
    (chunk,) = chunks_of("json", [(body(id=1), None)], JSON_KEYS)
    description = Description.from_text(chunk.columns)
    assert (description.names, description.partial, description.typed) == (("id",), True, False)


@pytest.mark.parametrize(
    ("messages", "reading", "part"),
    [
        ([(b"k", None)], Reading(), "nothing says what keys are"),
        ([(None, b'{"v": 1}')], TEXT_KEYS, "key column `id`"),
        ([(b"k", b"[1]")], TEXT_KEYS, "no JSON object"),
        ([(b"k", b"{")], TEXT_KEYS, "can not be read"),
        ([(b"{", b'{"v": 1}')], JSON_KEYS, "can not be read"),
        ([(b"5", b'{"v": 1}')], JSON_KEYS, "no JSON object"),
        ([(b"\xff", b'{"v": 1}')], TEXT_KEYS, "no UTF-8"),
        ([(None, None)], JSON_KEYS, "no key"),
    ],
)
def test_messages_that_are_no_rows_are_errors_with_their_place(
    messages: list[Any], reading: Reading, part: str
) -> None:
    """What is wrong is said with topic, partition and offset; when such are left out, they are counted."""
    good = (b'{"id": 1}' if reading == JSON_KEYS else b"k", b'{"v": 1}')
    with pytest.raises(InvalidData) as caught:
        chunks_of("json", [good, good, *messages, good], reading)
    assert part in caught.value.message
    assert "topic `things`, partition 3, offset 102: " in caught.value.message
    chunks = chunks_of("json", [good, good, *messages, good], reading, skips=True)
    assert [json.loads(chunk.columns)["count"] for chunk in chunks if chunk.kind == SKIPPED] == [1]
    assert len(rows_of(chunks)) == 3


def test_what_is_said_of_keys_and_registries_is_checked() -> None:
    """A key format for changes, a format that is none, a text key without its column, and a registry that lacks or is
    for nothing, are refused by name."""
    wrong: list[tuple[str, Any, str]] = [
        ("debezium-json", lambda: JSON_KEYS, "key_format"),
        ("json", lambda: Reading(KeyForm("jsn")), "`jsn`"),
        ("json", lambda: Reading(KeyForm("text")), "one column"),
        ("avro", Reading, "registry"),
        ("json", lambda: Reading(KeyForm("avro")), "registry"),
        ("json", lambda: Reading(None, Registry("http://x:1")), "registry"),
        ("avro", lambda: Reading(None, Registry("x:1")), "address"),
        ("avro", lambda: Reading(None, Registry("http://u:p@x:1")), "password"),
        ("avro", lambda: Reading(None, Registry("http://x:1", "A", "b")), "twice"),
    ]
    for form, reading, part in wrong:
        with pytest.raises(InvalidArgument, match=part):
            message_format(form, reading=reading())
    assert {"json", "avro", "debezium-avro", "ogg-json", "aws-dms-json"} <= set(MESSAGE_FORMATS)


# --- Avro ------------------------------------------------------------------------------------------------------------

_TYPES: list[tuple[Any, Any, str, Any]] = [
    ("boolean", True, "BOOLEAN NOT NULL", True),
    (["null", "int"], None, "INT", None),
    ({"type": "int", "connect.type": "int16"}, -3, "SMALLINT NOT NULL", -3),
    ("long", 1 << 40, "BIGINT NOT NULL", 1 << 40),
    ("float", 1.5, "FLOAT NOT NULL", 1.5),
    (["null", "double"], 2.5, "DOUBLE", 2.5),
    ("bytes", b"\0\xff", "BYTES NOT NULL", b"\0\xff"),
    ("string", "ü", "STRING NOT NULL", "ü"),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B", "STRING NOT NULL", "B"),
    ({"type": "fixed", "name": "x", "size": 2}, b"ab", "BINARY(2) NOT NULL", b"ab"),
    ({"type": "int", "logicalType": "date"}, 1, "DATE NOT NULL", dt.date(1970, 1, 2)),
    ({"type": "int", "connect.name": "io.debezium.time.Date"}, 1, "DATE NOT NULL", dt.date(1970, 1, 2)),
    ({"type": "int", "logicalType": "time-millis"}, 1000, "TIME(3) NOT NULL", dt.time(0, 0, 1)),
    ({"type": "long", "logicalType": "time-micros"}, 10**6, "TIME(6) NOT NULL", dt.time(0, 0, 1)),
    (
        {"type": "long", "logicalType": "timestamp-millis"},
        1500,
        "TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL",
        dt.datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=dt.UTC),
    ),
    (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        1_500_000,
        "TIMESTAMP(6) NOT NULL",
        dt.datetime(1970, 1, 1, 0, 0, 1, 500_000),
    ),
    (
        {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"},
        1_500_000,
        "TIMESTAMP(6) NOT NULL",
        dt.datetime(1970, 1, 1, 0, 0, 1, 500_000),
    ),
    (
        ["null", {"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}],
        "2024-01-02T03:04:05.5+02:00",
        "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        dt.datetime(2024, 1, 2, 1, 4, 5, 500_000, tzinfo=dt.UTC),
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        (-12345).to_bytes(3, "big", signed=True),
        "DECIMAL(10, 2) NOT NULL",
        Decimal("-123.45"),
    ),
    ({"type": "array", "items": ["null", "int"]}, [1, None], "ARRAY<INT> NOT NULL", [1, None]),
    (
        ["null", {"type": "map", "values": {"type": "int", "logicalType": "date"}}],
        {"a": 1},
        "MAP<STRING NOT NULL, DATE NOT NULL>",
        [("a", dt.date(1970, 1, 2))],
    ),
    (
        ["null", row_schema(("a", "int"), ("b", ["null", "string"]))],
        {"a": 1, "b": None},
        "ROW<`a` INT NOT NULL, `b` STRING>",
        {"a": 1, "b": None},
    ),
]


@pytest.mark.parametrize(("kind", "value", "type_text", "expected"), _TYPES)
def test_avro_types(registry: SchemaRegistry, kind: Any, value: Any, type_text: str, expected: Any) -> None:
    """Types come from Connect's notes or from Avro's logical types, nested ones with their parts."""
    number = registry.add(1, {**row_schema(("c", kind)), "name": "Outer"})
    reading = Reading(None, Registry(registry.url))
    (chunk,) = chunks_of("avro", [(None, registry.message(number, {"c": value}))], reading)
    description = Description.from_text(chunk.columns)
    assert (description.typed, str(description.columns[0].type)) == (True, type_text)
    assert rows_of([chunk], "c") == [("+I", expected)]


def test_each_schema_has_its_own_columns_and_the_order_stays(registry: SchemaRegistry) -> None:
    """Messages of two schemas that take turns are chunks in turn, tombstones go along, a schema is asked for once."""
    registry.add(1, row_schema(("id", "long"), ("v", "string")))
    registry.add(2, row_schema(("id", "long"), ("v", ["null", "string"]), ("w", ["null", "int"])))
    registry.add(7, KEY)
    key = registry.message(7, {"id": 1})
    messages = [
        (key, registry.message(1, {"id": 1, "v": "a"})),
        (key, registry.message(2, {"id": 1, "v": None, "w": 3})),
        (key, None),
        (key, registry.message(1, {"id": 1, "v": "b"})),
    ]
    reading = Reading(KeyForm("avro"), Registry(registry.url))
    chunks = chunks_of("avro", messages, reading)
    assert rows_of(chunks, "id", "v", "w") == [
        ("+U", 1, "a", None),
        ("+U", 1, None, 3),
        ("-D", 1, None, None),
        ("+U", 1, "b", None),
    ]
    assert [chunk.ordinal for chunk in chunks] == [0, 1, 2]
    assert {Description.from_text(chunk.columns).primary_key for chunk in chunks} == {("id",)}
    chunks_of("avro", messages, reading)
    assert sorted(registry.asked) == ["/schemas/ids/1", "/schemas/ids/2", "/schemas/ids/7"]


def test_a_text_key_takes_the_type_of_its_column(registry: SchemaRegistry) -> None:
    """A key that is text is a number where the body's column is; deletes alone leave open what it is."""
    registry.add(1, row_schema(("id", "long"), ("v", "string")))
    reading = Reading(KeyForm("text", ("id",)), Registry(registry.url))
    chunks = chunks_of("avro", [(b"5", registry.message(1, {"id": 4, "v": "a"})), (b"5", None)], reading)
    assert rows_of(chunks, "id", "v") == [("+U", 5, "a"), ("-D", 5, None)]
    (alone,) = chunks_of("avro", [(b"5", None)], reading)
    assert (Description.from_text(alone.columns).typed, rows_of([alone], "id")) == (False, [("-D", "5")])
    with pytest.raises(InvalidData, match="offset 100"):
        chunks_of("avro", [(b"x", registry.message(1, {"id": 4, "v": "a"}))], reading)


def test_debezium_in_avro(registry: SchemaRegistry) -> None:
    """Updates are both rows, types come from the schema, the key from the message's, a placeholder is a mark; what is
    no change, and tombstones, are left out."""
    fields = (("id", "long"), ("v", ["null", "string"]), ("at", {"type": "int", "logicalType": "date"}))
    registry.add(1, envelope(*fields))
    registry.add(7, KEY)
    registry.add(8, {"type": "record", "name": "Heartbeat", "fields": [{"name": "ts_ms", "type": "long"}]})
    key = registry.message(7, {"id": 1})
    row = {"id": 1, "v": "a", "at": 1}
    messages = [
        (key, registry.message(1, change("r", None, row))),
        (key, registry.message(1, change("u", row, {**row, "v": "__debezium_unavailable_value"}))),
        (None, registry.message(8, {"ts_ms": 1})),
        (key, registry.message(1, change("d", row))),
        (key, None),
    ]
    (chunk,) = chunks_of("debezium-avro", messages, Reading(None, Registry(registry.url)))
    day = dt.date(1970, 1, 2)
    assert rows_of([chunk], "id", "v", "at", UNCHANGED + "v") == [
        ("+I", 1, "a", day, False),
        ("-U", 1, "a", day, False),
        ("+U", 1, None, day, True),
        ("-D", 1, "a", day, False),
    ]
    assert (str(chunk.name), Description.from_text(chunk.columns).primary_key) == ("shop.public.t", ("id",))
    assert chunk.rows().to_pylist()[1][OP_TS] == dt.datetime.fromtimestamp(1_700_000_000, dt.UTC)


def test_random_changes_in_avro_and_in_json_are_the_same(registry: SchemaRegistry) -> None:
    """A random history of two tables under schemas that take turns gives the rows that Debezium's JSON gives."""
    chance = random.Random(9)
    registry.add(1, envelope(("id", "string"), ("v", ["null", "string"])))
    registry.add(2, envelope(("id", "string"), ("v", ["null", "string"]), ("w", ["null", "string"])))
    for _ in range(15):
        avro, texts, state = [], [], dict[tuple[str, str], Any]()
        for number in range(50):
            schema, table, key = chance.choice((1, 2)), chance.choice("ab"), str(chance.randint(0, 3))
            row = {"id": key, "v": chance.choice((None, f"v{number}"))} | ({"w": f"w{number}"} if schema == 2 else {})
            old = state.get((table, key))
            if old is not None:
                old = {name: old.get(name) for name in row}
            op = "c" if old is None else chance.choice(("u", "u", "d"))
            state[table, key] = None if op == "d" else row
            told = change(op, old, None if op == "d" else row, table)
            avro.append((None, registry.message(schema, told)))
            texts.append((None, json.dumps(told).encode()))
        found, expected = (
            [
                (str(chunk.name), row)
                for table in "ab"
                for chunk in chunks_of(form, messages, reading)
                if chunk.name.table == table
                for row in rows_of([chunk], "id", "v", "w")
            ]
            for form, messages, reading in (
                ("debezium-avro", avro, Reading(None, Registry(registry.url))),
                ("debezium-json", texts, Reading()),
            )
        )
        assert found == expected


def test_bytes_that_are_no_message_are_named_and_left_out(registry: SchemaRegistry) -> None:
    """Too short, another magic byte, an unknown number, a cut record and one of another kind are errors with their
    place; left out, each is counted with its reason, and good ones around them come through."""
    registry.add(1, row_schema(("id", "long")))
    registry.add(2, {"type": "object"}, kind="JSON")
    good = registry.message(1, {"id": 1})
    bad = {
        b"\0\0": "too short",
        b"\1" + good[1:]: "does not begin with the zero",
        b"\0\0\0\0\x63" + good[5:]: "does not know schema 99",
        good[:-1]: "ends too early",
        good + b"x": "does not end with its last field",
        b"\0\0\0\0\2{}": "of type JSON",
    }
    reading = Reading(None, Registry(registry.url))
    for wrong, part in bad.items():
        with pytest.raises(InvalidData) as caught:
            chunks_of("avro", [(None, good), (None, wrong), (None, good)], reading)
        assert part in caught.value.message
        assert "offset 101" in caught.value.message
    chunks = chunks_of("avro", [(None, each) for wrong in bad for each in (good, wrong)], reading, skips=True)
    told = [json.loads(chunk.columns)["why"] for chunk in chunks if chunk.kind == SKIPPED]
    assert [part in why for part, why in zip(bad.values(), told, strict=True)] == [True] * len(bad)
    assert len(rows_of(chunks)) == len(bad)


def test_schemas_that_are_no_columns_are_refused(registry: SchemaRegistry) -> None:
    """A union of two types is named with its column, whatever is left out; rows without an envelope are no changes."""
    registry.add(1, row_schema(("c", ["null", "int", "string"])))
    registry.add(2, row_schema(("id", "long")))
    reading = Reading(None, Registry(registry.url))
    with pytest.raises(Unsupported, match="2 types"):
        chunks_of("avro", [(None, registry.message(1, {"c": 1}))], reading, skips=True)
    with pytest.raises(InvalidData, match="none of Debezium's"):
        chunks_of("debezium-avro", [(None, registry.message(2, {"id": 1}))], reading)


# --- the registry ----------------------------------------------------------------------------------------------------


def test_a_registry_that_is_away_is_an_outage(registry: SchemaRegistry) -> None:
    """No answer, and one that says 500, are outages even where bad messages are left out; another address may do."""
    registry.add(1, row_schema(("id", "long")))
    message = (None, registry.message(1, {"id": 1}))
    reading = Reading(None, Registry(registry.url))
    registry.fails_with = 500
    with pytest.raises(StorageError, match="500"):
        chunks_of("avro", [message], reading, skips=True)
    registry.fails_with = None
    registry.stop()
    with pytest.raises(StorageError, match="does not answer"):
        chunks_of("avro", [message], reading, skips=True)
    registry.start()
    both = Reading(None, Registry(f"http://127.0.0.1:1, {registry.url}/"))
    assert rows_of(chunks_of("avro", [message], both), "id") == [("+I", 1)]


def test_user_and_password_of_a_registry(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They come from an environment variable, a file or a file of properties; without them it is an error that says
    where they go, and they are in no text of the settings."""
    with SchemaRegistry("ada:s3cret") as registry:
        registry.add(1, row_schema(("id", "long")))
        message = (None, registry.message(1, {"id": 1}))
        monkeypatch.setenv("REGISTRY_LOGIN", "ada:s3cret")
        plain, properties = tmp_path / "login", tmp_path / "properties.json"
        plain.write_text("ada:s3cret\n")
        properties.write_text('{"basic.auth.user.info": "ada:s3cret"}')
        with pytest.raises(AccessDenied, match="401"):
            chunks_of("avro", [message], Reading(None, Registry(registry.url)))
        with pytest.raises(AccessDenied, match="`NOT_SET`"):
            chunks_of("avro", [message], Reading(None, Registry(registry.url, "NOT_SET")))
        for slashes, login in enumerate(
            ({"auth_env": "REGISTRY_LOGIN"}, {"auth_file": str(plain)}, {"auth_file": str(properties)})
        ):
            # Other addresses, so that what is remembered is not what answers.
            made = Registry(registry.url + "/" * (slashes + 1), **login)
            assert "s3cret" not in repr(made)
            assert rows_of(chunks_of("avro", [message], Reading(None, made)), "id") == [("+I", 1)]


def test_schemas_that_refer_to_others(registry: SchemaRegistry) -> None:
    """Types that stand in other subjects are asked for, with those that they use themselves."""
    registry.add(1, {"type": "record", "name": "x.Zip", "fields": [{"name": "code", "type": "int"}]}, subject="zip")
    address = {"type": "record", "name": "x.Address", "fields": [{"name": "zip", "type": "x.Zip"}]}
    registry.add(2, address, subject="address", references=["zip"])
    registry.add(3, row_schema(("home", "x.Address")), references=["address"])
    written = b"\0\0\0\0\3\x0e"
    chunks = chunks_of("avro", [(None, written)], Reading(None, Registry(registry.url)))
    assert rows_of(chunks, "home") == [("+I", {"zip": {"code": 7}})]
