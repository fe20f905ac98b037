"""The engine that keeps the newest row."""

from __future__ import annotations

import pyarrow as pa

from lakebed.merge import MERGE_ENGINES
from lakebed.merge.base import MergeOrder
from lakebed.merge.deduplicate import Deduplicate
from lakebed.types.key_value import with_system_columns


def merged(keys: list[int], values: list[str], numbers: list[int], kinds: list[int]) -> list[dict[str, object]]:
    """What the engine makes of these rows."""
    table = pa.RecordBatch.from_pydict({"k": pa.array(keys, pa.int64()), "v": pa.array(values, pa.string())})
    batch = with_system_columns(table, pa.array(numbers, pa.int64()), pa.array(kinds, pa.int8()))
    return Deduplicate().merge(batch, MergeOrder(("k",)).group(batch)).to_pylist()


def test_the_newest_row_stays_with_its_number_and_kind() -> None:
    """One row per key in key order; a newest delete stays a delete for whoever reads on."""
    assert merged([2, 1, 2, 1], ["a", "b", "c", "d"], [0, 1, 2, 3], [0, 0, 3, 2]) == [
        {"_SEQUENCE_NUMBER": 3, "_VALUE_KIND": 2, "k": 1, "v": "d"},
        {"_SEQUENCE_NUMBER": 2, "_VALUE_KIND": 3, "k": 2, "v": "c"},
    ]


def test_no_rows_stay_no_rows() -> None:
    """Merging nothing gives nothing."""
    assert merged([], [], [], []) == []


def test_it_is_registered_under_the_name_users_write() -> None:
    """`merge-engine` = `deduplicate` finds this engine."""
    assert MERGE_ENGINES["deduplicate"] is Deduplicate
    assert Deduplicate.name == "deduplicate"
