"""The checksum of a JSON file: every flipped bit is noticed or changes nothing, and other people's files are let be."""

from __future__ import annotations

import json

import pytest

from lakebed.checksums import is_seal_broken, sealed_json

MEMBERS = {"version": 3, "text": 'a "quoted" } ü', "inner": {"lakebedCrc32": "00000000"}, "list": [1, 2]}


@pytest.mark.parametrize("indent", [None, 2])
def test_the_checksum_is_one_more_member(indent: int | None) -> None:
    """What was there reads as before, laid out as before."""
    text = json.dumps(MEMBERS, indent=indent, ensure_ascii=False)
    sealed = sealed_json(text)
    found = json.loads(sealed)
    assert len(found.pop("lakebedCrc32")) == 16
    assert found == MEMBERS
    assert sealed.count("\n") == text.count("\n") + (indent is not None)
    assert not is_seal_broken(sealed.encode())


@pytest.mark.parametrize("indent", [None, 2])
def test_every_flipped_bit_is_noticed_or_changes_nothing(indent: int | None) -> None:
    """A damaged file is broken, or no JSON, or says what it said."""
    sealed = sealed_json(json.dumps(MEMBERS, indent=indent, ensure_ascii=False)).encode()
    for bit in range(len(sealed) * 8):
        damaged = bytearray(sealed)
        damaged[bit // 8] ^= 1 << bit % 8
        if is_seal_broken(bytes(damaged)):
            continue
        try:
            found = json.loads(damaged.decode())
        except ValueError:
            continue
        assert {key: found.get(key) for key in MEMBERS} == MEMBERS


@pytest.mark.parametrize("text", ["{}", '{"a": 1}', "", "nonsense", '{"a": "lakebedCrc32"}'])
def test_files_without_a_checksum_are_not_broken(text: str) -> None:
    """Other engines write none."""
    assert not is_seal_broken(text.encode())


def test_a_member_that_was_removed_is_not_missed() -> None:
    """Whoever edits a file on purpose takes the checksum out."""
    assert not is_seal_broken(json.dumps({"version": 4}).encode())


@pytest.mark.parametrize("indent", [None, 2, 4])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_another_layout_says_the_same(indent: int | None, is_ascii: bool) -> None:
    """A file that somebody set in other lines, with its members in another order, is not damaged; other values are."""
    members = json.loads(sealed_json(json.dumps(MEMBERS, indent=2)))
    turned = dict(reversed(members.items()))
    assert not is_seal_broken(json.dumps(turned, indent=indent, ensure_ascii=is_ascii).encode())
    assert not is_seal_broken(json.dumps(turned, separators=(",", ":")).encode())
    for changed in ({"version": 4}, {"text": ""}, {"inner": {}}, {"more": 1}):
        assert is_seal_broken(json.dumps({**turned, **changed}, indent=indent).encode())
