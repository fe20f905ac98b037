import copy
import json
import pickle
from pathlib import Path

import pytest

from lakebed.errors import CorruptFile, InvalidOption, InvalidSchema, NotFound, Unsupported
from lakebed.schema.system_columns import SEQUENCE_NUMBER, key_field
from lakebed.schema.table_schema import TableSchema
from lakebed.types.logical import BIGINT, INT, STRING, DataField, parse_type, walk_fields

FIXTURES = Path(__file__).parents[2] / "fixtures"
SCHEMA_FILES = sorted(FIXTURES.glob("*/warehouse/*.db/*/schema/schema-*"))


def columns(text: str) -> tuple[DataField, ...]:
    """Columns written as members of a ROW."""
    row = parse_type(f"ROW<{text}>")
    return row.fields


def create(text: str, *, partition=(), primary=(), options=None, comment=None) -> TableSchema:
    return TableSchema.create(columns(text), partition, primary, options or {}, comment, 1)


@pytest.mark.parametrize("path", SCHEMA_FILES, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_fixture_schema_survives_a_round_trip(path):
    """A schema file of another implementation, written again and read again, is the same schema."""
    schema = TableSchema.from_json(path.read_text(), str(path))
    assert TableSchema.from_json(schema.to_json(), "again") == schema
    assert schema.id == int(path.name.removeprefix("schema-"))
    assert max(field.id for field in walk_fields(schema.fields)) <= schema.highest_field_id
    assert len(schema.arrow_schema) == len(schema.fields)


@pytest.mark.parametrize("path", SCHEMA_FILES, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_written_json_has_the_members_of_the_fixture(path):
    """What we write differs from the fixture's JSON in nothing but redundant members and a null comment."""

    def essential(value):
        if isinstance(value, dict):
            return {k: essential(v) for k, v in value.items() if k != "nullable" and (k, v) != ("comment", None)}
        return [essential(item) for item in value] if isinstance(value, list) else value

    theirs = json.loads(path.read_text())
    assert json.loads(TableSchema.from_json(path.read_text(), str(path)).to_json()) == essential(theirs)


def test_fixtures_are_there():
    """The tables the tests above rest on exist."""
    names = {path.parts[-3] for path in SCHEMA_FILES}
    assert {"schema_evolved", "nested_types", "pk_all_types", "j_all"} <= names


def test_creation_numbers_ids_like_other_writers():
    """Creating the nested fixture's columns anew yields exactly the ids that its writer gave."""
    path = FIXTURES / "pypaimon-2.1.0/warehouse/default.db/nested_types/schema/schema-0"
    theirs = TableSchema.from_json(path.read_text(), str(path))
    ours = TableSchema.create(theirs.fields, (), (), {}, None, theirs.time_millis)
    assert (ours.fields, ours.highest_field_id) == (theirs.fields, theirs.highest_field_id)


def test_nested_members_are_numbered_before_the_member_that_holds_them():
    """A ROW's member that is a ROW itself gets its id after its own members."""
    schema = create("a INT, b INT, c INT, r ROW<x INT, y ROW<z STRING>>, s STRING")
    ids = {field.name: field.id for field in walk_fields(schema.fields)}
    assert ids == {"a": 0, "b": 1, "c": 2, "r": 3, "x": 4, "z": 5, "y": 6, "s": 7}
    assert schema.highest_field_id == 7


def test_keys_of_a_partitioned_table():
    """The trimmed key keeps the order of the primary key and drives the buckets unless an option names others."""
    schema = create("dt STRING, a INT, b INT", partition=["dt"], primary=["b", "dt", "a"], options={"bucket": "2"})
    assert schema.trimmed_primary_key == schema.bucket_keys == ("b", "a")
    named = create("dt STRING, a INT, b INT", primary=["b", "a"], options={"bucket": "2", "bucket-key": " a "})
    assert named.bucket_keys == ("a",)


def test_primary_key_columns_become_not_null():
    """Key columns are NOT NULL unless an option allows nulls in them."""
    assert not create("a INT, b INT", primary=["a"]).field("a").type.nullable
    nullable = create("a INT, b INT", primary=["a"], options={"primary-key.nullable": "true"})
    assert nullable.field("a").type.nullable


def test_keys_given_as_options_move_into_the_schema():
    """The key options end up as keys and not as options."""
    schema = create("dt STRING, a INT", options={"primary-key": "dt, a", "partition": "dt", "bucket": "1"})
    assert (schema.primary_keys, schema.partition_keys) == (("dt", "a"), ("dt",))
    assert schema.options == {"bucket": "1"}
    assert create("a INT", primary=["a"], options={"primary-key": "a"}).primary_keys == ("a",)
    with pytest.raises(InvalidSchema, match="primary-key"):
        create("a INT, b INT", primary=["a"], options={"primary-key": "b"})


@pytest.mark.parametrize(
    ("text", "keywords", "named"),
    [
        ("a INT, a INT", {}, "`a`"),
        ("`` INT", {}, "no name"),
        ("`_KEY_a` INT", {}, "_KEY_a"),
        ("_SEQUENCE_NUMBER BIGINT", {}, "_SEQUENCE_NUMBER"),
        ("rowkind STRING", {}, "rowkind"),
        ("_ROW_ID BIGINT", {}, "_ROW_ID"),
        ("r ROW<x INT, x INT>", {}, "`x`"),
        ("r ARRAY<ROW<x INT, x INT>>", {}, "`x`"),
        ("a INT", {"primary": ["b"]}, "`b`"),
        ("a INT", {"partition": ["b"]}, "`b`"),
        ("a INT, b INT", {"primary": ["a", "a"]}, "2 times"),
        ("a ARRAY<INT>, b INT", {"primary": ["a"]}, "ARRAY"),
        ("a VARIANT, b INT", {"partition": ["a"]}, "VARIANT"),
        ("a INT, b INT", {"primary": ["a"], "partition": ["a"]}, "partition columns only"),
    ],
)
def test_columns_and_keys_that_are_not_allowed(text, keywords, named):
    """Each structural mistake is refused with an error that names the culprit."""
    with pytest.raises(InvalidSchema, match=named):
        create(text, **keywords)


@pytest.mark.parametrize(
    ("keywords", "options", "named"),
    [
        ({}, {"bucket": "0"}, "bucket"),
        ({}, {"bucket": "-3"}, "bucket"),
        ({}, {"bucket": "many"}, "many"),
        ({}, {"bucket": "-2"}, "primary key"),
        ({}, {"bucket": "4"}, "bucket-key"),
        ({}, {"bucket-key": "a"}, "bucket-key"),
        ({}, {"bucket": "4", "bucket-key": "z"}, "`z`"),
        ({"partition": ["a"]}, {"bucket": "4", "bucket-key": "a"}, "partition"),
        ({"primary": ["a"]}, {"bucket": "4", "bucket-key": "b"}, "not part of the primary key"),
        ({}, {"sequence.field": "z"}, "sequence.field"),
        ({}, {"fields.z.aggregate-function": "sum"}, "`z`"),
        ({}, {"primary-key.nullable": "true"}, "primary-key.nullable"),
        ({}, {"bucket": 4}, "as text"),
    ],
)
def test_options_that_do_not_fit_the_columns(keywords, options, named):
    """Bucket settings and options that name columns have to agree with the columns."""
    with pytest.raises(InvalidOption, match=named):
        create("a INT, b INT, c ARRAY<INT>", options=options, **keywords)


def test_nested_bucket_key_is_refused():
    """A nested column has no hash to choose a bucket by."""
    with pytest.raises(InvalidSchema, match="bucket key column `c`"):
        create("a INT, c ARRAY<INT>", options={"bucket": "4", "bucket-key": "c"})


def test_default_has_to_spell_a_value():
    """A DEFAULT that is no value of the column's type is refused at creation."""
    with pytest.raises(InvalidSchema, match="abc"):
        TableSchema.create([DataField(0, "a", INT, default_value="abc")], (), (), {}, None, 1)


def test_unknown_column_suggests_a_near_one():
    """Asking for a misspelt column names the nearest one."""
    schema = create("amount INT, name STRING")
    assert schema.fields_of(["name", "amount"]) == (schema.fields[1], schema.fields[0])
    with pytest.raises(NotFound, match="did you mean `amount`"):
        schema.field("amuont")


def test_schema_is_immutable_comparable_and_travels():
    """Options can not be changed in place, equal schemas are equal, and a schema survives pickling and copying."""
    given = {"bucket": "1"}
    schema = create("a INT", primary=["a"], options=given)
    given["bucket"] = "2"
    assert schema.options["bucket"] == "1"
    with pytest.raises(TypeError):
        schema.options["bucket"] = "3"
    assert schema.arrow_schema is schema.arrow_schema
    assert pickle.loads(pickle.dumps(schema)) == schema == copy.deepcopy(schema)
    assert hash(schema) == hash(create("a INT", primary=["a"], options={"bucket": "1"}))
    assert schema != create("a INT", primary=["a"], options={"bucket": "2"})


def test_old_versions_read_with_the_defaults_of_their_time():
    """Missing options of old schema versions mean what they meant then."""
    body = {"id": 0, "fields": [], "highestFieldId": -1, "partitionKeys": [], "primaryKeys": [], "options": {}}
    assert TableSchema.from_json(json.dumps(body), "p").options == {"bucket": "1", "file.format": "orc"}
    assert TableSchema.from_json(json.dumps({**body, "version": 2}), "p").options == {"file.format": "orc"}
    assert TableSchema.from_json(json.dumps({**body, "version": 3}), "p").options == {}
    kept = {**body, "version": 1, "options": {"bucket": "3", "file.format": "avro"}}
    assert TableSchema.from_json(json.dumps(kept), "p").options == {"bucket": "3", "file.format": "avro"}


def test_tolerated_forms_of_other_writers():
    """Null comments, numbers as option values and unknown members do not keep a table from being opened."""
    body = json.loads(create("a INT", comment="text").to_json())
    body |= {"comment": None, "options": {"bucket": 4, "write-only": True}, "future": 1}
    schema = TableSchema.from_json(json.dumps(body), "p")
    assert schema.comment is None
    assert schema.options == {"bucket": "4", "write-only": "true"}
    assert "comment" not in json.loads(schema.to_json())


@pytest.mark.parametrize("missing", ["id", "fields", "highestFieldId", "partitionKeys", "primaryKeys", "options"])
def test_missing_member_is_named_with_its_file(missing):
    """A schema file without a required member is corrupt, and the error names member and file."""
    body = json.loads(create("a INT").to_json())
    del body[missing]
    with pytest.raises(CorruptFile, match=missing) as caught:
        TableSchema.from_json(json.dumps(body), "t/schema/schema-0")
    assert "t/schema/schema-0" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", "7", '{"options": null}', '{"options": {}, "fields": [1]}'),
        '{"options": {}, "id": 0, "fields": [{"id": 0, "name": "a", "type": "INTT"}]}',
    ],
)
def test_garbage_is_a_corrupt_file(text):
    """Whatever a schema file holds, only `CorruptFile` comes out, naming the file."""
    with pytest.raises(CorruptFile, match="some/path"):
        TableSchema.from_json(text, "some/path")


def test_types_that_are_not_honoured_are_not_called_corrupt():
    """A valid Paimon type that lakebed lacks is reported as such."""
    body = json.loads(create("a INT").to_json())
    body["fields"][0]["type"] = {"type": "VECTOR", "element": "FLOAT", "length": 3}
    with pytest.raises(Unsupported, match="VECTOR"):
        TableSchema.from_json(json.dumps(body), "p")


def test_system_columns_have_the_ids_of_the_format():
    """Key copies and the sequence number carry the ids that other engines write."""
    assert SEQUENCE_NUMBER.id == 2147483646
    copied = key_field(DataField(3, "id", BIGINT))
    assert (copied.id, copied.name, copied.type) == (1073741826, "_KEY_id", BIGINT)
    assert key_field(DataField(0, "s", STRING)).id == 1073741823
