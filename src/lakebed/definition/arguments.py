"""Checks of what the callers of a lake or a table hand over, before any of it is used.

Python lets anything in, and a number where a name belongs would come out as a TypeError from deep inside. Each check
returns its argument as the rest of the code wants it, or says what to pass instead. What the values mean is checked
where they are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from lakebed.errors import InvalidArgument, InvalidOption, did_you_mean
from lakebed.metadata.json_file import INT64_MAX
from lakebed.options.option import FieldOption
from lakebed.options.table import OPTIONS
from lakebed.schema.changes import After, Before, First, Last, SchemaChange
from lakebed.types.predicate import Predicate
from lakebed.types.predicate_parse import to_predicate

_LONGEST_TAG_BYTES = 200
_POSITIONS = First | Last | After | Before
_OPTIONAL = {"comment": str, "default": str, "position": _POSITIONS}
_REQUIRED = {"key": str, "new_name": str, "nullable": bool, "position": _POSITIONS}


def names_argument(names: Iterable[str] | None, argument: str) -> tuple[str, ...]:
    """A list of column names; none is the empty list."""
    if names is None:
        return ()
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        meant = repr(names) if isinstance(names, str) else "..."
        raise InvalidArgument(f"{argument} is {names!r}", hint=f"pass a list of column names: {argument}=[{meant}]")
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str):
            raise InvalidArgument(f"{argument} holds {name!r}", hint="name columns by their names, as text")
    return listed


def options_argument(options: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Options by their names; none is no option."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise InvalidArgument(f"options is {options!r}", hint='pass a dict such as {"bucket": "4"}')
    for key in options:
        if not isinstance(key, str):
            raise InvalidOption(f"option name {key!r} is no text", hint='pass a dict such as {"bucket": "4"}')
    return options


def snapshot_argument(snapshot: int) -> int:
    """The id of a snapshot."""
    if isinstance(snapshot, bool) or not isinstance(snapshot, int) or snapshot < 1:
        raise InvalidArgument(f"{snapshot!r} is no snapshot id", hint="snapshot ids are whole numbers from 1")
    return snapshot


def count_argument(count: int, argument: str) -> int:
    """How many of something."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise InvalidArgument(f"{argument} is {count!r}", hint=f"pass a whole number from 0: {argument}=10")
    return count


def tag_argument(name: str) -> str:
    """The name of a tag that may exist."""
    if not isinstance(name, str):
        raise InvalidArgument(f"tag name {name!r} is no text", hint="pass the tag's name as a string")
    return name


def new_tag_argument(name: str) -> str:
    """A name for a new tag. A number may be one: where a word may stand for either, the tag comes first."""
    tag_argument(name)
    if len(name.encode()) > _LONGEST_TAG_BYTES:
        raise InvalidArgument(f"tag name {name[:20]!r}… is too long", hint=f"use at most {_LONGEST_TAG_BYTES} bytes")
    return name


def identity_arguments(commit_user: str | None, commit_identifier: int | None) -> None:
    """Who commits, and as which of that user's commits."""
    if commit_identifier is not None and commit_user is None:
        raise InvalidArgument("commit_identifier without commit_user", hint="give both, or neither")
    if commit_user is not None and (not isinstance(commit_user, str) or not commit_user):
        raise InvalidArgument(f"commit_user is {commit_user!r}", hint="pass a name of the writer, such as a query's id")
    if commit_identifier is not None and (
        isinstance(commit_identifier, bool)
        or not isinstance(commit_identifier, int)
        or not 0 <= commit_identifier <= INT64_MAX
    ):
        raise InvalidArgument(
            f"commit_identifier is {commit_identifier!r}", hint="pass a number from 0 that grows with every commit"
        )


def changes_argument(changes: Sequence[SchemaChange]) -> tuple[SchemaChange, ...]:
    """Schema changes, each with parts of the right type."""
    for change in changes:
        if not isinstance(change, SchemaChange):
            raise InvalidArgument(
                f"{change!r} is no schema change", hint='pass changes such as lakebed.AddColumn("note", "STRING")'
            )
        _check_parts(change)
    return tuple(changes)


def _check_parts(change: SchemaChange) -> None:
    assert is_dataclass(change)
    for part in fields(change):
        value = getattr(change, part.name)
        optional = part.name in _OPTIONAL and (part.name != "position" or part.default is None)
        wanted: Any = _OPTIONAL.get(part.name) if optional else _REQUIRED.get(part.name)
        if part.name == "name":
            is_path = isinstance(value, tuple) and bool(value) and all(isinstance(step, str) for step in value)
            is_right = isinstance(value, str) or is_path
        else:
            is_right = wanted is None or isinstance(value, wanted) or (optional and value is None)
        if not is_right:
            raise InvalidArgument(
                f"{part.name} of {type(change).__name__} is {value!r}",
                hint=f"see help(lakebed.{type(change).__name__}) for what to pass",
            )


def filter_argument(given: Any, schema: pa.Schema) -> Predicate | None:
    """The predicate for a filter in any form, fitted to the schema's columns and types; None means no filter.

    That is SQL text, an expression of polars or pyarrow, a list of conditions, or a predicate.
    """
    if isinstance(given, str):
        from lakebed.definition.condition import text_predicate  # the parser is only for those who use it

        given = text_predicate(given, schema)
    elif type(given).__module__.partition(".")[0] == "polars":
        from lakebed.definition.polars_filter import understood

        found = understood(given, schema)
        if found is None:
            raise InvalidArgument(
                f"filter `{given}` is more than a table can evaluate",
                hint="let polars filter: t.scan_polars().filter(...) reads no more than it must either",
            )
        given = found
    return to_predicate(given, schema)


# --- Options as keywords of a call: `scan_mode="latest"` for `scan.mode`. Dots, dashes and capitals do not count --


def options_by_keyword(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The options that these keywords stand for, by their own keys. A key as it is stands for itself."""
    return {_key(keyword): value for keyword, value in keywords.items() if value is not None}


def _key(keyword: str) -> str:
    if "." in keyword or "-" in keyword:
        return keyword
    found = _keys().get(_plain(keyword))
    if found is None:
        hint = did_you_mean(keyword, [key.replace(".", "_").replace("-", "_") for key in set(_keys().values())])
        raise InvalidOption(f"no option is meant by `{keyword}`", hint=hint)
    return found


def _plain(key: str) -> str:
    return "".join(letter for letter in key.lower() if letter.isalnum())


@cache
def _keys() -> dict[str, str]:
    plain = [option for option in OPTIONS if not isinstance(option, FieldOption)]
    older = {_plain(alias): option.key for option in plain for alias in option.aliases}
    return older | {_plain(option.key): option.key for option in plain}


__all__ = ["options_by_keyword"]
