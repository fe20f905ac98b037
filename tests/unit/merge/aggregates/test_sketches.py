from __future__ import annotations

import sys

import datasketches
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.merge.aggregates.nested_folds import Column

from lakebed.errors import InvalidData, InvalidOption, MissingDependency

# Bytes that Paimon Java wrote: sketches of 1, 2 and of 2, 3, and their unions.
HLL = [bytes.fromhex("0201070c030802002bf2fb06862ff90d"), bytes.fromhex("0201070c03080200862ff90d75816607")]
HLL_UNION = bytes.fromhex("0201070c03080300862ff90d758166072bf2fb06")
THETA = [
    bytes.fromhex("02030300001acc93020000000000803f15f97dcbbd86a105c397fc1281709d1e"),
    bytes.fromhex("02030300001acc93020000000000803fc397fc1281709d1eba40b3c1da06695d"),
]
THETA_UNION = bytes.fromhex("02030300001acc93030000000000803f15f97dcbbd86a105c397fc1281709d1eba40b3c1da06695d")
UNUSED_THETA_BYTES = slice(12, 16)
"""A probability that only sketches under construction have; Java writes 1.0 there."""


def hll(values: range, lg_k: int = 12) -> bytes:
    sketch = datasketches.hll_sketch(lg_k)
    for value in values:
        sketch.update(value)
    return bytes(sketch.serialize_compact())


def theta(values: range) -> bytes:
    sketch = datasketches.update_theta_sketch()
    for value in values:
        sketch.update(value)
    return bytes(sketch.compact().serialize())


RANGES = st.builds(
    lambda start, size: range(start, start + size), st.integers(0, 9000), st.sampled_from([0, 1, 5, 30, 500, 6000])
)


def test_hll_as_java() -> None:
    """The union of two sketches has the bytes that Java gives it; a single sketch is left as it is."""
    assert Column("BYTES", "hll_sketch").history(None, HLL[0], HLL[1]) == [None, HLL[0], HLL_UNION]


def test_theta_as_java() -> None:
    """The same for theta sketches, but for bytes that say nothing in finished sketches."""
    merged = bytearray(Column("BYTES", "theta_sketch").history(None, THETA[0], THETA[1])[2])
    merged[UNUSED_THETA_BYTES] = THETA_UNION[UNUSED_THETA_BYTES]
    assert bytes(merged) == THETA_UNION


def test_estimates() -> None:
    """A union counts what is in both only once, as well as such sketches can."""
    hll_union = Column("BYTES", "hll_sketch").history(hll(range(20000)), hll(range(10000, 30000)))[1]
    assert datasketches.hll_sketch.deserialize(hll_union).get_estimate() == pytest.approx(30000, rel=0.05)
    theta_union = Column("BYTES", "theta_sketch").history(theta(range(20000)), theta(range(10000, 30000)))[1]
    assert datasketches.compact_theta_sketch.deserialize(theta_union).get_estimate() == pytest.approx(30000, rel=0.05)


@given(st.lists(RANGES, min_size=2, max_size=4), st.integers(0, 4))
@settings(max_examples=25)
def test_cuts_do_not_change_the_union(ranges: list[range], cut: int) -> None:
    """However the changes are cut, the union holds the same: theta sketches to the byte, HLL sets in any order."""
    for function, sketch in (("hll_sketch", hll), ("theta_sketch", theta)):
        column = Column("BYTES", function)
        changes = [(1, "+I", sketch(values)) for values in ranges]
        whole, in_parts = column.after(changes)[1], column.after(changes, [min(cut, len(changes))])[1]
        if function == "theta_sketch":
            assert in_parts == whole
        else:
            assert len(in_parts) == len(whole)
            # Unions of two are estimated alike; one alone remembers the order in which it was filled.
            assert hll_estimate(in_parts, in_parts) == hll_estimate(whole, whole) == hll_estimate(in_parts, whole)


def hll_estimate(*sketches: bytes) -> float:
    """The estimate of the union of sketches."""
    union = datasketches.hll_union(12)
    for sketch in sketches:
        union.update(datasketches.hll_sketch.deserialize(sketch))
    return float(union.get_estimate())


def test_hll_of_differing_precision() -> None:
    """Sketches of different precision can be joined."""
    merged = Column("BYTES", "hll_sketch").history(hll(range(5000), 11), hll(range(5000), 13))[1]
    assert datasketches.hll_sketch.deserialize(merged).get_estimate() == pytest.approx(5000, rel=0.1)


@pytest.mark.parametrize("function", ["hll_sketch", "theta_sketch"])
@pytest.mark.parametrize("damage", [b"", b"\x07nonsense", b"\xff" * 60])
def test_other_bytes_are_refused(function: str, damage: bytes) -> None:
    """Bytes that are no sketch are an error that names the column."""
    with pytest.raises(InvalidData, match=r"column `v`: a value is no .* sketch of Apache DataSketches"):
        Column("BYTES", function).history(damage, damage)


@pytest.mark.parametrize("function", ["hll_sketch", "theta_sketch"])
def test_retracts_and_types_are_refused(function: str) -> None:
    """A union can not be undone, and only VARBINARY holds sketches."""
    with pytest.raises(InvalidData, match=f"`{function}` can not take back"):
        Column("BYTES", function).history(HLL[0], HLL[0], kinds=["+I", "-D"])
    with pytest.raises(InvalidOption, match=f"`{function}` does not take column `v` of type STRING"):
        Column("STRING", function)


@pytest.mark.parametrize("function", ["hll_sketch", "theta_sketch"])
def test_missing_package(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the error names the extra to install."""
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(MissingDependency, match=r"lakebed\[sketches\]"):
        Column("BYTES", function).history(HLL[0], HLL[0])
