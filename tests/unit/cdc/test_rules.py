"""What a user wants of a sync: modes of the type mapping, and tables that are made by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cdc.batches import SOURCE, ChunkMaker, LocalBatch, description

import lakebed
from lakebed.cdc.envelope import SourceName, SourceTable
from lakebed.cdc.pipeline import Pipeline
from lakebed.cdc.routing import PatternValue, Routing, Target
from lakebed.cdc.rows.computed import ComputedColumn
from lakebed.cdc.rules import SyncRules, type_modes, type_rules
from lakebed.cdc.schema.sync import Policies
from lakebed.cdc.schema.targets import target_table
from lakebed.errors import InvalidArgument, InvalidSchema

TARGET = Target("lk", "orders")
COLUMNS = description({"id": "INT NOT NULL", "v": "INT NOT NULL", "s": "STRING"})


def test_modes_are_spelled_with_hyphens_or_underscores() -> None:
    """Paimon's manual prints one, its code the other."""
    assert type_modes(["to_nullable", "Decimal-No-Change"]) == {"to-nullable", "decimal-no-change"}
    assert type_rules({"decimal-no-change", "allow-non-string-to-string"}).keeps_decimals
    with pytest.raises(InvalidArgument) as caught:
        type_modes(["to-nulable"])
    assert "to-nullable" in caught.value.hint


def test_everything_can_be_text_or_null(tmp_path: Path) -> None:
    """`to-string` makes all columns text, `to-nullable` lets all but keys be NULL; values follow."""
    lake = lakebed.connect(tmp_path)
    rules = SyncRules(Routing("lk"), modes=type_modes(["to-string", "to-nullable"]))
    Pipeline(lake, rules, "", source="x").apply(
        LocalBatch([ChunkMaker().rows(COLUMNS, ("+I", 1, 5, "a"))]), "u", 1, None
    )
    table = lake.table("lk.orders")
    assert [str(field.type) for field in table.schema.fields] == ["STRING NOT NULL", "STRING", "STRING"]
    assert table.to_arrow().to_pylist() == [{"id": "1", "v": "5", "s": "a"}]


def made(lake: lakebed.Lake, *sources: SourceTable, **rules: object) -> lakebed.Table:
    return target_table(lake, TARGET, sources, SyncRules(Routing("lk"), **rules), "")  # type: ignore[arg-type]


def test_a_table_is_made_as_its_source_is(tmp_path: Path) -> None:
    """Columns, key, computed columns, partitions and options; comments too."""
    computed = (ComputedColumn.parse("p=truncate(v, 10)"),)
    conf = (PatternValue(".*", {"bucket": "3"}), PatternValue("lines", {"bucket": "9"}))
    source = SourceTable(SOURCE, COLUMNS)
    table = made(
        lakebed.connect(tmp_path),
        source,
        computed=computed,
        partition_keys=("p",),
        primary_keys=("id", "p"),
        table_conf=conf,
    )
    assert (table.primary_key, table.partition_by) == (("id", "p"), ("p",))
    assert (table.options["bucket"], table.schema.field_names) == ("3", ("id", "v", "s", "p"))


def test_several_sources_are_merged_column_by_column(tmp_path: Path) -> None:
    """Types grow to hold all; what has nothing in common is refused, and so are different keys."""
    lake = lakebed.connect(tmp_path)
    other = SourceTable(SourceName("b", "", "orders"), description({"id": "INT NOT NULL", "v": "BIGINT", "w": "DATE"}))
    table = made(lake, SourceTable(SOURCE, COLUMNS), other)
    assert [str(field.type) for field in table.schema.fields] == ["INT NOT NULL", "BIGINT", "STRING", "DATE"]
    clash = SourceTable(SourceName("c", "", "orders"), description({"id": "INT NOT NULL", "v": "STRING"}))
    lake.drop_table("lk.orders")
    with pytest.raises(InvalidSchema, match=r"column `v` is INT NOT NULL .* STRING in c\.orders"):
        made(lake, SourceTable(SOURCE, COLUMNS), clash)
    keyed = SourceTable(SourceName("d", "", "orders"), description({"id": "INT NOT NULL", "s": "STRING"}, ("s",)))
    with pytest.raises(InvalidSchema, match="different primary keys"):
        made(lake, SourceTable(SOURCE, COLUMNS), keyed)


def test_names_that_the_lake_can_not_have_are_refused(tmp_path: Path) -> None:
    """The source's table is named, and the way to give it another name."""
    source = SourceTable(SourceName("d", "", 'a"/b'), COLUMNS)
    with pytest.raises(InvalidSchema) as caught:
        target_table(lakebed.connect(tmp_path), Target("lk", 'a"/b'), [source], SyncRules(Routing("lk")), "")
    assert "mapping" in caught.value.hint


def test_keys_that_are_not_there(tmp_path: Path) -> None:
    """An error for one table; for a database they are ignored where a table has not got them."""
    lake, source = lakebed.connect(tmp_path), SourceTable(SOURCE, COLUMNS)
    with pytest.raises(InvalidArgument, match="`x`"):
        made(lake, source, primary_keys=("x",), is_for_one_table=True)
    table = made(lake, source, primary_keys=("x",), partition_keys=("y",))
    assert (table.primary_key, table.partition_by) == (("id",), ())


def test_options_of_a_table_that_is_there_are_set_as_far_as_they_may(tmp_path: Path) -> None:
    """Buckets and what can never change stay as they are."""
    lake, source = lakebed.connect(tmp_path), SourceTable(SOURCE, COLUMNS)
    made(lake, source, table_conf=(PatternValue(".*", {"bucket": "2"}),))
    wanted = {"bucket": "4", "merge-engine": "partial-update", "num-sorted-run.compaction-trigger": "9"}
    table = made(lake, source, table_conf=(PatternValue(".*", wanted),))
    assert (table.options["bucket"], table.options["num-sorted-run.compaction-trigger"]) == ("2", "9")
    assert "merge-engine" not in table.options


def test_truncate_and_policies_are_words() -> None:
    """Mistyped ones are refused at once."""
    with pytest.raises(InvalidArgument, match="truncate"):
        SyncRules(Routing("lk"), truncate="maybe")
    with pytest.raises(InvalidArgument, match="incompatible"):
        Policies(incompatible="maybe")
