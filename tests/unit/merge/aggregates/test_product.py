from __future__ import annotations

from decimal import Decimal

import pytest
from tests.unit.merge.aggregates.scalar_folds import HIDDEN, Column

from lakebed.errors import InvalidData, InvalidOption
from lakebed.types import logical as lt
from lakebed.types.logical import AtomicType

INTEGERS = {lt.TINYINT: 7, lt.SMALLINT: 15, lt.INT: 31, lt.BIGINT: 63}
NUMBERS = [*INTEGERS, lt.FLOAT, lt.DOUBLE, lt.decimal(10, 2), lt.decimal(38, 0)]


@pytest.mark.parametrize("data_type", NUMBERS, ids=str)
def test_taking_back(data_type: AtomicType) -> None:
    """M-35: a value taken back divides."""
    column = Column(data_type, "product")
    assert column.after_each(("+I", 6), ("+I", 4), ("-U", 4), ("+U", -3)) == [6, 24, 6, -18]


@pytest.mark.parametrize("data_type", NUMBERS, ids=str)
def test_retract_first(data_type: AtomicType) -> None:
    """M-36: taking back from nothing leaves nothing, however often."""
    column = Column(data_type, "product")
    assert column.after_each(("-D", 4), ("+I", 6), ("-U", 3)) == [HIDDEN, 6, 2]
    assert column.after_each(("-D", 4), ("-D", 2), ("+I", 6)) == [HIDDEN, None, 6]


@pytest.mark.parametrize("data_type", NUMBERS, ids=str)
def test_nulls(data_type: AtomicType) -> None:
    """Nulls change nothing, added or taken back; without any value the product is null."""
    column = Column(data_type, "product")
    assert column.after_each(("+I", None), ("+I", 5), ("-U", None), ("+I", 3)) == [None, 5, 5, 15]
    assert column.after_each(("+I", None), ("-U", None)) == [None, None]


def test_integers_are_divided_towards_zero() -> None:
    """What the division leaves over is lost, for negative numbers as for positive ones."""
    column = Column(lt.INT, "product")
    assert column.after_each(("+I", 7), ("-U", 2))[-1] == 3
    assert column.after_each(("+I", -7), ("-U", 2))[-1] == -3
    assert column.after_each(("+I", 7), ("-U", -2))[-1] == -3


@pytest.mark.parametrize("data_type", INTEGERS, ids=str)
def test_integers_to_the_edge_and_not_over(data_type: AtomicType) -> None:
    """The extreme products fit; beyond them is an error that names the column, never a wrapped number."""
    bits = INTEGERS[data_type]
    high = 2**bits - 1
    column = Column(data_type, "product")
    assert column.of(high, 1, 1) == high
    assert column.of(-(2 ** (bits - 1)), 2) == -high - 1
    assert column.of(-high - 1, 1, 0) == 0
    assert column.of(0, high, high) == 0
    for records in (
        [("+I", 2 ** (bits - 1)), ("+I", 2)],
        [("+I", -high - 1), ("+I", -1)],
        [("+I", -high - 1), ("-U", -1)],
    ):
        with pytest.raises(InvalidData, match=r"`v`.*does not fit"):
            column.after_each(*records)


@pytest.mark.parametrize("data_type", INTEGERS, ids=str)
def test_zero_does_not_hide_a_step_that_does_not_fit(data_type: AtomicType) -> None:
    """A product that left the range is an error at once or in steps, even if zero follows."""
    column = Column(data_type, "product")
    high = 2 ** INTEGERS[data_type] - 1
    rows = column.rows([1, 1, 1], ["+I"] * 3, [high, high, 0])
    for cuts in ([], [2]):
        with pytest.raises(InvalidData, match=r"`v`.*does not fit"):
            column.merged_in_pieces(rows, cuts)


def test_products_of_64_bits_are_exact() -> None:
    """Near the limit, where floats could only guess, every digit is right."""
    column = Column(lt.BIGINT, "product")
    assert column.of(3037000499, 3037000499) == 9223372030926249001
    assert column.of(7, 7, 73, 127, 337, 92737, 649657) == 2**63 - 1
    with pytest.raises(InvalidData, match="does not fit"):
        column.of(3037000500, 3037000500)


