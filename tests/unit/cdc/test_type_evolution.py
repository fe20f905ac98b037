"""What becomes of a column's type when the source's type of it changes."""

from __future__ import annotations

import pytest

from lakebed.cdc.schema.types import TypeRules, evolved
from lakebed.types.logical import parse_type


def merged(old: str, new: str, rules: TypeRules | None = None) -> str | None:
    found = evolved(parse_type(old), parse_type(new), rules)
    return None if found is None else str(found)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("INT", "BIGINT", "BIGINT"),
        ("BIGINT", "INT", "BIGINT"),
        ("TINYINT", "SMALLINT", "SMALLINT"),
        ("FLOAT", "DOUBLE", "DOUBLE"),
        ("DOUBLE", "FLOAT", "DOUBLE"),
        ("VARCHAR(10)", "VARCHAR(20)", "VARCHAR(20)"),
        ("VARCHAR(20)", "VARCHAR(10)", "VARCHAR(20)"),
        ("CHAR(5)", "VARCHAR(5)", "VARCHAR(5)"),
        ("CHAR(5)", "CHAR(9)", "CHAR(9)"),
        ("VARCHAR(20)", "STRING", "STRING"),
        ("STRING", "VARCHAR(20)", "STRING"),
        ("BINARY(4)", "BYTES", "BYTES"),
        ("DECIMAL(10, 2)", "DECIMAL(8, 2)", "DECIMAL(10, 2)"),
        ("DECIMAL(10, 2)", "DECIMAL(12, 4)", "DECIMAL(12, 4)"),
        ("DECIMAL(10, 2)", "DECIMAL(10, 4)", "DECIMAL(12, 4)"),
        ("DECIMAL(38, 0)", "DECIMAL(10, 4)", None),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(6)"),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", "TIMESTAMP(6)"),
        ("TIME(0)", "TIME(3)", "TIME(3)"),
        ("INT", "STRING", None),
        ("INT", "FLOAT", None),
        ("INT", "DECIMAL(10, 2)", None),
        ("DATE", "TIMESTAMP(3)", None),
        ("STRING", "INT", None),
        ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", None),
        ("ARRAY<INT>", "ARRAY<BIGINT>", "ARRAY<BIGINT>"),
        ("ARRAY<INT>", "ARRAY<STRING>", None),
        ("MAP<STRING, INT>", "MAP<STRING, BIGINT>", "MAP<STRING, BIGINT>"),
        ("MAP<STRING, INT>", "MAP<INT, INT>", None),
        ("ARRAY<INT>", "INT", None),
    ],
)
def test_types_grow_or_stay_or_have_nothing_in_common(old: str, new: str, expected: str | None) -> None:
    """Wider types win in both directions; what holds nothing of both is for a policy."""
    assert merged(old, new) == expected


def test_i_05_numbers_widen_and_never_narrow() -> None:
    """I-05: INT to BIGINT in the source gives BIGINT, BIGINT to INT leaves the target as it is."""
    assert merged("INT", "BIGINT") == "BIGINT"
    assert merged("BIGINT", "INT") == "BIGINT"


def test_null_is_allowed_where_either_allows_it() -> None:
    """A source that forbids NULL says nothing of rows that are there; one that allows it is followed."""
    assert merged("INT", "BIGINT NOT NULL") == "BIGINT"
    assert merged("INT NOT NULL", "INT") == "INT"
    assert merged("INT NOT NULL", "BIGINT NOT NULL") == "BIGINT NOT NULL"


def test_rows_gain_members_and_keep_those_that_must_be_there() -> None:
    """New members may be NULL; a member that must have a value may not go."""
    assert merged("ROW<a INT>", "ROW<a BIGINT, b INT NOT NULL>") == "ROW<`a` BIGINT, `b` INT>"
    assert merged("ROW<a INT, b INT>", "ROW<a INT>") == "ROW<`a` INT, `b` INT>"
    assert merged("ROW<a INT NOT NULL>", "ROW<b INT>") is None


def test_modes_of_the_type_mapping_change_the_rules() -> None:
    """Text may take in anything if that is allowed, and decimals may be told to stay."""
    assert merged("INT", "VARCHAR(5)", TypeRules(non_string_to_string=True)) == "STRING"
    assert merged("INT", "DOUBLE", TypeRules(non_string_to_string=True)) is None
    assert merged("DECIMAL(5, 2)", "DECIMAL(9, 4)", TypeRules(keeps_decimals=True)) == "DECIMAL(5, 2)"
