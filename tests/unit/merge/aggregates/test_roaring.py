from __future__ import annotations

import struct
import sys
from collections.abc import Iterable
from contextlib import suppress

import pyroaring
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.merge.aggregates.nested_folds import Column

from lakebed.errors import InvalidData, InvalidOption, MissingDependency
from lakebed.merge.aggregates import roaring64

# Bytes that Paimon Java wrote.
JAVA_32 = bytes.fromhex("3a300000020000000000020001000000180000001e000000010002000300a086")  # 1, 2, 3, 100000
JAVA_32_OTHER = bytes.fromhex("3a30000001000000000001001000000003000400")  # 3, 4
JAVA_32_UNION = bytes.fromhex("3b300100010000030001000000010001000300a086")
JAVA_64 = bytes.fromhex(  # 3, 4, -1, 2**40 + 7
    "010300000000000000000200000000ff0000020001000000010004000000000000000000000000000000000004000000000001000000020000"
    "000000000004000000ffffffffffff010000000000000001000000fe0300000001020200000003000400010201000000ffff01020100000007"
    "0003000000000000000000000002000000"
)
JAVA_64_RUN = bytes.fromhex(  # 10 to 29
    "01010000000000000004000000000000000000000000000000000001000000fe0100000001001400000001000a00130001000000000000000000"
    "000000000000"
)
JAVA_64_FIVE_KEYS = bytes.fromhex(  # 0, 65536, 131072, 196608, 262144: the sixth container is none
    "010500000000000000010500050000000000000000040302010000000000000000000400000000000000000000000000000000000400000000000"
    "0000001010000000000000004000000000000000002020000000000000004000000000000000003030000000000000004000000000000000004"
    "040000000000000001000000fe06000000010201000000000001020100000000000102010000000000010201000000000001020100000000000"
    "005000000000000000000000004000000"
)
U64 = st.integers(0, (1 << 64) - 1)
CLUSTERS = st.builds(
    lambda upper, lower: {base << shift | value for base, shift in upper for value in lower},
    st.lists(st.tuples(st.integers(0, 300), st.sampled_from([16, 24, 40, 56])), max_size=8),
    st.sets(st.integers(0, 65535), max_size=5) | st.builds(range, st.integers(0, 9), st.integers(0, 9000)),
).map(lambda values: {value % (1 << 64) for value in values})


def bitmap64(values: Iterable[int]) -> bytes:
    parts: dict[bytes, pyroaring.BitMap] = {}
    for value in sorted(values):
        parts.setdefault((value >> 16).to_bytes(6, "big"), pyroaring.BitMap()).add(value & 0xFFFF)
    return roaring64.write([(key, roaring64.from_bitmap32(parts[key].serialize())) for key in sorted(parts)])


def values64(data: bytes) -> set[int]:
    return {
        int.from_bytes(key, "big") << 16 | low
        for key, container in roaring64.read(data)
        for low in pyroaring.BitMap.deserialize(roaring64.as_bitmap32(container))
    }


def walk(data: bytes, at: int, path: bytes) -> tuple[int, list[bytes]]:
    """Follows the tree from a node down, checking that every branch leads to leaves with its bytes."""
    kind, count, prefix_size = struct.unpack_from("<BhB", data, at)
    path += data[at + 4 : at + 4 + prefix_size]
    at += 4 + prefix_size
    if kind == 4:
        key = data[at : at + 6]
        assert key.startswith(path)
        return at + 14, [key]
    size = (4, 16, 256, 32)[kind]
    body = data[at : at + size]
    if kind == 3:
        branches = [byte for byte in range(256) if int.from_bytes(body, "little") >> byte & 1]
    else:
        group = min(size, 8)
        straight = b"".join(body[begin : begin + group][::-1] for begin in range(0, size, group))
        branches = list(straight[:count]) if kind < 2 else [byte for byte in range(256) if straight[byte] != 255]
        if kind == 2:
            assert [straight[byte] for byte in branches] == list(range(count))
    assert len(branches) == count
    assert count <= (4, 16, 48, 256)[kind]
    leaves = []
    at += size
    for branch in branches:
        at, below = walk(data, at, path + bytes([branch]))
        leaves += below
    return at, leaves


def test_union_of_32_bits() -> None:
    """The union of two bitmaps has the bytes that Java gives it."""
    column = Column("BYTES", "rbm32")
    assert column.history(JAVA_32, None, JAVA_32_OTHER) == [JAVA_32, JAVA_32, JAVA_32_UNION]


