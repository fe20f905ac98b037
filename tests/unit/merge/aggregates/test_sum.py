from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.merge.aggregates.scalar_folds import HIDDEN, Column, exactly

from lakebed.errors import InvalidData, InvalidOption
from lakebed.merge.aggregation import Aggregation
from lakebed.merge.base import MergeOrder, MergeSetup
from lakebed.options import Options
from lakebed.types import logical as lt
from lakebed.types.key_value import with_system_columns, without_system_columns
from lakebed.types.logical import AtomicType, DataField, DataType

BIGINT = Column(lt.BIGINT, "sum")
INTEGERS = {lt.TINYINT: 7, lt.SMALLINT: 15, lt.INT: 31, lt.BIGINT: 63}
DECIMALS = [lt.decimal(4, 2), lt.decimal(18, 0), lt.decimal(19, 3), lt.decimal(38, 0), lt.decimal(38, 38)]


def test_example_of_the_notes() -> None:
    """M-30: two columns of one table, each with its function."""
    columns = {"product_id": lt.BIGINT, "price": lt.DOUBLE, "sales": lt.BIGINT}
    fields = tuple(DataField(number, name, data_type) for number, (name, data_type) in enumerate(columns.items()))
    options = Options({"fields.price.aggregate-function": "max", "fields.sales.aggregate-function": "sum"})
    setup = MergeSetup(fields, ("product_id",), options)
    Aggregation.check(setup, "MyTable")
    table = pa.RecordBatch.from_pydict({"product_id": [1, 1], "price": [23.0, 30.2], "sales": [15, 20]})
    rows = with_system_columns(table, pa.array([0, 1]), pa.array([0, 0], pa.int8()))
    merged = Aggregation(setup).merge(rows, MergeOrder(("product_id",)).group(rows))
    assert without_system_columns(merged).to_pylist() == [{"product_id": 1, "price": 30.2, "sales": 35}]


def test_taking_back() -> None:
    """M-31: a value taken back is subtracted, and the row stays when all of it went."""
    records = [("+I", 10), ("+I", 5), ("-U", 5), ("+U", 7), ("-D", 7), ("-D", 10)]
    assert BIGINT.after_each(*records) == [10, 15, 10, 17, 10, 0]


def test_retract_first() -> None:
    """M-32, M-33: a lone retract passes as it is; with a second row it counts as its negative."""
    assert BIGINT.after_each(("-D", 5), ("+I", 8)) == [HIDDEN, 3]
    assert BIGINT.after_each(("-D", 5), ("-D", 3)) == [HIDDEN, -8]


def test_lone_retract_where_old_rows_are_looked_up() -> None:
    """M-32: a merge that folds single rows too turns a lone retract into the negative value."""
    engine = BIGINT.engine
    engine.folds_single_rows = True
    rows = BIGINT.rows([1, 2], ["-D", "+I"], [5, None])
    assert exactly(engine.merge(rows, MergeOrder(("k",)).group(rows))) == [(1, 0, "-5"), (2, 0, "None")]


@pytest.mark.parametrize("data_type", [*INTEGERS, lt.FLOAT, lt.DOUBLE, *DECIMALS], ids=str)
def test_nulls(data_type: DataType) -> None:
    """M-34: nulls change nothing, added or taken back; without any value the sum is null."""
    one: Any = Decimal("0.5") if data_type == lt.decimal(38, 38) else 5
    column = Column(data_type, "sum")
    assert column.after_each(("+I", None), ("+I", one), ("+I", None), ("-U", None)) == [None, one, one, one]
    assert column.after_each(("+I", None), ("-U", None), ("+I", None)) == [None, None, None]


@pytest.mark.parametrize("data_type", INTEGERS, ids=str)
def test_integers_to_the_edge_and_not_over(data_type: AtomicType) -> None:
    """The extreme sums fit; one more in either direction is an error that names the column, never a wrapped number."""
    high = 2 ** INTEGERS[data_type] - 1
    column = Column(data_type, "sum")
    assert column.of(high - 1, 1) == high
    assert column.of(-high, -1) == -high - 1
    assert column.after_each(("+I", -1), ("-U", -high - 1))[-1] == high
    for records in ([("+I", high), ("+I", 1)], [("+I", -high - 1), ("-U", 1)], [("-D", -high - 1), ("-D", 0)]):
        with pytest.raises(InvalidData, match=r"`v`.*does not fit"):
            column.after_each(*records)


