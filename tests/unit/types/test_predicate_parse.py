"""Filters as users give them keep their meaning when they become predicates."""

import operator
import pickle
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.types import predicate_model as model

from lakebed.errors import InvalidArgument, NotFound
from lakebed.types.predicate import Always, Comparison, In, Not, Op, Opaque, columns, rename
from lakebed.types.predicate_evaluate import evaluate, to_expression
from lakebed.types.predicate_parse import to_predicate

field = pc.field
SCHEMA = pa.schema(
    [
        ("a", pa.int32()),
        ("tiny", pa.int8()),
        ("dec", pa.decimal128(10, 2)),
        ("big", pa.decimal128(38, 10)),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("s", pa.string()),
        ("bi", pa.binary()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("ms")),
        ("tz", pa.timestamp("us", "UTC")),
        ("ns", pa.timestamp("ns")),
        ("tm", pa.time32("ms")),
        ("st", pa.struct([("x", pa.int32())])),
        ("odd, (name)", pa.int32()),
    ]
)

# Conditions that pyarrow evaluates and the tree can not say.
_OPAQUE = st.sampled_from(
    [
        field("i").cast(pa.int64()) + 1 > 2,
        field("i").cast(pa.float64()) < field("x"),
        pc.if_else(field("b"), field("i"), field("j")) > 1,
        field("x").is_null(nan_is_null=True),
        field("x").is_nan(),
        pc.starts_with(field("s"), "A", ignore_case=True),
        pc.xor(field("b"), field("i") > 0),
        pc.utf8_length(field("s")) == 2,
        pc.is_in(field("i"), value_set=pa.array([1, None], pa.int8()), skip_nulls=True),
        pc.scalar(5) > field("j"),
        pc.and_not_kleene(field("b"), field("i") > 1),
        pc.scalar(1) > pc.scalar(2),
    ]
)


@settings(max_examples=400, deadline=None)
@given(model.filters(), _OPAQUE, st.sampled_from([None, operator.and_, operator.or_]), st.booleans(), model.rows())
def test_expressions_keep_their_meaning(
    what: model.Filter, opaque: pc.Expression, join: Any, inverted: bool, rows: list[dict[str, Any]]
) -> None:
    """A pyarrow expression, its predicate, and the expression made from that predicate keep the same rows."""
    expression = model.as_expression(what)
    if join is not None:
        expression = join(expression, opaque)
    if inverted:
        expression = ~expression
    batch = model.batch_of(rows)
    predicate = to_predicate(expression, model.SCHEMA)
    mask = evaluate(predicate, batch).to_pylist()
    assert model.pyarrow_mask(to_expression(predicate), batch) == mask
    assert columns(predicate) <= set(model.SCHEMA.names)
    if join is None:
        assert mask == [model.holds(what, row) is (not inverted) for row in rows]
    try:
        expected = model.pyarrow_mask(expression, batch)
    except pa.ArrowException:
        return  # pyarrow refuses more pairs of types than we do, such as decimals with integers
    assert mask == expected


