"""The logic of predicates: splitting, projecting, equalities, text, equality and pickling."""

import pickle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.types import predicate_model as model

from lakebed.types.predicate import (
    Always,
    And,
    Comparison,
    In,
    IsNull,
    Op,
    Opaque,
    Or,
    Predicate,
    columns,
    conjunction,
    disjunction,
    equalities,
    negate,
    project_onto,
    rename,
)
from lakebed.types.predicate_evaluate import evaluate
from lakebed.types.predicate_parse import to_predicate


def _is(column: str, value: Any, op: str = "=") -> Comparison:
    return Comparison(column, Op(op), pa.scalar(value))


A1, A2, B1, B2 = _is("a", 1), _is("a", 2), _is("b", 1), _is("b", 2)


@settings(max_examples=200, deadline=None)
@given(model.filters(), st.sets(st.sampled_from(model.SCHEMA.names)), model.rows())
def test_projection_is_implied(what: model.Filter, names: set[str], rows: list[dict[str, Any]]) -> None:
    """Rows that a predicate selects are all selected by its projection, which names only the asked columns."""
    predicate = to_predicate(model.as_predicate(what), model.SCHEMA)
    projected = project_onto(predicate, names)
    if projected is None:
        return
    assert columns(projected) <= names
    batch = model.batch_of(rows)
    selected, kept = evaluate(predicate, batch).to_pylist(), evaluate(projected, batch).to_pylist()
    assert all(after for before, after in zip(selected, kept, strict=True) if before)


@settings(max_examples=200, deadline=None)
@given(model.filters(), model.rows())
def test_equalities_hold_for_selected_rows(what: model.Filter, rows: list[dict[str, Any]]) -> None:
    """In every selected row, each constrained column has one of the listed values, bit by bit."""
    predicate = to_predicate(model.as_predicate(what), model.SCHEMA)
    batch = model.batch_of(rows)
    selected = batch.filter(evaluate(predicate, batch))
    for name, values in equalities(predicate).items():
        assert values.type == model.SCHEMA.field(name).type
        assert all(pc.is_in(selected.column(name), value_set=values).to_pylist())


@settings(max_examples=100, deadline=None)
@given(model.filters(), model.rows())
def test_renamed_predicates_select_the_same_rows(what: model.Filter, rows: list[dict[str, Any]]) -> None:
    """A predicate on renamed columns selects from renamed rows what it selected before."""
    predicate = to_predicate(model.as_predicate(what), model.SCHEMA)
    batch = model.batch_of(rows)
    names = {name: name + "2" for name in model.SCHEMA.names}
    renamed = rename(predicate, names)
    assert columns(renamed) == {names[name] for name in columns(predicate)}
    assert evaluate(renamed, batch.rename_columns(list(names.values()))) == evaluate(predicate, batch)


@pytest.mark.parametrize(
    ("predicate", "names", "expected"),
    [
        (And((A1, B1)), {"a"}, A1),
        (And((A1, B1)), {"c"}, None),
        (Or((A1, B1)), {"a"}, None),
        (Or((And((A1, B1)), And((A2, B2)))), {"a"}, Or((A1, A2))),
        (Or((A1, A2)), {"a", "b"}, Or((A1, A2))),
        (Always(False), set(), Always(False)),
        (Opaque(pc.field("a") > pc.field("b"), frozenset("ab")), {"a"}, None),
        (Opaque(pc.scalar(1) > 2, frozenset()), {"a"}, None),
    ],
)
def test_projection(predicate: Predicate, names: set[str], expected: Predicate | None) -> None:
    """AND loses what it may, OR is kept whole or not at all."""
    assert project_onto(predicate, names) == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (A1, {"a": [1]}),
        (And((A1, B2)), {"a": [1], "b": [2]}),
        (And((In("a", pa.array([1, 2, 3])), In("a", pa.array([3, 2, 4])), IsNull("c"))), {"a": [2, 3]}),
        (And((A1, A2)), {"a": []}),
        (Or((A1, A2, Always(None))), {"a": [1, 2]}),
        (Or((And((A1, B1)), A2)), {"a": [1, 2]}),
        (Or((A1, B1)), {}),
        (negate(A1), {}),
        (_is("x", 0.0), {"x": [0.0, -0.0]}),
        (In("x", pa.array([float("nan"), 1.0])), {"x": [1.0]}),
    ],
)
def test_equalities(predicate: Predicate, expected: dict[str, list[Any]]) -> None:
    """Equalities are intersected by AND and united by OR; floats list both zeros and no NaN."""
    found = {name: sorted(values.to_pylist(), key=str) for name, values in equalities(predicate).items()}
    assert str(found) == str({name: sorted(values, key=str) for name, values in expected.items()})


def test_conjunctions_are_flat_and_without_repetition() -> None:
    """Nested ANDs become one, equal parts appear once, and nothing is TRUE, or FALSE for OR."""
    assert conjunction([A1, And((B1, A1)), Always(True)]) == And((A1, B1))
    assert disjunction([A1, Or((B1, A1)), Always(False)]) == Or((A1, B1))
    assert conjunction([]) == Always(True)
    assert disjunction([]) == Always(False)
    assert conjunction([Always(None), A1]) == And((Always(None), A1))


def test_negation_twice_gives_the_same() -> None:
    """NOT NOT p is p, also for leaves that have no opposite."""
    whole = And((A1, Or((In("b", pa.array([1])), IsNull("c"))), _is("x", 1.5, "<"), Always(None)))
    assert negate(negate(whole)) == whole


def test_equality_hash_and_pickle() -> None:
    """Equal predicates are equal and hash alike, also opaque ones and after pickling."""
    expression = pc.field("a") + 1 > 2
    whole = And((A1, In("b", pa.array(["x"])), Opaque(expression, frozenset("a")), negate(_is("x", 1.5, ">"))))
    copy = pickle.loads(pickle.dumps(whole))
    assert copy == whole
    assert hash(copy) == hash(whole)
    assert Opaque(expression, frozenset("a")) != Opaque(pc.field("a") + 2 > 2, frozenset("a"))
    assert A1 != A2
    assert In("b", pa.array(["x"])) != In("b", pa.array(["y"]))


def test_text_puts_parentheses_where_needed() -> None:
    """AND and OR inside each other read unambiguously."""
    assert str(And((A1, Or((B1, B2))))) == "a = 1 AND (b = 1 OR b = 2)"
    assert str(Or((And((A1, B1)), A2))) == "(a = 1 AND b = 1) OR a = 2"
