"""The option table: every option lakebed knows, in groups, and the way from a key to its option.

An option is one constant in the file of its group and needs no second entry: the table is read off those files, in
the order in which they are written.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Final

from lakebed.options import (
    changelogs,
    committing,
    compacting,
    elsewhere,
    files,
    keys,
    lifecycle,
    merging,
    reading,
    streaming,
    tracking,
    views,
    writing,
)
from lakebed.options.option import FieldOption, Option

__all__ = ["GROUPS", "OPTIONS", "find_option", "known_keys"]


def _options_in(module: ModuleType) -> tuple[Option[object], ...]:
    return tuple(value for value in vars(module).values() if isinstance(value, Option))


GROUPS: Final[dict[str, tuple[Option[object], ...]]] = {
    "Keys and buckets": _options_in(keys),
    "Merging": _options_in(merging),
    "Changelog": _options_in(changelogs),
    "Compaction": _options_in(compacting),
    "Writing": _options_in(writing),
    "Files": _options_in(files),
    "Commits": _options_in(committing),
    "Snapshots, tags, partitions": _options_in(lifecycle),
    "Reading": _options_in(reading),
    "Reading as a stream": _options_in(streaming),
    "Deletion vectors, tracking, change capture": _options_in(tracking),
    "Materialized tables": _options_in(views),
    "Other engines and features": (*_options_in(elsewhere), *elsewhere.ELSEWHERE),
}
"""Heading of the reference page, and the options below it."""

OPTIONS: Final[tuple[Option[object], ...]] = tuple(option for group in GROUPS.values() for option in group)

_PLAIN: Final = {
    key: option for option in OPTIONS if not isinstance(option, FieldOption) for key in (option.key, *option.aliases)
}
_FIELDS: Final = tuple(option for option in OPTIONS if isinstance(option, FieldOption))


@lru_cache(maxsize=4096)
def find_option(key: str) -> Option[object] | None:
    """The option that a key, an older name of it, or a key with a name in it belongs to."""
    plain = _PLAIN.get(key)
    if plain is not None:
        return plain
    return next((option for option in _FIELDS if option.names_in(key) is not None), None)


def known_keys(like: str) -> list[str]:
    """All keys, for finding the nearest to a mistyped one; placeholders take the name the mistyped key has there."""
    parts = like.split(".")
    name = ".".join(parts[1:-1]) or "<field>"
    return [option.key for option in _PLAIN.values()] + [
        option.key_for(name) if option.names_columns else option.key for option in _FIELDS
    ]