@pytest.mark.parametrize(
    ("given_filter", "text"),
    [
        (field("a") > 5, "a > 5"),
        (pc.scalar(5) > field("a"), "a < 5"),
        (~(field("a") > 5), "a <= 5"),
        (~(field("x") > 5), "NOT (x > 5.0)"),
        (~(field("a") > 5.5), "a <= 5"),
        (~(field("x") == 5), "x != 5.0"),
        (field("s") == 'it\'s "x"\n', "s = 'it''s \"x\"\n'"),
        (field("bi") == b"\x00\xff", "bi = X'00FF'"),
        (field("b") & ~field("b"), "b = TRUE AND b != TRUE"),
        (field("a").isin([1, 2]), "a IS NOT NULL AND a IN (1, 2)"),
        (field("a").isin([1, None]), "a IS NULL OR a IN (1)"),
        (~field("a").isin([1]), "a IS NULL OR a NOT IN (1)"),
        (field("a").is_null() | field("s").is_valid(), "a IS NULL OR s IS NOT NULL"),
        (field("a").is_null(nan_is_null=True), "a IS NULL"),
        (pc.starts_with(field("s"), "a%"), "starts_with(s, 'a%')"),
        (~pc.match_like(field("s"), "a%"), "NOT (s LIKE 'a%')"),
        (field("odd, (name)") > 5, "`odd, (name)` > 5"),
        (field("a") == pa.scalar(None, pa.int32()), "NULL"),
        ((field("a") > 1) & ((field("a") < 3) | field("s").is_null()), "a > 1 AND (a < 3 OR s IS NULL)"),
        (field("tz") > pa.scalar(datetime(2020, 1, 2, tzinfo=UTC)), "tz > TIMESTAMP '2020-01-02 00:00:00.000000Z'"),
        (field("ns") == pa.scalar(5, pa.timestamp("ns")), "ns = TIMESTAMP '1970-01-01 00:00:00.000000005'"),
        ([("a", ">", 5), ("s", "in", ["x"])], "a > 5 AND s IS NOT NULL AND s IN ('x')"),
        ([[("a", "==", 5)], [("s", "not in", ["x", None])]], "a = 5 OR (s IS NOT NULL AND s NOT IN ('x'))"),
        ([("a", "in", [1, 2.5, None])], "a IS NULL OR a IN (1)"),
        (field("f").isin([0.1]), "f IS NOT NULL AND f IN (0.10000000149011612)"),
        ([("f", "in", [0.1])], "f IS NOT NULL AND f IN (0.10000000149011612)"),
        ([("a", "in", [1, Decimal("2.5")])], "a IS NOT NULL AND a IN (1)"),
        (
            [("d", "in", [date(2020, 1, 1), "2020-01-02"])],
            "d IS NOT NULL AND d IN (DATE '2020-01-01', DATE '2020-01-02')",
        ),
        ([("a", "in", pa.array([1, None], pa.int8()))], "a IS NULL OR a IN (1)"),
        ([("a", "in", range(30))], "a IS NOT NULL AND a IN (" + ", ".join(map(str, range(20))) + ", … 10 more)"),
    ],
)
def test_meaning_as_text(given_filter: Any, text: str) -> None:
    """Each form of filter reads as the SQL it stands for."""
    predicate = to_predicate(given_filter, SCHEMA)
    assert str(predicate) == text


