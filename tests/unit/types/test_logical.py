"""Logical types: their text, their JSON, and how texts of users are read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.errors import InvalidSchema
from lakebed.testing.strategies import ATOMIC_TYPES
from lakebed.types import logical as lt
from lakebed.types.logical import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    parse_type,
    type_from_json,
    type_to_json,
    with_nullable,
)

TEXTS: list[tuple[str, DataType]] = [
    ("INT", lt.INT),
    ("int not null", with_nullable(lt.INT, False)),
    ("INTEGER NULL", lt.INT),
    ("DOUBLE PRECISION", lt.DOUBLE),
    ("decimal", lt.decimal(10, 0)),
    ("DECIMAL(5)", lt.decimal(5, 0)),
    ("NUMERIC( 38 , 18 )", lt.decimal(38, 18)),
    ("CHAR", lt.char(1)),
    ("VARCHAR(2147483647)", lt.STRING),
    ("VARBINARY(2147483647)", lt.BYTES),
    ("TIMESTAMP", lt.timestamp(6)),
    ("TIMESTAMP(3) WITHOUT TIME ZONE", lt.timestamp(3)),
    ("TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL", with_nullable(lt.timestamp_ltz(3), False)),
    ("TIMESTAMP_LTZ(9)", lt.timestamp_ltz(9)),
    ("TIME", lt.time(0)),
    ("MULTISET<STRING>", MultisetType(lt.STRING)),
    ("ARRAY<INT NOT NULL>", ArrayType(with_nullable(lt.INT, False))),
    ("MAP<STRING, ARRAY<INT>> NOT NULL", MapType(lt.STRING, ArrayType(lt.INT), nullable=False)),
    ("ROW<a INT, `b c` STRING 'why'>", RowType((DataField(0, "a", lt.INT), DataField(1, "b c", lt.STRING, "why")))),
    ("STRUCT<a: INT>", RowType((DataField(0, "a", lt.INT),))),
    ("ROW<`a``b` INT COMMENT 'it''s'>", RowType((DataField(0, "a`b", lt.INT, "it's"),))),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_texts_are_read(text: str, expected: DataType) -> None:
    """Spellings of SQL dialects, defaults and spacing all mean the one type."""
    assert parse_type(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "INTT", "INT INT", "DECIMAL(", "DECIMAL(a)", "DECIMAL(1, 2, 3)", "ARRAY", "ARRAY<INT", "MAP<INT>", "ROW",
     "NOT NULL", "DECIMAL(39, 0)", "DECIMAL(2, 3)", "TIMESTAMP(10)", "CHAR(0)", "TIMESTAMP WITH TIME ZONE", "INT NOT"],
)  # fmt: skip
def test_texts_that_mean_nothing_are_refused(text: str) -> None:
    """Every slip is an InvalidSchema with advice."""
    with pytest.raises(InvalidSchema) as caught:
        parse_type(text)
    assert caught.value.hint


def types() -> st.SearchStrategy[DataType]:
    """Types of any depth."""
    flags = st.booleans()
    atoms = st.tuples(st.sampled_from([*ATOMIC_TYPES, lt.VARIANT, lt.BLOB]), flags).map(lambda p: with_nullable(*p))

    def nested(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
        names = st.lists(
            st.text("aé` ,<>", min_size=1, max_size=3).filter(str.strip), min_size=1, max_size=3, unique=True
        )
        rows = names.flatmap(lambda n: st.tuples(*(inner for _ in n)).map(lambda t: _row(n, t)))
        return st.one_of(
            st.builds(ArrayType, inner, flags),
            st.builds(MultisetType, inner, flags),
            st.builds(MapType, inner, inner, flags),
            rows,
        )

    return st.recursive(atoms, nested, max_leaves=5)


def _row(names: list[str], members: tuple[DataType, ...]) -> RowType:
    return RowType(
        tuple(DataField(i, name, member) for i, (name, member) in enumerate(zip(names, members, strict=True)))
    )


@settings(max_examples=200, deadline=None)
@given(types())
def test_text_and_json_come_back(data_type: DataType) -> None:
    """A type is read back from its own text (ids aside) and from its JSON."""
    assert type_from_json(type_to_json(data_type)) == data_type
    assert str(parse_type(str(data_type))) == str(data_type)


def test_fields_keep_description_and_default() -> None:
    """A field's JSON has only what is set, and all of it comes back."""
    plain = DataField(3, "a", lt.INT)
    full = DataField(4, "b", lt.STRING, "about b", default_value="x")
    assert plain.to_json() == {"id": 3, "name": "a", "type": "INT"}
    assert full.to_json()["defaultValue"] == "x"
    assert [DataField.from_json(field.to_json()) for field in (plain, full)] == [plain, full]


def test_walking_sees_members_at_every_depth() -> None:
    """Parents come before their members, through arrays and maps."""
    deep = parse_type("MAP<STRING, ARRAY<ROW<x INT, y ROW<z INT>>>>")
    assert [field.name for field in lt.walk_fields((DataField(9, "m", deep),))] == ["m", "x", "y", "z"]


def test_renumbering_gives_each_member_an_id_inner_parts_first() -> None:
    """Ids count up; a member's own parts come before the member."""
    counter = iter(range(10, 99))
    renumbered = lt.renumbered(parse_type("ROW<x ROW<z INT>, y INT>"), lambda: next(counter))
    ids = {field.name: field.id for field in lt.walk_fields((DataField(0, "r", renumbered),))}
    assert ids == {"r": 0, "z": 10, "x": 11, "y": 12}


def test_kinds_of_types() -> None:
    """Which types can be keys, and which are of a root."""
    assert not lt.is_nested(lt.decimal(38, 2))
    assert all(lt.is_nested(each) for each in (lt.VARIANT, lt.BLOB, ArrayType(lt.INT), RowType(())))
    assert lt.is_root(lt.INT, TypeRoot.INT)
    assert lt.is_root(lt.char(2), lt.STRINGS)
    assert not lt.is_root(ArrayType(lt.INT), TypeRoot.INT)
    assert lt.same_ignoring_nullability(AtomicType(TypeRoot.INT, nullable=False), lt.INT)


@pytest.mark.parametrize(
    ("typed", "instead"),
    [("int64", "BIGINT"), ("text", "STRING"), ("float64", "DOUBLE"), ("datetime", "TIMESTAMP(6)"), ("uuid", "STRING")],
)
def test_types_of_others(typed: str, instead: str) -> None:
    """A type of pandas, Arrow or a database is answered with ours: `int64` is not taken for a mistyped INT."""
    with pytest.raises(InvalidSchema) as raised:
        parse_type(typed)
    assert raised.value.hint == f"write {instead}"
