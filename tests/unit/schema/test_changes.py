from dataclasses import replace

import pytest

from lakebed.errors import AlreadyExists, InvalidOption, InvalidSchema, LakebedError, NotFound
from lakebed.schema.changes import (
    AddColumn,
    After,
    Before,
    DropColumn,
    First,
    Last,
    RemoveOption,
    RenameColumn,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
    apply_changes,
)
from lakebed.schema.table_schema import TableSchema
from lakebed.types.logical import BIGINT, DOUBLE, INT, STRING, parse_type, walk_fields, with_nullable

NESTED = (
    "id INT, r ROW<x INT, y ROW<z STRING>>, items ARRAY<ROW<sku STRING, n INT>>, "
    "m MAP<STRING, ROW<v INT>>, tags ARRAY<INT>, plain INT"
)


def table(text="k INT, dt STRING, a INT, b STRING", *, partition=("dt",), primary=("k", "dt"), options=None):
    return TableSchema.create(parse_type(f"ROW<{text}>").fields, partition, primary, options or {}, None, 1)


def nested() -> TableSchema:
    return table(NESTED, partition=(), primary=())


def altered(schema, *changes, has_snapshots=True):
    return apply_changes(schema, changes, has_snapshots=has_snapshots, time_millis=99)


def type_at(schema, name):
    return str(schema.field(name).type)


def test_next_version_has_the_next_id_and_leaves_the_old_one_alone():
    """A change makes a new schema with the next id and the given time; the old object is as before."""
    old = table()
    text = old.to_json()
    new = altered(old, AddColumn("c", INT, "note"))
    assert (new.id, new.time_millis, new.version) == (1, 99, 3)
    assert old.to_json() == text
    added = new.field("c")
    assert (added.id, added.description, new.highest_field_id) == (4, "note", 4)


def test_added_nested_column_takes_the_next_ids():
    """The column takes the next id, its members those after it."""
    new = altered(table(), AddColumn("r", parse_type("ROW<x INT, y ROW<z INT>>")))
    ids = {field.name: field.id for field in walk_fields((new.field("r"),))}
    assert ids == {"r": 4, "x": 5, "z": 6, "y": 7}
    assert new.highest_field_id == 7


def test_dropped_id_is_not_used_again():
    """A column dropped and added again under its name is another column."""
    old = table()
    new = altered(altered(old, DropColumn("b")), AddColumn("b", STRING))
    assert old.field("b").id == 3
    assert new.field("b").id == 4


@pytest.mark.parametrize(
    ("position", "order"),
    [
        (None, "k dt a b c"),
        (First(), "c k dt a b"),
        (After("k"), "k c dt a b"),
        (Before("b"), "k dt a c b"),
        (Last(), "k dt a b c"),
    ],
)
def test_added_column_takes_its_place(position, order):
    """Every way to place a new column puts it where it says."""
    new = altered(table(), AddColumn("c", INT, position=position))
    assert " ".join(new.field_names) == order


def test_option_puts_new_columns_before_the_partition_columns():
    """With the option, a column without position goes in front of the first partition column; a position still wins."""
    old = table(options={"add-column-before-partition": "true"})
    assert altered(old, AddColumn("c", INT)).field_names == ("k", "c", "dt", "a", "b")
    assert altered(old, AddColumn("c", INT, position=Last())).field_names[-1] == "c"


@pytest.mark.parametrize(
    ("move", "order"),
    [
        (UpdateColumnPosition("b", First()), "b k dt a"),
        (UpdateColumnPosition("k", Last()), "dt a b k"),
        (UpdateColumnPosition("k", After("a")), "dt a k b"),
        (UpdateColumnPosition("b", After("k")), "k b dt a"),
        (UpdateColumnPosition("b", Before("dt")), "k b dt a"),
    ],
)
def test_columns_move(move, order):
    """Moves forwards and backwards end at the named place."""
    assert " ".join(altered(table(), move).field_names) == order


