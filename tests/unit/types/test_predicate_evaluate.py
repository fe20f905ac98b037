"""Predicates applied to rows agree with a plain three-valued model and with pyarrow."""

import pickle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from tests.unit.types import predicate_model as model

from lakebed.errors import InvalidArgument, NotFound
from lakebed.types.predicate import Always, Comparison, Op, Opaque, negate
from lakebed.types.predicate_evaluate import evaluate, to_expression
from lakebed.types.predicate_parse import to_predicate


@settings(max_examples=300, deadline=None)
@given(model.filters(), model.rows())
def test_evaluate_agrees_with_the_model(what: model.Filter, rows: list[dict[str, Any]]) -> None:
    """A predicate made by hand selects exactly the rows for which the row-by-row model says TRUE."""
    predicate = to_predicate(model.as_predicate(what), model.SCHEMA)
    assert predicate is not None
    expected = [model.holds(what, row) is True for row in rows]
    batch = model.batch_of(rows)
    assert evaluate(predicate, batch).to_pylist() == expected
    assert model.pyarrow_mask(to_expression(predicate), batch) == expected
    assert evaluate(negate(predicate), batch).to_pylist() == [model.holds(what, row) is False for row in rows]
    assert evaluate(pickle.loads(pickle.dumps(predicate)), batch).to_pylist() == expected


def test_evaluate_keeps_batches_without_rows_apart() -> None:
    """A batch without rows gives a mask without entries, for understood and opaque predicates alike."""
    batch = pa.RecordBatch.from_arrays([pa.array([], pa.int32())], ["a"])
    for filter_ in (pc.field("a") > 1, pc.field("a") + 1 > 2, pc.scalar(True)):
        assert evaluate(to_predicate(filter_, batch.schema), batch) == pa.array([], pa.bool_())


def test_opaque_without_columns_is_evaluated_for_every_row() -> None:
    """An expression of constants alone still yields one entry per row."""
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2])], ["#"])
    predicate = to_predicate(pc.scalar(1) < pc.scalar(2), batch.schema)
    assert isinstance(predicate, Opaque)
    assert evaluate(predicate, batch).to_pylist() == [True, True]


def test_a_null_is_not_selected() -> None:
    """Neither as equal nor as different: the mask has no nulls, and other columns do not matter."""
    batch = pa.RecordBatch.from_arrays([pa.array(["x", "y", None]), pa.array([1, 2, 3])], ["dt", "h"])
    mask = evaluate(Comparison("dt", Op.NE, pa.scalar("x")), batch)
    assert mask.to_pylist() == [False, True, False]


def test_missing_column_is_named() -> None:
    """A batch that lacks a column of the predicate is reported by that name, with the nearest one there is."""
    with pytest.raises(NotFound, match=r"`price`.*\n.*`prices`"):
        evaluate(Comparison("price", Op.GT, pa.scalar(1)), pa.RecordBatch.from_arrays([pa.array([1])], ["prices"]))


def test_failing_expression_is_an_invalid_argument() -> None:
    """An overflow inside an opaque filter surfaces as our error, naming the filter."""
    batch = pa.RecordBatch.from_arrays([pa.array([127], pa.int8())], ["a"])
    predicate = to_predicate(pc.add_checked(pc.field("a"), pc.scalar(pa.scalar(1, pa.int8()))) > 5, batch.schema)
    with pytest.raises(InvalidArgument, match="add_checked"):
        evaluate(predicate, batch)


def test_thousands_of_alternatives_evaluate() -> None:
    """A very long OR neither exhausts the stack when evaluated nor as an expression."""
    predicate = to_predicate([[("a", "=", value), ("a", "<", 10**6)] for value in range(2_000)], SCHEMA_A)
    batch = pa.RecordBatch.from_arrays([pa.array([1_999, 2_000])], ["a"])
    assert evaluate(predicate, batch).to_pylist() == [True, False]
    assert model.pyarrow_mask(to_expression(predicate), batch) == [True, False]


SCHEMA_A = pa.schema([("a", pa.int64())])


@pytest.mark.parametrize(("value", "kept"), [(True, [True, True]), (False, [False, False]), (None, [False, False])])
def test_constants(value: bool | None, kept: list[bool]) -> None:
    """TRUE keeps all rows, FALSE and NULL none."""
    batch = pa.RecordBatch.from_arrays([pa.array([1, None])], ["a"])
    assert evaluate(Always(value), batch).to_pylist() == kept