@pytest.mark.parametrize("data_type", DECIMALS, ids=str)
def test_decimals_to_the_edge_and_not_over(data_type: AtomicType) -> None:
    """Decimals keep precision and scale; a sum with one digit too many is an error."""
    unit = Decimal(1).scaleb(-data_type.scale)
    high = Decimal((0, (9,) * data_type.precision, -data_type.scale))
    low = high.copy_negate()
    column = Column(data_type, "sum")
    assert column.of(high, unit.copy_negate(), unit) == high
    assert column.of(low, unit, unit.copy_negate()) == low
    assert column.after_each(("-D", high), ("+I", Decimal(0)))[-1] == low
    for records in ([("+I", high), ("+I", unit)], [("-D", high), ("-D", unit)], [("+I", high), ("+I", high)]):
        with pytest.raises(InvalidData, match=r"`v`.*does not fit"):
            column.after_each(*records)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([2**63 - 1, -(2**63), 2**62, -(2**62), 1, -1, 2**32, -(2**31)]), min_size=2, max_size=9)
)
def test_big_integers_are_summed_beyond_64_bits(values: list[int]) -> None:
    """Only the result has to fit: it does not matter that the sum left the range on the way."""
    rows = BIGINT.rows([1] * len(values), ["+I"] * len(values), values)
    if -(2**63) <= sum(values) < 2**63:
        assert exactly(BIGINT.merged(rows)) == [(1, 0, str(sum(values)))]
    else:
        with pytest.raises(InvalidData, match="does not fit"):
            BIGINT.merged(rows)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1 - 10**38, 10**38 - 1)), min_size=2, max_size=9))
def test_wide_decimals_equal_python_integers(records: list[tuple[bool, int]]) -> None:
    """All 128 bits take part, carries and signs included."""
    column = Column(lt.decimal(38, 0), "sum")
    kinds = ["+I" if is_add else "-U" for is_add, _ in records]
    rows = column.rows([1] * len(records), kinds, [Decimal(value) for _, value in records])
    expected = sum(value if is_add else -value for is_add, value in records)
    if abs(expected) < 10**38:
        assert column.merged(rows).column("v").to_pylist() == [Decimal(expected)]
    else:
        with pytest.raises(InvalidData, match="does not fit"):
            column.merged(rows)


def test_floats_are_added_in_order() -> None:
    """Each step rounds to the column's precision; zeros keep their sign; infinities and NaN follow IEEE."""
    double, single = Column(lt.DOUBLE, "sum"), Column(lt.FLOAT, "sum")
    assert double.of(1e16, 1.0, 1.0, -1e16) == 0.0
    assert double.of(*[0.1] * 10) == 0.9999999999999999
    assert single.of(16777216.0, 1.0, 1.0) == 16777216.0
    assert repr(double.of(-0.0, -0.0)) == "-0.0"
    assert repr(double.of(-0.0, None, 0.0)) == "0.0"
    assert double.of(1.7e308, 1.7e308) == float("inf")
    assert repr(double.of(float("inf"), float("-inf"))) == "nan"


def test_many_keys() -> None:
    """Every key has its own sum, whatever the order and the number of its rows."""
    random = np.random.default_rng(7)
    keys, values = random.integers(0, 3000, 20_000), random.integers(-1000, 1000, 20_000)
    result = BIGINT.merged(BIGINT.rows(keys, ["+I"] * len(keys), pa.array(values)))
    expected = np.bincount(keys, weights=values)
    assert result.column("k").to_pylist() == sorted(set(keys.tolist()))
    assert np.array_equal(np.asarray(result.column("v")), expected[np.asarray(result.column("k"))])


def test_parts_of_a_larger_column() -> None:
    """A slice of a longer array is summed as what it is."""
    column = Column(lt.decimal(30, 1), "sum")
    for middle, expected in ((None, "-2.5"), (Decimal("2.0"), "-0.5")):
        values = pa.array(
            [Decimal("9.9"), Decimal("1.5"), middle, Decimal("-4.0"), Decimal("7.7")], pa.decimal128(30, 1)
        )
        rows = column.rows([1, 1, 1], ["+I"] * 3, values.slice(1, 3))
        assert column.merged(rows).column("v").to_pylist() == [Decimal(expected)]


def test_ignored_retracts() -> None:
    """With ignore-retract the sum stays as it is."""
    column = Column(lt.INT, "sum", {"ignore-retract": "true"})
    assert column.after_each(("+I", 4), ("-U", 4), ("+U", 2)) == [4, 4, 6]


@pytest.mark.parametrize("data_type", [lt.STRING, lt.BOOLEAN, lt.DATE, lt.ArrayType(lt.INT)], ids=str)
def test_other_types_are_refused(data_type: DataType) -> None:
    """Only numbers have a sum."""
    column = Column(data_type, "sum")
    with pytest.raises(InvalidOption, match="`sum` does not take column `v`"):
        column.engine.check(column.setup, "t")
