"""Options as keywords of a call: `scan_mode="latest"` for `scan.mode`. Dots, dashes and capitals do not count."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from lakebed.errors import InvalidOption, did_you_mean
from lakebed.options.option import FieldOption
from lakebed.options.table import OPTIONS


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
