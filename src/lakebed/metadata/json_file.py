"""Typed access to the members of a JSON metadata file; whatever is missing or of the wrong type is `CorruptFile`.

Snapshots, tags and consumers are read through this, so that no `KeyError` or wrong type gets past the file it came
from. Unknown members are ignored: newer writers add some. It knows no file kind.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, TypeVar

from lakebed.checksums import BROKEN_SEAL, is_seal_broken
from lakebed.errors import CorruptFile
from lakebed.metadata.corruption import corrupt

_T = TypeVar("_T")

_DECODER = json.JSONDecoder(parse_float=Decimal)
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


class JsonFile:
    """The parsed object of one JSON file, and the path to name when it is wrong."""

    __slots__ = ("_members", "_path")

    def __init__(self, data: bytes | str, path: str) -> None:
        try:
            # A byte order mark or another encoding is not what any writer of the format produces.
            text = data.decode("utf-8") if isinstance(data, bytes) else data
            members = _DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            raise corrupt(path, f"it is not valid JSON ({error})") from error
        if not isinstance(members, dict):
            raise corrupt(path, "it does not hold a JSON object")
        if is_seal_broken(text.encode() if isinstance(data, str) else data):
            raise corrupt(path, BROKEN_SEAL)
        self._members: dict[str, Any] = members
        self._path = path

    def integer(self, key: str) -> int:
        """A required 64-bit integer."""
        return self._required(key, self.optional_integer(key))

    def optional_integer(self, key: str) -> int | None:
        """A 64-bit integer; `None` when absent or null."""
        value = self._members.get(key)
        if value is None:
            return None
        if type(value) is not int or not INT64_MIN <= value <= INT64_MAX:
            raise self.wrong(key, "a 64-bit integer")
        return value

    def text(self, key: str) -> str:
        """A required string."""
        return self._required(key, self.optional_text(key))

    def optional_text(self, key: str) -> str | None:
        """A string; `None` when absent or null."""
        value = self._members.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self.wrong(key, "a string")

    def optional_text_map(self, key: str) -> dict[str, str] | None:
        """An object of strings; `None` when absent or null."""
        value = self._members.get(key)
        if value is None:
            return None
        if not isinstance(value, dict) or not all(isinstance(member, str) for member in value.values()):
            raise self.wrong(key, "an object of strings")
        return value

    def optional_number(self, key: str) -> Decimal | None:
        """A number, exactly as written; `None` when absent or null."""
        value = self._members.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise self.wrong(key, "a number")
        return Decimal(value)

    def optional_integers(self, key: str) -> list[int] | None:
        """A list of integers; `None` when absent or null."""
        value = self._members.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            raise self.wrong(key, "a list of integers")
        return value

    def optional_object(self, key: str) -> dict[str, Any] | None:
        """An object with members of any kind; `None` when absent or null."""
        value = self._members.get(key)
        if value is None or isinstance(value, dict):
            return value
        raise self.wrong(key, "an object")

    def wrong(self, key: str, expected: str) -> CorruptFile:
        """The error for a member that is not what it should be."""
        return corrupt(self._path, f"`{key}` should be {expected}, it is {str(self._members.get(key))[:80]!r}")

    def _required(self, key: str, value: _T | None) -> _T:
        if value is None:
            raise corrupt(self._path, f"`{key}` is missing")
        return value
