"""Messages of Oracle GoldenGate and of AWS DMS as chunks of changes."""

from __future__ import annotations

import datetime as dt
import json
import random
from typing import Any

import pyarrow as pa
import pytest

from lakebed.cdc.envelope import COPY, KIND, OP_TS, Chunk, Description
from lakebed.cdc.formats import message_format
from lakebed.errors import InvalidData
from lakebed.types.row_kind import TEXTS


def chunks_of(form: str, *messages: Any) -> list[Chunk]:
    bodies = pa.array([m if isinstance(m, str | None) else json.dumps(m) for m in messages], pa.string())
    return message_format(form).chunks(bodies, 0)


def rows_of(chunk: Chunk, *names: str) -> list[tuple[Any, ...]]:
    wanted = names or Description.from_text(chunk.columns).names
    return [(TEXTS[row[KIND]], *(row[name] for name in wanted)) for row in chunk.rows().to_pylist()]


def ogg(kind: str, before: Any = None, after: Any = None, table: str = "SHOP.T", **more: Any) -> dict[str, Any]:
    body = {"table": table, "op_type": kind, "op_ts": "2020-05-13 15:40:06.000000", "primary_keys": ["ID"]}
    rows = {"before": before, "after": after}
    return body | {name: row for name, row in rows.items() if row is not None} | more


def dms(kind: str, data: Any, table: str = "t", **more: Any) -> dict[str, Any]:
    metadata = {
        "timestamp": "2021-02-18T23:57:11.970360Z",
        "record-type": "data",
        "operation": kind,
        "partition-key-type": "schema-table",
        "schema-name": "shop",
        "table-name": table,
    }
    return {"data": data, "metadata": metadata} | more


def test_goldengate_tells_rows_before_and_after() -> None:
    """Inserts, updates with both rows, deletes; the schema's name is the database, the key is told, op_ts is UTC."""
    messages = [
        ogg("I", None, {"ID": 1, "V": "a"}),
        ogg("U", {"ID": 1, "V": "a"}, {"ID": 2, "V": None}),
        None,
        ogg("D", {"ID": 2, "V": None}),
    ]
    (chunk,) = chunks_of("ogg-json", *messages)
    assert rows_of(chunk) == [("+I", "1", "a"), ("-U", "1", "a"), ("+U", "2", None), ("-D", "2", None)]
    assert (chunk.name.database, chunk.name.table) == ("SHOP", "T")
    assert Description.from_text(chunk.columns).primary_key == ("ID",)
    assert chunk.rows().to_pylist()[0][OP_TS] == dt.datetime(2020, 5, 13, 15, 40, 6, tzinfo=dt.UTC)


def test_goldengate_rows_that_lack_columns_take_them_from_one_another() -> None:
    """What one of the two rows of an update does not name is as in the other; a null that is told stays null."""
    (chunk,) = chunks_of("ogg-json", ogg("U", {"ID": 1, "V": "a"}, {"ID": 1, "W": "x", "N": None}))
    assert rows_of(chunk, "ID", "V", "W", "N") == [("-U", "1", "a", "x", None), ("+U", "1", "a", "x", None)]


def test_goldengate_names_of_containers() -> None:
    """A name of three parts is database, schema and table; one of one part has neither."""
    names = [chunk.name for chunk in chunks_of("ogg-json", *(ogg("I", None, {"ID": 1}, t) for t in ("P.S.T", "T")))]
    assert [(name.database, name.schema, name.table) for name in names] == [("P", "S", "T"), ("", "", "T")]


def test_dms_updates_with_and_without_their_old_row() -> None:
    """Old values come with a prefix or as an image of their own; without any an update is the new row alone."""
    messages = [
        dms("load", {"id": 1, "v": "a", "BI_v": None}),
        dms("update", {"id": 1, "v": "b", "BI_v": "a"}),
        dms("update", {"id": 2, "v": "b"}, **{"before-image": {"id": 1}}),
        dms("update", {"id": 2, "v": "c"}),
        dms("delete", {"id": 2, "v": "c"}),
    ]
    (chunk,) = chunks_of("aws-dms-json", *messages)
    assert rows_of(chunk) == [
        ("+I", "1", "a"),
        ("-U", "1", "a"),
        ("+U", "1", "b"),
        ("-U", "1", "b"),
        ("+U", "2", "b"),
        ("+I", "2", "c"),
        ("-D", "2", "c"),
    ]