def test_rename_follows_into_keys_and_options():
    """A renamed column is renamed in the primary key and in every option that names it, in keys and in values."""
    old = table(
        "k INT, dt STRING, a INT, b STRING, t MAP<STRING, STRING>",
        options={
            "bucket": "2",
            "bucket-key": "k",
            "sequence.field": "b, a",
            "rowkind.field": "b",
            "fields.a.aggregate-function": "sum",
            "fields.a.default-value": "a",
            "fields.a,k.sequence-group": "b,a",
            "fields.default-aggregate-function": "last_value",
            "file-index.bloom-filter.columns": "a,t[a]",
            "file-index.bloom-filter.a.fpp": "0.1",
            "record-level.time-field": "a",
            "write-only": "true",
        },
    )
    new = altered(old, RenameColumn("a", "a2"), RenameColumn("k", "key"), RenameColumn("t", "t2"))
    assert new.primary_keys == ("key", "dt")
    assert new.bucket_keys == ("key",)
    assert new.field("a2").id == old.field("a").id
    assert new.options == {
        "bucket": "2",
        "bucket-key": "key",
        "sequence.field": "b,a2",
        "rowkind.field": "b",
        "fields.a2.aggregate-function": "sum",
        "fields.a2.default-value": "a",
        "fields.a2,key.sequence-group": "b,a2",
        "fields.default-aggregate-function": "last_value",
        "file-index.bloom-filter.columns": "a2,t2[a]",
        "file-index.bloom-filter.a2.fpp": "0.1",
        "record-level.time-field": "a2",
        "write-only": "true",
    }


def test_renames_in_one_list_see_each_other():
    """Two names can be swapped by way of a third within one list of changes."""
    new = altered(table(), RenameColumn("a", "tmp"), RenameColumn("b", "a"), RenameColumn("tmp", "b"))
    assert (new.field("a").id, new.field("b").id) == (3, 2)


def test_type_changes_that_have_a_cast():
    """Widening and lossy casts are both allowed by default; nullability is as given or kept."""
    new = altered(table("a INT, s STRING NOT NULL", partition=(), primary=()), UpdateColumnType("a", BIGINT))
    assert type_at(new, "a") == "BIGINT"
    assert type_at(altered(new, UpdateColumnType("a", INT)), "a") == "INT"
    assert type_at(altered(new, UpdateColumnType("s", INT, keep_nullability=True)), "s") == "INT NOT NULL"
    assert type_at(altered(new, UpdateColumnType("s", INT)), "s") == "INT"


def test_explicit_casts_can_be_switched_off():
    """With the option only implicit casts are allowed."""
    strict = table(options={"disable-explicit-type-casting": "true"})
    assert type_at(altered(strict, UpdateColumnType("a", BIGINT)), "a") == "BIGINT"
    with pytest.raises(InvalidSchema, match="disable-explicit-type-casting"):
        altered(strict, UpdateColumnType("b", INT))


def test_nullability():
    """NOT NULL can be taken back freely and required only when an option allows it."""
    schema = table("a INT, s STRING NOT NULL", partition=(), primary=())
    assert type_at(altered(schema, UpdateColumnNullability("s", True)), "s") == "STRING"
    with pytest.raises(InvalidSchema, match=r"alter-column-null-to-not-null\.disabled"):
        altered(schema, UpdateColumnNullability("a", False))
    with pytest.raises(InvalidSchema, match="NOT NULL"):
        altered(schema, UpdateColumnType("a", with_nullable(BIGINT, False)))
    allowed = altered(
        schema, SetOption("alter-column-null-to-not-null.disabled", "false"), UpdateColumnNullability("a", False)
    )
    assert type_at(allowed, "a") == "INT NOT NULL"


def test_comments_and_defaults():
    """Column comment, table comment and default change on their own and can be taken away."""
    new = altered(table(), UpdateColumnComment("a", "x"), UpdateComment("t"), UpdateColumnDefault("a", "'7'"))
    assert (new.field("a").description, new.comment, new.field("a").default_value) == ("x", "t", "'7'")
    gone = altered(new, UpdateColumnComment("a", None), UpdateComment(None), UpdateColumnDefault("a", None))
    assert (gone.field("a").description, gone.comment, gone.field("a").default_value) == (None, None, None)
    assert altered(table(), AddColumn("c", INT, default="3")).field("c").default_value == "3"


