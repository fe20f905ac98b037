"""Products of decimals are exact, whatever number of bits the embedded engine computes them in."""

from __future__ import annotations

import decimal
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import lakebed

TYPES = [
    ((4, 1), (5, 2)),  # 64 bits hold all
    ((9, 2), (9, 0)),
    ((10, 2), (9, 0)),  # one digit more than they hold
    ((15, 2), (16, 2)),
    ((18, 4), (18, 9)),
    ((19, 0), (1, 0)),  # 128 bits at once
    ((20, 10), (18, 0)),
    ((32, 4), (16, 2)),  # by the type of the second and the value of the first
    ((16, 2), (32, 4)),
    ((38, 2), (5, 1)),
    ((38, 10), (38, 10)),  # by the values of both
    ((30, 20), (30, 15)),
]


@pytest.mark.parametrize(("left", "right"), TYPES, ids=lambda kind: f"{kind[0]}_{kind[1]}")
def test_a_product_is_exact(tmp_path: Path, left: tuple[int, int], right: tuple[int, int]) -> None:
    """Of the smallest and largest values and of any between, rounded half up to the digits that the type has."""
    chance = Random(f"{left} {right}")
    columns = []
    for precision, scale in (left, right):
        most = 10**precision - 1
        any_of_them = [chance.choice((1, -1)) * chance.randrange(10 ** chance.randint(1, precision)) for _ in range(40)]
        wholes = [0, 1, -1, most, -most, *any_of_them]
        columns.append([Decimal(whole).scaleb(-scale, _WIDE) for whole in wholes])
    lake = lakebed.connect(tmp_path)
    schema = pa.schema([("a", pa.decimal128(*left)), ("b", pa.decimal128(*right))])
    table = lake.create_table("t", schema)
    kind = lake.query("SELECT a * b AS p FROM t", engine="duckdb").arrow().schema.field("p").type
    most = Decimal(10) ** (kind.precision - kind.scale)
    expected = [(a, b, p) for a in columns[0] for b in columns[1] if abs(p := _rounded(a, b, kind.scale)) < most]
    table.write(pa.table([[a for a, _, _ in expected], [b for _, b, _ in expected]], schema=schema))
    found = lake.query("SELECT a, b, a * b FROM t", engine="duckdb").fetchall()
    assert sorted(found) == sorted(expected)


_WIDE = decimal.Context(prec=160, rounding=decimal.ROUND_HALF_UP)


def _rounded(a: Decimal, b: Decimal, scale: int) -> Decimal:
    return _WIDE.multiply(a, b).quantize(Decimal(1).scaleb(-scale), context=_WIDE)
