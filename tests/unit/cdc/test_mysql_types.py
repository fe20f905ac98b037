"""MySQL's types as types of the lake."""

from __future__ import annotations

import pytest

from lakebed.cdc.formats.mysql_types import mysql_type
from lakebed.errors import Unsupported


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tinyint(1)", "BOOLEAN"),
        ("bit(1)", "BOOLEAN"),
        ("bit", "BOOLEAN"),
        ("bool", "BOOLEAN"),
        ("tinyint(4)", "TINYINT"),
        ("tinyint unsigned", "SMALLINT"),
        ("smallint", "SMALLINT"),
        ("smallint(5) unsigned zerofill", "INT"),
        ("mediumint", "INT"),
        ("mediumint unsigned", "BIGINT"),
        ("int(11)", "INT"),
        ("year(4)", "INT"),
        ("INT UNSIGNED", "BIGINT"),
        ("bigint(20)", "BIGINT"),
        ("bigint(20) unsigned", "DECIMAL(20, 0)"),
        ("float(7,2)", "FLOAT"),
        ("double", "DOUBLE"),
        ("double precision", "DOUBLE"),
        ("decimal(10,2)", "DECIMAL(10, 2)"),
        ("decimal(10)", "DECIMAL(10, 0)"),
        ("decimal", "DECIMAL(38, 18)"),
        ("decimal(65,30)", "STRING"),
        ("date", "DATE"),
        ("time(3)", "TIME(3)"),
        ("datetime", "TIMESTAMP(0)"),
        ("timestamp(6)", "TIMESTAMP(6)"),
        ("char(5)", "CHAR(5)"),
        ("varchar(100)", "VARCHAR(100)"),
        ("longtext", "STRING"),
        ("json", "STRING"),
        ("enum('a','b)')", "STRING"),
        ("point", "STRING"),
        ("binary(16)", "VARBINARY(16)"),
        ("varbinary(16)", "VARBINARY(16)"),
        ("mediumblob", "BYTES"),
        ("set('a','b')", "ARRAY<STRING>"),
        ("bit(12)", "BINARY(2)"),
    ],
)
def test_types_by_their_definitions(text: str, expected: str) -> None:
    """Each type has its place, with its length and precision."""
    assert str(mysql_type(text)) == expected


@pytest.mark.parametrize(
    ("text", "mode", "expected"),
    [
        ("tinyint(1)", "tinyint1-not-bool", "TINYINT"),
        ("bigint unsigned", "bigint-unsigned-to-bigint", "BIGINT"),
        ("varchar(10)", "char-to-string", "STRING"),
        ("longtext", "longtext-to-bytes", "BYTES"),
        ("datetime(3)", "to-string", "STRING"),
    ],
)
def test_modes_of_the_type_mapping(text: str, mode: str, expected: str) -> None:
    """A mode changes the type that it is about."""
    assert str(mysql_type(text, {mode})) == expected


def test_an_unknown_type_is_refused_by_name() -> None:
    """The type is named, and what to do about it."""
    with pytest.raises(Unsupported, match="hstore"):
        mysql_type("hstore")