def test_decimals_round_half_up() -> None:
    """Each step rounds to the column's scale, halves away from zero."""
    column = Column(lt.decimal(10, 2), "product")
    assert column.of(Decimal("0.05"), Decimal("0.50")) == Decimal("0.03")
    assert column.of(Decimal("-0.05"), Decimal("0.50")) == Decimal("-0.03")
    assert column.of(Decimal("0.10"), Decimal("0.10"), Decimal("0.50")) == Decimal("0.01")
    assert column.after_each(("+I", Decimal(1)), ("-U", Decimal(3)))[-1] == Decimal("0.33")
    assert column.after_each(("+I", Decimal(2)), ("-U", Decimal(-3)))[-1] == Decimal("-0.67")
    whole = Column(lt.decimal(5, 0), "product")
    assert whole.after_each(("+I", Decimal(7)), ("-U", Decimal(2)))[-1] == Decimal(4)


def test_decimals_to_the_edge_and_not_over() -> None:
    """38 digits fit and 39 do not; no digit is lost on the way, not even where 1 itself has no place in the type."""
    column = Column(lt.decimal(38, 0), "product")
    high = Decimal(10**38 - 1)
    assert column.of(high, Decimal(-1)) == high.copy_negate()
    assert column.of(Decimal(10**19), Decimal(10**18)) == Decimal(10**37)
    fraction = Column(lt.decimal(38, 38), "product")
    assert fraction.after_each(("-D", Decimal("0.5")), ("+I", Decimal("0.25")), ("+I", Decimal("0.5")))[1:] == [
        Decimal("0.25"),
        Decimal("0.125"),
    ]
    for wrong, records in (
        (column, [("+I", Decimal(10**19)), ("+I", Decimal(10**19))]),
        (fraction, [("+I", Decimal("0.5")), ("-U", Decimal("0.5"))]),
    ):
        with pytest.raises(InvalidData, match=r"`v`.*does not fit"):
            wrong.after_each(*records)


@pytest.mark.parametrize("data_type", [*INTEGERS, lt.decimal(10, 2)], ids=str)
def test_zero_can_not_be_taken_back(data_type: AtomicType) -> None:
    """Nothing says what a product was before it was multiplied by zero, so that is an error."""
    with pytest.raises(InvalidData, match=r"`v`.*0 can not be taken back"):
        Column(data_type, "product").after_each(("+I", 3), ("-U", 0))
    ignoring = Column(data_type, "product", {"ignore-retract": "true"})
    assert ignoring.after_each(("+I", 3), ("-U", 0), ("+I", 2)) == [3, 3, 6]


def test_floats_follow_ieee() -> None:
    """Floats overflow to infinity and divide by zero without an error, each step in the column's precision."""
    double, single = Column(lt.DOUBLE, "product"), Column(lt.FLOAT, "product")
    assert double.of(1e200, 1e200) == float("inf")
    assert repr(double.after_each(("+I", 0.0), ("-U", 0.0))[-1]) == "nan"
    assert double.after_each(("+I", -1.0), ("-U", 0.0))[-1] == float("-inf")
    assert repr(double.of(-0.0, 5.0)) == "-0.0"
    assert single.of(16777217.0, 3.0) == 50331648.0
    assert double.of(0.1, 3.0, 10.0) == 0.1 * 3.0 * 10.0


def test_one_key_with_retracts_among_others() -> None:
    """Keys that go step by step and keys that do not come out in their places."""
    column = Column(lt.INT, "product")
    rows = column.rows(
        [4, 4, 2, 2, 2, 3, 1, 1, 5, 5],
        ["+I", "+I", "+I", "-U", "+I", "-D", "-D", "-D", "+I", "+I"],
        [2, 3, 8, 4, 5, 9, 1, 1, None, None],
    )
    result = column.merged(rows)
    assert result.column("k").to_pylist() == [1, 2, 3, 4, 5]
    assert result.column("v").to_pylist() == [None, 10, 9, 6, None]


def test_other_types_are_refused() -> None:
    """Only numbers have a product."""
    column = Column(lt.STRING, "product")
    with pytest.raises(InvalidOption, match="`product` does not take column `v`"):
        column.engine.check(column.setup, "t")
