"""Which values of a statement are secrets, and what is shown in their place.

The name of an option tells: errors that quote a statement, histories of prompts and SHOW CREATE TABLE all ask here.
"""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "******"
_SECRET_WORDS: Final = (
    r"password|passwd|passphrase|secret|token|jaas|credential|private\.key|access[.\-_]?key|user[.\-_]info"
)
_SECRET = re.compile(_SECRET_WORDS, re.IGNORECASE)
_GIVEN = re.compile(
    rf"""(?P<key>'[^'\n]*(?:{_SECRET_WORDS})[^'\n]*'\s*=?=?\s*)(?P<value>'(?:[^'\\]|\\.|'')*(?:'[^,)\n]*|$))""",
    re.IGNORECASE | re.DOTALL,
)
"""What stands between the quotes, and up to the next option: a quote in a password may have ended it early."""
_FROM_ENVIRONMENT = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


def is_secret(option: str) -> bool:
    """Whether the value of an option must not be shown."""
    return _SECRET.search(option) is not None


def environment_name(value: str) -> str | None:
    """The variable of `${env:NAME}`; None if the value says something else, or more."""
    found = _FROM_ENVIRONMENT.fullmatch(value.strip())
    return None if found is None else found[1]


def names_environment(value: str) -> bool:
    """Whether a part of the value is to be read from the environment."""
    return _FROM_ENVIRONMENT.search(value) is not None


def with_environment(value: str, lookup: dict[str, str]) -> str:
    """The value with what the environment holds in it; a KeyError for what it does not."""
    return _FROM_ENVIRONMENT.sub(lambda found: lookup[found[1]], value)


def shown_value(option: str, value: str) -> str:
    """What may be shown of a value. The name of a variable is no secret."""
    return MASK if is_secret(option) and environment_name(value) is None else value


def without_secrets(text: str) -> str:
    """A statement, or a part of one, that may be shown."""
    return _GIVEN.sub(lambda found: f"{found['key']}'{MASK}'", text)


def is_within_secret(text: str, position: int) -> bool:
    """Whether a place of a statement lies in the value of a secret."""
    return any(found.start("value") <= position < found.end("value") for found in _GIVEN.finditer(text))
