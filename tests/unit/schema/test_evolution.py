import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.errors import InvalidArgument, InvalidData, InvalidSchema
from lakebed.schema.changes import (
    AddColumn,
    DropColumn,
    First,
    RenameColumn,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    apply_changes,
)
from lakebed.schema.evolution import map_fields
from lakebed.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND, key_field
from lakebed.schema.table_schema import TableSchema
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.logical import BIGINT, DOUBLE, INT, STRING, DataField, decimal, parse_type, with_nullable

EVOLVED = Path(__file__).parents[2] / "fixtures/pypaimon-2.1.0/warehouse/default.db/schema_evolved"


def table(text: str, primary=()) -> TableSchema:
    return TableSchema.create(parse_type(f"ROW<{text}>").fields, (), primary, {}, None, 1)


def altered(schema: TableSchema, *changes) -> TableSchema:
    return apply_changes(schema, changes, has_snapshots=True, time_millis=2)


def batch_of(schema: TableSchema, rows: list[dict]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=schema.arrow_schema)


def evolved(old: TableSchema, new: TableSchema, rows: list[dict]) -> list[dict]:
    """The rows of a file of `old` as `new` reads them, checked for exact types."""
    evolution = map_fields(new.fields, old)
    batch = batch_of(old, rows).select([column.name for column in evolution.file_fields])
    result = evolution.apply(batch)
    result.validate(full=True)
    assert result.schema.equals(to_arrow_schema(new.fields))
    return result.to_pylist()


def test_file_of_the_current_schema_passes_untouched():
    """Nothing to do costs nothing: the very batch comes back."""
    schema = table("a INT, r ROW<x INT>, m MAP<STRING, ROW<y INT>>")
    evolution = map_fields(schema.fields, schema)
    batch = batch_of(schema, [{"a": 1, "r": {"x": 1}, "m": []}])
    assert evolution.is_identity
    assert evolution.apply(batch) is batch


def test_projection_reads_only_what_is_wanted():
    """Wanted columns decide what is read and in which order; reordering alone is no identity of a larger file."""
    schema = table("a INT, b INT, c INT")
    evolution = map_fields(schema.fields_of(["c", "a"]), schema)
    assert [column.name for column in evolution.file_fields] == ["c", "a"]
    assert evolution.is_identity


def test_rename_drop_add_and_retype():
    """Columns are matched by id: renamed ones keep values, re-added ones do not, new ones are null, types are cast."""
    old = table("id INT, a INT, b STRING, c INT, gone INT")
    new = altered(
        old,
        RenameColumn("a", "a2"),
        DropColumn("b"),
        AddColumn("b", STRING),
        UpdateColumnType("c", STRING),
        AddColumn("a", DOUBLE, position=First()),
        DropColumn("gone"),
    )
    rows = evolved(old, new, [{"id": 1, "a": 7, "b": "lost", "c": 5, "gone": 0}, {"id": 2}])
    assert rows[0] == {"a": None, "id": 1, "a2": 7, "c": "5", "b": None}
    assert rows[1] == {"a": None, "id": 2, "a2": None, "c": None, "b": None}


def test_old_schema_can_read_newer_files():
    """Time travel asks for an old schema's columns of whatever file: the mapping works in both directions."""
    old = table("a INT, b INT")
    new = altered(old, RenameColumn("a", "x"), DropColumn("b"), UpdateColumnType("x", BIGINT))
    assert evolved(new, old, [{"x": 5}]) == [{"a": 5, "b": None}]


def test_nested_rows_evolve_by_id():
    """Members of ROWs, also inside ARRAY and MAP, follow their ids through renames, drops, additions and casts."""
    old = table("r ROW<x INT, y ROW<z STRING, w INT>>, items ARRAY<ROW<sku STRING, n INT>>, m MAP<STRING, ROW<v INT>>")
    new = altered(
        old,
        RenameColumn("r.x", "xx"),
        DropColumn("r.y.w"),
        AddColumn("r.y.w", BIGINT),
        AddColumn("r.new", parse_type("ROW<q INT>"), position=First()),
        UpdateColumnType("items.element.n", BIGINT),
        RenameColumn("items.element.sku", "code"),
        UpdateColumnType("m.value.v", STRING),
        UpdateColumnPosition("m", First()),
    )
    rows = [
        {"r": {"x": 1, "y": {"z": "a", "w": 9}}, "items": [{"sku": "s", "n": 2}, None], "m": [("k", {"v": 3})]},
        {"r": {"x": 2, "y": None}, "items": [], "m": [("k", None), ("l", {"v": None})]},
        {"r": None, "items": None, "m": None},
    ]
    assert evolved(old, new, rows) == [
        {
            "m": [("k", {"v": "3"})],
            "r": {"new": None, "xx": 1, "y": {"z": "a", "w": None}},
            "items": [{"code": "s", "n": 2}, None],
        },
        {"m": [("k", None), ("l", {"v": None})], "r": {"new": None, "xx": 2, "y": None}, "items": []},
        {"m": None, "r": None, "items": None},
    ]