def test_default_has_to_survive_a_type_change():
    """A column's new type has to hold its default; otherwise the default goes first."""
    schema = altered(table(), UpdateColumnDefault("b", "abc"))
    with pytest.raises(InvalidSchema, match="'abc'"):
        altered(schema, UpdateColumnType("b", INT))
    assert type_at(altered(schema, UpdateColumnDefault("b", None), UpdateColumnType("b", INT)), "b") == "INT"


def test_highest_id_of_a_careless_writer_is_not_trusted():
    """A new column never takes an id in use, even if the file's highest id is too low."""
    careless = replace(table(), highest_field_id=0)
    assert altered(careless, AddColumn("c", INT)).field("c").id == 4


def test_nested_columns_are_reached_by_path():
    """Members are added, dropped, renamed and retyped inside ROW, ARRAY and MAP, by tuple and by dotted text."""
    new = altered(
        nested(),
        AddColumn("r.w", DOUBLE, position=First()),
        AddColumn(("items", "element", "price"), DOUBLE),
        RenameColumn("r.y.z", "zz"),
        DropColumn(("items", "element", "n")),
        UpdateColumnType(("m", "value", "v"), BIGINT),
        UpdateColumnType("tags.element", BIGINT),
        UpdateColumnComment("r.x", "deep"),
        UpdateColumnPosition("r.x", Last()),
    )
    assert type_at(new, "r") == "ROW<`w` DOUBLE, `y` ROW<`zz` STRING>, `x` INT>"
    assert type_at(new, "items") == "ARRAY<ROW<`sku` STRING, `price` DOUBLE>>"
    assert type_at(new, "m") == "MAP<STRING, ROW<`v` BIGINT>>"
    assert type_at(new, "tags") == "ARRAY<BIGINT>"
    ids = [field.id for field in walk_fields(new.fields)]
    assert len(ids) == len(set(ids))
    assert {nested().highest_field_id + 1, nested().highest_field_id + 2} <= set(ids)


