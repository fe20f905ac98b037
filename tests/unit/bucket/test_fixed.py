"""Fixed buckets: the three functions against known numbers and plain definitions of them."""

from __future__ import annotations

import math
import struct
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.bucket import BUCKET_FUNCTIONS
from lakebed.bucket.fixed import assign_buckets
from lakebed.bucket.hashing import hash_rows
from lakebed.errors import InvalidArgument, InvalidOption
from lakebed.types import logical as lt
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import DataType

# (type, value, bucket of 5, bucket of 16)
KNOWN_BUCKETS = [
    (lt.INT, 1, 3, 14),
    (lt.INT, 42, 2, 5),
    (lt.INT, -1, 2, 3),
    (lt.INT, None, 4, 0),
    (lt.BIGINT, 1234567890123, 1, 12),
    (lt.TINYINT, 7, 1, 3),
    (lt.STRING, "", 4, 7),
    (lt.STRING, "a", 1, 14),
    (lt.STRING, "paimon!", 3, 10),
    (lt.STRING, "12345678", 1, 9),
    (lt.STRING, "apache-paimon", 2, 6),
    (lt.BYTES, b"\1\2\3", 2, 1),
    (lt.DATE, 19857, 3, 2),
    (lt.decimal(10, 2), Decimal("123.45"), 2, 14),
    (lt.decimal(20, 2), Decimal("123.45"), 0, 5),
    (lt.timestamp(6), None, 1, 5),
]


@pytest.mark.parametrize(("data_type", "value", "of_5", "of_16"), KNOWN_BUCKETS)
def test_known_buckets(data_type: DataType, value: Any, of_5: int, of_16: int) -> None:
    """Default buckets are those other implementations choose, for powers of two and other numbers."""
    column = pa.array([value], to_arrow_type(data_type))
    assert assign_buckets([column], [data_type], 5).tolist() == [of_5]
    assert assign_buckets([column], [data_type], 16).tolist() == [of_16]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=50), st.integers(1, (1 << 31) - 1))
def test_default_is_the_magnitude_of_the_signed_remainder(values: list[int], num_buckets: int) -> None:
    """The bucket is |hash rem N|, with the remainder's sign following the hash."""
    column = pa.array(values, pa.int64())
    buckets = assign_buckets([column], [lt.BIGINT], num_buckets)
    assert buckets.dtype == np.int32
    hashes = hash_rows([column], [lt.BIGINT]).tolist()
    assert buckets.tolist() == [abs(int(math.fmod(h, num_buckets))) for h in hashes]


def test_smallest_hash_has_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """-2^31, whose magnitude is no int32, is handled like every other hash."""
    lowest = np.array([-(1 << 31), -1, (1 << 31) - 1], np.int32)
    monkeypatch.setattr("lakebed.bucket.functions.hash_rows", lambda *_: lowest.copy())
    column = pa.array([0, 0, 0])
    for num_buckets in (2, 3, 7, 16, 1000):
        wanted = [abs(int(math.fmod(int(h), num_buckets))) for h in lowest]
        assert assign_buckets([column], [lt.BIGINT], num_buckets).tolist() == wanted