def test_slices_of_batches_evolve_like_whole_ones():
    """Offsets of sliced nested arrays are honoured."""
    old = table("r ROW<x INT>, l ARRAY<INT>, m MAP<STRING, INT>")
    new = altered(
        old, UpdateColumnType("r.x", BIGINT), UpdateColumnType("l.element", STRING), UpdateColumnType("m.value", BIGINT)
    )
    rows = [{"r": {"x": n}, "l": [n, n + 1] if n % 3 else None, "m": [(str(n), n)] * (n % 2)} for n in range(9)]
    evolution = map_fields(new.fields, old)
    whole = batch_of(old, rows)
    assert evolution.apply(whole.slice(2, 5)).to_pylist() == evolution.apply(whole).to_pylist()[2:7]
    assert evolution.apply(whole.slice(4, 0)).num_rows == 0


def test_values_below_a_null_row_do_not_matter():
    """Whatever a file holds under a null ROW is not cast: it can not make the read fail."""
    old = table("r ROW<x STRING>")
    new = altered(old, UpdateColumnType("r.x", INT))
    arrow = old.arrow_schema.field("r").type
    column = pa.StructArray.from_arrays([pa.array(["junk", "7"])], fields=list(arrow), mask=pa.array([True, False]))
    batch = pa.RecordBatch.from_arrays([column], schema=old.arrow_schema)
    assert map_fields(new.fields, old).apply(batch).to_pylist() == [{"r": None}, {"r": {"x": 7}}]


def test_loosened_nullability_changes_the_schema_only():
    """Values pass as they are when a column, or a member, was NOT NULL and no longer is."""
    old = table("a INT NOT NULL, r ROW<x INT NOT NULL>, l ARRAY<INT NOT NULL>")
    new = altered(
        old,
        UpdateColumnNullability("a", True),
        UpdateColumnNullability("r.x", True),
        UpdateColumnNullability("l.element", True),
    )
    rows = [{"a": 1, "r": {"x": 1}, "l": [1]}]
    assert evolved(old, new, rows) == rows
    assert not map_fields(new.fields, old).is_identity


def test_file_without_any_wanted_column_still_counts_rows():
    """All wanted columns are younger than the file: nothing is read but the number of rows."""
    old = table("a INT")
    new = altered(old, AddColumn("b", parse_type("ARRAY<ROW<x INT NOT NULL>>")))
    evolution = map_fields(new.fields_of(["b"]), old)
    assert evolution.file_fields == ()
    result = evolution.apply(batch_of(old, [{"a": 1}, {"a": 2}]).select([]))
    assert result.to_pylist() == [{"b": None}, {"b": None}]


def test_system_and_key_columns():
    """System columns pass as they are; key copies follow their renamed column."""
    old = table("id INT, v INT", primary=["id"])
    new = altered(old, RenameColumn("id", "key"), RenameColumn("v", "w"))
    wanted = [key_field(new.field("key")), SEQUENCE_NUMBER, VALUE_KIND, *new.fields]
    evolution = map_fields(wanted, old)
    assert [column.name for column in evolution.file_fields] == [
        "_KEY_id",
        "_SEQUENCE_NUMBER",
        "_VALUE_KIND",
        "id",
        "v",
    ]
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1], column.type) for column in to_arrow_schema(evolution.file_fields)],
        schema=to_arrow_schema(evolution.file_fields),
    )
    assert evolution.apply(batch).schema.names == ["_KEY_key", "_SEQUENCE_NUMBER", "_VALUE_KIND", "key", "w"]


def test_one_file_column_read_once_for_two_wanted_ones():
    """The same id wanted under two names is read from the file once."""
    schema = table("a INT, b INT")
    twice = [schema.field("a"), DataField(0, "again", BIGINT)]
    evolution = map_fields(twice, schema)
    assert [column.name for column in evolution.file_fields] == ["a"]
    batch = batch_of(schema, [{"a": 3, "b": 4}]).select(["a"])
    assert evolution.apply(batch).to_pylist() == [{"a": 3, "again": 3}]


@pytest.mark.parametrize(
    ("old_type", "new_type", "pushed"),
    [
        ("INT", "INT", True),
        ("INT NOT NULL", "INT", True),
        ("INT", "BIGINT", True),
        ("TINYINT", "INT", True),
        ("BIGINT", "INT", False),
        ("INT", "DOUBLE", False),
        ("FLOAT", "DOUBLE", False),
        ("INT", "STRING", False),
        ("STRING", "VARCHAR(3)", False),
        ("DECIMAL(5, 2)", "DECIMAL(7, 1)", False),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", False),
    ],
)
def test_which_filters_reach_the_file(old_type, new_type, pushed):
    """Only an unchanged type or a widened integer lets a filter speak about the file's own values."""
    old = table(f"a {old_type}")
    evolution = map_fields([DataField(0, "b", parse_type(new_type))], old)
    assert evolution.can_push("b") is pushed
    assert evolution.old_name_of("b") == "a"