def test_union_of_64_bits() -> None:
    """The union of two bitmaps that Java wrote holds the numbers of both."""
    column = Column("VARBINARY(100000)", "rbm64")
    merged = column.history(JAVA_64, JAVA_64_RUN, JAVA_64_FIVE_KEYS, b"\0")[3]
    top, far = (1 << 64) - 1, (1 << 40) + 7
    assert values64(merged) == {3, 4, top, far} | set(range(10, 30)) | {key << 16 for key in range(5)}


def test_java_bytes() -> None:
    """Bitmaps are written as Java writes them; only its list of containers may have room to spare, ours has none."""
    assert Column("BYTES", "rbm64").history(JAVA_64_RUN, b"\0")[1] == JAVA_64_RUN
    five = bitmap64(key << 16 for key in range(5))
    tree_size = 9 + 20 + 5 + 5 * 18
    assert five[:tree_size] == JAVA_64_FIVE_KEYS[:tree_size]


@given(st.lists(st.sets(U64, max_size=40) | CLUSTERS, min_size=2, max_size=5), st.integers(0, 5))
@settings(max_examples=50)
def test_unions_hold_all_numbers(sets: list[set[int]], cut: int) -> None:
    """The union has the numbers of all, in a tree that leads to each; cuts do not change a byte."""
    column = Column("BYTES", "rbm64")
    changes = [(1, "+I", bitmap64(values)) for values in sets]
    merged = column.after(changes)[1]
    assert values64(merged) == set().union(*sets)
    if len(merged) > 1:
        leaves = walk(merged, 9, b"")[1]
        assert leaves == sorted({(value >> 16).to_bytes(6, "big") for value in set().union(*sets)})
    assert column.after(changes, [min(cut, len(sets))])[1] == merged


@given(st.lists(st.sets(st.integers(0, (1 << 32) - 1), max_size=40), min_size=2, max_size=5), st.integers(0, 5))
@settings(max_examples=50)
def test_cuts_of_32_bits(sets: list[set[int]], cut: int) -> None:
    """However the changes are cut, the union is the same."""
    column = Column("BYTES", "rbm32")
    changes = [(1, "+I", pyroaring.BitMap(values).serialize()) for values in sets]
    merged = column.after(changes)[1]
    assert set(pyroaring.BitMap.deserialize(merged)) == set().union(*sets)
    assert column.after(changes, [min(cut, len(sets))])[1] == merged


@pytest.mark.parametrize("size", [2, 4, 5, 16, 17, 48, 49, 256, 300])
def test_every_kind_of_node(size: int) -> None:
    """Trees with few and many branches are written so that a walk finds every key."""
    values = [key << 16 for key in range(size)]
    data = bitmap64(values)
    assert walk(data, 9, b"")[1] == [value.to_bytes(8, "big")[:6] for value in values]
    assert values64(data) == set(values)


@pytest.mark.parametrize("function", ["rbm32", "rbm64"])
@pytest.mark.parametrize("damage", [b"", b"\x07nonsense", b"\x01", b"\xff" * 60])
def test_other_bytes_are_refused(function: str, damage: bytes) -> None:
    """Bytes that are no bitmap are an error that names the column."""
    with pytest.raises(InvalidData, match="column `v`: a value is no roaring bitmap"):
        Column("BYTES", function).history(damage, damage)


@given(st.integers(0, len(JAVA_64_FIVE_KEYS) - 1), st.integers(1, 255))
def test_damaged_bitmaps(place: int, flip: int) -> None:
    """A bitmap with a wrong byte, or cut short, is read as another bitmap or refused; nothing else happens."""
    flipped = bytearray(JAVA_64_FIVE_KEYS)
    flipped[place] ^= flip
    for damaged in (bytes(flipped), JAVA_64_FIVE_KEYS[:place]):
        with suppress(InvalidData):
            Column("BYTES", "rbm64").history(damaged, JAVA_64)


def test_retracts_and_types_are_refused() -> None:
    """A union can not be undone, and only VARBINARY holds bitmaps."""
    with pytest.raises(InvalidData, match="`rbm32` can not take back"):
        Column("BYTES", "rbm32").history(JAVA_32, JAVA_32, kinds=["+I", "-D"])
    with pytest.raises(InvalidOption, match="`rbm64` does not take column `v` of type BINARY"):
        Column("BINARY(8)", "rbm64")


@pytest.mark.parametrize("function", ["rbm32", "rbm64"])
def test_missing_package(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the error names the extra to install."""
    monkeypatch.setitem(sys.modules, "pyroaring", None)
    with pytest.raises(MissingDependency, match=r"lakebed\[sketches\]"):
        Column("BYTES", function).history(JAVA_64, JAVA_64)