def test_dms_loads_are_the_copy_and_control_is_left_out() -> None:
    """Rows of a full load are of the copy; records about tables are none."""
    control = {"metadata": {"record-type": "control", "operation": "create-table", "table-name": "t"}}
    (chunk,) = chunks_of("aws-dms-json", control, dms("load", {"id": 1}))
    assert (chunk.phase, rows_of(chunk)) == (COPY, [("+I", "1")])


def test_dms_says_when_a_row_was_committed_if_it_knows() -> None:
    """The time of the commit counts before that of the message."""
    message = dms("insert", {"id": 1})
    message["metadata"]["commit-timestamp"] = "2021-02-18T23:57:10.5Z"
    (chunk,) = chunks_of("aws-dms-json", message)
    assert chunk.rows().to_pylist()[0][OP_TS] == dt.datetime(2021, 2, 18, 23, 57, 10, 500_000, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("form", "message", "part"),
    [
        ("ogg-json", ogg("T"), "'T'"),
        ("ogg-json", ogg("U", None, {"ID": 1}), "`before`"),
        ("ogg-json", ogg("U", {"ID": 1}, None), "`after`"),
        ("ogg-json", ogg("I", None, {"ID": 1}, op_ts="soon"), "soon"),
        ("ogg-json", "{", "can not be read"),
        ("aws-dms-json", {"data": {"id": 1}}, "None"),
        ("aws-dms-json", dms("truncate", {"id": 1}), "'truncate'"),
        ("aws-dms-json", dms("insert", None), "`data`"),
    ],
)
def test_what_is_no_change_is_an_error(form: str, message: Any, part: str) -> None:
    """Unknown operations, rows that lack and times that are none are named."""
    with pytest.raises(InvalidData) as caught:
        chunks_of(form, message)
    assert part in caught.value.message


@pytest.mark.parametrize("form", ["ogg-json", "aws-dms-json"])
def test_random_histories_end_as_a_plain_model_says(form: str) -> None:
    """Changes of several tables, applied one by one in the order of the chunks, leave what the messages tell."""
    chance = random.Random(5)
    for _ in range(20):
        model: dict[tuple[str, str], str] = {}
        messages = []
        for number in range(60):
            table, key = chance.choice("ab"), str(chance.randint(1, 5))
            old = model.get((table, key))
            new = f"v{number}"
            if old is None:
                model[table, key] = new
                row = {"ID": key, "V": new}
                messages.append(ogg("I", None, row, table) if form == "ogg-json" else dms("insert", row, table))
            elif chance.random() < 0.3:
                del model[table, key]
                row = {"ID": key, "V": old}
                messages.append(ogg("D", row, None, table) if form == "ogg-json" else dms("delete", row, table))
            else:
                model[table, key] = new
                row, was = {"ID": key, "V": new}, {"ID": key, "V": old}
                told = {**row, "BI_V": old} if chance.random() < 0.5 else row
                messages.append(ogg("U", was, row, table) if form == "ogg-json" else dms("update", told, table))
        found: dict[tuple[str, str], str] = {}
        for chunk in chunks_of(form, *messages):
            for kind, key, value in rows_of(chunk, "ID", "V"):
                if kind in ("-U", "-D"):
                    assert found.pop((chunk.name.table, key)) == value
                else:
                    found[chunk.name.table, key] = value
        assert found == model


def test_changes_of_a_table_keep_their_order_when_it_is_described_otherwise_in_between() -> None:
    """Messages whose description comes and goes are not brought together over those in between."""
    messages = [ogg("I", None, {"ID": n}, primary_keys=["ID"] if n % 2 else ["ID", "V"]) for n in range(6)]
    found = [int(row[1]) for chunk in chunks_of("ogg-json", *messages) for row in rows_of(chunk, "ID")]
    assert found == list(range(6))
