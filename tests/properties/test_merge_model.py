"""Grouping, folding and merging of runs against the row-by-row definition, for all key types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.lsm.merge_runs import merge_runs
from lakebed.lsm.write_buffer import WriteBuffer
from lakebed.merge.base import MergeOrder
from lakebed.merge.deduplicate import Deduplicate
from lakebed.testing import model
from lakebed.testing.model import KINDS, ModelOrder, ModelSchema, ModelTable, Record, Row, order_of
from lakebed.testing.model_arrow import from_arrow, tally, to_arrow_array, to_arrow_table, types_of
from lakebed.testing.strategies import ATOMIC_TYPES, cells, row_kinds, values_of
from lakebed.types import ordering
from lakebed.types.key_value import SEQUENCE_NUMBER, VALUE_KIND, with_system_columns
from lakebed.types.logical import BIGINT, AtomicType, with_nullable

_TYPES = st.sampled_from(ATOMIC_TYPES)


@dataclass(frozen=True)
class Sample:
    """Records of a small table and the orders that engine and model give them."""

    table: ModelTable
    records: list[Record]

    @property
    def key(self) -> list[str]:
        return list(self.table.primary_key)

    @property
    def engine_order(self) -> MergeOrder:
        return MergeOrder(tuple(self.key), tuple(self.table.sequence_fields), self.table.descending)

    def batch(self, records: Sequence[Record]) -> pa.RecordBatch:
        """The records in the shape the engine works on."""
        schema = self.table.schema
        rows = to_arrow_table([schema.row(record) for record in records], types_of(schema))
        kinds = pa.array([KINDS.index(record.kind) for record in records], pa.int8())
        batch = pa.RecordBatch.from_arrays(
            [column.combine_chunks() for column in rows.columns], names=rows.column_names
        )
        return with_system_columns(batch, pa.array([record.number for record in records], pa.int64()), kinds)

    def expected(self, records: Sequence[Record]) -> list[Row]:
        """Number, kind and cells of each key's record, in key order."""
        return [self.system_row(record) for record in self.table.merged(records, self.table.schema)]

    def system_row(self, record: Record) -> Row:
        kind = KINDS.index(record.kind)
        return {SEQUENCE_NUMBER: record.number, VALUE_KIND: kind, **self.table.schema.row(record)}

    def key_of(self, record: Record) -> tuple[object, ...]:
        row = self.table.schema.row(record)
        return tuple(order_of(row[name]) for name in self.key)


@st.composite
def samples(draw: st.DrawFn, *, max_size: int = 12, sequence: bool = True) -> Sample:
    """Records in any order of keys, sequence values and numbers; numbers may repeat."""
    types = {f"k{i}": _nullable(draw(_TYPES), draw(st.booleans())) for i in range(draw(st.integers(1, 3)))}
    pools = {name: draw(st.lists(cells(types[name]), min_size=1, max_size=3)) for name in types}
    fields = [f"s{i}" for i in range(draw(st.integers(0, 2)) if sequence else 0)]
    types |= {name: _nullable(draw(_TYPES), True) for name in fields}
    pools |= {name: draw(st.lists(cells(types[name]), min_size=1, max_size=3)) for name in fields}
    types["v"] = _nullable(BIGINT, True)
    key = [name for name in types if name.startswith("k")]
    table = ModelTable(types, key, sequence_fields=fields, descending=draw(st.booleans()))
    rows = draw(
        st.lists(
            st.tuples(
                st.fixed_dictionaries({name: st.sampled_from(pool) for name, pool in pools.items()}),
                row_kinds(),
                st.integers(0, max_size),
            ),
            max_size=max_size,
        )
    )
    # The value tells every record apart.
    records = [_record(table.schema, {**row, "v": v}, kind, number) for v, (row, kind, number) in enumerate(rows)]
    return Sample(table, records)


def _nullable(data_type: AtomicType, nullable: bool) -> AtomicType:
    changed = with_nullable(data_type, nullable)
    assert isinstance(changed, AtomicType)
    return changed


def _record(schema: ModelSchema, row: Row, kind: str, number: int) -> Record:
    return Record(kind, {column.id: (column.type, row[column.name]) for column in schema.columns}, number)


def _same_in_order(found: Sequence[Row], expected: Sequence[Row]) -> None:
    assert [tally([row]) for row in found] == [tally([row]) for row in expected]


@settings(max_examples=300)
@given(samples())
def test_groups_are_the_models_keys_in_the_models_order(sample: Sample) -> None:
    """Each group holds one key's records, oldest first, and groups come in key order."""
    batch = sample.batch(sample.records)
    groups = sample.engine_order.group(batch)
    found = [groups.order[start:end].tolist() for start, end in zip(groups.starts, groups.ends, strict=True)]
    by_key: dict[tuple[object, ...], list[Record]] = {}
    for record in sample.records:
        by_key.setdefault(sample.key_of(record), []).append(record)
    schema, table = sample.table.schema, sample.table
    order = ModelOrder(tuple(schema.column(name).id for name in table.sequence_fields), table.descending)
    value = schema.column("v").id
    expected = [
        [record.cells[value][1] for record in order.oldest_first(by_key[key], schema.cell)] for key in sorted(by_key)
    ]
    assert found == expected


