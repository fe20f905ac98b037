from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.merge.aggregates.scalar_folds import Column, exactly, visible

from lakebed.errors import InvalidData, InvalidOption
from lakebed.types import logical as lt
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import DataType

ASCENDING: list[tuple[DataType, list[Any]]] = [
    (lt.BOOLEAN, [False, True]),
    (lt.TINYINT, [-128, -1, 0, 127]),
    (lt.SMALLINT, [-(2**15), 0, 2**15 - 1]),
    (lt.INT, [-(2**31), -1, 0, 2**31 - 1]),
    (lt.BIGINT, [-(2**63), -1, 0, 2**63 - 1]),
    (lt.FLOAT, [float("-inf"), -1.5, -0.0, 0.0, 2.0**-149, float("inf"), float("nan")]),
    (lt.DOUBLE, [float("-inf"), -5e-324, -0.0, 0.0, 5e-324, float("inf"), float("nan")]),
    (lt.decimal(5, 2), [Decimal("-999.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("999.99")]),
    (lt.decimal(38, 0), [Decimal(1 - 10**38), Decimal(-1), Decimal(2**64), Decimal(10**38 - 1)]),
    (lt.char(3), ["", "a", "aa", "b"]),
    (lt.varchar(9), ["A", "a", "z", "é", "\uffff", "\U0001f600"]),
    (lt.STRING, ["", " ", "10", "9"]),
    (lt.binary(2), [b"\x00\x00", b"\x00\xff", b"\x7f\x00", b"\x80\x00"]),
    (lt.BYTES, [b"", b"\x00", b"\x00\x00", b"\xff"]),
    (lt.DATE, [-(2**31), -1, 0, 2**31 - 1]),
    (lt.time(3), [0, 1, 86_399_999]),
    (lt.timestamp(0), [-(2**40), -1, 0, 2**40]),
    (lt.timestamp(6), [-(2**63), -1, 0, 2**63 - 1]),
    (lt.timestamp(9), [-(2**63), -1, 0, 2**63 - 1]),
    (lt.timestamp_ltz(3), [-(2**50), -1, 0, 2**50]),
]


def array(data_type: DataType, values: list[Any]) -> pa.Array:
    """Times are given as the integers they are stored as."""
    arrow = to_arrow_type(data_type)
    if pa.types.is_temporal(arrow):
        return pa.array(values, pa.int32() if arrow.bit_width == 32 else pa.int64()).view(arrow)
    return pa.array(values, arrow)


def raw(column: pa.Array) -> list[Any]:
    """The inverse: times as integers."""
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return list(column.to_pylist())


@pytest.mark.parametrize(("data_type", "ascending"), ASCENDING, ids=[str(data_type) for data_type, _ in ASCENDING])
def test_every_order_of_every_type(data_type: DataType, ascending: list[Any]) -> None:
    """Every type that has an order is compared in it, whatever the order and number of rows, nulls left aside."""
    rows: list[tuple[int, Any]] = []
    expected: dict[str, list[Any]] = {"max": [], "min": []}
    for chosen in itertools.chain.from_iterable(itertools.permutations(range(len(ascending)), n) for n in (2, 3)):
        key = len(expected["max"])
        rows += [(key, ascending[chosen[0]]), (key, None), *((key, ascending[rank]) for rank in chosen[1:])]
        expected["max"].append(ascending[max(chosen)])
        expected["min"].append(ascending[min(chosen)])
    keys, values = zip(*rows, strict=True)
    for function, winners in expected.items():
        column = Column(data_type, function)
        merged = column.merged(column.rows(keys, ["+I"] * len(keys), array(data_type, list(values))))
        assert repr(raw(merged.column("v"))) == repr(winners)


@pytest.mark.parametrize("function", ["max", "min"])
@pytest.mark.parametrize(("data_type", "ascending"), ASCENDING, ids=[str(data_type) for data_type, _ in ASCENDING])
def test_nulls(data_type: DataType, ascending: list[Any], function: str) -> None:
    """Nulls do not count, even beside the smallest and largest values; without any value the result is null."""
    column = Column(data_type, function)
    for value in (ascending[0], ascending[-1]):
        values = array(data_type, [None, value, None, None, None, value, value])
        merged = column.merged(column.rows([1, 1, 1, 2, 2, 3, 3], ["+I"] * 7, values))
        assert repr(raw(merged.column("v"))) == repr([value, None, value])
    assert visible(column.merged(column.rows([1, 1], ["+I"] * 2, array(data_type, [None, None])))) == [None]


def test_long_keys() -> None:
    """A key with many rows meets the others in as many rounds as it needs."""
    column = Column(lt.STRING, "max")
    values = [f"{number * 7919 % 1009:04}" for number in range(1009)]
    rows = column.rows([1] * 1009 + [2, 2, 3], ["+I"] * 1012, [*values, "x", "y", "z"])
    assert visible(column.merged(rows)) == ["1008", "y", "z"]


def test_example_of_the_notes() -> None:
    """M-30: the largest price stays."""
    assert Column(lt.DOUBLE, "max").after_each(("+I", 23.0), ("+I", 30.2)) == [23.0, 30.2]


@pytest.mark.parametrize("function", ["max", "min"])
def test_retracts(function: str) -> None:
    """M-44, M-45: a value can not be taken back, unless retracts are ignored; a lone retract passes."""
    ignoring = Column(lt.INT, function, {"ignore-retract": "true"})
    assert ignoring.after_each(("+I", 9), ("-D", 9)) == [9, 9]
    column = Column(lt.INT, function)
    assert exactly(column.merged(column.rows([1], ["-D"], [9]))) == [(1, 3, "9")]
    with pytest.raises(InvalidData, match=f"`v`.*`{function}` can not take back"):
        column.after_each(("+I", 9), ("-D", 9))


@pytest.mark.parametrize(
    "data_type",
    [lt.ArrayType(lt.INT), lt.MapType(lt.INT, lt.INT), lt.MultisetType(lt.INT), lt.RowType(()), lt.VARIANT, lt.BLOB],
    ids=str,
)
def test_types_without_order_are_refused(data_type: DataType) -> None:
    """What has no order has neither largest nor smallest."""
    column = Column(data_type, "max")
    with pytest.raises(InvalidOption, match="`max` does not take column `v`"):
        column.engine.check(column.setup, "t")
