"""Grouping of rows by key and their order within a key."""

from __future__ import annotations

import pyarrow as pa

from lakebed.merge.base import MergeOrder
from lakebed.types.key_value import with_system_columns


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