def test_filters_on_columns_the_file_lacks():
    """A column younger than the file has no old name, and nothing about it can be pushed."""
    evolution = map_fields([DataField(9, "new", INT)], table("a INT"))
    assert evolution.old_name_of("new") is None
    assert evolution.old_field_of("new") is None
    assert not evolution.can_push("new")
    with pytest.raises(InvalidArgument, match="`other`"):
        evolution.can_push("other")


def test_value_that_does_not_cast_names_the_column():
    """A text that is no number shows column, old name and text."""
    old = table("a STRING")
    new = altered(old, RenameColumn("a", "b"), UpdateColumnType("b", INT))
    with pytest.raises(InvalidData, match=r"`b`.*`a`.*'x1'"):
        evolved(old, new, [{"a": "x1"}])


def test_types_without_cast_are_reported_when_planning():
    """A file whose type can not become the wanted one is refused before it is read."""
    with pytest.raises(InvalidSchema, match=r"BOOLEAN.*DATE"):
        map_fields([DataField(0, "a", parse_type("DATE"))], table("a BOOLEAN"))
    with pytest.raises(InvalidSchema, match="ARRAY"):
        map_fields([DataField(0, "a", parse_type("ARRAY<INT>"))], table("a INT"))


def test_batch_with_other_columns_is_refused():
    """A reader that hands over something else than it was asked for is told so."""
    old = table("a INT, b INT")
    new = altered(old, UpdateColumnType("a", BIGINT))
    with pytest.raises(InvalidArgument, match="file_fields"):
        map_fields(new.fields, old).apply(batch_of(old, [{"a": 1, "b": 2}]).select(["b", "a"]))


def test_multisets_evolve_their_elements():
    """A MULTISET is a map from element to count; rows inside it follow their ids too."""
    old = TableSchema.create([DataField(0, "s", parse_type("MULTISET<ROW<x INT>>"))], (), (), {}, None, 1)
    inner = old.fields[0].type.element.fields[0]
    wanted = DataField(0, "s", parse_type("MULTISET<ROW<y BIGINT>>"))
    renamed = DataField(inner.id, "y", BIGINT)
    wanted = DataField(0, "s", type(wanted.type)(type(wanted.type.element)((renamed,))))
    values = pa.array([[({"x": 1}, 2)], None], old.arrow_schema.field(0).type)
    result = map_fields([wanted], old).apply(pa.RecordBatch.from_arrays([values], schema=old.arrow_schema))
    assert result.column(0).to_pylist() == [[({"y": 1}, 2)], None]


def test_decimal_overflow_becomes_null():
    """A value that no longer fits reads NULL, as in Java."""
    old = table("a DECIMAL(6, 3)")
    new = altered(old, UpdateColumnType("a", decimal(4, 2)))
    rows = evolved(old, new, [{"a": Decimal("12.345")}, {"a": Decimal("123.456")}])
    assert [row["a"] for row in rows] == [Decimal("12.35"), None]


def test_fixture_table_reads_as_its_writer_reads_it():
    """Files of three schema versions, brought to the last one and merged, are the rows pypaimon read."""
    schemas = [TableSchema.from_json(p.read_text(), p.name) for p in sorted((EVOLVED / "schema").iterdir())]
    current = schemas[-1]
    wanted = [SEQUENCE_NUMBER, *current.fields]
    newest: dict[int, dict] = {}
    for path in (EVOLVED / "bucket-0").iterdir():
        data = pq.read_table(path)
        [schema] = [s for s in schemas if _is_written_with(data.schema, s)]
        evolution = map_fields(wanted, schema)
        columns = data.select([column.name for column in evolution.file_fields])
        columns = columns.cast(to_arrow_schema(evolution.file_fields))
        for batch in columns.to_batches():
            for row in evolution.apply(batch).to_pylist():
                if row["id"] not in newest or newest[row["id"]]["_SEQUENCE_NUMBER"] < row["_SEQUENCE_NUMBER"]:
                    newest[row["id"]] = row
    expected = json.loads(EVOLVED.with_name("schema_evolved.expected.json").read_text())["rows"]
    found = [{k: v for k, v in newest[key].items() if k != "_SEQUENCE_NUMBER"} for key in sorted(newest)]
    assert found == expected


def _is_written_with(file: pa.Schema, schema: TableSchema) -> bool:
    own = [field for field in file if not field.name.startswith("_")]
    return [(f.name, f.type) for f in own] == [(f.name, f.type) for f in schema.arrow_schema]


def test_not_null_key_columns_stay_identity():
    """A forced NOT NULL on key columns is the same on both sides and does not break the fast path."""
    schema = table("id INT, v INT", primary=["id"])
    assert schema.field("id").type == with_nullable(INT, False)
    assert map_fields(schema.fields, altered(schema, AddColumn("x", INT))).is_identity