def test_one_bucket_needs_no_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a single bucket all rows go to bucket 0 and nothing is hashed."""
    monkeypatch.setattr("lakebed.bucket.functions.hash_rows", lambda *_: pytest.fail("hashed"))
    assert assign_buckets([pa.array(["a", None, "b"])], [lt.STRING], 1).tolist() == [0, 0, 0]


@pytest.mark.parametrize("function", sorted(BUCKET_FUNCTIONS))
def test_functions_agree_on_their_contract(function: str) -> None:
    """Every function gives int32 buckets in range, keeps slices apart from their parents and takes zero rows."""
    assert BUCKET_FUNCTIONS[function].name == function
    column = pa.array([None if i % 11 == 0 else i * 7919 - 50_000 for i in range(100_000)], pa.int64())
    buckets = assign_buckets([column], [lt.BIGINT], 13, function)
    assert buckets.dtype == np.int32
    assert (buckets.min(), buckets.max()) == (0, 12)
    part = assign_buckets([column.slice(40_000, 30_000)], [lt.BIGINT], 13, function)
    assert np.array_equal(part, buckets[40_000:70_000])
    assert assign_buckets([column.slice(0, 0)], [lt.BIGINT], 13, function).tolist() == []


def test_mod_is_never_negative() -> None:
    """`mod` is the floored remainder of the number itself; null counts as 0."""
    for data_type in (lt.INT, lt.BIGINT):
        column = pa.array([17, -3, 5, 0, None, -5], to_arrow_type(data_type))
        assert assign_buckets([column], [data_type], 5, "mod").tolist() == [2, 2, 0, 0, 0, 0]
    edges = pa.array([-(1 << 63), (1 << 63) - 1])
    assert assign_buckets([edges], [lt.BIGINT], 7, "mod").tolist() == [-(1 << 63) % 7, ((1 << 63) - 1) % 7]


@pytest.mark.parametrize("types", [[], [lt.STRING], [lt.SMALLINT], [lt.INT, lt.INT], [lt.ArrayType(lt.INT)]])
def test_mod_refuses_other_keys(types: list[DataType]) -> None:
    """`mod` works on one INT or BIGINT column only."""
    with pytest.raises(InvalidOption, match="mod"):
        BUCKET_FUNCTIONS["mod"].check(types)


# --- hive ------------------------------------------------------------------------------------------------------------


def wrap(number: int) -> int:
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number


def hive_hash(value: Any, data_type: lt.AtomicType) -> int:
    """Hive's hash of one value, from its definition."""
    if value is None:
        return 0
    match value:
        case Decimal():
            number, scale = int(value.scaleb(data_type.scale, DECIMALS)), data_type.scale
            while scale and number % 10 == 0:
                number, scale = number // 10, scale - 1
            polynomial, rest, words = 0, abs(number), []
            while rest:
                words.append(rest & 0xFFFFFFFF)
                rest >>= 32
            for word in reversed(words):
                polynomial = polynomial * 31 + word
            return wrap(31 * (polynomial if number >= 0 else -polynomial) + scale)
        case float():
            if data_type == lt.FLOAT:
                return 0 if value == 0 else struct.unpack("<i", struct.pack("<f", value))[0]  # type: ignore[no-any-return]
            bits = 0 if value == 0 else struct.unpack("<Q", struct.pack("<d", value))[0]
            return wrap(bits ^ bits >> 32)
        case str() | bytes():
            total = 0
            for byte in value.encode() if isinstance(value, str) else value:
                total = total * 31 + (byte - 256 if byte > 127 else byte)
            return wrap(total)
        case _ if data_type == lt.BIGINT:
            return wrap((value & 0xFFFFFFFFFFFFFFFF) ^ (value & 0xFFFFFFFFFFFFFFFF) >> 32)
        case _:
            return int(value)


