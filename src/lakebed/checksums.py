"""Checksums of files that have none by themselves, in places where other readers of the table do not look.

A JSON file of the table gets one more member at its end, which other engines skip as they skip all members unknown to
them. It covers the text before it, byte by byte, and again what the text says: somebody may have set the file in other
lines, or its members in another order, and it still says the same. A file without it, as other engines write it, is
taken as it is; so is one whose member was removed by somebody who edited the file.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

_MEMBER = "lakebedCrc32"
_KEY = f'"{_MEMBER}"'.encode()
_REST = re.compile(rb'"%s": "([0-9a-f]{8})[0-9a-f]*"\s*\}\s*' % _MEMBER.encode())

_DIGITS = 8


def crc32_text(data: bytes) -> str:
    """CRC-32 as eight hexadecimal digits."""
    return f"{zlib.crc32(data):08x}"


def sealed_json(text: str) -> str:
    """The text of a JSON object that has members, with the checksum of all of them as its last member."""
    body = text.rstrip().removesuffix("}").rstrip()
    start = body[1 : len(body) - len(body[1:].lstrip())]  # as far in as the first member
    checksum = crc32_text(body.encode()) + _checksum_of_meaning(json.loads(text))
    return f'{body},{start or " "}"{_MEMBER}": "{checksum}"' + ("\n}" if "\n" in start else "}")


def unsealed(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a file without its checksum, for whoever writes it anew."""
    return {key: value for key, value in members.items() if key != _MEMBER}


def is_seal_broken(data: bytes) -> bool:
    """Whether a JSON file has a checksum that its text does not match."""
    at = data.rfind(_KEY)
    if at < 0:
        return False
    rest = _REST.fullmatch(data, at)
    body = data[:at].rstrip()
    if rest is not None and body[-1:] == b"," and crc32_text(body[:-1]).encode() == rest[1]:
        return False
    return _says_something_else(data)


def _says_something_else(data: bytes) -> bool:
    """Whether a file whose text is not as it was written says something else, as far as it can tell."""
    try:
        members = json.loads(data)
    except ValueError:  # of decoding, too
        return True
    if not isinstance(members, dict) or _MEMBER not in members:
        return False  # what was found is a word of another member
    checksum = members[_MEMBER]
    return not isinstance(checksum, str) or checksum[_DIGITS:] != _checksum_of_meaning(unsealed(members))


def _checksum_of_meaning(members: Mapping[str, Any]) -> str:
    """The same for all texts that say the same."""
    return crc32_text(json.dumps(members, sort_keys=True, separators=(",", ":")).encode())


BROKEN_SEAL = f"its text does not match its checksum (if it was edited on purpose, remove the member `{_MEMBER}`)"
"""What is wrong with such a file, for errors."""
