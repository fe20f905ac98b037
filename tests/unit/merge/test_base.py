"""Grouping of rows by key and their order within a key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakebed.merge.base import MergeOrder
from lakebed.types.key_value import SEQUENCE_NUMBER, with_system_columns


def rows(keys: list[int | None], numbers: list[int], kinds: list[int], **columns: list[object]) -> pa.RecordBatch:
    """A batch in key-value shape with key column k."""
    table = pa.RecordBatch.from_pydict({"k": pa.array(keys, pa.int64()), **columns})
    return with_system_columns(table, pa.array(numbers, pa.int64()), pa.array(kinds, pa.int8()))


def groups(batch: pa.RecordBatch, order: MergeOrder) -> list[list[int]]:
    """Row numbers of each group."""
    made = order.group(batch)
    assert len(made) == len(made.starts)
    assert made.last.tolist() == [made.order[end - 1] for end in made.ends]
    return [made.order[start:end].tolist() for start, end in zip(made.starts, made.ends, strict=True)]


def test_no_rows_make_no_groups() -> None:
    """An empty batch has no groups, and asking for the newest rows of none is no error."""
    assert groups(rows([], [], []), MergeOrder(("k",))) == []


def test_groups_come_in_key_order_with_nulls_first() -> None:
    """Null is a key like any other and sorts before all of them."""
    assert groups(rows([2, None, 1, None], [0, 1, 2, 3], [0] * 4), MergeOrder(("k",))) == [[1, 3], [2], [0]]


def test_sequence_numbers_decide_when_runs_are_handed_over_out_of_order() -> None:
    """A newer run in front of an older one still loses nothing: numbers count, not positions."""
    assert groups(rows([1, 2, 1, 2], [7, 8, 3, 9], [0] * 4), MergeOrder(("k",))) == [[2, 0], [1, 3]]


def test_a_retract_comes_before_an_add_of_the_same_number() -> None:
    """With everything else equal the add is the newer one."""
    assert groups(rows([1, 1], [5, 5], [0, 3]), MergeOrder(("k",))) == [[1, 0]]
    assert groups(rows([1, 1], [5, 5], [1, 2]), MergeOrder(("k",))) == [[0, 1]]


def test_sequence_fields_count_before_numbers() -> None:
    """A later arrival with a smaller sequence value is older; a null is oldest in either direction."""
    batch = rows([1, 1, 1], [0, 1, 2], [0] * 3, s=pa.array([5, 3, None], pa.int32()))
    assert groups(batch, MergeOrder(("k",), ("s",))) == [[2, 1, 0]]
    assert groups(batch, MergeOrder(("k",), ("s",), descending=True)) == [[2, 0, 1]]


def test_composite_keys_are_told_apart_by_every_column() -> None:
    """Two columns make the key, in the order named."""
    batch = rows([1, 1, 2, 1], [0, 1, 2, 3], [0] * 4, j=pa.array(["b", "a", "a", "b"]))
    assert groups(batch, MergeOrder(("k", "j"))) == [[1], [0, 3], [2]]
    assert groups(batch, MergeOrder(("j", "k"))) == [[1], [2], [0, 3]]


@pytest.mark.parametrize("spread", [1, 10**12])
def test_newest_rows_and_keys_with_several_are_those_of_the_groups(spread: int) -> None:
    """Whether keys lie close together or far apart, and whether or not there are numbers."""
    batch = rows([key * spread for key in (3, 1, 2, 1, 5, 3, 1)], list(range(7)), [0] * 7)
    order = MergeOrder(("k",))
    for given in (batch, batch.drop_columns([SEQUENCE_NUMBER])):
        assert order.newest(given).tolist() == [6, 2, 5, 4]
        assert np.flatnonzero(order.are_newest(given)).tolist() == [2, 4, 5, 6]
        newest, shared = order.newest_and_shared(given)
        assert newest.tolist() == [6, 2, 5, 4]
        assert [shared.order[start:end].tolist() for start, end in zip(shared.starts, shared.ends, strict=True)] == [
            [1, 3, 6],
            [0, 5],
        ]


def test_rows_without_numbers_are_in_order_of_arrival() -> None:
    """The place of a row stands in for its number, also behind sequence fields."""
    batch = rows([1, 1, 1], [9, 8, 7], [0] * 3, s=pa.array([5, 3, 5], pa.int32())).drop_columns([SEQUENCE_NUMBER])
    assert groups(batch, MergeOrder(("k",))) == [[0, 1, 2]]
    assert groups(batch, MergeOrder(("k",), ("s",))) == [[1, 0, 2]]
    assert MergeOrder(("k",), ("s",)).newest(batch).tolist() == [2]
    assert MergeOrder(("k",), ("s",)).are_newest(batch).tolist() == [False, False, True]
