"""Rows on which both engines are compared: ordinary ones, and the ends of every type, NaN and odd letters."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakebed.expressions import kinds

SCHEMA = pa.schema(
    [
        ("id", kinds.INT),
        ("g", kinds.INT),
        ("b", kinds.BOOLEAN),
        ("b2", kinds.BOOLEAN),
        ("t", kinds.TINYINT),
        ("h", kinds.SMALLINT),
        ("i", kinds.INT),
        ("i2", kinds.INT),
        ("l", kinds.BIGINT),
        ("l2", kinds.BIGINT),
        ("f", kinds.FLOAT),
        ("f2", kinds.FLOAT),
        ("d", kinds.DOUBLE),
        ("d2", kinds.DOUBLE),
        ("m", kinds.decimal(10, 2)),
        ("m2", kinds.decimal(10, 2)),
        ("m38", kinds.decimal(38, 10)),
        ("m5", kinds.decimal(5, 0)),
        ("s", kinds.STRING),
        ("s2", kinds.STRING),
        ("n", kinds.STRING),  # numbers as text
        ("y", kinds.BINARY),
        ("dt", kinds.DATE),
        ("dt2", kinds.DATE),
        ("ts", kinds.TIMESTAMP),
        ("ts2", kinds.TIMESTAMP),
        ("nt", kinds.TIMESTAMP_NTZ),
        ("nt2", kinds.TIMESTAMP_NTZ),
        ("ai", kinds.array_of(kinds.INT)),
        ("ai2", kinds.array_of(kinds.INT)),
        ("as_", kinds.array_of(kinds.STRING)),
        ("ms", kinds.map_of(kinds.STRING, kinds.INT)),
        ("r", pa.struct([("x", kinds.INT), ("z", kinds.STRING)])),
    ]
)

_WORDS = [
    "",
    "a",
    "abc",
    "Abc",
    " abc ",
    "hello world",
    "ß",
    "Straße",
    "İstanbul",
    "naïve",
    "日本語",
    "👍🏽x",
    "a%b_c\\d",
]
_WORDS += [
    "x,y,,z",
    "2024-05-14",
    "2024-05-14 13:45:01.5",
    "12",
    "-7.5",
    "tRue",
    "null",
    "a\tb\nc",
    "ΑΣ",
    "ǆ",
    "e\u0301",
]
_UTC = dt.UTC


def ordinary(rows: int = 200, seed: int = 7) -> pa.Table:
    """Values as people have them, one in eight null; fractions are multiples of a quarter, so that sums are exact."""
    draw = random.Random(seed)
    return pa.Table.from_pylist([_row(draw, number) for number in range(rows)], schema=SCHEMA)


def _row(draw: random.Random, number: int) -> dict[str, Any]:
    def some(value: Any) -> Any:
        return None if draw.random() < 0.125 else value

    def moment() -> dt.datetime:
        return dt.datetime(2024, 1, 1) + dt.timedelta(microseconds=draw.randrange(-(10**14), 10**14))

    def numbers() -> Any:
        return some([some(draw.randrange(-3, 4)) for _ in range(draw.randrange(5))])

    return {
        "id": number,
        "g": draw.randrange(5),
        "b": some(draw.random() < 0.5),
        "b2": some(draw.random() < 0.5),
        "t": some(draw.randrange(-10, 10)),
        "h": some(draw.randrange(-100, 100)),
        "i": some(draw.randrange(-20, 20)),
        "i2": some(draw.randrange(1, 9)),
        "l": some(draw.randrange(-(10**12), 10**12)),
        "l2": some(draw.randrange(1, 1000)),
        "f": some(draw.randrange(-100, 100) / 4),
        "f2": some(draw.randrange(1, 100) / 4),
        "d": some(draw.randrange(-1000, 1000) / 4),
        "d2": some(draw.randrange(1, 100) / 4),
        "m": some(Decimal(draw.randrange(-(10**6), 10**6)).scaleb(-2)),
        "m2": some(Decimal(draw.randrange(1, 10**4)).scaleb(-2)),
        "m38": some(Decimal(draw.randrange(-(10**15), 10**15)).scaleb(-10)),
        "m5": some(Decimal(draw.randrange(1, 10**3))),
        "s": some(draw.choice(_WORDS)),
        "s2": some(draw.choice(["a", "b", "abc", "l", "", "%", "语"])),
        "n": some(str(draw.randrange(-50, 50))),
        "y": some(draw.randbytes(draw.randrange(5))),
        "dt": some(moment().date()),
        "dt2": some(moment().date()),
        "ts": some(moment().replace(tzinfo=_UTC)),
        "ts2": some(moment().replace(microsecond=0, tzinfo=_UTC)),
        "nt": some(moment()),
        "nt2": some(moment().replace(microsecond=0)),
        "ai": numbers(),
        "ai2": numbers(),
        "as_": some([some(draw.choice(_WORDS)) for _ in range(draw.randrange(4))]),
        "ms": some([(key, some(draw.randrange(9))) for key in draw.sample(["a", "b", "c", "abc"], draw.randrange(4))]),
        "r": some({"x": some(draw.randrange(5)), "z": some(draw.choice(_WORDS))}),
    }


def extreme() -> pa.Table:
    """The ends of every type, each in a row of its own, the other columns null or small."""
    nan, inf = float("nan"), float("inf")
    first, last = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
    ends: dict[str, list[Any]] = {
        "t": [-128, 127, 0],
        "h": [-32768, 32767, 0],
        "i": [-(2**31), 2**31 - 1, 0, -1],
        "i2": [0, -1, 2**31 - 1, -(2**31)],
        "l": [-(2**63), 2**63 - 1, 0, -1],
        "l2": [0, -1, 2**63 - 1],
        "f": [nan, inf, -inf, -0.0, 3.4028234663852886e38, 1.401298464324817e-45, 0.1, 16777216.0],
        "f2": [nan, 0.0, -0.0, inf],
        "d": [
            nan,
            inf,
            -inf,
            -0.0,
            1.7976931348623157e308,
            5e-324,
            0.1,
            1e15,
            1e-5,
            123456789.123,
            2.5,
            -2.5,
            0.5,
            1e7,
        ],
        "d2": [nan, 0.0, -0.0, inf, 3.0],
        "m": [Decimal("99999999.99"), Decimal("-99999999.99"), Decimal("0.00"), Decimal("0.01"), Decimal("2.50")],
        "m2": [Decimal("0.00"), Decimal("99999999.99"), Decimal("-0.01"), Decimal("3.00")],
        "m38": [Decimal("9" * 28 + "." + "9" * 10), Decimal("-" + "9" * 28 + "." + "9" * 10), Decimal("1e-10")],
        "m5": [Decimal("99999"), Decimal("0"), Decimal("-99999")],
        "s": [
            *_WORDS,
            "1e400",
            "9223372036854775808",
            "0x1F",
            "NaN",
            "Infinity",
            "+5",
            "1_000",
            "１２",
            " \t12\n",
            "1.",
            ".5",
        ],
        "n": ["2147483648", "-9223372036854775808", "1.5", "abc", "", " 3 ", "1e2", "\u00a05"],
        "y": [b"", b"\x00", b"\xff\xfe", "日".encode()],
        "dt": [first.date(), last.date(), dt.date(1582, 10, 4), dt.date(1582, 10, 15), dt.date(2024, 2, 29)],
        "ts": [
            first.replace(tzinfo=_UTC),
            dt.datetime(2024, 3, 31, 1, 30, tzinfo=_UTC),
            dt.datetime(1900, 1, 1, tzinfo=_UTC),
        ],
        "nt": [first, last, dt.datetime(2024, 3, 31, 2, 30), dt.datetime(2024, 10, 27, 2, 30)],
        "ai": [[], [None], [2**31 - 1, -(2**31)], list(range(40))],
        "ms": [[], [("", None)]],
        "r": [{"x": None, "z": None}],
    }
    rows = []
    for column, values in ends.items():
        for value in values:
            rows.append({"id": len(rows), "g": 0, "i2": 1, "d2": 1.0, "m2": Decimal("1.00"), "l2": 1, column: value})
    return pa.Table.from_pylist(rows, schema=SCHEMA)
