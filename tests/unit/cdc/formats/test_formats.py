"""Messages of Debezium, Canal and Maxwell as chunks of changes."""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakebed.cdc.envelope import ABOUT, COPY, KIND, MOST_ROWS, OP_TS, ROWS, SKIPPED, UNCHANGED, Chunk, Description
from lakebed.cdc.formats import message_format
from lakebed.errors import InvalidArgument, InvalidData
from lakebed.types.row_kind import TEXTS


def chunks_of(form: str, *messages: Any, modes: tuple[str, ...] = ()) -> list[Chunk]:
    bodies = pa.array([m if isinstance(m, str | None) else json.dumps(m) for m in messages], pa.string())
    return message_format(form, modes).chunks(bodies, 0)


def rows_of(chunk: Chunk, *names: str) -> list[tuple[Any, ...]]:
    wanted = names or Description.from_text(chunk.columns).names
    return [(TEXTS[row[KIND]], *(row[name] for name in wanted)) for row in chunk.rows().to_pylist()]


def debezium(op: str, before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
    source = {"db": "shop", "schema": "public", "table": "t", "ts_ms": 1_700_000_000_000}
    return {"op": op, "before": before, "after": after, "source": source, "ts_ms": 5, **more}


def maxwell(kind: str, data: Any, old: Any = None, **more: Any) -> dict[str, Any]:
    body = {"database": "shop", "table": "t", "type": kind, "ts": 100, "data": data, "primary_key_columns": ["id"]}
    return body | ({} if old is None else {"old": old}) | more


def canal(kind: str, data: Any, old: Any = None, **more: Any) -> dict[str, Any]:
    types = {
        "id": "bigint(20) unsigned",
        "v": "varchar(20)",
        "d": "decimal(10,2)",
        "ts": "datetime(3)",
        "s": "set('a')",
    }
    body = {"database": "shop", "table": "t", "type": kind, "es": 100, "isDdl": False, "data": data, "old": old}
    return body | {"mysqlType": {name: types[name] for name in data[0]}, "pkNames": ["id"]} | more


def test_i_01_a_debezium_update_is_its_old_and_its_new_row() -> None:
    """I-01: before {1, a}, after {1, b} gives the old row and the new one."""
    (chunk,) = chunks_of("debezium-json", debezium("u", {"id": 1, "v": "a"}, {"id": 1, "v": "b"}))
    assert rows_of(chunk) == [("-U", "1", "a"), ("+U", "1", "b")]


def test_i_02_a_maxwell_update_completes_the_old_row_from_the_new_one() -> None:
    """I-02: data {1, b, x} with old {v: a} gives the old row {1, a, x}."""
    (chunk,) = chunks_of("maxwell-json", maxwell("update", {"id": 1, "v": "b", "w": "x"}, {"v": "a"}))
    assert rows_of(chunk) == [("-U", "1", "a", "x"), ("+U", "1", "b", "x")]


def test_i_03_a_changed_key_takes_the_old_row_away_under_its_own_key() -> None:
    """I-03: a Debezium update from key 1 to key 2 retracts key 1."""
    (chunk,) = chunks_of("debezium-json", debezium("u", {"id": 1, "v": "a"}, {"id": 2, "v": "a"}))
    assert rows_of(chunk) == [("-U", "1", "a"), ("+U", "2", "a")]


def test_debezium_inserts_and_deletes() -> None:
    """Creates and snapshot reads are inserts, deletes carry the row before; a tombstone is nothing."""
    messages = [debezium("c", None, {"id": 1}), debezium("d", {"id": 1}), None, debezium("r", None, {"id": 2})]
    (chunk,) = chunks_of("debezium-json", *messages)
    assert rows_of(chunk) == [("+I", "1"), ("-D", "1"), ("+I", "2")]
    times = [row[OP_TS] for row in chunk.rows().to_pylist()]
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert times == [dt.datetime.fromtimestamp(1_700_000_000, dt.UTC)] * 2 + [epoch]


def test_debezium_snapshot_rows_are_of_the_copy_phase() -> None:
    """A block of snapshot reads only is the copy."""
    (chunk,) = chunks_of("debezium-json", debezium("r", None, {"id": 2}))
    assert chunk.phase == COPY


def test_debezium_old_rows_may_lack_columns() -> None:
    """What `before` does not have is taken from `after`, and a null in it stays null."""
    (chunk,) = chunks_of("debezium-json", debezium("u", {"v": None}, {"id": 1, "v": "b", "w": "x"}))
    assert rows_of(chunk, "id", "v", "w") == [("-U", "1", None, "x"), ("+U", "1", "b", "x")]


def test_debezium_placeholders_are_marked_and_never_written() -> None:
    """The placeholder of a value that was not sent becomes a mark."""
    update = debezium("u", {"id": 1, "v": "a"}, {"id": 1, "v": "__debezium_unavailable_value"})
    (chunk,) = chunks_of("debezium-json", update)
    rows = chunk.rows().to_pylist()
    assert [(row["v"], row[UNCHANGED + "v"]) for row in rows] == [("a", False), (None, True)]


def typed(fields: list[dict[str, Any]], **after: Any) -> dict[str, Any]:
    schema = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": fields}]}
    return {"schema": schema, "payload": debezium("c", None, after)}


@pytest.mark.parametrize(
    ("field", "value", "type_text", "expected"),
    [
        ({"type": "int32"}, 7, "INT NOT NULL", 7),
        ({"type": "int64", "optional": True}, None, "BIGINT", None),
        ({"type": "boolean"}, True, "BOOLEAN NOT NULL", True),
        ({"type": "double"}, 1.5, "DOUBLE NOT NULL", 1.5),
        ({"type": "bytes"}, base64.b64encode(b"\x00\xff").decode(), "BYTES NOT NULL", b"\x00\xff"),
        ({"type": "int32", "name": "io.debezium.time.Date"}, 1, "DATE NOT NULL", dt.date(1970, 1, 2)),
        ({"type": "int64", "name": "io.debezium.time.MicroTime"}, 1_000_000, "TIME(6) NOT NULL", dt.time(0, 0, 1)),
        (
            {"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
            1_500_000,
            "TIMESTAMP(6) NOT NULL",
            dt.datetime(1970, 1, 1, 0, 0, 1, 500_000),
        ),
        (
            {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
            "2024-01-02T03:04:05.123456Z",
            "TIMESTAMP(6) WITH LOCAL TIME ZONE NOT NULL",
            dt.datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=dt.UTC),
        ),
        (
            {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
            "2024-01-02T03:04:05.5+02:00",
            "TIMESTAMP(6) WITH LOCAL TIME ZONE NOT NULL",
            dt.datetime(2024, 1, 2, 1, 4, 5, 500_000, tzinfo=dt.UTC),
        ),
        (
            {
                "type": "bytes",
                "name": "org.apache.kafka.connect.data.Decimal",
                "parameters": {"scale": "2", "connect.decimal.precision": "10"},
            },
            base64.b64encode((-12345).to_bytes(3, "big", signed=True)).decode(),
            "DECIMAL(10, 2) NOT NULL",
            Decimal("-123.45"),
        ),
        ({"type": "array"}, ["a", None], "ARRAY<STRING> NOT NULL", ["a", None]),
        ({"type": "struct"}, {"k": 1}, "MAP<STRING NOT NULL, STRING> NOT NULL", [("k", "1")]),
    ],
)
def test_debezium_with_a_schema_has_types(field: dict[str, Any], value: Any, type_text: str, expected: Any) -> None:
    """Types come from the schema beside the rows, values in the form that the type has there."""
    (chunk,) = chunks_of("debezium-json", typed([{"field": "c", **field}], c=value))
    description = Description.from_text(chunk.columns)
    assert description.typed
    assert str(description.columns[0].type) == type_text
    assert chunk.rows().to_pylist()[0]["c"] == expected


def test_messages_without_types_say_so() -> None:
    """Without a schema columns are texts, and the description tells that nobody knows their types."""
    (chunk,) = chunks_of("debezium-json", debezium("c", None, {"id": 1}, pkNames=["id"]))
    description = Description.from_text(chunk.columns)
    assert not description.typed
    assert description.primary_key == ("id",)


def test_numbers_keep_all_their_digits() -> None:
    """Numbers longer than a double are not rounded, and texts that look like them are left alone."""
    data = '{"n":12345678901234567890.12345,"s":":12345678901234567890,"}'
    text = f'{{"database":"d","table":"t","type":"insert","ts":1,"data":{data}}}'
    (chunk,) = chunks_of("maxwell-json", text)
    assert rows_of(chunk) == [("+I", "12345678901234567890.12345", ":12345678901234567890,")]


def test_values_with_parts_are_json_text_and_null_is_null() -> None:
    """Objects and lists are stored as JSON text; a JSON null is NULL, not the text of it."""
    (chunk,) = chunks_of("maxwell-json", maxwell("insert", {"id": 1, "o": {"a": [1, "x"]}, "n": None}))
    assert rows_of(chunk) == [("+I", "1", '{"a":[1,"x"]}', None)]


def test_maxwell_leaves_out_messages_about_tables() -> None:
    """DDL and the marks of a bootstrap are no rows; bootstrapped rows are the copy."""
    messages = [
        maxwell("bootstrap-start", {}),
        maxwell("bootstrap-insert", {"id": 1}),
        {"type": "table-alter", "database": "shop", "table": "t", "old": {}, "def": {}},
    ]
    (chunk,) = chunks_of("maxwell-json", *messages)
    assert (rows_of(chunk), chunk.phase) == ([("+I", "1")], COPY)


def test_canal_has_types_and_many_rows_in_a_message() -> None:
    """Types come from `mysqlType`; each row of `data` has its own row of `old`."""
    data = [
        {"id": "1", "v": "b", "d": "1.50", "ts": "2024-01-02 03:04:05.6", "s": "a"},
        {"id": "2", "v": None, "d": "2", "ts": "0000-00-00 00:00:00", "s": ""},
    ]
    (chunk,) = chunks_of("canal-json", canal("UPDATE", data, [{"v": "a"}, {"d": "3"}]))
    types = [str(column.type) for column in Description.from_text(chunk.columns).columns]
    assert types == ["DECIMAL(20, 0) NOT NULL", "VARCHAR(20)", "DECIMAL(10, 2)", "TIMESTAMP(3)", "ARRAY<STRING>"]
    moment = dt.datetime(2024, 1, 2, 3, 4, 5, 600_000)
    assert rows_of(chunk) == [
        ("-U", Decimal(1), "a", Decimal("1.50"), moment, ["a"]),
        ("+U", Decimal(1), "b", Decimal("1.50"), moment, ["a"]),
        ("-U", Decimal(2), None, Decimal("3.00"), None, [""]),
        ("+U", Decimal(2), None, Decimal("2.00"), None, [""]),
    ]


def test_canal_inserts_between_updates_keep_their_place() -> None:
    """Old rows of updates are not mixed up by messages that have none."""
    messages = [
        canal("INSERT", [{"id": "1", "v": "a"}, {"id": "2", "v": "b"}]),
        canal("UPDATE", [{"id": "2", "v": "c"}], [{"v": "b"}]),
        canal("DELETE", [{"id": "1", "v": "a"}]),
        canal("QUERY", [{"id": "1", "v": "a"}], isDdl=True),
    ]
    (chunk,) = chunks_of("canal-json", *messages)
    rows = [(kind, int(key), v) for kind, key, v in rows_of(chunk)]
    assert rows == [("+I", 1, "a"), ("+I", 2, "b"), ("-U", 2, "b"), ("+U", 2, "c"), ("-D", 1, "a")]


def test_messages_of_several_tables_are_taken_apart() -> None:
    """Each table has chunks of its own, numbered one after the other."""
    messages = [maxwell("insert", {"id": i}, table=f"t{i % 2}") for i in range(6)]
    found = chunks_of("maxwell-json", *messages)
    assert [(chunk.ordinal, chunk.name.table, len(rows_of(chunk))) for chunk in found] == [(0, "t0", 3), (1, "t1", 3)]


def test_names_may_be_anything() -> None:
    """Quotes, dots, unicode and names that differ in case only are columns like others."""
    names = ["a'b", 'q"q', "d.t", "ü", "A", "a", "_kind", "`"]
    (chunk,) = chunks_of("maxwell-json", maxwell("insert", {name: str(i) for i, name in enumerate(names)}))
    assert Description.from_text(chunk.columns).names == tuple(names)
    columns = chunk.rows()
    assert [columns.column(2 + i)[0].as_py() for i in range(len(names))] == [str(i) for i in range(len(names))]


@pytest.mark.parametrize(
    ("form", "message", "part"),
    [
        ("debezium-json", debezium("t"), "'t'"),
        ("debezium-json", debezium("u", None, {"id": 1}), "`before`"),
        ("debezium-json", {"a": 1}, "None"),
        ("maxwell-json", maxwell("update", {"id": 1}), "`old`"),
        ("canal-json", canal("UPDATE", [{"id": "1"}], [{}, {}]), "`old`"),
        ("maxwell-json", '{"a":', "can not be read"),
    ],
)
def test_what_is_no_change_is_an_error(form: str, message: Any, part: str) -> None:
    """Unknown operations, missing old rows and text that is no JSON stop with an error that names them."""
    with pytest.raises(InvalidData) as caught:
        chunks_of(form, message)
    assert part in caught.value.message


def test_an_unknown_format_is_refused_by_name() -> None:
    """A mistyped format brings the one that was meant."""
    with pytest.raises(InvalidArgument) as caught:
        message_format("debezium_jsn")
    assert "debezium-json" in caught.value.hint


def test_both_rows_of_an_update_are_in_one_chunk() -> None:
    """Chunks are cut between changes, and no change is lost."""
    first = maxwell("insert", {"id": 0, "v": "a"})
    updates = [maxwell("update", {"id": i, "v": "b"}, {"v": "a"}) for i in range(MOST_ROWS // 2 + 5)]
    found = chunks_of("maxwell-json", first, *updates)
    assert [chunk.ordinal for chunk in found] == [0, 1]
    kinds = [chunk.rows().column(0).to_pylist() for chunk in found]
    assert kinds[1][0] == 1
    assert sum(map(len, kinds)) == 1 + 2 * len(updates)


_TWO_ROWS = canal("INSERT", [{"id": "1", "v": "a"}, {"id": "2", "v": "b"}])


@pytest.mark.parametrize(
    ("form", "messages", "expected"),
    [
        ("maxwell-json", [maxwell("insert", {"id": 1}), None, maxwell("update", {"id": 1}, {"id": 2})], [0, 2, 2]),
        ("debezium-json", [None, debezium("c", None, {"id": 1}), debezium("d", {"id": 1})], [1, 2]),
        ("canal-json", [canal("CREATE", [{"id": "1"}], isDdl=True), _TWO_ROWS], [1, 1]),
    ],
)
def test_changes_carry_what_is_known_of_their_message(form: str, messages: list[Any], expected: list[int]) -> None:
    """Every change has the offset of its own message, whatever was left out before it."""
    bodies = pa.array([None if message is None else json.dumps(message) for message in messages], pa.string())
    about = pa.RecordBatch.from_pydict({"offset": list(range(len(messages)))})
    chunks = message_format(form).chunks(bodies, 0, about)
    assert [row[f"{ABOUT}offset"] for chunk in chunks for row in chunk.rows().to_pylist()] == expected


def test_messages_that_can_not_be_read_are_left_out_and_counted() -> None:
    """Only the bad ones are missing, the others keep their order, and each of the bad is told with its reason."""
    good = [json.dumps(maxwell("insert", {"id": number})) for number in range(20)]
    bad = {3: "{", 4: '{"type": "what", "database": "shop", "table": "t", "data": {}}', 17: "no json"}
    bodies = pa.array([bad.get(number, text) for number, text in enumerate(good)], pa.string())
    chunks = message_format("maxwell-json").readable_chunks(bodies, 100)
    assert [chunk.ordinal for chunk in chunks] == list(range(100, 100 + len(chunks)))
    told = [json.loads(chunk.columns) for chunk in chunks if chunk.kind == SKIPPED]
    assert [each["count"] for each in told] == [1, 1, 1]
    assert "'what'" in told[1]["why"]
    ids = [int(row["id"]) for chunk in chunks if chunk.kind == ROWS for row in chunk.rows().to_pylist()]
    assert ids == [number for number in range(20) if number not in bad]
