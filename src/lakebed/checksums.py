"""Checksums of files that have none by themselves, in places where other readers of the table do not look.

A JSON file of the table gets one more member at its end, which other engines skip as they skip all members unknown to
them. It covers the text before it, byte by byte. A file without it, as other engines write it, is taken as it is; so is
one whose member was removed by somebody who edited the file.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import Any

_MEMBER = "lakebedCrc32"
_KEY = f'"{_MEMBER}":'.encode()
_REST = re.compile(rb'"%s": "([0-9a-f]{8})"\s*\}\s*' % _MEMBER.encode())


def crc32_text(data: bytes) -> str:
    """CRC-32 as eight hexadecimal digits."""
    return f"{zlib.crc32(data):08x}"


def sealed_json(text: str) -> str:
    """The text of a JSON object that has members, with the checksum of all of them as its last member."""
    body = text.rstrip().removesuffix("}").rstrip()
    start = body[1 : len(body) - len(body[1:].lstrip())]  # as far in as the first member
    return f'{body},{start or " "}"{_MEMBER}": "{crc32_text(body.encode())}"' + ("\n}" if "\n" in start else "}")


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
    return rest is None or body[-1:] != b"," or crc32_text(body[:-1]).encode() != rest[1]


BROKEN_SEAL = f"its text does not match its checksum (if it was edited on purpose, remove the member `{_MEMBER}`)"
"""What is wrong with such a file, for errors."""
