"""Tables that streaming INSERTs write, and models of what they should hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from tests.views.judging import bag

from lakebed.lake import Lake
from lakebed.views.insert import StreamingInsert


def insert(lake: Lake, target: str, query: str, *columns: str, name: str = "x") -> StreamingInsert:
    """A streaming INSERT in the database `default`."""
    return StreamingInsert(lake, target, query, name=name, database="default", columns=columns)


def table_like(lake: Lake, name: str, query: str, key: list[str], **options: str) -> None:
    """A table with the columns of a query and a primary key."""
    columns = lake.query(query).arrow().schema
    fields = [pa.field(each.name, each.type, each.name not in key) for each in columns]
    lake.create_table(name, pa.schema(fields), primary_key=key, options={"bucket": "1", **options})


def other_rows(lake: Lake, name: str, query: str) -> str | None:
    """What is wrong with a table that should have the rows of a query; None if it has."""
    expected, found = bag(lake.query(query).arrow()), bag(lake.query(f"SELECT * FROM {name}").arrow())
    return None if expected == found else f"missing {expected - found}, too many {found - expected}"


def counting_table(lake: Lake, name: str, **options: str) -> None:
    """A table that counts how often it was sent a text: whatever is taken back must have been sent."""
    summing = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "bucket": "1", **options}
    lake.create_table(name, {"k": "STRING NOT NULL", "n": "BIGINT"}, primary_key=["k"], options=summing)


def as_text(lake: Lake, query: str) -> str:
    """A query for the rows of a query as texts, each counted once."""
    columns = lake.query(query).arrow().schema
    parts = ", ".join(f"coalesce(cast(`{each.name}` AS STRING), '~')" for each in columns)
    return f"SELECT concat_ws('|', {parts}) AS k, 1 AS n FROM ({query})"


def other_counts(lake: Lake, name: str, texts: str) -> str | None:
    """What is wrong with a counting table; None if it counts the rows of the query for texts."""
    expected: Counter[Any] = Counter(lake.query(texts).arrow().column("k").to_pylist())
    rows = lake.query(f"SELECT k, n FROM {name} WHERE n <> 0").arrow().to_pylist()
    found = {row["k"]: row["n"] for row in rows}
    return None if dict(expected) == found else f"expected {expected}, found {found}"
