"""Files of a directory as rows: every format, each file once, from any position, and new files as they come."""

from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from tests.unit.warehouse_under_test import Warehouse

from lakebed.errors import InvalidData, Unsupported
from lakebed.sql.connectors.filesystem import FilesReader
from lakebed.sql.session import connector_tables

_COLUMNS = "id INT, name STRING, amount DECIMAL(10, 2), day DATE, at TIMESTAMP(3)"
_ROWS = [
    (1, "a", Decimal("1.50"), dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 3, 4, 5)),
    (2, None, None, None, None),
    (3, "ü'x", Decimal("-3.00"), dt.date(1999, 12, 31), dt.datetime(1999, 12, 31)),
]


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    schema = pa.schema(
        [("id", pa.int32()), ("name", pa.string()), ("amount", pa.decimal128(10, 2)), ("day", pa.date32())]
    ).append(pa.field("at", pa.timestamp("ms")))
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def _csv(path: Path, rows: list[tuple[Any, ...]]) -> None:
    path.write_text("".join(",".join("" if value is None else str(value) for value in row) + "\n" for row in rows))


def _json(path: Path, rows: list[tuple[Any, ...]]) -> None:
    names = _table([]).schema.names
    lines = [
        {name: value if isinstance(value, int | None) else str(value) for name, value in zip(names, row, strict=True)}
        for row in rows
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


_WRITERS = {
    "parquet": lambda path, rows: pq.write_table(_table(rows), path),
    "orc": lambda path, rows: orc.write_table(_table(rows), str(path)),
    "csv": _csv,
    "json": _json,
}


def _reader(warehouse: Warehouse, path: Path, kind: str, columns: str = _COLUMNS, **more: str) -> FilesReader:
    options = {"connector": "filesystem", "path": str(path), "format": kind, **more}
    given = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    warehouse.lake.sql(f"CREATE OR REPLACE TABLE f ({columns}) WITH ({given})")
    return FilesReader(connector_tables(warehouse.lake)["default", "f"])


@pytest.mark.parametrize("kind", list(_WRITERS))
def test_every_format_is_read(warehouse: Warehouse, tmp_path: Path, kind: str) -> None:
    """Values of all columns come back; so they do through a SELECT."""
    (tmp_path / "deep").mkdir()
    _WRITERS[kind](tmp_path / f"one.{kind}", _ROWS[:2])
    _WRITERS[kind](tmp_path / "deep" / f"two.{kind}", _ROWS[2:])
    rows, place, is_end = _reader(warehouse, tmp_path, kind).read(None, 100)
    assert sorted(tuple(row.values()) for row in rows.to_pylist()) == _ROWS
    assert is_end
    found = warehouse.lake.query("SELECT * FROM f ORDER BY id").fetchall()
    assert found == _ROWS
    assert FilesReader(connector_tables(warehouse.lake)["default", "f"]).progress(place) == (2, 2)


def test_any_position_goes_on(warehouse: Warehouse, tmp_path: Path) -> None:
    """Random steps, by the same reader or by new ones, give each row once and in order; new files come behind."""
    chance = random.Random(3)
    numbers = iter(range(10_000))
    for name in "abcde":
        size = chance.choice([0, 1, 50, 300])
        _csv(tmp_path / f"{name}.csv", [(next(numbers),) for _ in range(size)])
    _csv(tmp_path / ".hidden.csv", [("x",)])
    _csv(tmp_path / "_unfinished.csv", [("x",)])
    monitored = {"source.monitor-interval": "1 s"}
    reader = _reader(warehouse, tmp_path, "csv", "id INT", **monitored)
    found: list[int] = []
    place: str | None = None
    while True:
        if chance.random() < 0.5:
            reader = _reader(warehouse, tmp_path, "csv", "id INT", **monitored)
        rows, place, is_end = reader.read(place, chance.randint(1, 90))
        assert not is_end
        if not rows.num_rows:
            break
        found += rows["id"].to_pylist()
    count = next(numbers)
    assert found == list(range(count))
    _csv(tmp_path / "aa.csv", [(-1,), (-2,)])
    rows, place, _ = reader.read(place, 100)
    assert rows["id"].to_pylist() == [-1, -2]
    rows, place, _ = reader.read(place, 100)
    assert rows.num_rows == 0


def test_a_file_that_changes_is_refused(warehouse: Warehouse, tmp_path: Path) -> None:
    """Half of it is read already: the rest would be other rows."""
    _csv(tmp_path / "a.csv", [(1,), (2,), (3,)])
    _, place, _ = _reader(warehouse, tmp_path, "csv", "id INT").read(None, 2)
    _csv(tmp_path / "a.csv", [(0,), (1,), (2,), (3,)])
    with pytest.raises(InvalidData, match=r"a\.csv"):
        _reader(warehouse, tmp_path, "csv", "id INT").read(place, 2)


def test_what_is_no_row_is_named(warehouse: Warehouse, tmp_path: Path) -> None:
    """The file is named; a directory that is not there has no rows; keys are refused."""
    _csv(tmp_path / "bad.csv", [("x",)])
    with pytest.raises(InvalidData, match=r"bad\.csv"):
        _reader(warehouse, tmp_path, "csv", "id INT").read(None, 2)
    assert _reader(warehouse, tmp_path / "none", "csv", "id INT").read(None, 2)[0].num_rows == 0
    with warehouse.refuses(Unsupported, "primary key"):
        _reader(warehouse, tmp_path, "csv", "id INT, PRIMARY KEY (id) NOT ENFORCED")


def test_a_bad_file_is_told_each_time(warehouse: Warehouse, tmp_path: Path) -> None:
    """Whoever tries again is told again, and gets the rows once the file is right: it does not count as read."""
    (tmp_path / "a.json").write_text('{"id": 1}\n')
    reader = _reader(warehouse, tmp_path, "json", "id INT", **{"source.monitor-interval": "1 s"})
    _, place, _ = reader.read(None, 9)
    (tmp_path / "b.json").write_text('{"id": 2}\n{"id": oops\n')
    for _ in range(3):
        with pytest.raises(InvalidData, match=r"b\.json"):
            reader.read(place, 9)
    (tmp_path / "b.json").write_text('{"id": 2}\n')
    assert reader.read(place, 9)[0]["id"].to_pylist() == [2]


def test_csv_is_spelled_as_told(warehouse: Warehouse, tmp_path: Path) -> None:
    """Delimiter and header are options, with the names that a table of the lake has for them."""
    (tmp_path / "a.csv").write_text("id;name\n1;a\n")
    more = {"csv.field-delimiter": ";", "csv.include-header": "true"}
    rows, _, _ = _reader(warehouse, tmp_path, "csv", "id INT, name STRING", **more).read(None, 9)
    assert rows.to_pylist() == [{"id": 1, "name": "a"}]
