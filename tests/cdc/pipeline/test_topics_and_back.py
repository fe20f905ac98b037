"""From a table of the lake to a topic of a real Kafka, and back into another table: the same rows, of every type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.brokers import shared_broker
from tests.patience import PATIENCE_S

import lakebed
from lakebed.connectors import RowInsert, SinkInsertTarget, land, reading_query
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.session import connector_tables
from lakebed.testing.kafka_server import KafkaServer
from lakebed.views.insert import StreamingInsert

COLUMNS = {
    "id": "BIGINT NOT NULL",
    "b": "BOOLEAN",
    "t": "TINYINT",
    "d": "DECIMAL(38, 10)",
    "f": "FLOAT",
    "g": "DOUBLE",
    "s": "STRING",
    "x": "BYTES",
    "day": "DATE",
    "at": "TIMESTAMP(6)",
    "moment": "TIMESTAMP_LTZ(6)",
    "list": "ARRAY<INT>",
    "map": "MAP<STRING, BIGINT>",
    "row": "ROW<x DECIMAL(20, 2), y ARRAY<STRING>, z BYTES, w BOOLEAN>",
}
_UTC = dt.UTC
_FULL: dict[str, Any] = {
    "id": 1,
    "b": True,
    "t": -128,
    "d": Decimal("1234567890123456789012345678.0123456789"),
    "f": 0.1,
    "g": float("-inf"),
    "s": 'a "b" \\ \n\t\x01 é 😀 , {}',
    "x": b"\x00\xff a",
    "day": dt.date(2024, 2, 29),
    "at": dt.datetime(2024, 2, 29, 1, 2, 3, 400),
    "moment": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=_UTC),
    "list": [1, None, 3],
    "map": [("k", 9007199254740993), ('"', None)],
    "row": {"x": Decimal("-1.50"), "y": ["p", None, "]"], "z": b"\x01", "w": False},
}
_ROWS = [
    _FULL,
    dict.fromkeys(_FULL) | {"id": 2},
    {**_FULL, "id": 3, "b": False, "g": 1e-300, "s": "", "x": b"", "list": [], "map": [], "row": dict.fromkeys("xyzw")},
]


@pytest.fixture(scope="module")
def broker() -> KafkaServer:
    """A running one."""
    return shared_broker()


def _table(lake: lakebed.Lake, name: str, more: str = "", options: str = "") -> None:
    columns = ", ".join(f"`{column}` {kind}" for column, kind in COLUMNS.items())
    lake.sql(f"CREATE TABLE {name} ({columns}{more}){f' WITH ({options})' if options else ''}")


def _topic(lake: lakebed.Lake, broker: KafkaServer, topic: str, form: str, more: str = "") -> ConnectorTable:
    broker.create_topic(topic, 2)
    options = f"'connector' = 'kafka', 'topic' = '{topic}', 'format' = '{form}', "
    _table(lake, "k", more, f"{options} 'properties.bootstrap.servers' = '{broker.address}'")
    return connector_tables(lake)["default", "k"]


def _write(lake: lakebed.Lake, *rows: dict[str, Any]) -> None:
    table = lake.table("src")
    table.write(
        pa.Table.from_pylist(list(rows), schema=pa.schema([(f.name, f.type) for f in table.schema.arrow_schema]))
    )


def _sent(lake: lakebed.Lake, table: ConnectorTable) -> None:
    name = table.options["topic"]
    into = SinkInsertTarget(table, name)
    insert = StreamingInsert(lake, "k", "SELECT * FROM src", name=name, database="default", into=into)
    insert.check()
    assert insert.step().changed
    insert.close()


def _found(lake: lakebed.Lake, query: str) -> list[dict[str, Any]]:
    return sorted(lake.query(query).arrow().to_pylist(), key=lambda row: int(row["id"]))


@pytest.mark.spark
def test_changes_come_back(spark: Any, tmp_path: Path, broker: KafkaServer) -> None:
    """New, changed and deleted rows, as messages of changes, land as they were: all values of all types."""
    lake = lakebed.connect(tmp_path / "warehouse", spark=spark)
    key = ", PRIMARY KEY (id) NOT ENFORCED"
    _table(lake, "src", key, "'bucket' = '1', 'changelog-producer' = 'lookup'")
    table = _topic(lake, broker, f"back-{uuid4().hex}", "debezium-json", key)
    _write(lake, *_ROWS)
    for _ in range(2):
        _sent(lake, table)
        assert land(lake, [table], tmp_path / "cp", trigger={"availableNow": True}).wait(PATIENCE_S)
        assert _found(lake, reading_query(lake, table)) == _found(lake, "SELECT * FROM src")
        _write(lake, {**_FULL, "id": 2, "s": None})
        lake.sql("DELETE FROM src WHERE id = 3")


def test_rows_come_back(broker: KafkaServer) -> None:
    """Rows of a table that only grows, as plain JSON, are read from the topic as they were."""
    lake = lakebed.connect(f"memory://{uuid4().hex}/warehouse")
    _table(lake, "src")
    _table(lake, "copy")
    table = _topic(lake, broker, f"rows-{uuid4().hex}", "json")
    _write(lake, *_ROWS)
    _sent(lake, table)
    back = RowInsert(lake, table, "copy", "SELECT * FROM k", name="copy", database="default")
    assert back.step().inserted == len(_ROWS)
    _write(lake, {**_FULL, "id": 4})
    _sent(lake, table)
    assert (back.step().inserted, back.step().way) == (1, "none")
    assert _found(lake, "SELECT * FROM copy") == _found(lake, "SELECT * FROM src")
