import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.errors import LakebedError
from lakebed.schema.changes import (
    AddColumn,
    After,
    DropColumn,
    First,
    RenameColumn,
    UpdateColumnPosition,
    UpdateColumnType,
    apply_changes,
)
from lakebed.schema.evolution import map_fields
from lakebed.schema.table_schema import TableSchema
from lakebed.types.logical import BIGINT, INT, ArrayType, DataField, DataType, MapType, RowType, parse_type, walk_fields

START = "k BIGINT, a BIGINT, b INT, r ROW<x BIGINT, y ROW<z INT>>, l ARRAY<ROW<x INT>>, m MAP<STRING, ROW<x BIGINT>>"
NAMES = ["a", "b", "c", "d", "r", "l", "x", "y"]
PARENTS = [(), ("r",), ("r", "y"), ("l", "element"), ("m", "value")]
TYPES = [BIGINT, INT, parse_type("ROW<x BIGINT, y INT>"), parse_type("ARRAY<ROW<x INT>>")]

paths = st.tuples(st.sampled_from(PARENTS), st.sampled_from(NAMES)).map(lambda pair: (*pair[0], pair[1]))
positions = st.sampled_from([None, First(), After("a"), After("x")])
changes = st.one_of(
    st.builds(AddColumn, paths, st.sampled_from(TYPES), position=positions),
    st.builds(DropColumn, paths),
    st.builds(RenameColumn, paths, st.sampled_from(NAMES)),
    st.builds(UpdateColumnPosition, paths, st.sampled_from([First(), After("a"), After("x")])),
    st.builds(UpdateColumnType, paths, st.sampled_from([BIGINT, INT])),
)


def history(steps) -> list[TableSchema]:
    """All versions that the steps lead through; steps that are not allowed are skipped."""
    fields = parse_type(f"ROW<{START}>").fields
    versions = [TableSchema.create(fields, (), ["k"], {}, None, 0)]
    for step in steps:
        try:
            versions.append(apply_changes(versions[-1], [step], has_snapshots=True, time_millis=0))
        except LakebedError:
            continue
    return versions


def value_of(data_type: DataType, field_id: int):
    """A value whose every leaf is the id of the field it belongs to."""
    match data_type:
        case RowType(fields):
            return {member.name: value_of(member.type, member.id) for member in fields}
        case ArrayType(element):
            return [value_of(element, field_id)]
        case MapType(_, value):
            return [("key", value_of(value, field_id))]
        case _:
            return field_id


def expected_value(data_type: DataType, field_id: int, known: dict[int, DataField]):
    """What a reader of `data_type` has to see in a file whose fields are `known`: ids, and nulls for unknown fields."""
    match data_type:
        case RowType(fields):
            return {m.name: expected_value(m.type, m.id, known) if m.id in known else None for m in fields}
        case ArrayType(element):
            return [expected_value(element, field_id, known)]
        case MapType(_, value):
            return [("key", expected_value(value, field_id, known))]
        case _:
            return field_id


@settings(max_examples=150, deadline=None)
@given(st.lists(changes, max_size=25))
def test_ids_stay_unique_and_are_never_reused(steps):
    """Whatever changes come, ids are unique, the highest only grows, and an id once gone never comes back."""
    versions = history(steps)
    seen: set[int] = set()
    gone: set[int] = set()
    for number, schema in enumerate(versions):
        ids = [field.id for field in walk_fields(schema.fields)]
        assert schema.id == number
        assert len(ids) == len(set(ids))
        assert max(ids) <= schema.highest_field_id
        assert not gone & set(ids)
        assert TableSchema.from_json(schema.to_json(), "p") == schema
        gone |= seen - set(ids)
        seen |= set(ids)
    highest = [schema.highest_field_id for schema in versions]
    assert highest == sorted(highest)


@settings(max_examples=150, deadline=None)
@given(st.lists(changes, max_size=20), st.data())
def test_data_follows_its_ids_through_any_history(steps, data):
    """A file of any version, read with any other, shows each value under the field of its id and nowhere else."""
    versions = history(steps)
    old, new = data.draw(st.sampled_from(versions)), data.draw(st.sampled_from(versions))
    row = {column.name: value_of(column.type, column.id) for column in old.fields}
    evolution = map_fields(new.fields, old)
    names = [column.name for column in evolution.file_fields]
    batch = pa.RecordBatch.from_pylist([row], schema=old.arrow_schema).select(names)
    result = evolution.apply(batch)
    result.validate(full=True)
    known = {field.id: field for field in walk_fields(old.fields)}
    assert result.to_pylist() == [
        {c.name: expected_value(c.type, c.id, known) if c.id in known else None for c in new.fields}
    ]
    if old is new:
        assert result is batch