@settings(max_examples=200)
@given(samples())
def test_deduplicate_keeps_the_models_record(sample: Sample) -> None:
    """The engine's row of every key is the model's, number and kind included."""
    batch = sample.batch(sample.records)
    merged = Deduplicate().merge(batch, sample.engine_order.group(batch))
    _same_in_order(from_arrow(merged), sample.expected(sample.records))


@settings(max_examples=100)
@given(samples(), st.integers(1, 5))
def test_write_buffer_numbers_and_folds_like_the_model(sample: Sample, batch_rows: int) -> None:
    """Batches that go into a buffer come out as one sorted run, numbered by arrival, one row per key."""
    order = sample.engine_order
    buffer = WriteBuffer(order, Deduplicate(), next_sequence_number=100)
    for batch in _cut(sample.batch(sample.records), [batch_rows] * len(sample.records)):
        rows = batch.drop_columns([SEQUENCE_NUMBER, VALUE_KIND])
        buffer.add(rows, batch.column(VALUE_KIND))
    numbered = [Record(record.kind, record.cells, 100 + i) for i, record in enumerate(sample.records)]
    found = [record for run in buffer.runs() for batch in run for record in from_arrow(batch)]
    _same_in_order(found, sample.expected(numbered))
    assert buffer.size_bytes == 0
    assert list(buffer.runs()) == []


# --- runs ----------------------------------------------------------------------------------------------------------


@st.composite
def samples_in_runs(draw: st.DrawFn) -> tuple[Sample, list[list[Record]]]:
    """Records dealt out to runs: keys ascending and unique within a run, numbers in any order across runs."""
    sample = draw(samples(max_size=24))
    runs: list[dict[tuple[object, ...], Record]] = [{} for _ in range(draw(st.integers(1, 5)))]
    dealt = []
    for record in sample.records:
        run = runs[draw(st.integers(0, len(runs) - 1))]
        if sample.key_of(record) not in run:
            run[sample.key_of(record)] = record
            dealt.append(record)
    in_order = [[run[key] for key in sorted(run)] for run in runs]
    return Sample(sample.table, dealt), in_order


def _cut(batch: pa.RecordBatch, sizes: Sequence[int]) -> list[pa.RecordBatch]:
    batches, start = [], 0
    for size in sizes:
        if start < batch.num_rows:
            batches.append(batch.slice(start, size))
            start += size
    return [*batches, batch.slice(start)] if start < batch.num_rows else batches


@settings(max_examples=250)
@given(samples_in_runs(), st.data())
def test_streaming_merge_is_the_merge_of_everything_at_once(
    drawn: tuple[Sample, list[list[Record]]], data: st.DataObject
) -> None:
    """However small the batches: the same rows as one big merge, in key order, and no key in two batches."""
    sample, runs = drawn
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=24, max_size=24), "batch sizes")
    streams = [iter(_cut(sample.batch(run), sizes)) for run in runs]
    found = [row for batch in merge_runs(streams, sample.engine_order, Deduplicate()) for row in from_arrow(batch)]
    # Ties in everything are broken by position, and the runs come one after the other.
    _same_in_order(found, sample.expected([record for run in runs for record in run]))


@settings(max_examples=150)
@given(samples_in_runs(), st.integers(1, 3))
def test_streaming_merge_holds_one_batch_of_each_run(drawn: tuple[Sample, list[list[Record]]], batch_rows: int) -> None:
    """A run is asked for what follows a large batch only when all of that has been handed out, and merging is lazy."""
    sample, runs = drawn
    emitted: list[tuple[object, ...]] = []

    def key(row: Row) -> tuple[object, ...]:
        return tuple(order_of(row[name]) for name in sample.key)

    def watched(run: list[Record]) -> Iterator[pa.RecordBatch]:
        before: pa.RecordBatch | None = None
        for batch in _cut(sample.batch(run), [batch_rows] * len(run)):
            assert before is None or key(from_arrow(before)[-1]) <= emitted[-1]
            yield batch
            before = batch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lakebed.lsm.merge_runs._LITTLE_BYTES", 0)
        for merged in merge_runs([watched(run) for run in runs], sample.engine_order, Deduplicate()):
            assert merged.num_rows <= batch_rows * len(runs)
            emitted += [key(row) for row in from_arrow(merged)]
    assert emitted == sorted(set(emitted))


@settings(max_examples=400)
@given(st.data())
def test_model_order_of_values_is_that_of_sort_codes(data: st.DataObject) -> None:
    """The model's tokens and the engine's codes agree on order and equality, for every type."""

    data_type = data.draw(_TYPES, "type")
    values = data.draw(st.lists(st.none() | values_of(data_type), max_size=8), "values")
    codes = ordering.sort_codes(to_arrow_array(values, data_type)).tolist()
    tokens = [model.order_of(value) for value in values]
    for left_code, left in zip(codes, tokens, strict=True):
        for right_code, right in zip(codes, tokens, strict=True):
            assert (left_code < right_code) == (left < right)
            assert (left_code == right_code) == (left == right)