@pytest.mark.parametrize(
    ("column", "op", "value", "text"),
    [
        ("tiny", "<", 1000, "tiny <= 127"),
        ("tiny", ">", 1000, "tiny > 127"),
        ("tiny", "=", 1000, "tiny IN ()"),
        ("tiny", "!=", -1000, "tiny NOT IN ()"),
        ("tiny", "<", -1000, "tiny IN ()"),
        ("tiny", ">=", -1000, "tiny NOT IN ()"),
        ("tiny", "<", 2**80, "tiny <= 127"),
        ("a", "<", 2.5, "a <= 2"),
        ("a", ">=", -2.5, "a > -3"),
        ("a", "=", 2.0, "a = 2"),
        ("a", "<", float("inf"), "a <= 2147483647"),
        ("a", ">", float("-inf"), "a NOT IN ()"),
        ("a", "!=", float("nan"), "a NOT IN ()"),
        ("a", "=", Decimal("3.00"), "a = 3"),
        ("dec", "=", 0.1, "dec = 0.10"),
        ("dec", "=", 5, "dec = 5.00"),
        ("dec", ">", Decimal("1.005"), "dec > 1.00"),
        ("dec", "<", 10**12, "dec <= 99999999.99"),
        ("big", "=", 12345678901234567890, "big = 12345678901234567890.0000000000"),
        ("x", "=", Decimal("0.1"), "x = 0.1"),
        ("f", "=", 0.5, "f = 0.5"),
        ("f", "=", 0.1, "f IN ()"),
        ("f", "<", 1e300, "f <= 3.4028234663852886e+38"),
        ("d", ">", "2020-01-31", "d > DATE '2020-01-31'"),
        ("d", ">=", datetime(2020, 1, 31, 5), "d > DATE '2020-01-31'"),
        ("ts", ">", date(2020, 1, 31), "ts > TIMESTAMP '2020-01-31 00:00:00.000'"),
        ("ts", "<", "2020-01-31T10:00:00.0005", "ts <= TIMESTAMP '2020-01-31 10:00:00.000'"),
        ("ts", "<", "1969-12-31 23:59:59.9995", "ts <= TIMESTAMP '1969-12-31 23:59:59.999'"),
        ("tz", "=", "2020-01-31 10:00+02:00", "tz = TIMESTAMP '2020-01-31 08:00:00.000000Z'"),
        ("ns", "<", datetime(9000, 1, 1), "ns <= TIMESTAMP '2262-04-11 23:47:16.854775807'"),
        ("tm", ">", "01:02:03.0004", "tm > TIME '01:02:03.000'"),
        ("tm", "=", time(1, 2, 3), "tm = TIME '01:02:03.000'"),
        ("bi", "=", "é", "bi = X'C3A9'"),
        ("s", "=", b"ab", "s = 'ab'"),
    ],
)
def test_literals_are_placed_exactly(column: str, op: str, value: Any, text: str) -> None:
    """A literal that the column's type can not hold becomes the nearest comparison that selects the same rows."""
    predicate = to_predicate([(column, op, value)], SCHEMA)
    assert str(predicate) == text
    leaf = predicate.child if isinstance(predicate, Not) else predicate
    kind = leaf.literal.type if isinstance(leaf, Comparison) else leaf.values.type
    assert kind == SCHEMA.field(column).type


@pytest.mark.parametrize(
    ("given_filter", "words"),
    [
        ("a > 5", "str"),
        ([], "not a list of conditions"),
        ([()], "not a list of conditions"),
        ([("a", ">")], r"not \(column, op, value\)"),
        ([("a", "~", 5)], "operator `~`"),
        ([("a", "=", None)], "column `a` with None"),
        ([("s", "in", "abc")], "several values"),
        ([("s", "in", [5])], "column `s` of type string"),
        ([("s", "=", 5)], "column `s` of type string"),
        ([("a", "=", "5")], "string is not a number"),
        ([("b", "=", 1)], "column `b` of type bool"),
        ([("d", ">", "2020-02-30")], "column `d`"),
        ([("d", ">", "02/03/2020")], "text must look like 2020-12-31"),
        ([("ts", ">", "2020-01-01 00:00Z")], "must have no time zone"),
        ([("tz", ">", "2020-01-01 00:00")], "needs a time zone"),
        ([("tz", ">", datetime(2020, 1, 1))], "needs a time zone"),
        ([("a", "=", object())], "no Arrow type"),
        ([("st", "=", 1)], "column `st`"),
        (field(0) > 5, "by position"),
        (field("a") + 1, "can not be evaluated"),
        (field("a"), "can not be evaluated"),
        (pc.starts_with(field("a"), "x"), "can not be evaluated"),
        (field("st", "y") > 1, "can not be evaluated"),
    ],
)
def test_bad_filters_are_refused(given_filter: Any, words: str) -> None:
    """A filter that can not work is refused before anything is read, in words that name its fault."""
    with pytest.raises(InvalidArgument, match=words):
        to_predicate(given_filter, SCHEMA)


@pytest.mark.parametrize("given_filter", [field("prise") > 1, field("prise", "y") > 1, [("prise", ">", 1)]])
def test_unknown_columns_are_named(given_filter: Any) -> None:
    """A misspelt column is reported with the nearest one that exists."""
    with pytest.raises(NotFound, match=r"`prise`\n.*`price`"):
        to_predicate(given_filter, pa.schema([("price", pa.int32())]))


