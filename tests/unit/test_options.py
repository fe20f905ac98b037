"""The option table: every entry is sound, values are typed, and nothing is accepted that is not honoured."""

import pickle
import re
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakebed.options as option_names
from lakebed.errors import InvalidOption
from lakebed.options import (
    BUCKET,
    BUCKET_KEY,
    COMMIT_TIMEOUT,
    COMPACTION_SMALL_FILE_RATIO,
    DELETION_VECTORS_ENABLED,
    FIELD_AGGREGATE_FUNCTION,
    FIELD_SEQUENCE_GROUP,
    FIELD_STATS_MODE,
    FILE_FORMAT,
    FILE_INDEX_COLUMN_SETTING,
    FILE_INDEX_COLUMNS,
    GROUPS,
    IGNORE_DELETE,
    MERGE_ENGINE,
    METADATA_STATS_MODE,
    OPTIONS,
    SCAN_SNAPSHOT_ID,
    SNAPSHOT_TIME_RETAINED,
    SPILL_COMPRESSION,
    TARGET_FILE_ROW_NUM,
    TARGET_FILE_SIZE,
    WRITE_BUFFER_SIZE,
    WRITE_ONLY,
    FieldOption,
    Kind,
    Option,
    Options,
    check_options,
    check_unchanged,
    find_option,
    options_page,
    unhonoured_for_read,
    unhonoured_for_write,
)
from lakebed.units import HOUR_MS, LONG_MAX, MIB

PLAIN = [option for option in OPTIONS if not isinstance(option, FieldOption)]

VALUE_TYPES = {
    Kind.BOOLEAN: bool,
    Kind.INTEGER: int,
    Kind.DECIMAL: float,
    Kind.SIZE: int,
    Kind.DURATION: int,
    Kind.TEXT: str,
    Kind.LIST: tuple,
    Kind.CHOICE: str,
}


def keys(options: list[Option[object]]) -> list[str]:
    return [option.key for option in options]


# The table


def test_keys_and_older_names_are_unique() -> None:
    """No key or older name belongs to two options."""
    names = Counter(name for option in OPTIONS for name in (option.key, *option.aliases))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("option", OPTIONS, ids=keys(list(OPTIONS)))
def test_entry_is_sound(option: Option[object]) -> None:
    """Each entry parses its own default, has a sentence of help, and says what to do where it is not honoured."""
    if option.default is not None:
        assert type(option.default) is VALUE_TYPES[option.kind]
        assert option.parse(option.text(option.default)) == option.default
    assert re.fullmatch(r"[A-Z].*\.", option.help)
    assert bool(option.choices) == (option.kind is Kind.CHOICE)
    assert set(option.honoured_choices) <= set(option.choices)
    assert option.honoured or option.instead
    assert not option.honoured or option.honours(option.default)
    assert option.paimon in ("same", "ours") or option.paimon.startswith("differs: ")
    assert option.scope <= {"create", "table", "read", "write"}
    assert option.affects <= {"read", "write"}


@pytest.mark.parametrize("option", PLAIN, ids=keys(PLAIN))
def test_keys_find_their_option(option: Option[object]) -> None:
    """The key and every older name lead to the option itself, and an older name can be read by the view."""
    for name in (option.key, *option.aliases):
        assert find_option(name) is option
        if option.default is not None:
            assert Options({name: option.text(option.default)}).get(option) == option.default


def test_constants_are_named_after_their_keys() -> None:
    """A constant is its key in capitals, so that nobody has to look it up."""
    for name, value in vars(option_names).items():
        if isinstance(value, FieldOption):
            assert name.startswith(("FIELD_", "FILE_INDEX_"))
        elif isinstance(value, Option):
            assert name == re.sub(r"[.-]", "_", value.key).upper()


@pytest.mark.parametrize(
    ("older", "key"),
    [
        ("first-row.ignore-delete", "ignore-delete"),
        ("deduplicate.ignore-delete", "ignore-delete"),
        ("partial-update.ignore-delete", "ignore-delete"),
        ("changelog-producer.lookup-wait", "lookup-wait"),
        ("write.compaction-skip", "write-only"),
        ("log.scan", "scan.mode"),
        ("log.scan.timestamp-millis", "scan.timestamp-millis"),
        ("snapshot.expire.clean-empty-directories", "snapshot.clean-empty-directories"),
        ("sink.clustering.by-columns", "clustering.columns"),
        ("sink.clustering.strategy", "clustering.strategy"),
        ("delete-file.thread-num", "file-operation.thread-num"),
        ("orc.write.batch-size", "write.batch-size"),
        ("changelog.precommit-compact", "precommit-compact"),
        ("cdc.retry-sleep-time", "cdc.schema-change-retry-interval"),
    ],
)
def test_older_names(older: str, key: str) -> None:
    """The names that options had in earlier versions still work."""
    option = find_option(older)
    assert option is not None
    assert option.key == key


