"""The way in: connecting, and making tables from the several ways to write a schema."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import ints

import lakebed
from lakebed.errors import InvalidArgument
from lakebed.types.logical import BIGINT, STRING, DataField


def test_connecting_creates_nothing(tmp_path: Path) -> None:
    """A warehouse comes to be with its first table, not when it is opened or looked at."""
    lake = lakebed.connect(str(tmp_path / "new"))
    assert lake.tables() == []
    assert lake.databases() == ["default"]
    assert not lake.has_table("t")
    assert not (tmp_path / "new").exists()
    lake.create_table("t", {"id": "INT"})
    assert (tmp_path / "new" / "default.db" / "t" / "schema" / "schema-0").exists()


def test_ways_to_name_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path object, a text, a URL and a relative path mean the same warehouse."""
    lakebed.connect(tmp_path / "w").create_table("t", {"id": "INT"})
    monkeypatch.chdir(tmp_path)
    for path in (str(tmp_path / "w"), f"file://{tmp_path}/w", "w", "./w/"):
        assert lakebed.connect(path).tables() == ["t"]


def test_memory_warehouses_are_shared_by_name() -> None:
    """The same memory URL is the same warehouse; another is another."""
    name = uuid4().hex
    lakebed.connect(f"memory://{name}").create_table("t", {"id": "INT"})
    assert lakebed.connect(f"memory://{name}").tables() == ["t"]
    assert lakebed.connect(f"memory://{name}x").tables() == []


@pytest.mark.parametrize("path", [None, 5, "", "nowhere://x", "memory://", b"bytes"])
def test_places_that_are_none(path: Any) -> None:
    """What is no path and no known URL is refused with what would be one."""
    with pytest.raises(InvalidArgument) as raised:
        lakebed.connect(path)
    assert raised.value.hint


FIELDS = (DataField(7, "id", BIGINT), DataField(9, "name", STRING, "who"))
ARROW = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string(), metadata={"comment": "who"})])


@pytest.mark.parametrize(
    "schema",
    [
        ARROW,
        FIELDS,
        list(FIELDS),
        {"id": "BIGINT", "name": "STRING"},
        MappingProxyType({"id": pa.int64(), "name": pa.large_string()}),
        {"id": BIGINT, "name": STRING},
    ],
    ids=lambda schema: type(schema).__name__,
)
def test_ways_to_write_a_schema(schema: Any) -> None:
    """Arrow schemas, mappings of texts or types, and fields all make the same columns."""
    lake = lakebed.connect(f"memory://{uuid4().hex}")
    table = lake.create_table("t", schema)
    assert table.arrow_schema.equals(pa.schema([("id", pa.int64()), ("name", pa.string())]))
    assert [field.id for field in table.schema.fields] == [0, 1]
    if not isinstance(schema, Mapping):
        assert table.schema.field("name").description == "who"


def test_what_a_table_says_of_itself() -> None:
    """Name, columns, keys, options, comment and place are as they were given, also after reopening."""
    path = f"memory://{uuid4().hex}/w"
    lakebed.connect(path).create_table(
        "t",
        {"id": "INT", "day": "DATE", "v": "STRING"},
        primary_key=["id", "day"],
        partition_by=["day"],
        options={"bucket": 4, "file.format": "ORC"},
        comment="daily values",
    )
    table = lakebed.connect(path).table("t")
    assert table.name == "default.t"
    assert table.primary_key == ("id", "day")
    assert table.partition_by == ("day",)
    assert table.options == {"bucket": "4", "file.format": "orc"}
    assert table.comment == "daily values"
    assert table.location.endswith("default.db/t")
    assert [field.type.nullable for field in table.schema.fields] == [False, False, True]
    assert "default.t" in repr(table)
    assert "id, day, v" in repr(table)
    assert path.removeprefix("memory://") in repr(lakebed.connect(path))


def test_keys_may_be_given_as_options() -> None:
    """`primary-key` and `partition` among the options are keys, not options."""
    lake = lakebed.connect(f"memory://{uuid4().hex}")
    table = lake.create_table(
        "t", {"id": "INT", "p": "INT"}, options={"primary-key": "id,p", "partition": "p", "bucket": "1"}
    )
    assert (table.primary_key, table.partition_by) == (("id", "p"), ("p",))
    assert table.options == {"bucket": "1"}
    table.write(pa.table({"id": ints(1), "p": ints(1)}))
    assert table.to_arrow().num_rows == 1


def test_what_is_no_spark_session_is_refused() -> None:
    """Something else in the place of a session is named at once, not when it is first used."""
    with pytest.raises(InvalidArgument, match="object"):
        lakebed.connect("memory://no-spark", spark=object())