DECIMALS = Context(prec=60)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    rounded = st.integers(0, precision - 1).flatmap(
        lambda zeros: st.integers(-(limit // 10**zeros), limit // 10**zeros).map(lambda n: n * 10**zeros)
    )
    return (st.integers(-limit, limit) | rounded).map(lambda n: Decimal(n).scaleb(-scale, DECIMALS))


HIVE_VALUES: list[tuple[lt.AtomicType, st.SearchStrategy[Any]]] = [
    (lt.BOOLEAN, st.booleans()),
    (lt.TINYINT, st.integers(-128, 127)),
    (lt.SMALLINT, st.integers(-(1 << 15), (1 << 15) - 1)),
    (lt.INT, st.integers(-(1 << 31), (1 << 31) - 1)),
    (lt.BIGINT, st.integers(-(1 << 63), (1 << 63) - 1)),
    (lt.FLOAT, st.floats(width=32, allow_nan=False)),
    (lt.DOUBLE, st.floats(allow_nan=False)),
    (lt.STRING, st.text(max_size=30)),
    (lt.BYTES, st.binary(max_size=30)),
    (lt.decimal(18, 6), decimals(18, 6)),
    (lt.decimal(10, 0), decimals(10, 0)),
    (lt.decimal(38, 20), decimals(38, 20)),
]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_hive_equals_its_definition(data: st.DataObject) -> None:
    """Keys of any supported types get the bucket that the definition gives, value by value."""
    chosen = data.draw(st.lists(st.sampled_from(HIVE_VALUES), min_size=1, max_size=4))
    rows = data.draw(st.lists(st.tuples(*(st.none() | values for _, values in chosen)), min_size=1, max_size=12))
    types = [data_type for data_type, _ in chosen]
    columns = [pa.array([row[i] for row in [rows[0], *rows]], to_arrow_type(t)).slice(1) for i, t in enumerate(types)]
    num_buckets = data.draw(st.integers(2, 1 << 30))
    wanted = []
    for row in rows:
        total = 0
        for value, data_type in zip(row, types, strict=True):
            total = wrap(31 * total + hive_hash(value, data_type))
        wanted.append((total & 0x7FFFFFFF) % num_buckets)
    assert assign_buckets(columns, list(types), num_buckets, "hive").tolist() == wanted


def test_hive_known_buckets() -> None:
    """A key of four types has the bucket that Java computes; decimals count without their trailing zeros."""
    types: list[DataType] = [lt.INT, lt.STRING, lt.BYTES, lt.decimal(10, 4)]
    values = [7, "hello", b"\1\2\3", Decimal("12.3400")]
    columns = [pa.array([value], to_arrow_type(t)) for value, t in zip(values, types, strict=True)]
    assert assign_buckets(columns, types, 8, "hive").tolist() == [1]
    assert assign_buckets(columns, types, (1 << 31) - 1, "hive").tolist() == [805989529]
    assert assign_buckets([columns[1]], [lt.STRING], 128, "hive").tolist() == [82]


def test_hive_floats_have_one_zero_and_one_nan() -> None:
    """Both zeros hash to 0 and all NaNs alike, as in Java."""
    for data_type, unsigned, nans in (
        (lt.FLOAT, np.uint32, [0x7FC00000, 0xFFC00001]),
        (lt.DOUBLE, np.uint64, [0x7FF8000000000000, 0xFFF8000000000001]),
    ):
        numbers = np.array(nans, unsigned).view(f"f{np.dtype(unsigned).itemsize}")
        column = pa.concat_arrays([pa.array([0.0, -0.0], to_arrow_type(data_type)), pa.array(numbers)])
        buckets = assign_buckets([column], [data_type], (1 << 31) - 1, "hive").tolist()
        assert buckets[:2] == [0, 0]
        assert buckets[2] == buckets[3] == {lt.FLOAT: 0x7FC00000, lt.DOUBLE: 0x7FF80000}[data_type]


@pytest.mark.parametrize("data_type", [lt.timestamp(3), lt.timestamp_ltz(6), lt.BLOB, lt.VARIANT, lt.ArrayType(lt.INT)])
def test_hive_refuses_what_it_does_not_know(data_type: DataType) -> None:
    """Timestamps and nested columns are no Hive bucket keys."""
    with pytest.raises(InvalidOption, match="hive"):
        BUCKET_FUNCTIONS["hive"].check([lt.INT, data_type])


def test_wrong_calls_are_named() -> None:
    """Unknown functions, impossible bucket numbers and keys that are none are refused by option name."""
    column = pa.array([1])
    with pytest.raises(InvalidOption, match="did you mean `default`"):
        assign_buckets([column], [lt.BIGINT], 4, "defualt")
    for num_buckets in (0, -1, 1 << 31):
        with pytest.raises(InvalidOption, match="`bucket`"):
            assign_buckets([column], [lt.BIGINT], num_buckets)
    with pytest.raises(InvalidOption, match="bucket-key"):
        assign_buckets([], [], 4)
    with pytest.raises(InvalidOption, match="bucket-key"):
        assign_buckets([], [], 4, "hive")
    with pytest.raises(InvalidOption, match="BLOB"):
        assign_buckets([pa.array([b""])], [lt.BLOB], 4)
    with pytest.raises(InvalidArgument):
        assign_buckets([column, column], [lt.BIGINT], 1)