def test_options_that_can_not_change() -> None:
    """The options that are fixed once a table has data are exactly these."""
    assert {option.key for option in OPTIONS if option.immutable} == {
        "aggregation.remove-record-on-delete",
        "blob-descriptor-field",
        "blob-field",
        "blob-view-field",
        "bucket-function.type",
        "bucket-key",
        "csv.escape-character",
        "csv.field-delimiter",
        "csv.include-header",
        "csv.line-delimiter",
        "csv.null-literal",
        "csv.quote-character",
        "data-evolution.enabled",
        "data-file.path-directory",
        "dynamic-bucket.initial-buckets",
        "force-lookup",
        "index-file-in-data-file-dir",
        "json.line-delimiter",
        "merge-engine",
        "partial-update.remove-record-on-delete",
        "partial-update.remove-record-on-sequence-group",
        "partition",
        "pk-clustering-override",
        "primary-key",
        "primary-key.nullable",
        "row-tracking.enabled",
        "rowkind.field",
        "sequence.snapshot-ordering",
        "text.line-delimiter",
        "type",
    }


# The typed view


def test_defaults_when_nothing_is_set() -> None:
    """Without a value the default counts, and `get` and `has` tell that nothing was set."""
    options = Options({})
    assert options[BUCKET] == -1
    assert options[TARGET_FILE_SIZE] is None
    assert options[BUCKET_KEY] == ()
    assert options[WRITE_BUFFER_SIZE] == 256 * MIB
    assert options[TARGET_FILE_ROW_NUM] == LONG_MAX
    assert options.get(BUCKET) is None
    assert not options.has(BUCKET)


def test_values_are_typed() -> None:
    """Each kind of option gives a value of its own type."""
    options = Options(
        {
            "bucket": "4",
            "bucket-key": "a, b,c",
            "write-only": "TRUE",
            "target-file-size": "64 mb",
            "commit.timeout": "1 h",
            "compaction.small-file-ratio": "0.5",
            "file.format": "ORC",
            "metadata.stats-mode": "truncate(8)",
        }
    )
    assert options[BUCKET] == 4
    assert options[BUCKET_KEY] == ("a", "b", "c")
    assert options[WRITE_ONLY] is True
    assert options[TARGET_FILE_SIZE] == 64 * MIB
    assert options[COMMIT_TIMEOUT] == HOUR_MS
    assert options[COMPACTION_SMALL_FILE_RATIO] == 0.5
    assert options[FILE_FORMAT] == "orc"
    assert options[METADATA_STATS_MODE] == "truncate(8)"
    assert options.has(BUCKET)


def test_proper_name_wins_over_an_older_one() -> None:
    """If a stored table has both names, the proper one counts."""
    assert Options({"write.compaction-skip": "false", "write-only": "true"})[WRITE_ONLY] is True


def test_overrides_replace_values_under_any_name() -> None:
    """An override under the proper name replaces a stored value under an older one, and the other way round."""
    assert (
        Options({"first-row.ignore-delete": "true"}).with_overrides({"ignore-delete": "false"})[IGNORE_DELETE] is False
    )
    assert (
        Options({"ignore-delete": "false"}).with_overrides({"first-row.ignore-delete": "true"})[IGNORE_DELETE] is True
    )
    assert Options({"bucket": "4", "owner": "ann"}).with_overrides({"bucket": "8"}).raw == {
        "bucket": "8",
        "owner": "ann",
    }


def test_later_changes_of_the_mapping_are_not_seen() -> None:
    """A view does not follow the mapping it was made from, and can be pickled."""
    raw = {"bucket": "4"}
    options = Options(raw)
    raw["bucket"] = "8"
    assert options[BUCKET] == 4
    assert pickle.loads(pickle.dumps(options)) == options


def test_strange_stored_options_do_no_harm_until_asked_for() -> None:
    """A table of another engine with a value nobody understands can be opened; only the use of the value fails."""
    options = Options({"bucket": "many", "x.y": "z"})
    assert options[FILE_FORMAT] == "parquet"
    with pytest.raises(InvalidOption, match=r"`bucket` can not be `many`"):
        options[BUCKET]


