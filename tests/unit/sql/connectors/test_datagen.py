"""Rows that are made up: the same from wherever one begins, within their bounds, and no faster than asked for."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.warehouse_under_test import Warehouse

from lakebed.clock import FixedClock
from lakebed.errors import InvalidOption
from lakebed.sql.connectors.datagen import DatagenReader
from lakebed.sql.session import connector_tables

_ALL = (
    "b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(20, 3), c CHAR(5), v VARCHAR(8), "
    "st STRING, y BINARY(3), z BYTES, dt DATE, ts TIMESTAMP(3), tl TIMESTAMP_LTZ(6), q BIGINT, qs STRING"
)
_MORE = {
    "rows-per-second": "100",
    "fields.i.min": "-3",
    "fields.i.max": "4",
    "fields.n.min": "-1.5",
    "fields.n.max": "1.5",
    "fields.f.min": "0",
    "fields.f.max": "1",
    "fields.st.length": "20",
    "fields.st.null-rate": "0.25",
    "fields.tl.max-past": "10 s",
    "fields.q.kind": "sequence",
    "fields.q.start": "5",
    "fields.q.end": "100000",
    "fields.qs.kind": "sequence",
    "fields.qs.start": "0",
    "fields.qs.end": "100000",
}


def _reader(warehouse: Warehouse, columns: str, *, name: str = "g", clock: Any = None, **options: str) -> DatagenReader:
    given = ", ".join(f"'{key}' = '{value}'" for key, value in {"connector": "datagen", **options}.items())
    warehouse.lake.sql(f"CREATE OR REPLACE TABLE {name} ({columns}) WITH ({given})")
    table = connector_tables(warehouse.lake)["default", name]
    return DatagenReader(table, paced=clock is not None, clock=clock or FixedClock(1_700_000_000_000))


def test_a_row_is_what_it_is_wherever_one_begins(warehouse: Warehouse) -> None:
    """Read in random steps by readers that know nothing but a position, the rows are those of one read."""
    whole, end, is_end = _reader(warehouse, _ALL, **_MORE).read(None, 2000)
    assert not is_end
    chance = random.Random(5)
    found, place = [], None
    while sum(map(len, found)) < 2000:
        size = min(chance.randint(1, 400), 2000 - sum(map(len, found)))
        rows, place, _ = _reader(warehouse, _ALL, **_MORE).read(place, size)
        found.append(rows)
    assert pa.concat_tables(found).equals(whole)
    assert place == end


def test_values_keep_their_bounds(warehouse: Warehouse) -> None:
    """Numbers lie within their bounds and reach them, texts have their length, some values are null where asked."""
    rows, _, _ = _reader(warehouse, _ALL, **_MORE).read(None, 5000)
    whole = set(rows["i"].to_pylist())
    assert whole == set(range(-3, 5))
    decimals = rows["n"].to_pylist()
    assert Decimal("-1.5") <= min(decimals) < -1
    assert 1 < max(decimals) <= Decimal("1.5")
    assert 0 <= pc.min(rows["f"]).as_py() <= pc.max(rows["f"]).as_py() <= 1
    lengths = {name: set(pc.utf8_length(rows[name].drop_null()).to_pylist()) for name in ("c", "v", "st")}
    assert lengths == {"c": {5}, "v": {8}, "st": {20}}
    assert set(pc.binary_length(rows["y"]).to_pylist()) == {3}
    assert 0.2 < rows["st"].null_count / 5000 < 0.3
    assert rows["q"].to_pylist() == list(range(5, 5005))
    assert rows["qs"][:3].to_pylist() == ["0", "1", "2"]
    assert rows["b"].to_pylist().count(True) in range(2200, 2800)
    spread = len(set(rows["l"].to_pylist()))
    assert spread == 5000
    times = rows["ts"].to_pylist()
    assert (times[100] - times[0]).total_seconds() == 1
    past = [(a - b.replace(tzinfo=None)).total_seconds() for a, b in zip(times, rows["tl"].to_pylist(), strict=True)]
    assert min(past) >= 0
    assert 9 < max(past) <= 10


def test_columns_and_tables_differ(warehouse: Warehouse) -> None:
    """Two columns, and tables of two names, do not repeat each other."""
    rows, _, _ = _reader(warehouse, "a BIGINT, b BIGINT").read(None, 50)
    other, _, _ = _reader(warehouse, "a BIGINT, b BIGINT", name="h").read(None, 50)
    assert len({*rows["a"].to_pylist(), *rows["b"].to_pylist(), *other["a"].to_pylist()}) == 150


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"number-of-rows": "7"}, 7),
        ({"number-of-rows": "0"}, 0),
        ({"fields.a.kind": "sequence", "fields.a.start": "3", "fields.a.end": "5"}, 3),
        ({"number-of-rows": "2", "fields.a.kind": "sequence", "fields.a.start": "3", "fields.a.end": "5"}, 2),
    ],
)
def test_rows_end(warehouse: Warehouse, options: dict[str, str], count: int) -> None:
    """At the number that is asked for, or where a sequence is used up; from there on nothing comes."""
    reader = _reader(warehouse, "a INT", **options)
    rows, place, is_end = reader.read(None, 100)
    assert (rows.num_rows, is_end) == (count, True)
    rows, again, is_end = reader.read(place, 100)
    assert (rows.num_rows, is_end, again) == (0, True, place)
    assert reader.progress(place) == (count, count)


def test_rows_come_at_their_rate(warehouse: Warehouse) -> None:
    """Ten rows a second, whoever asks how often; time at which nobody read is not made up for."""
    clock = FixedClock(1_700_000_000_000)
    reader = _reader(warehouse, "a INT", clock=clock, **{"rows-per-second": "10"})
    place: str | None = None
    sizes = []
    for _ in range(4):
        rows, place, _ = reader.read(place, 1000)
        sizes.append(rows.num_rows)
        clock.sleep_ms(500)
    assert sizes == [1, 5, 5, 5]
    clock.sleep_ms(60_000)
    later = _reader(warehouse, "a INT", clock=clock, **{"rows-per-second": "10"})
    rows, place, _ = later.read(place, 1000)
    assert rows.num_rows == 1


def test_bounds_must_fit_the_type(warehouse: Warehouse) -> None:
    """A bound that the column can not hold is an error of the definition."""
    with warehouse.refuses(InvalidOption, "TINYINT", "`a`"):
        _reader(warehouse, "a TINYINT", **{"fields.a.max": "300"})
