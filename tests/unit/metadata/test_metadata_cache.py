"""Manifests that are remembered: the same entries, within bounds."""

from __future__ import annotations

from typing import Any

import pytest

from lakebed.metadata import manifest_list
from lakebed.metadata.manifest_list import MetadataCache


def test_entries_come_back_as_a_list_of_their_own() -> None:
    """Whoever changes what they got changes nothing here; a file of another size is another file."""
    cache: MetadataCache[Any] = MetadataCache()
    entries: list[Any] = ["a", "b"]
    cache.put("m", 10, entries)
    found = cache.get("m", 10)
    assert found == entries
    assert found is not None
    found.clear()
    assert cache.get("m", None) == entries
    assert cache.get("m", 11) is None
    assert cache.get("n", None) is None


def test_the_least_used_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is kept than fits; what is large is kept beside, and takes no place of the others."""
    monkeypatch.setattr(manifest_list, "_LARGE_FILES", manifest_list._LargeFiles())
    monkeypatch.setattr(manifest_list, "_MOST_LARGE_ENTRIES", 5)
    monkeypatch.setattr(manifest_list, "_MOST_BYTES", 30)
    monkeypatch.setattr(manifest_list, "_LARGEST_BYTES", 20)
    cache: MetadataCache[Any] = MetadataCache()
    for name in ("a", "b", "c"):
        cache.put(name, 10, [])
    cache.put("too many", 21, range(6))
    for name in ("first", "second", "third"):
        cache.put(name, 21, [1, 2])
    cache.get("a", None)
    cache.put("d", 10, [])
    assert [name for name in ("a", "b", "c", "d") if cache.get(name, None) is not None] == ["a", "c", "d"]
    large = MetadataCache[Any]()  # another table's
    kept = [name for name in ("too many", "first", "second", "third") if large.get(name, 21) is not None]
    assert kept == ["second", "third"]
    assert large.get("third", 22) is None
