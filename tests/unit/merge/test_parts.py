"""Merging of sorted parts, for writers and for readers, against the engines' plain merge of all rows at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.merge import MERGE_ENGINES
from lakebed.merge.base import ChoosingEngine, Groups, MergeEngine, MergeOrder, MergeSetup
from lakebed.merge.parts import merged_rows, visible_rows
from lakebed.options import Options
from lakebed.types.arrow import from_arrow_schema
from lakebed.types.key_value import SEQUENCE_NUMBER, VALUE_KIND
from lakebed.types.row_kind import is_retract

SCHEMA = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.int64()))])
ENGINES: dict[str, dict[str, str]] = {
    "newest": {"merge-engine": "deduplicate"},
    "newest but retracts": {"merge-engine": "deduplicate", "ignore-delete": "true"},
    "first": {"merge-engine": "first-row", "ignore-delete": "true"},
    "columns": {"merge-engine": "partial-update", "ignore-delete": "true"},
    "columns, removal": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "groups": {"merge-engine": "partial-update", "fields.n.sequence-group": "s", "ignore-delete": "true"},
    "sums": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "sums, removal": {
        "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
        "aggregation.remove-record-on-delete": "true",
    },
    "elements": {
        "merge-engine": "aggregation",
        "ignore-delete": "true",
        "fields.s.aggregate-function": "listagg",
        "fields.l.aggregate-function": "collect",
    },
}
KEYS = {"dense": lambda n: n, "sparse": lambda n: n * 10**15, "negative": lambda n: n - (1 << 63)}
ORDERS = {
    "arrival": MergeOrder(("k",)),
    "by n": MergeOrder(("k",), ("n",)),
    "by n down": MergeOrder(("k",), ("n",), True),
}

Parts = list[pa.RecordBatch]


def engine_of(options: Mapping[str, str]) -> MergeEngine:
    """The engine that a table with these options has."""
    setup = MergeSetup(from_arrow_schema(SCHEMA), ("k",), Options(dict(options)))
    return MERGE_ENGINES[options["merge-engine"]](setup)


@st.composite
def parts_of(draw: st.DrawFn, *, nulls: bool, retracts: bool) -> Parts:
    """Two to four parts; the numbers of a later one are usually, not always, larger."""
    spread = draw(st.sampled_from(list(KEYS.values())))
    in_order = draw(st.booleans())
    made = []
    for part in range(draw(st.integers(2, 4))):
        keys = sorted(draw(st.sets(st.integers(0, 12), min_size=1)))
        count = len(keys)
        number = part if in_order else draw(st.integers(0, 3))
        cells = {
            "n": st.integers(-3, 3),
            "s": st.text("ab", max_size=2),
            "l": st.lists(st.integers(0, 2), max_size=2),
        }
        rows = {
            name: draw(st.lists(st.none() | cell if nulls else cell, min_size=count, max_size=count))
            for name, cell in cells.items()
        }
        kinds = draw(st.lists(st.sampled_from((0, 1, 2, 3) if retracts else (0, 2)), min_size=count, max_size=count))
        columns = [
            pa.array([100 * number + i for i in range(count)], pa.int64()),
            pa.array(kinds, pa.int8()),
            pa.array([spread(key) for key in keys], pa.int64()),
            *(pa.array(rows[field.name], field.type) for field in list(SCHEMA)[1:]),
        ]
        made.append(pa.RecordBatch.from_arrays(columns, names=[SEQUENCE_NUMBER, VALUE_KIND, *SCHEMA.names]))
    return made


def plainly_merged(parts: Parts, order: MergeOrder, engine: MergeEngine) -> pa.RecordBatch:
    """All rows sorted at once and, where rows are combined, every column folded."""
    rows = pa.concat_batches(parts)
    if not isinstance(engine, ChoosingEngine):
        engine.__dict__["newest_columns"] = frozenset()
    return engine.merge(rows, order.group(rows))


def shown(rows: pa.RecordBatch, columns: list[str]) -> Counter[str]:
    """Rows that are no retracts, as texts, with how often each is there."""
    kept = rows.filter(pa.array(~is_retract(np.asarray(rows.column(VALUE_KIND)))))
    return Counter(str(row) for row in kept.select(columns).to_pylist())


@pytest.mark.parametrize("name", ENGINES)
@given(data=st.data())
def test_parts_merge_like_all_rows_at_once(name: str, data: st.DataObject) -> None:
    """Writers get the same rows in the same order; readers the same without retracts, in any order."""
    nulls, retracts = data.draw(st.booleans()), data.draw(st.booleans())
    parts = data.draw(parts_of(nulls=nulls, retracts=retracts))
    order = ORDERS["arrival"] if name == "first" else data.draw(st.sampled_from(list(ORDERS.values())))
    expected = plainly_merged(parts, order, engine_of(ENGINES[name]))
    assert merged_rows(parts, order, engine_of(ENGINES[name])).to_pylist() == expected.to_pylist()
    columns = data.draw(st.permutations(SCHEMA.names))[: data.draw(st.integers(1, 4))]
    seen = [row for batch in visible_rows(parts, order, engine_of(ENGINES[name]), columns) for row in batch.to_pylist()]
    assert Counter(map(str, seen)) == shown(expected, columns)


@pytest.mark.parametrize("name", ENGINES)
@given(data=st.data())
def test_parts_without_numbers_are_in_order_of_arrival(name: str, data: st.DataObject) -> None:
    """Leaving the numbers out, where each part is newer than those before, changes nothing for readers."""
    parts = data.draw(parts_of(nulls=True, retracts=True))
    order = ORDERS["arrival"] if name == "first" else data.draw(st.sampled_from(list(ORDERS.values())))
    numbered, start = [], 0
    for part in parts:
        numbers = pa.array(range(start, start + part.num_rows), pa.int64())
        numbered.append(part.set_column(0, SEQUENCE_NUMBER, numbers))
        start += part.num_rows
    columns = SCHEMA.names
    engine = engine_of(ENGINES[name])
    unnumbered = [part.drop_columns([SEQUENCE_NUMBER]) for part in parts]
    seen = [row for batch in visible_rows(unnumbered, order, engine, columns) for row in batch.to_pylist()]
    assert Counter(map(str, seen)) == shown(plainly_merged(numbered, order, engine_of(ENGINES[name])), columns)


def test_an_engine_of_another_kind_gets_all_rows() -> None:
    """Engines that neither choose nor fold are asked to merge, also a single part."""

    class Largest(MergeEngine):
        """Keeps the row with the largest n."""

        name = "largest"

        def merge(self, rows: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
            n = np.asarray(rows.column("n"))
            chosen = [
                max(groups.order[start:end], key=lambda row: n[row])
                for start, end in zip(groups.starts, groups.ends, strict=True)
            ]
            return rows.take(pa.array(chosen, pa.int64()))

    def part(number: int, n: list[int]) -> pa.RecordBatch:
        columns = {SEQUENCE_NUMBER: [number, number + 1], VALUE_KIND: pa.array([0, 0], pa.int8()), "k": [1, 2], "n": n}
        return pa.RecordBatch.from_pydict(columns)

    parts = [part(0, [5, 1]), part(2, [3, 4])]
    assert merged_rows(parts, ORDERS["arrival"], Largest()).column("n").to_pylist() == [5, 4]
    assert merged_rows(parts[:1], ORDERS["arrival"], Largest()).column("n").to_pylist() == [5, 1]
    (seen,) = visible_rows(parts, ORDERS["arrival"], Largest(), ["n"])
    assert seen.to_pydict() == {"n": [5, 4]}