def test_options_of_columns() -> None:
    """Options with a column in their key are found by column, groups by each of their columns."""
    options = Options(
        {
            "fields.price.aggregate-function": "sum",
            "fields.a.b.aggregate-function": "max",
            "fields.default-aggregate-function": "last_value",
            "fields.g_1, g_2.sequence-group": "x,y",
            "fields.id.stats-mode": "none",
        }
    )
    assert options.field(FIELD_AGGREGATE_FUNCTION, "price") == "sum"
    assert options.field(FIELD_AGGREGATE_FUNCTION, "id") is None
    assert options.fields_with(FIELD_AGGREGATE_FUNCTION) == {("price",): "sum", ("a.b",): "max"}
    assert options.fields_with(FIELD_SEQUENCE_GROUP) == {("g_1", "g_2"): ("x", "y")}
    assert options.field(FIELD_SEQUENCE_GROUP, "g_2") == ("x", "y")
    assert options.field(FIELD_STATS_MODE, "id") == "none"


def test_keys_with_several_names_in_them() -> None:
    """An index type and its columns are told apart from a setting of one column's index."""
    assert FILE_INDEX_COLUMNS.names_in("file-index.bloom-filter.columns") == ("bloom-filter",)
    assert FILE_INDEX_COLUMN_SETTING.names_in("file-index.bloom-filter.id.fpp") == ("bloom-filter", "id", "fpp")
    assert FILE_INDEX_COLUMNS.names_in("file-index.read.enabled") is None
    assert FILE_INDEX_COLUMN_SETTING.key_for("bloom-filter", "id", "fpp") == "file-index.bloom-filter.id.fpp"
    assert FIELD_SEQUENCE_GROUP.key_for("a", "b") == "fields.a,b.sequence-group"


def test_bad_value_of_a_column_names_the_key_as_written() -> None:
    """The error for a column's option shows the key with the column in it."""
    with pytest.raises(InvalidOption, match=r"`fields\.id\.stats-mode` can not be `some`"):
        Options({"fields.id.stats-mode": "some"}).field(FIELD_STATS_MODE, "id")


# Checking what a user sets


def test_values_become_texts() -> None:
    """Python values are stored as the texts other engines read; texts stay as they were written."""
    assert check_options(
        {
            "bucket": 4,
            "write-only": True,
            "bucket-key": ["a", "b"],
            "target-file-size": 64 * MIB,
            "write-buffer-size": "262144 kb",
            "commit.timeout": timedelta(minutes=90),
            "commit.min-retry-wait": "5000 us",
            "commit.max-retry-wait": 2000,
            "file.format": "Parquet",
            "scan.timestamp-millis": 1_700_000_000_000,
        },
        for_create=True,
    ) == {
        "bucket": "4",
        "write-only": "true",
        "bucket-key": "a,b",
        "target-file-size": "64 mb",
        "write-buffer-size": "262144 kb",
        "commit.timeout": "90 min",
        "commit.min-retry-wait": "5000 µs",
        "commit.max-retry-wait": "2 s",
        "file.format": "parquet",
        "scan.timestamp-millis": "1700000000000",
    }