def test_column_whose_name_has_a_dot():
    """A column that bears a dotted name is found by it, and a dotted name with no such parent is a plain name."""
    schema = table("`a.b` INT, c INT", partition=(), primary=())
    assert altered(schema, RenameColumn("a.b", "d")).field_names == ("d", "c")
    assert altered(schema, AddColumn("x.y", INT)).field_names[-1] == "x.y"
    assert altered(schema, AddColumn(("c.d",), INT)).field_names[-1] == "c.d"


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        (AddColumn("a", INT), AlreadyExists, "`a`"),
        (AddColumn("c", with_nullable(INT, False)), InvalidSchema, "`c`"),
        (AddColumn("_KEY_a", INT), InvalidSchema, "_KEY_a"),
        (AddColumn("", INT), InvalidSchema, "no name"),
        (AddColumn("c", INT, position=After("zz")), NotFound, "`zz`"),
        (AddColumn("c", INT, position=After("c")), InvalidSchema, "itself"),
        (AddColumn("c", INT, default="x"), InvalidSchema, "'x'"),
        (AddColumn("a.x", INT), InvalidSchema, "no member `x`"),
        (AddColumn("r", parse_type("ROW<x INT, x INT>")), InvalidSchema, "`x`"),
        (AddColumn((), INT), LakebedError, "no column"),
        (DropColumn("k"), InvalidSchema, "primary key column `k`"),
        (DropColumn("dt"), InvalidSchema, "partition column `dt`"),
        (DropColumn("zz"), NotFound, "`zz`"),
        (RenameColumn("dt", "x"), InvalidSchema, "partition column `dt`"),
        (RenameColumn("a", "b"), AlreadyExists, "`b`"),
        (RenameColumn("a", "_ROW_ID"), InvalidSchema, "_ROW_ID"),
        (RenameColumn("aa", "x"), NotFound, "`aa`"),
        (UpdateColumnType("k", BIGINT), InvalidSchema, "primary key column `k`"),
        (UpdateColumnType("dt", INT), InvalidSchema, "partition column `dt`"),
        (UpdateColumnType("a", parse_type("DATE")), InvalidSchema, "INT to DATE"),
        (UpdateColumnType("a", parse_type("ARRAY<INT>")), InvalidSchema, "ARRAY"),
        (UpdateColumnNullability("k", True), InvalidSchema, "`k`"),
        (UpdateColumnPosition("a", After("a")), InvalidSchema, "itself"),
        (UpdateColumnPosition("zz", First()), NotFound, "`zz`"),
        (UpdateColumnDefault("a", "x"), InvalidSchema, "'x'"),
        (UpdateColumnComment("zz", "c"), NotFound, "`zz`"),
        (SetOption("sequence.field", "zz"), InvalidOption, "`zz`"),
        (SetOption("bucket", "0"), InvalidOption, "bucket"),
        (SetOption("path", "/x"), InvalidOption, "path"),
        (SetOption("write-only", True), InvalidOption, "write-only"),
    ],
)
@pytest.mark.parametrize("has_snapshots", [False, True])
def test_changes_that_are_not_allowed(change, error, named, has_snapshots):
    """A change that breaks a rule raises an error that names the column or option, whether there is data or not."""
    with pytest.raises(error, match=named):
        altered(table(), change, has_snapshots=has_snapshots)


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        (AddColumn("r.x", INT), AlreadyExists, "`r.x`"),
        (AddColumn("items.x", INT), InvalidSchema, "no member `x`"),
        (AddColumn("items.x.y", INT), NotFound, "no part `x`"),
        (AddColumn("r.q.z", INT), NotFound, "no column `r.q`"),
        (DropColumn("r.y.z"), InvalidSchema, "`r.y.z` is the only one left"),
        (DropColumn("r.q"), NotFound, "`r.q`"),
        (RenameColumn("r.x", "y"), AlreadyExists, "`r.y`"),
        (UpdateColumnType("r", parse_type("ROW<x BIGINT>")), InvalidSchema, "by their path"),
        (UpdateColumnType("m.key", INT), NotFound, "no part `key`"),
        (UpdateColumnDefault("r.x", "1"), InvalidSchema, "`r.x`"),
        (UpdateColumnDefault("r", "1"), LakebedError, "`r`"),
    ],
)
def test_nested_changes_that_are_not_allowed(change, error, named):
    """Errors about parts of nested columns show the whole path."""
    with pytest.raises(error, match=named):
        altered(nested(), change)


def test_last_column_stays():
    """A table does not lose its only column."""
    with pytest.raises(InvalidSchema, match="only one left"):
        altered(table("a INT", partition=(), primary=()), DropColumn("a"))


def test_column_named_by_an_option_stays_until_the_option_goes():
    """Dropping a column that an option names is refused, unless the option goes first in the same list."""
    schema = table(options={"sequence.field": "a"})
    with pytest.raises(InvalidSchema, match=r"sequence\.field"):
        altered(schema, DropColumn("a"))
    assert altered(schema, RemoveOption("sequence.field"), DropColumn("a")).field_names == ("k", "dt", "b")


def test_all_or_nothing():
    """One refused change refuses the list, and names the change that failed."""
    with pytest.raises(NotFound, match="`zz`"):
        altered(table(), AddColumn("c", INT), DropColumn("zz"))


@pytest.mark.parametrize(
    "key",
    [
        "type", "bucket-key", "bucket-function.type", "merge-engine", "data-file.path-directory", "rowkind.field",
        "row-tracking.enabled", "data-evolution.enabled", "index-file-in-data-file-dir", "primary-key.nullable",
        "force-lookup", "sequence.snapshot-ordering", "aggregation.remove-record-on-delete",
        "partial-update.remove-record-on-delete", "partial-update.remove-record-on-sequence-group",
        "dynamic-bucket.initial-buckets", "blob-field", "blob-descriptor-field", "pk-clustering-override",
    ],
)  # fmt: skip
def test_options_fixed_by_the_first_snapshot(key):
    """Options that decide the layout of files can not change once there are snapshots, and the error names them."""
    fixed = table("k INT, dt STRING, a STRING", primary=("k", "dt"), options={"bucket": "2"})
    value = "k" if key == "bucket-key" else "a" if "field" in key or "group" in key else "true"
    with pytest.raises(InvalidOption, match=key.replace(".", r"\.")):
        altered(fixed, SetOption(key, value))
    written = altered(fixed, SetOption(key, value), has_snapshots=False)
    assert written.options[key] == value
    assert altered(written, SetOption(key, value)).options[key] == value
    with pytest.raises(InvalidOption, match=key.replace(".", r"\.")):
        altered(written, RemoveOption(key))