def test_unknown_column_of_a_predicate_is_named() -> None:
    """A predicate made by hand is checked like any other filter."""
    with pytest.raises(NotFound, match="`q`"):
        to_predicate(Not(In("q", pa.array([1]))), SCHEMA)


def test_no_filter_stays_none() -> None:
    """None means that nothing is filtered."""
    assert to_predicate(None, SCHEMA) is None


def test_only_the_part_not_understood_is_opaque() -> None:
    """Inside AND an unknown function is carved out alone, with its own columns, also inside nested columns."""
    predicate = to_predicate((field("a") > 5) & (field("st", "x") + field("tiny") > 1), SCHEMA)
    known, unknown = predicate.children
    assert known == Comparison("a", Op.GT, pa.scalar(5, pa.int32()))
    assert isinstance(unknown, Opaque)
    assert unknown.columns == {"st", "tiny"}


def test_opaque_parts_are_renamed_and_pickled() -> None:
    """An opaque part keeps its meaning under new column names and after pickling."""
    schema = pa.schema([("a", pa.int64()), ("st", pa.struct([("a", pa.int64())]))])
    predicate = to_predicate((field("a") + field("st", "a") > 3) | (field("a") == 0), schema)
    renamed = pickle.loads(pickle.dumps(rename(predicate, {"a": "st", "st": "a"})))
    assert columns(renamed) == {"a", "st"}
    batch = pa.RecordBatch.from_pylist([{"st": 1, "a": {"a": 3}}, {"st": 1, "a": {"a": 1}}, {"st": 0, "a": None}])
    assert evaluate(renamed, batch).to_pylist() == [True, False, True]


def test_non_utf8_bytes_against_text_are_left_to_pyarrow() -> None:
    """Bytes that are no text can not be a text literal, and are compared the way pyarrow does."""
    predicate = to_predicate(field("s") < b"\xff", SCHEMA)
    assert isinstance(predicate, Opaque)
    assert evaluate(predicate, pa.RecordBatch.from_arrays([pa.array(["é", None])], ["s"])).to_pylist() == [True, False]


def test_long_chains_are_read() -> None:
    """Thousands of conditions joined one after the other, as loops make them, do not exhaust the stack."""
    predicate = to_predicate(reduce(operator.or_, [field("a") < value for value in range(3000)]), SCHEMA)
    assert len(predicate.children) == 3000


def test_alternatives_of_one_column_become_one_in() -> None:
    """`a = 1 OR a = 2` is one IN, whatever stands beside it."""
    predicate = to_predicate((field("a") == 1) | (field("s") == "x") | (field("a") == 2) | field("b"), SCHEMA)
    assert str(predicate) == "a IN (1, 2) OR s = 'x' OR b = TRUE"


def test_constants_fold_away() -> None:
    """TRUE and FALSE disappear from AND and OR, and decide where they must."""
    assert to_predicate((field("a") > 1) & True, SCHEMA) == to_predicate(field("a") > 1, SCHEMA)
    assert to_predicate((field("a") > 1) | pc.scalar(True), SCHEMA) == Always(True)
    assert to_predicate((field("a") > 1) & pc.scalar(False), SCHEMA) == Always(False)


def test_unreadable_expressions_are_evaluated_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Should pyarrow pickle differently one day, filters still work: opaque, over all columns."""
    monkeypatch.setattr("lakebed.types.expression_tree._ordered_metadata", lambda schema: [(b"surprise", b"")])
    schema = pa.schema([("a", pa.int32()), ("b", pa.int32())])
    predicate = to_predicate(field("a") > 5, schema)
    assert isinstance(predicate, Opaque)
    assert predicate.columns == {"a", "b"}
    with pytest.raises(InvalidArgument, match="renamed"):
        rename(predicate, {"a": "c"})