def test_older_names_are_stored_under_the_proper_one() -> None:
    """An older name becomes the proper one; saying the same twice is fine, two different values are not."""
    assert check_options({"partial-update.ignore-delete": "true"}, for_create=True) == {"ignore-delete": "true"}
    assert check_options({"ignore-delete": True, "first-row.ignore-delete": "true"}, for_create=True)
    with pytest.raises(InvalidOption, match=r"`ignore-delete` and `first-row\.ignore-delete`"):
        check_options({"ignore-delete": True, "first-row.ignore-delete": "false"}, for_create=True)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("buckets", "bucket"),
        ("merge_engine", "merge-engine"),
        ("target-file-szie", "target-file-size"),
        ("fields.price.agregate-function", "fields.price.aggregate-function"),
        ("fields.price.stat-mode", "fields.price.stats-mode"),
    ],
)
def test_unknown_key_gets_a_suggestion(key: str, meant: str) -> None:
    """An unknown key is refused with the nearest one that exists, with the user's own column in it."""
    with pytest.raises(InvalidOption) as caught:
        check_options({key: "1"}, for_create=True)
    assert f"`{key}`" in caught.value.message
    assert f"`{meant}`" in caught.value.hint


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("bucket", "four", "whole number"),
        ("bucket", "1_000", "whole number"),
        ("bucket", "-3", "-2"),
        ("bucket", 2**31, "2147483647"),
        ("bucket", True, "whole number"),
        ("bucket", None, "whole number"),
        ("bucket", 1.5, "whole number"),
        ("file.compression.zstd-level", 23, "22"),
        ("write-only", "yes", "`true`"),
        ("write-only", 1, "`true`"),
        ("target-file-size", "12 qb", "128 mb"),
        ("commit.timeout", "soon", "10 min"),
        ("file.format", "parqet", "`parquet`"),
        ("metadata.stats-mode", "truncate", "truncate(n)"),
        ("scan.timestamp", "yesterday", "2026-05-01"),
        ("bucket-key", [1, 2], "commas"),
        ("data-file.prefix", "a/b", "without `/`"),
        ("fields.a.stats-mode", {"a": 1}, "truncate(n)"),
    ],
)
def test_bad_value_is_explained(key: str, value: object, expected: str) -> None:
    """A value of the wrong form is refused with an error that names the option and says what it takes."""
    with pytest.raises(InvalidOption) as caught:
        check_options({key: value}, for_create=True)
    assert f"`{key}`" in caught.value.message
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("chain-table.enabled", "true"),
        ("snapshot.watermark-idle-timeout", "1 h"),
        ("partition.idle-time-to-done", "1 h"),
        ("video-frame-field", "a"),
        ("file-index.rtree.columns", "a"),
        ("metadata.iceberg.storage", "table-location"),
        ("metadata.iceberg.uri", "thrift://host"),
        ("branch", "main"),
    ],
)
def test_options_that_are_not_honoured_are_refused(key: str, value: str) -> None:
    """A known option without effect here is refused by name, with what to do instead."""
    with pytest.raises(InvalidOption) as caught:
        check_options({key: value}, for_create=True)
    option = find_option(key)
    assert option is not None
    assert f"`{key}`" in caught.value.message
    assert "does not honour" in caught.value.message
    assert caught.value.hint == option.instead


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sink.parallelism", "4"),
        ("lookup.cache-rows", "5"),
        ("clustering.incremental.mode", "local-sort"),
        ("local-cache.max-size", "1 gb"),
        ("read.native.enabled", "true"),
        ("write.use-v2-write", "true"),
    ],
)
def test_options_that_only_tune_other_engines_are_kept_with_a_warning(key: str, value: str) -> None:
    """What can change no result is stored for the engines that honour it, and the user is told."""
    with pytest.warns(UserWarning, match=f"option `{key}` has no effect here"):
        assert check_options({key: value}, for_create=True) == {key: value}


def test_nothing_that_changes_results_only_tunes() -> None:
    """An option that makes reads or writes wrong if it is ignored is never one that is taken with a warning."""
    assert not [option.key for option in OPTIONS if option.tuning and (option.affects or option.honoured)]


@pytest.mark.parametrize(
    ("option", "choice"),
    [(SPILL_COMPRESSION, "lzo")],
)
def test_choices_that_are_not_honoured_are_refused(option: Option[str], choice: str) -> None:
    """Of an option with choices, those that do not work are refused with those that do."""
    with pytest.raises(InvalidOption) as caught:
        check_options({option.key: choice}, for_create=True)
    assert f"`{choice}`" in caught.value.message
    assert f"`{option.default}`" in caught.value.hint
    assert check_options({option.key: option.default}, for_create=True) == {option.key: option.default}


def test_switching_off_what_does_not_exist_is_allowed() -> None:
    """An option that is not honoured may be set to a default that means off: that is what happens anyway."""
    off = {"deletion-vectors.enabled": "false", "tag.automatic-creation": "none", "sequence.auto-padding": "false"}
    assert check_options(off, for_create=True) == off


def test_unknown_columns_are_refused() -> None:
    """An option for a column that the table lacks is refused with the nearest column, also inside a group."""
    assert check_options({"fields.id.stats-mode": "none"}, for_create=True, columns=["id", "price"])
    with pytest.raises(InvalidOption, match=r"(?s)column `prise`.*`price`"):
        check_options({"fields.prise.stats-mode": "none"}, for_create=True, columns=["id", "price"])
    with pytest.raises(InvalidOption, match="column `x`"):
        check_options({"fields.id,x.sequence-group": "price"}, for_create=True, columns=["id", "price"])
    with pytest.raises(InvalidOption, match=r"column `r\.x`"):
        check_options({"fields.r.x.stats-mode": "none"}, for_create=True, columns=["r"])


def test_keys_of_a_table_are_given_at_creation_only() -> None:
    """Primary key and partition columns are options of CREATE and of nothing else."""
    assert check_options({"primary-key": "a,b", "partition": "a"}, for_create=True)
    with pytest.raises(InvalidOption, match="`primary-key` can be given only when a table is created"):
        check_options({"primary-key": "a"}, for_create=False)


