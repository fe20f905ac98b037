"""pyarrow expressions are read completely: structure, exact literal types, and parts that stand alone."""

from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakebed.types.expression_tree import (
    CallNode,
    ExpressionTree,
    FieldNode,
    LiteralNode,
    UnreadableExpression,
    column_names,
    is_picklable,
    walk,
)

EXPRESSION = ((pc.field("a") > 1) & (pc.field("a") < 3)) | ~pc.field("st", "x").isin([1, 2])


def test_structure_of_calls() -> None:
    """Repeated functions and columns all appear, in order."""
    root = ExpressionTree(EXPRESSION).root
    calls = [node.function for node in walk(root) if isinstance(node, CallNode)]
    assert sorted(calls) == ["and_kleene", "greater", "invert", "is_in", "less", "or_kleene"]
    assert column_names(root) == {"a", "st"}
    assert [node.path for node in walk(root) if isinstance(node, FieldNode)] == [("st", "x"), ("a",), ("a",)]


@pytest.mark.parametrize(
    "literal",
    [
        pa.scalar(1, pa.int8()),
        pa.scalar(2**63, pa.uint64()),
        pa.scalar(1.5, pa.float32()),
        pa.scalar("quotes \" and ' and \n"),
        pa.scalar("x", pa.large_string()),
        pa.scalar(b"\x00\xff"),
        pa.scalar(Decimal("-1.50"), pa.decimal128(10, 2)),
        pa.scalar(datetime(2020, 1, 2), pa.timestamp("us", "Europe/Berlin")),
        pa.scalar(5, pa.timestamp("ns")),
        pa.scalar(None, pa.int64()),
        pa.scalar(None),
        pa.scalar(True),
        pa.scalar([1, None]),
    ],
)
def test_literals_keep_their_type(literal: pa.Scalar) -> None:
    """A literal comes out with the type and value it went in with."""
    _, node = ExpressionTree(pc.field("a") == literal).root.arguments
    assert isinstance(node, LiteralNode)
    assert node.value.type == literal.type
    assert node.value == literal


def test_parts_become_expressions_again() -> None:
    """Each node stands for the expression it was written as."""
    tree = ExpressionTree(EXPRESSION)
    left, right = tree.root.arguments
    assert tree.expression_of(tree.root).equals(EXPRESSION)
    assert tree.expression_of(left).equals((pc.field("a") > 1) & (pc.field("a") < 3))
    assert tree.expression_of(left.arguments[1]).equals(pc.field("a") < 3)
    assert tree.expression_of(right).equals(~pc.field("st", "x").isin([1, 2]))


def test_renaming_leaves_members_alone() -> None:
    """Columns get their new names at once; members of a column keep theirs."""
    tree = ExpressionTree(pc.field("a") + pc.field("b", "a") > pc.field("b"))
    assert tree.renamed({"a": "b", "b": "c"}).equals(pc.field("b") + pc.field("c", "a") > pc.field("c"))


def test_columns_by_position_are_unreadable() -> None:
    """pyarrow does not pickle a position, and so neither do we read one."""
    assert is_picklable(EXPRESSION)
    assert not is_picklable(pc.field(0) > 1)
    with pytest.raises(UnreadableExpression):
        ExpressionTree(pc.field(0) > 1)


@pytest.mark.parametrize(
    "tokens",
    [
        [],
        [(b"call", b"less")],
        [(b"call", b"less"), (b"end", b"greater")],
        [(b"literal", b"7")],
        [(b"literal", b"0"), (b"literal", b"0")],
        [(b"nested_field_ref", b"2"), (b"field_ref", b"a"), (b"literal", b"0")],
        [(b"options", b"0")],
        [(b"novelty", b"")],
    ],
)
def test_unexpected_forms_are_unreadable(tokens: list[tuple[bytes, bytes]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A pickled form that is incomplete or unknown is refused rather than guessed at."""
    monkeypatch.setattr("lakebed.types.expression_tree._ordered_metadata", lambda schema: tokens)
    with pytest.raises(UnreadableExpression):
        ExpressionTree(pc.field("a") > 1)
