"""The registry of formats."""

from __future__ import annotations

import pytest

from lakebed.errors import Unsupported
from lakebed.formats import FORMATS, format_of_file


@pytest.mark.parametrize(
    ("file_name", "expected"),
    [
        ("data-1.parquet", "parquet"),
        ("data-1.orc", "orc"),
        ("changelog-1.avro", "avro"),
        ("DATA.PARQUET", "parquet"),
        ("a.csv/data-1.orc", "orc"),
        ("data.json.parquet", "parquet"),
    ],
)
def test_the_extension_decides(file_name: str, expected: str) -> None:
    """The last extension names the format, so one table may mix them."""
    assert format_of_file(file_name) is FORMATS[expected]


@pytest.mark.parametrize("file_name", ["a.txt", "a.txt.gz", "a.lance", "a.blob", "a.parqet", "data", "a.gz"])
def test_other_extensions_are_unsupported(file_name: str) -> None:
    """A format that is not read is named in the error, with a hint."""
    with pytest.raises(Unsupported, match="`") as caught:
        format_of_file(file_name)
    assert caught.value.hint
