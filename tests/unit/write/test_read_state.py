"""Rows that were computed from what the table held: refused if others changed that meanwhile, and only then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import CommitConflict
from lakebed.table.plans import plan_write
from lakebed.table.writer import TableWriter
from lakebed.write.read_state import ReadState

COLUMNS = {"p": "INT NOT NULL", "k": "INT NOT NULL", "v": "INT"}


def _table(**options: str) -> lakebed.Table:
    lake = lakebed.connect(f"memory://{uuid4()}")
    table = lake.create_table(
        "t", COLUMNS, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "1", **options}
    )
    _write(table, {(1, key): 0 for key in range(10)})
    return table


def _rows(rows: Mapping[tuple[int, int], int]) -> pa.Table:
    members = [{"p": p, "k": k, "v": v} for (p, k), v in rows.items()]
    return pa.Table.from_pylist(members, schema=pa.schema([(name, pa.int32()) for name in COLUMNS]))


def _write(table: lakebed.Table, rows: Mapping[tuple[int, int], int], **arguments: Any) -> None:
    table.write(_rows(rows), **arguments)


def _computed(table: lakebed.Table, base: ReadState, rows: Mapping[tuple[int, int], int], **arguments: Any) -> None:
    """Commits rows that were computed from an earlier state."""
    context, identity = plan_write(table)
    with TableWriter(context, identity=identity, read=base, **arguments) as writer:
        writer.write(_rows(rows))


@pytest.mark.parametrize(
    ("meanwhile", "is_refused"),
    [
        (lambda table: _write(table, {(1, 3): 7}), True),
        (lambda table: _write(table, {(1, 2): 7, (1, 9): 7}), False),
        (lambda table: _write(table, {(1, 20): 7}), False),
        (lambda table: _write(table, {(2, 3): 7}), False),
        (lambda table: table.compact(full=True), False),
        (lambda table: (_write(table, {(1, 3): 7}), table.compact(full=True)), True),
        (lambda table: _write(table, {(1, 8): 7}, overwrite={"p": 1}), True),
        (lambda table: _write(table, {(2, 8): 7}, overwrite={"p": 2}), False),
        (lambda table: table.truncate(), True),
        (lambda table: table.rollback_to(1), False),
    ],
)
def test_only_the_same_keys_are_in_the_way(meanwhile: Callable[[lakebed.Table], object], is_refused: bool) -> None:
    """Writers of the same key, and those who remove it, refuse the commit; other keys and compactions do not."""
    table = _table()
    base = ReadState(table.latest_snapshot())
    meanwhile(table)
    before = table.latest_snapshot()
    if is_refused:
        with pytest.raises(CommitConflict, match="run the statement again"):
            _computed(table, base, {(1, 3): 1, (1, 5): 1})
        assert table.latest_snapshot() == before
    else:
        _computed(table, base, {(1, 3): 1, (1, 5): 1})
        assert table.to_arrow(["v"], filter=[("k", "in", [3, 5]), ("p", "=", 1)])["v"].to_pylist() == [1, 1]


def test_what_can_not_be_told_any_more_is_refused() -> None:
    """If the snapshot that was read has expired or was rolled back, nobody knows what came in since."""
    for forget in (
        lambda table: table.expire_snapshots(retain_max=1, retain_min=1),
        lambda table: table.rollback_to(1),
    ):
        table = _table()
        _write(table, {(2, 1): 1})
        base = ReadState(table.latest_snapshot())
        _write(table, {(2, 1): 2})
        forget(table)
        with pytest.raises(CommitConflict):
            _computed(table, base, {(1, 3): 1})


def test_a_replacement_of_everything_tolerates_no_new_row() -> None:
    """An overwrite that was computed from the whole table is refused after any write, but not after a compaction."""
    table = _table()
    base = ReadState(table.latest_snapshot())
    table.compact(full=True)
    _computed(table, base, {(1, 1): 1}, overwrite={})
    assert table.to_arrow().num_rows == 1
    base = ReadState(table.latest_snapshot())
    _write(table, {(5, 5): 5})
    with pytest.raises(CommitConflict):
        _computed(table, base, {(1, 1): 2}, overwrite={})
    assert table.to_arrow().num_rows == 2


def test_the_first_write_of_all() -> None:
    """What was computed from an empty table is refused if others wrote the same key first."""
    lake = lakebed.connect(f"memory://{uuid4()}")
    table = lake.create_table("t", COLUMNS, primary_key=["p", "k"], options={"bucket": "2"})
    _computed(table, ReadState(None), {(1, 1): 1})
    with pytest.raises(CommitConflict):
        _computed(table, ReadState(None), {(1, 1): 2})
    _computed(table, ReadState(None), {(1, 2): 2})
    assert sorted(table.to_arrow()["v"].to_pylist()) == [1, 2]


def test_a_key_of_text() -> None:
    """Keys of any type are compared as they are."""
    lake = lakebed.connect(f"memory://{uuid4()}")
    table = lake.create_table("t", {"k": "STRING NOT NULL"}, primary_key=["k"], options={"bucket": "1"})
    table.write(pa.table({"k": ["a", "z"]}))
    context, identity = plan_write(table)
    for key, is_refused in (("m", False), ("z", True)):
        writer = TableWriter(context, identity=identity, read=ReadState(None))
        writer.write(pa.table({"k": ["b", key]}))
        if is_refused:
            with pytest.raises(CommitConflict):
                writer.commit()
        else:
            assert writer.commit() is not None
            table.rollback_to(1)