def test_keys_can_be_set_as_options_before_the_first_snapshot():
    """An empty table without key can get one through the option; a table with key or data can not."""
    plain = table("a INT, b INT", partition=(), primary=())
    keyed = altered(plain, SetOption("primary-key", "a"), has_snapshots=False)
    assert keyed.primary_keys == ("a",)
    assert type_at(keyed, "a") == "INT NOT NULL"
    assert "primary-key" not in keyed.options
    assert altered(keyed, SetOption("primary-key", " a")).primary_keys == ("a",)
    with pytest.raises(InvalidOption, match="primary-key"):
        altered(plain, SetOption("primary-key", "a"))
    with pytest.raises(InvalidOption, match="primary-key"):
        altered(keyed, SetOption("primary-key", "b"), has_snapshots=False)
    with pytest.raises(InvalidOption, match="primary-key"):
        altered(keyed, RemoveOption("primary-key"), has_snapshots=False)


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [("2", "4", True), ("2", "2", True), ("2", "-1", False), (None, "4", False), (None, "-1", True), ("-2", "4", True)],
)
def test_bucket_changes(old, new, allowed):
    """The number of buckets may change; between fixed and no fixed buckets nothing leads once there are snapshots."""
    schema = table(options={} if old is None else {"bucket": old})
    if allowed:
        assert altered(schema, SetOption("bucket", new)).options["bucket"] == new
    else:
        with pytest.raises(InvalidOption, match="bucket"):
            altered(schema, SetOption("bucket", new))
    assert altered(schema, SetOption("bucket", new), has_snapshots=False).options["bucket"] == new


def test_bucket_option_is_not_removed_under_data():
    """Removing the bucket option would change the mode, so only an empty table may."""
    schema = table(options={"bucket": "2"})
    with pytest.raises(InvalidOption, match="bucket"):
        altered(schema, RemoveOption("bucket"))
    assert "bucket" not in altered(schema, RemoveOption("bucket"), has_snapshots=False).options


def test_switches_with_one_direction():
    """Deletion vectors change only when declared modifiable; ignore-delete only goes on."""
    off = table(options={"bucket": "2"})
    with pytest.raises(InvalidOption, match=r"deletion-vectors\.enabled"):
        altered(off, SetOption("deletion-vectors.enabled", "true"))
    assert altered(off, SetOption("deletion-vectors.enabled", "false"))
    free = altered(off, SetOption("deletion-vectors.modifiable", "true"), SetOption("deletion-vectors.enabled", "true"))
    assert free.options["deletion-vectors.enabled"] == "true"
    ignoring = altered(off, SetOption("ignore-delete", "true"))
    for change in (SetOption("ignore-delete", "false"), RemoveOption("ignore-delete")):
        with pytest.raises(InvalidOption, match="ignore-delete"):
            altered(ignoring, change)


def test_other_options_change_freely():
    """Options without rule are set and removed, and removing one that is not set does nothing."""
    new = altered(table(), SetOption("snapshot.num-retained.min", "3"), RemoveOption("not.there"))
    assert new.options == {"snapshot.num-retained.min": "3"}
    assert altered(new, RemoveOption("snapshot.num-retained.min")).options == {}


def test_bucket_key_keeps_its_type_under_data():
    """The hash of a bucket key depends on its type, so the type stays once there are rows."""
    schema = table("a INT, b INT", partition=(), primary=(), options={"bucket": "2", "bucket-key": "a"})
    with pytest.raises(InvalidSchema, match=r"column `a` .* bucket key"):
        altered(schema, UpdateColumnType("a", BIGINT))
    assert type_at(altered(schema, UpdateColumnType("a", BIGINT), has_snapshots=False), "a") == "BIGINT"
