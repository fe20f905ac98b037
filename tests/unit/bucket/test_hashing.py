"""Key hashes: known numbers, and equality with a plain Murmur3 over the rows that the codec writes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakebed.bucket import hashing
from lakebed.bucket.hashing import hash_row, hash_rows
from lakebed.errors import InvalidArgument, InvalidData, InvalidSchema
from lakebed.types import logical as lt
from lakebed.types.arrow import to_arrow_type
from lakebed.types.binary_row import encode_rows
from lakebed.types.logical import AtomicType, DataType, TypeRoot

MOMENT = dt.datetime(2024, 1, 2, 3, 4, 5, 123456)

# (types, values, hash)
KNOWN_HASHES: list[tuple[str, list[Any], int]] = [
    ("INT", [1], 1465514398),
    ("BIGINT", [1], 1465514398),
    ("BOOLEAN", [True], 1465514398),
    ("INT", [42], 907821237),
    ("INT", [-1], 1133687267),
    ("INT", [None], -1748325344),
    ("BIGINT", [1234567890123], -1873221036),
    ("TINYINT", [7], -348168691),
    ("STRING", [""], 302122119),
    ("STRING", ["a"], 943281246),
    ("STRING", ["paimon!"], 1379221098),
    ("STRING", ["12345678"], -391021801),
    ("STRING", ["apache-paimon"], -167101062),
    ("BYTES", [b"\1\2\3"], 1066645297),
    ("DATE", [dt.date(2024, 5, 14)], 1806713378),
    ("DECIMAL(10, 2)", [Decimal("123.45")], 767607022),
    ("DECIMAL(20, 2)", [Decimal("123.45")], -118192725),
    ("TIMESTAMP(3)", [MOMENT.replace(microsecond=123000)], 1903343740),
    ("TIMESTAMP(6)", [MOMENT], -1539318453),
    ("TIMESTAMP(6)", [None], -340882661),
    ("INT|STRING", [1, "a"], -948407462),
    ("STRING|BIGINT", ["2024-01-01", 7], 1755510402),
    ("STRING|STRING", ["hello world", "second value"], -1246670444),
]


@pytest.mark.parametrize(("text", "values", "expected"), KNOWN_HASHES)
@pytest.mark.parametrize("copies", [1, 40])
def test_known_hashes(text: str, values: list[Any], expected: int, copies: int) -> None:
    """Hashes are the numbers other implementations compute, for one row as for many."""
    types = [lt.parse_type(part) for part in text.split("|")]
    columns = [pa.array([value] * copies, to_arrow_type(t)) for value, t in zip(values, types, strict=True)]
    hashes = hash_rows(columns, types)
    assert hashes.dtype == np.int32
    assert hashes.tolist() == [expected] * copies
    assert hash_row(encode_rows(columns, types, arity_prefix=False)[0].as_py()) == expected


def plain_hash(row: bytes) -> int:
    """Murmur3 of one row, written from its definition."""
    h = 42
    for at in range(0, len(row), 4):
        k = int.from_bytes(row[at : at + 4], "little") * 0xCC9E2D51 & 0xFFFFFFFF
        k = (k << 15 | k >> 17) * 0x1B873593 & 0xFFFFFFFF
        h ^= k
        h = ((h << 13 | h >> 19) * 5 + 0xE6546B64) & 0xFFFFFFFF
    h ^= len(row)
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def plain_hashes(columns: list[pa.Array], types: list[DataType]) -> list[int]:
    return [plain_hash(row) for row in encode_rows(columns, types, arity_prefix=False).to_pylist()]


KEY_TYPES: list[AtomicType] = [
    lt.BOOLEAN,
    lt.TINYINT,
    lt.SMALLINT,
    lt.INT,
    lt.BIGINT,
    lt.FLOAT,
    lt.DOUBLE,
    lt.DATE,
    lt.time(3),
    lt.STRING,
    lt.char(3),
    lt.BYTES,
    lt.decimal(12, 2),
    lt.decimal(30, 5),
    lt.timestamp(0),
    lt.timestamp(3),
    lt.timestamp(6),
    lt.timestamp_ltz(9),
]


def random_column(rng: np.random.Generator, data_type: AtomicType, rows: int) -> pa.Array:
    """Random values, some null in half of the columns; text comes in four habits of length."""
    arrow = to_arrow_type(data_type)
    mask = rng.random(rows) < (0.2 if rng.random() < 0.5 else 0)
    if data_type.root in lt.STRINGS | lt.BINARIES:
        low, high = [(0, 7), (8, 90), (0, 30), (16, 16), (11, 11)][rng.integers(5)]
        texts = ["".join(rng.choice(list("abcdef"), rng.integers(low, high + 1))) for _ in range(rows)]
        return pa.array(texts, pa.string(), mask=mask).cast(arrow)
    if data_type.root is TypeRoot.DECIMAL:
        digits = rng.integers(1, data_type.precision + 1, rows)
        signs = rng.choice([-1, 1], rows)
        numbers = [int(s) * int("".join(map(str, rng.integers(0, 10, d)))) for d, s in zip(digits, signs, strict=True)]
        return pa.array([Decimal(n).scaleb(-data_type.scale) for n in numbers], arrow, mask=mask)
    if data_type.root is TypeRoot.BOOLEAN:
        return pa.array(rng.random(rows) < 0.5, mask=mask)
    bits = rng.integers(-(1 << 63), 1 << 63, rows) >> rng.integers(0, 40)
    if data_type.root is TypeRoot.TIME:
        return pa.array((bits % 86_400_000).astype(np.int32), mask=mask).view(arrow)
    if data_type.root is TypeRoot.TIMESTAMP and data_type.precision == 0:
        bits >>= 12
    return pa.array(bits.astype(f"i{arrow.bit_width // 8}"), mask=mask).view(arrow)


@pytest.mark.parametrize("seed", range(60))
def test_random_keys_equal_the_plain_hash(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of any combination of types, nulls, slices and blocks hash like their rows do one by one."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(hashing, "BLOCK_ROWS", int(rng.choice([1, 7, 50, 1 << 15])))
    rows = int(rng.integers(0, 120))
    types: list[DataType] = list(rng.choice(np.array(KEY_TYPES, object), rng.integers(1, 6)))
    skip = int(rng.integers(0, 10))
    columns = [random_column(rng, data_type, rows + skip + 3).slice(skip, rows) for data_type in types]  # type: ignore[arg-type]
    assert hash_rows(columns, types).tolist() == plain_hashes(columns, types)


@pytest.mark.parametrize("data_type", KEY_TYPES, ids=str)
def test_single_columns_equal_the_plain_hash(data_type: AtomicType) -> None:
    """Every type alone, in more than one block, hashes like its rows."""
    rng = np.random.default_rng(7)
    column = pa.concat_arrays([random_column(rng, data_type, 500)] * 70)
    assert len(column) > hashing.BLOCK_ROWS
    assert hash_rows([column], [data_type]).tolist() == plain_hashes([column.slice(0, 500)], [data_type]) * 70


def test_more_fields_than_one_word_of_null_bits() -> None:
    """Null bits beyond the first 56 fields go to further words."""
    types: list[DataType] = [lt.INT] * 70
    columns = [pa.array([i, None if i % 3 else i], pa.int32()) for i in range(70)]
    assert hash_rows(columns, types).tolist() == plain_hashes(columns, types)


def test_few_very_long_texts() -> None:
    """Texts far longer than the rest are hashed one by one, to the same result."""
    texts = pa.array(["short", "longer than a slot", "x" * 5003] * 10 + ["y" * 70_001, None])
    assert hash_rows([texts], [lt.STRING]).tolist() == plain_hashes([texts], [lt.STRING])


@pytest.mark.parametrize("arrow", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_other_forms_of_text(arrow: pa.DataType) -> None:
    """Text hashes alike in every Arrow form, chunked or not."""
    texts = pa.array(["", "short", None, "long enough to spill", "exactly8"])
    wanted = hash_rows([texts], [lt.STRING]).tolist()
    assert hash_rows([texts.cast(arrow)], [lt.STRING]).tolist() == wanted
    chunked = pa.chunked_array([texts.slice(0, 2).cast(arrow), texts.slice(2).cast(arrow)])
    assert hash_rows([chunked], [lt.STRING]).tolist() == wanted


def test_input_is_left_alone() -> None:
    """Hashing works on the caller's buffers without a copy and must not write to them."""
    numbers, texts = pa.array(range(100)), pa.array([f"{i:016d}" for i in range(100)])
    hash_rows([numbers, texts], [lt.BIGINT, lt.STRING])
    assert numbers.to_pylist() == list(range(100))
    assert texts.to_pylist() == [f"{i:016d}" for i in range(100)]


def test_keys_that_can_not_be_hashed() -> None:
    """Nested columns, mismatched columns and foreign types are refused by name."""
    with pytest.raises(InvalidSchema, match="ARRAY"):
        hash_rows([pa.array([[1]])], [lt.ArrayType(lt.BIGINT)])
    with pytest.raises(InvalidSchema, match="VARIANT"):
        hash_rows([pa.nulls(1)], [lt.VARIANT])
    with pytest.raises(InvalidArgument, match="0 key columns"):
        hash_rows([], [])
    with pytest.raises(InvalidArgument, match="2 key columns"):
        hash_rows([pa.array([1]), pa.array([1, 2])], [lt.BIGINT, lt.BIGINT])
    with pytest.raises(InvalidData, match="INT"):
        hash_rows([pa.array(["x"])], [lt.INT])
