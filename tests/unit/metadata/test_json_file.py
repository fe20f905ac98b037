"""Members of JSON files, for what snapshots and tags do not cover."""

from __future__ import annotations

from decimal import Decimal

import pytest

from lakebed.errors import CorruptFile
from lakebed.metadata.json_file import JsonFile


def test_members_have_their_types() -> None:
    """Each accessor returns its type, and `None` for what is absent or null."""
    file = JsonFile('{"i": 1, "t": "x", "m": {"a": "b"}, "n": 1.50, "l": [1, 2], "z": null}', "p")
    assert (file.integer("i"), file.text("t"), file.optional_text_map("m")) == (1, "x", {"a": "b"})
    assert (file.optional_number("n"), file.optional_number("i")) == (Decimal("1.50"), Decimal(1))
    assert file.optional_integers("l") == [1, 2]
    for absent in ("z", "nope"):
        assert file.optional_integer(absent) is None
        assert file.optional_text(absent) is None
        assert file.optional_text_map(absent) is None
        assert file.optional_number(absent) is None
        assert file.optional_integers(absent) is None


def test_a_wrong_member_is_shown() -> None:
    """The error names path, member and what was found instead."""
    file = JsonFile('{"m": {"a": 1}, "l": [true], "n": "1"}', "some/path")
    for read, key in ((file.optional_text_map, "m"), (file.optional_integers, "l"), (file.optional_number, "n")):
        with pytest.raises(CorruptFile, match=rf"some/path is damaged: `{key}` should be"):
            read(key)
    with pytest.raises(CorruptFile, match="`x` is missing"):
        file.integer("x")