def test_immutable_options_do_not_change() -> None:
    """A fixed option may be repeated in another spelling but not changed; the number of buckets may change."""
    check_unchanged({"merge-engine": "deduplicate", "bucket": "2"}, {"merge-engine": "DEDUPLICATE", "bucket": "4"})
    check_unchanged({}, {"merge-engine": "deduplicate"})
    with pytest.raises(InvalidOption, match="`merge-engine` can not change from `deduplicate` to `first-row`"):
        check_unchanged({}, {"merge-engine": "first-row"})
    with pytest.raises(InvalidOption, match="`bucket-key`"):
        check_unchanged({"bucket-key": "a"}, {"bucket-key": "b"})


@pytest.mark.filterwarnings("ignore:option .* has no effect here")
@given(st.sampled_from(PLAIN), st.text(max_size=8) | st.integers() | st.floats() | st.none() | st.booleans())
def test_any_value_is_accepted_or_refused_cleanly(option: Option[object], value: object) -> None:
    """Whatever a user passes, the answer is a stored text that parses back or an InvalidOption."""
    try:
        checked = check_options({option.key: value}, for_create=True)
    except InvalidOption as error:
        checked = {}
        message = error.message
    else:
        message = option.key
    assert option.key in message
    assert check_options(checked, for_create=True) == checked


# Tables of other engines


def test_stored_options_that_would_make_reads_wrong() -> None:
    """Options of others that change what a read returns are named; defaults, custom keys and tuning are not."""
    raw = {
        "merge-engine": "first-row",
        "fields.price.aggregate-function": "sum",
        "chain-table.enabled": "true",
        "deletion-vectors.enabled": "true",
        "data-evolution.enabled": "true",
        "fields.a.default-value": "0",
        "changelog-producer": "lookup",
        "snapshot.time-retained": "2 h",
        "sink.parallelism": "4",
        "owner": "ann",
        "bucket": "4",
    }
    assert keys(unhonoured_for_read(raw)) == ["chain-table.enabled"]


def test_stored_options_that_would_make_writes_wrong() -> None:
    """Options of others that a write would have to follow are named; those that only reads need are not."""
    raw = {
        "chain-table.enabled": "true",
        "row-tracking.enabled": "true",
        "sequence.snapshot-ordering": "true",
        "fields.a.default-value": "0",
        "record-level.expire-time": "7 d",
        "partition.expiration-time": "30 d",
        "tag.automatic-creation": "process-time",
        "write-only": "true",
    }
    assert keys(unhonoured_for_write(raw)) == ["chain-table.enabled"]


def test_stored_values_nobody_understands_are_not_ignored() -> None:
    """An engine that is not known here at all makes reading unsafe; a garbled tuning value does not."""
    assert unhonoured_for_read({"merge-engine": "quantum"}) == [MERGE_ENGINE]
    assert unhonoured_for_read({"deletion-vectors.enabled": "perhaps"}) == [DELETION_VECTORS_ENABLED]
    assert unhonoured_for_read({SNAPSHOT_TIME_RETAINED.key: "soon", SCAN_SNAPSHOT_ID.key: "1"}) == []


@pytest.mark.parametrize("option", PLAIN, ids=keys(PLAIN))
def test_a_stored_default_is_never_a_problem(option: Option[object]) -> None:
    """A table that spells out a default can be read and written like one that does not."""
    if option.default is not None:
        raw = {option.key: option.text(option.default)}
        assert unhonoured_for_read(raw) == []
        assert unhonoured_for_write(raw) == []


# The reference page


def test_page_lists_every_option_once_in_its_group() -> None:
    """Each option has one row, under the heading of its group, in the order of the table."""
    sections = re.split(r"^## ", options_page(), flags=re.MULTILINE)[1:]
    listed = {section.splitlines()[0]: re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE) for section in sections}
    assert listed == {group: keys(list(options)) for group, options in GROUPS.items()}
    assert all(line.count(" | ") == 4 for line in options_page().splitlines() if line.startswith("| `"))


def test_page_in_docs_is_fresh() -> None:
    """The committed page is what the table gives; if not, run `python -m lakebed.options` into it."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "options.md"
    assert page.read_text(encoding="utf-8") == options_page()


def test_page_can_be_printed() -> None:
    """`python -m lakebed.options` writes the page to standard output."""
    run = subprocess.run([sys.executable, "-m", "lakebed.options"], capture_output=True, check=True)
    assert run.stdout.decode("utf-8").replace("\r\n", "\n") == options_page()
