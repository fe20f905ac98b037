"""What a statement may change of a table's columns."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakebed
from lakebed.sql.change.new_columns import SchemaMerge, is_wider
from lakebed.types.logical import AtomicType, DataField, parse_type
from lakebed.write.make_room import relaxed


def _fields(**types: str) -> list[DataField]:
    return [DataField(index, name, parse_type(text)) for index, (name, text) in enumerate(types.items())]


@pytest.fixture
def table(tmp_path: Path) -> lakebed.Table:
    """A table with a key, a number and a row."""
    lake = lakebed.connect(tmp_path)
    return lake.create_table("t", {"k": "INT NOT NULL", "v": "INT", "r": "ROW<a INT>"}, primary_key=["k"])


def _types(table: lakebed.Table) -> dict[str, str]:
    return {field.name: str(field.type) for field in table.schema.fields}


def test_columns_and_members_are_added(table: lakebed.Table) -> None:
    """New columns and members come last and may be null; types stay."""
    incoming = _fields(K="BIGINT", V="BIGINT", r="ROW<A INT, b ARRAY<INT NOT NULL> NOT NULL>", w="STRING NOT NULL")
    assert SchemaMerge(adds=True).apply(table, incoming)
    types = _types(table)
    assert types["v"] == "INT"
    assert types["k"] == "INT NOT NULL"
    assert types["w"] == "STRING"
    assert [member.name for member in table.schema.field("r").type.fields] == ["a", "b"]  # type: ignore[union-attr]


def test_types_grow_if_asked_to(table: lakebed.Table) -> None:
    """INT becomes BIGINT, but not the other way round, and never in the key."""
    merge = SchemaMerge(adds=True, widens=True)
    assert merge.apply(table, _fields(k="BIGINT", v="BIGINT"))
    assert _types(table)["v"] == "BIGINT"
    assert _types(table)["k"] == "INT NOT NULL"
    assert not merge.apply(table, _fields(v="INT"))


def test_nothing_changes_unless_asked_to(table: lakebed.Table) -> None:
    """Without the option the table stays as it is."""
    assert not SchemaMerge().apply(table, _fields(w="INT"))


@pytest.mark.parametrize(
    ("old", "new", "wider"),
    [
        ("INT", "BIGINT", True),
        ("INT", "INT", False),
        ("BIGINT", "INT", False),
        ("DECIMAL(10, 2)", "DECIMAL(12, 2)", True),
        ("DECIMAL(10, 2)", "DECIMAL(10, 4)", False),
        ("VARCHAR(3)", "STRING", True),
        ("STRING", "VARCHAR(3)", False),
        ("FLOAT", "DOUBLE", True),
        ("INT", "STRING", False),
    ],
)
def test_wider(old: str, new: str, wider: bool) -> None:
    """A type is wider if it holds all that the other holds."""
    before, after = parse_type(old), parse_type(new)
    assert isinstance(before, AtomicType)
    assert isinstance(after, AtomicType)
    assert is_wider(before, after) == wider


def test_relaxed() -> None:
    """NULL is allowed everywhere but in keys of maps."""
    found = relaxed(parse_type("ROW<a INT NOT NULL, m MAP<STRING NOT NULL, INT NOT NULL> NOT NULL> NOT NULL"))
    assert "NOT NULL" not in str(found).replace("STRING NOT NULL", "STRING")
